//! Checks that packets cannot block each other for ever, by the channel dependency graph of a routing.
//!
//! A channel is a link on a virtual channel. A packet on a channel waits for the channels that it may take next, so a
//! routing without a cycle among these dependencies has no deadlock (Dally, Seitz, 1987). The check follows all paths
//! that a source may choose, all hops that the routing allows, and all accelerators as destinations. Channels that no
//! packet can reach are ignored.

use std::collections::BTreeMap;

use unisono_base::{
    interrupt::poll,
    limits::{self, OverLimit},
    narrow,
};

use super::{Header, Hop, Plane, Routing, Topology};

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    #[error("packets may wait for each other in a circle: {}", circle(.0))]
    Cycle(Vec<Channel>),
    #[error("a packet to {to} has nowhere to go at {at} (virtual channel {vc}, way {way})")]
    Stuck { at: u32, to: u32, vc: u8, way: u32 },
    #[error("a packet to {to} at {at} is sent by link {link} on virtual channel {vc}, which is not there")]
    NoSuchChannel { at: u32, to: u32, link: u32, vc: u8 },
}

/// A link, with its two nodes, on a virtual channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Channel {
    pub from: u32,
    pub to: u32,
    pub hop: Hop,
}

fn circle(channels: &[Channel]) -> String {
    let shown: Vec<String> =
        channels.iter().map(|c| format!("{} to {} on channel {}", c.from, c.to, c.hop.vc)).collect();
    shown.join(", ")
}

/// The size of a dependency graph without a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Free {
    /// The number of channels that packets use.
    pub channels: usize,
    pub dependencies: usize,
}

/// Estimates the work of [`check`].
///
/// # Errors
/// Returns an error if the check would exceed a limit.
pub fn admit(topology: &dyn Topology, plane: &Plane, routing: &dyn Routing) -> Result<(), OverLimit> {
    /// The bytes of a channel, measured on a torus of 16,384 accelerators.
    const EACH: u128 = 64;
    /// The computation steps for a channel in one search.
    const STEPS: u128 = 8;
    let channels = plane.links().len() as u128 * u128::from(routing.virtual_channels());
    // If switches have many channels, the paths to one destination use only few of them.
    let followed = channels.min(8 * u128::from(plane.nodes()) * u128::from(topology.diameter() + 1));
    let ends = u128::from(plane.accelerators());
    limits::admit("the check for deadlock", EACH * channels, STEPS * ends * (ends + followed))
}

/// # Errors
/// Returns the first fault: a cycle, with its channels, or a packet for which the routing has no hop.
pub fn check(plane: &Plane, routing: &dyn Routing) -> Result<Free, Fault> {
    let graph = Dependencies::gather(plane, routing)?;
    match graph.cycle() {
        Some(cycle) => {
            let channel = |&id: &u32| {
                let hop = graph.hop(id);
                let link = plane.link(hop.link);
                Channel { from: link.from, to: link.to, hop }
            };
            Err(Fault::Cycle(cycle.iter().map(channel).collect()))
        }
        None => Ok(Free {
            channels: graph.used.iter().filter(|&&used| used).count(),
            dependencies: graph.next.iter().map(Vec::len).sum(),
        }),
    }
}

/// The longest list that is searched for duplicates; longer lists are sorted.
const MOST_SEARCHED: usize = 16;

fn distinct(list: &mut Vec<u32>) {
    list.sort_unstable();
    list.dedup();
}

/// The channels that packets on a channel may take next. The number of a channel is link x virtual channels + virtual
/// channel.
struct Dependencies {
    virtual_channels: u32,
    used: Vec<bool>,
    next: Vec<Vec<u32>>,
}

