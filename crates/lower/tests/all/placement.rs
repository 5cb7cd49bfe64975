//! Tests of placements with very long routes, and of placements on a machine.

use unisono_base::NodeId;
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_lower::{GridPlacement, Placed, Route, Segment};
use unisono_machine::{Direction, Grid};
use unisono_schedule::{Builder, Operand};

/// A message from the last PE of a row to its first, in single hops.
fn hop_by_hop(pes: u32) -> Placed {
    let collective = Collective::new(Kind::Message, pes, 1, 0, Operator::Sum, Dtype::F32).unwrap();
    let mut b = Builder::new(collective);
    let stream = b.stream(NodeId(pes - 1), &[NodeId(0)]);
    b.combine(NodeId(pes - 1), 0, 1, &[Operand::In(0)], &[Operand::Stream(stream)]);
    b.combine(NodeId(0), 0, 1, &[Operand::Stream(stream)], &[Operand::Out(0)]);
    let mut placement = GridPlacement::new(Grid::new(1, pes));
    let west = |from| Segment { from, direction: Direction::West, hops: 1 };
    placement.routes.set(stream, Route::Path((1..pes).rev().map(west).collect()));
    Placed::on_grid(b.finish().unwrap(), placement)
}

#[test]
fn a_path_of_very_many_segments() {
    let [short, long] = [10_000, 200_000].map(|pes| {
        let placed = hop_by_hop(pes);
        crate::cpu::least_ns(|| {
            assert_eq!(placed.grid().unwrap().check(), []);
            let stream = placed.schedule.all_streams().next().unwrap();
            let distances = placed.grid().unwrap().placement.distances(&placed.schedule);
            assert_eq!(distances.hops(&placed.schedule, stream, NodeId(0)), pes - 1);
        })
    });
    // If each segment caused a search of the whole path, the long path would take 400 times as long.
    assert!(long < 100 * short, "{short} ns for a short path, {long} ns for one of twenty times its length");
}
