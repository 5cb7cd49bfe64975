//! Small plans for tests, which use every operation of the format.

use serde_json::{Value, json};

pub struct Writer {
    pub plan: Value,
}

fn position(list: &mut Value, found: impl Fn(&Value) -> bool, make: impl FnOnce() -> Value) -> usize {
    let list = list.as_array_mut().unwrap();
    list.iter().position(found).unwrap_or_else(|| {
        list.push(make());
        list.len() - 1
    })
}

pub fn local(buffer: &str, index: usize, size: usize) -> Value {
    json!({"type": buffer, "index": index, "size": size})
}

impl Writer {
    pub fn new(
        collective: &str,
        protocol: &str,
        in_place: bool,
        gpus: usize,
        blocks: usize,
        chunks: [usize; 3],
    ) -> Self {
        let block = |id: usize| json!({"id": id, "ops": [], "channels": [], "remote_buffer_refs": []});
        let gpu = |id: usize| {
            json!({"id": id, "input_chunks": chunks[0], "output_chunks": chunks[1], "scratch_chunks": chunks[2],
                "threadblocks": (0..blocks).map(block).collect::<Vec<_>>(), "channels": [], "remote_buffers": [], "semaphores": []})
        };
        let plan = json!({"name": "test", "collective": collective, "protocol": protocol, "inplace": in_place,
            "use_double_scratch_buffer": protocol == "LL", "max_message_size": 1 << 26,
            "gpus": (0..gpus).map(gpu).collect::<Vec<_>>()});
        Self { plan }
    }

    pub fn op(&mut self, gpu: usize, block: usize, op: Value) -> &mut Self {
        self.plan["gpus"][gpu]["threadblocks"][block]["ops"].as_array_mut().unwrap().push(op);
        self
    }

    pub fn nop(&mut self, gpu: usize, block: usize) -> &mut Self {
        self.op(gpu, block, json!({"name": "nop"}))
    }

    /// Returns the thread block's index of its channel of a type to a peer. It has one channel to each peer.
    pub fn channel(&mut self, gpu: usize, block: usize, kind: &str, peer: usize) -> usize {
        let tag = peer * 64 + block;
        let g = &mut self.plan["gpus"][gpu];
        let row = position(
            &mut g["channels"],
            |c| c["channel_type"] == kind,
            || json!({"channel_type": kind, "connected_to": [], "tags": []}),
        );
        let row = &mut g["channels"][row];
        let global = position(&mut row["tags"], |t| *t == tag, || json!(tag));
        if row["connected_to"].as_array().unwrap().len() == global {
            row["connected_to"].as_array_mut().unwrap().push(json!(peer));
        }
        let b = &mut g["threadblocks"][block];
        let row = position(
            &mut b["channels"],
            |c| c["channel_type"] == kind,
            || json!({"channel_type": kind, "channel_ids": []}),
        );
        position(&mut b["channels"][row]["channel_ids"], |id| *id == global, || json!(global))
    }

    /// Returns a slice of a peer's buffer.
    pub fn remote(&mut self, gpu: usize, block: usize, kind: &str, peer: usize, slice: &Value) -> Value {
        let g = &mut self.plan["gpus"][gpu];
        let buffer = &slice["type"];
        let is = |r: &Value| r["rank"] == peer && r["type"] == *buffer && r["access_channel_types"][0] == kind;
        let global = position(
            &mut g["remote_buffers"],
            is,
            || json!({"rank": peer, "type": buffer, "access_channel_types": [kind]}),
        );
        let refs = &mut g["threadblocks"][block]["remote_buffer_refs"];
        let row = position(
            refs,
            |r| r["access_channel_type"] == kind,
            || json!({"access_channel_type": kind, "remote_buffer_ids": []}),
        );
        let id = position(&mut refs[row]["remote_buffer_ids"], |id| *id == global, || json!(global));
        json!({"buffer_id": id, "index": slice["index"], "size": slice["size"]})
    }

    /// Returns a slice behind the switch of all GPUs.
    pub fn switched(&mut self, gpu: usize, block: usize, buffer: &str, index: usize, size: usize) -> Value {
        let ranks: Vec<usize> = (0..self.plan["gpus"].as_array().unwrap().len()).collect();
        let g = &mut self.plan["gpus"][gpu];
        let is = |c: &Value| c["channel_type"] == "switch" && c["buffer_type"] == buffer;
        let make =
            || json!({"channel_type": "switch", "buffer_type": buffer, "rank_groups": [{"size": 1, "ranks": ranks}]});
        position(&mut g["channels"], is, make);
        let b = &mut g["threadblocks"][block];
        let row = position(
            &mut b["channels"],
            |c| c["channel_type"] == "switch",
            || json!({"channel_type": "switch", "channel_ids": []}),
        );
        let id = position(&mut b["channels"][row]["channel_ids"], |id| *id == 0, || json!(0));
        json!({"switch_channel_id": id, "index": index, "size": size})
    }

