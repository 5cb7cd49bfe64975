//! The operations of an exported plan that move and add data.

use unisono_base::{NodeId, narrow};

use super::{
    exchange::PortPut,
    export::Exporter,
    limits,
    plan::{ChannelType, Name, Slice},
    step::{At, Step},
};

/// Remote destinations: `near` in the same box, and `far` in other boxes with their GPUs. The third field lists the
/// thread blocks that read the destinations.
struct Remote<'a> {
    near: Vec<Slice>,
    far: Vec<(u32, Slice)>,
    readers: &'a [At],
}

impl Exporter<'_> {
    pub(super) fn op(&mut self, at: At, name: Name, sources: &[Slice], sinks: &[Slice]) {
        self.meet(at);
        let parts = self.switches.parts;
        (0..parts).for_each(|part| {
            self.push_pieces(at, Step { part: (part, parts), ..Step::moving(name, sources, sinks) });
        });
    }

    /// Adds an operation, or one for each chunk of its slices if the form requires single chunks
    /// ([`super::export::Form::pieces`]).
    pub(super) fn push_pieces(&mut self, at: At, step: Step) {
        let chunks = step.sinks.first().map(|sink| sink.size).filter(|_| self.form.pieces).unwrap_or(1);
        if chunks <= 1 {
            return self.push(at, step);
        }
        for chunk in 0..chunks {
            let mut piece = step.clone();
            for slice in piece.slices() {
                (slice.index, slice.size) = (slice.index + chunk, 1);
            }
            self.push(at, piece);
        }
    }

    /// Adds the operations that move the data of an instruction, and returns its puts on port channels.
    #[expect(clippy::too_many_arguments, reason = "the operands of an instruction")]
    pub(super) fn data(
        &mut self,
        at: At,
        node: NodeId,
        size: u32,
        sources: Vec<(Slice, bool)>,
        local: &[Slice],
        remote: &[(u32, Slice)],
        readers: &[At],
    ) -> Vec<PortPut> {
        let is_far = |to: u32| self.is_port(at.0, to);
        let far = remote.iter().copied().filter(|r| is_far(r.0)).collect();
        let near = remote.iter().filter(|r| !is_far(r.0)).map(|r| r.1).collect();
        let mut remote = Remote { near, far, readers };
        if let [(from, packets)] = sources[..] {
            return self.send(at, from, packets, local, &remote);
        }
        let result = local.first().copied().unwrap_or_else(|| self.temporary(node, 0, size));
        let now = remote.near.len().min(limits::OP_CHANNELS - 1);
        let sinks: Vec<Slice> = std::iter::once(result).chain(remote.near[..now].iter().copied()).collect();
        let of_packets = sources.iter().filter(|s| s.1).count();
        let mut sent = now;
        if let ([a, b], 1) = (&sources[..], of_packets) {
            // The executor adds the packets before its own data. With only two operands, the order does not change the
            // sum.
            let (own, arriving) = if a.1 { (b, a) } else { (a, b) };
            let name = if now > 0 { Name::Respkt } else { Name::Repkt };
            self.op(at, name, &[own.0, arriving.0], &sinks);
        } else {
            let mut places = Vec::new();
            for (n, (place, packets)) in sources.into_iter().enumerate() {
                if packets {
                    let to = self.temporary(node, narrow::<u32>(n) + 1, size);
                    self.op(at, Name::Upkt, &[place], &[to]);
                    places.push(to);
                } else {
                    places.push(place);
                }
            }
            let fused = now > 0 && !self.is_ll();
            let name = if fused { Name::Res } else { Name::Re };
            sent = if fused { now } else { 0 };
            self.op(at, name, &places, &sinks[..=sent]);
        }
        remote.near.drain(..sent);
        self.send(at, result, false, local.get(1..).unwrap_or_default(), &remote)
    }

    /// Copies a slice to local and remote destinations, and returns the puts on port channels.
    fn send(&mut self, at: At, from: Slice, packets: bool, local: &[Slice], remote: &Remote<'_>) -> Vec<PortPut> {
        for &to in local.iter().filter(|&&to| packets || to != from) {
            self.op(at, if packets { Name::Upkt } else { Name::Copy }, &[from], &[to]);
        }
        for some in remote.near.chunks(limits::OP_CHANNELS) {
            let name = match (self.is_ll(), packets) {
                (false, _) => Name::Put,
                (true, true) => Name::Rppkt,
                (true, false) => Name::Ppkt,
            };
            self.op(at, name, &vec![from; if packets { 1 } else { some.len() }], some);
        }
        let mut puts = Vec::new();
        for some in remote.far.chunks(limits::OP_CHANNELS) {
            self.meet(at);
            let reader = |to: u32| remote.readers.iter().find(|reader| reader.0 == to).copied().unwrap_or((to, 0));
            let (sinks, ends): (Vec<Slice>, Vec<At>) = some.iter().map(|&(to, sink)| (sink, reader(to))).unzip();
            puts.extend(sinks.iter().copied().zip(ends.iter().copied()));
            self.connect(at, &ends);
            let sources = vec![self.source_of_port(at.0, from); sinks.len()];
            self.push_pieces(at, Step { sources, sinks, ..Step::on(ChannelType::Port, Name::Put, ends) });
        }
        puts
    }
}
