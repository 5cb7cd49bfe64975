//! Lowers a schedule with its placement to the registers of switches.
//!
//! For a proved schedule, lowering is also the check of the placement. It refuses a schedule that registers cannot
//! express. Registers require:
//! 1. each node has a core or switch of its own, and both ends of each stream share a link or a core;
//! 2. a core only sends a part of its input to its switch, and receives a part of its output from it;
//! 3. for each identifier a switch has at most one instruction that reduces requests, in the order of its ports, and at
//!    most one that copies a response;
//! 4. a response takes the path of the requests in reverse, or goes from a switch to its own core; collectives without
//!    a reduction have only responses;
//! 5. all instructions of an identifier carry the same part of the vector, and the parts of two identifiers do not
//!    overlap;
//! 6. the machine has the identifiers and the operator.
//!
//! The proof of the schedule covers all other properties: streams have equal lengths at both ends, no wait is circular,
//! and outputs are correct.

use std::sync::Arc;

use unisono_base::{Diagnostic, InstrId, NodeId, Span, StreamId, interrupt::poll, narrow};
use unisono_collective::Collective;
use unisono_machine::{
    InNetwork,
    in_network::{Layout, MEMORY, Port},
};
use unisono_schedule::{Operand, Schedule, verify::Verified};

use super::{
    Configured, Embedding, RegisterError, SwitchPlacement, VirtualChannel,
    registers::{ENGINE, NONE, REQUEST, RESPONSE, Registers},
};

pub(crate) fn refused(code: &'static str, node: Option<NodeId>, instr: Option<InstrId>, message: String) -> Diagnostic {
    Diagnostic { code, rank: node.map(|n| n.0), instruction: instr.map(|i| i.0), message }
}

/// Lowers a proved schedule to the registers of the machine's switches.
///
/// # Errors
/// Returns an error if the machine's switches cannot run the schedule with this placement.
pub fn lower(
    machine: &InNetwork,
    layout: &Layout,
    proven: &Verified,
    placement: &SwitchPlacement,
) -> Result<Configured, Diagnostic> {
    draft(machine, layout, proven.schedule(), placement)
}

/// Lowers a schedule without a proof, in order to check its placement.
///
/// # Errors
/// Returns the errors of [`lower`].
pub(crate) fn draft(
    machine: &InNetwork,
    layout: &Layout,
    schedule: &Schedule,
    placement: &SwitchPlacement,
) -> Result<Configured, Diagnostic> {
    let c = *schedule.collective();
    check(machine, layout, schedule, placement)?;
    let mut lowering = Lowering { layout, schedule, placement, c, embeddings: Vec::new() };
    for node in schedule.all_nodes() {
        poll();
        for id in schedule.node_instrs(node).map(InstrId::new) {
            let lowered = if node.0 < c.ranks { lowering.core(id) } else { lowering.switch(node, id) };
            lowered.map_err(|error| refused("switches", Some(node), Some(id), format!("{id} of {node}: {error}")))?;
        }
    }
    let embeddings = lowering.finish().map_err(|error| refused("switches", None, None, error.to_string()))?;
    Ok(Configured { collective: c, ranks: Arc::new(placement.split(c.ranks).0.to_vec()), embeddings })
}

/// Checks that each node has its own core or switch, that the machine has the identifiers, channels and operator, and
/// that there are no explicit dependencies.
fn check(
    machine: &InNetwork,
    layout: &Layout,
    schedule: &Schedule,
    placement: &SwitchPlacement,
) -> Result<(), Diagnostic> {
    let c = schedule.collective();
    placement.check_size(schedule)?;
    let (cores, switches) = placement.split(c.ranks);
    for (nodes, what, first) in [(cores, "core", 0), (switches, "switch", c.ranks)] {
        let mut taken = vec![false; layout.switches() as usize];
        for (node, &at) in (first..).zip(nodes) {
            let last = taken.len() - 1;
            let message = match taken.get_mut(at as usize).map(|taken| std::mem::replace(taken, true)) {
                Some(false) => continue,
                Some(true) => format!("{what} {at} has two nodes, one of them {node}; it can have one"),
                None => format!(
                    "there is no {what} {at} for node {node}; {} has 0 to {last}, and --nodes sizes it",
                    machine.name
                ),
            };
            return Err(refused("placement-machine", Some(NodeId(node)), None, message));
        }
    }
    for (stream, channel) in placement.channels.iter().enumerate() {
        let VirtualChannel { identifier, channel } = *channel;
        let message = if u32::from(identifier) >= machine.identifiers {
            format!("stream s{stream} has identifier {identifier}; {} has {}", machine.name, machine.identifiers)
        } else if channel > RESPONSE {
            format!(
                "stream s{stream} has channel {channel}; accepted are {REQUEST} for requests and {RESPONSE} for responses"
            )
        } else {
            continue;
        };
        return Err(refused("placement-machine", None, None, message));
    }
    let (operator, known) = (c.operator.name(), &machine.operators);
    if c.kind.reduces() && !known.iter().any(|o| o == operator) {
        let message = format!("the engine of {} lacks {operator}; it has {}", machine.name, known.join(", "));
        return Err(refused("placement-machine", None, None, message));
    }
    match schedule.dependencies().first() {
        None => Ok(()),
        Some((instr, earlier)) => {
            let message = format!("{instr} waits for {earlier}, and switches wait for streams alone");
            Err(refused("switches", None, Some(*instr), message))
        }
    }
}

