//! The bytes that cross links for each byte of a message that a switch receives or sends.

use unisono_base::InstrId;
use unisono_machine::network::Switches;
use unisono_schedule::{Flow, Schedule};

/// Returns, for each stream, the bytes that cross a link for each of its bytes: [`Switches::crossings`] of the switch
/// that sends or receives the stream, and 1 between ranks. Node k of the schedule is on `places[k]`.
pub fn crossings(schedule: &Schedule, flow: &Flow, switches: &Switches, places: &[u32]) -> Vec<f64> {
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
        let sinks = flow.pushes(schedule, id).map(|(stream, _)| schedule.stream_sinks(stream).len()).sum();
        let crossings = switches.crossings(places[node.index()], schedule.sources(id).len(), sinks);
        for (stream, _) in flow.pops(schedule, id).chain(flow.pushes(schedule, id)) {
            let of_stream = &mut of_streams[stream.index()];
            *of_stream = crossings.max(*of_stream);
        }
    }
    of_streams
}
