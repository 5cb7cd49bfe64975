//! The sizes at which a file hangs.
//!
//! The capacity of a connection is counted in pieces, not chunks. A step of c chunks moves in pieces of m = max(1,
//! floor(slot / chunk)) chunks, at most 71, where `slot` is the bytes of a slot and `chunk` those of a chunk; each
//! piece takes a slot. So piece n is sent after piece n - slots was received, and the result depends on the size only
//! by ceil(c / m): it is computed for each m that the sizes of a file allow.
//!
//! Thread blocks run their steps in order, and each connection has one thread block at either end, so no step takes
//! what another step waits for: if one run ends, every run ends. A size of several loops ends if one loop does, since
//! all slots are free after a loop.
//!
//! Source: `msccl_setup.cc` (`mscclSetupCount`) and the primitives of msccl-executor-nccl and RCCL. They differ in the
//! bytes of a slot: the smaller number is used here, since shorter pieces hang wherever longer pieces do.

use std::collections::BTreeMap;

use unisono_base::{interrupt::poll, narrow};
use unisono_collective::Kind;

use super::{
    executed::Running,
    limits,
    program::{Program, counts_all_ranks},
};

/// The capacity of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    pub slots: u32,
    /// The bytes of data that a slot holds.
    pub slot: u64,
}

/// Returns the capacity of a connection with a protocol. An unknown protocol counts as `Simple`, which has the fewest
/// slots.
pub fn room(protocol: &str, kind: Kind) -> Room {
    const STEP: u64 = 512 << 10;
    match protocol {
        "LL" => Room { slots: 8, slot: 16_384 },
        "LL128" => Room { slots: 8, slot: 50_176 },
        // A chunk takes four of a buffer's eight steps, so there are two slots. The bytes of a slot are those of NCCL's
        // own algorithm for the collective.
        _ if matches!(kind, Kind::Broadcast | Kind::Reduce) => Room { slots: 2, slot: STEP },
        _ => Room { slots: 2, slot: 4 * STEP },
    }
}

impl Room {
    /// Returns the number of chunks in a piece, for chunks of `chunk` bytes.
    fn piece(self, chunk: u64) -> u32 {
        narrow((self.slot / chunk.max(1)).clamp(1, u64::from(limits::COUNT)))
    }

    /// Returns the least and the largest size of a chunk, in bytes, with pieces of `m` chunks; `None` means no bound.
    fn chunks_of(self, m: u32) -> (u64, Option<u64>) {
        let least = if m == limits::COUNT { 1 } else { self.slot / u64::from(m + 1) + 1 };
        (least, (m > 1).then(|| self.slot / u64::from(m)))
    }
}

/// Returns the largest chunk, in bytes, for which the flags of a program's waits can count the iterations; `None`
/// without waits, or with `Simple`, whose flags suffice for chunks larger than the memory of a GPU. An iteration moves
/// the data of a slot.
pub fn counted(p: &Program) -> Option<u64> {
    const TURNS: u64 = 65_536;
    let waits = p.gpus.iter().flat_map(|g| &g.blocks).flat_map(|b| &b.steps).any(|s| s.waits_for.is_some());
    let is_short = waits && ["LL", "LL128"].contains(&p.protocol.as_str());
    is_short.then(|| room(&p.protocol, p.kind).slot * TURNS)
}

/// The least and the largest size of a chunk in bytes; `None` means no bound.
pub type Range = (u64, Option<u64>);

/// Returns the sizes of a chunk in calls of `bytes`, rounded up. Without `bytes`, returns the sizes in calls of
/// `minBytes` to `maxBytes`; if `maxBytes` is 0, [`counted`] is the upper limit.
pub fn sizes(p: &Program, bytes: Option<u64>) -> Range {
    let chunks = u64::from(p.chunks);
    if let Some(bytes) = bytes {
        let chunk = bytes.div_ceil(chunks).max(1);
        return (chunk, Some(chunk));
    }
    let least = p.min_bytes.div_ceil(chunks).max(1);
    // The executor treats 0 as no limit.
    let stated = (p.max_bytes > 0).then(|| p.max_bytes / chunks);
    (least, stated.or(counted(p)).map(|most| most.max(least)))
}

