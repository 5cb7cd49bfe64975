//! Raises registers to the schedule that they execute, with its placement. [`super::lower`] is the inverse.
//!
//! Ranks send and receive their vectors, and a switch is a node whose instructions have streams on both sides. The
//! schedule is not proved. The registers at both ends of every link must agree, since one stream represents both.

use unisono_base::{Diagnostic, NodeId, StreamId, narrow};
use unisono_machine::in_network::{Layout, MEMORY, Port};
use unisono_schedule::{BuildError, Builder, Operand, Schedule};

use super::{
    Configured, Embedding, SwitchPlacement, VirtualChannel,
    lower::refused,
    registers::{ENGINE, NONE, REQUEST, RESPONSE, Registers, ports},
};

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RaiseError {
    #[error("the registers are wrong: {}", .0.message)]
    Registers(Diagnostic),
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// Builds the schedule of registers. Its nodes are the ranks, then the switches in use in ascending order. Each
/// embedding has two lanes at each node, for requests and for responses. An embedding of 0 elements has no
/// instructions.
///
/// # Errors
/// Returns an error if the registers of two switches do not agree, or contradict the machine or the collective, or if
/// the tables cannot hold the switches and instructions.
pub fn raise(layout: &Layout, configured: &Configured) -> Result<(Schedule, SwitchPlacement), RaiseError> {
    let c = configured.collective;
    let rank_of = rank_of(layout, configured)?;
    let mut b = Builder::new(c);
    let mut switches: Vec<u32> =
        configured.embeddings.iter().flat_map(|e| e.registers.iter().map(|&(switch, _)| switch)).collect();
    switches.sort_unstable();
    switches.dedup();
    let mut node_of = vec![NO_NODE; layout.switches() as usize];
    for &switch in &switches {
        *node_of.get_mut(switch as usize).ok_or_else(|| wrong(switch, "it is not there".to_owned()))? = b.switch();
    }
    let instrs: usize = configured.embeddings.iter().map(|e| 2 * (e.registers.len() + configured.ranks.len())).sum();
    b.reserve(instrs, instrs);
    let mut placement = SwitchPlacement { nodes: [&configured.ranks[..], &switches].concat(), channels: Vec::new() };
    for (at, e) in configured.embeddings.iter().enumerate().filter(|(_, e)| e.elements > 0) {
        if !e.registers.is_sorted_by(|a, b| a.0 < b.0) {
            let what = format!("switches of identifier {} are not named once each, in order", e.identifier);
            return Err(RaiseError::Registers(refused("registers", None, None, what)));
        }
        let places = e.places(layout.switches());
        let tree = Tree { layout, configured, e, places, rank_of: &rank_of, node_of: &node_of };
        for &(switch, r) in &e.registers {
            tree.check(switch, &r)?;
        }
        tree.build(&mut b, narrow(at), &mut placement.channels);
    }
    b.origin("in-network");
    Ok((b.finish()?, placement))
}

const NO_NODE: NodeId = NodeId(u32::MAX);

fn wrong(switch: u32, what: String) -> RaiseError {
    RaiseError::Registers(refused("registers", Some(NodeId(switch)), None, format!("switch {switch}: {what}")))
}

/// Returns the node of the rank on the core of each switch; [`NO_NODE`] if the core has no rank. [`super::lower`]
/// checks that each rank has its own core.
fn rank_of(layout: &Layout, configured: &Configured) -> Result<Vec<NodeId>, RaiseError> {
    let (places, ranks) = (configured.ranks.len(), configured.collective.ranks);
    if places != ranks as usize {
        let message = format!("{places} cores are named for {ranks} ranks");
        return Err(RaiseError::Registers(refused("ranks", None, None, message)));
    }
    let mut of = vec![NO_NODE; layout.switches() as usize];
    for (rank, &core) in configured.ranks.iter().enumerate() {
        if let Some(place) = of.get_mut(core as usize) {
            *place = NodeId::new(rank);
        }
    }
    Ok(of)
}

/// An embedding, with the schedule's node of each core (`rank_of`) and of each switch (`node_of`).
struct Tree<'a> {
    layout: &'a Layout,
    configured: &'a Configured,
    e: &'a Embedding,
    places: Vec<u32>,
    rank_of: &'a [NodeId],
    node_of: &'a [NodeId],
}

