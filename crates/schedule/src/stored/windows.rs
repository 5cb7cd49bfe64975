//! Checks the memory of one rank: overlapping accesses, at least one of which writes, must be ordered by the rank's own
//! lanes and waits.
//!
//! A step accesses its places while it runs. The library may write an arriving message at any time between the posting
//! of its receive and the step that consumes it. It may read a departing message at any time between the step that
//! sends it and the end of the send. A later access is ordered after
//!
//! * a step, if this step comes before the access;
//! * an arrival, if the step that consumes it comes before the access, or is the access itself;
//! * a departure, if a step or receive that waits for the end of the send comes before the access, or is the access
//!   itself.
//!
//! *Comes before* is the transitive closure of: lanes (steps in order, receives posted in order), waits, and receives
//! before the steps that consume them. Messages between ranks are not used, so the result does not depend on the
//! progress of other ranks.

use unisono_base::{Span, interrupt};

use super::{
    Place, RankProgram, Unsound, Wait,
    order::Event,
    touches::{Touches, region},
};

/// Greatest number of entries in the clocks of one rank.
const MOST_ENTRIES: usize = 1 << 27;

#[derive(Clone, Copy, PartialEq)]
enum Access {
    Step(u32),
    Arrival(u32),
    Departure(u32),
}

/// Predecessors of each step and each receive. A row has, for each lane, the index after the lane's last preceding
/// step, then likewise after its last preceding receive; 0 if none precedes.
struct Clocks {
    lanes: usize,
    steps: usize,
    rows: Vec<u32>,
    step_lane: Vec<u32>,
    arrival_lane: Vec<u32>,
}

impl Clocks {
    fn new(p: &RankProgram, rank: u32, events: &[Event], producers: &[u32]) -> Result<Self, Unsound> {
        let (lanes, steps) = (p.lanes.len(), p.steps.len());
        let entries = (steps + p.arrivals.len()).saturating_mul(2 * lanes);
        if entries > MOST_ENTRIES {
            return Err(Unsound::TooManyLanes { rank, lanes });
        }
        let (mut step_lane, mut arrival_lane) = (vec![0; steps], vec![0; p.arrivals.len()]);
        for (n, lane) in (0u32..).zip(&p.lanes) {
            step_lane[lane.steps.start as usize..lane.steps.end as usize].fill(n);
            arrival_lane[lane.arrivals.start as usize..lane.arrivals.end as usize].fill(n);
        }
        let mut clocks = Self { lanes, steps, rows: vec![0; entries], step_lane, arrival_lane };
        for &event in events {
            let (to, waits) = match event {
                Event::Step(s) => (s as usize, &p.steps[s as usize].waits),
                Event::Posted(a) => (steps + a as usize, &p.arrivals[a as usize].waits),
                Event::Ended(_) => continue,
            };
            for wait in &p.waits[waits.start as usize..waits.end as usize] {
                let step = match *wait {
                    Wait::Step(s) => s,
                    Wait::Departure(d) => producers[d as usize],
                };
                clocks.add_step(to, step);
            }
            match event {
                Event::Step(s) => {
                    if s > p.lanes[clocks.step_lane[s as usize] as usize].steps.start {
                        clocks.add_step(to, s - 1);
                    }
                    p.steps[s as usize].arrivals.clone().for_each(|a| clocks.add_arrival(to, a));
                }
                Event::Posted(a) if a > p.lanes[clocks.arrival_lane[a as usize] as usize].arrivals.start => {
                    clocks.add_arrival(to, a - 1);
                }
                Event::Posted(_) | Event::Ended(_) => {}
            }
        }
        Ok(clocks)
    }

    /// Adds a step and its predecessors to the predecessors in row `to`.
    fn add_step(&mut self, to: usize, step: u32) {
        let lane = self.step_lane[step as usize] as usize;
        self.add(to, step as usize, lane, step + 1);
    }

    fn add_arrival(&mut self, to: usize, arrival: u32) {
        let lane = self.lanes + self.arrival_lane[arrival as usize] as usize;
        self.add(to, self.steps + arrival as usize, lane, arrival + 1);
    }

    fn add(&mut self, to: usize, from: usize, lane: usize, number: u32) {
        let width = 2 * self.lanes;
        for n in 0..width {
            let other = self.rows[from * width + n];
            let mine = &mut self.rows[to * width + n];
            *mine = other.max(*mine);
        }
        let own = &mut self.rows[to * width + lane];
        *own = number.max(*own);
    }

    fn step_is_before(&self, step: u32, row: usize) -> bool {
        self.rows[row * 2 * self.lanes + self.step_lane[step as usize] as usize] > step
    }

    fn posting_is_before(&self, arrival: u32, row: usize) -> bool {
        self.rows[row * 2 * self.lanes + self.lanes + self.arrival_lane[arrival as usize] as usize] > arrival
    }
}