/// Returns the reason why the executor does not run a call of `bytes` by the file; without `bytes`, the reason why it
/// runs no call. `None` if it runs such a call.
pub fn unserved(p: &Program, bytes: Option<u64>) -> Option<String> {
    let (least, most) = (p.min_bytes, if p.max_bytes == 0 { u64::MAX } else { p.max_bytes });
    let chunks = u64::from(p.chunks);
    let (is_served, what) = match bytes {
        Some(bytes) => ((least..=most).contains(&bytes), format!("a call of {bytes} bytes")),
        None => (most / chunks * chunks >= least.max(1), format!("any call whose bytes divide into {chunks} chunks")),
    };
    (!is_served).then(|| {
        format!(
            "the executor does not run {what} by this file, which is for minBytes=\"{least}\" to maxBytes=\"{}\"",
            p.max_bytes
        )
    })
}

/// Returns the bytes of a call with `elements` elements for each rank, of all ranks together if [`counts_all_ranks`].
pub fn bytes_of(p: &Program, elements: u64, dtype: unisono_collective::Dtype) -> u64 {
    let parts = if counts_all_ranks(p.kind) { p.gpus.len() as u64 } else { 1 };
    elements.saturating_mul(dtype.bytes()).saturating_mul(parts)
}

/// A thread block that waits for ever.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stuck {
    pub gpu: u32,
    pub block: u32,
    /// The index in the file of the step in which the thread block waits.
    pub step: u32,
    /// The cause of the wait.
    pub cause: Cause,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// All slots of the connection to a GPU are full.
    Slot { gpu: u32 },
    /// No piece has arrived from a GPU.
    Piece { gpu: u32 },
    /// A thread block of the same GPU has not set its flag.
    Flag { block: u32 },
}

impl std::fmt::Display for Stuck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "thread block {} of gpu {} waits in step {} for ", self.block, self.gpu, self.step)?;
        match self.cause {
            Cause::Slot { gpu } => write!(f, "gpu {gpu} to free a slot of their connection"),
            Cause::Piece { gpu } => write!(f, "data of gpu {gpu}"),
            Cause::Flag { block } => write!(f, "thread block {block}"),
        }
    }
}

/// The sizes at which a file hangs, and the thread blocks that then wait for each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hang {
    /// The sizes of a chunk, ascending, within the requested range.
    pub at: Vec<Range>,
    /// The thread blocks that wait for each other in a cycle, at the smallest size of a chunk at which the file hangs.
    pub circle: Vec<Stuck>,
}

/// Returns the sizes within a range at which a program hangs; `None` if there are none.
pub fn hangs(p: &Program, running: &Running, range: Range) -> Option<Hang> {
    let room = room(&p.protocol, p.kind);
    let most = room.piece(range.0);
    let fewest = range.1.map_or(1, |most| room.piece(most));
    let mut counts: Vec<u32> = running.iter().flatten().flatten().map(|t| t.count).collect();
    counts.sort_unstable();
    counts.dedup();
    // Shorter pieces hang wherever longer pieces do, and most files end even with the shortest.
    if stuck(p, running, room.slots, fewest).is_empty() {
        return None;
    }
    let mut known: BTreeMap<Vec<u32>, Vec<Stuck>> = BTreeMap::new();
    let mut found: Option<Hang> = None;
    for m in (fewest..=most).rev() {
        let pieces = counts.iter().map(|c| c.div_ceil(m)).collect();
        let stuck = known.entry(pieces).or_insert_with(|| stuck(p, running, room.slots, m));
        if stuck.is_empty() {
            continue;
        }
        let hang = found.get_or_insert_with(|| Hang { at: Vec::new(), circle: stuck.clone() });
        let (from, to) = room.chunks_of(m);
        let from = from.max(range.0);
        let to = to.map_or(range.1, |to| Some(range.1.map_or(to, |most| to.min(most))));
        match hang.at.last_mut() {
            Some(last) if last.1.is_some_and(|end| end + 1 == from) => last.1 = to,
            _ => hang.at.push((from, to)),
        }
    }
    found
}

/// A connection: its sender, receiver and channel.
type Key = (u32, u32, u32);

/// The progress of a thread block: the number of completed transmissions, and of pieces of the next one.
#[derive(Clone, Copy, Default)]
struct At {
    done: u32,
    piece: u32,
}

