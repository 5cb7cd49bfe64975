//! A search for a narrow cut of a plane into halves, for planes whose least cut has no closed form.
//!
//! A switch and the accelerators that have no other cable form a unit, and each other node is a unit of its own. Units
//! change sides one by one. Each time, the unit is chosen whose change results in the least cut, even if the cut grows.
//! After all units have changed, the best intermediate state is kept (Fiduccia, Mattheyses, "A Linear-Time Heuristic
//! for Improving Network Partitions", 1982). This repeats until no pass improves the cut, from several first states. If
//! the sides have unequal numbers of accelerators, single accelerators of units on the larger side are counted on the
//! smaller side, and their cables are added to the cut.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BinaryHeap, VecDeque},
};

use unisono_base::{interrupt::poll, narrow};

use super::super::Plane;

/// The maximum number of passes of the search from one first state.
const PASSES: u32 = 8;
/// The minimum and the maximum number of first states from which the search begins.
const STARTS: [usize; 2] = [2, 200];
/// The maximum number of links that all first states together visit in one pass. The minimum number of first states may
/// exceed this limit.
const VISITS: usize = 400_000;
/// The maximum number of links between units of a plane that is searched.
const MOST_LINKS: usize = 1_000_000;

/// Returns the rate of the narrowest cut into halves that the search finds, with the rates of links; `extents` are
/// those of the grid in which accelerators are numbered. Returns `None` if the plane is too large for the search or has
/// one accelerator.
pub fn searched(plane: &Plane, rates: &[f64], extents: &[u32]) -> Option<f64> {
    let units = Units::of(plane, rates);
    let links = units.near.len();
    if plane.accelerators() < 2 || links > MOST_LINKS {
        return None;
    }
    let starts = (VISITS / links.max(1)).clamp(STARTS[0], STARTS[1]);
    let of_start = |order| State::of(&units, order).improved();
    units.orders(extents).take(starts).map(of_start).min_by(f64::total_cmp)
}

/// The units of a plane and the links between them.
struct Units {
    /// The number of accelerators of each unit.
    weight: Vec<u32>,
    /// The number of accelerators of each unit that can be counted on the other side.
    loose: Vec<u32>,
    /// The largest rate of the cable of an accelerator that can count on the other side.
    loose_rate: f64,
    /// The lowest accelerator of each unit.
    lowest: Vec<u32>,
    /// The index of each unit's first neighbor in `near`. `near` has the neighbors, each with the total rate of the
    /// links to it.
    first: Vec<usize>,
    near: Vec<(u32, f64)>,
    accelerators: u32,
}

