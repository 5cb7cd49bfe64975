//! Trees over the switches of a network: the schedule of an allreduce, a reduce or a broadcast.
//!
//! The vector is cut into parts, one for each tree ([`unisono_synthesis::SpanningTrees`]), and each part into chunks
//! that follow each other. A chunk goes up its tree: a node combines the elements of its children and, if the node is a
//! rank, its own elements. The result goes down from the root; in a reduce it goes to one rank only. An instruction
//! processes whole chunks, so a chunk takes the time of its bytes at every level, and many chunks approach the rate of
//! the links.
//!
//! Before a leaf posts the next chunk, it waits for the result of an earlier chunk. If it posted all chunks at once, it
//! would delay the messages of other trees that it forwards: by simulation, a collective on a HammingMesh takes 2.6
//! times as long.

use std::sync::Arc;

use unisono_base::{InstrId, NodeId, Span, narrow, rounded};
use unisono_collective::{Collective, Kind};
use unisono_lower::{Placed, Placement};
use unisono_schedule::{Builder, Operand};
use unisono_synthesis::{Fabric, Role, SpanningTree, SpanningTrees};

use crate::{AlgorithmError, Case, ranks::Blocks};

/// The division of the vector: the number of trees, and the number of chunks in the part of each tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cuts {
    pub trees: u32,
    pub chunks: u32,
}

/// Returns the roles of the nodes of a network in the trees of a collective. A switch can be a node of a tree if it
/// copies or reduces messages as the collective requires.
fn roles(c: &Collective, fabric: &Fabric) -> Vec<Role> {
    let (graph, computing) = (fabric.graph(), fabric.switches());
    let role = |node: u32| {
        if node < graph.ranks() {
            return Role::Rank;
        }
        let place = graph.place(node);
        if place < computing.accelerators() {
            return Role::Closed;
        }
        let joins = computing.class(place).is_some_and(|class| {
            (!c.kind.reduces() || class.reduces(c.operator.name(), c.dtype.name()))
                && (c.kind == Kind::Reduce || class.multicast)
        });
        if joins { Role::Joins } else { Role::Forwards }
    };
    (0..graph.nodes()).map(role).collect()
}

/// Returns `count` spanning trees for a collective.
///
/// # Errors
/// Returns an error if no switch has the functions that the collective requires, or if some rank cannot be reached.
pub(crate) fn trees(c: &Collective, fabric: &Fabric, count: u32) -> Result<Arc<SpanningTrees>, String> {
    let roles = roles(c, fabric);
    if !roles.contains(&Role::Joins) {
        let needed = match c.kind {
            Kind::Broadcast => "copies messages".to_owned(),
            Kind::Reduce => format!("reduces with {} over {}", c.operator, c.dtype),
            _ => format!("copies messages and reduces with {} over {}", c.operator, c.dtype),
        };
        return Err(format!("no switch between the ranks {needed}"));
    }
    let root = (c.kind == Kind::Broadcast).then_some(c.root);
    fabric.spanning(&roles, root, count).ok_or_else(|| "no tree of such switches over all ranks was found".to_owned())
}

/// Returns an upper bound of the instructions of the schedule that [`build`] makes.
pub(crate) fn instructions(c: &Collective, fabric: &Fabric, cuts: Cuts) -> u64 {
    let ways = if c.kind == Kind::Broadcast { 1 } else { 2 };
    u64::from(cuts.trees) * u64::from(cuts.chunks) * u64::from(fabric.graph().nodes()) * ways
}