/// Returns a cycle of thread blocks that wait for each other, or a chain of waiting thread blocks if no cycle exists;
/// an empty list if the program ends. Each connection has `slots` slots, and pieces have `m` chunks.
pub fn stuck(p: &Program, running: &Running, slots: u32, m: u32) -> Vec<Stuck> {
    let mut at: Vec<Vec<At>> = running.iter().map(|gpu| vec![At::default(); gpu.len()]).collect();
    // The numbers of pieces sent and received on each connection.
    let mut wires: BTreeMap<Key, (u32, u32)> = BTreeMap::new();
    let mut ends: BTreeMap<Key, [Option<u32>; 2]> = BTreeMap::new();
    for (g, gpu) in p.gpus.iter().enumerate() {
        for (t, block) in gpu.blocks.iter().enumerate() {
            let (g, t) = (narrow(g), narrow(t));
            if let Some(to) = block.send {
                ends.entry((g, to, block.channel)).or_default()[0] = Some(t);
            }
            if let Some(from) = block.receive {
                ends.entry((from, g, block.channel)).or_default()[1] = Some(t);
            }
        }
    }
    let cause = |at: &[Vec<At>], wires: &BTreeMap<Key, (u32, u32)>, g: usize, t: usize| {
        let (now, block) = (at[g][t], &p.gpus[g].blocks[t]);
        let next = &running[g][t][now.done as usize];
        if let Some(&(b, _)) = next.after.iter().find(|&&(b, n)| at[g][b as usize].done <= n) {
            return Some(Cause::Flag { block: b });
        }
        if next.count == 0 {
            return None;
        }
        let moved = |key| wires.get(&key).copied().unwrap_or_default();
        if let Some(gpu) = block.receive.filter(|_| next.kind.receives()) {
            let (sent, received) = moved((gpu, narrow(g), block.channel));
            if sent == received {
                return Some(Cause::Piece { gpu });
            }
        }
        if let Some(gpu) = block.send.filter(|_| next.kind.sends()) {
            let (sent, received) = moved((narrow(g), gpu, block.channel));
            if sent - received == slots {
                return Some(Cause::Slot { gpu });
            }
        }
        None
    };
    // Progress may unblock the thread blocks at the other ends of the connections, and those that wait for this thread
    // block.
    let mut ready: Vec<(usize, usize)> =
        running.iter().enumerate().flat_map(|(g, gpu)| (0..gpu.len()).map(move |t| (g, t))).collect();
    while let Some((g, t)) = ready.pop() {
        while (at[g][t].done as usize) < running[g][t].len() && cause(&at, &wires, g, t).is_none() {
            poll();
            let (next, block) = (&running[g][t][at[g][t].done as usize], &p.gpus[g].blocks[t]);
            if next.count > 0 {
                if let Some(gpu) = block.receive.filter(|_| next.kind.receives()) {
                    let key = (gpu, narrow(g), block.channel);
                    wires.entry(key).or_default().1 += 1;
                    ready.extend(ends[&key][0].map(|t| (gpu as usize, t as usize)));
                }
                if let Some(gpu) = block.send.filter(|_| next.kind.sends()) {
                    let key = (narrow(g), gpu, block.channel);
                    wires.entry(key).or_default().0 += 1;
                    ready.extend(ends[&key][1].map(|t| (gpu as usize, t as usize)));
                }
            }
            let now = &mut at[g][t];
            now.piece += 1;
            if now.piece >= next.count.div_ceil(m) {
                *now = At { done: now.done + 1, piece: 0 };
                let waits = |&other: &usize| {
                    let next = running[g][other].get(at[g][other].done as usize);
                    next.is_some_and(|next| next.after.iter().any(|&(b, _)| b as usize == t))
                };
                ready.extend((0..running[g].len()).filter(waits).map(|other| (g, other)));
            }
        }
    }
    let waits = |g: usize, t: usize| {
        let next = running[g][t].get(at[g][t].done as usize)?;
        let cause = cause(&at, &wires, g, t)?;
        Some(Stuck { gpu: narrow(g), block: narrow(t), step: next.step, cause })
    };
    let all = at.iter().enumerate().flat_map(|(g, gpu)| (0..gpu.len()).map(move |t| (g, t)));
    let Some(first) = all.into_iter().find_map(|(g, t)| waits(g, t)) else { return Vec::new() };
    // Follows each waiting thread block to the one that it waits for, until a thread block repeats.
    let mut way = vec![first];
    loop {
        let last = &way[way.len() - 1];
        let channel = p.gpus[last.gpu as usize].blocks[last.block as usize].channel;
        let (gpu, block) = match last.cause {
            Cause::Flag { block } => (last.gpu, Some(block)),
            Cause::Slot { gpu } => (gpu, ends[&(last.gpu, gpu, channel)][1]),
            Cause::Piece { gpu } => (gpu, ends[&(gpu, last.gpu, channel)][0]),
        };
        let Some(next) = block.and_then(|t| waits(gpu as usize, t as usize)) else { return way };
        if let Some(start) = way.iter().position(|s| (s.gpu, s.block) == (next.gpu, next.block)) {
            return way.split_off(start);
        }
        way.push(next);
    }
}
