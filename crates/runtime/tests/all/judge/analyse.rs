//! Checks all runs of stored programs at once, by the order of their events.
//!
//! The events are: a step is done; a receive is posted; a message's data were read; a receive has completed; a send has
//! ended. As in schedules, no event prevents another, so one run shows all events that can happen:
//! * programs end in every run if they end when every message is a rendezvous, because a rendezvous adds the most
//!   waits;
//! * two accesses are ordered in every run if they are ordered when every send may end immediately, because such sends
//!   add the fewest waits.
//!
//! With any message library, the memory of a send is read between the step that sends and the event "data were read",
//! and that of a receive is written between "posted" and "completed". Empty messages are ignored.

use std::collections::BTreeMap;

use super::{
    order::Cell,
    program::{Before, Program, Span},
    value::UNWRITTEN,
};

const WORDS: usize = 8;
pub const MOST_EVENTS: usize = 64 * WORDS;
type Set = [u64; WORDS];

/// The index of the first event of each type.
struct Events {
    posted: usize,
    completed: usize,
    read: usize,
    ended: usize,
    count: usize,
}

/// An access to memory between two events.
struct Access {
    span: Span,
    writes: bool,
    begin: usize,
    end: usize,
}

fn has(set: &Set, event: usize) -> bool {
    set[event / 64] >> (event % 64) & 1 == 1
}

fn add(set: &mut Set, event: usize) {
    set[event / 64] |= 1 << (event % 64);
}

/// The departures and the arrivals with one sender, receiver and tag.
type Ends = (Vec<usize>, Vec<usize>);

/// Returns the matching arrival of each departure.
pub fn matching(p: &Program) -> Result<Vec<Option<usize>>, String> {
    let mut channels: BTreeMap<(usize, usize, u32), Ends> = BTreeMap::new();
    for (d, end) in p.departures.iter().enumerate().filter(|(_, e)| !e.span.is_empty()) {
        channels.entry((end.rank, end.peer, end.tag)).or_default().0.push(d);
    }
    for (a, end) in p.arrivals.iter().enumerate().filter(|(_, e)| !e.span.is_empty()) {
        channels.entry((end.peer, end.rank, end.tag)).or_default().1.push(a);
    }
    let mut matched = vec![None; p.departures.len()];
    let lane_of = |step: usize| p.lanes.iter().position(|l| l.steps.contains(&step));
    let lane_of_arrival = |a: usize| p.lanes.iter().position(|l| l.arrivals.contains(&a));
    for (mut sent, mut received) in channels.into_values() {
        sent.sort_by_key(|&d| (p.departures[d].step, d));
        received.sort_unstable();
        if sent.len() != received.len() {
            return Err("messages sent and received differ in number".into());
        }
        if sent.iter().any(|&d| lane_of(p.departures[d].step) != lane_of(p.departures[sent[0]].step)) {
            return Err("two lanes send with one tag".into());
        }
        if received.iter().any(|&a| lane_of_arrival(a) != lane_of_arrival(received[0])) {
            return Err("two lanes receive with one tag".into());
        }
        for (&d, &a) in sent.iter().zip(&received) {
            if p.departures[d].span.len() != p.arrivals[a].span.len() {
                return Err("message length mismatch".into());
            }
            matched[d] = Some(a);
        }
    }
    Ok(matched)
}

/// Returns the memory at the end of every run, or the reason why some run fails.
pub fn analyse(p: &Program, inputs: &[Cell]) -> Result<Vec<Cell>, String> {
    let matched = matching(p)?;
    let (steps, arrivals, departures) = (p.steps.len(), p.arrivals.len(), p.departures.len());
    let e = Events {
        posted: steps,
        completed: steps + arrivals,
        read: steps + 2 * arrivals,
        ended: steps + 2 * arrivals + departures,
        count: steps + 2 * arrivals + 2 * departures,
    };
    if e.count > MOST_EVENTS {
        return Err("too large".into());
    }
    let mut least: Vec<Vec<usize>> = vec![Vec::new(); e.count];
    let event = |w: &Before| match *w {
        Before::Step(s) => s,
        Before::Departure(d) => e.ended + d,
    };
    for lane in &p.lanes {
        lane.steps.clone().skip(1).for_each(|s| least[s].push(s - 1));
        lane.arrivals.clone().skip(1).for_each(|a| least[e.posted + a].push(e.posted + a - 1));
    }
    for (s, step) in p.steps.iter().enumerate() {
        least[s].extend(step.waits.iter().map(event));
        least[s].extend(step.arrivals.clone().map(|a| e.completed + a));
    }
    for (a, end) in p.arrivals.iter().enumerate() {
        least[e.posted + a].extend(end.waits.iter().map(event));
        least[e.completed + a].push(e.posted + a);
    }
    let mut most = Vec::new();
    for (d, end) in p.departures.iter().enumerate() {
        least[e.read + d].push(end.step);
        least[e.ended + d].push(e.read + d);
        if let Some(a) = matched[d] {
            least[e.completed + a].push(e.read + d);
            most.push((e.read + d, e.posted + a));
        }
    }
    let mut rendezvous = least.clone();
    most.iter().for_each(|&(read, posted)| rendezvous[read].push(posted));
    let (_, order) = run(&rendezvous);
    if order.len() < e.count {
        return Err("deadlock".into());
    }
    let (before, _) = run(&least);
    races(p, &e, &matched, &before)?;
    contents(p, &e, &matched, &order, inputs)
}

