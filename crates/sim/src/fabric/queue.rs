//! All queues of the machine in flat tables: fixed slots, first in first out. A wavelet here is the cycle from which it
//! may move and nothing else; what it carries follows from the recorded moves (`moves`).

use unisono_base::narrow;

/// A wavelet in a queue: the cycle from which it may move, and two flags in the top bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wavelet(u32);

const CONTROL: u32 = 1 << 31;
const ADVANCE: u32 = 1 << 30;

/// No simulation runs longer: the flags need the bits above.
pub const LAST_CYCLE: u32 = ADVANCE - 64;

impl Wavelet {
    pub fn data(ready: u32, advance: bool) -> Self {
        Self(ready | if advance { ADVANCE } else { 0 })
    }

    pub fn control(ready: u32) -> Self {
        Self(ready | CONTROL)
    }

    pub fn ready(self) -> u32 {
        self.0 & !(CONTROL | ADVANCE)
    }

    pub fn is_control(self) -> bool {
        self.0 & CONTROL != 0
    }

    /// The router of the sender advances its color behind this wavelet.
    pub fn advances(self) -> bool {
        self.0 & ADVANCE != 0
    }

    /// The same wavelet on its way on.
    pub fn moved(self, ready: u32) -> Self {
        Self(ready | self.0 & CONTROL)
    }
}

/// What happened at a queue between two routers in the last period: a bit for each cycle, by the cycle modulo the
/// period. `steady` says what for.
#[derive(Clone, Copy, Default)]
pub struct Ring {
    pub push: u16,
    pub pop: u16,
    /// The cycle of the last push. While a PE at the queue sleeps, of the last one by the other.
    pub push_last: u32,
    /// The cycle in which a control wavelet was pushed to a PE that sleeps; 0: none was.
    pub control: u32,
}

/// All of a queue but its wavelets, in half a cache line.
#[derive(Clone, Copy, Default)]
struct Head {
    /// The cycle of the last pop: its slot is free only from the next cycle on.
    popped: u32,
    /// The first wavelet, if there is one: most looks at a queue need no more.
    front: Wavelet,
    /// Where its slots start, and their count, a power of two, less one.
    start: u32,
    mask: u8,
    first: u8,
    len: u8,
    capacity: u8,
    /// The router's row, counted from the PE's first; and the row of the neighbor that sends.
    row: u8,
    feeder: u8,
    ring: Ring,
}

/// How a queue stands beside what it was one period before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// Nothing came or went.
    Same,
    /// The same wavelets one period later.
    Shifted,
    No,
}

/// Queues by number.
#[derive(Clone, Default)]
pub struct Queues {
    heads: Vec<Head>,
    slots: Vec<Wavelet>,
    /// Queues that were dropped.
    emptied: usize,
}

impl Queues {
    /// Adds a queue; `capacity` wavelets may be pushed to it, and a control wavelet behind them if it is a ramp's.
    #[expect(clippy::cast_possible_truncation, reason = "the hot loop's tables")]
    pub fn add(&mut self, capacity: u32, row: u8) -> u32 {
        let (start, slots) = (self.slots.len(), (capacity + 1).next_power_of_two());
        self.slots.resize(start + slots as usize, Wavelet::default());
        self.heads.push(Head {
            popped: u32::MAX,
            start: start as u32,
            mask: (slots - 1) as u8,
            capacity: capacity as u8,
            row,
            feeder: row,
            ..Head::default()
        });
        narrow::<u32>(self.heads.len()) - 1
    }

    #[inline]
    pub fn ring(&mut self, queue: u32) -> &mut Ring {
        &mut self.heads[queue as usize].ring
    }

    pub fn ring_of(&self, queue: u32) -> Ring {
        self.heads[queue as usize].ring
    }

    pub fn count(&self) -> usize {
        self.heads.len() + self.emptied
    }

    pub fn len(&self, queue: u32) -> u32 {
        self.heads.get(queue as usize).map_or(0, |head| u32::from(head.len))
    }

    pub fn capacity(&self, queue: u32) -> u32 {
        u32::from(self.heads[queue as usize].capacity)
    }

    /// The router's row that a queue belongs to, counted from the PE's first.
    pub fn row(&self, queue: u32) -> u8 {
        self.heads[queue as usize].row
    }

    /// The row that sends to this queue, counted from its PE's first.
    pub fn feeder(&self, queue: u32) -> u8 {
        self.heads[queue as usize].feeder
    }