impl Units {
    fn of(plane: &Plane, rates: &[f64]) -> Self {
        let n = plane.accelerators();
        let only = |node: u32| -> Option<u32> {
            let mut links = plane.leaving(node);
            let id = links.next().filter(|_| node < n && links.next().is_none())?;
            Some(id).filter(|&id| plane.link(id).to >= n)
        };
        let mut unit = vec![u32::MAX; plane.nodes() as usize];
        let (mut weight, mut loose, mut lowest) = (Vec::new(), Vec::new(), Vec::new());
        for node in (0..plane.nodes()).filter(|&node| only(node).is_none()) {
            unit[node as usize] = u32::try_from(weight.len()).expect("a unit has a node");
            weight.push(u32::from(node < n));
            loose.push(0);
            lowest.push(if node < n { node } else { u32::MAX });
        }
        let mut loose_rate = 0.0_f64;
        for node in 0..n {
            let Some(id) = only(node) else { continue };
            let of = unit[plane.link(id).to as usize];
            unit[node as usize] = of;
            weight[of as usize] += 1;
            loose[of as usize] += 1;
            lowest[of as usize] = lowest[of as usize].min(node);
            loose_rate = loose_rate.max(rates[id as usize]);
        }
        let mut between: Vec<(u32, u32, f64)> = Vec::with_capacity(plane.links().len());
        for (link, rate) in plane.links().iter().zip(rates) {
            let ends = [unit[link.from as usize], unit[link.to as usize]];
            if ends[0] != ends[1] {
                between.push((ends[0], ends[1], *rate));
            }
        }
        between.sort_unstable_by_key(|&(from, to, _)| (from, to));
        let (mut first, mut near) = (vec![0], Vec::<(u32, f64)>::new());
        for chunk in between.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (from, to, _) = chunk[0];
            first.resize(from as usize + 1, near.len());
            near.push((to, chunk.iter().map(|&(_, _, rate)| rate).sum()));
        }
        first.resize(weight.len() + 1, near.len());
        Self { weight, loose, loose_rate, lowest, first, near, accelerators: n }
    }

    fn count(&self) -> usize {
        self.weight.len()
    }

    fn near(&self, unit: usize) -> &[(u32, f64)] {
        &self.near[self.first[unit]..self.first[unit + 1]]
    }

    /// Returns orders of the units with accelerators, whose first half is one side of a first state: by coordinates
    /// along each dimension, by distance from a unit, by the parity of the position, and random orders.
    fn orders(&self, extents: &[u32]) -> impl Iterator<Item = Vec<u32>> {
        let mut heavy: Vec<u32> = (0..).zip(&self.weight).filter(|(_, w)| **w > 0).map(|(unit, _)| unit).collect();
        heavy.sort_by_key(|&unit| self.lowest[unit as usize]);
        let along = (0..extents.len()).map({
            let heavy = heavy.clone();
            let (extents, lowest) = (extents.to_vec(), self.lowest.clone());
            move |dim| {
                let below: u32 = extents[dim + 1..].iter().product();
                let mut order = heavy.clone();
                order.sort_by_key(|&unit| lowest[unit as usize] / below % extents[dim]);
                order
            }
        });
        let near_first = [heavy[0], heavy[heavy.len() - 1]].map(|from| self.by_distance(from));
        let parity = [0, 1].into_iter().flat_map(|odd| heavy.iter().skip(odd).step_by(2)).copied().collect();
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let random = std::iter::repeat_with(move || {
            let mut order = heavy.clone();
            for at in (1..order.len()).rev() {
                // The generator of Marsaglia, "Xorshift RNGs", 2003.
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                order.swap(at, narrow(seed % (at as u64 + 1)));
            }
            order
        });
        along.chain(near_first).chain([parity]).chain(random)
    }

    fn by_distance(&self, from: u32) -> Vec<u32> {
        let (mut order, mut seen) = (Vec::new(), vec![false; self.count()]);
        let mut open = VecDeque::from([from]);
        seen[from as usize] = true;
        while let Some(unit) = open.pop_front() {
            if self.weight[unit as usize] > 0 {
                order.push(unit);
            }
            for &(next, _) in self.near(unit as usize) {
                if !std::mem::replace(&mut seen[next as usize], true) {
                    open.push_back(next);
                }
            }
        }
        order
    }
}

/// The sides of all units.
struct State<'a> {
    units: &'a Units,
    inside: Vec<bool>,
    /// The numbers of accelerators of each side (false, then true), and of those accelerators that can count on the
    /// other side.
    weight: [i64; 2],
    loose: [i64; 2],
    cut: f64,
    /// The penalty for each accelerator by which a side is too large. It exceeds the rate of any cut.
    forbidden: f64,
}

/// A unit with the rate by which the cut shrinks if the unit changes its side.
#[derive(Clone, Copy)]
struct Change {
    gain: f64,
    unit: u32,
}

impl Ord for Change {
    fn cmp(&self, other: &Self) -> Ordering {
        self.gain.total_cmp(&other.gain).then(other.unit.cmp(&self.unit))
    }
}

impl PartialOrd for Change {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Change {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Change {}

impl<'a> State<'a> {
    /// Makes a state. Its inside has the first units of `order`, up to half of the accelerators, and the switches that
    /// have most of their links to these units.
    fn of(units: &'a Units, order: Vec<u32>) -> Self {
        let half = u64::from(units.accelerators / 2);
        let (mut inside, mut weight) = (vec![false; units.count()], 0_u64);
        for unit in order {
            let of = u64::from(units.weight[unit as usize]);
            if weight + of / 2 <= half && weight < half {
                inside[unit as usize] = true;
                weight += of;
            }
        }
        for _ in 0..2 {
            for unit in (0..units.count()).filter(|&unit| units.weight[unit] == 0) {
                let towards: f64 =
                    units.near(unit).iter().map(|&(to, rate)| if inside[to as usize] { rate } else { -rate }).sum();
                inside[unit] = towards > 0.0;
            }
        }
        let all: f64 = units.near.iter().map(|(_, rate)| rate).sum();
        let mut state =
            Self { units, inside, weight: [0; 2], loose: [0; 2], cut: 0.0, forbidden: 1.0 + all + units.loose_rate };
        for unit in 0..units.count() {
            let side = usize::from(state.inside[unit]);
            state.weight[side] += i64::from(units.weight[unit]);
            state.loose[side] += i64::from(units.loose[unit]);
        }
        state.cut = state.counted();
        state
    }