/// Builds the schedule of a collective over spanning trees, with its placement.
///
/// # Errors
/// Returns an error if [`trees`] does, or if the tables cannot hold the schedule.
pub(crate) fn build(name: &'static str, case: &Case, fabric: &Fabric, cuts: Cuts) -> Result<Placed, AlgorithmError> {
    let c = &case.collective;
    let found =
        trees(c, fabric, cuts.trees).map_err(|reason| AlgorithmError::Unsupported { algorithm: name, reason })?;
    let graph = fabric.graph();
    let mut b = Builder::new(*c);
    let mut switches: Vec<u32> =
        found.trees.iter().flat_map(|tree| &tree.nodes).copied().filter(|&node| node >= c.ranks).collect();
    switches.sort_unstable();
    switches.dedup();
    let mut node_of: Vec<NodeId> = (0..graph.nodes()).map(NodeId).collect();
    for &switch in &switches {
        node_of[switch as usize] = b.switch();
    }
    let parts = Blocks::new(c.elements, cuts.trees);
    let mut trees: Vec<Emitter> =
        (0..).zip(&found.trees).map(|(at, tree)| Emitter::new(&mut b, c, tree, &node_of, at)).collect();
    let chunk_bytes = u64::from(parts.block(0).len.div_ceil(cuts.chunks)) * c.element_bytes();
    let windows: Vec<usize> =
        found.trees.iter().map(|tree| window(c.kind, tree, fabric, chunk_bytes, case.ranks().signal_ns)).collect();
    // The chunks of the trees alternate, so that all links of a rank have messages to send.
    for chunk in 0..cuts.chunks {
        for ((tree, &window), at) in trees.iter_mut().zip(&windows).zip(0..) {
            let part = parts.block(at);
            let span = Blocks::new(part.len, cuts.chunks).block(chunk);
            tree.chunk(&mut b, Span::new(part.start + span.start, span.len), window);
        }
    }
    let nodes = (0..c.ranks).chain(switches).map(|node| graph.place(node)).collect();
    Ok(Placed { schedule: b.finish()?, placement: Some(Placement::Nodes(nodes)) })
}

/// Returns the number of chunks of a tree that are under way at once: the chunks on its links up and down, the chunks
/// that arrive until a rank notices the first, and two more. With more chunks under way, a rank would delay the
/// messages of other trees that it forwards. If a rank requests and stores a sum, the sum also travels to that rank and
/// back.
fn window(kind: Kind, tree: &SpanningTree, fabric: &Fabric, chunk_bytes: u64, signal_ns: f64) -> usize {
    let is_stored = |&node: &u32| fabric.switches().is_stored(fabric.graph().place(node), 2, 2);
    let is_stored = kind == Kind::Allreduce && tree.nodes.iter().any(is_stored);
    let (depth, signals) = if is_stored { (tree.depth + 1, 2.0) } else { (tree.depth, 1.0) };
    let most_rate = fabric.graph().arcs().iter().map(|arc| arc.rate).max().unwrap_or(1);
    let latency_in_chunks = fabric.hop(chunk_bytes) * most_rate as f64;
    let bytes_until_known = signals * signal_ns * fabric.graph().bytes_per_ns() * most_rate as f64;
    let on_links = 2.0 * f64::from(depth) * (1.0 + latency_in_chunks);
    let chunks: u64 = rounded((on_links + bytes_until_known / chunk_bytes.max(1) as f64).ceil() + 2.0);
    narrow(chunks)
}

/// The lane in which leaves send, for all trees, in the order of the chunks.
const LEAVES: u32 = 0;

struct Emitter<'a> {
    c: &'a Collective,
    tree: &'a SpanningTree,
    /// The node of the schedule for each node of the tree.
    nodes: Vec<NodeId>,
    /// The indices in `nodes` of the children of each node.
    children: Vec<Vec<u32>>,
    /// The stream from each node to its parent, if chunks go up. `down` has the stream from the parent; in a reduce
    /// only on the path to the root of the collective.
    up: Vec<Option<Operand>>,
    down: Vec<Option<Operand>>,
    /// At a node with children, the lane of instructions for chunks that go up. Lane `lane + 1` is for chunks that go
    /// down.
    lane: u32,
    /// For each emitted chunk, the instructions at the leaves that receive its result.
    received: Vec<Vec<(usize, InstrId)>>,
}

