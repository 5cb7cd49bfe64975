//! All queues of the machine in flat tables: fixed slots, first in, first out. Of a wavelet, only the cycle from which
//! it may move is stored. Its data follow from the recorded moves (`moves`). A *row* is one color at a router.

use unisono_base::narrow;

/// A wavelet in a queue: the cycle from which it may move, and two flags in the top bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wavelet(u32);

const CONTROL: u32 = 1 << 31;
const ADVANCE: u32 = 1 << 30;

/// End of the longest simulation in cycles: flags use the higher bits.
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

    /// Returns true if the sender's router advances its color after this wavelet.
    pub fn advances(self) -> bool {
        self.0 & ADVANCE != 0
    }

    /// Returns this wavelet after a move, with a new ready cycle and without the advance flag.
    pub fn moved(self, ready: u32) -> Self {
        Self(ready | self.0 & CONTROL)
    }
}

/// Pushes and pops of a queue between two routers in the last period, one bit for each cycle modulo the period, for
/// `steady`.
#[derive(Clone, Copy, Default)]
pub struct Ring {
    pub push: u16,
    pub pop: u16,
    /// The cycle of the last push. While a PE at the queue sleeps, only pushes by the PE that is awake are recorded.
    pub push_last: u32,
    /// Cycle in which a control wavelet was pushed to a sleeping PE; 0 for none.
    pub control: u32,
}

/// State of a queue without its slots, in half a cache line.
#[derive(Clone, Copy, Default)]
struct Head {
    /// The cycle of the last pop. The popped slot is free from the next cycle on.
    popped: u32,
    /// A copy of the first wavelet, if there is one. Most reads of a queue need only this copy.
    front: Wavelet,
    /// The index of the queue's first slot. `mask` is the number of its slots, a power of two, minus one.
    start: u32,
    mask: u8,
    first: u8,
    len: u8,
    capacity: u8,
    /// The router row of the queue, relative to its PE's first row. `feeder` is the row of the sending neighbor,
    /// relative to the neighbor's first row.
    row: u8,
    feeder: u8,
    ring: Ring,
}

/// Result of comparing a queue with its state one period before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// No wavelet arrived or left, and all wavelets could already move one period before.
    Same,
    /// The wavelets equal those of one period before, with ready cycles that are later by one period.
    Shifted,
    No,
}

/// All queues, addressed by number.
#[derive(Clone, Default)]
pub struct Queues {
    heads: Vec<Head>,
    slots: Vec<Wavelet>,
    /// Number of queues after [`Self::empty`].
    emptied: usize,
}

impl Queues {
    /// Adds a queue for `capacity` wavelets, with one additional slot for a control wavelet of a ramp. Returns the
    /// number of the queue.
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

    /// Returns the router row of a queue, relative to the first row of its PE.
    pub fn row(&self, queue: u32) -> u8 {
        self.heads[queue as usize].row
    }

    /// Returns the row that sends to this queue, relative to the first row of the sending PE.
    pub fn feeder(&self, queue: u32) -> u8 {
        self.heads[queue as usize].feeder
    }

    pub fn set_feeder(&mut self, queue: u32, row: u8) {
        self.heads[queue as usize].feeder = row;
    }

    pub fn popped(&self, queue: u32) -> u32 {
        self.heads[queue as usize].popped
    }

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

    /// Reads a queue, if it exists, so that its state is in the cache. The returned value has no meaning.
    #[inline]
    pub fn read_ahead(&self, queue: u32) -> u32 {
        self.heads.get(queue as usize).map_or(0, |head| head.popped)
    }

    /// Returns the wavelet at the front, if it may move in `cycle`.
    #[inline]
    pub fn front(&self, queue: u32, cycle: u32) -> Option<Wavelet> {
        let head = &self.heads[queue as usize];
        if head.len == 0 {
            return None;
        }
        (head.front.ready() <= cycle).then_some(head.front)
    }

    /// Removes all wavelets and queues. Only the number of queues remains.
    pub fn empty(&mut self) {
        *self = Self { emptied: self.count(), ..Self::default() };
    }

    /// Returns the wavelets of a queue, oldest first.
    pub fn wavelets(&self, queue: u32) -> impl Iterator<Item = Wavelet> + '_ {
        (0..self.heads[queue as usize].len).map(move |n| self.slots[self.slot(queue, n)])
    }

    /// Removes the wavelet at the front, which must exist. Returns true if the queue was full.
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

    /// Returns true if the queue had room for one more wavelet at the start of the cycle.
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

    /// Compares a queue with `before`, a copy made at `cycle`, `period` cycles ago.
    pub fn repeats(&self, queue: u32, before: &Self, cycle: u32, period: u32) -> Repeat {
        if self.len(queue) != before.len(queue) {
            return Repeat::No;
        }
        let pairs = || self.wavelets(queue).zip(before.wavelets(queue));
        // A wavelet that was not ready when the copy was made now has a different time relative to the clock.
        if pairs().all(|(now, then)| now == then && then.ready() <= cycle) {
            return Repeat::Same;
        }
        let shifted = pairs().all(|(now, then)| now == Wavelet::data(then.ready() + period, false));
        if shifted { Repeat::Shifted } else { Repeat::No }
    }

    /// Delays all wavelets of a queue by `cycles`.
    pub fn delay(&mut self, queue: u32, cycles: u32) {
        for n in 0..self.heads[queue as usize].len {
            let slot = self.slot(queue, n);
            self.slots[slot].0 += cycles;
        }
        self.heads[queue as usize].front.0 += cycles;
    }

    /// Copies the state of a queue to another one with the same capacity.
    pub fn copy(&mut self, from: u32, to: u32) {
        let (head, other) = (self.heads[from as usize], &mut self.heads[to as usize]);
        let (start, row, feeder) = (other.start, other.row, other.feeder);
        *other = Head { start, row, feeder, ..head };
        let first = head.start as usize;
        self.slots.copy_within(first..=first + usize::from(head.mask), start as usize);
    }

    /// Copies the queues `queues` from the tables `from`.
    pub fn copy_from(&mut self, from: &Self, queues: std::ops::Range<u32>) {
        let heads = queues.start as usize..queues.end as usize;
        let start = |n: usize| self.heads.get(n).map_or(self.slots.len(), |h| h.start as usize);
        let slots = start(heads.start)..start(heads.end);
        self.heads[heads.clone()].copy_from_slice(&from.heads[heads]);
        self.slots[slots.clone()].copy_from_slice(&from.slots[slots]);
    }
}
