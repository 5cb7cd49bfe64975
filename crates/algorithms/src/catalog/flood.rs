//! Flooding broadcast: one stream that routers multicast, along the root's row and from there along every column.
//!
//! T = B + L + 2 T_R + 1 for B wavelets, the distance L of the farthest PE and the ramp latency T_R: the time of one
//! message to that PE.
//! Source: "Near-Optimal Wafer-Scale Reduce", section 4.2, Lemma 4.1; section 7.1, Lemma 7.1.

use unisono_base::NodeId;
use unisono_collective::Kind;
use unisono_lower::{Estimate, Phase, Placed, Terms};
use unisono_machine::Grid;
use unisono_schedule::{Builder, Operand};

use crate::{
    Algorithm, AlgorithmError, Case, Formula, Info, Params, Profile,
    line::{Keep, broadcast},
};

pub struct Flood;

const INFO: Info = Info {
    name: "flood",
    summary: "broadcast by routers that duplicate one stream, in 1D and 2D; optimal",
    reference: "Near-Optimal Wafer-Scale Reduce, sections 4.2 and 7.1",
    collectives: &[Kind::Broadcast],
    formulas: &[Formula::new("paper", &[Kind::Broadcast], "B + M + N + 2 T_R - 1").when("from PE 0 over M x N PEs")],
    ..Info::ON_GRID
};

/// Returns the terms of a flood over `grid` from PE `root`.
pub fn flood_terms(grid: Grid, root: u32, wavelets: u64) -> Terms {
    let (others, b) = ((grid.count() - 1) as f64, wavelets as f64);
    if others == 0.0 || wavelets == 0 {
        return Terms::default();
    }
    Terms {
        energy: b * others,
        distance: f64::from(grid.eccentricity(root)),
        depth: 1.0,
        contention: b,
        links: others,
        max_link_load: b,
        datapath: b,
    }
}

impl Algorithm for Flood {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn supports(&self, case: &Case, _: &Params) -> Result<(), AlgorithmError> {
        if case.collective.kind == Kind::Broadcast {
            return Ok(());
        }
        Err(AlgorithmError::Unsupported {
            algorithm: INFO.name,
            reason: format!("it makes a broadcast, not {}", case.collective.kind),
        })
    }

    fn build(&self, case: &Case, _: &Params) -> Result<Placed, AlgorithmError> {
        let mut b = Builder::new(case.collective);
        b.phase("broadcast");
        let nodes = (0..case.collective.ranks).map(NodeId);
        let mut keep = Keep::default();
        broadcast(&mut b, NodeId(case.collective.root), Operand::In(0), nodes, &mut keep, 0);
        let schedule = b.finish()?;
        let placement = keep.placement(case.grid(), &schedule);
        Ok(Placed::on_grid(schedule, placement))
    }

    fn profile(&self, case: &Case, _: &Params) -> Option<Profile> {
        let terms = flood_terms(case.grid(), case.collective.root, case.wavelets());
        Some(Profile::Terms(Estimate { phases: vec![Phase::new("broadcast", terms)] }))
    }
}
