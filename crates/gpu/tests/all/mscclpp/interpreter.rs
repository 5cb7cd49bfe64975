//! A second implementation of the format, which shares no code with the crate: it runs the JSON itself with data.
//!
//! A thread block begins its operations in order. An operation that moves data creates one transfer for each grain,
//! which completes at a random later time, at the latest when the threads meet (`nop`, `barrier`). A put on a port
//! channel completes before a later signal or flush on the channel, if both have the same thread or the threads met in
//! between. A relaxed signal counts as a strong one. A packet is readable once it has been written in the launch of its
//! reader. A GPU starts and ends each launch at random times. Outside of launches, its input and output contain data
//! that no other GPU may use. Scratch memory, packets, signals and semaphores keep their state between launches.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;

type Buffers = BTreeMap<char, Vec<u64>>;

/// The memory of each GPU at the end of each launch, by buffer, or the reason why the run did not end.
pub type Outcome = Result<Vec<Vec<Buffers>>, String>;

type Place = (usize, char, usize);

#[derive(Clone, Debug)]
struct Transfer {
    block: usize,
    reads: Vec<Place>,
    writes: Vec<Place>,
    /// The end of a port channel, the thread, and the number of meetings of the thread block before the transfer.
    port: Option<(usize, usize, usize)>,
    launch: usize,
}

pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

struct Block {
    gpu: usize,
    /// Operations, each with its window of grains in a pipeline.
    ops: Vec<(Value, Option<(usize, usize)>)>,
    channels: BTreeMap<String, Vec<usize>>,
    remote: BTreeMap<String, Vec<usize>>,
    at: usize,
    waiting: Vec<usize>,
    arrived: bool,
    /// The number of meetings of the block's threads.
    met: usize,
}

struct Machine<'a> {
    plan: &'a Value,
    grains: usize,
    memory: Vec<BTreeMap<char, Vec<u64>>>,
    /// The launch that wrote each packet, and its value.
    packets: Vec<Vec<Option<(usize, u64)>>>,
    blocks: Vec<Block>,
    flying: Vec<Transfer>,
    /// Signals that a port channel delivers after earlier transfers.
    queued: VecDeque<(usize, Vec<usize>)>,
    ends: Vec<(usize, bool, usize, Option<usize>)>,
    count: Vec<u64>,
    semaphores: BTreeMap<(usize, usize), i64>,
    numbered: Vec<usize>,
    next: usize,
    /// The memory of each GPU before each launch, the last launch first.
    fresh: Vec<Vec<Buffers>>,
    /// The memory of each GPU after each launch.
    ended: Vec<Vec<Buffers>>,
    running: Vec<bool>,
}

fn number(v: &Value, key: &str) -> usize {
    v[key].as_u64().unwrap_or(0) as usize
}

fn list<'a>(v: &'a Value, key: &str) -> &'a [Value] {
    v[key].as_array().map_or(&[], Vec::as_slice)
}

fn numbers(v: &Value, key: &str) -> Vec<usize> {
    list(v, key).iter().map(|n| n.as_u64().unwrap() as usize).collect()
}

/// Runs a plan whose chunks have `grains` grains, with one element a grain.
pub fn run(
    plan: &Value,
    grains: usize,
    launches: usize,
    input: impl Fn(usize, usize, usize) -> u64,
    dice: &mut Dice,
) -> Outcome {
    let mut m = Machine::new(plan, grains, launches, input);
    loop {
        let can: Vec<usize> = (0..m.blocks.len()).filter(|&b| m.ready(b)).collect();
        let landing: Vec<usize> = (0..m.flying.len()).filter(|&t| m.lands(t)).collect();
        let queue: Vec<usize> =
            (0..m.queued.len()).filter(|&q| m.queued[q].1.iter().all(|t| !m.numbered.contains(t))).collect();
        let gpus = 0..m.memory.len();
        let waiting: Vec<usize> = gpus.clone().filter(|&g| !m.running[g] && !m.fresh[g].is_empty()).collect();
        let over: Vec<usize> = gpus.filter(|&g| m.running[g] && m.is_over(g)).collect();
        let choices = can.len() + landing.len() + queue.len();
        let all = choices + waiting.len() + over.len();
        if all == 0 {
            break;
        }
        let pick = dice.roll(all);
        if pick >= choices + waiting.len() {
            m.end_gpu(over[pick - choices - waiting.len()]);
        } else if pick >= choices {
            m.start_gpu(waiting[pick - choices]);
        } else if pick < can.len() {
            m.step(can[pick])?;
        } else if pick < can.len() + landing.len() {
            m.land(landing[pick - can.len()]);
        } else if let Some((end, _)) = m.queued.remove(queue[pick - can.len() - landing.len()]) {
            m.count[end] += 1;
        }
    }
    match m.blocks.iter().find(|b| b.at < b.ops.len()) {
        Some(b) => Err(format!("gpu {} is stuck at operation {}", b.gpu, b.at)),
        None if m.count.iter().any(|&c| c > 0) => Err("signals are left over".to_owned()),
        None if m.ended.iter().any(|e| e.len() < launches) => Err("a kernel does not end".to_owned()),
        None => Ok((0..launches).map(|l| m.ended.iter().map(|e| e[l].clone()).collect()).collect()),
    }
}

