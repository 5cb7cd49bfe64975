//! Shifts of the ranks that map a network onto itself.
//!
//! The boxes of a cluster are equivalent, and so are the boards of a mesh of boards. A shift adds a multiple of a
//! stride to each coordinate of the ranks, modulo the extent. If relays can be mapped such that every arc is mapped to
//! an arc of the same rate, the trees of one rank serve all ranks to which shifts map it. A *class* is a set of arcs
//! that shifts map to each other: the images of a tree under all shifts load all arcs of a class equally.

use rustc_hash::FxHashMap;
use unisono_base::{interrupt::poll, narrow};

use crate::Graph;

/// The shifts of a graph, and the classes of its arcs.
#[derive(Clone, PartialEq, Debug)]
pub struct Symmetry {
    ranks: u32,
    /// The extent of each coordinate of ranks, row-major.
    dims: Vec<u32>,
    /// The stride of each coordinate: the least shift along it, or its extent if there is no shift.
    strides: Vec<u32>,
    /// The image of each relay under each shift, ordered by shift.
    relays: Vec<u32>,
    /// The class of each arc.
    pub classes: Vec<u32>,
    /// The number of shifts that map an arc of each class to itself.
    pub stay: Vec<u32>,
}

/// The image of each node of a graph.
type Map = Vec<u32>;

impl Symmetry {
    /// Returns a symmetry with the identity as its only shift.
    pub fn none(graph: &Graph) -> Self {
        let ranks = graph.ranks();
        Self::of(graph, &[ranks], vec![ranks], &[])
    }

    /// Finds the shifts with the smallest strides. Ranks are numbered row-major in the extents `dims`; if these have
    /// another number of ranks, the identity is the only shift.
    pub fn find(graph: &Graph, dims: &[u32]) -> Self {
        let product: u64 = dims.iter().map(|&d| u64::from(d)).product();
        if product != u64::from(graph.ranks()) {
            return Self::none(graph);
        }
        let arcs: FxHashMap<(u32, u32), u64> = graph.arcs().iter().map(|arc| ((arc.from, arc.to), arc.rate)).collect();
        let neighbors = neighbors(graph);
        let mut strides = dims.to_vec();
        let mut found: Vec<Map> = Vec::new();
        for at in 0..dims.len() {
            let divisors = (1..dims[at]).filter(|stride| dims[at].is_multiple_of(*stride));
            for stride in divisors {
                let ranks: Map = (0..graph.ranks()).map(|rank| shifted(rank, dims, at, stride)).collect();
                let Some(map) = followed(&neighbors, ranks) else { continue };
                let keeps =
                    |arc: &crate::Arc| arcs.get(&(map[arc.from as usize], map[arc.to as usize])) == Some(&arc.rate);
                let commutes = |other: &Map| (0..map.len()).all(|n| map[other[n] as usize] == other[map[n] as usize]);
                let times = dims[at] / stride;
                let returns = |n: u32| (0..times).fold(n, |n, _| map[n as usize]) == n;
                if graph.arcs().iter().all(keeps) && found.iter().all(commutes) && (0..graph.nodes()).all(returns) {
                    strides[at] = stride;
                    found.push(map);
                    break;
                }
            }
        }
        Self::of(graph, dims, strides, &found)
    }

    /// Builds the symmetry. `maps` holds, for each coordinate that has shifts, the shift by one stride.
    fn of(graph: &Graph, dims: &[u32], strides: Vec<u32>, maps: &[Map]) -> Self {
        let (classes, sizes) = classes(graph, maps);
        let times: Vec<u32> = dims.iter().zip(&strides).map(|(dim, stride)| dim / stride).collect();
        let shifts: u32 = times.iter().product();
        let stay = sizes.into_iter().map(|size| shifts / size).collect();
        let mut relays: Vec<u32> = (graph.ranks()..graph.nodes()).collect();
        let moving: Vec<u32> = times.iter().copied().filter(|&times| times > 1).collect();
        // The last coordinate varies fastest, so its shifts are innermost.
        for (map, &times) in maps.iter().zip(&moving).rev() {
            let mut all = Vec::with_capacity(relays.len() * times as usize);
            for _ in 0..times {
                all.extend_from_slice(&relays);
                relays.iter_mut().for_each(|relay| *relay = map[*relay as usize]);
            }
            relays = all;
        }
        Self { ranks: graph.ranks(), dims: dims.to_vec(), strides, relays, classes, stay }
    }

    pub fn shifts(&self) -> u32 {
        self.dims.iter().zip(&self.strides).map(|(dim, stride)| dim / stride).product()
    }

    /// Returns the lowest rank of each set of ranks that shifts map to each other, in order.
    pub fn representatives(&self) -> Vec<u32> {
        (0..self.ranks).filter(|&rank| self.home(rank).1 == 0).collect()
    }

    /// Returns the representative of a rank, and the index of the shift from the representative to it.
    pub fn home(&self, rank: u32) -> (u32, u32) {
        let (mut left, mut home, mut shift, mut unit, mut turn) = (rank, 0, 0, 1, 1);
        for (&dim, &stride) in self.dims.iter().zip(&self.strides).rev() {
            let here = left % dim;
            left /= dim;
            home += unit * (here % stride);
            shift += turn * (here / stride);
            unit *= dim;
            turn *= dim / stride;
        }
        (home, shift)
    }

