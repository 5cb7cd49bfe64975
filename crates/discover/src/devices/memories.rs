//! One buffer in the memories of a process: which memory holds the latest contents of which elements.
//!
//! Invariants: the regions of `arrivals` are disjoint, and the host holds the latest contents of each. Every element
//! that the process has at all is in the region of at least one memory.

use super::HOST;
use crate::{
    direct::{Cell, Message},
    side::Ranks,
    space::Region,
};

#[derive(Clone, Debug)]
pub struct Memories {
    /// For each memory the region of which it holds the latest contents.
    latest: Vec<Region>,
    /// What single messages of other processes brought to the host, as far as it is still the latest.
    arrivals: Vec<Region>,
}

/// Copies between memories.
#[derive(Default, Debug)]
pub struct Brought {
    /// One for each pair of memories, ascending.
    pub messages: Vec<Message>,
    /// The number of copies if each arrival is copied on its own.
    pub updates: u64,
}

impl Memories {
    /// Memories of which the host's holds `contents`.
    pub fn new(devices: u32, contents: Region) -> Self {
        let mut latest = vec![Region::empty(); super::memories(devices) as usize];
        latest[HOST as usize] = contents;
        Self { latest, arrivals: Vec::new() }
    }

    /// Copies what memories lack of regions: from the host if it has the latest contents, else from the first device
    /// that has. All copies read what was there before.
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

    /// The number of arrivals that a region meets, and one more for what is left of it.
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

    /// Makes one memory the only one with the latest contents of a region.
    pub fn wrote(&mut self, memory: u32, region: &Region) {
        for (k, latest) in (0u32..).zip(&mut self.latest) {
            *latest = if k == memory { latest.union(region) } else { latest.minus(region) };
        }
        self.arrivals.retain_mut(|arrival| {
            *arrival = arrival.minus(region);
            !arrival.is_empty()
        });
    }

    /// Takes in what another process sent to the host.
    pub fn arrived(&mut self, region: &Region) {
        if !region.is_empty() {
            self.wrote(HOST, region);
            self.arrivals.push(region.clone());
        }
    }

    /// Brings a region of the host to all devices. Returns how many elements at least one device lacked.
    pub fn broadcast(&mut self, region: &Region) -> u64 {
        let lacking = self.latest[1..].iter().fold(Region::empty(), |all, held| all.union(&region.minus(held)));
        for held in &mut self.latest[1..] {
            *held = held.union(&lacking);
        }
        lacking.volume()
    }

