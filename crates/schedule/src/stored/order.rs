//! The order in which programs run if no message is buffered: steps, posted receives and ended sends of all ranks.
//!
//! Edges lead from a step to the next step of its lane, and from a receive to the next receive of its lane; from a step
//! or a send to the events that wait for it; from a receive to the step that consumes its message; and from a step to
//! its sends. For each message, edges also lead from the sending step to the consuming step, and from the posted
//! receive to the end of the send. This last edge models a rendezvous. A library that buffers some messages has fewer
//! edges, so an order without a cycle is valid for every library.

use std::ops::Range;

use unisono_base::{interrupt, parallel};

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
    /// The events of each rank, in an order of all events.
    pub events: Vec<Vec<Event>>,
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

/// One end of a message; `key` is (peer, tag), and `len` is (length, alignment), both in blocks.
struct End {
    key: (u32, u32),
    lane: u32,
    /// Row of the departure or arrival; `step` is the row of the step that sends or consumes the message.
    row: u32,
    step: u32,
    len: (u32, u32),
}

/// The ends of messages at one rank, by their keys, then in the order of posting.
struct Ends {
    sent: Vec<End>,
    received: Vec<End>,
}

impl Ends {
    fn new(p: &RankProgram, rank: u32) -> Result<Self, Unsound> {
        let mut ends =
            Self { sent: Vec::with_capacity(p.departures.len()), received: Vec::with_capacity(p.arrivals.len()) };
        let (mut consumed, mut produced) = (vec![false; p.arrivals.len()], vec![false; p.departures.len()]);
        for (lane_number, lane) in (0u32..).zip(&p.lanes) {
            let mut last_departure = None;
            for s in lane.steps.clone() {
                interrupt::poll();
                let step = &p.steps[s as usize];
                for a in step.arrivals.clone() {
                    if !lane.arrivals.contains(&a) || std::mem::replace(&mut consumed[a as usize], true) {
                        return Err(Unsound::Rows { rank, what: "arrivals", row: a });
                    }
                    let row = &p.arrivals[a as usize];
                    let (key, len) = ((row.peer, row.tag), (row.len, row.align));
                    ends.received.push(End { key, lane: lane_number, row: a, step: s, len });
                }
                for d in step.departures.clone() {
                    let ascends = last_departure.is_none_or(|last| last < d);
                    if !ascends || std::mem::replace(&mut produced[d as usize], true) {
                        return Err(Unsound::Rows { rank, what: "departures", row: d });
                    }
                    last_departure = Some(d);
                    let row = &p.departures[d as usize];
                    let (key, len) = ((row.peer, row.tag), (row.len, row.align));
                    ends.sent.push(End { key, lane: lane_number, row: d, step: s, len });
                }
            }
        }
        for (what, rows) in [("arrivals", consumed), ("departures", produced)] {
            if let Some(row) = rows.iter().position(|&used| !used) {
                return Err(Unsound::Rows { rank, what, row: row as u32 });
            }
        }
        for (ends, sent) in [(&mut ends.sent, true), (&mut ends.received, false)] {
            ends.sort_unstable_by_key(|end| (end.key, end.row));
            // If two lanes post messages of one peer and tag, the order of these messages is not defined.
            if let Some(two) = ends.windows(2).find(|two| two[0].key == two[1].key && two[0].lane != two[1].lane) {
                let (peer, tag) = two[0].key;
                let (from, to) = if sent { (rank, peer) } else { (peer, rank) };
                return Err(Unsound::Lanes { from, to, tag });
            }
        }
        Ok(ends)
    }
}

/// Numbers of the events of messages.
struct Links {
    /// For each posted receive the end of its send, and for each end of a send the posted receive.
    partner: Vec<u32>,
    /// For each posted receive, the step that sends its message.
    sender: Vec<u32>,
}

