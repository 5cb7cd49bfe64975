//! The ports by which messages between pairs leave their sender and reach their receiver.

use rustc_hash::FxHashMap;

/// The first and the last links of a path, each with the fraction of a message's time for which the message occupies
/// the link.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Ports {
    pub leaving: Vec<(u32, f64)>,
    pub arriving: Vec<(u32, f64)>,
}

/// The costs of messages between pairs in addition to their time.
pub trait Messages {
    /// Returns the part of a message's time during which the message occupies no port. `_class` and `_node` identify
    /// its send.
    fn latency_seconds(&self, _class: usize, _node: usize) -> f64 {
        0.0
    }

    /// Returns the seconds for which a message occupies its sender's host before it leaves, and its receiver's host
    /// after its arrival. Both are parts of the latency.
    fn overhead_seconds(&self, _class: usize, _node: usize) -> [f64; 2] {
        [0.0; 2]
    }

    /// Returns the ports of a message; `None` if each rank has one port for sending and one for receiving.
    fn ports(&self, _class: usize, _node: usize) -> Option<&Ports> {
        None
    }

    /// Returns true if a message is posted when it is ready, even if all send machines are busy.
    fn are_posted(&self) -> bool {
        false
    }

    /// Returns the number of messages that a rank sends at a time; `None` if only its links limit it.
    fn machines(&self) -> Option<u32> {
        Some(1)
    }
}

/// Ranks with one port in each direction, and messages without latency.
#[derive(Clone, Copy, Debug)]
pub struct OnePort;

impl Messages for OnePort {}

/// The times from which each link is free: for leaving messages, and for arriving messages. An arriving message does
/// not occupy a link for leaving messages.
#[derive(Debug, Default)]
pub(super) struct Links {
    leaving: FxHashMap<u32, f64>,
    arriving: FxHashMap<u32, f64>,
}

impl Links {
    /// Sends a message that could leave at `now` and occupies each port for a fraction of `held`. Returns the time at
    /// which the message begins to leave.
    pub fn leave(&mut self, ports: &Ports, now: f64, held: f64) -> f64 {
        let free = |link: &u32| self.leaving.get(link).copied().unwrap_or(0.0);
        let begin = ports.leaving.iter().map(|(link, _)| free(link)).fold(now, f64::max);
        self.leaving.extend(ports.leaving.iter().map(|&(link, part)| (link, begin + held * part)));
        begin
    }

    /// Receives a message whose head reaches its last links at `now`. Returns the time at which the message has
    /// arrived.
    pub fn arrive(&mut self, ports: &Ports, now: f64, held: f64) -> f64 {
        let free = |link: &u32| self.arriving.get(link).copied().unwrap_or(0.0);
        let end = ports.arriving.iter().map(|(link, part)| free(link) + held * part).fold(now + held, f64::max);
        self.arriving.extend(ports.arriving.iter().map(|&(link, _)| (link, end)));
        end
    }
}
