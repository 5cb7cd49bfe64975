//! The bytes that cross links for each byte of a message that a switch receives or sends.

use unisono_base::{InstrId, NodeId, StreamId};
use unisono_machine::network::Switches;
use unisono_schedule::{Flow, Schedule};

/// Returns, for each stream, the bytes that cross a link divided by the bytes of the stream: [`Switches::crossings`] of
/// the switch that sends or receives the stream (the larger value if both ends are switches), and 1 between ranks. Node
/// k of the schedule runs on node `places[k]` of the plane.
///
/// If `leader` returns a rank for a sum, that rank receives the sum and sends it back to the switch, so the streams of
/// that rank have twice the crossings of the other streams.
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
        let is_of = |stream: StreamId, rank: NodeId| {
            schedule.stream(stream).source == rank || schedule.stream_sinks(stream) == [rank]
        };
        let from = || flow.pops(schedule, id).map(|(stream, _)| schedule.stream(stream).source);
        let to = || flow.pushes(schedule, id).flat_map(|(stream, _)| schedule.stream_sinks(stream)).copied();
        let is_apart = if operands > 1 { is_apart(ranks, to(), from()) } else { is_apart(ranks, from(), to()) };
        let is_apart = is_apart && leader.is_none();
        let [inward, outward] = switches.crossings(place, operands, if leader.is_some() { 1 } else { sinks }, is_apart);
        let inward = flow.pops(schedule, id).map(|(stream, _)| (stream, inward));
        for (stream, others) in inward.chain(flow.pushes(schedule, id).map(|(stream, _)| (stream, outward))) {
            let crossings = if leader.is_some_and(|rank| is_of(stream, rank)) { 2.0 * others } else { others };
            let of_stream = &mut of_streams[stream.index()];
            *of_stream = crossings.max(*of_stream);
        }
    }
    of_streams
}

/// Returns whether the first node, which requests a sum or stores a value, is a rank that does not occur among the
/// other nodes.
fn is_apart(ranks: u32, mut first: impl Iterator<Item = NodeId>, mut others: impl Iterator<Item = NodeId>) -> bool {
    first.next().is_some_and(|first| first.0 < ranks && others.all(|other| other != first))
}