impl<'a> Machine<'a> {
    fn new(plan: &'a Value, grains: usize, launches: usize, input: impl Fn(usize, usize, usize) -> u64) -> Self {
        let gpus = list(plan, "gpus");
        let (mut memory, mut packets, mut blocks, mut ends) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut semaphores = BTreeMap::new();
        let (in_place, collective) = (plan["inplace"] == true, plan["collective"].as_str().unwrap());
        let halves = if plan["use_double_scratch_buffer"] == true { 2 } else { 1 };
        for (g, gpu) in gpus.iter().enumerate() {
            let length = |key| number(gpu, key) * grains;
            let given = |launch: usize| {
                let data: Vec<u64> = (0..length("input_chunks")).map(|k| input(launch, g, k)).collect();
                let mut output = vec![u64::MAX; length("output_chunks")];
                if in_place && collective != "reducescatter" {
                    let shift = if collective == "allgather" { g * data.len() } else { 0 };
                    output[shift..shift + data.len()].copy_from_slice(&data);
                }
                Buffers::from([('i', data), ('o', output)])
            };
            let mut all: Vec<Buffers> = (0..launches).rev().map(given).collect();
            if let Some(first) = all.last_mut() {
                first.insert('s', vec![u64::MAX; 2 * halves * length("scratch_chunks")]);
            }
            memory.push(all);
            let widest = gpus.iter().map(|gpu| number(gpu, "scratch_chunks")).max().unwrap_or(0);
            packets.push(vec![None; halves * widest * grains]);
            for (n, s) in list(gpu, "semaphores").iter().enumerate() {
                semaphores.insert((g, n), s["init_value"].as_i64().unwrap());
            }
            for kind in ["memory", "port"] {
                let of_kind = list(gpu, "channels").iter().filter(|c| c["channel_type"] == kind);
                for peer in of_kind.flat_map(|c| numbers(c, "connected_to")) {
                    ends.push((g, kind == "port", peer, None));
                }
            }
            for block in list(gpu, "threadblocks") {
                let mut ops = Vec::new();
                for op in list(block, "ops") {
                    if op["name"] == "pipeline" {
                        let turns = number(&op["iter_context"], "num_chunks") * grains;
                        (0..turns).for_each(|t| ops.extend(list(op, "ops").iter().map(|o| (o.clone(), Some((t, 1))))));
                    } else {
                        ops.push((op.clone(), None));
                    }
                }
                let by = |rows: &str, key: &str, ids: &str| {
                    let mut all: BTreeMap<String, Vec<usize>> = BTreeMap::new();
                    for row in list(block, rows) {
                        all.entry(row[key].as_str().unwrap().to_owned()).or_default().extend(numbers(row, ids));
                    }
                    all
                };
                let channels = by("channels", "channel_type", "channel_ids");
                let remote = by("remote_buffer_refs", "access_channel_type", "remote_buffer_ids");
                blocks.push(Block {
                    gpu: g,
                    ops,
                    channels,
                    remote,
                    at: 0,
                    waiting: Vec::new(),
                    arrived: false,
                    met: 0,
                });
            }
        }
        for n in 0..ends.len() {
            let (gpu, port, peer, _) = ends[n];
            let rank = ends[..n].iter().filter(|e| (e.0, e.1, e.2) == (gpu, port, peer)).count();
            let mut back = (0..ends.len()).filter(|&k| (ends[k].0, ends[k].1, ends[k].2) == (peer, port, gpu));
            ends[n].3 = back.nth(rank);
        }
        let count = vec![0; ends.len()];
        let (flying, queued, numbered) = (Vec::new(), VecDeque::new(), Vec::new());
        let unused = |all: &Vec<Buffers>| -> Buffers {
            all.last().into_iter().flatten().map(|(&b, v)| (b, vec![u64::MAX - 7; v.len()])).collect()
        };
        let (ended, running) = (vec![Vec::new(); memory.len()], vec![false; memory.len()]);
        let fresh = memory.clone();
        let memory = memory.iter().map(unused).collect();
        let next = 0;
        Self {
            plan,
            grains,
            memory,
            packets,
            blocks,
            flying,
            queued,
            ends,
            count,
            semaphores,
            numbered,
            next,
            fresh,
            ended,
            running,
        }
    }

