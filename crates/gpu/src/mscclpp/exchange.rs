//! Signals and waits of exported plans, and the requests to switches.

use std::{cmp::Reverse, collections::BTreeMap};

use unisono_base::{InstrId, narrow};

use super::{
    export::Exporter,
    limits,
    plan::{Buffer, ChannelType, Name, Slice},
    step::{At, Step},
};

/// A put on a port channel: its destination, and the thread block at the other end of the channel.
pub(super) type PortPut = (Slice, At);

fn pair(a: At, b: At) -> (At, At) {
    if a < b { (a, b) } else { (b, a) }
}

impl Exporter<'_> {
    /// Records the channels between the thread block `at` and the thread blocks `ends`.
    pub(super) fn connect(&mut self, at: At, ends: &[At]) {
        self.channels.extend(ends.iter().map(|&end| pair(at, end)));
    }

    pub(super) fn channel_type(is_port: bool) -> ChannelType {
        if is_port { ChannelType::Port } else { ChannelType::Memory }
    }

    /// Adds signals to `peers`, or waits for them. A peer that occurs several times is put into several operations,
    /// because an operation uses a channel once.
    fn sync(&mut self, at: At, name: Name, peers: Vec<At>) {
        let (ports, memory): (Vec<At>, Vec<At>) = peers.into_iter().partition(|peer| self.is_port(at.0, peer.0));
        for (mut peers, is_port) in [(memory, false), (ports, true)] {
            while !peers.is_empty() {
                let (mut now, mut later) = (Vec::new(), Vec::new());
                for peer in peers {
                    if now.contains(&peer) || now.len() == limits::OP_CHANNELS {
                        later.push(peer);
                    } else {
                        now.push(peer);
                    }
                }
                self.connect(at, &now);
                // Port channels do not distinguish relaxed signals.
                let name = match name {
                    Name::Rlxsignal if is_port => Name::Signal,
                    Name::Rlxwait if is_port => Name::Wait,
                    name => name,
                };
                self.push(at, Step::on(Self::channel_type(is_port), name, now));
                peers = later;
            }
        }
    }

    /// Makes each GPU signal its start to the GPUs that write to its memory. The writers wait for the signals.
    pub(super) fn start(&mut self) {
        let mut writers: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for &(stream, sink) in self.landing.keys() {
            writers.entry(sink.0).or_default().push(self.schedule.stream(stream).source.0);
        }
        // Only requests that store need this signal. Before a sum, each GPU of the group signals that its data are in
        // place, which implies that its kernel has started.
        for request in self.switches.requests.values().filter(|request| !request.adds) {
            let leader = request.leaders[0];
            let others = request.group.iter().filter(|&&gpu| gpu != leader);
            others.for_each(|&gpu| writers.entry(gpu).or_default().push(leader));
        }
        let both = |name: Name, from: &BTreeMap<u32, Vec<u32>>, made: &mut Self| {
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
        both(Name::Rlxsignal, &writers, self);
        both(Name::Rlxwait, &readers, self);
    }

    /// Waits for messages, given by sender and number, unless an earlier wait included them.
    pub(super) fn wait(&mut self, at: At, messages: Vec<(At, u32)>) {
        let mut needed = Vec::new();
        for (from, number) in messages {
            let waited = self.waited.entry((from, at)).or_default();
            (*waited..number).for_each(|_| needed.push(from));
            *waited = number.max(*waited);
        }
        if !needed.is_empty() {
            // Each wait of an operation is done by one thread. Channels with several waits come first, so that the same
            // thread does all of them.
            let count = |from: At| needed.iter().filter(|&&other| other == from).count();
            let mut counted: Vec<(usize, At)> = needed.iter().map(|&from| (count(from), from)).collect();
            counted.sort_by_key(|&(count, _)| Reverse(count));
            self.sync(at, Name::Wait, counted.into_iter().map(|(_, from)| from).collect());
            self.meet(at);
        }
    }

    /// Signals each thread block that reads the data of the instruction's puts. Puts on port channels are flushed
    /// before the signals if one of the signals is on a port channel on which no put was made; otherwise they are
    /// flushed after the signals.
    pub(super) fn signal(&mut self, id: InstrId, at: At, readers: &[At], puts: Vec<PortPut>) {
        let others = readers.iter().filter(|reader| self.is_port(at.0, reader.0));
        let is_on_its_own_channel = others.clone().all(|reader| puts.iter().any(|(_, on)| on == reader));
        let puts = if is_on_its_own_channel { puts } else { self.flush(at, puts) };
        if readers.is_empty() {
            return;
        }
        for &reader in readers {
            let sent = self.sent.entry((at, reader)).or_default();
            *sent += 1;
            self.messages.insert((id, at, reader), *sent);
        }
        self.meet(at);
        self.sync(at, Name::Signal, readers.to_vec());
        self.flush(at, puts);
    }

    fn flush(&mut self, at: At, puts: Vec<PortPut>) -> Vec<PortPut> {
        for some in puts.chunks(limits::OP_CHANNELS) {
            self.meet(at);
            let (sinks, ends): (Vec<Slice>, Vec<At>) = some.iter().copied().unzip();
            self.connect(at, &ends);
            self.push(at, Step { sinks, ..Step::on(ChannelType::Port, Name::Flush, ends) });
        }
        Vec::new()
    }

    /// Adds a leader's part of a request to a switch, after waits for the group's data.
    pub(super) fn request(&mut self, id: InstrId, leader: usize) {
        let at = self.blocks_of(id)[leader];
        let mut waits = Vec::new();
        for (stream, span) in self.flow.pops(self.schedule, id) {
            waits.extend(self.messages_of(stream, span, at));
        }
        self.wait(at, waits);
        let request = &self.switches.requests[&id];
        let (place, chunks, adds) = (request.place, request.chunks, request.adds);
        let group = self.switches.groups().iter().position(|group| *group == &request.group[..]).unwrap_or(0);
        let others: Vec<u32> = request.group.iter().copied().filter(|&gpu| gpu != at.0).collect();
        // The group's index is replaced by the index in the thread block's list when all channels are known.
        let there = Slice::behind_switch(narrow(group), place, chunks);
        let (name, from) =
            if adds { (Name::Glres, there) } else { (Name::Gstore, Slice::local(Buffer::Scratch, place, chunks)) };
        let part = (narrow(leader), narrow(request.leaders.len()));
        self.meet(at);
        self.push_pieces(at, Step { part, ..Step::moving(name, &[from], &[there]) });
        let readers = self.readers(id, at);
        let told = |gpu: u32| readers.iter().any(|reader| reader.0 == gpu);
        let untold: Vec<(u32, u32)> = others.into_iter().filter(|&gpu| !told(gpu)).map(|gpu| (at.0, gpu)).collect();
        self.untold.extend(untold);
        self.signal(id, at, &readers, Vec::new());
    }

    /// Adds the signals at the end of the plan. A leader signals each GPU whose memory its switch accessed and that
    /// does not read the result. With [`Form::answers`](super::export::Form::answers), a receiver of packets signals
    /// their senders.
    pub(super) fn end(&mut self) {
        let last = std::mem::take(&mut self.last);
        let at = |gpu: u32| (gpu, last[gpu as usize]);
        let mut pairs = std::mem::take(&mut self.untold);
        if self.form.answers {
            pairs.extend(self.landing.keys().map(|&(stream, sink)| (sink.0, self.schedule.stream(stream).source.0)));
        }
        let mut peers: [BTreeMap<u32, Vec<At>>; 2] = Default::default();
        for (from, to) in pairs {
            peers[0].entry(from).or_default().push(at(to));
            peers[1].entry(to).or_default().push(at(from));
        }
        let names = if self.form.answers { [Name::Rlxsignal, Name::Rlxwait] } else { [Name::Signal, Name::Wait] };
        for (name, peers) in names.into_iter().zip(peers) {
            for (gpu, peers) in peers {
                self.meet(at(gpu));
                self.sync(at(gpu), name, peers);
            }
        }
    }
}
