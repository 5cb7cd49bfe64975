//! The recorded moves: for each color of a router, the input ports of forwarded wavelets with the router's position;
//! for each ramp, the operations that sent or took wavelets. The log stores the order and the numbers of moves, not
//! their times.
//!
//! All queues are first in, first out. So the log determines, for every wavelet that an operation takes, the operation
//! and the element from which the wavelet came ([`sources`]).

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use unisono_base::narrow;

use super::tables::{NONE, RAMP, Tables};

/// The recorded keys of each entry, run-length encoded in their order. An entry is a router's color or a queue; its
/// index is called `who` below.
pub struct Log {
    current: Vec<Entry>,
    /// Ended runs of equal keys, as `(entry, key, number of moves)`.
    closed: Vec<(u32, u32, u32)>,
}

#[derive(Clone, Copy)]
struct Entry {
    key: u32,
    count: u32,
    /// Cycle of the first move with this key.
    since: u32,
}

impl Log {
    pub fn new(count: usize) -> Self {
        Self { current: vec![Entry { key: NONE, count: 0, since: 0 }; count], closed: Vec::new() }
    }

    #[inline]
    pub fn add(&mut self, who: u32, key: u32, cycle: u32) {
        let e = &mut self.current[who as usize];
        if e.key == key {
            e.count += 1;
        } else {
            if e.key != NONE {
                self.closed.push((who, e.key, e.count));
            }
            *e = Entry { key, count: 1, since: cycle };
        }
    }

    /// Returns the length of the current run of equal keys.
    pub fn count(&self, who: u32) -> u32 {
        self.current[who as usize].count
    }

    /// Returns true if the current key was already the key before `cycle`, or if no key was recorded.
    pub fn is_steady(&self, who: u32, cycle: u32) -> bool {
        let e = &self.current[who as usize];
        e.key == NONE || e.since < cycle
    }

    /// Adds `count` moves with the current key.
    pub fn extend(&mut self, who: u32, count: u32) {
        self.current[who as usize].count += count;
    }

    /// Adds `count` moves with a key at once. Their times are not recorded.
    pub fn more(&mut self, who: u32, key: u32, count: u32) {
        let e = &mut self.current[who as usize];
        if e.key == key {
            e.count += count;
            return;
        }
        if e.key != NONE {
            self.closed.push((who, e.key, e.count));
        }
        *e = Entry { key, count, since: e.since };
    }

    /// Sorts the ended runs by entry and returns their number, for [`Self::copy`].
    pub fn sort(&mut self) -> usize {
        self.closed.sort_by_key(|c| c.0);
        self.closed.len()
    }

    /// Copies the records of an entry to an entry without records, and adds `shift` to the keys. The first `sorted`
    /// ended runs are sorted, and only these are copied.
    pub fn copy(&mut self, (from, to): (u32, u32), shift: u32, sorted: usize) {
        let shifted = |key: u32| if key == NONE { NONE } else { key + shift };
        let mut at = self.closed[..sorted].partition_point(|c| c.0 < from);
        while at < sorted && self.closed[at].0 == from {
            let (_, key, count) = self.closed[at];
            self.closed.push((to, shifted(key), count));
            at += 1;
        }
        let current = self.current[from as usize];
        self.current[to as usize] = Entry { key: shifted(current.key), ..current };
    }

    /// Returns the `(key, count)` runs of all entries in order, and the start of each entry's runs.
    #[expect(clippy::cast_possible_truncation, reason = "the hot loop; queues have 32-bit numbers")]
    fn into_rows(mut self) -> (Vec<(u32, u32)>, Vec<u32>) {
        for (who, e) in self.current.iter().enumerate().filter(|(_, e)| e.key != NONE) {
            self.closed.push((who as u32, e.key, e.count));
        }
        self.closed.sort_by_key(|c| c.0);
        let mut starts = vec![0; self.current.len() + 1];
        for &(who, ..) in &self.closed {
            starts[who as usize + 1] += 1;
        }
        for n in 1..starts.len() {
            starts[n] += starts[n - 1];
        }
        (self.closed.iter().map(|&(_, key, count)| (key, count)).collect(), starts)
    }
}

/// Returns the key of a move through a router: its input port and the router's position.
#[expect(clippy::cast_possible_truncation, reason = "the hot loop; queues have 32-bit numbers")]
pub fn router_key(port: usize, position: u8) -> u32 {
    u32::from(position) << 3 | port as u32
}

