//! The input and output ports of a stream's route at each router.

use unisono_base::StreamId;

use super::program::{Port, Ports, Position};
use crate::{OnGrid, Segment};

/// One router of a route, with the ports by which the stream enters and leaves it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Way {
    pub pe: u32,
    pub position: Position,
}

/// Replaces `into` by the routers of a stream's route, in ascending order of PEs.
pub fn ways(placed: OnGrid, stream: StreamId, into: &mut Vec<Way>) {
    let (schedule, grid) = (placed.schedule, placed.placement.grid);
    let mut segments: Vec<Segment> = Vec::new();
    placed.placement.segments(schedule, stream, &mut segments);
    let source = schedule.stream(stream).source.0;
    into.clear();
    let visit = |pe: u32, rx: Option<Port>, tx: Option<Port>| Way {
        pe,
        position: Position { rx: rx.into_iter().collect::<Ports>(), tx: tx.into_iter().collect::<Ports>() },
    };
    into.push(visit(source, Some(Port::Ramp), None));
    for s in &segments {
        let out = Port::toward(s.direction);
        for hop in 0..s.hops {
            into.push(visit(grid.step(s.from, s.direction, hop), None, Some(out)));
            into.push(visit(grid.step(s.from, s.direction, hop + 1), Some(out.opposite()), None));
        }
    }
    into.extend(schedule.stream_sinks(stream).iter().map(|n| visit(n.0, None, Some(Port::Ramp))));
    // Each router was recorded once for each port. Its position is the union.
    into.sort_unstable_by_key(|w| w.pe);
    into.dedup_by(|next, kept| {
        let same = next.pe == kept.pe;
        if same {
            kept.position.rx = kept.position.rx.iter().chain(next.position.rx.iter()).collect();
            kept.position.tx = kept.position.tx.iter().chain(next.position.tx.iter()).collect();
        }
        same
    });
}
