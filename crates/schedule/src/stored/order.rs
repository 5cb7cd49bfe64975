//! The order in which programs run if no message is buffered: steps, posted receives and ended sends of all ranks.
//!
//! Edges lead from a step to the next step of its lane, and from a receive to the next receive; from a step or a send
//! to the events that wait for it; from a receive to the step that consumes its message, and from a step to its sends;
//! and for each message from the sending step to the consuming step, and from the posted receive to the end of the
//! send. This last edge models a rendezvous. A library that buffers some messages has fewer edges, so an order without
//! a cycle is valid for every library.

use super::{RankProgram, Unsound, Wait};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A step has completed, and its messages are handed to the library.
    Step(u32),
    Posted(u32),
    /// A send has ended: the memory that it sent may be overwritten.
    Ended(u32),
}

/// A message: `departure` is its row at the sender, `arrival` its row at the receiver.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    pub from: u32,
    pub departure: u32,
    pub to: u32,
    pub arrival: u32,
}

pub struct Order {
    /// All events in order, each with its rank.
    pub events: Vec<(u32, Event)>,
    pub messages: Vec<Message>,
}

/// Numbers all events: rank by rank, first its steps, then its receives, then its sends.
struct Numbers {
    first: Vec<usize>,
}

impl Numbers {
    fn new(programs: &[RankProgram]) -> Result<Self, Unsound> {
        let mut first = vec![0usize];
        for p in programs {
            let count = p.steps.len() + p.arrivals.len() + p.departures.len();
            first.push(first[first.len() - 1] + count);
        }
        if first[programs.len()] >= u32::MAX as usize {
            return Err(Unsound::TooLarge { events: first[programs.len()] as u64 });
        }
        Ok(Self { first })
    }

    fn of(&self, p: &RankProgram, rank: usize, event: Event) -> usize {
        let row = match event {
            Event::Step(s) => s as usize,
            Event::Posted(a) => p.steps.len() + a as usize,
            Event::Ended(d) => p.steps.len() + p.arrivals.len() + d as usize,
        };
        self.first[rank] + row
    }
}

/// One end of a message; `key` is (sender, receiver, tag), and `len` is (length, alignment), both in blocks.
struct End {
    key: (u32, u32, u32),
    lane: u32,
    /// Row of the departure or arrival; `step` is the row of the step that sends or consumes the message.
    row: u32,
    step: u32,
    len: (u32, u32),
}

/// Pairs the ends of messages and orders all events.
///
/// # Errors
/// Returns an error if a row belongs to no step or to two, if a message has only one end or ends of different lengths
/// or alignments, if the order of messages is undefined, if events wait in a cycle, or if there are 2^32 - 1 events or
/// more.
pub fn order(programs: &[RankProgram]) -> Result<Order, Unsound> {
    let numbers = Numbers::new(programs)?;
    let count = numbers.first[programs.len()];
    let mut edges: Vec<(u32, u32)> = Vec::with_capacity(3 * count);
    let mut senders: Vec<End> = Vec::with_capacity(programs.iter().map(|p| p.departures.len()).sum());
    let mut receivers: Vec<End> = Vec::with_capacity(programs.iter().map(|p| p.arrivals.len()).sum());
    for (rank, p) in programs.iter().enumerate() {
        let number = |event| numbers.of(p, rank, event);
        let mut edge = |from: Event, to: Event| edges.push((number(from) as u32, number(to) as u32));
        let waits = |rows: &std::ops::Range<u32>| {
            p.waits[rows.start as usize..rows.end as usize].iter().map(|w| match *w {
                Wait::Step(s) => Event::Step(s),
                Wait::Departure(d) => Event::Ended(d),
            })
        };
        let mut consumed = vec![false; p.arrivals.len()];
        let mut produced = vec![false; p.departures.len()];
        for (lane_number, lane) in (0u32..).zip(&p.lanes) {
            lane.arrivals.clone().skip(1).for_each(|a| edge(Event::Posted(a - 1), Event::Posted(a)));
            let mut last_departure = None;
            for s in lane.steps.clone() {
                let step = &p.steps[s as usize];
                if s > lane.steps.start {
                    edge(Event::Step(s - 1), Event::Step(s));
                }
                waits(&step.waits).for_each(|before| edge(before, Event::Step(s)));
                for a in step.arrivals.clone() {
                    if !lane.arrivals.contains(&a) || std::mem::replace(&mut consumed[a as usize], true) {
                        return Err(Unsound::Rows { rank: rank as u32, what: "arrivals", row: a });
                    }
                    edge(Event::Posted(a), Event::Step(s));
                    let row = &p.arrivals[a as usize];
                    let key = (row.peer, rank as u32, row.tag);
                    receivers.push(End { key, lane: lane_number, row: a, step: s, len: (row.len, row.align) });
                }
                for d in step.departures.clone() {
                    let ascends = last_departure.is_none_or(|last| last < d);
                    if !ascends || std::mem::replace(&mut produced[d as usize], true) {
                        return Err(Unsound::Rows { rank: rank as u32, what: "departures", row: d });
                    }
                    last_departure = Some(d);
                    edge(Event::Step(s), Event::Ended(d));
                    let row = &p.departures[d as usize];
                    let key = (rank as u32, row.peer, row.tag);
                    senders.push(End { key, lane: lane_number, row: d, step: s, len: (row.len, row.align) });
                }
            }
        }
        for (a, row) in (0u32..).zip(&p.arrivals) {
            waits(&row.waits).for_each(|before| edge(before, Event::Posted(a)));
        }
        for (what, rows) in [("arrivals", consumed), ("departures", produced)] {
            if let Some(row) = rows.iter().position(|&used| !used) {
                return Err(Unsound::Rows { rank: rank as u32, what, row: row as u32 });
            }
        }
    }
    let messages = pair(senders, receivers, |send, receive| {
        let (from, to) = (send.key.0 as usize, send.key.1 as usize);
        let at_sender = |event| numbers.of(&programs[from], from, event) as u32;
        let at_receiver = |event| numbers.of(&programs[to], to, event) as u32;
        edges.push((at_receiver(Event::Posted(receive.row)), at_sender(Event::Ended(send.row))));
        edges.push((at_sender(Event::Step(send.step)), at_receiver(Event::Step(receive.step))));
    })?;
    let sorted = sort(count, &edges);
    let mut ordered = Vec::with_capacity(count);
    for &number in &sorted {
        let rank = numbers.first.partition_point(|&first| first <= number as usize) - 1;
        let (p, row) = (&programs[rank], number - numbers.first[rank] as u32);
        let (steps, arrivals) = (p.steps.len() as u32, p.arrivals.len() as u32);
        let event = match row {
            row if row < steps => Event::Step(row),
            row if row < steps + arrivals => Event::Posted(row - steps),
            row => Event::Ended(row - steps - arrivals),
        };
        ordered.push((rank as u32, event));
    }
    if sorted.len() < count {
        return Err(Unsound::Circle { events: (count - sorted.len()) as u64 });
    }
    Ok(Order { events: ordered, messages })
}

