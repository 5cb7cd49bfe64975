//! Forest: the block of every root travels along trees that are built for the links of the network.
//!
//! Together the trees have the best throughput that the network allows, or nearly so ([`unisono_synthesis`]). In an
//! allgather every rank is a root, in a broadcast one rank; reduce-scatter and reduce use the trees in reverse. An
//! allreduce runs both, either in sequence for each block, or concurrently with chunks of the whole vector through one
//! rank, which is best if few links limit both directions. A block is cut into `chunks`, each with its own tree; a rank
//! forwards whole chunks.
//!
//! Sums are added when they arrive, so each tree has its own order of additions. In trees of depth 1 a root receives
//! all inputs, and can add all elements in one order.
//!
//! T = end of the timetable of all messages ([`unisono_synthesis::Fabric::messages`]). Source: packings of
//! arborescences, Edmonds (1973); ForestColl, Zhao et al., arXiv 2402.06787. Messages take the routes of the network,
//! so the optimum of ForestColl, which chooses routes, is a bound.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use unisono_base::{NodeId, parallel};
use unisono_collective::Kind;
use unisono_lower::Trees;
use unisono_schedule::{Builder, Operand};
use unisono_synthesis::{self as synthesis, Fabric, Message, NoForest, Roots, Runs};

mod messages;

use crate::{
    AlgorithmError, Case, Info, Means, Param, Params,
    ranks::{
        Lanes, RankAlgorithm, Sums,
        shapes::{self, Given, Pairs, Shape, blocks, message_bytes, quickest, roots, shapes, sums_for_all},
    },
};

use messages::Messages;

pub struct Forest;

const INFO: Info = Info {
    name: "forest",
    summary: "trees made for the links of the network, with the best throughput it allows at a given depth",
    reference: "Edmonds, 1973; Zhao et al.: ForestColl, arXiv 2402.06787",
    collectives: &[Kind::Allgather, Kind::Allreduce, Kind::Barrier, Kind::Broadcast, Kind::Reduce, Kind::ReduceScatter],
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
            name: "turns",
            values: "of an allreduce where every rank sums up a block: `yes` if a rank sends down when it has sent all that goes up, so \
                     that the two ways do not share links (default: no)",
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

/// From this number of instructions on, the timetables up and down are computed concurrently.
const LONG: u64 = 1 << 14;

fn fabric<'a>(case: &Case<'a>) -> Result<&'a Fabric, AlgorithmError> {
    case.fabric().ok_or_else(|| unsupported("it needs the links of a network".to_owned()))
}

fn unsupported(reason: String) -> AlgorithmError {
    AlgorithmError::Unsupported { algorithm: INFO.name, reason }
}

/// A forest with its shape, on the network restricted to the pairs of ranks of the shape.
struct Chosen<'a> {
    shape: Shape,
    fabric: &'a Fabric,
    forest: Arc<synthesis::Forest>,
}

impl<'a> Chosen<'a> {
    /// Returns the forest that the parameters describe. A parameter that the user does not state gets the value with
    /// the least predicted time, among the values that a plan considers. A block has no more chunks than elements.
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
        if has_turns(case, params)? {
            listed.retain(|shape| shape.roots == Roots::All);
        }
        if listed.is_empty() {
            return Err(unsupported("orders but arrival, and turns, are of ranks that each sum up a block".to_owned()));
        }
        let shape = quickest(case, fabric, &listed).map_err(refused)?;
        let Shape { roots, depth, chunks, pairs } = shape;
        let fabric = pairs.of(fabric).unwrap_or(fabric);
        let forest = fabric.forest(roots, Some(depth), chunks, message_bytes(case, roots, chunks)).map_err(refused)?;
        Ok(Self { shape, fabric, forest })
    }
}

/// Adds the parameters that describe a shape to `params`.
fn named(Shape { roots, depth, chunks, pairs }: Shape, mut params: Params) -> Params {
    if let Roots::Through(root) = roots {
        params = params.with("through", root);
    }
    if pairs == Pairs::Near {
        params = params.with("pairs", "near");
    }
    params.with("depth", depth).with("chunks", chunks)
}

