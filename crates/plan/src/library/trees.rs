//! Trees of MPI libraries that a plan never chooses: the root sends the whole vector to all ranks (`linear`), or it
//! goes down a tree whose nodes have two children (`binary`). A reduce runs in the opposite direction.
//!
//! T = alpha + (P-1) n beta at the root of a linear tree.
//! Source: Open MPI, `coll_base_bcast.c` (basic linear), `coll_base_topo.c` (`build_tree` of fanout 2).

use unisono_algorithms::{
    AlgorithmError, Case, Info, Param, Params,
    ranks::{Among, RankAlgorithm},
};
use unisono_base::NodeId;
use unisono_collective::{Collective, Kind};
use unisono_schedule::{Builder, Operand};

pub const SHAPE: &str = "shape";
pub const LINEAR: &str = "linear";
pub const BINARY: &str = "binary";

pub static LIBRARY_TREE: Among<LibraryTree> = Among(LibraryTree);

pub struct LibraryTree;

const INFO: Info = Info {
    name: "library-tree",
    summary: "the whole vector down a tree of one or many levels",
    reference: "Open MPI, coll_base",
    collectives: &[Kind::Broadcast, Kind::Reduce],
    params: &[Param { name: SHAPE, values: "linear, binary (default: linear)" }],
    ..Info::AMONG_RANKS
};

/// Returns the children of each rank, both numbered from the root.
fn children(ranks: u32, is_linear: bool) -> Vec<Vec<u32>> {
    let mut below = vec![Vec::new(); ranks as usize];
    if is_linear {
        below[0] = (1..ranks).collect();
        return below;
    }
    // Level l has 2^l ranks, and the children of a rank r in it are r + 2^l and r + 2^(l+1).
    for v in 0..ranks {
        let level = 1_u64 << (v + 1).ilog2();
        below[v as usize] = [level, 2 * level]
            .into_iter()
            .filter_map(|step| u32::try_from(u64::from(v) + step).ok().filter(|&child| child < ranks))
            .collect();
    }
    below
}

impl RankAlgorithm for LibraryTree {
    fn info(&self) -> &'static Info {
        &INFO
    }

    /// Only a linear tree keeps the order; Open MPI uses a binary tree only for operators that commute.
    fn keeps_order(&self, _: &Collective) -> bool {
        true
    }

    fn emit(&self, b: &mut Builder, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        let c = case.collective;
        let is_linear = params.get(SHAPE).is_none_or(|shape| shape == LINEAR);
        let below = children(c.ranks, is_linear);
        let node = |v: u32| NodeId((v + c.root) % c.ranks);
        let len = c.elements;
        let mut edges = vec![None; c.ranks as usize];
        for (v, children) in (0..).zip(&below) {
            for &child in children {
                let (from, to) = if c.kind == Kind::Reduce { (child, v) } else { (v, child) };
                edges[child as usize] = Some(Operand::Stream(b.stream(node(from), &[node(to)])));
            }
        }
        for (v, children) in (0..).zip(&below) {
            let above = edges[v as usize];
            let streams = children.iter().filter_map(|&child| edges[child as usize]);
            if c.kind == Kind::Broadcast {
                let own = above.map(|_| Operand::Out(0));
                b.combine(
                    node(v),
                    0,
                    len,
                    &[above.unwrap_or(Operand::In(0))],
                    &own.into_iter().chain(streams).collect::<Vec<_>>(),
                );
                continue;
            }
            let end = above.unwrap_or(Operand::Out(0));
            let mut parts: Vec<_> = streams.zip(children.iter().map(|&child| node(child))).collect();
            parts.push((Operand::In(0), node(v)));
            // A linear reduce adds in the order of ranks, for operators that do not commute.
            parts.sort_by_key(|&(_, from)| if is_linear { from.0 } else { u32::from(from != node(v)) });
            let last = parts.len() - 1;
            let partial =
                if above.is_none() || last < 2 { Operand::Out(0) } else { Operand::Tmp(b.scratch(node(v), len)) };
            let mut have = parts[0].0;
            if last == 0 {
                b.combine(node(v), 0, len, &[have], &[end]);
            }
            for (at, &(part, _)) in parts.iter().enumerate().skip(1) {
                b.combine(node(v), 0, len, &[have, part], &[if at == last { end } else { partial }]);
                have = partial;
            }
        }
        Ok(())
    }
}