    /// Takes in partial results of devices. Elements of one device stay there. Those of several are combined on the
    /// host, and returned by the devices that have them.
    pub fn reduced(&mut self, rows: &[(u32, Region)]) -> Vec<Cell> {
        // Disjoint regions, each with its devices.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::Box3;

    const POINTS: i64 = 24;

    /// The same memories point by point: the version that each memory holds, and which arrival brought it to the host.
    struct Points {
        versions: Vec<[u64; POINTS as usize]>,
        arrival: [u64; POINTS as usize],
        next: u64,
    }

    impl Points {
        fn latest(&self, x: usize) -> u64 {
            self.versions.iter().map(|memory| memory[x]).max().unwrap()
        }

        fn write(&mut self, memory: usize, xs: &[usize], arrival: u64) {
            self.next += 1;
            for &x in xs {
                self.versions[memory][x] = self.next;
                self.arrival[x] = arrival;
            }
        }

        fn lacking(&self, memory: usize, xs: &[usize]) -> Vec<usize> {
            xs.iter().copied().filter(|&x| self.versions[memory][x] != self.latest(x)).collect()
        }
    }

    fn points(region: &Region) -> Vec<usize> {
        region.boxes().iter().flat_map(|b| b.min[0]..b.max[0]).map(|x| x as usize).collect()
    }

    #[test]
    fn copies_are_those_that_single_points_need() {
        let mut state = 11u64;
        let mut next = |n: u64| {
            state = unisono_base::mix(state.wrapping_add(0x9e37_79b9_7f4a_7c15));
            state % n
        };
        for _ in 0..200 {
            let devices = 1 + next(3) as u32;
            let all = Region::from(Box3::of_size([POINTS, 1, 1]));
            let mut memories = Memories::new(devices, all);
            let mut versions = vec![[0; POINTS as usize]; devices as usize + 1];
            versions[0] = [1; POINTS as usize];
            let mut oracle = Points { versions, arrival: [0; POINTS as usize], next: 1 };
            for step in 1..30 {
                let mut interval = || {
                    let low = next(POINTS as u64) as i64;
                    let high = (low + 1 + next(8) as i64).min(POINTS);
                    Region::from(Box3::new([low, 0, 0], [high, 1, 1]))
                };
                let region = interval().union(&interval());
                let xs = points(&region);
                let memory = next(u64::from(devices) + 1) as u32;
                match next(5) {
                    0 => {
                        memories.wrote(memory, &region);
                        oracle.write(memory as usize, &xs, 0);
                    }
                    1 => {
                        memories.arrived(&region);
                        oracle.write(0, &xs, step);
                    }
                    2 => {
                        // The host has to hold what it broadcasts.
                        memories.bring(&[(HOST, region.clone())]);
                        let lack = |x: &usize| (1..=devices as usize).any(|d| !oracle.lacking(d, &[*x]).is_empty());
                        let lacking = xs.iter().filter(|x| lack(x)).count() as u64;
                        assert_eq!(memories.broadcast(&region), lacking);
                        for &x in &xs {
                            let latest = oracle.latest(x);
                            oracle.versions.iter_mut().for_each(|memory| memory[x] = latest);
                        }
                    }
                    3 => {
                        let rows: Vec<(u32, Region)> = (1..=devices).map(|d| (d, region.clone())).collect();
                        let cells = memories.reduced(&rows);
                        let expected = if devices > 1 { region.volume() } else { 0 };
                        assert_eq!(cells.iter().map(|c| c.elements).sum::<u64>(), expected);
                        assert!(cells.iter().all(|c| c.givers == Ranks::of(vec![(1, devices + 1)])));
                        oracle.write(usize::from(devices == 1), &xs, 0);
                    }
                    _ => {
                        let other = next(u64::from(devices) + 1) as u32;
                        let mut wanted = vec![(memory, region.clone())];
                        if other != memory {
                            wanted.push((other, region.clone()));
                        }
                        let lacking: Vec<_> =
                            wanted.iter().map(|(m, _)| (*m, oracle.lacking(*m as usize, &xs))).collect();
                        let brought = memories.bring(&wanted);
                        let mut updates = 0;
                        for (to, lack) in &lacking {
                            let got: u64 = brought.messages.iter().filter(|m| m.to == *to).map(|m| m.elements).sum();
                            assert_eq!(got, lack.len() as u64);
                            let by_host = lack.iter().filter(|&&x| oracle.versions[0][x] == oracle.latest(x));
                            let mut arrivals: Vec<u64> = by_host.map(|&x| oracle.arrival[x]).collect();
                            arrivals.sort_unstable();
                            arrivals.dedup();
                            updates += arrivals.len() as u64;
                            updates += brought.messages.iter().filter(|m| m.to == *to && m.from != HOST).count() as u64;
                        }
                        assert_eq!(brought.updates, updates);
                        for (to, lack) in lacking {
                            lack.iter().for_each(|&x| oracle.versions[to as usize][x] = oracle.latest(x));
                        }
                    }
                }
                for (k, held) in memories.latest.iter().enumerate() {
                    let there: Vec<usize> =
                        (0..POINTS as usize).filter(|&x| oracle.lacking(k, &[x]).is_empty()).collect();
                    assert_eq!(points(held), there, "memory {k}");
                }
            }
        }
    }

    #[test]
    fn partial_results_are_cells_of_their_devices() {
        let region = |low: i64, high: i64| Region::from(Box3::new([low, 0, 0], [high, 1, 1]));
        let mut memories = Memories::new(3, Region::empty());
        // Devices 1 and 2 share [4, 8), 2 and 3 share [8, 10), and all three [10, 12).
        let rows = [(1, region(0, 8)), (1, region(10, 12)), (2, region(4, 12)), (3, region(8, 14))];
        let mut cells = memories.reduced(&rows);
        cells.sort_by_key(|cell| cell.givers.len());
        let found: Vec<_> = cells.iter().map(|c| (c.elements, c.givers.iter().collect::<Vec<_>>())).collect();
        assert_eq!(found, [(4, vec![1, 2]), (2, vec![2, 3]), (2, vec![1, 2, 3])]);
        // The rest is the result of one device, which keeps it.
        assert_eq!(memories.latest, [region(4, 12), region(0, 4), Region::empty(), region(12, 14)]);
    }
}
