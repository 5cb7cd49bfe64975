//! The binomial tree: the number of ranks with a partial result halves (reduce, gather) or doubles (broadcast, scatter)
//! each round.
//!
//! T = ceil(log2 P) (alpha + n beta [+ n gamma]) for a reduce and a broadcast, ceil(log2 P) alpha + (P-1) n beta for a
//! gather and a scatter of blocks of n. A reduce-scatter of blocks of n is a reduce of all P n to rank 0 and a scatter
//! down the same tree, for short blocks. If the operator of a reduce does not commute, rank 0 is the top of the tree
//! and sends the result to the root. With a *radix* k a rank has k - 1 children in each round, so there are ceil(logk
//! P) rounds. This is better if messages of a rank overlap and short messages mostly cost latency.
//! Source: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH", 2005; "knomial"
//! of MPICH.

use unisono_base::NodeId;
use unisono_collective::{Collective, Kind};
use unisono_lower::Round;
use unisono_schedule::{Builder, Operand};

use crate::{
    AlgorithmError, Case, Formula, Info, Param, Params,
    formula::POWER_OF_TWO,
    ranks::{
        RankAlgorithm,
        radix::{self, Knomial},
        segments,
        tree::{BINARY, Tree, broadcast, reduce, top},
    },
};

pub struct Binomial;

const RADIX: &str = "radix";
const MOST_RADIX: u32 = 1 << 16;
/// The radix of "knomial" in Open MPI and MPICH.
const LIBRARIES: u32 = 4;
/// The most ranks for which a plan considers the radix of libraries, and one round, for broadcasts and reduces.
const FEW: u32 = 16;
/// Radices that a plan also considers on networks. The estimates ignore the network, and rows and boxes often have
/// these numbers of ranks.
const ALIGNED: [u32; 3] = [4, 8, 16];

const INFO: Info = Info {
    name: "binomial",
    summary: "a binomial tree: half of the ranks left send to the other half, or the other way; best for short vectors",
    reference: "Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in MPICH, 2005",
    collectives: &[Kind::Broadcast, Kind::Gather, Kind::Reduce, Kind::ReduceScatter, Kind::Scatter],
    params: &[
        Param { name: RADIX, values: "children of a rank in a round, plus 1: 2 to 65536 (default: 2)" },
        segments::WHOLE,
    ],
    formulas: &[
        Formula::new("hockney", &[Kind::Broadcast], "ceil(log2(P)) (alpha + n beta)"),
        Formula::new("hockney", &[Kind::Reduce], "log2(P) (alpha + n beta + n gamma)").when(POWER_OF_TWO),
        Formula::new("hockney", &[Kind::Gather, Kind::Scatter], "log2(P) alpha + (P-1) n beta").when(POWER_OF_TWO),
    ],
    sequences: &[(Kind::ReduceScatter, &[Kind::Reduce, Kind::Scatter])],
    ..Info::AMONG_RANKS
};

fn radix(params: &Params) -> Result<u32, AlgorithmError> {
    Ok(params.number(INFO.name, RADIX, BINARY..=MOST_RADIX)?.unwrap_or(BINARY))
}

fn tree(c: &Collective, top: u32, params: &Params) -> Result<Tree, AlgorithmError> {
    Ok(Tree::binomial(c.ranks, top, radix(params)?))
}

fn gather(b: &mut Builder, tree: &Tree, c: &Collective) {
    let len = c.elements;
    let up = tree.edges(b, true);
    for (node, v) in tree.all() {
        let count = tree.size(v);
        if count == 1 {
            b.combine(node, 0, len, &[Operand::In(0)], &[up[v as usize]]);
            continue;
        }
        if v == 0 {
            b.combine(node, 0, len, &[Operand::In(0)], &[Operand::Out(c.root * len)]);
            for &child in tree.children(v) {
                for (rank, ranks) in tree.intervals(child) {
                    b.combine(node, 0, ranks * len, &[up[child as usize]], &[Operand::Out(rank * len)]);
                }
            }
            continue;
        }
        let scratch = b.scratch(node, count * len);
        b.combine(node, 0, len, &[Operand::In(0)], &[Operand::Tmp(scratch)]);
        for &child in tree.children(v) {
            let (at, part) = (scratch + (child - v) * len, tree.size(child) * len);
            b.combine(node, 0, part, &[up[child as usize]], &[Operand::Tmp(at)]);
        }
        b.combine(node, 0, count * len, &[Operand::Tmp(scratch)], &[up[v as usize]]);
    }
}

