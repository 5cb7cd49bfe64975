//! Cuts of a plane into two parts: a cut that the family of the topology states, the least cut if there are few
//! accelerators, or the result of a search.

mod search;

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
    /// Returns the best of some cuts of `all` accelerators. Halves are preferred, then the cut with the largest product
    /// of the parts' numbers of accelerators divided by its rate; of equal cuts, the first. Cuts with an empty part or
    /// without links are ignored. Returns `None` if no cut remains.
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

/// Returns the minimum number of cables between `inside` accelerators and all others. Leaves have `down` accelerators
/// (the last leaf may have fewer) and `up` cables; `inside` consists of whole leaves and a part of one more.
pub(super) fn below_leaves(inside: u32, all: u32, down: u32, up: u32) -> u32 {
    let (whole, rest) = (inside / down, inside % down);
    let others = down.min(all - whole * down) - rest;
    whole * up.min(down) + rest.min(others + up)
}

/// The relation between the cut into halves that a family states and all other cuts into halves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Halves {
    /// No cut into halves is narrower.
    Least,
    /// The publication that describes the family compares networks by this cut. Narrower cuts may exist.
    Published,
    /// Narrower cuts may exist.
    Narrow,
}

impl Halves {
    pub fn least_if(is_least: bool) -> Self {
        if is_least { Self::Least } else { Self::Narrow }
    }
}

/// A bisection: its `share` is the cut's rate divided by the product of the largest injection of an accelerator and the
/// number of accelerators of the smaller half.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bisection {
    pub share: f64,
    /// True if no cut into halves is narrower.
    pub is_least: bool,
    /// The share of the narrowest cut that was found. It is less than `share` only if `share` is that of a published
    /// cut ([`Halves::Published`]).
    pub narrowest: f64,
}

/// Returns the bisection. Up to [`MOST_ACCELERATORS`] accelerators, all halves are tried. For more, the cut is that of
/// the family if the family states the least or a published one; otherwise it is the narrower of the family's and a
/// searched cut. Returns `None` for a single accelerator, or if no cut is stated and the plane is too large for the
/// search.
pub fn bisection(topology: &dyn Topology, own: Speed) -> Option<Bisection> {
    let (all, [_, injection]) = (topology.accelerators(), topology.injection());
    let share = |rate: f64| rate / (injection * f64::from(all / 2));
    let of = |rate, is_least| Bisection { share: share(rate), is_least, narrowest: share(rate) };
    if all <= MOST_ACCELERATORS {
        return least(&topology.plane().ok()?, own, all / 2).map(|rate| of(rate, true));
    }
    let stated = topology.halves().filter(|cut| cut.is_halves(all)).map(|cut| cut.rate);
    if topology.halves_are() == Halves::Least {
        return stated.map(|rate| of(rate, true));
    }
    let found = topology.plane().ok().and_then(|plane| searched(&plane, own, &topology.extents()));
    let narrowest = of(stated.into_iter().chain(found).reduce(f64::min)?, false);
    let published = stated.filter(|_| topology.halves_are() == Halves::Published);
    Some(published.map_or(narrowest, |rate| Bisection { share: share(rate), ..narrowest }))
}

/// Returns the rate of a narrow cut into halves that a search finds, relative to the machine's `own` rate of a link;
/// `extents` are those of the grid in which accelerators are numbered. Returns `None` if the plane is too large, or has
/// one accelerator.
pub fn searched(plane: &Plane, own: Speed, extents: &[u32]) -> Option<f64> {
    search::searched(plane, &capacities(plane, own), extents)
}

/// Returns the rate of each link, relative to the machine's `own` rate of a link.
fn capacities(plane: &Plane, own: Speed) -> Vec<f64> {
    let rate = |speed: &Option<Speed>| speed.map_or(1.0, |speed| speed.gbps / own.gbps);
    let rates: Vec<f64> = plane.speeds().iter().map(rate).collect();
    plane.links().iter().map(|link| rates[usize::from(link.speed)]).collect()
}

/// The maximum number of accelerators for which all halves are tried. 16 accelerators have 6,435 cuts into halves, and
/// each two more accelerators nearly quadruple this number.
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
    let capacities = capacities(plane, own);
    halves.map(|half| least_cut(plane, &capacities, half)).min_by(f64::total_cmp)
}

/// Returns the largest flow from the accelerators whose bits are set in `half` to the others, which is the capacity of
/// the least cut between them (Ford, Fulkerson, 1956). Flow is added along paths with the fewest links (Edmonds, Karp,
/// 1972), so the number of paths does not depend on the capacities. The capacity subtracted along a path is that of its
/// narrowest link, so this link is left with exactly 0.
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
