//! Properties that are computed from planes alone.

use std::collections::{HashMap, HashSet, VecDeque};

use unisono_base::mix;
use unisono_machine::network::{
    Cable, FAMILIES, Header, Hop, Plane, Routing, Speed, Topology,
    cut::{self, Cut},
    deadlock,
};

/// The speed of links that state no speed of their own.
pub const OWN: Speed = Speed { gbps: 400.0, latency_ns: 40.0 };

pub fn topology(text: &str) -> Box<dyn Topology> {
    read(text).unwrap_or_else(|e| panic!("{e}"))
}

pub fn read(text: &str) -> Result<Box<dyn Topology>, String> {
    let mut table: toml::Table = text.parse().unwrap();
    let name = table.remove("name").unwrap();
    let family = FAMILIES.iter().find(|f| Some(f.name) == name.as_str()).unwrap();
    (family.read)(&table, "test", OWN).map_err(|e| e.to_string())
}

/// Returns the number of cables from every node to `to`.
pub fn distances(plane: &Plane, to: u32) -> Vec<u32> {
    let mut distance = vec![u32::MAX; plane.nodes() as usize];
    distance[to as usize] = 0;
    let mut open = VecDeque::from([to]);
    while let Some(node) = open.pop_front() {
        for link in plane.leaving(node) {
            let next = plane.link(link).to;
            if distance[next as usize] == u32::MAX {
                distance[next as usize] = distance[node as usize] + 1;
                open.push_back(next);
            }
        }
    }
    distance
}

pub fn diameter(plane: &Plane) -> u32 {
    let farthest = |to| distances(plane, to)[..plane.accelerators() as usize].iter().copied().max().unwrap();
    (0..plane.accelerators()).map(farthest).max().unwrap()
}

pub fn cables(plane: &Plane, kind: Cable) -> u64 {
    plane.links().iter().filter(|link| link.cable == kind).count() as u64 / 2
}

/// Asserts that the two directions of every cable refer to each other, and that every link leaves the node of its port.
pub fn is_sound(plane: &Plane) {
    for node in 0..plane.nodes() {
        for id in plane.leaving(node) {
            let link = plane.link(id);
            let back = plane.link(link.back);
            assert_eq!((link.from, back.back), (node, id));
            assert_eq!((back.from, back.to, back.cable, back.speed), (link.to, link.from, link.cable, link.speed));
        }
    }
}

/// Returns the lengths of the shortest paths from every node to `to`, with the given lengths of links.
fn lengths_to(plane: &Plane, lengths: &[u64], to: u32) -> Vec<u64> {
    let mut found = vec![u64::MAX; plane.nodes() as usize];
    found[to as usize] = 0;
    let mut is_settled = false;
    while !is_settled {
        is_settled = true;
        for (link, length) in plane.links().iter().zip(lengths) {
            let by = found[link.to as usize].saturating_add(*length);
            if by < found[link.from as usize] {
                found[link.from as usize] = by;
                is_settled = false;
            }
        }
    }
    found
}

/// Asserts that every hop of a packet brings it nearer to its destination by the length of the hop's link, by default
/// 1.
pub fn is_minimal(plane: &Plane, routing: &dyn Routing, lengths: Option<&[u64]>) {
    let cables = vec![1; plane.links().len()];
    let lengths = lengths.unwrap_or(&cables);
    let mut hops = Vec::new();
    for to in 0..plane.accelerators() {
        let distance = lengths_to(plane, lengths, to);
        let (mut seen, mut open) = (HashSet::new(), Vec::new());
        for from in (0..plane.accelerators()).filter(|&from| from != to) {
            open.extend(routing.choices(from, to).iter().map(|way| (from, 0, *way)));
        }
        while let Some((at, vc, way)) = open.pop() {
            if at == to || !seen.insert((at, vc, way)) {
                continue;
            }
            hops.clear();
            routing.hops(at, Header { to, vc, way }, &mut hops);
            if let Some((first, count)) = routing.run(at, Header { to, vc, way }) {
                let run: Vec<Hop> = (first.link..first.link + count).map(|link| Hop { link, ..first }).collect();
                assert_eq!(run, hops, "the run from {at} to {to}");
            }
            for hop in &hops {
                let next = plane.link(hop.link).to;
                let by = distance[next as usize] + lengths[hop.link as usize];
                assert_eq!(by, distance[at as usize], "from {at} by {next} to {to}, on {vc}");
                open.push((next, hop.vc, way));
            }
        }
    }
}