impl Dependencies {
    fn gather(plane: &Plane, routing: &dyn Routing) -> Result<Self, Fault> {
        let virtual_channels = u32::from(routing.virtual_channels());
        let channels = plane.links().len() * virtual_channels as usize;
        let mut graph = Self { virtual_channels, used: vec![false; channels], next: vec![Vec::new(); channels] };
        // One search follows all packets that have the same destination and the same `way`. A channel is stamped with
        // the number of the latest search that reached it.
        let (mut stamp, mut search) = (vec![0_u32; channels], 0);
        let (mut hops, mut open) = (Vec::new(), Vec::new());
        for to in 0..plane.accelerators() {
            let mut sources: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            for from in (0..plane.accelerators()).filter(|&from| from != to) {
                poll();
                for &way in &*routing.choices(from, to) {
                    sources.entry(way).or_default().push(from);
                }
            }
            for (way, sources) in sources {
                search += 1;
                let mut follow = |at: u32, vc: u8, from: Option<u32>, open: &mut Vec<u32>| {
                    poll();
                    hops.clear();
                    routing.hops(at, Header { to, vc, way }, &mut hops);
                    if hops.is_empty() {
                        return Err(Fault::Stuck { at, to, vc, way });
                    }
                    for &Hop { link, vc } in &hops {
                        if u32::from(vc) >= virtual_channels || !plane.leaving(at).contains(&link) {
                            return Err(Fault::NoSuchChannel { at, to, link, vc });
                        }
                        let id = link * virtual_channels + u32::from(vc);
                        if let Some(from) = from {
                            graph.depends(from, id);
                        }
                        if stamp[id as usize] != search {
                            stamp[id as usize] = search;
                            graph.used[id as usize] = true;
                            open.push(id);
                        }
                    }
                    Ok(())
                };
                for from in sources {
                    follow(from, 0, None, &mut open)?;
                }
                while let Some(id) = open.pop() {
                    let at = plane.link(id / virtual_channels).to;
                    if at != to {
                        follow(at, narrow(id % virtual_channels), Some(id), &mut open)?;
                    }
                }
            }
        }
        graph.next.iter_mut().filter(|next| next.len() > MOST_SEARCHED).for_each(distinct);
        Ok(graph)
    }

    fn depends(&mut self, from: u32, on: u32) {
        let next = &mut self.next[from as usize];
        if next.len() <= MOST_SEARCHED {
            if !next.contains(&on) {
                next.push(on);
            }
            return;
        }
        // A long list may contain duplicates. When it is full, duplicates are removed, and the list grows only if it is
        // still more than half full.
        if next.len() == next.capacity() {
            distinct(next);
            if next.len() > next.capacity() / 2 {
                next.reserve(next.capacity());
            }
        }
        next.push(on);
    }

    fn hop(&self, id: u32) -> Hop {
        Hop { link: id / self.virtual_channels, vc: narrow(id % self.virtual_channels) }
    }

    /// Finds a cycle by depth-first search with an explicit stack; `None` if there is none.
    fn cycle(&self) -> Option<Vec<u32>> {
        #[derive(Clone, Copy, PartialEq)]
        enum Mark {
            New,
            Open,
            Done,
        }
        let mut marks = vec![Mark::New; self.next.len()];
        for start in 0..narrow::<u32>(self.next.len()) {
            if marks[start as usize] != Mark::New {
                continue;
            }
            marks[start as usize] = Mark::Open;
            let mut path = vec![(start, 0)];
            while let Some((id, tried)) = path.last_mut() {
                poll();
                let Some(&next) = self.next[*id as usize].get(*tried) else {
                    marks[*id as usize] = Mark::Done;
                    path.pop();
                    continue;
                };
                *tried += 1;
                match marks[next as usize] {
                    Mark::New => {
                        marks[next as usize] = Mark::Open;
                        path.push((next, 0));
                    }
                    Mark::Open => {
                        let begin = path.iter().position(|&(id, _)| id == next).unwrap_or(0);
                        return Some(path[begin..].iter().map(|&(id, _)| id).collect());
                    }
                    Mark::Done => {}
                }
            }
        }
        None
    }
}