    /// Returns the image of a node under a shift.
    pub fn moved(&self, node: u32, shift: u32) -> u32 {
        if let Some(relay) = node.checked_sub(self.ranks) {
            let relays = self.relays.len() / self.shifts() as usize;
            return self.relays[shift as usize * relays + relay as usize];
        }
        let (mut left, mut by, mut moved, mut unit) = (node, shift, 0, 1);
        for (&dim, &stride) in self.dims.iter().zip(&self.strides).rev() {
            let times = dim / stride;
            moved += unit * ((left % dim + by % times * stride) % dim);
            left /= dim;
            by /= times;
            unit *= dim;
        }
        moved
    }

    pub fn class(&self, arc: u32) -> u32 {
        self.classes[arc as usize]
    }

    pub fn classes(&self) -> usize {
        self.stay.len()
    }

    /// Returns for each class the rate of an arc divided by the number of times that the images of a tree use the arc,
    /// if the tree has one arc of the class.
    pub(crate) fn rates(&self, graph: &Graph) -> Vec<f64> {
        let mut rates = vec![0.0; self.classes()];
        for (&class, arc) in self.classes.iter().zip(graph.arcs()) {
            rates[class as usize] = arc.rate as f64 / f64::from(self.stay[class as usize]);
        }
        rates
    }

    /// Returns for each class the largest of the given values of its arcs.
    pub(crate) fn largest(&self, of_arcs: &[f64]) -> Vec<f64> {
        let mut largest = vec![0.0; self.classes()];
        for (&class, &value) in self.classes.iter().zip(of_arcs) {
            largest[class as usize] = value.max(largest[class as usize]);
        }
        largest
    }
}

/// Returns the rank that is `by` steps farther along coordinate `at`, modulo its extent.
fn shifted(rank: u32, dims: &[u32], at: usize, by: u32) -> u32 {
    let unit: u32 = dims[at + 1..].iter().product();
    let here = rank / unit % dims[at];
    rank - here * unit + (here + by) % dims[at] * unit
}

/// An adjacent node: true if the arc leads to that node, the node, and the rate.
type Neighbor = (bool, u32, u64);

fn neighbors(graph: &Graph) -> Vec<Vec<Neighbor>> {
    let mut of = vec![Vec::new(); graph.nodes() as usize];
    for arc in graph.arcs() {
        of[arc.from as usize].push((true, arc.to, arc.rate));
        of[arc.to as usize].push((false, arc.from, arc.rate));
    }
    of
}

/// Extends a map of ranks to all nodes. A relay is mapped to a relay whose neighbors are the images of its own
/// neighbors; relays with equal neighbors are mapped in the order of their indices. Returns `None` if a relay has no
/// such image. The caller checks that the map preserves arcs.
fn followed(neighbors: &[Vec<Neighbor>], mut map: Map) -> Option<Map> {
    const OPEN: u32 = u32::MAX;
    let nodes = neighbors.len();
    // True for images of nodes.
    let mut taken = vec![false; nodes];
    map.iter().for_each(|&image| taken[image as usize] = true);
    map.resize(nodes, OPEN);
    let mut open: Vec<usize> = (0..nodes).filter(|&node| map[node] == OPEN).collect();
    while !open.is_empty() {
        poll();
        // Groups the relays that are not images yet by their neighbors, then maps each open relay to one whose
        // neighbors are the images of its own neighbors.
        let mut images: FxHashMap<Vec<Neighbor>, Vec<usize>> = FxHashMap::default();
        for node in (0..nodes).filter(|&node| !taken[node]).rev() {
            let mut key: Vec<Neighbor> =
                neighbors[node].iter().filter(|(_, n, _)| taken[*n as usize]).copied().collect();
            if !key.is_empty() {
                key.sort_unstable();
                images.entry(key).or_default().push(node);
            }
        }
        let (mut found, mut left) = (Vec::new(), Vec::new());
        for node in open {
            let known = neighbors[node].iter().filter(|(_, n, _)| map[*n as usize] != OPEN);
            let mut key: Vec<Neighbor> = known.map(|&(to, n, rate)| (to, map[n as usize], rate)).collect();
            if key.is_empty() {
                left.push(node);
                continue;
            }
            key.sort_unstable();
            found.push((node, images.get_mut(&key)?.pop()?));
        }
        if found.is_empty() {
            return None;
        }
        for (node, image) in found {
            map[node] = narrow(image);
            taken[image] = true;
        }
        open = left;
    }
    Some(map)
}

/// Returns the class of each arc under maps that map arcs to arcs, and the number of arcs of each class.
fn classes(graph: &Graph, maps: &[Map]) -> (Vec<u32>, Vec<u32>) {
    const OPEN: u32 = u32::MAX;
    let known: FxHashMap<(u32, u32), u32> = (0..).zip(graph.arcs()).map(|(at, arc)| ((arc.from, arc.to), at)).collect();
    let (mut classes, mut sizes) = (vec![OPEN; graph.arcs().len()], Vec::new());
    for first in 0..narrow::<u32>(classes.len()) {
        if classes[first as usize] != OPEN {
            continue;
        }
        let class = narrow(sizes.len());
        classes[first as usize] = class;
        let (mut of, mut k) = (vec![first], 0);
        while let Some(&at) = of.get(k) {
            poll();
            k += 1;
            let arc = graph.arcs()[at as usize];
            for map in maps {
                let image = known[&(map[arc.from as usize], map[arc.to as usize])];
                if classes[image as usize] == OPEN {
                    classes[image as usize] = class;
                    of.push(image);
                }
            }
        }
        sizes.push(narrow(of.len()));
    }
    (classes, sizes)
}