struct Lowering<'a> {
    layout: &'a Layout,
    schedule: &'a Schedule,
    placement: &'a SwitchPlacement,
    c: Collective,
    /// The embeddings in the order in which cores use their identifiers.
    embeddings: Vec<Embedding>,
}

impl Lowering<'_> {
    fn is_core(&self, node: NodeId) -> bool {
        node.0 < self.c.ranks
    }

    fn channel(&self, stream: StreamId) -> VirtualChannel {
        self.placement.channels[stream.index()]
    }

    /// Checks an instruction of a core, and records the identifier and the part of the vector that it exchanges with
    /// its switch.
    fn core(&mut self, id: InstrId) -> Result<(), RegisterError> {
        let (sources, sinks) = (self.schedule.sources(id), self.schedule.sinks(id));
        let (stream, first, to_core) = match (single(sources.iter()), single(sinks.iter())) {
            (Some(Operand::In(first)), Some(Operand::Stream(s))) => {
                (s, first, self.schedule.stream_sinks(s).iter().any(|&node| self.is_core(node)))
            }
            (Some(Operand::Stream(s)), Some(Operand::Out(first))) => {
                (s, first, self.is_core(self.schedule.stream(s).source))
            }
            _ => return Err(RegisterError::Core),
        };
        if to_core {
            return Err(RegisterError::TwoCores { stream });
        }
        let (identifier, len) = (self.channel(stream).identifier, self.schedule.instr(id).len);
        match self.embeddings.iter().find(|e| e.identifier == identifier) {
            None => self.embeddings.push(Embedding { identifier, first, elements: len, registers: Vec::new() }),
            Some(e) if (e.first, e.elements) == (first, len) => {}
            Some(e) => {
                let (known, other) = (Span::new(e.first, e.elements), Span::new(first, len));
                return Err(RegisterError::TwoParts { identifier, known, other });
            }
        }
        Ok(())
    }

    /// Lowers an instruction of a switch to the fields for requests or responses of the switch's registers.
    fn switch(&mut self, node: NodeId, id: InstrId) -> Result<(), RegisterError> {
        let switch = self.placement.nodes[node.index()];
        let mut sources = streams(self.schedule.sources(id).iter());
        let first = self.channel(sources.next().ok_or(RegisterError::NoSource)??);
        let mut inputs = 0_u64;
        for stream in streams(self.schedule.sources(id).iter()) {
            let stream = stream?;
            if self.channel(stream) != first {
                return Err(RegisterError::OtherChannel { stream });
            }
            let port = self.port(switch, stream, self.schedule.stream(stream).source)?;
            if inputs >> port != 0 {
                return Err(RegisterError::Order);
            }
            inputs |= 1 << port;
        }
        let reduces = first.channel == REQUEST;
        let (mut output, mut outputs) = (NONE, 0_u64);
        for stream in streams(self.schedule.sinks(id).iter()) {
            let stream = stream?;
            let VirtualChannel { identifier, channel } = self.channel(stream);
            if identifier != first.identifier {
                return Err(RegisterError::OtherIdentifier { stream, found: identifier, came_by: first.identifier });
            }
            let sinks = self.schedule.stream_sinks(stream);
            match (channel, sinks) {
                (REQUEST, &[sink]) if reduces && output == NONE && !self.is_core(sink) => {
                    output = self.port(switch, stream, sink)?;
                }
                (REQUEST, _) => return Err(RegisterError::Request { stream }),
                _ if outputs != 0 => return Err(RegisterError::TwoResponses { stream }),
                _ => {
                    for &sink in sinks {
                        outputs |= 1 << self.port(switch, stream, sink)?;
                    }
                }
            }
        }
        let (operator, len) = (self.c.operator, self.schedule.instr(id).len);
        let r = self.registers(first.identifier, switch, len)?;
        let again = RegisterError::Again { switch, identifier: first.identifier };
        if reduces {
            if r.request_inputs != 0 {
                return Err(again);
            }
            (r.request_inputs, r.request_output, r.operator) = (inputs, output, Some(operator));
        } else if inputs.count_ones() != 1 {
            return Err(RegisterError::ResponseSources);
        }
        if outputs != 0 {
            if r.response_input != NONE {
                return Err(again);
            }
            r.response_input = if reduces { ENGINE } else { narrow(inputs.trailing_zeros()) };
            r.response_outputs = outputs;
        }
        Ok(())
    }

    /// Returns the port of a switch through which a stream from or to the node `other` passes; [`MEMORY`] if `other` is
    /// the core of this switch.
    fn port(&self, switch: u32, stream: StreamId, other: NodeId) -> Result<Port, RegisterError> {
        let there = self.placement.nodes[other.index()];
        match self.is_core(other) {
            true if there == switch => Ok(MEMORY),
            true => Err(RegisterError::OtherCore { stream, switch, core: there }),
            false => {
                let none = RegisterError::NoLink { stream, from: switch, to: there };
                self.layout.port_to(switch, there).ok_or(none)
            }
        }
    }

    fn registers(&mut self, identifier: u8, switch: u32, len: u32) -> Result<&mut Registers, RegisterError> {
        let Some(e) = self.embeddings.iter_mut().find(|e| e.identifier == identifier) else {
            return Err(RegisterError::Unused { identifier });
        };
        if e.elements != len {
            return Err(RegisterError::Elements { found: len, identifier, of_cores: e.elements });
        }
        if e.registers.last().is_none_or(|&(last, _)| last != switch) {
            e.registers.push((switch, Registers::idle(identifier)));
        }
        Ok(e.registers.last_mut().map(|(_, r)| r).expect("one was pushed if there was none"))
    }

    fn finish(mut self) -> Result<Vec<Embedding>, RegisterError> {
        self.embeddings.sort_by_key(|e| e.first);
        for pair in self.embeddings.windows(2) {
            let (end, next) = (u64::from(pair[0].first) + u64::from(pair[0].elements), u64::from(pair[1].first));
            if next < end {
                let (one, other) = (pair[0].identifier, pair[1].identifier);
                return Err(RegisterError::Overlap { one, other, element: next });
            }
        }
        for e in &mut self.embeddings {
            if !e.registers.is_sorted_by_key(|&(switch, _)| switch) {
                e.registers.sort_unstable_by_key(|&(switch, _)| switch);
            }
            if let Some((switch, _)) = e.registers.iter().find(|(_, r)| !responds(self.c.kind.reduces(), r)) {
                let (switch, identifier, kind) = (*switch, e.identifier, self.c.kind);
                return Err(RegisterError::Response { switch, identifier, kind });
            }
        }
        Ok(self.embeddings)
    }
}

/// Returns whether the registers of a switch have a valid response. It is valid to have no response, a response from an
/// engine to its own core, or a response that takes the path of the requests in reverse. A switch of a reduction must
/// have requests. A switch of another collective must not have requests, and its response may take any path.
fn responds(reduces: bool, r: &Registers) -> bool {
    let back = if r.request_output == NONE { ENGINE } else { r.request_output };
    match (r.response_input, r.response_outputs) {
        _ if reduces != (r.request_inputs != 0) => false,
        (NONE, _) => true,
        (ENGINE, outputs) if outputs == 1 << MEMORY => true,
        (input, outputs) => !reduces || (input == back && outputs == r.request_inputs),
    }
}

fn single<T>(mut all: impl Iterator<Item = T>) -> Option<T> {
    all.next().filter(|_| all.next().is_none())
}

fn streams(operands: impl Iterator<Item = Operand>) -> impl Iterator<Item = Result<StreamId, RegisterError>> {
    operands.map(|operand| match operand {
        Operand::Stream(stream) => Ok(stream),
        _ => Err(RegisterError::NoMemory),
    })
}