/// The elements `first .. first + count` of the elements that operation `op` sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SentRun {
    pub op: u32,
    pub first: u32,
    pub count: u32,
}

fn append(parts: &mut VecDeque<SentRun>, part: SentRun) {
    match parts.back_mut() {
        Some(last) if last.op == part.op && last.first + last.count == part.first => last.count += part.count,
        _ => parts.push_back(part),
    }
}

/// Returns, for every place of [`Tables::places`] that takes from the fabric, the elements that arrived there: the runs
/// of elements of all places, and the start of each place's runs.
pub fn sources(tables: &Tables, routers: Log, ramps: Log) -> (Vec<SentRun>, Vec<u32>) {
    let (ramps, ramp_starts) = ramps.into_rows();
    let of = |queue: u32| ramp_starts[queue as usize] as usize..ramp_starts[queue as usize + 1] as usize;
    let mut inboxes = flow(tables, routers, |queue| &ramps[of(queue)]);
    let mut found: Vec<(u32, SentRun)> = Vec::new();
    for row in &tables.rows {
        let queue = row.outputs[RAMP];
        if queue == NONE {
            continue;
        }
        let mut parts = std::mem::take(&mut inboxes[queue as usize]);
        for &(op, count) in &ramps[of(queue)] {
            let places = tables.op_places[op as usize]..tables.op_places[op as usize + 1];
            let takes = |p: &u32| tables.places[*p as usize].queue() == Some(queue);
            let place = places.into_iter().find(takes).expect("who took from a queue has it among its places");
            let mut left = count;
            while left > 0 {
                let part = parts.front_mut().expect("what was taken had come");
                let taken = left.min(part.count);
                found.push((place, SentRun { count: taken, ..*part }));
                *part = SentRun { first: part.first + taken, count: part.count - taken, ..*part };
                left -= taken;
                if part.count == 0 {
                    parts.pop_front();
                }
            }
        }
    }
    found.sort_by_key(|f| f.0);
    let mut starts = vec![0; tables.places.len() + 1];
    for &(place, _) in &found {
        starts[place as usize + 1] += 1;
    }
    for n in 1..starts.len() {
        starts[n] += starts[n - 1];
    }
    (found.into_iter().map(|f| f.1).collect(), starts)
}

/// Returns the elements that arrived at every queue and were not forwarded. On a ramp to a PE, these are all elements.
fn flow<'a>(tables: &Tables, routers: Log, sent: impl Fn(u32) -> &'a [(u32, u32)]) -> Vec<VecDeque<SentRun>> {
    let mut inboxes: Vec<VecDeque<SentRun>> = vec![VecDeque::new(); tables.queues.count()];
    let mut row_of = vec![NONE; tables.queues.count()];
    let mut sent_so_far = FxHashMap::default();
    for (n, row) in tables.rows.iter().enumerate() {
        for queue in row.inputs.into_iter().filter(|&q| q != NONE) {
            row_of[queue as usize] = narrow::<u32>(n);
        }
        let queue = row.inputs[RAMP];
        if queue != NONE {
            for &(op, count) in sent(queue) {
                let first: &mut u32 = sent_so_far.entry((queue, op)).or_default();
                append(&mut inboxes[queue as usize], SentRun { op, first: *first, count });
                *first += count;
            }
        }
    }
    let (mut moves, starts) = routers.into_rows();
    let mut at = starts.clone();
    // Each row does its moves in their order, until an element that it must forward has not arrived yet.
    let mut todo: Vec<u32> = (0..narrow::<u32>(tables.rows.len())).rev().collect();
    while let Some(n) = todo.pop() {
        let row = &tables.rows[n as usize];
        while at[n as usize] < starts[n as usize + 1] {
            let (key, left) = &mut moves[at[n as usize] as usize];
            if *left == 0 {
                at[n as usize] += 1;
                continue;
            }
            let queue = row.inputs[(*key & 7) as usize];
            let Some(part) = inboxes[queue as usize].front_mut() else { break };
            let moved = SentRun { count: part.count.min(*left), ..*part };
            *left -= moved.count;
            *part = SentRun { first: part.first + moved.count, count: part.count - moved.count, ..*part };
            if part.count == 0 {
                inboxes[queue as usize].pop_front();
            }
            let tx = row.tx[(*key >> 3) as usize];
            for port in (0..5).filter(|p| tx >> p & 1 == 1) {
                let to = row.outputs[port];
                append(&mut inboxes[to as usize], moved);
                if port != RAMP {
                    todo.push(row_of[to as usize]);
                }
            }
        }
    }
    inboxes
}