    /// Returns whether all thread blocks of a GPU are done, except for transfers of port channels.
    fn is_over(&self, gpu: usize) -> bool {
        let done = |b: &Block| b.gpu != gpu || (b.at == b.ops.len() && self.is_flushed(b));
        self.blocks.iter().all(done) && self.flying.iter().all(|t| self.blocks[t.block].gpu != gpu || t.port.is_some())
    }

    /// Ends the kernel of a GPU. Its program then overwrites input and output.
    fn end_gpu(&mut self, gpu: usize) {
        self.running[gpu] = false;
        self.ended[gpu].push(self.memory[gpu].clone());
        let given = self.memory[gpu].iter_mut().filter(|(buffer, _)| **buffer != 's');
        given.for_each(|(_, v)| v.fill(u64::MAX - 9));
    }

    /// Starts the kernel of a GPU with the buffers that its program has written.
    fn start_gpu(&mut self, gpu: usize) {
        self.running[gpu] = true;
        let given = self.fresh[gpu].pop().unwrap();
        self.memory[gpu].extend(given);
        for block in self.blocks.iter_mut().filter(|b| b.gpu == gpu) {
            (block.at, block.met) = (0, block.met + 1);
        }
    }

    /// Returns the number of a GPU's current launch, from 1.
    fn launch(&self, gpu: usize) -> usize {
        self.ended[gpu].len() + 1
    }

    /// Returns whether a GPU uses the second half of scratch memory.
    fn is_shifted(&self, gpu: usize) -> bool {
        self.plan["use_double_scratch_buffer"] == true && self.launch(gpu).is_multiple_of(2)
    }

    fn end(&self, b: usize, kind: &str, local: usize) -> usize {
        let block = &self.blocks[b];
        let global = block.channels[kind][local];
        let mut mine =
            (0..self.ends.len()).filter(|&e| (self.ends[e].0, self.ends[e].1) == (block.gpu, kind == "port"));
        mine.nth(global).unwrap()
    }

    fn ends_of(&self, b: usize, op: &Value) -> Vec<usize> {
        let kind = op["channel_type"].as_str().unwrap_or("memory");
        numbers(op, "channel_ids").into_iter().map(|id| self.end(b, kind, id)).collect()
    }

    fn ready(&self, b: usize) -> bool {
        let block = &self.blocks[b];
        let Some((op, _)) = block.ops.get(block.at).filter(|_| self.running[block.gpu]) else { return false };
        let mine = || self.flying.iter().all(|t| t.block != b || t.port.is_some());
        let flushed = || self.is_flushed(block);
        match op["name"].as_str().unwrap() {
            "nop" => mine() && flushed(),
            "barrier" => !block.arrived && mine() && flushed(),
            "wait" | "rlxwait" => flushed() && self.ends_of(b, op).iter().all(|&e| self.count[e] > 0),
            "sem_acquire" => {
                flushed() && numbers(op, "semaphore_ids").iter().all(|&s| self.semaphores[&(block.gpu, s)] > 0)
            }
            "signal" | "rlxsignal" | "sem_release" => flushed(),
            // Threads that do not flush continue before their transfers complete.
            _ => true,
        }
    }

    /// Returns whether the puts that a thread block flushes have completed.
    fn is_flushed(&self, block: &Block) -> bool {
        block.waiting.iter().all(|t| !self.numbered.contains(t))
    }

    fn lands(&self, t: usize) -> bool {
        let launch = self.flying[t].launch;
        let is_written = |p: &Place| self.packets[p.0].get(p.2).is_some_and(|p| p.is_some_and(|p| p.0 == launch));
        self.flying[t].reads.iter().all(|p| p.1 != 'p' || is_written(p))
    }