/// Pairs sends with receives as MPI does: messages with the same sender, receiver and tag are paired in the order of
/// posting.
fn pair(programs: &[RankProgram], numbers: &Numbers, ends: &[Ends]) -> Result<(Vec<Message>, Links), Unsound> {
    let count = numbers.first[programs.len()];
    let mut links = Links { partner: vec![0; count], sender: vec![0; count] };
    let mut messages = Vec::with_capacity(ends.iter().map(|ends| ends.sent.len()).sum());
    // In the list of each receiver, senders ascend, as they do in this loop.
    let mut next = vec![0_usize; ends.len()];
    for (from, sends) in (0u32..).zip(ends) {
        for send in &sends.sent {
            interrupt::poll();
            let (to, tag) = send.key;
            let Some(receive) = ends[to as usize].received.get(next[to as usize]).filter(|end| end.key == (from, tag))
            else {
                let first = first_left(ends, &next).map_or((from, to, tag), |left| left.min((from, to, tag)));
                return Err(Unsound::Unmatched { from: first.0, to: first.1, tag: first.2 });
            };
            if send.len != receive.len {
                return Err(Unsound::Length { from, to, tag, sent: send.len.0, received: receive.len.0 });
            }
            next[to as usize] += 1;
            let number = |rank: u32, event| numbers.of(&programs[rank as usize], rank as usize, event);
            let (posted, ended) = (number(to, Event::Posted(receive.row)), number(from, Event::Ended(send.row)));
            (links.partner[posted], links.partner[ended]) = (ended as u32, posted as u32);
            links.sender[posted] = number(from, Event::Step(send.step)) as u32;
            messages.push(Message { from, departure: send.row, to, arrival: receive.row });
        }
    }
    match first_left(ends, &next) {
        Some((from, to, tag)) => Err(Unsound::Unmatched { from, to, tag }),
        None => Ok((messages, links)),
    }
}

/// Returns the sender, receiver and tag of the first received message that has no send.
fn first_left(ends: &[Ends], next: &[usize]) -> Option<(u32, u32, u32)> {
    let left = (0u32..).zip(ends).zip(next).filter_map(|((to, ends), &next)| Some((to, ends.received.get(next)?.key)));
    left.map(|(to, (from, tag))| (from, to, tag)).min()
}

/// Pairs the ends of messages and orders all events.
///
/// # Errors
/// Returns an error if a row belongs to no step or to two, if a message has only one end or ends of different lengths
/// or alignments, if the order of messages is undefined, if events wait in a cycle, or if there are 2^32 - 1 events or
/// more.
pub fn order(programs: &[RankProgram]) -> Result<Order, Unsound> {
    let numbers = Numbers::new(programs)?;
    let ranks: Vec<u32> = (0u32..).zip(programs).map(|(rank, _)| rank).collect();
    let ends: Result<Vec<Ends>, _> = parallel::map(&ranks, |&rank| Ends::new(&programs[rank as usize], rank)).collect();
    let (messages, links) = pair(programs, &numbers, &ends?)?;
    let count = numbers.first[programs.len()];
    let mut run = Run::new(programs, numbers, links);
    while let Some(lane) = run.ready.pop() {
        run.go_on(lane);
    }
    let left = count - run.events.iter().map(Vec::len).sum::<usize>();
    if left > 0 { Err(Unsound::Circle { events: left as u64 }) } else { Ok(Order { events: run.events, messages }) }
}

/// The state of an event: [`HAPPENED`]; [`OPEN`] if it has not happened and no lane waits for it; otherwise the first
/// lane that waits for it.
const OPEN: u32 = u32::MAX;
const HAPPENED: u32 = u32::MAX - 1;

/// The steps of a lane, or its receives.
struct Progress {
    rank: u32,
    has_steps: bool,
    /// Rows that remain.
    rows: Range<u32>,
    /// For the first remaining row, the number of its waits and arrivals that are known to have happened. Each is
    /// checked only once.
    checked: usize,
    /// The next lane that waits for the same event, or [`OPEN`].
    waits_too: u32,
}

/// A run of all programs. Each lane runs as far as it can before another lane runs.
struct Run<'a> {
    programs: &'a [RankProgram],
    numbers: Numbers,
    links: Links,
    state: Vec<u32>,
    lanes: Vec<Progress>,
    ready: Vec<u32>,
    events: Vec<Vec<Event>>,
}