    /// Adds a signal or a wait on the channels to some peers, between two meetings of the threads.
    pub fn sync(&mut self, gpu: usize, block: usize, name: &str, kind: &str, peers: &[usize]) -> &mut Self {
        let ids: Vec<usize> = peers.iter().map(|&p| self.channel(gpu, block, kind, p)).collect();
        self.nop(gpu, block);
        self.op(gpu, block, json!({"name": name, "channel_ids": ids, "channel_type": kind}));
        self.nop(gpu, block)
    }

    /// Signals and waits with all peers.
    pub fn meet(&mut self, relaxed: bool) -> &mut Self {
        let gpus = self.plan["gpus"].as_array().unwrap().len();
        let names = if relaxed { ["rlxsignal", "rlxwait"] } else { ["signal", "wait"] };
        for name in names {
            for gpu in 0..gpus {
                let peers: Vec<usize> = (0..gpus).filter(|&p| p != gpu).collect();
                self.sync(gpu, 0, name, "memory", &peers);
            }
        }
        self
    }
}

/// Puts to each peer's output, from the GPU's own part of an output in place.
fn allgather(n: usize, port: bool) -> Value {
    let mut w = Writer::new("allgather", "Simple", true, n, 1, [1, n, 0]);
    w.meet(true);
    let kind = if port { "port" } else { "memory" };
    for g in 0..n {
        for p in (0..n).filter(|&p| p != g) {
            let to = w.remote(g, 0, kind, p, &local("o", g, 1));
            let channel = w.channel(g, 0, kind, p);
            let name = if port { "pwsf" } else { "put" };
            w.op(g, 0, json!({"name": name, "src_buff": [local("o", g, 1)], "dst_buff": [to], "channel_ids": [channel], "channel_type": kind}));
        }
    }
    if port {
        for g in 0..n {
            (0..n).filter(|&p| p != g).for_each(|p| _ = w.sync(g, 0, "wait", "port", &[p]));
        }
    } else {
        w.meet(false);
    }
    w.plan
}

/// Puts on a port channel, a signal after them, and a wait for the peer's signal instead of a flush.
fn alltoall_port(n: usize) -> Value {
    let mut w = Writer::new("alltoall", "Simple", false, n, 1, [n, n, 0]);
    w.meet(true);
    for g in 0..n {
        w.op(g, 0, json!({"name": "copy", "src_buff": [local("i", g, 1)], "dst_buff": [local("o", g, 1)]}));
        for p in (0..n).filter(|&p| p != g) {
            let to = w.remote(g, 0, "port", p, &local("o", g, 1));
            let channel = w.channel(g, 0, "port", p);
            w.op(g, 0, json!({"name": "pws", "src_buff": [local("i", p, 1)], "dst_buff": [to], "channel_ids": [channel], "channel_type": "port"}));
        }
        (0..n).filter(|&p| p != g).for_each(|p| _ = w.sync(g, 0, "wait", "port", &[p]));
    }
    w.meet(true);
    w.plan
}

/// Packets to each peer's scratch memory, unpacked by a second thread block.
fn allgather_packets(n: usize) -> Value {
    let mut w = Writer::new("allgather", "LL", true, n, 2, [1, n, n]);
    for g in 0..n {
        for p in (0..n).filter(|&p| p != g) {
            let to = w.remote(g, 0, "memory", p, &local("s", g, 1));
            w.op(
                g,
                0,
                json!({"name": "ppkt", "src_buff": [local("o", g, 1)], "dst_buff": [to], "channel_type": "memory"}),
            );
            w.op(g, 1, json!({"name": "upkt", "src_buff": [local("s", p, 1)], "dst_buff": [local("o", p, 1)]}));
        }
    }
    w.plan
}

