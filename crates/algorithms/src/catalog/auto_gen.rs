//! Auto-Gen reduce: the pre-order tree of least time by Eq. 1.
//!
//! The least scalar energy e(P, D, C) of a tree with P PEs, depth D and contention C follows `e(P, D, C) = min over i
//! of e(i, D, C-1) + e(P-i, D-1, C) + i`; `i` is the distance of the root's last child. This (min,+) convolution of
//! convex functions has a closed form: as a function of P, e has the slope `k` for `binom(D+k-1, k)` PEs, for
//! `1 <= k <= C`, so e is the sum of the `P-1` smallest slopes; a tree exists if `P <= binom(D+C, C)`. More contention
//! than a tree needs does not change e, so each depth D is tried only with its least contention C:
//! `T = min over D of max(B C, B e / (P-1) + P-1) + (2 T_R + 1) D` for B wavelets and the ramp latency T_R.
//!
//! Source: "Near-Optimal Wafer-Scale Reduce", section 5.5, whose dynamic program takes O(P^4).

use unisono_base::{interrupt::poll, narrow};

use crate::{
    AlgorithmError, Info, Params,
    line::{LineTree, Side, Sides},
};

pub struct AutoGen;

pub const INFO: Info = Info {
    name: "auto-gen",
    summary: "the pre-order tree of least predicted time for this vector and line",
    reference: "Near-Optimal Wafer-Scale Reduce, section 5.5",
    ..Info::ON_LINE
};

/// The limits of depth and contention of a tree, in messages, and its energy for one wavelet, in hops.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Shape {
    pub depth: u32,
    pub contention: u32,
    pub energy: u64,
    /// The time of the tree by Eq. 1.
    pub cycles: f64,
}

/// Returns e(pes, depth, infinity) and the least contention that attains it, or `None` if no tree has so small a depth.
pub fn energy(pes: u32, depth: u32) -> Option<(u64, u32)> {
    if pes <= 1 {
        return Some((0, 0));
    }
    if depth == 0 {
        return None;
    }
    let (mut left, mut energy) = (u64::from(pes - 1), 0);
    let mut slopes = Slopes::new(depth);
    loop {
        let (slope, count) = slopes.next();
        let take = count.min(left);
        energy += take * slope;
        left -= take;
        if left == 0 {
            return Some((energy, narrow::<u32>(slope)));
        }
    }
}

/// The slopes k = 1, 2, ... of the energy, with their numbers of occurrences `binom(depth + k - 1, k)`. The numbers
/// saturate far above any number of PEs.
struct Slopes {
    depth: u64,
    k: u64,
    count: u64,
}

const MANY: u64 = 1 << 40;

impl Slopes {
    fn new(depth: u32) -> Self {
        Self { depth: u64::from(depth), k: 0, count: 1 }
    }

    /// Returns the next slope and the number of its occurrences.
    fn next(&mut self) -> (u64, u64) {
        self.k += 1;
        if self.count < MANY {
            self.count = self.count * (self.depth + self.k - 1) / self.k;
        }
        (self.k, self.count)
    }
}

/// Returns the limits of the tree of least time for a root with `left` and `right` PEs on its sides, for `wavelets`
/// wavelets; `None` if neither side has PEs. Both sides have the same limit of depth.
fn best_depth(left: u32, right: u32, wavelets: u64, depth_cycles: f64) -> Option<Shape> {
    let (links, far, b) = (f64::from(left + right), f64::from(left.max(right)), wavelets as f64);
    let mut best: Option<Shape> = None;
    for depth in 1..=left.max(right) {
        poll();
        // The floor is a lower bound: the time of a tree with the least energy, one hop per PE, at this depth.
        let floor = b + far + depth_cycles * f64::from(depth);
        if best.is_some_and(|s| floor >= s.cycles) {
            break;
        }
        let (l, r) = (energy(left + 1, depth)?, energy(right + 1, depth)?);
        let contention = l.1 + r.1;
        let cycles =
            (b * f64::from(contention)).max(b * (l.0 + r.0) as f64 / links + far) + depth_cycles * f64::from(depth);
        if best.is_none_or(|s| cycles < s.cycles) {
            best = Some(Shape { depth, contention, energy: l.0 + r.0, cycles });
        }
    }
    best
}