impl<'a> Emitter<'a> {
    fn new(b: &mut Builder, c: &'a Collective, tree: &'a SpanningTree, node_of: &[NodeId], number: u32) -> Self {
        let goes_up = c.kind != Kind::Broadcast;
        let nodes: Vec<NodeId> = tree.nodes.iter().map(|&node| node_of[node as usize]).collect();
        let (mut up, mut down) = (vec![None; nodes.len()], vec![None; nodes.len()]);
        for at in 1..nodes.len() {
            let (above, node) = (nodes[tree.parents[at] as usize], nodes[at]);
            up[at] = goes_up.then(|| Operand::Stream(b.stream(node, &[above])));
            down[at] = (c.kind != Kind::Reduce).then(|| Operand::Stream(b.stream(above, &[node])));
        }
        // The result of a reduce goes down only along the path to the rank that gets it.
        let mut at = tree.nodes.iter().position(|&node| node == c.root).filter(|_| c.kind == Kind::Reduce).unwrap_or(0);
        while at > 0 {
            let above = tree.parents[at] as usize;
            down[at] = Some(Operand::Stream(b.stream(nodes[above], &[nodes[at]])));
            at = above;
        }
        Self {
            c,
            tree,
            nodes,
            children: tree.children(),
            up,
            down,
            lane: LEAVES + 1 + 2 * number,
            received: Vec::new(),
        }
    }

    fn is_rank(&self, at: usize) -> bool {
        self.tree.nodes[at] < self.c.ranks
    }

    /// Emits the instructions of one chunk: up the tree, at the root, and down the tree.
    fn chunk(&mut self, b: &mut Builder, span: Span, window: usize) {
        let mut sent = vec![None; self.nodes.len()];
        for at in (1..self.nodes.len()).rev() {
            if let Some(up) = self.up[at] {
                let lane = if self.children[at].is_empty() { LEAVES } else { self.lane };
                sent[at] = Some(b.combine(self.nodes[at], lane, span.len, &self.gathered(at, span), &[up]));
            }
        }
        let earlier = self.received.len().checked_sub(window).map(|chunk| &self.received[chunk]);
        for &(at, received) in earlier.into_iter().flatten() {
            if let Some(sent) = sent[at] {
                b.after(sent, received);
            }
        }
        let mut sinks = self.spread(0, span);
        if self.c.kind == Kind::Broadcast {
            // The root of a broadcast already has the result in its input, so it needs no output.
            sinks.retain(|sink| matches!(sink, Operand::Stream(_)));
        }
        if !sinks.is_empty() {
            b.combine(self.nodes[0], self.lane, span.len, &self.gathered(0, span), &sinks);
        }
        let mut received = Vec::new();
        for at in 1..self.nodes.len() {
            if let Some(down) = self.down[at] {
                let id = b.combine(self.nodes[at], self.lane + 1, span.len, &[down], &self.spread(at, span));
                if self.children[at].is_empty() {
                    received.push((at, id));
                }
            }
        }
        self.received.push(received);
    }

    /// Returns the operands of a node: its input, if it is a rank, and the streams from its children.
    fn gathered(&self, at: usize, span: Span) -> Vec<Operand> {
        let own = self.is_rank(at).then_some(Operand::In(span.start));
        own.into_iter().chain(self.children[at].iter().filter_map(|&child| self.up[child as usize])).collect()
    }

    /// Returns the sinks of a node: its output, if it is a rank that gets the result, and the streams to its children.
    fn spread(&self, at: usize, span: Span) -> Vec<Operand> {
        let gets = self.is_rank(at) && (self.c.kind != Kind::Reduce || self.tree.nodes[at] == self.c.root);
        let own = gets.then_some(Operand::Out(span.start));
        own.into_iter().chain(self.children[at].iter().filter_map(|&child| self.down[child as usize])).collect()
    }
}

/// Returns the numbers of trees that a plan considers, of 1, 2, 4, 8 and 16. The time of the busiest link must be more
/// than 2 % shorter than with the numbers considered before. Empty if there are no trees.
pub(crate) fn worthwhile(c: &Collective, fabric: &Fabric) -> Vec<u32> {
    const SHORTER: f64 = 0.98;
    let (mut counts, mut least) = (Vec::new(), f64::INFINITY);
    for count in [1, 2, 4, 8, 16] {
        let Ok(found) = trees(c, fabric, count) else { break };
        if found.time < least * SHORTER {
            least = found.time;
            counts.push(narrow(count));
        }
    }
    counts
}
