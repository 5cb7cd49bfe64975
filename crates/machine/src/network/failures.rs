//! Failed links and nodes: the remaining plane, and its routing.
//!
//! A failure is `A-B`, all cables between two nodes, `A-B:N`, N of these cables, or `N`, a node with all of its cables.
//! Nodes have their numbers in the complete plane: accelerators first, then switches. A failure applies to every plane;
//! a whole plane fails by [`super::planes`].
//!
//! The routing rules of regular families do not handle failures, so the remaining plane is routed as a graph. Packets
//! take all shortest paths, or the fastest paths if the complete topology is a graph with that rule. If such paths need
//! more virtual channels than can be simulated, packets go up and down a tree. The remaining accelerators are numbered
//! without gaps, in order.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};

use unisono_base::{interrupt::poll, narrow};

use super::{
    Plane, PlaneBuilder, Speed, Topology,
    catalog::{Graph, Way},
    routing::MOST_SIMULATED_CHANNELS,
};

/// A failed node, or failed cables between two nodes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Failure {
    /// The two nodes, the lower first, and the number of failed cables between them; `None` means all.
    Cables([u32; 2], Option<u32>),
    Node(u32),
}

impl FromStr for Failure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| -> Option<u32> { text.parse().ok().filter(|_| !text.starts_with('+')) };
        let found = match text.split_once('-') {
            None => number(text).map(Failure::Node),
            Some((a, rest)) => {
                let (b, count) = rest.split_once(':').map_or((rest, None), |(b, count)| (b, Some(count)));
                let count = count.map_or(Some(None), |count| number(count).filter(|&n| n > 0).map(Some));
                let ends = number(a).zip(number(b)).filter(|(a, b)| a != b);
                ends.zip(count).map(|((a, b), count)| Failure::Cables([a.min(b), a.max(b)], count))
            }
        };
        found.ok_or_else(|| {
            "accepted are A-B for all cables between two nodes, A-B:N for N of them, and N for a node".to_owned()
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Cables([a, b], None) => write!(f, "{a}-{b}"),
            Self::Cables([a, b], Some(count)) => write!(f, "{a}-{b}:{count}"),
            Self::Node(node) => write!(f, "{node}"),
        }
    }
}

const MOST_LISTED: usize = 16;

/// Returns a topology without its failed parts as a graph.
///
/// # Errors
/// Returns a sentence if a link or a node does not exist, or if accelerators are cut off.
pub fn degraded(whole: &dyn Topology, failures: &[Failure], own: Speed) -> Result<Graph, String> {
    let plane = whole.plane().map_err(|e| e.to_string())?;
    let left = Left::new(&plane, failures, whole.stated_names())?;
    let reached = left.connected(failures)?;
    let (plane, new) = left.plane(&reached, own)?;
    let way = match whole.tree_root() {
        Some(root) => Way::UpDown(new[root as usize]),
        None if whole.lengths().is_some() => Way::Fastest,
        None => Way::Shortest,
    };
    let mut graph = Graph::new(plane, own, way)?;
    if graph.longest() > u32::from(MOST_SIMULATED_CHANNELS) {
        graph = graph.routed(Way::UpDown(None));
    }
    let kept = (0..whole.accelerators()).filter(|&node| !left.failed[node as usize]).collect();
    Ok(graph.left_of(whole, kept, new))
}

/// Returns whether all remaining accelerators of a plane stay connected; also false if a failure names a node or cable
/// that does not exist.
pub(super) fn leaves_all(plane: &Plane, failures: &[Failure]) -> bool {
    Left::new(plane, failures, None).and_then(|left| left.connected(failures)).is_ok()
}

/// A plane and its failed nodes and links.
struct Left<'a> {
    plane: &'a Plane,
    /// The names of nodes in messages, if the machine states them.
    names: Option<&'a [String]>,
    failed: Vec<bool>,
    gone: Vec<bool>,
}

impl<'a> Left<'a> {
    fn new(plane: &'a Plane, failures: &[Failure], names: Option<&'a [String]>) -> Result<Self, String> {
        let last = plane.nodes() - 1;
        let check = |failure: &Failure, node: u32| {
            if node > last {
                return Err(format!("the failure {failure} names node {node}; the nodes are 0 to {last}"));
            }
            Ok(())
        };
        let (failed, gone) = (vec![false; plane.nodes() as usize], vec![false; plane.links().len()]);
        let mut left = Self { plane, names, failed, gone };
        // If several failures name the same pair of nodes, their numbers of cables add up; a failure of all cables of
        // the pair includes all of them.
        let mut cables: BTreeMap<[u32; 2], Option<u64>> = BTreeMap::new();
        for failure in failures {
            match *failure {
                Failure::Node(node) => {
                    check(failure, node)?;
                    left.failed[node as usize] = true;
                }
                Failure::Cables(ends, count) => {
                    ends.iter().try_for_each(|&node| check(failure, node))?;
                    let known = cables.entry(ends).or_insert(Some(0));
                    *known = known.zip(count).map(|(known, count)| known + u64::from(count));
                }
            }
        }
        for ([a, b], count) in cables {
            let between = plane.leaving(a).filter(|&id| plane.link(id).to == b);
            let found = between.clone().count() as u64;
            if found == 0 || count.is_some_and(|count| count > found) {
                let name = |node: u32| match names {
                    Some(names) => names[node as usize].clone(),
                    None if node < plane.accelerators() => format!("accelerator {node}"),
                    None => format!("switch {node}"),
                };
                let between = format!("{} and {}", name(a), name(b));
                return Err(match (found, count) {
                    (0, _) => format!("no cable joins {between}"),
                    (1, _) => format!("the failure of several cables between {between} was named, and there is 1"),
                    _ => format!("{} cables between {between} failed, and there are {found}", count.unwrap_or(found)),
                });
            }
            for id in between.take(narrow(count.unwrap_or(found))) {
                left.gone[id as usize] = true;
                left.gone[plane.link(id).back as usize] = true;
            }
        }
        for (id, link) in plane.links().iter().enumerate() {
            left.gone[id] |= left.failed[link.from as usize] || left.failed[link.to as usize];
        }
        Ok(left)
    }