/// Emits a scatter. `block(e)` is the operand at the root that starts at element `e` of the concatenated blocks of all
/// ranks.
fn scatter(b: &mut Builder, tree: &Tree, c: &Collective, block: fn(u32) -> Operand) {
    let len = c.elements;
    let down = tree.edges(b, false);
    for (node, v) in tree.all() {
        let count = tree.size(v);
        if v == 0 {
            for &child in tree.children(v).iter().rev() {
                let intervals = tree.intervals(child);
                let mut whole = block(intervals[0].0 * len);
                if intervals.len() > 1 {
                    // Blocks that wrap around the end are packed first, because the child expects one message.
                    let mut at = b.scratch(node, tree.size(child) * len);
                    whole = Operand::Tmp(at);
                    for (rank, ranks) in intervals {
                        b.combine(node, 0, ranks * len, &[block(rank * len)], &[Operand::Tmp(at)]);
                        at += ranks * len;
                    }
                }
                b.combine(node, 0, tree.size(child) * len, &[whole], &[down[child as usize]]);
            }
            b.combine(node, 0, len, &[block(c.root * len)], &[Operand::Out(0)]);
            continue;
        }
        if count == 1 {
            b.combine(node, 0, len, &[down[v as usize]], &[Operand::Out(0)]);
            continue;
        }
        let scratch = b.scratch(node, count * len);
        b.combine(node, 0, count * len, &[down[v as usize]], &[Operand::Tmp(scratch)]);
        for &child in tree.children(v).iter().rev() {
            let (at, part) = (scratch + (child - v) * len, tree.size(child) * len);
            b.combine(node, 0, part, &[Operand::Tmp(at)], &[down[child as usize]]);
        }
        b.combine(node, 0, len, &[Operand::Tmp(scratch)], &[Operand::Out(0)]);
    }
}

/// Returns the time in ns of a collective along a tree, without segments.
fn tree_ns(case: &Case, radix: u32) -> f64 {
    let c = &case.collective;
    let of_blocks = |count: u32| case.message(u64::from(count) * case.bytes(c.elements));
    let blocks = Knomial { radix, message: of_blocks };
    let alike = |count: u32| {
        let message = of_blocks(count);
        Knomial { radix, message: move |_| message }
    };
    match c.kind {
        Kind::Reduce => alike(1).up_ns(c.ranks, true),
        Kind::Broadcast => alike(1).down_ns(c.ranks),
        Kind::ReduceScatter => alike(c.ranks).up_ns(c.ranks, true) + blocks.down_ns(c.ranks),
        Kind::Gather => blocks.up_ns(c.ranks, false),
        _ => blocks.down_ns(c.ranks),
    }
}

/// Emits a reduce of all blocks to rank 0, then a scatter. The sums are at the start of the scratch memory of rank 0.
fn reduce_scatter(b: &mut Builder, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
    let c = Collective { root: 0, ..case.collective };
    let whole = Collective { kind: Kind::Reduce, elements: c.elements * c.ranks, ..c };
    b.scratch(NodeId(0), whole.elements);
    b.phase("reduce");
    let segments = segments::segments(INFO.name, None, &Case { collective: whole, ..*case }, params)?;
    reduce(b, &whole, &tree(&c, top(&whole), params)?, segments, Operand::Tmp);
    b.phase("scatter");
    scatter(b, &tree(&c, 0, params)?, &c, Operand::Tmp);
    Ok(())
}

/// Returns the numbers of blocks in the messages along one path of a gather, from the leaf to the root. Of the path
/// through full subtrees and the path through the subtree that is not full, it is the path with more blocks in all.
fn longest_way(ranks: u32) -> Vec<u32> {
    let stages = ranks.ilog2();
    let (full, rest) = ((0..stages).map(|k| 1 << k).collect::<Vec<_>>(), ranks - (1 << stages));
    if rest == 0 {
        return full;
    }
    let mut other = longest_way(rest);
    other.push(rest);
    if other.iter().sum::<u32>() > full.iter().sum() { other } else { full }
}

impl RankAlgorithm for Binomial {
    const INFO: Info = INFO;
    const KEEPS_ORDER: bool = true;

    fn check(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        segments::segments(INFO.name, None, case, params).map(|_| ())?;
        radix(params)?;
        let whole = matches!(case.collective.kind, Kind::Gather | Kind::ReduceScatter | Kind::Scatter);
        match params.get(segments::NAME) {
            Some(found) if whole => Err(AlgorithmError::Param {
                algorithm: INFO.name,
                param: segments::NAME,
                found: found.to_owned(),
                accepted: format!("none in a {}, whose messages differ in length", case.collective.kind),
            }),
            _ => Ok(()),
        }
    }

    fn instructions(&self, case: &Case, params: &Params) -> u64 {
        let times = if case.collective.kind == Kind::ReduceScatter { 2 } else { 1 };
        3 * times * u64::from(case.collective.ranks) * self.sends(case, params)
    }