impl<'a> Run<'a> {
    fn new(programs: &'a [RankProgram], numbers: Numbers, links: Links) -> Self {
        let mut lanes = Vec::new();
        for (rank, p) in (0u32..).zip(programs) {
            for lane in &p.lanes {
                let of = |rows: &Range<u32>, has_steps| {
                    let rows = rows.clone();
                    Progress { rank, has_steps, rows, checked: 0, waits_too: OPEN }
                };
                lanes.extend([of(&lane.arrivals, false), of(&lane.steps, true)]);
            }
        }
        let length = |p: &RankProgram| p.steps.len() + p.arrivals.len() + p.departures.len();
        Self {
            programs,
            state: vec![OPEN; numbers.first[programs.len()]],
            numbers,
            links,
            ready: (0..lanes.len() as u32).rev().collect(),
            lanes,
            events: programs.iter().map(|p| Vec::with_capacity(length(p))).collect(),
        }
    }

    fn go_on(&mut self, lane: u32) {
        let Progress { rank, has_steps, ref rows, mut checked, .. } = self.lanes[lane as usize];
        let p = &self.programs[rank as usize];
        for row in rows.clone() {
            interrupt::poll();
            let event = if has_steps { Event::Step(row) } else { Event::Posted(row) };
            if let Some((at, awaited)) = self.awaited(rank, event, std::mem::take(&mut checked)) {
                let progress = &mut self.lanes[lane as usize];
                (progress.rows.start, progress.checked) = (row, at);
                progress.waits_too = std::mem::replace(&mut self.state[awaited], lane);
                return;
            }
            let number = self.happens(rank, event);
            if let Event::Step(s) = event {
                for d in p.steps[s as usize].departures.clone() {
                    let ended = self.numbers.of(p, rank as usize, Event::Ended(d));
                    if self.state[self.links.partner[ended] as usize] == HAPPENED {
                        self.happens(rank, Event::Ended(d));
                    }
                }
            } else if self.state[self.links.sender[number] as usize] == HAPPENED {
                let from = p.arrivals[row as usize].peer;
                let first = self.numbers.of(&self.programs[from as usize], from as usize, Event::Ended(0));
                self.happens(from, Event::Ended(self.links.partner[number] - first as u32));
            }
        }
    }

    /// Returns the first event that must precede a step or a posted receive and has not happened, after the event's
    /// position in the list of the row's waits, then arrivals. The positions before `checked` have happened.
    fn awaited(&self, rank: u32, event: Event, checked: usize) -> Option<(usize, usize)> {
        let p = &self.programs[rank as usize];
        let number = |event| self.numbers.of(p, rank as usize, event);
        let (waits, arrivals) = match event {
            Event::Step(s) => (&p.steps[s as usize].waits, p.steps[s as usize].arrivals.clone()),
            Event::Posted(a) => (&p.arrivals[a as usize].waits, 0..0),
            Event::Ended(_) => unreachable!("a lane steps and posts"),
        };
        let waits = &p.waits[waits.start as usize..waits.end as usize];
        let is_open = |&number: &usize| self.state[number] != HAPPENED;
        (checked..waits.len() + arrivals.len()).find_map(|at| {
            let open = match waits.get(at) {
                Some(&Wait::Step(s)) => Some(number(Event::Step(s))).filter(is_open),
                Some(&Wait::Departure(d)) => Some(number(Event::Ended(d))).filter(is_open),
                None => {
                    let posted = number(Event::Posted(arrivals.start + (at - waits.len()) as u32));
                    [posted, self.links.sender[posted] as usize].into_iter().find(is_open)
                }
            };
            Some((at, open?))
        })
    }

    /// Appends an event, makes the lanes that wait for it ready, and returns its number.
    fn happens(&mut self, rank: u32, event: Event) -> usize {
        let number = self.numbers.of(&self.programs[rank as usize], rank as usize, event);
        let mut waiting = std::mem::replace(&mut self.state[number], HAPPENED);
        while waiting != OPEN {
            self.ready.push(waiting);
            waiting = std::mem::replace(&mut self.lanes[waiting as usize].waits_too, OPEN);
        }
        self.events[rank as usize].push(event);
        number
    }
}
