//! Nodes that are switches, as switch channels. A GPU asks the switch to add the data of all GPUs of a group at one
//! place of scratch memory and to store the sum there for all of them, or to store its own data there.
//!
//! If all n GPUs of a group get a sum, each of them asks for 1/n of it, as in NCCL's NVLS and in
//! `allreduce_nvls_zero_copy` of MSCCL++: then 1 + 1/n of the sum crosses each link. One GPU that asked for all of it
//! would have it twice on its links.

use std::collections::BTreeMap;

use unisono_base::{InstrId, StreamId, narrow};
use unisono_schedule::{Flow, Operand, Schedule};

/// The work of one instruction of a switch.
pub struct Request {
    /// The GPUs of the group, in ascending order.
    pub group: Vec<u32>,
    /// The GPUs that ask for it, each for an equal part.
    pub leaders: Vec<u32>,
    /// True if the switch adds; else it stores the data of the leader.
    pub adds: bool,
    /// The first chunk, in scratch memory of each GPU of the group.
    pub place: u32,
    pub chunks: u32,
}

/// Bytes of which the runtime gives each part a whole number.
const ALIGNED_BYTES: u64 = 16;

/// The requests to all switches, and the streams to and from them as places of scratch memory.
#[derive(Default)]
pub struct BehindSwitches {
    /// The parts in which GPUs read and write all data, so that a thread block accesses what it asks a switch for.
    pub parts: u32,
    pub requests: BTreeMap<InstrId, Request>,
    /// The first chunk of each stream, the same on all GPUs.
    pub places: BTreeMap<StreamId, u32>,
    /// Chunks of all places.
    pub chunks: u32,
}

impl BehindSwitches {
    /// The groups of all requests, in the order in which each GPU lists its own ones.
    pub fn groups(&self) -> Vec<&[u32]> {
        let mut groups: Vec<&[u32]> = self.requests.values().map(|r| &r.group[..]).collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    }
}

/// The switches of a schedule among GPUs; `box_of` returns the box of a GPU.
///
/// # Errors
/// Switch channels cannot do the work of a switch of the schedule.
pub fn requests(
    schedule: &Schedule,
    flow: &Flow,
    order: &[InstrId],
    unit: u32,
    box_of: &dyn Fn(u32) -> u32,
) -> Result<BehindSwitches, String> {
    let ranks = schedule.collective().ranks;
    let of_switches: Vec<InstrId> = order.iter().copied().filter(|&id| flow.node_of(id).0 >= ranks).collect();
    let mut places = Places::default();
    for &id in &of_switches {
        let is_stream = |operand: Operand| matches!(operand, Operand::Stream(_));
        if !schedule.sources(id).iter().chain(schedule.sinks(id).iter()).all(is_stream) {
            return Err("a switch keeps data, and switch channels only pass it on".to_owned());
        }
        let mut ends = flow.pops(schedule, id).chain(flow.pushes(schedule, id));
        let Some((first, span)) = ends.next() else { continue };
        for (stream, other) in ends {
            if other.start != span.start {
                return Err("a switch takes its streams at different places, and switch channels have one".to_owned());
            }
            places.join(first, stream);
        }
    }
    let mut made = BehindSwitches { parts: 1, ..BehindSwitches::default() };
    for stream in schedule.all_streams() {
        let (source, sinks) = (schedule.stream(stream).source, schedule.stream_sinks(stream));
        if source.0 < ranks && sinks.iter().all(|sink| sink.0 < ranks) {
            continue;
        }
        if (source.0 >= ranks && sinks.iter().any(|sink| sink.0 >= ranks)) || (source.0 < ranks && sinks.len() > 1) {
            return Err("a switch passes data on to another switch; a plan has switches inside a box only".to_owned());
        }
        made.places.insert(stream, 0);
    }
    let mut firsts: BTreeMap<StreamId, (u32, u32)> = BTreeMap::new();
    for &stream in made.places.keys() {
        let most = &mut firsts.entry(places.root(stream)).or_default().0;
        *most = (schedule.stream(stream).len / unit).max(*most);
    }
    for (chunks, first) in firsts.values_mut() {
        *first = made.chunks;
        made.chunks = made.chunks.checked_add(*chunks).ok_or("its streams take more scratch memory than a plan has")?;
    }
    for (&stream, place) in &mut made.places {
        *place = firsts[&places.root(stream)].1;
    }
    for (n, &id) in of_switches.iter().enumerate() {
        let Some((stream, span)) = flow.pops(schedule, id).next() else { continue };
        let sources: Vec<u32> = flow.pops(schedule, id).map(|(s, _)| schedule.stream(s).source.0).collect();
        // GPUs that get the result take turns.
        let readers: Vec<u32> =
            flow.pushes(schedule, id).flat_map(|(s, _)| schedule.stream_sinks(s)).map(|sink| sink.0).collect();
        let mut group: Vec<u32> = sources.iter().chain(&readers).copied().collect();
        group.sort_unstable();
        group.dedup();
        let adds = sources.len() > 1;
        if adds && sources != group {
            return Err(
                "a switch adds some GPUs, in another order or for others than these; switch channels add a group for \
                 itself, in ascending order"
                    .to_owned(),
            );
        }
        if let Some(other) = group.iter().find(|&&gpu| box_of(gpu) != box_of(group[0])) {
            return Err(format!(
                "a switch serves gpus {} and {other}, which are in different boxes; a plan has switches inside a box only",
                group[0]
            ));
        }
        let leader = if adds { readers.get(n % readers.len().max(1)).copied() } else { sources.first().copied() };
        let place = made.places[&stream] + span.start / unit;
        let leaders = vec![leader.unwrap_or(group[0])];
        made.requests.insert(id, Request { group, leaders, adds, place, chunks: narrow(span.len / unit) });
    }
    Ok(made)
}

