//! Departure times of each packet from each unit.
//!
//! H(u, k) and T(u, k) are the times at which the head and the tail of packet k leave unit u, s(u) is the transfer time
//! of a packet on u's slowest output, and b is the number of packets that a buffer holds:
//!
//! ```text
//! H(u, k) = max of  H(v, k) + latency + engine     over inputs v
//!                   T(u, k - 1)                    the links are free
//!                   T(w, k - b) + latency          over outputs w: the credit came back
//!                   W(u, k - 1)                    if u writes: the memory is free
//! T(u, k) = max of  H(u, k) + s(u) and T(v, k) + latency + engine
//! a memory that is read:     head max(R(u, k - 1), T(u, k - b)), tail R(u, k) = head + s(read)
//! a memory that is written:  W(u, k) = max(T(u, k), H(u, k) + s(write))
//! ```
//!
//! If the switch of u first executes another embedding, the end of that embedding replaces T(u, -1), R(u, -1) and W(u,
//! -1).

use super::units::{Edge, TO_MEMORY, Units};

pub struct Swept {
    /// Time at which the head of the first packet reached the last memory.
    pub head: u64,
    /// Time at which each unit's memory has read or written its last packet; 0 if the unit uses no memory.
    pub finish: Vec<u64>,
    /// Time at which the last packet has left each unit.
    pub left: Vec<u64>,
    pub computed: u64,
}

/// Upper limit of all clocks, in picoseconds.
const END: u64 = 1 << 62;

/// Computes the times of all packets, which move one after another through all units. `start` is the time at which each
/// unit becomes free. Returns `None` on overflow.
pub fn sweep(units: &Units, buffers: usize, packets: u64, start: &[u64]) -> Option<Swept> {
    let count = units.count();
    let memories = |edges: fn(&Units, usize) -> &[Edge]| -> Vec<u64> {
        let uses = |u: usize| edges(units, u).iter().any(|e| e.unit == TO_MEMORY);
        (0..count).map(|u| if uses(u) { start[u] } else { 0 }).collect()
    };
    let mut state = State {
        units,
        buffers,
        // A ring buffer with the departure times of each unit's last `buffers` packets.
        head: vec![0; count],
        left: vec![0; count * buffers.min(usize::try_from(packets).unwrap_or(usize::MAX))],
        start,
        read: memories(Units::inputs),
        wrote: memories(Units::outputs),
        done: 0,
    };
    let full = packets - 1;
    let mut steady = Steady::default();
    let (mut computed, mut head) = (0, 0);
    while state.done < full {
        let step = state.packet(0);
        if computed == 0 {
            head = state.reached();
        }
        computed += 1;
        steady.saw(step);
        // All times on which the next packet depends have moved by one constant, so later packets move them by this
        // constant too.
        if steady.packets > buffers as u64 && state.done < full {
            let rest = full - state.done;
            let by = rest.checked_mul(steady.step).filter(|by| *by < END)?;
            state.skip(rest, by);
        }
    }
    state.packet(1);
    if computed == 0 {
        head = state.reached();
    }
    computed += 1;
    let finish: Vec<u64> = state.read.iter().zip(&state.wrote).map(|(&r, &w)| r.max(w)).collect();
    let last = state.latest();
    let left = state.left[last..last + count].to_vec();
    finish.iter().all(|&t| t < END).then_some(Swept { head, finish, left, computed: computed * count as u64 })
}

#[derive(Default)]
struct Steady {
    step: u64,
    /// Number of consecutive packets whose times all differ by `step` from those of the packet before.
    packets: u64,
}

impl Steady {
    fn saw(&mut self, step: Option<u64>) {
        match step {
            Some(step) if step == self.step && self.packets > 0 => self.packets += 1,
            Some(step) => *self = Self { step, packets: 1 },
            None => self.packets = 0,
        }
    }
}

