//! The conversion of nodes that are switches to switch channels. A GPU sends one of two requests to a switch. The
//! first: add the data of all GPUs of a group at one offset of scratch memory, and store the sum there for all of them.
//! The second: store the GPU's own data for all of them.
//!
//! If all n GPUs of a group get a sum, each GPU requests 1/n of the sum, as in NCCL's NVLS and in
//! `allreduce_nvls_zero_copy` of MSCCL++. Each link then carries 1 + 1/n of the sum. If one GPU requested the whole
//! sum, its links would carry the sum twice.

use std::collections::BTreeMap;

use unisono_base::{InstrId, StreamId, narrow};
use unisono_schedule::{Flow, Operand, Schedule};

/// A request to a switch for the work of one of its instructions.
pub struct Request {
    /// The GPUs of the group, in ascending order.
    pub group: Vec<u32>,
    /// The GPUs that issue the request, each for an equal part.
    pub leaders: Vec<u32>,
    /// True if the switch adds; otherwise it stores the data of the leader.
    pub adds: bool,
    /// The first chunk of the data, in scratch memory of each GPU of the group.
    pub place: u32,
    pub chunks: u32,
}

/// The runtime aligns parts to multiples of this number of bytes.
const ALIGNED_BYTES: u64 = 16;

/// The requests to all switches, and the scratch memory for the streams to and from them.
#[derive(Default)]
pub struct BehindSwitches {
    /// The number of parts into which GPUs divide their reads and writes of data. A thread block accesses the part that
    /// it requests.
    pub parts: u32,
    pub requests: BTreeMap<InstrId, Request>,
    /// For each stream to or from a switch, its first chunk of scratch memory, the same on all GPUs.
    pub places: BTreeMap<StreamId, u32>,
    /// The number of chunks of scratch memory for all streams to and from switches. The streams of one request share
    /// their chunks.
    pub chunks: u32,
}

impl BehindSwitches {
    /// Returns the groups of all requests. Each GPU lists its groups in this order.
    pub fn groups(&self) -> Vec<&[u32]> {
        let mut groups: Vec<&[u32]> = self.requests.values().map(|r| &r.group[..]).collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    }
}

/// Returns the requests to the switches of a schedule; `box_of` returns the box of a GPU.
///
/// # Errors
/// Returns the reason if switch channels cannot do the work of a switch.
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
        // The GPUs that get a sum alternate as its leaders.
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
    /// Divides each sum among the GPUs of its group, in parts of at least 16 bytes. Three conditions must hold: there
    /// are fewer sums than GPUs, all GPUs get all sums, and the schedule moves no other data, because other data would
    /// have to be read in the same shares in which it was written.
    pub fn part(&mut self, schedule: &Schedule, flow: &Flow) {
        let c = schedule.collective();
        let nodes = schedule.all_nodes().take(c.ranks as usize);
        let is_plain =
            schedule.stream_count() == self.places.len() && nodes.map(|n| schedule.scratch_elements(n)).all(|n| n == 0);
        let is_of_all = |(id, request): (&InstrId, &Request)| {
            let readers = flow.pushes(schedule, *id).map(|(stream, _)| schedule.stream_sinks(stream).len());
            request.adds && request.group.len() == c.ranks as usize && readers.sum::<usize>() == request.group.len()
        };
        // With at least as many sums as GPUs, each GPU already leads a sum, and no sum waits for earlier sums of the
        // same leader.
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

/// Sets of streams that share scratch memory (union-find); each set has a representative.
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