/// Checks one rank. `events` is an order in which its events may happen. If `offset` is given, the input is in the
/// output from this block on, and must be read before it is overwritten.
///
/// # Errors
/// Returns an error if two clashing accesses are not ordered.
pub fn check(p: &RankProgram, rank: u32, events: &[Event], offset: Option<u32>) -> Result<(), Unsound> {
    let mut producers = vec![0u32; p.departures.len()];
    let mut consumers = vec![0u32; p.arrivals.len()];
    for (s, step) in (0u32..).zip(&p.steps) {
        step.departures.clone().for_each(|d| producers[d as usize] = s);
        step.arrivals.clone().for_each(|a| consumers[a as usize] = s);
    }
    let clocks = Clocks::new(p, rank, events, &producers)?;
    // Pairs of a departure, and a step or receive that waits for its end, sorted. Receives are numbered after all
    // steps.
    let mut waiters: Vec<(u32, usize)> = Vec::new();
    let step_waits = p.steps.iter().map(|s| &s.waits);
    for (row, waits) in step_waits.chain(p.arrivals.iter().map(|a| &a.waits)).enumerate() {
        for wait in &p.waits[waits.start as usize..waits.end as usize] {
            if let Wait::Departure(d) = *wait {
                waiters.push((d, row));
            }
        }
    }
    waiters.sort_unstable();
    let row_of = |access: Access| match access {
        Access::Step(s) => s as usize,
        Access::Arrival(a) => clocks.steps + a as usize,
        Access::Departure(d) => producers[d as usize] as usize,
    };
    let is_ordered = |earlier: Access, later: Access| {
        let row = row_of(later);
        // A departure starts when its step has completed. Any other access starts with its own event.
        let within = |step: u32| !matches!(later, Access::Arrival(_)) && row == step as usize;
        match earlier {
            Access::Step(s) => clocks.step_is_before(s, row) || (matches!(later, Access::Departure(_)) && within(s)),
            Access::Arrival(a) => clocks.step_is_before(consumers[a as usize], row) || within(consumers[a as usize]),
            Access::Departure(d) => {
                let from = waiters.partition_point(|w| w.0 < d);
                waiters[from..].iter().take_while(|w| w.0 == d).any(|&(_, waiter)| {
                    waiter == row
                        || match u32::try_from(waiter.wrapping_sub(clocks.steps)) {
                            Ok(arrival) if waiter >= clocks.steps => clocks.posting_is_before(arrival, row),
                            _ => clocks.step_is_before(waiter as u32, row),
                        }
                })
            }
        }
    };
    // Returns the memory of a place. If `offset` is given, the input is a range of the output.
    let place = |place: Place, len: u32| match (region(place, len), offset) {
        ((0, span), Some(offset)) => {
            let start = u64::from(span.start) + u64::from(offset);
            u32::try_from(start).map(|start| (1, Span::new(start, len))).map_err(|_| Unsound::Bounds { rank })
        }
        (plain, _) => Ok(plain),
    };
    let mut touches: [Touches<Access>; 3] = Default::default();
    let mut fault: Option<(Access, Access)> = None;
    for &event in events {
        interrupt::poll();
        match event {
            Event::Posted(a) => {
                let arrival = &p.arrivals[a as usize];
                let (buffer, span) = region(arrival.place, arrival.len);
                let me = Access::Arrival(a);
                touches[buffer].write(span, me, |earlier| {
                    if !is_ordered(earlier, me) {
                        fault = fault.or(Some((earlier, me)));
                    }
                });
            }
            Event::Step(s) => {
                let step = &p.steps[s as usize];
                let me = Access::Step(s);
                let to = step.to.map(|to| region(to, step.len));
                if step.to.is_some() {
                    for source in [Some(step.a), step.b].into_iter().flatten() {
                        let (buffer, span) = place(source, step.len)?;
                        // If source and target begin at the same place, each element is read before it is overwritten.
                        if to.is_some_and(|(b, t)| b == buffer && t != span && t.overlaps(span)) {
                            return Err(Unsound::Shifted { rank, step: s });
                        }
                        let input = matches!(source, Place::In(_));
                        if buffer == 0 {
                            continue;
                        }
                        touches[buffer].read(span, me, |earlier| {
                            if input || !is_ordered(earlier, me) {
                                fault = fault.or(Some((earlier, me)));
                            }
                        });
                    }
                }
                if let Some((buffer, span)) = to {
                    touches[buffer].write(span, me, |earlier| {
                        if earlier != me && !is_ordered(earlier, me) {
                            fault = fault.or(Some((earlier, me)));
                        }
                    });
                }
                for d in step.departures.clone() {
                    let departure = &p.departures[d as usize];
                    let me = Access::Departure(d);
                    let (buffer, span) = place(departure.place, departure.len)?;
                    let input = matches!(departure.place, Place::In(_));
                    if buffer == 0 {
                        continue;
                    }
                    touches[buffer].read(span, me, |earlier| {
                        if input || !is_ordered(earlier, me) {
                            fault = fault.or(Some((earlier, me)));
                        }
                    });
                }
            }
            Event::Ended(_) => {}
        }
    }
    let name = |access: Access| match access {
        Access::Step(s) => format!("step {s}"),
        Access::Arrival(a) => format!("arrival {a}"),
        Access::Departure(d) => format!("departure {d}"),
    };
    match fault {
        Some((a, b)) => Err(Unsound::Overlap { rank, earlier: name(a), later: name(b) }),
        None => Ok(()),
    }
}