    fn counted(&self) -> f64 {
        let crossing = |unit: usize| {
            let near = self.units.near(unit).iter();
            near.filter(move |(to, _)| self.inside[unit] && !self.inside[*to as usize]).map(|(_, rate)| rate)
        };
        (0..self.units.count()).flat_map(crossing).sum()
    }

    /// Returns the penalty for unequal sides: the rate of the cables of accelerators that are counted on the other
    /// side.
    fn price(&self, weight: [i64; 2], loose: [i64; 2]) -> f64 {
        let larger = usize::from(weight[1] > weight[0]);
        let excess = (weight[larger] - weight[1 - larger]) / 2;
        let moved = excess.min(loose[larger]);
        moved as f64 * self.units.loose_rate + (excess - moved) as f64 * self.forbidden
    }

    fn total(&self) -> f64 {
        self.cut + self.price(self.weight, self.loose)
    }

    /// Returns the counts of both sides after a unit with count `by` moved from side `from` to the other side.
    fn after(of: [i64; 2], from: usize, by: u32) -> [i64; 2] {
        let mut after = of;
        after[from] -= i64::from(by);
        after[1 - from] += i64::from(by);
        after
    }

    fn gain(&self, unit: usize) -> f64 {
        let near = self.units.near(unit).iter();
        near.map(|&(to, rate)| if self.inside[to as usize] == self.inside[unit] { -rate } else { rate }).sum()
    }

    fn change(&mut self, unit: usize, gain: f64) {
        let from = usize::from(self.inside[unit]);
        self.weight = Self::after(self.weight, from, self.units.weight[unit]);
        self.loose = Self::after(self.loose, from, self.units.loose[unit]);
        self.inside[unit] = !self.inside[unit];
        self.cut -= gain;
    }

    /// Improves the state pass by pass, and returns the rate of its cut.
    fn improved(mut self) -> f64 {
        for _ in 0..PASSES {
            let before = self.total();
            self.pass();
            self.cut = self.counted();
            if self.total() >= before * (1.0 - 1e-12) {
                break;
            }
        }
        self.total()
    }

    /// Changes the side of every unit once, and returns to the best intermediate state.
    fn pass(&mut self) {
        let units = self.units;
        let mut gains: Vec<f64> = (0..units.count()).map(|unit| self.gain(unit)).collect();
        let mut is_done = vec![false; units.count()];
        // Units of one side with equal numbers of accelerators change the penalty equally, so one heap for each such
        // class suffices.
        let mut open: BTreeMap<(usize, u32, u32), BinaryHeap<Change>> = BTreeMap::new();
        let class = |inside: bool, unit: usize| (usize::from(inside), units.weight[unit], units.loose[unit]);
        for (unit, &gain) in gains.iter().enumerate() {
            open.entry(class(self.inside[unit], unit)).or_default().push(Change { gain, unit: narrow(unit) });
        }
        let (mut path, mut best) = (Vec::new(), (self.total(), 0));
        loop {
            let mut next: Option<(f64, Change)> = None;
            for (&(from, weight, loose), heap) in &mut open {
                while heap.peek().is_some_and(|top| {
                    is_done[top.unit as usize] || top.gain.total_cmp(&gains[top.unit as usize]).is_ne()
                }) {
                    heap.pop();
                }
                let Some(&top) = heap.peek() else { continue };
                let price = self.price(Self::after(self.weight, from, weight), Self::after(self.loose, from, loose));
                let total = self.cut - top.gain + price;
                if next.is_none_or(|(least, _)| total < least) {
                    next = Some((total, top));
                }
            }
            let Some((total, Change { gain, unit })) = next else { break };
            let unit = unit as usize;
            is_done[unit] = true;
            self.change(unit, gain);
            path.push(unit);
            for &(to, rate) in units.near(unit) {
                poll();
                let to = to as usize;
                if !is_done[to] {
                    gains[to] += if self.inside[to] == self.inside[unit] { -2.0 * rate } else { 2.0 * rate };
                    let heap = open.get_mut(&class(self.inside[to], to)).expect("the class of the unit");
                    heap.push(Change { gain: gains[to], unit: narrow(to) });
                }
            }
            if total < best.0 * (1.0 - 1e-12) {
                best = (total, path.len());
            }
        }
        for &unit in path[best.1..].iter().rev() {
            self.change(unit, 0.0);
        }
    }
}
