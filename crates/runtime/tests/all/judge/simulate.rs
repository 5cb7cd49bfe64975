//! One run of stored programs in a random order, message by message, with one of three message semantics.
//!
//! The memory of a receive contains arbitrary values between its posting and its completion. The data of a rendezvous
//! are read at a random moment between its start, when both ends have been posted, and its end.

use std::collections::{BTreeMap, VecDeque};

use super::{
    order::{Cell, NOTHING},
    program::{Before, Program},
    random::Random,
};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Semantics {
    /// A send ends when its data have been moved to a posted receive.
    Rendezvous,
    /// A send copies its data and ends immediately.
    Eager,
    /// Each message is either a rendezvous or eager.
    Mixed,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Active,
    Ended,
}

struct Sent {
    departure: usize,
    /// The data, once they were read.
    data: Option<Vec<Cell>>,
}

#[derive(Default)]
struct Channel {
    sent: VecDeque<Sent>,
    posted: VecDeque<usize>,
}

struct Run<'a> {
    p: &'a Program,
    r: &'a mut Random,
    semantics: Semantics,
    memory: Vec<Cell>,
    /// The indices of the next step and the next arrival of each lane.
    lanes: Vec<(usize, usize)>,
    done: Vec<bool>,
    arrivals: Vec<State>,
    departures: Vec<State>,
    channels: BTreeMap<(usize, usize, u32), Channel>,
}

#[derive(Clone, Copy)]
enum Event {
    Post(usize),
    Step(usize),
    Read((usize, usize, u32)),
    Move((usize, usize, u32)),
}

pub fn simulate(p: &Program, inputs: &[Cell], semantics: Semantics, r: &mut Random) -> Result<Vec<Cell>, String> {
    let mut run = Run {
        p,
        r,
        semantics,
        memory: inputs.to_vec(),
        lanes: p.lanes.iter().map(|l| (l.steps.start, l.arrivals.start)).collect(),
        done: vec![false; p.steps.len()],
        arrivals: vec![State::Idle; p.arrivals.len()],
        departures: vec![State::Idle; p.departures.len()],
        channels: BTreeMap::new(),
    };
    // A run prefers steps, or prefers messages, or has no preference.
    let taste = run.r.below(3);
    let mut events = Vec::new();
    loop {
        events.clear();
        for (lane, rows) in p.lanes.iter().enumerate() {
            let (step, arrival) = run.lanes[lane];
            if arrival < rows.arrivals.end && run.is_over(&p.arrivals[arrival].waits) {
                events.push(Event::Post(lane));
            }
            if step < rows.steps.end
                && run.is_over(&p.steps[step].waits)
                && p.steps[step].arrivals.clone().all(|a| run.arrivals[a] == State::Ended)
            {
                events.push(Event::Step(lane));
            }
        }
        let local = events.len();
        for (&key, channel) in &run.channels {
            if let (Some(sent), false) = (channel.sent.front(), channel.posted.is_empty()) {
                if sent.data.is_none() {
                    events.push(Event::Read(key));
                }
                events.push(Event::Move(key));
            }
        }
        let range = match taste {
            0 if local > 0 => 0..local,
            1 if local < events.len() => local..events.len(),
            _ => 0..events.len(),
        };
        if events.is_empty() {
            break;
        }
        let event = events[range.start + run.r.below(range.len())];
        run.happen(event)?;
    }
    let stuck = p.lanes.iter().zip(&run.lanes).any(|(l, at)| at.0 < l.steps.end || at.1 < l.arrivals.end);
    let waiting = run.departures.iter().chain(&run.arrivals).any(|&s| s != State::Ended);
    if stuck || waiting { Err("deadlock".into()) } else { Ok(run.memory) }
}

impl Run<'_> {
    fn is_over(&self, waits: &[Before]) -> bool {
        waits.iter().all(|w| match *w {
            Before::Step(s) => self.done[s],
            Before::Departure(d) => self.departures[d] == State::Ended,
        })
    }

    fn happen(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Post(lane) => {
                let a = self.lanes[lane].1;
                self.lanes[lane].1 += 1;
                let end = &self.p.arrivals[a];
                self.arrivals[a] = if end.span.is_empty() { State::Ended } else { State::Active };
                if !end.span.is_empty() {
                    self.memory[end.span.clone()].fill(NOTHING);
                    self.channels.entry((end.peer, end.rank, end.tag)).or_default().posted.push_back(a);
                }
            }
            Event::Step(lane) => {
                let s = self.lanes[lane].0;
                self.lanes[lane].0 += 1;
                let step = &self.p.steps[s];
                super::work(step, &mut self.memory, self.p.collective.operator.commutative());
                self.done[s] = true;
                for d in step.departures.clone() {
                    let end = &self.p.departures[d];
                    if end.span.is_empty() {
                        self.departures[d] = State::Ended;
                        continue;
                    }
                    let eager = match self.semantics {
                        Semantics::Rendezvous => false,
                        Semantics::Eager => true,
                        Semantics::Mixed => self.r.chance(50),
                    };
                    self.departures[d] = if eager { State::Ended } else { State::Active };
                    let data = eager.then(|| self.memory[end.span.clone()].to_vec());
                    let channel = self.channels.entry((end.rank, end.peer, end.tag)).or_default();
                    channel.sent.push_back(Sent { departure: d, data });
                }
            }
            Event::Read(key) => {
                let Some(channel) = self.channels.get_mut(&key) else { return Ok(()) };
                if let Some(sent) = channel.sent.front_mut() {
                    sent.data = Some(self.memory[self.p.departures[sent.departure].span.clone()].to_vec());
                }
            }
            Event::Move(key) => {
                let Some(channel) = self.channels.get_mut(&key) else { return Ok(()) };
                let (Some(sent), Some(a)) = (channel.sent.pop_front(), channel.posted.pop_front()) else {
                    return Ok(());
                };
                let from = self.p.departures[sent.departure].span.clone();
                let to = self.p.arrivals[a].span.clone();
                if from.len() != to.len() {
                    return Err("message length mismatch".into());
                }
                let data = sent.data.unwrap_or_else(|| self.memory[from].to_vec());
                self.memory[to].copy_from_slice(&data);
                self.departures[sent.departure] = State::Ended;
                self.arrivals[a] = State::Ended;
            }
        }
        Ok(())
    }
}
