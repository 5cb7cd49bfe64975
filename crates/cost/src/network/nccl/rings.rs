//! Rings of GPUs over direct NVLinks: the number of channels of one speed that the links can carry.
//!
//! NCCL searches Hamiltonian cycles in the graph of the links. Each cycle uses the speed of one channel on each of its
//! links. NCCL first repeats one cycle (same channels), then combines different cycles. The search here is exact for up
//! to 8 GPUs, within its limit of steps. For more GPUs it tries the first cycles in lexicographic order.

/// The most cycles that the search combines.
const MOST_CYCLES: usize = 5040;
/// The most steps of the search for cycles, and of each search for a combination.
const MOST_STEPS: u32 = 200_000;
/// The tolerance in comparisons of rates, which are sums of floating-point numbers.
const SLACK: f64 = 1e-6;

/// The largest number of channels of one speed that fit.
pub struct Packing {
    pub channels: u32,
    /// True if all channels use one ring.
    pub same: bool,
}

/// Directed cycles through all nodes of a graph whose links have capacities.
pub struct Rings {
    count: usize,
    pairs: Vec<f64>,
    cycles: Vec<Vec<usize>>,
}

impl Rings {
    /// Finds the cycles among `count` nodes. `pairs` has the capacity in GB/s between each two nodes, row by row.
    pub fn new(count: usize, pairs: &[f64]) -> Self {
        let mut found = Self { count, pairs: pairs.to_vec(), cycles: Vec::new() };
        let (mut path, mut left) = (vec![0], MOST_STEPS);
        if count > 1 {
            found.extend(&mut path, &mut left);
        }
        found
    }

    pub fn is_empty(&self) -> bool {
        self.cycles.is_empty()
    }

    fn extend(&mut self, path: &mut Vec<usize>, left: &mut u32) {
        if *left == 0 || self.cycles.len() == MOST_CYCLES {
            return;
        }
        *left -= 1;
        let last = path[path.len() - 1];
        if path.len() == self.count {
            if self.pairs[last * self.count] > 0.0 {
                self.cycles.push(path.clone());
            }
            return;
        }
        for next in 1..self.count {
            if self.pairs[last * self.count + next] > 0.0 && !path.contains(&next) {
                path.push(next);
                self.extend(path, left);
                path.pop();
            }
        }
    }

    /// Returns the most channels of `speed` GB/s that fit, and at most `most` channels.
    pub fn pack(&self, speed: f64, most: u32) -> Packing {
        let fits = |capacity: f64| ((capacity + SLACK) / speed).floor();
        let links: Vec<Vec<usize>> = self.cycles.iter().map(|cycle| self.links(cycle)).collect();
        let same = links.iter().map(|links| links.iter().map(|&l| fits(self.pairs[l])).fold(f64::INFINITY, f64::min));
        let same = to_count(same.fold(0.0, f64::max), most);
        // A node cannot send on more channels than its links can carry.
        let of_node = |node: usize| self.pairs[node * self.count..][..self.count].iter().map(|&c| fits(c)).sum::<f64>();
        let bound = to_count((0..self.count).map(of_node).fold(f64::INFINITY, f64::min), most);
        let mut room: Vec<u32> = self.pairs.iter().map(|&capacity| to_count(fits(capacity), most)).collect();
        let mut left = MOST_STEPS;
        let mut best = 0;
        combine(&links, 0, 0, &mut room, bound, &mut best, &mut left);
        if best > same { Packing { channels: best, same: false } } else { Packing { channels: same, same: true } }
    }

    fn links(&self, cycle: &[usize]) -> Vec<usize> {
        (0..cycle.len()).map(|at| cycle[at] * self.count + cycle[(at + 1) % cycle.len()]).collect()
    }
}

/// Tries all combinations of the cycles from index `first` on, each cycle as often as it fits. `taken` is the number of
/// channels chosen so far. Stores the most channels found in `best`. Ends early at `bound` channels, or when no steps
/// are `left`.
fn combine(
    links: &[Vec<usize>],
    first: usize,
    taken: u32,
    room: &mut [u32],
    bound: u32,
    best: &mut u32,
    left: &mut u32,
) {
    *best = (*best).max(taken);
    for at in first..links.len() {
        if *best >= bound || *left == 0 {
            return;
        }
        *left -= 1;
        if links[at].iter().all(|&link| room[link] > 0) {
            links[at].iter().for_each(|&link| room[link] -= 1);
            // Combinations of different cycles are tried first, because they distribute the load.
            combine(links, at + 1, taken + 1, room, bound, best, left);
            combine(links, at, taken + 1, room, bound, best, left);
            links[at].iter().for_each(|&link| room[link] += 1);
        }
    }
}

fn to_count(value: f64, most: u32) -> u32 {
    if value >= f64::from(most) { most } else { (0..=most).take_while(|&n| f64::from(n) <= value).last().unwrap_or(0) }
}
