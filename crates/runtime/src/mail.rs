//! Messages between ranks of one process, for tests: each is delivered at a moment that the caller picks, directly from
//! the sender's memory to the receiver's, and never before its receive is posted.

use std::collections::{BTreeMap, VecDeque};

struct End<M> {
    request: usize,
    memory: M,
}

struct Channel<M> {
    sent: VecDeque<End<M>>,
    received: VecDeque<End<M>>,
}

/// A message that the caller copies from `sent`, of rank `from`, to `received`, of rank `to`.
pub struct Delivery<M> {
    pub from: u32,
    pub to: u32,
    pub sent: M,
    pub received: M,
}

/// The messages under way. `M` describes their memory.
pub struct Mail<M> {
    /// The channels by sender, receiver and tag.
    channels: BTreeMap<(u32, u32, u32), Channel<M>>,
    /// For each request, whether it has ended.
    requests: Vec<bool>,
}

impl<M> Default for Mail<M> {
    fn default() -> Self {
        Self { channels: BTreeMap::new(), requests: Vec::new() }
    }
}

impl<M> Mail<M> {
    fn end(&mut self, memory: M) -> End<M> {
        self.requests.push(false);
        End { request: self.requests.len() - 1, memory }
    }

    fn channel(&mut self, key: (u32, u32, u32)) -> &mut Channel<M> {
        self.channels.entry(key).or_insert_with(|| Channel { sent: VecDeque::new(), received: VecDeque::new() })
    }

    pub fn send(&mut self, from: u32, to: u32, tag: u32, memory: M) -> usize {
        let end = self.end(memory);
        let request = end.request;
        self.channel((from, to, tag)).sent.push_back(end);
        request
    }

    pub fn receive(&mut self, from: u32, to: u32, tag: u32, memory: M) -> usize {
        let end = self.end(memory);
        let request = end.request;
        self.channel((from, to, tag)).received.push_back(end);
        request
    }

    pub fn has_ended(&self, request: usize) -> bool {
        self.requests[request]
    }

    /// Removes the oldest message of a channel and the oldest receive posted there, and ends both requests. `pick`
    /// selects a channel that has both; `None` if there is none.
    pub fn deliver(&mut self, pick: u64) -> Option<Delivery<M>> {
        let is_ready = |channel: &Channel<M>| !channel.sent.is_empty() && !channel.received.is_empty();
        let ready: Vec<_> = self.channels.iter().filter(|row| is_ready(row.1)).map(|row| *row.0).collect();
        let key = *ready.get((pick % ready.len().max(1) as u64) as usize)?;
        let channel = self.channels.get_mut(&key)?;
        let (sent, received) = (channel.sent.pop_front()?, channel.received.pop_front()?);
        self.requests[sent.request] = true;
        self.requests[received.request] = true;
        Some(Delivery { from: key.0, to: key.1, sent: sent.memory, received: received.memory })
    }
}
