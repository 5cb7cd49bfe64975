//! The operations of an exported plan that move and add data.

use serde_json::{Value, json};
use unisono_base::{NodeId, narrow};

use super::{
    assemble::slices,
    exchange::PortPut,
    export::{At, Exporter},
    limits,
};

/// Remote destinations in the same box, with what goes there, and those in others.
struct Remote<'a> {
    near: Vec<Value>,
    far: Vec<(u32, &'a Value)>,
    readers: &'a [At],
}

impl Exporter<'_> {
    pub(super) fn op(&mut self, at: At, name: &str, sources: &[Value], sinks: &[Value]) {
        self.meet(at);
        let mut op = json!({"name": name, "src_buff": sources, "dst_buff": sinks});
        if name.starts_with("re") || name == "glres" {
            op["reduce_op"] = json!("sum");
        }
        if sinks.iter().any(|s| s.get("buffer_id").is_some()) {
            op["channel_type"] = json!("memory");
        }
        if sinks.iter().any(|s| s.get("switch_channel_id").is_some()) {
            op["channel_type"] = json!("switch");
        }
        self.push_pieces(at, op);
    }

    /// Adds an operation, or one for each chunk of its slices.
    fn push_pieces(&mut self, at: At, op: Value) {
        let chunks = op["dst_buff"][0]["size"].as_u64().filter(|_| self.form.pieces).unwrap_or(1);
        if chunks <= 1 {
            return self.push(at, op);
        }
        for chunk in 0..chunks {
            let mut piece = op.clone();
            for slice in slices(&mut piece) {
                slice["index"] = json!(slice["index"].as_u64().unwrap_or(0) + chunk);
                slice["size"] = json!(1);
            }
            self.push(at, piece);
        }
    }

    /// The operations that move the data of an instruction; returns its puts on port channels.
    #[expect(clippy::too_many_arguments, reason = "the operands of an instruction")]
    pub(super) fn data(
        &mut self,
        at: At,
        node: NodeId,
        size: u32,
        sources: Vec<(Value, bool)>,
        local: &[Value],
        remote: &[(u32, Value)],
        readers: &[At],
    ) -> Vec<PortPut> {
        let is_far = |to: u32| self.is_port(at.0, to);
        let far = remote.iter().filter(|r| is_far(r.0)).map(|(to, sink)| (*to, sink)).collect();
        let near: Vec<Value> = remote.iter().filter(|r| !is_far(r.0)).map(|r| r.1.clone()).collect();
        let mut remote = Remote { near, far, readers };
        if let [(from, packets)] = &sources[..] {
            return self.send(at, from, *packets, local, &remote);
        }
        let result = local.first().cloned().unwrap_or_else(|| self.temporary(node, 0, size));
        let now = remote.near.len().min(limits::OP_CHANNELS - 1);
        let sinks: Vec<Value> = std::iter::once(result.clone()).chain(remote.near[..now].iter().cloned()).collect();
        let of_packets = sources.iter().filter(|s| s.1).count();
        let mut sent = now;
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
            let fused = now > 0 && !self.is_ll();
            let name = if fused { "res" } else { "re" };
            sent = if fused { now } else { 0 };
            self.op(at, name, &places, &sinks[..=sent]);
        }
        remote.near.drain(..sent);
        self.send(at, &result, false, local.get(1..).unwrap_or_default(), &remote)
    }

    /// Copies a place to local and remote ones.
    fn send(&mut self, at: At, from: &Value, packets: bool, local: &[Value], remote: &Remote<'_>) -> Vec<PortPut> {
        for to in local.iter().filter(|&to| packets || to != from) {
            self.op(at, if packets { "upkt" } else { "copy" }, std::slice::from_ref(from), std::slice::from_ref(to));
        }
        for some in remote.near.chunks(limits::OP_CHANNELS) {
            let name = match (self.is_ll(), packets) {
                (false, _) => "put",
                (true, true) => "rppkt",
                (true, false) => "ppkt",
            };
            let sources = if packets { vec![from.clone()] } else { vec![from.clone(); some.len()] };
            self.op(at, name, &sources, some);
        }
        let mut puts = Vec::new();
        for some in remote.far.chunks(limits::OP_CHANNELS) {
            self.meet(at);
            let first = puts.len();
            for &(to, sink) in some {
                let reader = remote.readers.iter().find(|reader| reader.0 == to);
                puts.push((sink.clone(), reader.copied().unwrap_or((to, 0))));
            }
            let channels: Vec<Value> = puts[first..].iter().map(|put| self.channel(at, put.1)).collect();
            let sinks: Vec<&Value> = puts[first..].iter().map(|put| &put.0).collect();
            let from = self.source_of_port(at.0, from);
            let from = vec![from; sinks.len()];
            let put = json!({"name": "put", "src_buff": from, "dst_buff": sinks, "channel_ids": channels, "channel_type": "port"});
            self.push_pieces(at, put);
        }
        puts
    }
}