/// Pairs sends with receives as MPI does: messages of one sender, receiver and tag in the order of posting. At each end
/// one lane must post all of these messages, because otherwise their order is not defined.
fn pair(
    mut senders: Vec<End>,
    mut receivers: Vec<End>,
    mut paired: impl FnMut(&End, &End),
) -> Result<Vec<Message>, Unsound> {
    for ends in [&mut senders, &mut receivers] {
        ends.sort_unstable_by_key(|end| (end.key, end.row));
        for two in ends.windows(2).filter(|two| two[0].key == two[1].key) {
            if two[0].lane != two[1].lane {
                let (from, to, tag) = two[0].key;
                return Err(Unsound::Lanes { from, to, tag });
            }
        }
    }
    let mut messages = Vec::with_capacity(senders.len());
    for at in 0..senders.len().max(receivers.len()) {
        let (send, receive) = (senders.get(at), receivers.get(at));
        let (Some(send), Some(receive)) = (send, receive) else {
            let (from, to, tag) = send.or(receive).map_or((0, 0, 0), |end| end.key);
            return Err(Unsound::Unmatched { from, to, tag });
        };
        if send.key != receive.key {
            let (from, to, tag) = send.key.min(receive.key);
            return Err(Unsound::Unmatched { from, to, tag });
        }
        if send.len != receive.len {
            let (from, to, tag) = send.key;
            return Err(Unsound::Length { from, to, tag, sent: send.len.0, received: receive.len.0 });
        }
        paired(send, receive);
        messages.push(Message { from: send.key.0, departure: send.row, to: send.key.1, arrival: receive.row });
    }
    Ok(messages)
}

/// Returns a topological order; it has fewer than `count` events if there is a cycle.
fn sort(count: usize, edges: &[(u32, u32)]) -> Vec<u32> {
    let mut first = vec![0u32; count + 1];
    let mut waiting = vec![0u32; count];
    for &(from, to) in edges {
        first[from as usize + 1] += 1;
        waiting[to as usize] += 1;
    }
    for n in 0..count {
        first[n + 1] += first[n];
    }
    let mut next = first.clone();
    let mut targets = vec![0u32; edges.len()];
    for &(from, to) in edges {
        targets[next[from as usize] as usize] = to;
        next[from as usize] += 1;
    }
    let mut ready: Vec<u32> = (0..count as u32).filter(|&n| waiting[n as usize] == 0).collect();
    ready.reverse();
    let mut sorted = Vec::with_capacity(count);
    while let Some(node) = ready.pop() {
        sorted.push(node);
        for &to in &targets[first[node as usize] as usize..first[node as usize + 1] as usize] {
            waiting[to as usize] -= 1;
            if waiting[to as usize] == 0 {
                ready.push(to);
            }
        }
    }
    sorted
}
