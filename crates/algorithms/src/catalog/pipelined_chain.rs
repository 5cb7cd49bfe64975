//! Pipelined chain: rank after rank, segment after segment, so that all links of the chain are busy at once.
//!
//! T = (P-2+S)(alpha + n/S beta [+ n/S gamma]) for S segments; the best S grows with sqrt(P n beta / alpha).
//! If the operator of a reduce does not commute, the chain ends at rank 0, which sends the result to the root.
//! Source: "pipeline" of Open MPI's coll_base_{bcast,reduce}.c; van de Geijn, "On global combine operations", 1994.

use unisono_base::{NodeId, narrow};
use unisono_collective::{Collective, Kind};
use unisono_lower::Round;
use unisono_schedule::{Builder, Operand};

use crate::{
    AlgorithmError, Case, Formula, Info, Param, Params,
    ranks::{RankAlgorithm, segments, tree::top},
};

pub struct PipelinedChain;

const INFO: Info = Info {
    name: "pipelined-chain",
    summary: "a chain through all ranks, segment after segment; best for very long vectors",
    reference: "Open MPI, coll_base: pipeline",
    collectives: &[Kind::Broadcast, Kind::Reduce],
    params: &[Param { name: segments::NAME, values: "bytes of a segment, from 1 (default: 8192)" }],
    formulas: &[Formula::new("hockney", &[Kind::Broadcast], "(P-2+S) (alpha + n/S beta)").when("S equal segments")],
    ..Info::AMONG_RANKS
};

const DEFAULT: Option<u32> = Some(8 << 10);

impl RankAlgorithm for PipelinedChain {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn keeps_order(&self, _: &Collective) -> bool {
        true
    }

    fn check(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        segments::segments(INFO.name, DEFAULT, case, params).map(|_| ())
    }

    fn instructions(&self, case: &Case, params: &Params) -> u64 {
        (u64::from(case.collective.ranks) + 1) * segments::count(INFO.name, DEFAULT, case, params)
    }

    fn emit(&self, b: &mut Builder, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        let c = case.collective;
        let p = c.ranks;
        let segments = segments::segments(INFO.name, DEFAULT, case, params)?;
        let reduces = c.kind == Kind::Reduce;
        // Virtual rank 0 is the end of a reduce and the start of a broadcast.
        let first = if reduces { top(&c) } else { c.root };
        let real = |v: u32| NodeId(narrow::<u32>((u64::from(v) + u64::from(first)) % u64::from(p)));
        let link = |b: &mut Builder, from: NodeId, to: NodeId| Operand::Stream(b.stream(from, &[to]));
        // Link v joins virtual ranks v and v + 1.
        let links: Vec<Operand> = (0..p - 1)
            .map(|v| if reduces { link(b, real(v + 1), real(v)) } else { link(b, real(v), real(v + 1)) })
            .collect();
        let home = (first != c.root).then(|| link(b, NodeId(first), NodeId(c.root)));
        for r in 0..p {
            let v = if r >= first { r - first } else { r + p - first };
            let (inner, outer) = (v.checked_sub(1).map(|l| links[l as usize]), links.get(v as usize).copied());
            for s in segments.clone() {
                let (own, result) = (Operand::In(s.start), Operand::Out(s.start));
                if reduces {
                    let sources: Vec<Operand> = [own].into_iter().chain(outer).collect();
                    b.combine(NodeId(r), 0, s.len, &sources, &[inner.or(home).unwrap_or(result)]);
                } else {
                    let sinks: Vec<Operand> = inner.map(|_| result).into_iter().chain(outer).collect();
                    b.combine(NodeId(r), 0, s.len, &[inner.unwrap_or(own)], &sinks);
                }
            }
            if let Some(home) = home.filter(|_| r == c.root) {
                for s in segments.clone() {
                    b.combine(NodeId(r), 0, s.len, &[home], &[Operand::Out(s.start)]);
                }
            }
        }
        Ok(())
    }

    /// Returns the rounds: the first segment goes through all ranks; then each rank passes one segment after the other.
    fn rounds(&self, case: &Case, params: &Params) -> Option<Vec<Round>> {
        let c = &case.collective;
        let (first, more) = segments::first_and_more(INFO.name, DEFAULT, case, params).ok()?;
        let bytes = case.bytes(first);
        let reduced = if c.kind == Kind::Reduce { bytes } else { 0 };
        let home = c.kind == Kind::Reduce && top(c) != c.root;
        let pass = Round::new(1, bytes).reducing(reduced).times(c.ranks - 1);
        let turn = Round::pipelined(1, 1, bytes).reducing(reduced).times(more);
        Some([pass].into_iter().chain(home.then(|| Round::new(1, bytes))).chain([turn]).collect())
    }

    fn candidates(&self, case: &Case) -> Vec<Params> {
        segments::candidates(DEFAULT, case)
    }
}
