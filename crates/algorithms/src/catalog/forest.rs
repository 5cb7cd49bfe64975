//! Forest: every root's block travels along trees that are built for the links of the network.
//!
//! Together the trees have the best throughput that the network allows, or nearly so ([`unisono_synthesis`]). An
//! allgather spreads the block of every rank, a broadcast that of one; reduce-scatter and reduce run the trees
//! backwards. An allreduce runs both, either one after the other for each block, or at once with chunks of the whole
//! vector through one rank, which is best if few links limit both directions. A block is cut into `chunks`, each on a
//! tree of its own; a rank passes a chunk on when it has received all of it.
//!
//! Sums are added when they arrive, so each tree has an order of its own. In trees of depth 1 a root receives all
//! inputs, and can add them in one order, which is then the order of every element.
//!
//! T = end of the timetable of all messages ([`unisono_synthesis::Fabric::messages`]). Source: packings of
//! arborescences, Edmonds (1973); ForestColl, Zhao et al., arXiv 2402.06787. Messages take the routes of the network,
//! so the optimum of ForestColl, which chooses routes, is a bound.

use std::sync::Arc;

use unisono_base::{InstrId, NodeId, Span};
use unisono_collective::Kind;
use unisono_lower::Trees;
use unisono_schedule::{Builder, Operand};
use unisono_synthesis::{self as synthesis, Fabric, Message, NoForest, Roots, Runs};

use crate::{
    AlgorithmError, Case, Info, Means, Param, Params,
    ranks::{
        Blocks, Lanes, RankAlgorithm, Sums,
        shapes::{self, Given, Pairs, Shape, blocks, message_bytes, quickest, roots, shapes},
    },
};

pub struct Forest;

const INFO: Info = Info {
    name: "forest",
    summary: "trees made for the links of the network, with the best throughput it allows at a given depth",
    reference: "Edmonds, 1973; Zhao et al.: ForestColl, arXiv 2402.06787",
    collectives: &[Kind::Allgather, Kind::Allreduce, Kind::Broadcast, Kind::Reduce, Kind::ReduceScatter],
    params: &[
        Param {
            name: "depth",
            values: "the most messages from a root to a rank, from the least possible to that of a time near the cut (default: that of \
                     the forest that ends first)",
        },
        Param {
            name: "chunks",
            values: "parts of a block, each on a tree of its own, 1 to 1024 (default: of 1, 4, 16, ... that of the forest that ends first)",
        },
        Param {
            name: "through",
            values: "of an allreduce: the rank at which chunks of the whole vector are summed and from which they spread, up and down at \
                     once, or `none` where every rank sums up a block (default: none where depth or chunks are given, else that of the \
                     forest that ends first)",
        },
        Param {
            name: "order",
            values: "of a sum: that of `arrival`, or at depth 1, where every rank sends to every root, one for all elements: that of \
                     `ranks`, or `tree`, that of the bits `ranks-count` (default: arrival)",
        },
        Param {
            name: "pairs",
            values: "`all`: messages go between any two ranks that a way over switches joins, or `near`: not where a way over other ranks has \
                     as few cables (default: all where depth and chunks are given, else that of the forest that ends first)",
        },
    ],
    needs: &[Means::Links],
    ..Info::AMONG_RANKS
};

const MOST_CHUNKS: u32 = 1024;
fn fabric<'a>(case: &Case<'a>) -> Result<&'a Fabric, AlgorithmError> {
    case.fabric().ok_or_else(|| unsupported("it needs the links of a network".to_owned()))
}

fn unsupported(reason: String) -> AlgorithmError {
    AlgorithmError::Unsupported { algorithm: INFO.name, reason }
}

/// A forest with its shape, and the network restricted to the messages of the shape's pairs.
struct Chosen<'a> {
    shape: Shape,
    fabric: &'a Fabric,
    forest: Arc<synthesis::Forest>,
}

