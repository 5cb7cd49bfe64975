//! All queues of the machine in flat tables: fixed slots, first in first out, with the cycle from which a wavelet may
//! be taken.

/// A wavelet in a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wavelet {
    pub value: u32,
    /// The cycle from which it may move, and two flags in the top bits.
    meta: u32,
}

const CONTROL: u32 = 1 << 31;
const ADVANCE: u32 = 1 << 30;

/// No simulation runs longer: the flags need the bits above.
pub const LAST_CYCLE: u32 = ADVANCE - 64;

impl Wavelet {
    pub fn data(value: u32, ready: u32, advance: bool) -> Self {
        Self { value, meta: ready | if advance { ADVANCE } else { 0 } }
    }

    pub fn control(ready: u32) -> Self {
        Self { value: 0, meta: ready | CONTROL }
    }

    pub fn ready(self) -> u32 {
        self.meta & !(CONTROL | ADVANCE)
    }

    pub fn is_control(self) -> bool {
        self.meta & CONTROL != 0
    }

    /// The router of the sender advances its color behind this wavelet.
    pub fn advances(self) -> bool {
        self.meta & ADVANCE != 0
    }

    /// The same wavelet on its way on.
    pub fn moved(self, ready: u32) -> Self {
        Self { value: self.value, meta: ready | self.meta & CONTROL }
    }
}

#[derive(Clone, Copy)]
struct Head {
    /// The cycle of the last pop: its slot is free only from the next cycle on.
    popped: u32,
    first: u8,
    len: u8,
    capacity: u8,
}

/// Queues by number.
pub struct Queues {
    heads: Vec<Head>,
    slots: Vec<Wavelet>,
    mask: u8,
    shift: u32,
}

impl Queues {
    /// Queues of at most `most` wavelets each.
    pub fn new(most: u32) -> Self {
        let stride = most.next_power_of_two().max(2);
        Self { heads: Vec::new(), slots: Vec::new(), mask: (stride - 1) as u8, shift: stride.trailing_zeros() }
    }

    pub fn add(&mut self, capacity: u32) -> u32 {
        self.heads.push(Head { popped: u32::MAX, first: 0, len: 0, capacity: capacity as u8 });
        self.heads.len() as u32 - 1
    }

    /// Makes the slots of all queues that were added.
    pub fn allocate(&mut self) {
        self.slots = vec![Wavelet { value: 0, meta: 0 }; self.heads.len() << self.shift];
    }

    pub fn len(&self, queue: u32) -> usize {
        usize::from(self.heads[queue as usize].len)
    }

    /// The wavelet at the front, if it may move in this cycle.
    pub fn front(&self, queue: u32, cycle: u32) -> Option<Wavelet> {
        let head = &self.heads[queue as usize];
        if head.len == 0 {
            return None;
        }
        let wavelet = self.slots[((queue as usize) << self.shift) + usize::from(head.first)];
        (wavelet.ready() <= cycle).then_some(wavelet)
    }

    /// Pops the wavelet at the front, which the caller has seen there.
    pub fn take(&mut self, queue: u32, cycle: u32) -> u32 {
        let first = self.heads[queue as usize].first;
        let value = self.slots[((queue as usize) << self.shift) + usize::from(first)].value;
        self.pop(queue, cycle);
        value
    }

    pub fn pop(&mut self, queue: u32, cycle: u32) {
        let head = &mut self.heads[queue as usize];
        head.first = (head.first + 1) & self.mask;
        head.len -= 1;
        head.popped = cycle;
    }

    /// Whether there was room for one more when the cycle began.
    pub fn has_room(&self, queue: u32, cycle: u32) -> bool {
        let head = &self.heads[queue as usize];
        head.len + u8::from(head.popped == cycle) < head.capacity
    }

    pub fn push(&mut self, queue: u32, wavelet: Wavelet) {
        let head = &mut self.heads[queue as usize];
        let at = (head.first + head.len) & self.mask;
        self.slots[((queue as usize) << self.shift) + usize::from(at)] = wavelet;
        head.len += 1;
    }
}
