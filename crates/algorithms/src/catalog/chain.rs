//! Chain reduce: every PE adds its vector to what arrives from farther out and passes it on.
//!
//! T = B + (2 T_R + 2)(P - 1). Source: "Near-Optimal Wafer-Scale Reduce", section 5.2, Lemma 5.2.

use crate::{
    AlgorithmError, Params,
    line::{LineTree, Side},
};

pub struct Chain;

impl LineTree for Chain {
    fn name(&self) -> &'static str {
        "chain"
    }

    fn summary(&self) -> &'static str {
        "each PE adds its vector to its neighbor's and passes it on; best for long vectors"
    }

    fn reference(&self) -> &'static str {
        "Near-Optimal Wafer-Scale Reduce, section 5.2"
    }

    fn side(&self, pes: u32, _: u64, _: f64, _: &Params) -> Result<Side, AlgorithmError> {
        Ok(Side::new((0..pes).map(|i| i.saturating_sub(1)).collect()))
    }
}
