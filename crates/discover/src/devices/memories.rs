//! For one buffer of a process, the memories that have the latest contents of each element.
//!
//! Invariants: the regions of `arrivals` are disjoint, and the host has the latest contents of each of them. For every
//! element that the process has, at least one memory has the latest contents.

use crate::{
    direct::{Cell, Message},
    side::Ranks,
    space::Region,
};

pub const HOST: u32 = 0;

#[derive(Clone, Debug)]
pub struct Memories {
    /// For each memory, the region of which it has the latest contents.
    pub latest: Vec<Region>,
    /// The regions that the host received, each by one message of another process, without elements that were
    /// overwritten later.
    arrivals: Vec<Region>,
}

/// The copies of one call of [`Memories::bring`].
#[derive(Default, Debug)]
pub struct Brought {
    /// At most one message for each pair of memories, in ascending order.
    pub messages: Vec<Message>,
    /// The number of copies that would be needed if each arrival was copied separately.
    pub updates: u64,
}

impl Memories {
    /// Creates memories, of which only the host's has `contents`.
    pub fn new(devices: u32, contents: Region) -> Self {
        let mut latest = vec![Region::empty(); super::memories(devices) as usize];
        latest[HOST as usize] = contents;
        Self { latest, arrivals: Vec::new() }
    }

    /// Copies to each memory the part of its wanted region that it lacks: from the host if the host has the latest
    /// contents, otherwise from the first device that has them. All copies read the contents as they were before the
    /// call.
    pub fn bring(&mut self, wanted: &[(u32, Region)]) -> Brought {
        let mut brought = Brought::default();
        let before = self.latest.clone();
        for (to, region) in wanted {
            let mut lacking = region.minus(&before[*to as usize]);
            let all = lacking.clone();
            for (from, held) in (0u32..).zip(&before) {
                if lacking.is_empty() {
                    break;
                }
                let copied = lacking.intersect(held);
                if from == *to || copied.is_empty() {
                    continue;
                }
                brought.messages.push(Message { from, to: *to, elements: copied.volume() });
                brought.updates += if from == HOST { self.apart(&copied) } else { 1 };
                lacking = lacking.minus(&copied);
            }
            let there = &mut self.latest[*to as usize];
            *there = there.union(&all.minus(&lacking));
        }
        brought.messages.sort_unstable();
        brought
    }

    /// Returns the number of separate copies for a region: one for each arrival that overlaps it, plus one if a part of
    /// the region is in no arrival.
    fn apart(&self, region: &Region) -> u64 {
        let mut rest = region.clone();
        let mut count = 0;
        for arrival in &self.arrivals {
            if rest.is_empty() {
                break;
            }
            if arrival.overlaps(&rest) {
                count += 1;
                rest = rest.minus(arrival);
            }
        }
        count + u64::from(!rest.is_empty())
    }

    /// Records that only one memory has the latest contents of a region.
    pub fn wrote(&mut self, memory: u32, region: &Region) {
        for (k, latest) in (0u32..).zip(&mut self.latest) {
            *latest = if k == memory { latest.union(region) } else { latest.minus(region) };
        }
        self.arrivals.retain_mut(|arrival| {
            *arrival = arrival.minus(region);
            !arrival.is_empty()
        });
    }

    /// Records that a message of another process brought a region to the host.
    pub fn arrived(&mut self, region: &Region) {
        if !region.is_empty() {
            self.wrote(HOST, region);
            self.arrivals.push(region.clone());
        }
    }

    /// Copies a region from the host to all devices. Returns the number of elements that at least one device lacked.
    pub fn broadcast(&mut self, region: &Region) -> u64 {
        let lacking = self.latest[1..].iter().fold(Region::empty(), |all, held| all.union(&region.minus(held)));
        for held in &mut self.latest[1..] {
            *held = held.union(&lacking);
        }
        lacking.volume()
    }

    /// Combines partial results of devices. An element to which one device contributes stays on that device. The host
    /// combines the elements to which several devices contribute. Returns these elements, with the contributing
    /// devices.
    pub fn reduced(&mut self, rows: &[(u32, Region)]) -> Vec<Cell> {
        // Disjoint regions, each with the devices that contribute to it.
        let mut pieces: Vec<(Region, Vec<u32>)> = Vec::new();
        for (device, region) in rows {
            let mut rest = region.clone();
            for k in 0..pieces.len() {
                let common = pieces[k].0.intersect(&rest);
                if common.is_empty() {
                    continue;
                }
                rest = rest.minus(&common);
                let outside = pieces[k].0.minus(&common);
                let devices = pieces[k].1.clone();
                pieces[k].1.push(*device);
                pieces[k].0 = common;
                if !outside.is_empty() {
                    pieces.push((outside, devices));
                }
            }
            if !rest.is_empty() {
                pieces.push((rest, vec![*device]));
            }
        }
        let mut cells: Vec<Cell> = Vec::new();
        for (region, devices) in pieces {
            if let [device] = devices[..] {
                self.wrote(device, &region);
                continue;
            }
            self.wrote(HOST, &region);
            let givers = Ranks::of(devices.iter().map(|&k| (k, k + 1)).collect());
            match cells.iter_mut().find(|cell| cell.givers == givers) {
                Some(cell) => cell.elements += region.volume(),
                None => cells.push(Cell { elements: region.volume(), givers, takers: Ranks::one(HOST) }),
            }
        }
        cells
    }
}
