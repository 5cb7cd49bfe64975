//! Binary tree reduce: in round `k` every PE at an odd multiple of 2^k sends to the even multiple before it, for any
//! number of PEs. The subtree of PE p is an interval from p, as long as the lowest set bit of p, cut at the end of the
//! line.
//!
//! For B wavelets on P = 2^k PEs, with the ramp latency T_R, T = max(B k, B P k / (2(P-1)) + P-1) + (2 T_R + 1) k.
//! Source: "Near-Optimal Wafer-Scale Reduce", section 5.3, Lemma 5.3.

use unisono_collective::Kind;

use crate::{
    AlgorithmError, Formula, Info, Params,
    formula::POWER_OF_TWO,
    line::{LineTree, Side},
};

pub struct Tree;

pub const INFO: Info = Info {
    name: "tree",
    summary: "binary tree: the number of active PEs halves each round; best for short vectors",
    reference: "Near-Optimal Wafer-Scale Reduce, section 5.3",
    formulas: &[Formula::new(
        "paper",
        &[Kind::Reduce],
        "max(B log2(P), B P log2(P)/(2 (P-1)) + P-1) + (2 T_R + 1) log2(P)",
    )
    .when(POWER_OF_TWO)],
    ..Info::ON_LINE
};

impl LineTree for Tree {
    fn side(&self, pes: u32, _: u64, _: f64, _: &Params) -> Result<Side, AlgorithmError> {
        Ok(Side::new((0..pes).map(|i| i & i.wrapping_sub(1)).collect()))
    }
}
