//! A message: one stream from one PE to another, which is also a broadcast on two PEs.
//!
//! For B wavelets, P - 1 hops and the ramp latency T_R, T = B + P + 2 T_R, which is optimal. Source: "Near-Optimal
//! Wafer-Scale Reduce", section 4.1.
//!
//! A message is a collective, which can be planned and proved, because every broadcast is compared with it.

use unisono_base::NodeId;
use unisono_collective::Kind;
use unisono_lower::{Estimate, GridPlacement, Phase, Placed, Terms};
use unisono_schedule::{Builder, Operand};

use crate::{Algorithm, AlgorithmError, Case, Formula, Info, Params, Profile};

pub struct Message;

const INFO: Info = Info {
    name: "message",
    summary: "one stream from the last PE to the root; as a broadcast, between two PEs",
    reference: "Near-Optimal Wafer-Scale Reduce, section 4.1",
    collectives: &[Kind::Broadcast, Kind::Message],
    formulas: &[Formula::new("paper", &[Kind::Message], "B + P + 2 T_R")],
    ..Info::ON_GRID
};

/// Returns the sender and the receiver, or `None` on one PE.
fn ends(case: &Case) -> Option<(NodeId, NodeId)> {
    let c = case.collective;
    let (from, to) = if c.kind == Kind::Message { (c.sender(), c.root) } else { (c.root, 1 - c.root.min(1)) };
    (c.ranks > 1).then_some((NodeId(from), NodeId(to)))
}

impl Algorithm for Message {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn supports(&self, case: &Case, _: &Params) -> Result<(), AlgorithmError> {
        let c = case.collective;
        if c.kind == Kind::Message || (c.kind == Kind::Broadcast && c.ranks <= 2) {
            return Ok(());
        }
        Err(AlgorithmError::Unsupported {
            algorithm: INFO.name,
            reason: format!(
                "one message makes collective 'message', or a broadcast on 2 PEs, not {} on {}; flood does",
                c.kind,
                case.grid()
            ),
        })
    }

    fn build(&self, case: &Case, _: &Params) -> Result<Placed, AlgorithmError> {
        let c = case.collective;
        let mut b = Builder::new(c);
        b.phase("message");
        if let Some((from, to)) = ends(case) {
            let stream = b.stream(from, &[to]);
            b.combine(from, 0, c.elements, &[Operand::In(0)], &[Operand::Stream(stream)]);
            b.combine(to, 0, c.elements, &[Operand::Stream(stream)], &[Operand::Out(0)]);
        } else if c.kind == Kind::Message {
            b.combine(NodeId(0), 0, c.elements, &[Operand::In(0)], &[Operand::Out(0)]);
        }
        Ok(Placed::on_grid(b.finish()?, GridPlacement::new(case.grid())))
    }

    fn profile(&self, case: &Case, _: &Params) -> Option<Profile> {
        let b = case.wavelets() as f64;
        let terms = match ends(case) {
            Some((from, to)) if b > 0.0 => {
                let hops = f64::from(case.grid().distance(from.0, to.0));
                Terms {
                    energy: b * hops,
                    distance: hops,
                    depth: 1.0,
                    contention: b,
                    links: hops,
                    max_link_load: b,
                    datapath: b,
                }
            }
            _ => Terms { datapath: if case.collective.kind == Kind::Message { b } else { 0.0 }, ..Terms::default() },
        };
        Some(Profile::Terms(Estimate { phases: vec![Phase::new("message", terms)] }))
    }
}