impl<'a> Chosen<'a> {
    /// Returns the forest of the parameters. Parameters that are not given are chosen so that the forest is predicted
    /// to end first. A block has no more chunks than elements.
    fn new(case: &Case<'a>, params: &Params) -> Result<Self, AlgorithmError> {
        let fabric = fabric(case)?;
        let refused = |reason: NoForest| unsupported(reason.to_string());
        let (known, pairs) = (known_roots(case, params)?, known_pairs(params)?);
        let on = pairs.unwrap_or(Pairs::All).of(fabric);
        let on = on.ok_or_else(|| unsupported("all pairs of ranks are near here, and pairs is near".to_owned()))?;
        let roots = known.unwrap_or_else(|| roots(case));
        let least = on.least_depth(roots).map_err(refused)?;
        let depth = params.number(INFO.name, "depth", 1..=case.collective.ranks)?;
        let of_arrival = order(params)? == "arrival";
        let depth = if of_arrival { depth } else { depth.or(Some(1)) };
        if let Some(depth) = depth.filter(|&depth| depth > 1 && !of_arrival) {
            return Err(unsupported(format!("all elements are added in one order at depth 1, and depth is {depth}")));
        }
        if let Some(depth) = depth.filter(|&depth| depth < least) {
            return Err(unsupported(format!("a rank is {least} messages away from a root, and depth is {depth}")));
        }
        let most = blocks(case, roots).block(0).len.max(1);
        let chunks = params.number(INFO.name, "chunks", 1..=MOST_CHUNKS)?.map(|chunks| chunks.min(most));
        let mut listed = shapes(case, fabric, Given { roots: known, depth, chunks, pairs }).map_err(refused)?;
        if !of_arrival {
            listed.retain(|shape| has_orders(*shape));
        }
        if listed.is_empty() {
            return Err(unsupported("all elements are added in one order where each rank sums up a block".to_owned()));
        }
        let shape = quickest(case, fabric, &listed).map_err(refused)?;
        let Shape { roots, depth, chunks, pairs } = shape;
        let fabric = pairs.of(fabric).unwrap_or(fabric);
        let forest = fabric.forest(roots, Some(depth), chunks, message_bytes(case, roots, chunks)).map_err(refused)?;
        Ok(Self { shape, fabric, forest })
    }
}

/// Adds the parameters of a shape to others.
fn named(Shape { roots, depth, chunks, pairs }: Shape, mut params: Params) -> Params {
    if let Roots::Through(root) = roots {
        params = params.with("through", root);
    }
    if pairs == Pairs::Near {
        params = params.with("pairs", "near");
    }
    params.with("depth", depth).with("chunks", chunks)
}

/// Returns whether roots that have a part of the vector each receive the inputs of all ranks.
fn has_orders(shape: Shape) -> bool {
    shape.depth == 1 && !matches!(shape.roots, Roots::Through(_))
}

/// Returns the order of additions that the parameters name.
fn order(params: &Params) -> Result<&'static str, AlgorithmError> {
    params.choice(INFO.name, "order", &["arrival", "ranks", "tree"])
}

/// Returns the pairs that the parameters name, or `None` if they leave the pairs open.
fn known_pairs(params: &Params) -> Result<Option<Pairs>, AlgorithmError> {
    if params.choice(INFO.name, "pairs", &["all", "near"])? == "near" {
        return Ok(Some(Pairs::Near));
    }
    let is_known = params.get("pairs").is_some() || ["depth", "chunks"].iter().all(|name| params.get(name).is_some());
    Ok(is_known.then_some(Pairs::All))
}