impl Tree<'_> {
    fn at(&self, switch: u32) -> Option<&Registers> {
        let place = *self.places.get(switch as usize)?;
        self.e.registers.get(place as usize).map(|(_, r)| r)
    }

    /// Checks properties that a schedule does not express: fields with only one valid value, and the agreement of both
    /// ends of every link.
    fn check(&self, switch: u32, r: &Registers) -> Result<(), RaiseError> {
        let fail = |what: String| Err(wrong(switch, what));
        let channels = (r.request_channel, r.response_channel);
        if channels != (REQUEST, RESPONSE) {
            let (request, response) = channels;
            return fail(format!(
                "requests are on channel {request} and responses on {response}, not {REQUEST} and {RESPONSE}"
            ));
        }
        if r.identifier != self.e.identifier {
            return fail(format!("these are registers of identifier {}, not {}", r.identifier, self.e.identifier));
        }
        let wanted = (r.request_inputs != 0).then_some(self.configured.collective.operator);
        if r.operator != wanted {
            let name = |o: Option<unisono_collective::Operator>| o.map_or("none", |o| o.name());
            return fail(format!("the operator is {}, not {}", name(r.operator), name(wanted)));
        }
        let memory = r.sends() || r.receives();
        if memory && self.rank_of[switch as usize] == NO_NODE {
            return fail("no rank is here, and its memory gives or gets data".to_owned());
        }
        let end = |what: &str, port: Port, fits: &dyn Fn(&Registers, Port) -> bool| match self.layout.peer(switch, port)
        {
            None => fail(format!("{what} {port} is no port with a link")),
            Some(peer) if self.at(peer.switch).is_some_and(|there| fits(there, peer.port)) => Ok(()),
            Some(peer) => {
                fail(format!("{what} {port} leads to switch {}, whose port {} does not fit", peer.switch, peer.port))
            }
        };
        if r.request_output != NONE {
            end("request output", r.request_output, &|there, port| there.request_inputs & 1 << port != 0)?;
        }
        if ![NONE, ENGINE, MEMORY].contains(&r.response_input) {
            end("response input", r.response_input, &|there, port| there.response_outputs & 1 << port != 0)?;
        }
        for port in ports(r.request_inputs & !(1 << MEMORY)) {
            end("request input", port, &|there, port| there.request_output == port)?;
        }
        for port in ports(r.response_outputs & !(1 << MEMORY)) {
            end("response output", port, &|there, port| there.response_input == port)?;
        }
        Ok(())
    }

    /// Adds streams and instructions for registers that [`Tree::check`] accepts. The embedding's streams of requests
    /// come before its streams of responses, so that its channels form two runs.
    fn build(&self, b: &mut Builder, number: u32, channels: &mut Vec<VirtualChannel>) {
        let (requests, responses) = (2 * number, 2 * number + 1);
        let mut add = |b: &mut Builder, channel, from: NodeId, to: &[NodeId]| {
            if to.is_empty() {
                return StreamId(u32::MAX);
            }
            channels.push(VirtualChannel { identifier: self.e.identifier, channel });
            b.stream(from, to)
        };
        let node = |switch: u32| self.node_of[switch as usize];
        let beside = |switch, port| self.layout.peer(switch, port).map(|peer| node(peer.switch));
        let core = |switch: u32| self.rank_of[switch as usize];
        let mut streams = Streams::default();
        for &(switch, r) in &self.e.registers {
            let requests = r.request_inputs & 1 << MEMORY != 0;
            let to = if gives(&r) { &[node(switch)][..] } else { &[] };
            streams.memory.push(if requests { add(b, REQUEST, core(switch), to) } else { StreamId(u32::MAX) });
            let up: Vec<NodeId> = beside(switch, r.request_output).into_iter().collect();
            streams.up.push(add(b, REQUEST, node(switch), &up));
        }
        for (place, &(switch, r)) in self.e.registers.iter().enumerate() {
            if gives(&r) && r.request_inputs & 1 << MEMORY == 0 {
                streams.memory[place] = add(b, RESPONSE, core(switch), &[node(switch)]);
            }
            let links = ports(r.response_outputs & !(1 << MEMORY));
            let mut down: Vec<NodeId> = links.filter_map(|port| beside(switch, port)).collect();
            down.extend(r.receives().then(|| core(switch)));
            streams.down.push(add(b, RESPONSE, node(switch), &down));
        }
        let (first, len) = (self.e.first, self.e.elements);
        let arriving = |switch: u32, port: Port, of: &[StreamId]| {
            let peer = self.layout.peer(switch, port);
            let (of, at) = peer.map_or((&streams.memory[..], switch), |peer| (of, peer.switch));
            Operand::Stream(of[self.places[at as usize] as usize])
        };
        for (place, &(switch, r)) in self.e.registers.iter().enumerate() {
            if gives(&r) {
                b.combine(
                    core(switch),
                    requests,
                    len,
                    &[Operand::In(first)],
                    &[Operand::Stream(streams.memory[place])],
                );
            }
            let down = Some(streams.down[place]).filter(|s| s.0 != u32::MAX).map(Operand::Stream);
            if r.request_inputs != 0 {
                let sources: Vec<Operand> =
                    ports(r.request_inputs).map(|port| arriving(switch, port, &streams.up)).collect();
                let up = (r.request_output != NONE).then(|| Operand::Stream(streams.up[place]));
                let sinks: Vec<Operand> = up.into_iter().chain(down.filter(|_| r.response_input == ENGINE)).collect();
                b.combine(node(switch), requests, len, &sources, &sinks);
            }
            if ![ENGINE, NONE].contains(&r.response_input)
                && let Some(down) = down
            {
                let source = arriving(switch, r.response_input, &streams.down);
                b.combine(node(switch), responses, len, &[source], &[down]);
            }
            if let Some(down) = down.filter(|_| r.receives()) {
                b.combine(core(switch), responses, len, &[down], &[Operand::Out(first)]);
            }
        }
    }
}

/// Returns whether the core of a switch sends its vector to the switch. The root of a broadcast without receivers does
/// not send.
fn gives(r: &Registers) -> bool {
    r.sends() && (r.request_inputs | r.response_outputs) != 0
}

/// The streams of each switch of an embedding: from its core, towards the root, and away from the root.
#[derive(Default)]
struct Streams {
    memory: Vec<StreamId>,
    up: Vec<StreamId>,
    down: Vec<StreamId>,
}
