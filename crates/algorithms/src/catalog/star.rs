//! Star reduce: every PE sends its vector directly to the root, the nearest PE first.
//!
//! For B wavelets on P PEs, with the ramp latency T_R, the time by Eq. 1 is max(B(P-1), PB/2 + P-1) + 2 T_R + 1; but
//! the wavelets form a perfect pipeline, so it is B(P-1) + 2 T_R + 1.
//! Source: "Near-Optimal Wafer-Scale Reduce", section 5.1, Lemma 5.1 and the paragraph after it.

use unisono_lower::Sharper;

use unisono_collective::Kind;

use crate::{
    AlgorithmError, Formula, Info, Params,
    line::{LineTree, Side, Sides},
};

pub struct Star;

pub const INFO: Info = Info {
    name: "star",
    summary: "every PE sends straight to the root; best for one wavelet",
    reference: "Near-Optimal Wafer-Scale Reduce, section 5.1",
    formulas: &[Formula::new("paper", &[Kind::Reduce], "B (P-1) + 2 T_R + 1")],
    ..Info::ON_LINE
};

impl LineTree for Star {
    fn side(&self, pes: u32, _: u64, _: f64, _: &Params) -> Result<Side, AlgorithmError> {
        Ok(Side::new(vec![0; pes as usize]))
    }

    fn sharper(&self, sides: &Sides, wavelets: u64) -> Option<Sharper> {
        // With PEs on both sides, the last link of each side carries the wavelets of that side only, and the root
        // receives one wavelet per cycle.
        let others = u64::from(sides.count() - 1);
        (others > 0 && wavelets > 0).then(|| Sharper {
            cycles_beside_depth: (wavelets * others) as f64,
            why: "the wavelets form a perfect pipeline: the root takes one each cycle (section 5.1)",
        })
    }
}