    /// Returns for each node whether an accelerator reaches it.
    ///
    /// # Errors
    /// Returns an error if all accelerators failed, or some are not connected with the largest island.
    fn connected(&self, failures: &[Failure]) -> Result<Vec<bool>, String> {
        let plane = self.plane;
        let mut island = vec![None; plane.nodes() as usize];
        let mut islands: Vec<Vec<u32>> = Vec::new();
        for first in (0..plane.accelerators()).filter(|&node| !self.failed[node as usize]) {
            if island[first as usize].is_some() {
                continue;
            }
            let number = islands.len();
            let (mut open, mut members) = (vec![first], Vec::new());
            island[first as usize] = Some(number);
            while let Some(node) = open.pop() {
                poll();
                if node < plane.accelerators() {
                    members.push(node);
                }
                for id in plane.leaving(node).filter(|&id| !self.gone[id as usize]) {
                    let next = plane.link(id).to;
                    if island[next as usize].is_none() {
                        island[next as usize] = Some(number);
                        open.push(next);
                    }
                }
            }
            islands.push(members);
        }
        // The island that remains is the largest one; of equally large islands, the first.
        let Some(most) = islands.iter().map(Vec::len).max() else {
            return Err("all accelerators failed".to_owned());
        };
        let main = islands.iter().position(|members| members.len() == most);
        let cut: BTreeSet<u32> =
            islands.iter().enumerate().filter(|(at, _)| Some(*at) != main).flat_map(|(_, m)| m).copied().collect();
        if cut.is_empty() {
            return Ok(island.into_iter().map(|number| number.is_some()).collect());
        }
        let (is, them) = if cut.len() == 1 { (" is", "it") } else { ("s are", "them") };
        Err(format!(
            "without what failed ({}) the accelerator{is} cut off: {}; fail {them} too to plan for the others",
            listed(failures.iter().map(|failure| self.named(failure))),
            listed(cut.iter().map(|&node| self.named(&Failure::Node(node))))
        ))
    }

    /// Returns a failure as text, with the names of nodes if there are any.
    fn named(&self, failure: &Failure) -> String {
        let Some(names) = self.names else { return failure.to_string() };
        let name = |node: u32| &names[node as usize];
        match *failure {
            Failure::Node(node) => name(node).clone(),
            Failure::Cables([a, b], None) => format!("{} to {}", name(a), name(b)),
            Failure::Cables([a, b], Some(count)) => format!("{} to {}:{count}", name(a), name(b)),
        }
    }

    /// Returns the remaining plane, and for each node its new number, or `None` if it is omitted.
    fn plane(&self, reached: &[bool], own: Speed) -> Result<(Plane, Vec<Option<u32>>), String> {
        let plane = self.plane;
        let mut next = 0_u32;
        let mut accelerators = 0;
        let mut new = Vec::with_capacity(plane.nodes() as usize);
        for node in 0..plane.nodes() {
            // A switch that no accelerator reaches is omitted, because no packet needs a path to it.
            let here = reached[node as usize];
            new.push(here.then_some(next));
            next += u32::from(here);
            if node + 1 == plane.accelerators() {
                accelerators = next;
            }
        }
        let cables = self.gone.iter().filter(|&&gone| !gone).count() as u64 / 2;
        let mut builder = PlaneBuilder::new(accelerators, next - accelerators, cables).map_err(|e| e.to_string())?;
        for (id, link) in plane.links().iter().enumerate() {
            let ends = new[link.from as usize].zip(new[link.to as usize]);
            if let Some((a, b)) = ends.filter(|_| !self.gone[id] && link.back as usize > id) {
                let speed = match plane.speeds()[usize::from(link.speed)] {
                    Some(speed) if speed != own => builder.speed(speed),
                    _ => Some(0),
                };
                builder.cable_at(a, b, link.cable, speed.expect("the speeds of a plane"));
            }
        }
        Ok((builder.finish().map_err(|e| e.to_string())?, new))
    }
}

fn listed<T: fmt::Display>(things: impl IntoIterator<Item = T>) -> String {
    let all: Vec<String> = things.into_iter().map(|thing| thing.to_string()).collect();
    match all.len() {
        0..=MOST_LISTED => all.join(", "),
        n => format!("{} and {} more", all[..MOST_LISTED].join(", "), n - MOST_LISTED),
    }
}
