//! A schedule among GPUs as a plan.
//!
//! Each GPU runs its instructions in one order of the whole schedule, in thread blocks of at most [`limits::OPS`]
//! operations, each of which starts when the one before it has ended. A stream lands in scratch memory of its receiver, at a
//! place of its own: as packets in protocol LL, and by puts with signals in protocol Simple. So no place is written
//! twice, and each wait is for something that comes earlier in the order of the whole schedule, which excludes deadlocks.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use unisono_base::{InstrId, NodeId, StreamId, narrow};
use unisono_schedule::{Flow, Operand, Schedule};

use super::{limits, plan::Protocol};

/// Operations of a thread block that an instruction may fill, which leaves room for its start and its end.
const ROOM: usize = limits::OPS - 6;

/// A thread block of a GPU.
pub(super) type At = (u32, usize);

pub struct Exporter<'a> {
    pub(super) schedule: &'a Schedule,
    flow: &'a Flow,
    order: &'a [InstrId],
    pub(super) protocol: Protocol,
    /// Elements of a chunk.
    pub(super) unit: u32,
    /// The first chunk of scratch memory, or of packets, of each stream at each sink.
    landing: BTreeMap<(StreamId, NodeId), u32>,
    /// Chunks of each GPU in which streams land, of the schedule's own scratch memory, and of temporaries.
    pub(super) landed: Vec<u32>,
    pub(super) own: Vec<u32>,
    pub(super) temporary: Vec<u32>,
    /// The thread block of each instruction.
    blocks: Vec<usize>,
    pub(super) made: BTreeMap<At, Vec<Value>>,
    /// The channels between two thread blocks of different GPUs, and the messages sent and waited for on each.
    pub(super) channels: BTreeSet<(At, At)>,
    sent: BTreeMap<(At, At), u32>,
    waited: BTreeMap<(At, At), u32>,
    /// The messages that bring a piece of a stream: the writer's thread block, and its number there for each receiver.
    messages: BTreeMap<(InstrId, At), u32>,
}

fn pair(a: At, b: At) -> (At, At) {
    if a < b { (a, b) } else { (b, a) }
}

impl<'a> Exporter<'a> {
    pub fn new(schedule: &'a Schedule, flow: &'a Flow, order: &'a [InstrId], protocol: Protocol, unit: u32) -> Self {
        let mut landing = BTreeMap::new();
        let mut landed = vec![0; schedule.node_count()];
        for stream in schedule.all_streams() {
            for &sink in schedule.stream_sinks(stream) {
                landing.insert((stream, sink), landed[sink.index()]);
                landed[sink.index()] += schedule.stream(stream).len / unit;
            }
        }
        let own = schedule.all_nodes().map(|n| schedule.scratch_elements(n).div_ceil(unit)).collect();
        let mut temporary = vec![0; schedule.node_count()];
        for &id in order {
            let chunks = schedule.instr(id).len / unit * narrow::<u32>(1 + schedule.sources(id).len());
            let most = &mut temporary[flow.node_of(id).index()];
            *most = chunks.max(*most);
        }
        let (blocks, made) = (vec![0; schedule.instr_count()], BTreeMap::new());
        let (channels, sent, waited, messages) = Default::default();
        Self {
            schedule,
            flow,
            order,
            protocol,
            unit,
            landing,
            landed,
            own,
            temporary,
            blocks,
            made,
            channels,
            sent,
            waited,
            messages,
        }
    }

    /// The text of the plan.
    pub fn text(mut self) -> String {
        self.assign();
        if self.protocol == Protocol::Simple {
            self.start();
        }
        for &id in self.order {
            self.instruction(id);
        }
        self.plan()
    }

    /// Gives each instruction a thread block, by the most operations that it may take.
    fn assign(&mut self) {
        let mut filled = vec![(0, 12); self.schedule.node_count()];
        for &id in self.order {
            let (sources, sinks) = (self.schedule.sources(id).len(), self.schedule.sinks(id).len());
            let most = 8 + 2 * sources + 3 * sinks;
            let (block, ops) = &mut filled[self.flow.node_of(id).index()];
            if *ops + most > ROOM {
                (*block, *ops) = (*block + 1, 0);
            }
            *ops += most;
            self.blocks[id.index()] = *block;
        }
    }

    fn at(&self, id: InstrId) -> At {
        (self.flow.node_of(id).0, self.blocks[id.index()])
    }

    fn push(&mut self, at: At, op: Value) {
        self.made.entry(at).or_default().push(op);
    }

