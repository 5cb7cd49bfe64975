//! Tests of `devices::memories`.

use unisono_discover::{
    Box3, Ranks, Region,
    internals::{devices::HOST, memories::Memories},
};

const POINTS: i64 = 24;

/// A model of the memories. For each point, it has the version in each memory, and the arrival that brought the point
/// to the host.
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
    let mut random = unisono_base::Random(11);
    let mut next = |n: u64| random.below(n);
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
                    // The host must have the data that it broadcasts.
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
                    let lacking: Vec<_> = wanted.iter().map(|(m, _)| (*m, oracle.lacking(*m as usize, &xs))).collect();
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
                let there: Vec<usize> = (0..POINTS as usize).filter(|&x| oracle.lacking(k, &[x]).is_empty()).collect();
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
    // All other points have a single contributing device, which keeps its result.
    assert_eq!(memories.latest, [region(4, 12), region(0, 4), Region::empty(), region(12, 14)]);
}