    /// Returns the number of segments. Each segment is a message from the top of the tree to a child, or to the top
    /// from a child.
    fn sends(&self, case: &Case, params: &Params) -> u64 {
        segments::count(INFO.name, None, case, params)
    }

    fn emit(&self, b: &mut Builder, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        let c = &case.collective;
        let segments = || segments::segments(INFO.name, None, case, params);
        match c.kind {
            Kind::Reduce => reduce(b, c, &tree(c, top(c), params)?, segments()?, Operand::Out),
            Kind::ReduceScatter => reduce_scatter(b, case, params)?,
            Kind::Broadcast => broadcast(b, &tree(c, c.root, params)?, segments()?),
            Kind::Gather => gather(b, &tree(c, c.root, params)?, c),
            _ => scatter(b, &tree(c, c.root, params)?, c, Operand::In),
        }
        Ok(())
    }

    /// Returns the rounds. The first segment goes along the longest path, and each further segment takes the time of
    /// the top, which has the most children. Gathers and scatters have no segments. `None` for reduce-scatters and for
    /// radices above 2.
    fn rounds(&self, case: &Case, params: &Params) -> Option<Vec<Round>> {
        let c = &case.collective;
        if radix(params).ok()? != BINARY || c.kind == Kind::ReduceScatter {
            return None;
        }
        // If the tree is not full, its full subtrees have the longest paths.
        let (stages, children) = (c.ranks.ilog2(), c.ranks.next_power_of_two().ilog2());
        let (first, more) = segments::first_and_more(INFO.name, None, case, params).ok()?;
        let bytes = case.bytes(first);
        let home = (top(c) != c.root).then(|| Round::new(1, bytes));
        let blocks = |count: u32| Round::new(1, case.bytes(c.elements) * u64::from(count));
        let way = longest_way(c.ranks);
        let beside = case.bytes(c.elements) * u64::from(c.ranks - 1 - way.iter().sum::<u32>());
        Some(match c.kind {
            Kind::Reduce => {
                // In each segment, the largest child of the top sends one message and receives one message fewer than
                // the top. So both handle equally many messages.
                let turn = Round::pipelined(1, children - 1, bytes).reducing(bytes * u64::from(children));
                let sums = Round::new(1, bytes).reducing(bytes).times(stages);
                [sums].into_iter().chain(home).chain([turn.times(more)]).collect()
            }
            Kind::Broadcast => {
                // The top sends to its child in the subtree that is not full before it sends into the longest path.
                let before = Round::pipelined(children - stages, 0, bytes);
                vec![before, Round::new(1, bytes).times(stages), Round::pipelined(children, 0, bytes).times(more)]
            }
            // The top is also occupied by the blocks that do not take the longest path.
            Kind::Gather => way.iter().map(|&count| blocks(count)).chain([Round::pipelined(0, 1, beside)]).collect(),
            _ => {
                let first = [Round::pipelined(1, 0, beside)].into_iter();
                first.chain(way.iter().rev().map(|&count| blocks(count))).collect()
            }
        })
    }

    /// Returns segments, and the fastest radices. If they are faster than radix 2, it also returns the radix of MPI
    /// libraries and the radix with which the root sends to all ranks. For broadcasts and reduces of few ranks it
    /// returns both in any case, because ranks that share memory or cores gain from few rounds.
    fn candidates(&self, case: &Case) -> Vec<Params> {
        let (c, ns) = (&case.collective, |radix| tree_ns(case, radix));
        let mut radices = radix::fastest(c.ranks, MOST_RADIX, ns);
        let are_few = matches!(c.kind, Kind::Broadcast | Kind::Reduce) && c.ranks <= FEW;
        let of_libraries = [LIBRARIES.min(c.ranks), c.ranks.min(MOST_RADIX)];
        radices.extend(of_libraries.into_iter().filter(|&radix| are_few || ns(radix) < ns(BINARY)));
        if case.ranks().extents.is_some() {
            radices.extend(ALIGNED.into_iter().filter(|&radix| radix <= c.ranks));
        }
        radices.retain(|&radix| radix > BINARY);
        radices.sort_unstable();
        radices.dedup();
        let mut all = match c.kind {
            Kind::Gather | Kind::ReduceScatter | Kind::Scatter => vec![Params::new()],
            _ => segments::candidates(None, case),
        };
        all.extend(radices.into_iter().map(|radix| Params::new().with(RADIX, radix)));
        all
    }

    fn recut(&self, case: &Case, params: &Params) -> [Option<Params>; 2] {
        match case.collective.kind {
            Kind::Gather | Kind::ReduceScatter | Kind::Scatter => [None, None],
            _ => segments::recut(INFO.name, None, case, params),
        }
    }
}