    fn land(&mut self, t: usize) {
        let transfer = self.flying.remove(t);
        self.numbered.remove(t);
        let read = |p: &Place| if p.1 == 'p' { self.packets[p.0][p.2].unwrap().1 } else { self.memory[p.0][&p.1][p.2] };
        let value = transfer.reads.iter().map(read).fold(0, u64::wrapping_add);
        for (gpu, buffer, at) in transfer.writes {
            if buffer == 'p' {
                self.packets[gpu][at] = Some((transfer.launch, value));
            } else {
                self.memory[gpu].get_mut(&buffer).unwrap()[at] = value;
            }
        }
    }

    fn step(&mut self, b: usize) -> Result<(), String> {
        let (op, window) = self.blocks[b].ops[self.blocks[b].at].clone();
        let gpu = self.blocks[b].gpu;
        let name = op["name"].as_str().unwrap().to_owned();
        if name == "barrier" {
            self.blocks[b].arrived = true;
            let id = number(&op, "barrier_id");
            let here = |x: &Block| x.gpu == gpu && x.arrived && number(&x.ops[x.at].0, "barrier_id") == id;
            if self.blocks.iter().filter(|x| here(x)).count() == number(&op, "num_threadblocks") {
                for x in self.blocks.iter_mut().filter(|x| here(x)) {
                    (x.arrived, x.at, x.met) = (false, x.at + 1, x.met + 1);
                }
            }
            return Ok(());
        }
        match name.as_str() {
            "signal" | "rlxsignal" => {
                for (thread, end) in self.ends_of(b, &op).into_iter().enumerate() {
                    self.signal(b, end, thread)?;
                }
            }
            "wait" | "rlxwait" => self.ends_of(b, &op).into_iter().for_each(|e| self.count[e] -= 1),
            "sem_acquire" | "sem_release" => {
                for s in numbers(&op, "semaphore_ids") {
                    *self.semaphores.get_mut(&(gpu, s)).unwrap() += if name == "sem_release" { 1 } else { -1 };
                }
            }
            "nop" => self.blocks[b].met += 1,
            "flush" => {
                for (thread, end) in self.ends_of(b, &op).into_iter().take(list(&op, "dst_buff").len()).enumerate() {
                    let before = self.before(b, end, thread);
                    self.blocks[b].waiting.extend(before);
                }
            }
            _ => self.issue(b, &op, &name, window)?,
        }
        self.blocks[b].at += 1;
        Ok(())
    }

    /// Returns the puts of a thread block on a port channel that precede the next operation of `thread` on the channel.
    fn before(&self, b: usize, end: usize, thread: usize) -> Vec<usize> {
        let met = self.blocks[b].met;
        let is_before =
            |t: &Transfer| t.block == b && t.port.is_some_and(|p| p.0 == end && (p.1 == thread || p.2 < met));
        self.flying.iter().zip(&self.numbered).filter(|(t, _)| is_before(t)).map(|(_, &n)| n).collect()
    }

    fn signal(&mut self, b: usize, end: usize, thread: usize) -> Result<(), String> {
        let peer = self.ends[end].3.ok_or("a signal goes nowhere")?;
        let before = self.before(b, end, thread);
        if self.ends[end].1 {
            self.queued.push_back((peer, before));
        } else {
            self.count[peer] += 1;
        }
        Ok(())
    }

    /// Returns the grains of a slice, each on all GPUs that the slice refers to.
    fn places(
        &self,
        b: usize,
        op: &Value,
        slice: &Value,
        packets: bool,
        window: Option<(usize, usize)>,
    ) -> Vec<Vec<Place>> {
        let block = &self.blocks[b];
        let kind = op["channel_type"].as_str().unwrap_or("memory");
        let letter = |v: &Value| v.as_str().unwrap().chars().next().unwrap();
        let (gpus, buffer) = if let Some(id) = slice["buffer_id"].as_u64() {
            let remote = &self.plan["gpus"][block.gpu]["remote_buffers"][block.remote[kind][id as usize]];
            (vec![number(remote, "rank")], letter(&remote["type"]))
        } else if let Some(id) = slice["switch_channel_id"].as_u64() {
            let global = block.channels["switch"][id as usize];
            let of_kind =
                list(&self.plan["gpus"][block.gpu], "channels").iter().filter(|c| c["channel_type"] == "switch");
            let (buffer, ranks) = of_kind
                .flat_map(|c| list(c, "rank_groups").iter().map(|g| (letter(&c["buffer_type"]), numbers(g, "ranks"))))
                .nth(global)
                .unwrap();
            (ranks, buffer)
        } else {
            (vec![block.gpu], letter(&slice["type"]))
        };
        let all = number(slice, "size") * self.grains;
        let (tb, of) = if op["tbg_info"].is_null() {
            (0, 1)
        } else {
            (number(&op["tbg_info"], "tb_id"), number(&op["tbg_info"], "tbg_size"))
        };
        let share = |n: usize| (0..n).map(|k| all / of + usize::from(k < all % of)).sum::<usize>();
        let (mut from, mut to) = (share(tb), share(tb + 1));
        // Operations with packets move the whole slice in each iteration of a pipeline.
        if let Some((at, unit)) = window.filter(|_| !op["name"].as_str().unwrap().ends_with("pkt")) {
            from += at;
            to = to.min(from + unit);
        }
        // A GPU derives the second half from the size of its own scratch memory, even in that of other GPUs.
        let half = number(&self.plan["gpus"][block.gpu], "scratch_chunks") * self.grains;
        let is_local = gpus == [block.gpu] && slice["type"].is_string() && op["channel_type"] != "port";
        let shift = match (self.is_shifted(block.gpu), packets, buffer == 's' && is_local) {
            (true, true, _) => half,
            (true, _, true) => 2 * half,
            _ => 0,
        };
        let first = number(slice, "index") * self.grains + shift;
        (from..to)
            .map(|k| gpus.iter().map(|&g| self.alias(g, if packets { 'p' } else { buffer }, first + k)).collect())
            .collect()
    }

