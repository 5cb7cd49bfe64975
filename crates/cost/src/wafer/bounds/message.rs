//! The time of one message: to the PE farthest from the root, which bounds every broadcast and which flooding attains,
//! or from the sender to the root. Source: "Near-Optimal Wafer-Scale Reduce", section 4.

use unisono_base::{Cycles, narrow};
use unisono_collective::Kind;

use super::BoundCase;
use crate::Bound;

pub const MESSAGE: Bound = Bound {
    name: "message",
    reference: "Near-Optimal Wafer-Scale Reduce, sections 4.1 and 4.2",
    assumes: "nothing beyond the machine",
    time: |problem| BoundCase::time(problem, cycles),
    ..Bound::OF_MACHINE
};

fn cycles(case: &BoundCase) -> Option<Cycles> {
    let hops = match case.kind {
        Kind::Broadcast => case.part.grid.eccentricity(case.root),
        Kind::Message => {
            let last = narrow::<u32>(case.part.grid.count()) - 1;
            case.part.grid.distance(case.root, if case.root == last { 0 } else { last })
        }
        _ => return None,
    };
    if case.is_local() {
        return Some(Cycles(0.0));
    }
    Some(Cycles(case.wavelets as f64 + f64::from(hops) + case.part.depth_cycles))
}
