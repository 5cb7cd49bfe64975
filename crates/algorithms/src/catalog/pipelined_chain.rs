//! Pipelined chain: the vector goes from rank to rank in segments, so that all links of the chain are busy at once.
//!
//! T = (P-2+S)(alpha + n/S beta [+ n/S gamma]) for S segments; the best S grows with sqrt(P n beta / alpha).
//! If the operator of a reduce does not commute, the chain ends at rank 0, which sends the result to the root.
//! Source: "pipeline" of Open MPI's coll_base_{bcast,reduce}.c; van de Geijn, "On global combine operations", 1994;
//! scans: Sanders, Träff, "Parallel prefix (scan) algorithms for MPI", 2006.

use unisono_collective::Kind;
use unisono_lower::Round;

use crate::{
    Case, Formula, Info, Params,
    ranks::{
        pipelined::{self, PipelinedTree},
        tree::Tree,
    },
};

pub struct PipelinedChain;

impl PipelinedTree for PipelinedChain {
    const INFO: Info = Info {
        name: "pipelined-chain",
        summary: "a chain through all ranks, segment after segment; best for very long vectors",
        reference: "Open MPI, coll_base: pipeline",
        collectives: &[Kind::Broadcast, Kind::Reduce, Kind::Scan],
        formulas: &[
            Formula::new("hockney", &[Kind::Broadcast], "(P-2+S) (alpha + n/S beta)").when("S equal segments"),
            Formula::new("hockney", &[Kind::Reduce, Kind::Scan], "(P-2+S) (alpha + n/S beta) + (P-1) n/S gamma")
                .when("S equal segments, and a reduction is faster than its message"),
        ],
        ..pipelined::INFO
    };

    fn tree(&self, ranks: u32, top: u32, _: &Params) -> Tree {
        Tree::chain(ranks, top)
    }

    fn instructions(&self, ranks: u64) -> u64 {
        ranks + 1
    }

    /// Returns the rounds: the first segment passes all ranks; then each further segment takes the time of the rank
    /// with the most messages, which receives a segment and sends one. If the result is sent home, a root inside the
    /// chain also receives the result.
    fn rounds(&self, case: &Case, _: &Params, bytes: u64, more: u32, home: bool) -> Option<Vec<Round>> {
        let c = &case.collective;
        let reduced = if c.kind == Kind::Broadcast { 0 } else { bytes };
        let pass = Round::new(1, bytes).reducing(reduced).times(c.ranks - 1);
        let receives = 1 + u32::from(home && c.root + 1 < c.ranks);
        let turn = Round::pipelined(1, receives, bytes).reducing(reduced).times(more);
        Some([pass].into_iter().chain(home.then(|| Round::new(1, bytes))).chain([turn]).collect())
    }
}