    /// The threads meet, unless they have just met.
    fn meet(&mut self, at: At) {
        let ops = self.made.entry(at).or_default();
        if ops.last().is_none_or(|op| op["name"] != "nop") {
            ops.push(json!({"name": "nop"}));
        }
    }

    /// Signals or waits; a channel that is named several times takes several operations.
    fn sync(&mut self, at: At, name: &str, mut peers: Vec<At>) {
        while !peers.is_empty() {
            let (mut now, mut later) = (Vec::new(), Vec::new());
            for peer in peers {
                if now.contains(&peer) || now.len() == limits::OP_CHANNELS { later.push(peer) } else { now.push(peer) }
            }
            self.channels.extend(now.iter().map(|&peer| pair(at, peer)));
            // The channels' indices are known once all channels are.
            let ends: Vec<Value> = now.iter().map(|peer| json!([peer.0, peer.1])).collect();
            self.push(at, json!({"name": name, "channel_ids": ends, "channel_type": "memory"}));
            peers = later;
        }
    }

    /// Each GPU tells those that write to it that it has started.
    fn start(&mut self) {
        let mut writers: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for &(stream, sink) in self.landing.keys() {
            writers.entry(sink.0).or_default().push(self.schedule.stream(stream).source.0);
        }
        let both = |name: &str, from: &BTreeMap<u32, Vec<u32>>, made: &mut Self| {
            for (&gpu, peers) in from {
                let mut peers: Vec<At> = peers.iter().map(|&p| (p, 0)).collect();
                peers.sort_unstable();
                peers.dedup();
                made.sync((gpu, 0), name, peers);
                made.meet((gpu, 0));
            }
        };
        let mut readers: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (&to, from) in &writers {
            from.iter().for_each(|&f| readers.entry(f).or_default().push(to));
        }
        both("rlxsignal", &writers, self);
        both("rlxwait", &readers, self);
    }

    fn local(buffer: &str, index: u32, size: u32) -> Value {
        json!({"type": buffer, "index": index, "size": size})
    }

    /// The first chunk of the schedule's own scratch memory of a GPU: packets take twice the room.
    fn scratch(&self, gpu: NodeId) -> u32 {
        self.landed[gpu.index()] * if self.protocol == Protocol::LL { 2 } else { 1 }
    }

    fn temporary(&self, gpu: NodeId, n: u32, size: u32) -> Value {
        Self::local("s", self.scratch(gpu) + self.own[gpu.index()] + n * size, size)
    }

    fn memory(&self, gpu: NodeId, operand: Operand, size: u32) -> Option<Value> {
        match operand {
            Operand::In(start) => Some(Self::local("i", start / self.unit, size)),
            Operand::Out(start) => Some(Self::local("o", start / self.unit, size)),
            Operand::Tmp(start) => Some(Self::local("s", self.scratch(gpu) + start / self.unit, size)),
            Operand::Stream(_) => None,
        }
    }

    fn instruction(&mut self, id: InstrId) {
        let (s, at, node) = (self.schedule, self.at(id), self.flow.node_of(id));
        let size = s.instr(id).len / self.unit;
        let is_ll = self.protocol == Protocol::LL;
        // Sources in order, with a mark for packets.
        let mut pops = self.flow.pops(s, id).collect::<Vec<_>>().into_iter();
        let (mut sources, mut waits) = (Vec::new(), Vec::new());
        for operand in s.sources(id).iter() {
            match self.memory(node, operand, size) {
                Some(place) => sources.push((place, false)),
                None => {
                    let Some((stream, span)) = pops.next() else { continue };
                    let index = self.landing[&(stream, node)] + span.start / self.unit;
                    sources.push((Self::local("s", index, size), is_ll));
                    for piece in Flow::touching(self.flow.writers(stream), span) {
                        waits.push((piece.instr, self.at(piece.instr)));
                    }
                }
            }
        }
        let mut remote = Vec::new();
        for (stream, span) in self.flow.pushes(s, id) {
            for &sink in s.stream_sinks(stream) {
                let index = self.landing[&(stream, sink)] + span.start / self.unit;
                remote.push((sink, json!({"buffer_id": sink.0, "index": index, "size": size})));
            }
        }
        let local: Vec<Value> = s.sinks(id).iter().filter_map(|o| self.memory(node, o, size)).collect();
        if !is_ll {
            self.wait(at, waits);
        }
        self.data(at, node, size, sources, &local, &remote);
        if !is_ll && !remote.is_empty() {
            self.signal(id, at);
        }
    }

