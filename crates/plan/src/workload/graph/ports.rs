//! The ports over which messages between pairs leave their sender and reach their receiver.

use rustc_hash::FxHashMap;

/// The first and the last links of a way, each with the part of a message's time for which the message holds it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Ports {
    pub leaving: Vec<(u32, f64)>,
    pub arriving: Vec<(u32, f64)>,
}

/// The transport of messages between pairs.
pub trait Messages {
    /// The part of a message's time during which it holds nobody. `class` and `node` are those of its send.
    fn latency_seconds(&self, _class: usize, _node: usize) -> f64 {
        0.0
    }

    /// The seconds for which a message holds its sender's host before it leaves, and its receiver's when it has
    /// arrived. They are parts of the latency.
    fn overhead_seconds(&self, _class: usize, _node: usize) -> [f64; 2] {
        [0.0; 2]
    }

    /// The ports of a message; `None` where a rank has one port that sends and one that receives.
    fn ports(&self, _class: usize, _node: usize) -> Option<&Ports> {
        None
    }

    /// Returns whether a message begins when it is ready, also while the send machines are busy.
    fn are_posted(&self) -> bool {
        false
    }

    /// The number of messages that a rank sends at a time; `None` where only its links limit it.
    fn machines(&self) -> Option<u32> {
        Some(1)
    }
}

/// Ranks with one port for each direction, and messages without latency.
#[derive(Clone, Copy, Debug)]
pub struct OnePort;

impl Messages for OnePort {}

/// The times at which each link is free for messages that leave, and for those that arrive. A message on its way holds
/// no link that others leave over meanwhile.
#[derive(Debug, Default)]
pub(super) struct Links {
    leaving: FxHashMap<u32, f64>,
    arriving: FxHashMap<u32, f64>,
}

impl Links {
    /// A message that could leave at `now` does so over its ports, each of which it holds for a part of `held`. Returns
    /// when it begins to leave.
    pub fn leave(&mut self, ports: &Ports, now: f64, held: f64) -> f64 {
        let free = |link: &u32| self.leaving.get(link).copied().unwrap_or(0.0);
        let begin = ports.leaving.iter().map(|(link, _)| free(link)).fold(now, f64::max);
        self.leaving.extend(ports.leaving.iter().map(|&(link, part)| (link, begin + held * part)));
        begin
    }

    /// The head of a message comes to its last links at `now`. Returns when it has arrived.
    pub fn arrive(&mut self, ports: &Ports, now: f64, held: f64) -> f64 {
        let free = |link: &u32| self.arriving.get(link).copied().unwrap_or(0.0);
        let end = ports.arriving.iter().map(|(link, part)| free(link) + held * part).fold(now + held, f64::max);
        self.arriving.extend(ports.arriving.iter().map(|&(link, _)| (link, end)));
        end
    }
}