/// Returns the roots that the parameters name, or `None` if they leave the roots open.
fn known_roots(case: &Case, params: &Params) -> Result<Option<Roots>, AlgorithmError> {
    let c = &case.collective;
    if params.get("through").is_none_or(|value| value == "none") {
        let is_open = ["through", "depth", "chunks"].iter().all(|name| params.get(name).is_none());
        return Ok((!is_open).then(|| roots(case)));
    }
    let rank = params.number(INFO.name, "through", 0..=c.ranks - 1)?.expect("the parameter is given");
    if c.kind != Kind::Allreduce {
        return Err(unsupported(format!("through is of an allreduce, and this is {}", c.kind)));
    }
    Ok(Some(Roots::Through(rank)))
}

/// Emits the messages of a forest as instructions, in the order of the timetable.
struct Messages<'a> {
    case: &'a Case<'a>,
    roots: Roots,
    /// The sums of roots to which all ranks send; none in the order of arrival.
    sums: Option<Sums>,
    /// The scratch elements of each rank's sums; `longest` is the number of elements of a place in it.
    scratch: Vec<u32>,
    longest: u32,
    forest: &'a synthesis::Forest,
    lanes: Lanes,
}

impl Messages<'_> {
    /// Returns the elements of a chunk in the vector that its root owns, and their start in the vector of all blocks.
    fn span(&self, root: u32, chunk: u32) -> (Span, u32) {
        let c = &self.case.collective;
        let blocks = blocks(self.case, self.roots);
        let is_share = c.kind == Kind::Allreduce && self.roots == Roots::All;
        let block = blocks.block(if is_share { root } else { 0 });
        let part = Blocks::new(block.len, self.forest.chunks).block(chunk);
        let own = block.start + part.start;
        let all = match c.kind {
            Kind::Allgather | Kind::ReduceScatter => root * c.elements + own,
            _ => own,
        };
        (Span::new(own, part.len), all)
    }

    /// Returns the index of a chunk on a rank in the tables of [`Progress`].
    fn index(&self, root: u32, chunk: u32, rank: u32) -> usize {
        let turn = if self.roots == Roots::All { root } else { 0 };
        (turn * self.forest.chunks + chunk) as usize * self.case.collective.ranks as usize + rank as usize
    }

    fn table<T: Clone>(&self, empty: T) -> Vec<T> {
        let ranks = self.case.collective.ranks as usize;
        vec![empty; self.roots.list(self.case.collective.ranks).len() * self.forest.chunks as usize * ranks]
    }

    /// Sends a chunk down an edge of its tree. `is_made`: the root computed the chunk, so the chunk is not in its
    /// input.
    fn down(&mut self, b: &mut Builder, m: &Message, at: &mut Progress, is_made: bool) {
        let (Span { start: own, len }, all) = self.span(m.root, m.chunk);
        if len == 0 {
            return;
        }
        let edge = m.edge;
        let (from, to) = (NodeId(edge.from), NodeId(edge.to));
        let at_root = edge.from == m.root;
        let source = if at_root && !is_made { Operand::In(own) } else { Operand::Out(all) };
        let stream = Operand::Stream(b.stream(from, &[to]));
        let sent = b.combine(from, self.lanes.sends(edge.from, edge.ends[0]), len, &[source], &[stream]);
        let before = self.index(m.root, m.chunk, edge.from);
        let earlier = if at_root { at.made[before] } else { at.received[before] };
        if let Some(earlier) = earlier {
            b.after(sent, earlier);
        }
        let lane = self.lanes.receives(edge.to, edge.from);
        let index = self.index(m.root, m.chunk, edge.to);
        at.received[index] = Some(b.combine(to, lane, len, &[stream], &[Operand::Out(all)]));
    }

    /// Sends a chunk up an edge of its tree: a rank combines its own part with the sums from below, and sends the
    /// result.
    fn up(&mut self, b: &mut Builder, m: &Message, at: &mut Progress) {
        let (Span { start: own, len }, all) = self.span(m.root, m.chunk);
        if len == 0 {
            return;
        }
        let edge = m.edge;
        let (node, above) = (NodeId(edge.to), NodeId(edge.from));
        let up = Operand::Stream(b.stream(node, &[above]));
        let mut sources = vec![Operand::In(all)];
        sources.append(&mut at.arrived[self.index(m.root, m.chunk, edge.to)]);
        b.combine(node, self.lanes.sends(edge.to, edge.ends[1]), len, &sources, &[up]);
        let index = self.index(m.root, m.chunk, edge.from);
        if edge.from != m.root {
            at.arrived[index].push(up);
            return;
        }
        let lane = self.lanes.receives(m.root, m.root);
        if self.sums.is_some() {
            self.add_in_order(b, m, (edge.to, up), at);
            return;
        }
        // The root adds each sum when it arrives, so that little work is left after the last message.
        let so_far = if at.made[index].is_none() { Operand::In(all) } else { Operand::Out(own) };
        at.made[index] = Some(b.combine(above, lane, len, &[so_far, up], &[Operand::Out(own)]));
    }

    /// Makes the sums of a chunk at its root whose operands are there, once the input of a rank has arrived.
    fn add_in_order(&mut self, b: &mut Builder, m: &Message, arrived: (u32, Operand), at: &mut Progress) {
        let lane = self.lanes.receives(m.root, m.root);
        let Some(sums) = &self.sums else { return };
        let (Span { start: own, len }, all) = self.span(m.root, m.chunk);
        let index = self.index(m.root, m.chunk, m.root);
        let mut ready = vec![arrived];
        if at.operands[index].is_empty() {
            at.operands[index] = vec![None; sums.sum_of.len()];
            ready.push((m.root, Operand::In(all)));
        }
        while let Some((operand, place)) = ready.pop() {
            at.operands[index][operand as usize] = Some(place);
            let Some(sum) = sums.sum_of[operand as usize] else { continue };
            let (left, right) = sums.operands[sum as usize];
            let [left, right] = [left, right].map(|one| at.operands[index][one as usize]);
            let (Some(left), Some(right)) = (left, right) else { continue };
            // All sums of a root are made in one lane, those of a chunk before those of the next.
            let to = match sums.slots[sum as usize] {
                None => Operand::Out(own),
                Some(slot) => Operand::Tmp(self.scratch[m.root as usize] + slot * self.longest),
            };
            at.made[index] = Some(b.combine(NodeId(m.root), lane, len, &[left, right], &[to]));
            ready.push((self.case.collective.ranks + sum, to));
        }
    }
}

