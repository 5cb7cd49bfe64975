//! Cuts of a plane into two parts: a cut stated by its family, or the least cut of few accelerators.

use std::collections::VecDeque;

use unisono_base::interrupt::poll;

use super::{Plane, Speed, Topology};

/// A cut of a plane into two parts, which are halves where possible.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cut {
    /// The number of accelerators of the smaller part.
    pub inside: u32,
    /// The rate of the links between the parts, relative to the machine's own rate of one link.
    pub rate: f64,
}

impl Cut {
    /// Returns the best of some cuts of `all` accelerators: halves are preferred, then the cut with the largest product
    /// of the parts' accelerators divided by its rate. The first of equal cuts is returned. Cuts with an empty part or
    /// without links do not count; `None` if no other cut is given.
    pub fn best(all: u32, cuts: impl IntoIterator<Item = Self>) -> Option<Self> {
        let load = |cut: &Self| f64::from(cut.inside) * f64::from(all - cut.inside) / cut.rate;
        let key = |cut: &Self| (cut.is_halves(all), load(cut));
        let better = |best: Self, cut: Self| if key(&cut) > key(&best) { cut } else { best };
        cuts.into_iter().filter(|cut| cut.inside > 0 && cut.rate > 0.0).reduce(better)
    }

    /// Returns whether the numbers of accelerators in the parts differ by at most one.
    pub fn is_halves(&self, all: u32) -> bool {
        self.inside == all / 2
    }
}

/// Returns the fewest cables between `inside` and all other accelerators, below leaves with `down` accelerators (the
/// last leaf fewer) and `up` cables: whole leaves, and a part of one more.
pub(super) fn below_leaves(inside: u32, all: u32, down: u32, up: u32) -> u32 {
    let (whole, rest) = (inside / down, inside % down);
    let others = down.min(all - whole * down) - rest;
    whole * up.min(down) + rest.min(others + up)
}

/// Returns the bisection: the rate of a cut into halves, divided by the largest injection of an accelerator times the
/// accelerators of the smaller half. Up to [`MOST_ACCELERATORS`] accelerators, the cut is the least one, and beyond
/// them that of the family. Returns `None` for a single accelerator, or if the family has to state halves and states
/// none.
pub fn bisection_share(topology: &dyn Topology, own: Speed) -> Option<f64> {
    let (all, [_, injection]) = (topology.accelerators(), topology.injection());
    let least = || Some(Cut { inside: all / 2, rate: least(&topology.plane().ok()?, own, all / 2)? });
    let stated = || topology.halves().filter(|cut| cut.is_halves(all));
    let Cut { inside, rate } = if all <= MOST_ACCELERATORS { least() } else { stated() }?;
    Some(rate / (injection * f64::from(inside)))
}

/// The most accelerators for which all halves are tried. Two more quadruple the halves; 16 have 6,435.
pub const MOST_ACCELERATORS: u32 = 16;

/// Returns the least rate of the links between any `inside` accelerators and all others, relative to the machine's
/// `own` rate of a link; `None` for more than [`MOST_ACCELERATORS`], or if a part is empty.
pub fn least(plane: &Plane, own: Speed, inside: u32) -> Option<f64> {
    let n = plane.accelerators();
    if inside == 0 || inside >= n || n > MOST_ACCELERATORS {
        return None;
    }
    // For halves of equal size, the last accelerator is always in the second half.
    let bits = if 2 * inside == n { n - 1 } else { n };
    let halves = (0_u32..1 << bits).filter(|half| half.count_ones() == inside);
    let rate = |speed: &Option<Speed>| speed.map_or(1.0, |speed| speed.gbps / own.gbps);
    let rates: Vec<f64> = plane.speeds().iter().map(rate).collect();
    let capacities: Vec<f64> = plane.links().iter().map(|link| rates[usize::from(link.speed)]).collect();
    halves.map(|half| least_cut(plane, &capacities, half)).min_by(f64::total_cmp)
}

/// Returns the largest flow from the accelerators whose bits are set in `half` to the others, which is the capacity of
/// the least cut between them (Ford, Fulkerson, 1956). Flow is added along paths with the fewest links (Edmonds, Karp,
/// 1972), so the number of paths does not depend on the capacities. A path fills its narrowest link exactly, since that
/// link's own capacity is subtracted from it.
fn least_cut(plane: &Plane, capacities: &[f64], half: u32) -> f64 {
    let accelerator = |node: u32| node < plane.accelerators();
    let inside = |node: u32| accelerator(node) && half >> node & 1 == 1;
    let mut left = capacities.to_vec();
    let mut found = 0.0;
    loop {
        let mut by = vec![None; plane.nodes() as usize];
        let mut seen: Vec<bool> = (0..plane.nodes()).map(inside).collect();
        let mut open: VecDeque<u32> = (0..plane.nodes()).filter(|&node| inside(node)).collect();
        let mut end = None;
        while let Some(node) = open.pop_front() {
            poll();
            if accelerator(node) && !inside(node) {
                end = Some(node);
                break;
            }
            for id in plane.leaving(node) {
                let next = plane.link(id).to;
                if left[id as usize] > 0.0 && !seen[next as usize] {
                    seen[next as usize] = true;
                    by[next as usize] = Some(id);
                    open.push_back(next);
                }
            }
        }
        let Some(end) = end else { return found };
        let last = by[end as usize];
        let way = || std::iter::successors(last, |&id| by[plane.link(id).from as usize]);
        let more = way().map(|id| left[id as usize]).fold(f64::INFINITY, f64::min);
        for id in way() {
            left[id as usize] -= more;
            left[plane.link(id).back as usize] += more;
        }
        found += more;
    }
}
