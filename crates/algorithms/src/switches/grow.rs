//! Grows one tree over all ranks. Paths lead from each rank's core to the root, and merge at switches that they share.

use unisono_base::narrow;
use unisono_collective::{Collective, Kind};
use unisono_lower::switches::{ENGINE, Embedding, NONE, Registers};
use unisono_machine::in_network::{LevelOf, MEMORY, Port};

use super::{Site, ways::Ways};

/// The shape of a tree: its paths between nodes and inside nodes.
pub trait Plan {
    /// Returns the dimension in which a node's path to the root continues, and the next node's coordinate in this
    /// dimension; `None` at the root's node.
    fn leave(&self, node: u32) -> Option<(usize, u32)>;

    /// Returns the paths from all switches of a node to its switch `to`.
    fn inside(&mut self, to: u32) -> &Ways;

    /// Returns the switch of the root's node at which all paths end.
    fn root(&self) -> Root;
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Root {
    At(u32),
    /// The switch at which the last of all vectors arrives earliest.
    Best,
}

/// The part of a vector that a tree reduces (first element and number of elements), and the identifier of the tree's
/// registers.
#[derive(Clone, Copy, Debug)]
pub struct TreeSlice {
    pub identifier: u8,
    pub first: u32,
    pub elements: u32,
}

/// Grows the tree and returns it as registers for the collective.
pub fn grow(site: &Site, c: &Collective, part: TreeSlice, plan: &mut dyn Plan) -> Embedding {
    let layout = &*site.layout;
    let locals = layout.locals();
    let mut arrivals = Arrivals::new(site);
    let mut registers = Vec::with_capacity(site.cores.len());
    for (node, leaving) in walk(site, plan) {
        let ends: Vec<End> = arrivals.of(site, node);
        let to = match leaving {
            Some((dim, coordinate)) => layout.home(dim, coordinate).0,
            None => match plan.root() {
                Root::At(switch) => layout.local_of(switch),
                Root::Best => best_root(locals, &ends, plan),
            },
        };
        let ways = plan.inside(to);
        let mut below = vec![0_u64; locals as usize];
        let mut here = vec![false; locals as usize];
        let mut latest = 0.0_f64;
        for end in &ends {
            below[end.switch as usize] |= 1 << end.port;
            latest = latest.max(end.ready_ns + ways.latency_ns[end.switch as usize]);
            let mut at = end.switch;
            // The path ends at a switch that an earlier path has added to the tree.
            while !std::mem::replace(&mut here[at as usize], true) {
                let Some((port, next)) = ways.next[at as usize] else { break };
                let back = layout.peer(at, port).map_or(MEMORY, |peer| peer.port);
                below[next as usize] |= 1 << back;
                at = next;
            }
        }
        here[to as usize] = true;
        for local in (0..locals).filter(|&l| here[l as usize]) {
            let up = match (ways.next[local as usize], leaving) {
                (Some((port, _)), _) => port,
                (None, Some((dim, coordinate))) => layout.home(dim, coordinate).1,
                (None, None) => NONE,
            };
            registers.push((node * locals + local, made(c, part.identifier, below[local as usize], up)));
        }
        if let Some((dim, coordinate)) = leaving {
            let there = layout.moved(node, dim, coordinate);
            let own = layout.coordinate(node, dim);
            let (switch, port) = layout.home(dim, own);
            let link = site.machine.latency_ns(LevelOf::Node { distance: own.abs_diff(coordinate) });
            arrivals.add(there, End { switch, port, ready_ns: latest + link });
        }
    }
    registers.sort_unstable_by_key(|&(switch, _)| switch);
    Embedding { identifier: part.identifier, first: part.first, elements: part.elements, registers }
}

/// Returns the nodes on the paths, each after all nodes whose paths lead through it, with the result of
/// [`Plan::leave`].
fn walk(site: &Site, plan: &dyn Plan) -> Vec<(u32, Option<(usize, u32)>)> {
    let layout = &*site.layout;
    let mut seen = vec![false; layout.nodes() as usize];
    let mut order = Vec::new();
    let mut depth = vec![0_u32; layout.nodes() as usize];
    for start in site.nodes() {
        let mut way = Vec::new();
        let mut at = start;
        while !std::mem::replace(&mut seen[at as usize], true) {
            way.push(at);
            match plan.leave(at) {
                Some((dim, coordinate)) => at = layout.moved(at, dim, coordinate),
                None => break,
            }
        }
        // The depth of `at` is known from an earlier path; or `at` is the root, which has depth 0 and is the last node
        // of this path.
        for &node in way.iter().rev() {
            depth[node as usize] =
                plan.leave(node).map_or(0, |(dim, coordinate)| depth[layout.moved(node, dim, coordinate) as usize] + 1);
            order.push(node);
        }
    }
    order.sort_by_key(|&node| (std::cmp::Reverse(depth[node as usize]), node));
    order.into_iter().map(|node| (node, plan.leave(node))).collect()
}

/// An input of a node's tree: a rank's vector, or a message from another node.
#[derive(Clone, Copy, Debug)]
struct End {
    switch: u32,
    port: Port,
    ready_ns: f64,
}

struct Arrivals {
    from_nodes: Vec<Vec<End>>,
    /// The index of the first rank of each node, then the number of ranks.
    first: Vec<u32>,
}

impl Arrivals {
    fn new(site: &Site) -> Self {
        let nodes = site.layout.nodes();
        let first = (0..=nodes)
            .map(|node| narrow::<u32>(site.cores.partition_point(|&core| site.layout.node_of(core) < node)))
            .collect();
        Self { from_nodes: vec![Vec::new(); nodes as usize], first }
    }

    fn add(&mut self, node: u32, end: End) {
        self.from_nodes[node as usize].push(end);
    }

    fn of(&mut self, site: &Site, node: u32) -> Vec<End> {
        let mut ends = std::mem::take(&mut self.from_nodes[node as usize]);
        let ranks = self.first[node as usize] as usize..self.first[node as usize + 1] as usize;
        let own = site.cores[ranks].iter().map(|&core| End {
            switch: site.layout.local_of(core),
            port: MEMORY,
            ready_ns: 0.0,
        });
        ends.extend(own);
        ends
    }
}

fn best_root(locals: u32, ends: &[End], plan: &mut dyn Plan) -> u32 {
    let latest =
        |ways: &Ways| ends.iter().map(|end| end.ready_ns + ways.latency_ns[end.switch as usize]).fold(0.0, f64::max);
    let mut best = (f64::INFINITY, 0);
    for local in 0..locals {
        let ns = latest(plan.inside(local));
        if ns < best.0 {
            best = (ns, local);
        }
    }
    best.1
}

/// Returns the registers of a switch of the tree. `below` is the set of ports that lead away from the root, which may
/// include the port of the memory.
fn made(c: &Collective, identifier: u8, below: u64, up: Port) -> Registers {
    let idle = Registers::idle(identifier);
    let top = up == NONE;
    let requests = Registers { request_inputs: below, request_output: up, operator: Some(c.operator), ..idle };
    match c.kind {
        Kind::Broadcast => {
            // The vector comes from the root's memory.
            let outputs = if top { below & !(1 << MEMORY) } else { below };
            Registers { response_input: if top { MEMORY } else { up }, response_outputs: outputs, ..idle }
        }
        Kind::Reduce if top => Registers { response_input: ENGINE, response_outputs: 1 << MEMORY, ..requests },
        Kind::Reduce => requests,
        _ => Registers { response_input: if top { ENGINE } else { up }, response_outputs: below, ..requests },
    }
}