/// Asserts all properties of a topology that is routed on shortest paths.
pub fn holds(text: &str) {
    let topology = topology(text);
    is_minimal(&topology.plane().unwrap(), &*topology.routing(), topology.lengths().as_deref());
    is_connected_as_stated(text);
}

/// Asserts all properties of any topology.
pub fn is_connected_as_stated(text: &str) {
    let topology = topology(text);
    let plane = sound_plane(&*topology, text);
    assert_eq!(diameter(&plane), topology.diameter(), "diameter of {text}");
    deadlock::check(&plane, &*topology.routing()).unwrap_or_else(|e| panic!("{text}: {e}"));
    is_layered_as_stated(&plane, &*topology.routing(), text);
}

/// Asserts that no two paths of a message reach a node after different numbers of links, if the routing is layered.
fn is_layered_as_stated(plane: &Plane, routing: &dyn Routing, text: &str) {
    const PAIRS: u64 = 200;
    let draw = |number: u64| (mix(number) % u64::from(plane.accelerators())) as u32;
    let mut hops = Vec::new();
    let pairs = (0..PAIRS).map(|k| (draw(2 * k), draw(2 * k + 1)));
    for (from, to) in pairs.filter(|(from, to)| routing.is_layered() && from != to) {
        for &way in &*routing.choices(from, to) {
            let (mut links_to, mut open, mut links) = (HashMap::new(), HashSet::from([(from, 0)]), 0);
            while !open.is_empty() {
                links += 1;
                let mut next = HashSet::new();
                for (at, vc) in open {
                    hops.clear();
                    routing.hops(at, Header { to, vc, way }, &mut hops);
                    next.extend(hops.iter().map(|hop| (plane.link(hop.link).to, hop.vc)));
                }
                for (node, _) in &next {
                    assert_eq!(*links_to.entry(*node).or_insert(links), links, "{text}: {from} to {to} by {node}");
                }
                open = next.into_iter().filter(|(node, _)| *node != to).collect();
            }
        }
    }
}

/// Asserts that the bill counts the cables of the plane.
pub fn is_billed_as_wired(text: &str) {
    let topology = topology(text);
    let (plane, bill) = (topology.plane().unwrap(), topology.bill());
    assert_eq!((bill.dac, bill.aoc), (cables(&plane, Cable::Dac), cables(&plane, Cable::Aoc)), "{text}");
    let ports = (plane.accelerators()..plane.nodes()).map(|node| plane.leaving(node).len() as u32);
    assert!(ports.max().unwrap_or(0) <= bill.switch_ports, "{text}");
}

pub fn sound_plane(topology: &dyn Topology, text: &str) -> Plane {
    let plane = topology.plane().unwrap();
    is_sound(&plane);
    assert_eq!(plane.accelerators(), topology.accelerators(), "accelerators of {text}");
    assert_eq!(topology.extents().iter().product::<u32>(), plane.accelerators(), "extents of {text}");
    plane
}

/// Asserts that a family's cut is at least the least cut of the plane into parts of these sizes, and returns both.
pub fn is_cut_as_stated(text: &str) -> (Cut, f64) {
    let topology = topology(text);
    let (stated, plane) = (topology.halves().unwrap(), topology.plane().unwrap());
    let least = cut::least(&plane, OWN, stated.inside).unwrap();
    assert!(stated.rate > least * (1.0 - 1e-12), "{text}: {stated:?}, the least is {least}");
    (stated, least)
}

/// Asserts that the stated cut is the least cut into halves.
pub fn is_bisected_as_stated(text: &str) {
    let (stated, least) = is_cut_as_stated(text);
    assert!(stated.is_halves(topology(text).accelerators()), "{text}: {stated:?}");
    assert!((stated.rate / least - 1.0).abs() < 1e-12, "{text}: {stated:?}, the least is {least}");
}