    /// Returns the address of a grain in memory: in place, input and output are one buffer.
    fn alias(&self, gpu: usize, buffer: char, at: usize) -> Place {
        let collective = self.plan["collective"].as_str().unwrap();
        let chunks = |key| number(&self.plan["gpus"][gpu], key) * self.grains;
        match (self.plan["inplace"] == true, collective, buffer) {
            (true, "reducescatter", 'o') => (gpu, 'i', at + gpu * chunks("output_chunks")),
            (true, "allgather", 'i') => (gpu, 'o', at + gpu * chunks("input_chunks")),
            (true, c, 'i') if c != "reducescatter" => (gpu, 'o', at),
            _ => (gpu, buffer, at),
        }
    }

    fn issue(&mut self, b: usize, op: &Value, name: &str, window: Option<(usize, usize)>) -> Result<(), String> {
        let (src, dst) = (list(op, "src_buff"), list(op, "dst_buff"));
        let p = |slice: &Value, packets: bool| self.places(b, op, slice, packets, window);
        let packet_in = |n: usize| {
            matches!((name, n), ("upkt" | "rppkt" | "gstorepkt", _) | ("repkt" | "respkt" | "recpkt" | "recspkt", 1..))
        };
        let packet_out = |n: usize| {
            matches!((name, n), ("cpkt" | "ppkt" | "rppkt" | "gstorepkt", _) | ("respkt" | "recpkt" | "recspkt", 1..))
        };
        let ins: Vec<_> = src.iter().enumerate().map(|(n, s)| p(s, packet_in(n))).collect();
        let outs: Vec<_> = dst.iter().enumerate().map(|(n, s)| p(s, packet_out(n))).collect();
        let port = op["channel_type"] == "port";
        let pairwise = matches!(name, "put" | "pws" | "pwsf" | "ppkt" | "get");
        let launch = self.launch(self.blocks[b].gpu);
        let mut made = Vec::new();
        if pairwise || name == "rppkt" {
            for (n, out) in outs.iter().enumerate() {
                let end = port.then(|| (self.ends_of(b, op)[n], n, self.blocks[b].met));
                for (k, writes) in out.iter().enumerate() {
                    let reads = ins[if pairwise { n } else { 0 }][k].clone();
                    made.push((end, Transfer { block: b, reads, writes: writes.clone(), port: end, launch }));
                }
            }
        } else {
            for k in 0..outs.first().map_or(0, Vec::len) {
                let reads = ins.iter().flat_map(|i| i[k].clone()).collect();
                let writes = outs.iter().flat_map(|o| o[k].clone()).collect();
                made.push((None, Transfer { block: b, reads, writes, port: None, launch }));
            }
        }
        let ends: Vec<usize> = if matches!(name, "pws" | "pwsf") { self.ends_of(b, op) } else { Vec::new() };
        for (_, transfer) in made {
            self.flying.push(transfer);
            self.numbered.push(self.next);
            if name == "pwsf" {
                self.blocks[b].waiting.push(self.next);
            }
            self.next += 1;
        }
        for (thread, end) in ends.into_iter().enumerate() {
            self.signal(b, end, thread)?;
        }
        Ok(())
    }
}
