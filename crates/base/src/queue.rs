//! The queue of events, ordered by (time, stamp): a radix heap.
//!
//! An event is in bucket b if bit b is the highest bit in which its time differs from the present time. When the events
//! of the present time are used up, the lowest nonempty bucket is distributed over the lower buckets, so an event moves
//! at most once for each bit, and mostly about twice, through memory that is read in order (Ahuja, Mehlhorn, Orlin,
//! Tarjan, 1990). Buckets keep the order of insertion. Stamps increase with this order except for events that are
//! queued again, so the events of one time are sorted only if they must be. A separate heap has events in the past,
//! which several CPUs of a rank or a message of 0 bytes can cause, and events that are queued again for the present
//! time.

use std::{cmp::Reverse, collections::BinaryHeap};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Event<S = u32> {
    pub time: u64,
    pub stamp: S,
    /// The engine's description of the event.
    pub what: u32,
}

pub struct Queue<S = u32> {
    /// The present time, which is the time of all events in `front`.
    time: u64,
    front: Vec<Event<S>>,
    /// The number of events in `front` that were already taken.
    used: usize,
    /// Bucket b holds later events whose time differs from `time` in bit b and in no higher bit.
    buckets: [Vec<Event<S>>; 64],
    /// Bit mask of the nonempty buckets.
    filled: u64,
    beside: BinaryHeap<Reverse<Event<S>>>,
}

impl<S: Copy + Ord> Default for Queue<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Copy + Ord> Queue<S> {
    pub fn new() -> Self {
        Self {
            time: 0,
            front: Vec::new(),
            used: 0,
            buckets: std::array::from_fn(|_| Vec::new()),
            filled: 0,
            beside: BinaryHeap::new(),
        }
    }

    #[inline]
    pub fn push(&mut self, event: Event<S>) {
        if event.time > self.time {
            let bucket = (event.time ^ self.time).ilog2();
            self.filled |= 1 << bucket;
            self.buckets[bucket as usize].push(event);
        } else if event.time == self.time && self.front.last().is_none_or(|last| last.stamp < event.stamp) {
            self.front.push(event);
        } else {
            self.beside.push(Reverse(event));
        }
    }

    #[inline]
    pub fn pop(&mut self) -> Option<Event<S>> {
        self.fill_front();
        let event = self.front.get(self.used).copied();
        if let Some(&Reverse(other)) = self.beside.peek()
            && event.is_none_or(|event| other < event)
        {
            self.beside.pop();
            return Some(other);
        }
        self.used += usize::from(event.is_some());
        event
    }

    /// Returns the event that [`Queue::pop`] would return.
    #[inline]
    pub fn peek(&mut self) -> Option<Event<S>> {
        self.fill_front();
        let beside = self.beside.peek().map(|&Reverse(event)| event);
        self.front.get(self.used).copied().into_iter().chain(beside).min()
    }

    /// Returns the remaining events of `front`. Events of the separate heap may come between them.
    #[inline]
    pub fn present(&self) -> &[Event<S>] {
        &self.front[self.used..]
    }

    /// Replaces the stamps of all events. `stamp` must preserve their order.
    pub fn restamp(&mut self, stamp: impl Fn(S) -> S) {
        let beside = std::mem::take(&mut self.beside).into_vec();
        let restamped = |Reverse(event): Reverse<Event<S>>| Reverse(Event { stamp: stamp(event.stamp), ..event });
        self.beside = beside.into_iter().map(restamped).collect();
        let later = self.buckets.iter_mut().flatten();
        self.front.iter_mut().chain(later).for_each(|event| event.stamp = stamp(event.stamp));
    }

    #[inline]
    fn fill_front(&mut self) {
        if self.used == self.front.len() {
            self.front.clear();
            self.used = 0;
            if self.beside.is_empty() {
                self.advance();
            }
        }
    }

    /// Advances to the time of the next event, if there is one. `front` must be empty.
    fn advance(&mut self) {
        if self.filled == 0 {
            return;
        }
        let lowest = self.filled.trailing_zeros();
        self.filled &= self.filled - 1;
        let mut events = std::mem::take(&mut self.buckets[lowest as usize]);
        self.time = events.iter().map(|e| e.time).min().unwrap_or(self.time);
        for &event in &events {
            match (event.time ^ self.time).checked_ilog2() {
                None => self.front.push(event),
                Some(bucket) => {
                    self.filled |= 1 << bucket;
                    self.buckets[bucket as usize].push(event);
                }
            }
        }
        events.clear();
        self.buckets[lowest as usize] = events;
        if !self.front.is_sorted_by_key(|e| e.stamp) {
            self.front.sort_unstable_by_key(|e| e.stamp);
        }
    }
}
