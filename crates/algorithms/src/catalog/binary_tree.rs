//! Pipelined binary tree: each rank sends segment after segment to at most two children, or receives segments from
//! them.
//!
//! T = (2 h + 2 (S-1)) (alpha + n/S beta [+ n/S gamma]) for S segments and a tree of height h, about log2 P, on ranks
//! that send one message at a time: half the rate of a chain, and few waits. On ranks that share memory, each of which
//! copies what it receives, the tree is as fast as a chain. With `order=subtrees` the ranks of a subtree follow each
//! other, so that neighbours are near each other on most machines; if the operator of a reduce does not commute, rank 0
//! is the top of the tree and sends the result to the root. With `order=levels` rank v of level l has the children v +
//! 2^l and v + 2^(l+1), as in Open MPI. Source: "binary" of Open MPI's coll_base_{bcast,reduce}.c; Sanders, Speck,
//! Traff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", 2009 (section 2).

use unisono_base::narrow;
use unisono_collective::Kind;
use unisono_lower::Round;

use crate::{
    AlgorithmError, Case, Info, Param, Params,
    ranks::{
        pipelined::{self, PipelinedTree, SEGMENT},
        tree::Tree,
    },
};

pub struct BinaryTree;

const ORDER: &str = "order";
const LEVELS: &str = "levels";
const ORDERS: [&str; 2] = ["subtrees", LEVELS];

impl PipelinedTree for BinaryTree {
    const INFO: Info = Info {
        name: "binary-tree",
        summary: "a tree of at most two children a rank, segment after segment; best for middle sizes, and in shared memory",
        reference: "Open MPI, coll_base: binary",
        params: &[SEGMENT, Param { name: ORDER, values: "subtrees, levels (default: subtrees)" }],
        ..pipelined::INFO
    };

    fn check(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        let c = &case.collective;
        if params.choice(Self::INFO.name, ORDER, &ORDERS)? == LEVELS
            && c.kind == Kind::Reduce
            && !c.operator.commutative()
        {
            let reason = format!("order=levels reorders operands, and operator {} does not commute", c.operator);
            return Err(AlgorithmError::Unsupported { algorithm: Self::INFO.name, reason });
        }
        Ok(())
    }

    fn tree(&self, ranks: u32, top: u32, params: &Params) -> Tree {
        if params.get(ORDER) == Some(LEVELS) { Tree::levels(ranks, top) } else { Tree::binary(ranks, top) }
    }

    fn instructions(&self, ranks: u64) -> u64 {
        3 * ranks
    }

    /// Returns the rounds: the first segment goes along the longest path; then each further segment takes the time of
    /// the busiest rank. The busiest rank is an inner rank with two children, if there is one, or a root that also
    /// receives the result.
    fn rounds(&self, case: &Case, params: &Params, bytes: u64, more: u32, home: bool) -> Option<Vec<Round>> {
        let c = &case.collective;
        let tree = self.tree(c.ranks, 0, params);
        let work = |v: u32| [narrow(tree.children(v).len()), u32::from(v > 0), u32::from(home && v == c.root)];
        let [children, parents, results] = (0..c.ranks).map(work).max_by_key(|work| work.iter().sum::<u32>())?;
        let prices = case.ranks();
        let busy_ns = prices.issue_ns + bytes as f64 * prices.ns_per_byte;
        // When the messages of the longest path of a reduce arrive, the other subtrees are already complete.
        let before_ns = if c.kind == Kind::Reduce { 0.0 } else { busy_ns };
        let [messages, before] = tree.longest_path(busy_ns + prices.latency_ns, before_ns);
        let path = Round::new(1, bytes).times(messages);
        Some(if c.kind == Kind::Reduce {
            // On three ranks the busiest rank is the top, which only receives. Its children send at the same time. A
            // send takes time even on machines on which receives take none, so one receive of the top is counted as a
            // send.
            let free = u32::from(parents == 0 && children > 0);
            let turn = Round::pipelined(parents + free, children + results - free, bytes);
            let turn = turn.reducing(bytes * u64::from(children));
            let home = home.then(|| Round::new(1, bytes));
            [path.reducing(bytes)].into_iter().chain(home).chain([turn.times(more)]).collect()
        } else {
            let sends = Round::pipelined(before, 0, bytes);
            vec![path, sends, Round::pipelined(children, parents, bytes).times(more)]
        })
    }
}