/// Returns the limits of the tree of least time on `pes` PEs with the root at the end, or `None` for one PE.
pub fn best(pes: u32, wavelets: u64, depth_cycles: f64) -> Option<Shape> {
    best_depth(0, pes - 1, wavelets, depth_cycles)
}

/// Returns the tree of least time in which no PE has more than `contention` children.
pub fn within(pes: u32, wavelets: u64, depth_cycles: f64, contention: u32) -> Side {
    let time = |depth: u32| {
        poll();
        let (e, c) = energy(pes, depth)?;
        let spread = wavelets as f64 * e as f64 / f64::from(pes - 1) + f64::from(pes - 1);
        let busy = wavelets as f64 * f64::from(c);
        (c <= contention).then(|| (busy.max(spread) + depth_cycles * f64::from(depth), depth, c))
    };
    let best = (1..pes).filter_map(time).min_by(|a, b| a.0.total_cmp(&b.0));
    best.map_or_else(|| tree(pes, pes - 1, 1), |(_, depth, c)| tree(pes, depth, c))
}

/// Returns how many of the `rest` smallest slopes belong to the part without the last child's subtree. In that part
/// slope `k >= 2` occurs `binom(D+k-2, k-1)` times; in the last child's subtree slope `k >= 1` occurs `binom(D+k-2, k)`
/// times. Slopes are taken in ascending order, and occurrences of the largest slope may be divided freely. The part
/// without the last child gets as many as possible: the last child's subtree is then smaller, and its vector arrives
/// sooner. All divisions cost the same by Eq. 1, but the opposite is up to 22 % slower on a fabric with finite queues.
fn split(depth: u32, contention: u32, rest: u64) -> u64 {
    let (mut own, mut left) = (0u64, rest);
    // binom(D+k-2, k-1), the occurrences in the part without the last child's subtree (for k = 1 the child itself).
    let mut own_k = 1u64;
    let mut child = Slopes::new(depth - 1);
    for k in 1..=u64::from(contention) {
        let here = if k == 1 { 0 } else { own_k };
        let (_, there) = if depth == 1 { (k, 0) } else { child.next() };
        if here + there >= left {
            return own + left.min(here);
        }
        own += here;
        left -= here + there;
        if own_k < MANY {
            own_k = own_k * (u64::from(depth) + k - 1) / k;
        }
    }
    own + left
}

/// Builds a tree of `pes` PEs of least energy within `depth` and `contention`, by backtracking through [`split`].
pub fn tree(pes: u32, depth: u32, contention: u32) -> Side {
    let mut parents = vec![0; pes as usize];
    // Subtrees whose parents are not yet set: first PE, number of PEs, depth, contention.
    let mut todo = vec![(0u32, pes, depth, contention)];
    while let Some((root, mut pes, depth, mut contention)) = todo.pop() {
        // The last child is placed first, as the root of the far end of the remaining PEs.
        while pes > 1 {
            let nearer = 1 + narrow::<u32>(split(depth, contention, u64::from(pes - 2)));
            let child = root + nearer;
            parents[child as usize] = root;
            todo.push((child, pes - nearer, depth - 1, contention));
            pes = nearer;
            contention -= 1;
        }
    }
    Side::new(parents)
}

impl LineTree for AutoGen {
    fn side(&self, pes: u32, wavelets: u64, depth_cycles: f64, params: &Params) -> Result<Side, AlgorithmError> {
        Ok(self.sides(0, pes - 1, wavelets, depth_cycles, params)?.right)
    }

    fn sides(
        &self,
        left: u32,
        right: u32,
        wavelets: u64,
        depth_cycles: f64,
        _: &Params,
    ) -> Result<Sides, AlgorithmError> {
        let depth = best_depth(left, right, wavelets, depth_cycles).map_or(0, |s| s.depth);
        let side = |pes: u32| {
            let (_, contention) = energy(pes, depth).expect("best_depth found trees of this depth");
            tree(pes, depth, contention)
        };
        Ok(Sides { left: side(left + 1), right: side(right + 1) })
    }
}
