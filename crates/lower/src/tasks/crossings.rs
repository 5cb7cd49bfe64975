//! The bytes that cross links for each byte of a message that a switch receives or sends.

use unisono_base::{InstrId, NodeId, StreamId};
use unisono_machine::network::Switches;
use unisono_schedule::{Flow, Schedule};

/// Returns, for each stream, the bytes that cross a link divided by the bytes of the stream: [`Switches::crossings`] of
/// the switch that sends or receives the stream, and 1 between ranks. Node k of the schedule runs on node `places[k]`
/// of the plane.
///
/// If `leader` returns a rank for a sum, that rank receives the sum and sends it back to the switch. So all bytes cross
/// the links of that rank twice, and the links of the other ranks once.
pub fn crossings(
    schedule: &Schedule,
    flow: &Flow,
    switches: &Switches,
    places: &[u32],
    leader: &dyn Fn(InstrId) -> Option<NodeId>,
) -> Vec<f64> {
    let mut of_streams = vec![1.0; schedule.stream_count()];
    let ranks = schedule.collective().ranks;
    if switches.are_plain() || schedule.node_count() <= ranks as usize {
        return of_streams;
    }
    for id in (0..schedule.instr_count()).map(InstrId::new) {
        let node = flow.node_of(id);
        if node.0 < ranks {
            continue;
        }
        let (place, operands) = (places[node.index()], schedule.sources(id).len());
        let sinks = flow.pushes(schedule, id).map(|(stream, _)| schedule.stream_sinks(stream).len()).sum();
        let leader = leader(id).filter(|_| operands > 1);
        let others = switches.crossings(place, operands, if leader.is_some() { 1 } else { sinks });
        let is_of = |stream: StreamId, rank: NodeId| {
            schedule.stream(stream).source == rank || schedule.stream_sinks(stream) == [rank]
        };
        for (stream, _) in flow.pops(schedule, id).chain(flow.pushes(schedule, id)) {
            let crossings = if leader.is_some_and(|rank| is_of(stream, rank)) { 2.0 * others } else { others };
            let of_stream = &mut of_streams[stream.index()];
            *of_stream = crossings.max(*of_stream);
        }
    }
    of_streams
}