struct State<'a> {
    units: &'a Units,
    buffers: usize,
    /// Times at which the head of the current packet left each unit.
    head: Vec<u64>,
    left: Vec<u64>,
    start: &'a [u64],
    read: Vec<u64>,
    wrote: Vec<u64>,
    done: u64,
}

impl State<'_> {
    /// Returns the offset of the latest packet's times in `left`.
    #[expect(clippy::cast_possible_truncation, reason = "remainders of a number of buffers")]
    fn latest(&self) -> usize {
        (self.done + self.buffers as u64 - 1) as usize % self.buffers * self.units.count()
    }

    /// Moves one packet through all units. `size` is 0 for a full packet, 1 for the last packet. Returns the constant
    /// by which all times moved since the previous packet; `None` if there is no such constant.
    #[expect(clippy::cast_possible_truncation, reason = "remainders of a number of buffers")]
    fn packet(&mut self, size: usize) -> Option<u64> {
        let count = self.units.count();
        let (b, k) = (self.buffers as u64, self.done);
        let now = (k % b) as usize * count;
        let before = self.latest();
        let (first, returned) = (k == 0, k >= b);
        let mut same = None;
        let mut steady = !first;
        for u in 0..count {
            let engine = self.units.engine_latency[u];
            let last = if first { self.start[u] + engine } else { self.left[before + u] };
            let mut moved = |by: u64| match same {
                None => same = Some(by),
                Some(known) => steady &= known == by,
            };
            let (mut head, mut tail) = (last, 0);
            for input in self.units.inputs(u) {
                if input.unit == TO_MEMORY {
                    let slot = if returned { self.left[now + u] } else { 0 };
                    let start = self.read[u].max(slot);
                    let read = start + input.serial[size];
                    moved(read - self.read[u]);
                    self.read[u] = read;
                    (head, tail) = (head.max(start + engine), tail.max(read + engine));
                } else {
                    let (from, way) = (input.unit as usize, input.latency + engine);
                    (head, tail) = (head.max(self.head[from] + way), tail.max(self.left[now + from] + way));
                }
            }
            let mut writes = false;
            for output in self.units.outputs(u) {
                if output.unit == TO_MEMORY {
                    writes = true;
                    head = head.max(self.wrote[u]);
                } else if returned {
                    head = head.max(self.left[now + output.unit as usize] + output.latency);
                }
            }
            let at = tail.max(head + self.units.serial[u][size]);
            if writes {
                let wrote = at.max(head + self.units.write[u][size]);
                moved(wrote - self.wrote[u]);
                self.wrote[u] = wrote;
            }
            self.head[u] = head;
            moved(at - last);
            self.left[now + u] = at;
        }
        self.done += 1;
        same.filter(|_| steady)
    }

    /// Returns the latest departure of the current packet's head from a unit that writes to memory.
    fn reached(&self) -> u64 {
        let writes = |u: usize| self.units.outputs(u).iter().any(|o| o.unit == TO_MEMORY);
        (0..self.units.count()).filter(|&u| writes(u)).map(|u| self.head[u]).max().unwrap_or(0)
    }

    /// Skips `packets` packets, which together move all times by `by` picoseconds.
    #[expect(clippy::cast_possible_truncation, reason = "remainders of a number of buffers")]
    fn skip(&mut self, packets: u64, by: u64) {
        let count = self.units.count();
        for t in self.left.iter_mut().chain(&mut self.read).chain(&mut self.wrote) {
            *t += by;
        }
        // Rotates the ring so that its slots match `done`.
        let turn = (packets % self.buffers as u64) as usize;
        self.left.rotate_right(turn * count);
        self.done += packets;
        // The times of memories that no packet uses stay at 0.
        for u in 0..count {
            if !self.units.inputs(u).iter().any(|i| i.unit == TO_MEMORY) {
                self.read[u] = 0;
            }
            if !self.units.outputs(u).iter().any(|o| o.unit == TO_MEMORY) {
                self.wrote[u] = 0;
            }
        }
    }
}