/// Returns the parameters of the candidates of a shape, one for each order of sums and of directions.
fn settings(case: &Case, fabric: &Fabric, shape: Shape) -> Vec<Params> {
    let sums = case.collective.kind.reduces() && case.collective.kind != Kind::Barrier;
    let orders: &[_] = if sums && has_orders(shape) { &["ranks", "tree"] } else { &[] };
    let one = named(shape, Params::new());
    let in_turns = gains_from_turns(case, fabric, shape).then(|| one.clone().with("turns", "yes"));
    let ordered = orders.iter().map(|order| one.clone().with("order", order));
    [one.clone()].into_iter().chain(in_turns).chain(ordered).collect()
}

/// Returns true if each root receives the inputs of all ranks directly, so that the root can add the inputs in any
/// order.
fn has_orders(shape: Shape) -> bool {
    shape.depth == 1 && !matches!(shape.roots, Roots::Through(_))
}

/// Returns true if an allreduce may end sooner when each rank sends all messages up before it sends down. This is the
/// case if ranks see different networks, ranks forward chunks, and links do not wait for each other: then the two
/// directions share links unequally.
fn gains_from_turns(case: &Case, fabric: &Fabric, shape: Shape) -> bool {
    let passes_on = shape.roots == Roots::All && shape.depth > 1 && shape.chunks > 1;
    case.collective.kind == Kind::Allreduce && passes_on && fabric.sends_by_link() && !fabric.is_alike(shape.roots)
}

/// Returns the order of additions that the parameters state.
fn order(params: &Params) -> Result<&'static str, AlgorithmError> {
    params.choice(INFO.name, "order", &["arrival", "ranks", "tree"])
}

/// Returns true if each rank of an allreduce sends all messages up before it sends down.
fn has_turns(case: &Case, params: &Params) -> Result<bool, AlgorithmError> {
    let named = params.choice(INFO.name, "turns", &["no", "yes"])? == "yes";
    if named && case.collective.kind != Kind::Allreduce {
        return Err(unsupported(format!("turns is of an allreduce, and this is {}", case.collective.kind)));
    }
    Ok(named)
}

/// Returns the pairs that the parameters state, or `None` if they do not determine the pairs.
fn known_pairs(params: &Params) -> Result<Option<Pairs>, AlgorithmError> {
    if params.choice(INFO.name, "pairs", &["all", "near"])? == "near" {
        return Ok(Some(Pairs::Near));
    }
    let is_known = params.get("pairs").is_some() || Forest.is_whole(params);
    Ok(is_known.then_some(Pairs::All))
}

/// Returns the roots that the parameters state, or `None` if they do not determine the roots.
fn known_roots(case: &Case, params: &Params) -> Result<Option<Roots>, AlgorithmError> {
    let c = &case.collective;
    if params.get("through").is_none_or(|value| value == "none") {
        let is_open = ["through", "depth", "chunks"].iter().all(|name| params.get(name).is_none());
        return Ok((!is_open).then(|| roots(case)));
    }
    let rank = params.number(INFO.name, "through", 0..=c.ranks - 1)?.expect("the parameter is given");
    if !sums_for_all(c.kind) {
        return Err(unsupported(format!("through is of an allreduce, and this is {}", c.kind)));
    }
    Ok(Some(Roots::Through(rank)))
}

impl RankAlgorithm for Forest {
    const INFO: Info = INFO;

    /// Checks that the network allows the forest, by building it.
    fn check(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        if case.collective.ranks < 2 { fabric(case).map(|_| ()) } else { Chosen::new(case, params).map(|_| ()) }
    }

