//! Whether one schedule is another with every element replaced by a block of `factor` elements.

use crate::schedule::{Operand, Schedule};

/// Whether `large` does with blocks of `factor` elements what `small` does with elements.
pub fn is_scaled(small: &Schedule, large: &Schedule, factor: u32) -> bool {
    let times = |x: u32, y: u32| u64::from(x) * u64::from(factor) == u64::from(y);
    let operand = |x: Operand, y: Operand| match (x, y) {
        (Operand::In(a), Operand::In(b)) | (Operand::Out(a), Operand::Out(b)) | (Operand::Tmp(a), Operand::Tmp(b)) => {
            times(a, b)
        }
        _ => x == y,
    };
    let (c, d) = (small.collective, large.collective);
    (c.kind, c.ranks, c.root, c.operator) == (d.kind, d.ranks, d.root, d.operator)
        && times(c.elements, d.elements)
        && small.node_lanes == large.node_lanes
        && small.lane_instrs == large.lane_instrs
        && small.sinks == large.sinks
        && small.deps == large.deps
        && all(&small.scratch, &large.scratch, |&x, &y| times(x, y))
        && all(&small.operands, &large.operands, |&x, &y| operand(x, y))
        && all(&small.instrs, &large.instrs, |x, y| {
            (x.first_operand, x.sources, x.sinks) == (y.first_operand, y.sources, y.sinks) && times(x.len, y.len)
        })
        && all(&small.streams, &large.streams, |x, y| {
            (x.source, x.first_sink) == (y.source, y.first_sink) && times(x.len, y.len)
        })
}

fn all<T>(a: &[T], b: &[T], same: impl Fn(&T, &T) -> bool) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| same(x, y))
}