/// The state of each chunk on each rank.
struct Progress {
    /// The instruction that received a chunk.
    received: Vec<Option<InstrId>>,
    /// The sums that arrived from below.
    arrived: Vec<Vec<Operand>>,
    /// The last instruction that added to a chunk at its root.
    made: Vec<Option<InstrId>>,
    /// The operands of the sums of a chunk at its root, as far as they are there.
    operands: Vec<Vec<Option<Operand>>>,
}

impl RankAlgorithm for Forest {
    fn info(&self) -> &'static Info {
        &INFO
    }

    /// Checks that the network allows the forest. On networks that do not look alike from all ranks this finds the
    /// forest.
    fn check(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        if case.collective.ranks < 2 { fabric(case).map(|_| ()) } else { Chosen::new(case, params).map(|_| ()) }
    }

    /// Counts a send and a receive for each message down, and a send and a sum at its receiver for each message up.
    fn instructions(&self, case: &Case, params: &Params) -> u64 {
        let c = &case.collective;
        let chunks = params.number(INFO.name, "chunks", 1..=MOST_CHUNKS).ok().flatten().unwrap_or(1);
        let is_one = c.kind.has_root() || params.get("through").is_some_and(|value| value != "none");
        let roots = if is_one { 1 } else { u64::from(c.ranks) };
        let each = match c.kind {
            Kind::Allreduce => 4,
            _ => 2,
        };
        each * roots * u64::from(chunks.min(c.elements)) * u64::from(c.ranks - 1)
    }

    fn emit(&self, b: &mut Builder, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        let c = case.collective;
        let Chosen { shape, fabric, forest } = Chosen::new(case, params)?;
        let Shape { roots, depth, chunks, .. } = shape;
        let bytes = message_bytes(case, roots, chunks);
        let table = |runs| {
            let table = fabric.messages(roots, Some(depth), chunks, bytes, runs);
            table.map_err(|reason| unsupported(reason.to_string()))
        };
        let lanes = Lanes::new(fabric, c.ranks);
        let sums = match order(params)? {
            "ranks" if c.kind.reduces() => Some(Sums::in_ranks(c.ranks)),
            "tree" if c.kind.reduces() => Some(Sums::in_tree(c.ranks)),
            _ => None,
        };
        let longest = blocks(case, roots).block(0).len.div_ceil(chunks);
        let used = sums.as_ref().map_or(0, |sums| sums.used * longest);
        let scratch = (0..c.ranks).map(|rank| if used > 0 { b.scratch(NodeId(rank), used) } else { 0 }).collect();
        let mut messages = Messages { case, roots, sums, scratch, longest, forest: &forest, lanes };
        let mut at = Progress {
            received: messages.table(None),
            arrived: messages.table(Vec::new()),
            made: messages.table(None),
            operands: messages.table(Vec::new()),
        };
        if c.kind == Kind::Allgather {
            for rank in 0..c.ranks {
                let out = Operand::Out(rank * c.elements);
                b.combine(NodeId(rank), Lanes::OWN, c.elements, &[Operand::In(0)], &[out]);
            }
        }
        let reduces = c.kind.reduces();
        if let Roots::Through(root) = roots {
            let listed = fabric.through(root, Some(depth), chunks, bytes);
            for (runs, m) in listed.map_err(|reason| unsupported(reason.to_string()))? {
                match runs {
                    Runs::Up => messages.up(b, &m, &mut at),
                    Runs::Down => messages.down(b, &m, &mut at, true),
                }
            }
            return Ok(());
        }
        if reduces {
            // Messages upward run in the reverse order of the timetable.
            let mut up: Vec<Message> = table(Runs::Up)?.iter().rev().copied().collect();
            if messages.sums.is_some() {
                // A chunk is then added while the next one travels.
                up.sort_by_key(|m| m.chunk);
            }
            up.iter().for_each(|m| messages.up(b, m, &mut at));
        }
        if !reduces || c.kind == Kind::Allreduce {
            table(Runs::Down)?.iter().for_each(|m| messages.down(b, m, &mut at, reduces));
        }
        Ok(())
    }

    fn trees(&self, case: &Case, params: &Params) -> Option<Trees> {
        shapes::trees(case, case.fabric()?, Chosen::new(case, params).ok()?.shape).ok()
    }

    fn candidates(&self, case: &Case) -> Vec<Params> {
        let (Some(fabric), roots) = (case.fabric(), roots(case)) else { return Vec::new() };
        if !fabric.is_cheap(roots) && !fabric.is_affordable(roots) {
            return Vec::new();
        }
        let found = shapes(case, fabric, Given::default()).unwrap_or_default();
        let sums = case.collective.kind.reduces();
        let of = |shape: Shape| {
            let orders: &[_] = if sums && has_orders(shape) { &["ranks", "tree"] } else { &[] };
            let ordered = move |order: &&str| named(shape, Params::new()).with("order", order);
            [named(shape, Params::new())].into_iter().chain(orders.iter().map(ordered))
        };
        found.into_iter().flat_map(of).collect()
    }

    fn chosen(&self, case: &Case, params: &Params) -> Params {
        if case.collective.ranks < 2 {
            return params.clone();
        }
        match Chosen::new(case, params) {
            Ok(Chosen { shape, .. }) => named(shape, params.clone()),
            Err(_) => params.clone(),
        }
    }
}