    /// Counts a send and a receive for each message down, and a send and a sum at its receiver for each message up.
    fn instructions(&self, case: &Case, params: &Params) -> u64 {
        let c = &case.collective;
        let chunks = params.number(INFO.name, "chunks", 1..=MOST_CHUNKS).ok().flatten().unwrap_or(1);
        let is_one = c.kind.has_root() || params.get("through").is_some_and(|value| value != "none");
        let roots = if is_one { 1 } else { u64::from(c.ranks) };
        let each = if sums_for_all(c.kind) { 4 } else { 2 };
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
        let sums = match order(params)? {
            "ranks" if c.kind.reduces() => Some(Sums::in_ranks(c.ranks)),
            "tree" if c.kind.reduces() => Some(Sums::in_tree(c.ranks)),
            _ => None,
        };
        let longest = blocks(case, roots).block(0).len.div_ceil(chunks);
        let used = sums.as_ref().map_or(0, |sums| sums.used * longest);
        let scratch: Vec<u32> =
            (0..c.ranks).map(|rank| if used > 0 { b.scratch(NodeId(rank), used) } else { 0 }).collect();
        let turns = has_turns(case, params)?.then(FxHashMap::default);
        if c.kind == Kind::Allgather {
            for rank in 0..c.ranks {
                let out = Operand::Out(rank * c.elements);
                b.combine(NodeId(rank), Lanes::OWN, c.elements, &[Operand::In(0)], &[out]);
            }
        }
        let messages = || Messages {
            case,
            roots,
            sums: sums.as_ref(),
            scratch: &scratch,
            longest,
            forest: &forest,
            lanes: Lanes::new(fabric, c.ranks),
            turns: turns.clone(),
        };
        let reduces = c.kind.reduces();
        if let Roots::Through(root) = roots {
            let listed = fabric.through(root, Some(depth), chunks, bytes);
            let (mut messages, mut at) = (messages(), messages().begin());
            for (runs, m) in listed.map_err(|reason| unsupported(reason.to_string()))? {
                match runs {
                    Runs::Up => messages.up(b, &m, &mut at),
                    Runs::Down => messages.down(b, &m, &mut at, true),
                }
            }
            return Ok(());
        }
        let up = || -> Result<Vec<Message>, AlgorithmError> {
            // The timetable of messages up the trees is in reverse order of time.
            let mut up = if reduces { table(Runs::Up)? } else { Vec::new() };
            up.reverse();
            if sums.is_some() {
                // With messages sorted by chunk, a root adds one chunk while the next chunk travels.
                up.sort_by_key(|m| m.chunk);
            }
            Ok(up)
        };
        let down = || if !reduces || sums_for_all(c.kind) { table(Runs::Down) } else { Ok(Vec::new()) };
        let count = self.instructions(case, params);
        let (up, down) = if count < LONG { (up(), down()) } else { parallel::both(up, down) };
        let (up, down) = (up?, down?);
        b.in_halves(count, |b| {
            let mut messages = messages();
            let mut at = messages.begin();
            up.iter().for_each(|m| messages.up(b, m, &mut at));
            down.iter().for_each(|m| messages.down(b, m, &mut at, reduces));
            Ok(())
        })
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
        found.into_iter().flat_map(|shape| settings(case, fabric, shape)).collect()
    }

    /// Adds the forests of depth 1 of an allreduce, whose sums have one order for all elements, even if deeper forests
    /// end much sooner.
    fn candidates_if_named(&self, case: &Case) -> Vec<Params> {
        let listed = self.candidates(case);
        let Some(fabric) = case.fabric().filter(|_| case.collective.kind == Kind::Allreduce) else { return listed };
        if listed.is_empty() || fabric.least_depth(Roots::All) != Ok(1) {
            return listed;
        }
        let direct = Given { roots: Some(Roots::All), depth: Some(1), ..Given::default() };
        let direct = shapes(case, fabric, direct).unwrap_or_default().into_iter();
        let mut found: Vec<Params> = direct.flat_map(|shape| settings(case, fabric, shape)).collect();
        found.retain(|params| !listed.contains(params));
        found.extend(listed);
        found
    }

    /// If a user states depth and chunks, the defaults of the other parameters are determined.
    fn is_whole(&self, params: &Params) -> bool {
        params.has_all(["depth", "chunks"])
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
