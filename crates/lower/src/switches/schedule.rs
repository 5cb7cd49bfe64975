//! The schedule that registers are: ranks give and take their vectors, and a switch is a node whose `combine` has streams on
//! both sides.

use unisono_base::{NodeId, StreamId, narrow};
use unisono_machine::in_network::{Layout, MEMORY};
use unisono_schedule::{BuildError, Builder, Operand, Schedule};

use super::{
    Configured,
    registers::{ENGINE, NONE, Registers, ports},
};

/// Nodes are the ranks, then the switches that take part, ascending; each embedding has two lanes at each, one for requests and
/// one for responses. Of registers that pass [`super::check`].
///
/// # Errors
/// More switches and instructions than the tables hold.
pub fn schedule(layout: &Layout, configured: &Configured) -> Result<Schedule, BuildError> {
    let c = configured.collective;
    let mut b = Builder::new(c);
    let mut switches: Vec<u32> =
        configured.embeddings.iter().flat_map(|e| e.registers.iter().map(|&(switch, _)| switch)).collect();
    switches.sort_unstable();
    switches.dedup();
    let mut node = vec![NodeId(u32::MAX); layout.switches() as usize];
    for &switch in &switches {
        node[switch as usize] = b.switch();
    }
    let mut rank_of = vec![u32::MAX; layout.switches() as usize];
    for (rank, &switch) in configured.ranks.iter().enumerate() {
        rank_of[switch as usize] = narrow(rank);
    }
    let instrs: usize = configured.embeddings.iter().map(|e| 2 * (e.registers.len() + configured.ranks.len())).sum();
    b.reserve(instrs, instrs);
    for (at, e) in configured.embeddings.iter().enumerate() {
        let (requests, responses) = (2 * narrow::<u32>(at), 2 * narrow::<u32>(at) + 1);
        let places = e.places(layout.switches());
        let mut streams = Streams::default();
        for &(switch, r) in &e.registers {
            let here = node[switch as usize];
            let to = |port| layout.peer(switch, port).map(|peer| node[peer.switch as usize]);
            let core = NodeId(rank_of[switch as usize]);
            streams.memory.push(if gives(&r) { b.stream(core, &[here]) } else { StreamId(u32::MAX) });
            let up: Vec<NodeId> = Some(r.request_output).filter(|&p| p != NONE).and_then(to).into_iter().collect();
            streams.up.push(if up.is_empty() { StreamId(u32::MAX) } else { b.stream(here, &up) });
            let mut down: Vec<NodeId> = ports(r.response_outputs & !(1 << MEMORY)).filter_map(to).collect();
            down.extend(r.receives().then_some(core));
            streams.down.push(if down.is_empty() { StreamId(u32::MAX) } else { b.stream(here, &down) });
        }
        for (place, &(switch, r)) in e.registers.iter().enumerate() {
            let here = node[switch as usize];
            let core = NodeId(rank_of[switch as usize]);
            let arriving = |streams: &Streams, which: Which, port| {
                let id = match layout.peer(switch, port) {
                    Some(peer) => streams.of(which)[places[peer.switch as usize] as usize],
                    None => streams.memory[place],
                };
                Operand::Stream(id)
            };
            if gives(&r) {
                b.combine(
                    core,
                    requests,
                    e.elements,
                    &[Operand::In(e.first)],
                    &[Operand::Stream(streams.memory[place])],
                );
            }
            let down = Some(streams.down[place]).filter(|s| s.0 != u32::MAX).map(Operand::Stream);
            if r.request_inputs != 0 {
                let sources: Vec<Operand> =
                    ports(r.request_inputs).map(|port| arriving(&streams, Which::Up, port)).collect();
                let mut sinks = Vec::new();
                sinks.extend((r.request_output != NONE).then_some(Operand::Stream(streams.up[place])));
                sinks.extend(down.filter(|_| r.response_input == ENGINE));
                b.combine(here, requests, e.elements, &sources, &sinks);
            }
            if r.response_input != ENGINE
                && let Some(down) = down
            {
                b.combine(here, responses, e.elements, &[arriving(&streams, Which::Down, r.response_input)], &[down]);
            }
            if r.receives() {
                let down = Operand::Stream(streams.down[place]);
                b.combine(core, responses, e.elements, &[down], &[Operand::Out(e.first)]);
            }
        }
    }
    b.origin("in-network");
    b.finish()
}

/// A broadcast to nobody gives nothing.
fn gives(r: &Registers) -> bool {
    r.sends() && (r.request_inputs | r.response_outputs) != 0
}

#[derive(Clone, Copy)]
enum Which {
    Up,
    Down,
}

/// Streams of each place of an embedding: from its memory, towards the root, and away from it.
#[derive(Default)]
struct Streams {
    memory: Vec<StreamId>,
    up: Vec<StreamId>,
    down: Vec<StreamId>,
}

impl Streams {
    fn of(&self, which: Which) -> &[StreamId] {
        match which {
            Which::Up => &self.up,
            Which::Down => &self.down,
        }
    }
}
