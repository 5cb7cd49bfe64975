//! Chain reduce: every PE adds its vector to the vector that arrives from its far neighbor, and sends the sum to its
//! near neighbor.
//!
//! T = B + (2 T_R + 2)(P - 1) for B wavelets on P PEs, with the ramp latency T_R. Source: "Near-Optimal Wafer-Scale
//! Reduce", section 5.2, Lemma 5.2.

use unisono_collective::Kind;

use crate::{
    AlgorithmError, Formula, Info, Params,
    line::{LineTree, Side},
};

pub struct Chain;

pub const INFO: Info = Info {
    name: "chain",
    summary: "each PE adds its vector to its neighbor's and passes it on; best for long vectors",
    reference: "Near-Optimal Wafer-Scale Reduce, section 5.2",
    formulas: &[Formula::new("paper", &[Kind::Reduce], "B + (2 T_R + 2) (P-1)")],
    ..Info::ON_LINE
};

impl LineTree for Chain {
    fn side(&self, pes: u32, _: u64, _: f64, _: &Params) -> Result<Side, AlgorithmError> {
        Ok(Side::new((0..pes).map(|i| i.saturating_sub(1)).collect()))
    }
}