/// Packets that each GPU forwards along a ring.
fn ring_packets(n: usize) -> Value {
    let mut w = Writer::new("allgather", "LL", true, n, 1, [1, n, n]);
    for g in 0..n {
        w.op(g, 0, json!({"name": "cpkt", "src_buff": [local("o", g, 1)], "dst_buff": [local("s", g, 1)]}));
        for step in 0..n - 1 {
            let at = (g + n - step) % n;
            let to = w.remote(g, 0, "memory", (g + 1) % n, &local("s", at, 1));
            w.op(
                g,
                0,
                json!({"name": "rppkt", "src_buff": [local("s", at, 1)], "dst_buff": [to], "channel_type": "memory"}),
            );
            let next = (at + n - 1) % n;
            w.op(g, 0, json!({"name": "upkt", "src_buff": [local("s", next, 1)], "dst_buff": [local("o", next, 1)]}));
        }
    }
    w.plan
}

/// Each GPU reads its part of all inputs, adds these parts, and stores the sum to all GPUs.
fn allreduce_reads(n: usize) -> Value {
    let mut w = Writer::new("allreduce", "Simple", true, n, 1, [n, n, 0]);
    w.meet(true);
    for g in 0..n {
        let (mut from, mut to) = (vec![local("i", g, 1)], vec![local("i", g, 1)]);
        for p in (0..n).filter(|&p| p != g) {
            let slice = w.remote(g, 0, "memory", p, &local("i", g, 1));
            from.push(slice.clone());
            to.push(slice);
        }
        w.op(
            g,
            0,
            json!({"name": "rres", "src_buff": from, "dst_buff": to, "channel_type": "memory", "reduce_op": "sum"}),
        );
    }
    w.meet(false);
    w.plan
}

/// Puts to scratch memory, and a sum of local buffers that is sent.
fn allreduce_scratch(n: usize) -> Value {
    let mut w = Writer::new("allreduce", "Simple", false, n, 1, [n, n, n]);
    w.meet(true);
    for g in 0..n {
        for p in (0..n).filter(|&p| p != g) {
            let to = w.remote(g, 0, "memory", p, &local("s", g, 1));
            w.op(
                g,
                0,
                json!({"name": "put", "src_buff": [local("i", p, 1)], "dst_buff": [to], "channel_type": "memory"}),
            );
        }
    }
    w.meet(false);
    for g in 0..n {
        let others = (0..n).filter(|&p| p != g).map(|p| local("s", p, 1));
        let from: Vec<Value> = std::iter::once(local("i", g, 1)).chain(others).collect();
        let mut to = vec![local("o", g, 1)];
        (0..n).filter(|&p| p != g).for_each(|p| to.push(w.remote(g, 0, "memory", p, &local("o", g, 1))));
        w.op(
            g,
            0,
            json!({"name": "res", "src_buff": from, "dst_buff": to, "channel_type": "memory", "reduce_op": "sum"}),
        );
    }
    w.meet(false);
    w.plan
}

/// Packets reduced and sent on as packets.
fn allreduce_packets(n: usize) -> Value {
    let mut w = Writer::new("allreduce", "LL", true, n, 1, [n, n, 2 * n]);
    for g in 0..n {
        let peers = || (0..n).filter(|&p| p != g);
        for p in peers() {
            let to = w.remote(g, 0, "memory", p, &local("s", g, 1));
            w.op(
                g,
                0,
                json!({"name": "ppkt", "src_buff": [local("i", p, 1)], "dst_buff": [to], "channel_type": "memory"}),
            );
        }
        let from: Vec<Value> = std::iter::once(local("i", g, 1)).chain(peers().map(|p| local("s", p, 1))).collect();
        let mut to = vec![local("i", g, 1)];
        peers().for_each(|p| to.push(w.remote(g, 0, "memory", p, &local("s", n + g, 1))));
        w.op(
            g,
            0,
            json!({"name": "respkt", "src_buff": from, "dst_buff": to, "channel_type": "memory", "reduce_op": "sum"}),
        );
        w.nop(g, 0);
        peers().for_each(|p| {
            _ = w.op(g, 0, json!({"name": "upkt", "src_buff": [local("s", n + p, 1)], "dst_buff": [local("i", p, 1)]}));
        });
    }
    w.plan
}