    fn wait(&mut self, at: At, waits: Vec<(InstrId, At)>) {
        let mut needed = Vec::new();
        for (writer, from) in waits {
            let number = self.messages.get(&(writer, at)).copied().unwrap_or(0);
            let waited = self.waited.entry((from, at)).or_default();
            (*waited..number).for_each(|_| needed.push(from));
            *waited = number.max(*waited);
        }
        if !needed.is_empty() {
            self.sync(at, "wait", needed);
            self.meet(at);
        }
    }

    /// One signal to each thread block that reads what the instruction has put.
    fn signal(&mut self, id: InstrId, at: At) {
        let mut readers = Vec::new();
        for (stream, span) in self.flow.pushes(self.schedule, id) {
            for pieces in self.flow.readers_by_sink(stream) {
                readers.extend(Flow::touching(pieces, span).iter().map(|piece| self.at(piece.instr)));
            }
        }
        readers.sort_unstable();
        readers.dedup();
        for &reader in &readers {
            let sent = self.sent.entry((at, reader)).or_default();
            *sent += 1;
            self.messages.insert((id, reader), *sent);
        }
        self.meet(at);
        self.sync(at, "signal", readers);
    }

    fn op(&mut self, at: At, name: &str, sources: &[Value], sinks: &[Value]) {
        self.meet(at);
        let mut op = json!({"name": name, "src_buff": sources, "dst_buff": sinks});
        if name.starts_with("re") {
            op["reduce_op"] = json!("sum");
        }
        if sinks.iter().any(|s| s.get("buffer_id").is_some()) {
            op["channel_type"] = json!("memory");
        }
        self.push(at, op);
    }

    /// The operations that move the data of an instruction.
    fn data(
        &mut self,
        at: At,
        node: NodeId,
        size: u32,
        sources: Vec<(Value, bool)>,
        local: &[Value],
        remote: &[(NodeId, Value)],
    ) {
        let remote: Vec<Value> = remote.iter().map(|r| r.1.clone()).collect();
        if let [(from, packets)] = &sources[..] {
            self.send(at, from, *packets, local, &remote);
            return;
        }
        let result = local.first().cloned().unwrap_or_else(|| self.temporary(node, 0, size));
        let now = remote.len().min(limits::OP_CHANNELS - 1);
        let sinks: Vec<Value> = std::iter::once(result.clone()).chain(remote[..now].iter().cloned()).collect();
        let of_packets = sources.iter().filter(|s| s.1).count();
        if let ([a, b], 1) = (&sources[..], of_packets) {
            // Packets come first in the operation's sum, whose two operands may be swapped.
            let (own, arriving) = if a.1 { (b, a) } else { (a, b) };
            let name = if now > 0 { "respkt" } else { "repkt" };
            self.op(at, name, &[own.0.clone(), arriving.0.clone()], &sinks);
        } else {
            let mut places = Vec::new();
            for (n, (place, packets)) in sources.into_iter().enumerate() {
                if packets {
                    let to = self.temporary(node, narrow::<u32>(n) + 1, size);
                    self.op(at, "upkt", &[place], std::slice::from_ref(&to));
                    places.push(to);
                } else {
                    places.push(place);
                }
            }
            let is_ll = self.protocol == Protocol::LL;
            let (name, sinks, rest) = if now > 0 && !is_ll { ("res", &sinks[..], now) } else { ("re", &sinks[..1], 0) };
            self.op(at, name, &places, sinks);
            self.send(at, &result, false, local.get(1..).unwrap_or_default(), &remote[rest..]);
            return;
        }
        self.send(at, &result, false, local.get(1..).unwrap_or_default(), &remote[now..]);
    }

    /// Copies a place to local and remote ones.
    fn send(&mut self, at: At, from: &Value, packets: bool, local: &[Value], remote: &[Value]) {
        for to in local.iter().filter(|&to| packets || to != from) {
            self.op(at, if packets { "upkt" } else { "copy" }, std::slice::from_ref(from), std::slice::from_ref(to));
        }
        for some in remote.chunks(limits::OP_CHANNELS) {
            let name = match (self.protocol, packets) {
                (Protocol::Simple, _) => "put",
                (Protocol::LL, true) => "rppkt",
                (Protocol::LL, false) => "ppkt",
            };
            let sources = if packets { vec![from.clone()] } else { vec![from.clone(); some.len()] };
            self.op(at, name, &sources, some);
        }
    }
}
