//! Whether programs can run when no message is buffered: the order of their steps, receives and sends has no cycle.

use std::collections::BTreeMap;

use super::{RankProgram, Wait};

/// Nodes of the graph: per rank its steps, then its receives (posted), then its sends (ended).
struct Numbers {
    first: Vec<usize>,
    count: usize,
}

impl Numbers {
    fn new(programs: &[RankProgram]) -> Self {
        let mut count = 0;
        let mut first = Vec::with_capacity(programs.len());
        for p in programs {
            first.push(count);
            count += p.steps.len() + p.arrivals.len() + p.departures.len();
        }
        Self { first, count }
    }
}

/// Whether every message has one sender and one receiver, and no cycle of waits exists.
pub fn is_sound(programs: &[RankProgram]) -> bool {
    let numbers = Numbers::new(programs);
    let mut edges: Vec<(u32, u32)> = Vec::new();
    let mut senders: BTreeMap<(u32, u32, u32), Vec<(usize, usize)>> = BTreeMap::new();
    let mut receivers: BTreeMap<(u32, u32, u32), Vec<(usize, usize)>> = BTreeMap::new();
    for (rank, p) in programs.iter().enumerate() {
        let step = |s: u32| numbers.first[rank] + s as usize;
        let arrival = |a: u32| numbers.first[rank] + p.steps.len() + a as usize;
        let departure = |d: u32| numbers.first[rank] + p.steps.len() + p.arrivals.len() + d as usize;
        let mut edge = |from: usize, to: usize| edges.push((from as u32, to as u32));
        let before = |w: Wait| match w {
            Wait::Step(s) => step(s),
            Wait::Departure(d) => departure(d),
        };
        let mut consumer = vec![None; p.arrivals.len()];
        let mut producer = vec![None; p.departures.len()];
        for lane in &p.lanes {
            lane.steps.clone().skip(1).for_each(|s| edge(step(s - 1), step(s)));
            lane.arrivals.clone().skip(1).for_each(|a| edge(arrival(a - 1), arrival(a)));
        }
        for (s, row) in p.steps.iter().enumerate() {
            let here = step(s as u32);
            p.waits[row.waits.start as usize..row.waits.end as usize].iter().for_each(|&w| edge(before(w), here));
            for a in row.arrivals.clone() {
                edge(arrival(a), here);
                consumer[a as usize] = Some(here);
            }
            for d in row.departures.clone() {
                edge(here, departure(d));
                producer[d as usize] = Some(here);
            }
        }
        for (a, row) in p.arrivals.iter().enumerate() {
            let here = arrival(a as u32);
            p.waits[row.waits.start as usize..row.waits.end as usize].iter().for_each(|&w| edge(before(w), here));
            let Some(consumer) = consumer[a] else { return false };
            receivers.entry((row.peer, rank as u32, row.tag)).or_default().push((here, consumer));
        }
        for (d, row) in p.departures.iter().enumerate() {
            let Some(producer) = producer[d] else { return false };
            senders.entry((rank as u32, row.peer, row.tag)).or_default().push((departure(d as u32), producer));
        }
    }
    if !senders.keys().eq(receivers.keys()) {
        return false;
    }
    for (sent, received) in senders.values().zip(receivers.values()) {
        if sent.len() != received.len() {
            return false;
        }
        for (&(left, producer), &(posted, consumer)) in sent.iter().zip(received) {
            edges.push((posted as u32, left as u32));
            edges.push((producer as u32, consumer as u32));
        }
    }
    is_acyclic(numbers.count, edges)
}

fn is_acyclic(count: usize, mut edges: Vec<(u32, u32)>) -> bool {
    edges.sort_unstable();
    let mut waiting = vec![0u32; count];
    edges.iter().for_each(|e| waiting[e.1 as usize] += 1);
    let mut ready: Vec<u32> = (0..count as u32).filter(|&n| waiting[n as usize] == 0).collect();
    let mut done = 0;
    while let Some(node) = ready.pop() {
        done += 1;
        let from = edges.partition_point(|e| e.0 < node);
        for &(_, to) in edges[from..].iter().take_while(|e| e.0 == node) {
            waiting[to as usize] -= 1;
            if waiting[to as usize] == 0 {
                ready.push(to);
            }
        }
    }
    done == count
}