    pub fn set_feeder(&mut self, queue: u32, row: u8) {
        self.heads[queue as usize].feeder = row;
    }

    pub fn popped(&self, queue: u32) -> u32 {
        self.heads[queue as usize].popped
    }

    /// As if the last pop had been in this cycle.
    pub fn set_popped(&mut self, queue: u32, cycle: u32) {
        self.heads[queue as usize].popped = cycle;
    }

    pub fn popped_in(&self, queue: u32, cycle: u32) -> bool {
        self.heads[queue as usize].popped == cycle
    }

    fn slot(&self, queue: u32, at: u8) -> usize {
        let head = &self.heads[queue as usize];
        head.start as usize + usize::from(head.first.wrapping_add(at) & head.mask)
    }

    /// Reads a queue, if there is one of that number, so that the cache has it by then. The value means nothing.
    #[inline]
    pub fn read_ahead(&self, queue: u32) -> u32 {
        self.heads.get(queue as usize).map_or(0, |head| head.popped)
    }

    /// The wavelet at the front, if it may move in this cycle.
    #[inline]
    pub fn front(&self, queue: u32, cycle: u32) -> Option<Wavelet> {
        let head = &self.heads[queue as usize];
        if head.len == 0 {
            return None;
        }
        (head.front.ready() <= cycle).then_some(head.front)
    }

    /// Drops all wavelets and their queues; only the number of queues is left.
    pub fn empty(&mut self) {
        *self = Self { emptied: self.count(), ..Self::default() };
    }

    /// The wavelets of a queue, first in first.
    pub fn wavelets(&self, queue: u32) -> impl Iterator<Item = Wavelet> + '_ {
        (0..self.heads[queue as usize].len).map(move |n| self.slots[self.slot(queue, n)])
    }

    /// Pops the wavelet at the front, which the caller has seen there. Returns whether the queue was full.
    #[inline]
    pub fn pop(&mut self, queue: u32, cycle: u32) -> bool {
        let head = &mut self.heads[queue as usize];
        let full = head.len >= head.capacity;
        head.first = head.first.wrapping_add(1) & head.mask;
        head.len -= 1;
        head.popped = cycle;
        if head.len > 0 {
            head.front = self.slots[head.start as usize + usize::from(head.first)];
        }
        full
    }

    /// Whether there was room for one more when the cycle began.
    #[inline]
    pub fn has_room(&self, queue: u32, cycle: u32) -> bool {
        let head = &self.heads[queue as usize];
        head.len + u8::from(head.popped == cycle) < head.capacity
    }

    #[inline]
    pub fn push(&mut self, queue: u32, wavelet: Wavelet) {
        let head = &mut self.heads[queue as usize];
        let at = head.first.wrapping_add(head.len) & head.mask;
        self.slots[head.start as usize + usize::from(at)] = wavelet;
        if head.len == 0 {
            head.front = wavelet;
        }
        head.len += 1;
    }

    /// Compares with the same queue in a copy that was made at `cycle`, `period` cycles ago.
    pub fn repeats(&self, queue: u32, before: &Self, cycle: u32, period: u32) -> Repeat {
        if self.len(queue) != before.len(queue) {
            return Repeat::No;
        }
        let pairs = || self.wavelets(queue).zip(before.wavelets(queue));
        // One that was still under way when the copy was made is not where it was, relative to the clock.
        if pairs().all(|(now, then)| now == then && then.ready() <= cycle) {
            return Repeat::Same;
        }
        let shifted = pairs().all(|(now, then)| now == Wavelet::data(then.ready() + period, false));
        if shifted { Repeat::Shifted } else { Repeat::No }
    }

    /// Makes all wavelets of a queue later.
    pub fn delay(&mut self, queue: u32, cycles: u32) {
        for n in 0..self.heads[queue as usize].len {
            let slot = self.slot(queue, n);
            self.slots[slot].0 += cycles;
        }
        self.heads[queue as usize].front.0 += cycles;
    }

    /// Takes over some queues of a copy.
    pub fn copy_from(&mut self, from: &Self, queues: std::ops::Range<u32>) {
        let heads = queues.start as usize..queues.end as usize;
        let start = |n: usize| self.heads.get(n).map_or(self.slots.len(), |h| h.start as usize);
        let slots = start(heads.start)..start(heads.end);
        self.heads[heads.clone()].copy_from_slice(&from.heads[heads]);
        self.slots[slots.clone()].copy_from_slice(&from.slots[slots]);
    }
}
