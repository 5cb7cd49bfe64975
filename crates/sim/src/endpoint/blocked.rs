//! Events that wait for a busy CPU or network interface.
//!
//! The rule is that such an event comes again, with its old stamp, at the time that its resources are free as far as is
//! known now; if others keep them busy, it comes again and again, which is quadratic in the events that wait. Events of
//! one rank that wait for the same resources in the same way form a *class*. All of them come again at the same times,
//! and the one of the lowest stamp first: as long as the times at which resources are free never fall, none of the
//! others can start before it. So only that one, the head of its class, is in the queue; the others lie in a heap by
//! stamp, and cost a logarithm each.
//!
//! (Proof: let e be examined at time t while e' of its class and of a lower stamp waits. e' is due at some t' > t, or
//! it would have come first; t' is when the resources were free by the time e' was last examined; they are not free
//! earlier now, so not at t.) The engine falls back on the rule itself where such a time does fall.

use rustc_hash::FxHashMap;

/// What the engine keeps for each task. An index is 1 more than the task it names, and 0 names none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Link {
    /// Tasks that it still waits for; [`DONE`] once it is done.
    pub pending: u32,
    /// The next one in a list of the matching, or the next sibling in a heap of a class.
    pub next: u32,
    child: u32,
    stamp: u32,
}

pub(super) const DONE: u32 = u32::MAX;

/// How an event uses the resources of its rank.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub(super) enum Use {
    Compute,
    Send,
    Arrive,
}

/// The rank and the resources that events of a class wait for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct ClassKey {
    pub rank: u32,
    pub usage: Use,
    pub cpu: u8,
    pub nic: u8,
}

#[derive(Clone, Copy, Debug, Default)]
struct Class {
    /// When the head is due.
    time: u64,
    stamp: u32,
    /// The head; 0: nobody waits.
    head: u32,
    /// Root of the heap of the others.
    others: u32,
}

pub(super) struct Blocked {
    /// Of ranks with one CPU and one interface: three a rank.
    dense: Vec<Class>,
    sparse: FxHashMap<ClassKey, Class>,
    /// Heaps that are being melded.
    melding: Vec<u32>,
}

impl Blocked {
    pub fn new(ranks: u32, single: bool) -> Self {
        let dense = vec![Class::default(); if single { 3 * ranks as usize } else { 0 }];
        Self { dense, sparse: FxHashMap::default(), melding: Vec::new() }
    }

    fn class(&mut self, key: ClassKey) -> &mut Class {
        if self.dense.is_empty() {
            self.sparse.entry(key).or_default()
        } else {
            &mut self.dense[3 * key.rank as usize + key.usage as usize]
        }
    }

    /// `task` has to wait until `time`. Whether it is now the head and has to be queued.
    pub fn wait(&mut self, links: &mut [Link], key: ClassKey, time: u64, stamp: u32, task: u32) -> bool {
        let class = self.class(key);
        let is_head = class.head == 0 || stamp < class.stamp;
        let other = if is_head { (class.head, class.stamp) } else { (task + 1, stamp) };
        if is_head {
            *class = Class { time, stamp, head: task + 1, others: class.others };
        }
        if other.0 != 0 {
            let link = &mut links[other.0 as usize - 1];
            (link.next, link.child, link.stamp) = (0, 0, other.1);
            class.others = meld(links, class.others, other.0);
        }
        is_head
    }

    /// Whether the event of this time and stamp is the head's; heads that were overtaken left events behind.
    pub fn is_head(&mut self, key: ClassKey, time: u64, stamp: u32) -> bool {
        let class = self.class(key);
        class.head != 0 && (class.time, class.stamp) == (time, stamp)
    }

    /// The head has to wait on, until `time`.
    pub fn wait_on(&mut self, key: ClassKey, time: u64) {
        self.class(key).time = time;
    }

    /// The head has started. The next one is due at `time`: its stamp and task.
    pub fn next(&mut self, links: &mut [Link], key: ClassKey, time: u64) -> Option<(u32, u32)> {
        let mut melding = std::mem::take(&mut self.melding);
        let class = self.class(key);
        let head = class.others;
        if head == 0 {
            class.head = 0;
        } else {
            let link = links[head as usize - 1];
            let others = meld_all(links, link.child, &mut melding);
            *class = Class { time, stamp: link.stamp, head, others };
        }
        self.melding = melding;
        (head != 0).then(|| (links[head as usize - 1].stamp, head - 1))
    }
}

// The heap is a pairing heap (Fredman, Sedgewick, Sleator, Tarjan, 1986), whose links are the tasks' own.

fn meld(links: &mut [Link], a: u32, b: u32) -> u32 {
    if a == 0 || b == 0 {
        return a | b;
    }
    let a_first = links[a as usize - 1].stamp < links[b as usize - 1].stamp;
    let (first, other) = if a_first { (a, b) } else { (b, a) };
    links[other as usize - 1].next = std::mem::replace(&mut links[first as usize - 1].child, other);
    first
}

/// Melds a list of siblings: in pairs, then all pairs into one.
fn meld_all(links: &mut [Link], mut at: u32, melding: &mut Vec<u32>) -> u32 {
    while at != 0 {
        let a = at;
        let b = std::mem::take(&mut links[a as usize - 1].next);
        at = if b == 0 { 0 } else { std::mem::take(&mut links[b as usize - 1].next) };
        melding.push(meld(links, a, b));
    }
    let mut root = 0;
    while let Some(heap) = melding.pop() {
        root = meld(links, root, heap);
    }
    root
}