/// Returns the predecessors of each event, and a possible order of the events that can happen.
fn run(causes: &[Vec<usize>]) -> (Vec<Set>, Vec<usize>) {
    let mut waiting: Vec<usize> = causes.iter().map(Vec::len).collect();
    let mut later: Vec<Vec<usize>> = vec![Vec::new(); causes.len()];
    for (event, causes) in causes.iter().enumerate() {
        causes.iter().for_each(|&c| later[c].push(event));
    }
    let mut order: Vec<usize> = (0..causes.len()).filter(|&e| waiting[e] == 0).collect();
    let mut before: Vec<Set> = vec![[0; WORDS]; causes.len()];
    let mut at = 0;
    while at < order.len() {
        let event = order[at];
        at += 1;
        let mut set = before[event];
        add(&mut set, event);
        for &next in &later[event] {
            before[next].iter_mut().zip(&set).for_each(|(x, y)| *x |= y);
            waiting[next] -= 1;
            if waiting[next] == 0 {
                order.push(next);
            }
        }
    }
    (before, order)
}

fn races(p: &Program, e: &Events, matched: &[Option<usize>], before: &[Set]) -> Result<(), String> {
    let mut accesses: Vec<Access> = Vec::new();
    for (s, step) in p.steps.iter().enumerate() {
        if let Some(to) = &step.to {
            for span in std::iter::once(&step.a).chain(&step.b) {
                let shifted = span.start != to.start && span.start < to.end && to.start < span.end;
                if shifted {
                    return Err("a step writes where it reads another element".into());
                }
                accesses.push(Access { span: span.clone(), writes: false, begin: s, end: s });
            }
            accesses.push(Access { span: to.clone(), writes: true, begin: s, end: s });
        }
    }
    for (d, end) in p.departures.iter().enumerate().filter(|(d, _)| matched[*d].is_some()) {
        accesses.push(Access { span: end.span.clone(), writes: false, begin: end.step, end: e.read + d });
    }
    for (a, end) in p.arrivals.iter().enumerate().filter(|(_, a)| !a.span.is_empty()) {
        accesses.push(Access { span: end.span.clone(), writes: true, begin: e.posted + a, end: e.completed + a });
    }
    for (n, x) in accesses.iter().enumerate() {
        for y in &accesses[..n] {
            if !(x.writes || y.writes) || x.span.start >= y.span.end || y.span.start >= x.span.end {
                continue;
            }
            // A step completes its work before its messages are sent.
            let over = |x: &Access, y: &Access| x.end == y.begin || has(&before[y.begin], x.end);
            if !over(x, y) && !over(y, x) {
                return Err("race".into());
            }
        }
    }
    Ok(())
}

fn contents(
    p: &Program,
    e: &Events,
    matched: &[Option<usize>],
    order: &[usize],
    inputs: &[Cell],
) -> Result<Vec<Cell>, String> {
    let commutative = p.collective.operator.commutative();
    let mut memory = inputs.to_vec();
    let mut data: Vec<Vec<Cell>> = vec![Vec::new(); p.arrivals.len()];
    let mut undefined = false;
    for &event in order {
        if event < e.posted {
            let step = &p.steps[event];
            undefined |= super::work(step, &mut memory, commutative);
        } else if (e.completed..e.read).contains(&event) {
            let a = event - e.completed;
            let span = p.arrivals[a].span.clone();
            memory[span].copy_from_slice(&data[a]);
        } else if (e.read..e.ended).contains(&event)
            && let Some(a) = matched[event - e.read]
        {
            let cells = &memory[p.departures[event - e.read].span.clone()];
            undefined |= cells.iter().any(|c| c.value == UNWRITTEN);
            data[a] = cells.to_vec();
        }
    }
    if undefined { Err("undefined".into()) } else { Ok(memory) }
}