impl BehindSwitches {
    /// Lets all GPUs of a group ask for parts of its sums, if these are fewer than the GPUs, all sums are for all, and
    /// GPUs only give their inputs and get their outputs: others read data in the shares in which they were written.
    pub fn part(&mut self, schedule: &Schedule, flow: &Flow) {
        let c = schedule.collective();
        let nodes = schedule.all_nodes().take(c.ranks as usize);
        let is_plain =
            schedule.stream_count() == self.places.len() && nodes.map(|n| schedule.scratch_elements(n)).all(|n| n == 0);
        let is_of_all = |(id, request): (&InstrId, &Request)| {
            let readers = flow.pushes(schedule, *id).map(|(stream, _)| schedule.stream_sinks(stream).len());
            request.adds && request.group.len() == c.ranks as usize && readers.sum::<usize>() == request.group.len()
        };
        // As many sums as GPUs have a leader each, and none waits for the sums before its own.
        let has_few_sums = self.requests.len() < c.ranks as usize;
        if !is_plain || !has_few_sums || !self.requests.iter().all(is_of_all) {
            return;
        }
        let bytes = |id: &InstrId| u64::from(schedule.instr(*id).len) * c.dtype.bytes();
        let least = self.requests.keys().map(bytes).min().unwrap_or(0);
        self.parts = narrow((least / ALIGNED_BYTES).clamp(1, c.ranks.into()));
        for request in self.requests.values_mut().filter(|_| self.parts > 1) {
            request.leaders = request.group[..self.parts as usize].to_vec();
        }
    }
}

/// Streams that share a place.
#[derive(Default)]
struct Places(BTreeMap<StreamId, StreamId>);

impl Places {
    fn root(&self, mut stream: StreamId) -> StreamId {
        while let Some(&up) = self.0.get(&stream) {
            stream = up;
        }
        stream
    }

    fn join(&mut self, a: StreamId, b: StreamId) {
        let (a, b) = (self.root(a), self.root(b));
        if a != b {
            self.0.insert(b.max(a), a.min(b));
        }
    }
}