/// A chain of packets in a reduction: sums are stored as packets, and as data at the end.
fn reduce_packets(n: usize) -> Value {
    let mut w = Writer::new("allreduce", "LL", false, n, 1, [1, 1, 3]);
    let last = n - 1;
    for g in 0..n {
        let next = (g + 1) % n;
        let to = if g == last { vec![] } else { vec![w.remote(g, 0, "memory", next, &local("s", 0, 1))] };
        if g == 0 {
            w.op(
                0,
                0,
                json!({"name": "ppkt", "src_buff": [local("i", 0, 1)], "dst_buff": to, "channel_type": "memory"}),
            );
        } else {
            let name = if g == last { "recpkt" } else { "respkt" };
            let copy = if g == last { vec![local("s", 1, 1)] } else { vec![] };
            let to: Vec<Value> = std::iter::once(local("o", 0, 1)).chain(copy).chain(to).collect();
            let from = [local("i", 0, 1), local("s", 0, 1)];
            w.op(
                g,
                0,
                json!({"name": name, "src_buff": from, "dst_buff": to, "channel_type": "memory", "reduce_op": "sum"}),
            );
        }
    }
    // The last GPU has the sum, also as packets, and sends it around the ring.
    for g in (0..n).map(|k| (last + k) % n) {
        let next = (g + 1) % n;
        let own = if g == last { 1 } else { 2 };
        if next != last {
            let to = w.remote(g, 0, "memory", next, &local("s", 2, 1));
            w.op(
                g,
                0,
                json!({"name": "rppkt", "src_buff": [local("s", own, 1)], "dst_buff": [to], "channel_type": "memory"}),
            );
        }
        if g != last {
            w.nop(g, 0);
            w.op(g, 0, json!({"name": "upkt", "src_buff": [local("s", 2, 1)], "dst_buff": [local("o", 0, 1)]}));
        }
    }
    w.plan
}

/// Parts that are fetched, then added to the GPU's own part.
fn reduce_scatter(n: usize) -> Value {
    let mut w = Writer::new("reducescatter", "Simple", false, n, 1, [n, 1, n]);
    w.meet(true);
    for g in 0..n {
        let others: Vec<usize> = (0..n).filter(|&p| p != g).collect();
        let first = w.remote(g, 0, "memory", others[0], &local("i", g, 1));
        let read = json!({"name": "rre", "src_buff": [local("i", g, 1), first], "dst_buff": [local("s", g, 1)], "channel_type": "memory", "reduce_op": "sum"});
        w.op(g, 0, read);
        let mut from = vec![local("s", g, 1)];
        for &p in &others[1..] {
            let to = w.remote(g, 0, "memory", p, &local("s", g, 1));
            drop(to);
            let source = w.remote(g, 0, "memory", p, &local("i", g, 1));
            // A get has a single index for its source and its destination.
            let index = source["index"].clone();
            let slot = json!({"type": "s", "index": index, "size": 1});
            w.nop(g, 0);
            w.op(g, 0, json!({"name": "re", "src_buff": from, "dst_buff": [local("o", 0, 1)], "reduce_op": "sum"}));
            w.nop(g, 0);
            w.op(
                g,
                0,
                json!({"name": "get", "src_buff": [source], "dst_buff": [slot.clone()], "channel_type": "memory"}),
            );
            from = vec![local("o", 0, 1), slot];
        }
        w.nop(g, 0);
        let last = if from.len() == 1 {
            json!({"name": "copy", "src_buff": from, "dst_buff": [local("o", 0, 1)]})
        } else {
            json!({"name": "re", "src_buff": from, "dst_buff": [local("o", 0, 1)], "reduce_op": "sum"})
        };
        w.op(g, 0, last);
    }
    w.meet(true);
    w.plan
}

/// The switch adds and stores. Each GPU requests this operation for its part.
fn allreduce_switch(n: usize) -> Value {
    let mut w = Writer::new("allreduce", "Simple", true, n, 1, [n, n, 0]);
    w.meet(true);
    for g in 0..n {
        let slice = w.switched(g, 0, "i", g, 1);
        w.op(g, 0, json!({"name": "glres", "src_buff": [slice], "dst_buff": [slice], "channel_type": "switch", "reduce_op": "sum"}));
    }
    w.meet(false);
    w.plan
}

/// The switch multicasts data, or packets.
fn allgather_switch(n: usize, packets: bool) -> Value {
    let mut w = Writer::new("allgather", if packets { "LL" } else { "Simple" }, true, n, 1, [1, n, n]);
    if !packets {
        w.meet(true);
    }
    for g in 0..n {
        if packets {
            w.op(g, 0, json!({"name": "cpkt", "src_buff": [local("o", g, 1)], "dst_buff": [local("s", g, 1)]}));
        }
        let to = w.switched(g, 0, if packets { "s" } else { "o" }, g, 1);
        let (name, from) = if packets { ("gstorepkt", local("s", g, 1)) } else { ("gstore", local("o", g, 1)) };
        w.op(g, 0, json!({"name": name, "src_buff": [from], "dst_buff": [to], "channel_type": "switch"}));
        for p in (0..n).filter(|&p| packets && p != g) {
            w.op(g, 0, json!({"name": "upkt", "src_buff": [local("s", p, 1)], "dst_buff": [local("o", p, 1)]}));
        }
    }
    if !packets {
        w.meet(false);
    }
    w.plan
}

