//! Events that wait for a busy CPU or network interface.
//!
//! By the rule of LogGOPSim, such an event is queued again, with its old stamp, for the time at which its resources are
//! expected to be free. If other events keep the resources busy, the event is queued again and again, which is
//! quadratic in the number of waiting events. Events of one rank that wait for the same resources for the same [`Use`]
//! form a *class*. The rule would examine all events of a class at the same times, the lowest stamp first. As long as
//! the times at which resources are free never decrease, no other event of the class can start before the event with
//! the lowest stamp. So only this event, the head of its class, is in the queue. The other events are in a heap by
//! stamp, at a logarithmic cost for each.
//!
//! (Proof: let e be examined at time t while e' of its class, with a lower stamp, waits. e' is due at some t' > t,
//! because otherwise e' would have been examined first. t' is the time at which the resources were to be free when e'
//! was last examined. This time cannot have decreased, so the resources are busy at t.) If such a time does decrease,
//! the engine returns to the rule.

use rustc_hash::FxHashMap;
use unisono_base::narrow;

/// A waiting task in a heap. `next` and `child` are 1 + an index of `Blocked::waiters`; 0 stands for no entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    task: u32,
    stamp: u32,
    /// Next sibling in the heap, or the next free entry.
    next: u32,
    child: u32,
}

/// The use that an event makes of the resources of its rank.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub(super) enum Use {
    Compute,
    Send,
    Arrive,
}

/// A class: its rank and its resources.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct ClassKey {
    pub rank: u32,
    pub usage: Use,
    pub cpu: u8,
    pub nic: u8,
}

#[derive(Clone, Copy, Debug, Default)]
struct Class {
    /// The time for which the head is queued.
    time: u64,
    stamp: u32,
    /// 1 + the task of the event with the lowest stamp; 0 if no event waits.
    head: u32,
    /// Root of the heap of the other events.
    others: u32,
}

pub(super) struct Blocked {
    /// Classes of ranks with one CPU and one interface: three for each rank, one for each [`Use`].
    dense: Vec<Class>,
    sparse: FxHashMap<ClassKey, Class>,
    waiters: Vec<Waiter>,
    /// The start of the list of free entries of `waiters`, as 1 + an index; 0 if there are no free entries.
    free: u32,
    /// Scratch space of [`meld_all`]: heaps to meld.
    melding: Vec<u32>,
}

impl Blocked {
    pub const RANK_BYTES: u128 = 3 * size_of::<Class>() as u128;

    pub fn new(ranks: u32, single: bool) -> Self {
        let dense = vec![Class::default(); if single { 3 * ranks as usize } else { 0 }];
        Self { dense, sparse: FxHashMap::default(), waiters: Vec::new(), free: 0, melding: Vec::new() }
    }

    fn class(&mut self, key: ClassKey) -> &mut Class {
        if self.dense.is_empty() {
            self.sparse.entry(key).or_default()
        } else {
            &mut self.dense[3 * key.rank as usize + key.usage as usize]
        }
    }

    /// Makes `task` wait until `time`. Returns true if the task becomes the head, which must then be queued.
    pub fn wait(&mut self, key: ClassKey, time: u64, stamp: u32, task: u32) -> bool {
        let class = self.class(key);
        let is_head = class.head == 0 || stamp < class.stamp;
        let other = if is_head { (class.head, class.stamp) } else { (task + 1, stamp) };
        if is_head {
            *class = Class { time, stamp, head: task + 1, others: class.others };
        }
        if other.0 != 0 {
            let others = class.others;
            let place = self.place(Waiter { task: other.0 - 1, stamp: other.1, next: 0, child: 0 });
            self.class(key).others = meld(&mut self.waiters, others, place);
        }
        is_head
    }

    /// Stores a waiter in a free entry, and returns 1 + its index.
    fn place(&mut self, waiter: Waiter) -> u32 {
        let place = self.free;
        if place == 0 {
            self.waiters.push(waiter);
            return narrow(self.waiters.len());
        }
        self.free = std::mem::replace(&mut self.waiters[place as usize - 1], waiter).next;
        place
    }

    /// Returns true if the event with this time and stamp is the head. When an event with a lower stamp replaces a
    /// head, the old head's event remains in the queue as a stale event.
    pub fn is_head(&mut self, key: ClassKey, time: u64, stamp: u32) -> bool {
        let class = self.class(key);
        class.head != 0 && (class.time, class.stamp) == (time, stamp)
    }

    /// Postpones the head to `time`.
    pub fn wait_on(&mut self, key: ClassKey, time: u64) {
        self.class(key).time = time;
    }

    /// Replaces the head, which has started, by the waiting event with the lowest stamp, which is due at `time`.
    /// Returns the stamp and the task of the new head; `None` if no event waits.
    pub fn next(&mut self, key: ClassKey, time: u64) -> Option<(u32, u32)> {
        let root = self.class(key).others;
        if root == 0 {
            self.class(key).head = 0;
            return None;
        }
        let Waiter { task, stamp, child, .. } = self.waiters[root as usize - 1];
        let others = meld_all(&mut self.waiters, child, &mut self.melding);
        self.waiters[root as usize - 1].next = std::mem::replace(&mut self.free, root);
        *self.class(key) = Class { time, stamp, head: task + 1, others };
        Some((stamp, task))
    }
}

// The heap is a pairing heap (Fredman, Sedgewick, Sleator, Tarjan, 1986) whose entries are reused.

fn meld(waiters: &mut [Waiter], a: u32, b: u32) -> u32 {
    if a == 0 || b == 0 {
        return a | b;
    }
    let a_first = waiters[a as usize - 1].stamp < waiters[b as usize - 1].stamp;
    let (first, other) = if a_first { (a, b) } else { (b, a) };
    waiters[other as usize - 1].next = std::mem::replace(&mut waiters[first as usize - 1].child, other);
    first
}

/// Melds a list of siblings: first in pairs, then all pairs into one heap.
fn meld_all(waiters: &mut [Waiter], mut at: u32, melding: &mut Vec<u32>) -> u32 {
    while at != 0 {
        let a = at;
        let b = std::mem::take(&mut waiters[a as usize - 1].next);
        at = if b == 0 { 0 } else { std::mem::take(&mut waiters[b as usize - 1].next) };
        melding.push(meld(waiters, a, b));
    }
    let mut root = 0;
    while let Some(heap) = melding.pop() {
        root = meld(waiters, root, heap);
    }
    root
}