/// Pipelines of two thread blocks with a semaphore: one block puts, the other waits and copies.
fn alltoall_pipeline(n: usize) -> Value {
    let mut w = Writer::new("alltoall", "Simple", true, n, 2, [n, n, n]);
    w.meet(true);
    for g in 0..n {
        w.plan["gpus"][g]["semaphores"] = json!([{"init_value": 0}]);
        let (mut puts, mut copies) = (vec![], vec![]);
        let peers: Vec<usize> = (0..n).filter(|&p| p != g).collect();
        for &p in &peers {
            let to = w.remote(g, 0, "memory", p, &local("s", g, 1));
            puts.push(
                json!({"name": "put", "src_buff": [local("i", p, 1)], "dst_buff": [to], "channel_type": "memory"}),
            );
        }
        let ids =
            |w: &mut Writer, block| -> Vec<usize> { peers.iter().map(|&p| w.channel(g, block, "memory", p)).collect() };
        let (signals, waits) = (ids(&mut w, 0), ids(&mut w, 0));
        puts.push(json!({"name": "nop"}));
        puts.push(json!({"name": "signal", "channel_ids": signals, "channel_type": "memory"}));
        puts.push(json!({"name": "wait", "channel_ids": waits, "channel_type": "memory"}));
        puts.push(json!({"name": "nop"}));
        puts.push(json!({"name": "sem_release", "semaphore_ids": [0]}));
        copies.push(json!({"name": "sem_acquire", "semaphore_ids": [0]}));
        copies.push(json!({"name": "nop"}));
        for &p in &peers {
            copies.push(json!({"name": "copy", "src_buff": [local("s", p, 1)], "dst_buff": [local("i", p, 1)]}));
        }
        for (block, ops) in [(0, puts), (1, copies)] {
            w.op(
                g,
                block,
                json!({"name": "pipeline", "iter_context": {"unit_size": 4096, "num_chunks": 1}, "ops": ops}),
            );
        }
    }
    w.plan
}

/// Three thread blocks share each put, and one of them signals after a barrier.
fn allgather_group(n: usize) -> Value {
    let mut w = Writer::new("allgather", "Simple", false, n, 3, [1, n, 0]);
    w.meet(true);
    let barrier = json!({"name": "barrier", "barrier_id": 0, "num_threadblocks": 3});
    for g in 0..n {
        (0..3).for_each(|b| _ = w.op(g, b, barrier.clone()));
        for b in 0..3 {
            let group = json!({"tb_id": b, "tbg_size": 3});
            for p in 0..n {
                if p == g {
                    w.op(g, b, json!({"name": "copy", "src_buff": [local("i", 0, 1)], "dst_buff": [local("o", g, 1)], "tbg_info": group}));
                } else {
                    let to = w.remote(g, b, "memory", p, &local("o", g, 1));
                    w.op(g, b, json!({"name": "put", "src_buff": [local("i", 0, 1)], "dst_buff": [to], "channel_type": "memory", "tbg_info": group}));
                }
            }
            w.op(g, b, barrier.clone());
        }
    }
    w.meet(false);
    w.plan
}

/// Returns all plans for `n` GPUs, with their names, and the number of grains of a chunk.
pub fn all(n: usize) -> Vec<(&'static str, Value, usize)> {
    let mut plans = vec![
        ("allgather", allgather(n, false), 1),
        ("allgather port", allgather(n, true), 1),
        ("alltoall port", alltoall_port(n), 1),
        ("allgather packets", allgather_packets(n), 1),
        ("ring packets", ring_packets(n), 1),
        ("allreduce reads", allreduce_reads(n), 1),
        ("allreduce scratch", allreduce_scratch(n), 1),
        ("allreduce packets", allreduce_packets(n), 1),
        ("reduce packets", reduce_packets(n), 1),
        ("reduce-scatter", reduce_scatter(n), 1),
        ("allreduce switch", allreduce_switch(n), 1),
        ("allgather switch", allgather_switch(n, false), 1),
        ("allgather switch packets", allgather_switch(n, true), 1),
        ("alltoall pipeline", alltoall_pipeline(n), 2),
        ("allgather group", allgather_group(n), 3),
    ];
    // Unless the number of chunks is a power of two, the second half of scratch memory needs this alignment.
    if !n.is_power_of_two() {
        plans.iter_mut().for_each(|(_, plan, _)| plan["buffer_alignment"] = json!(32));
    }
    plans
}
