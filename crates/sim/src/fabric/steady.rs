//! Skips repeated runs of cycles, PE by PE.
//!
//! A PE and its router are a state machine: their state at the end of a cycle follows from their state at its
//! beginning, from the wavelets that neighbors send during the cycle, and from the neighbors' queues that had room when
//! it began. The *state* consists of everything that decides their moves: queues with the times of their wavelets
//! relative to the present cycle, the lengths of the neighbors' queues that they send to, router positions, turns, and
//! the step of each thread in its operation, but not of the number of elements that threads have done.
//!
//! If a PE's state at cycle t equals its state one *period* before, the PE repeats the last period as long as its
//! neighbors repeat their moves of that period at the common queues. The PE then *sleeps*: it is not visited. Two
//! neighbors that sleep repeat their common moves, because the period is the same for all PEs. A PE that is awake next
//! to a sleeper compares its pushes to and pops from the sleeper, cycle by cycle, with those of a period before, which
//! the [`Ring`] of each queue stores. After the first difference, the sleeper wakes in the next cycle, because a push
//! or a pop has its effect in the next cycle. A sleeper also wakes before one of its operations ends.
//!
//! A PE that wakes first accounts for whole periods (counts grow, times shift). Then it repeats the cycles of the last,
//! incomplete period alone, with the rings in place of the neighbors. So nothing is approximated: all cycles, moves and
//! counts equal those of a run without sleep, and a test compares them.

use unisono_base::narrow;

use super::{
    clock::{Clock, Tally, Wakes},
    error::SimError,
    pe::Thread,
    queue::{LAST_CYCLE, Queues, Repeat, Ring, Wavelet},
    tables::{NONE, RAMP},
};

const LINKS: u8 = 0b1111;

#[derive(Clone, Copy)]
struct Nap {
    /// The number of consecutive copies after which the state did not repeat. `again` is the first cycle in which the
    /// next copy may be made.
    misses: u32,
    again: u32,
    /// Cycle in which the state was copied; [`NONE`] without a copy.
    copied: u32,
    /// Cycle at whose beginning the PE fell asleep; [`NONE`] if it is awake.
    since: u32,
    /// The cycle in which the PE wakes. [`NONE`] if the PE wakes only when a neighbor disturbs it.
    until: u32,
    /// True if a neighbor's moves differed from those of a period before, in the cycle before the PE wakes.
    disturbed: bool,
}

impl Nap {
    const AWAKE: Self = Self { misses: 0, again: 0, copied: NONE, since: NONE, until: NONE, disturbed: false };
}

#[derive(Default)]
pub struct Steady {
    /// Number of cycles after which states are compared; 0 if no PE sleeps.
    period: u32,
    naps: Vec<Nap>,
    /// For each PE, one bit for each port, set if the neighbor at the port sleeps.
    still: Vec<u8>,
    /// True while a PE repeats cycles that its neighbors have already done.
    alone: bool,
    /// Copies of the states of threads, for comparisons. The fields below are copies of other parts of the state.
    threads: Vec<Thread>,
    positions: Vec<u8>,
    moved: Vec<u32>,
    queues: Queues,
    passed: Vec<u32>,
    turns: Vec<(u8, u8)>,
    tallies: Vec<Tally>,
}

/// Returns the bits of `count` consecutive cycles modulo the period, the first of which has bit `first`.
#[expect(clippy::cast_possible_truncation, reason = "the hot loop; masked, bounded by the line, or of few rows")]
fn span(period: u32, first: u32, count: u32) -> u16 {
    let bits = ((1u64 << count.min(period)) - 1) << first;
    ((bits | bits >> period) & ((1 << period) - 1)) as u16
}

impl Steady {
    /// Creates the records of a machine before its first cycle.
    pub fn new(period: u32, m: &Clock<'_>) -> Self {
        // With period 0 no PE sleeps, so nothing is stored.
        let on = |n: usize| if period > 0 { n } else { 0 };
        let (queues, pes) = (on(m.tables.queues.count()), on(m.pe_threads.len() - 1));
        Self {
            period,
            naps: vec![Nap::AWAKE; pes],
            still: vec![0; m.pe_threads.len() - 1],
            alone: false,
            threads: if period > 0 { m.threads.clone() } else { Vec::new() },
            positions: vec![0; on(m.tables.rows.len())],
            moved: vec![0; on(m.tables.rows.len())],
            queues: if period > 0 { m.tables.queues.clone() } else { Queues::default() },
            passed: vec![0; queues],
            turns: vec![(0, 0); pes],
            tallies: vec![Tally::default(); pes],
        }
    }

    /// Records a push into a queue between two PEs that are awake.
    #[inline]
    pub fn pushed(&self, ring: &mut Ring, cycle: u32) {
        if self.period > 0 {
            mark(&mut ring.push, &mut ring.push_last, cycle, self.period);
        }
    }

    #[inline]
    pub fn pops(&self, queues: &mut Queues, queue: u32, cycle: u32) {
        if self.period > 0 {
            let mut last = queues.popped(queue);
            mark(&mut queues.ring(queue).pop, &mut last, cycle, self.period);
        }
    }

    /// Returns the ports of a PE whose neighbors sleep.
    #[inline]
    pub fn still(&self, pe: u32) -> u8 {
        self.still[pe as usize]
    }

    pub fn sleeps(&self, pe: u32) -> bool {
        self.period > 0 && self.naps[pe as usize].since != NONE
    }

    pub fn anyone_sleeps(&self) -> bool {
        self.sleepers() > 0
    }

    pub fn sleepers(&self) -> u64 {
        self.naps.iter().filter(|n| n.since != NONE).count() as u64
    }

    /// Returns true if a sleeper must be visited in this cycle.
    pub fn wakes_at(&self, pe: u32, cycle: u32) -> bool {
        self.naps[pe as usize].until == cycle
    }

    /// Returns an upper bound of the number of elements that a sleeper's thread has done beyond its stored state.
    pub fn ahead(&self, pe: u32, thread: usize, now: u32, threads: &[Thread]) -> u64 {
        if !self.sleeps(pe) {
            return 0;
        }
        let periods = (now - self.naps[pe as usize].since).div_ceil(self.period);
        u64::from(periods) * u64::from(threads[thread].done_since(&self.threads[thread]))
    }

    fn bit(&self, cycle: u32) -> u16 {
        1 << (cycle % self.period)
    }
}

#[inline]
fn mark(bits: &mut u16, last: &mut u32, cycle: u32, period: u32) {
    if cycle.wrapping_sub(*last) > 1 {
        forget(bits, *last, cycle, period);
    }
    *bits |= 1 << (cycle % period);
    *last = cycle;
}

/// Clears the bits of the cycles after `last` and before `cycle`.
fn forget(bits: &mut u16, last: u32, cycle: u32, period: u32) {
    // Before the first mark, `last` stands for the cycle before cycle 0.
    let next = last.wrapping_add(1);
    *bits &= !span(period, next % period, cycle.saturating_sub(next));
}

impl Clock<'_> {
    /// At the beginning of a cycle, wakes a PE or puts it to sleep. Adds neighbors that must be visited to `visits`.
    pub(super) fn look(&mut self, pe: u32, visits: &mut Vec<u32>) -> Result<(), SimError> {
        let period = self.steady.period;
        if period == 0 {
            return Ok(());
        }
        let nap = self.steady.naps[pe as usize];
        if nap.since != NONE {
            return if nap.until == self.cycle { self.wake(pe) } else { Ok(()) };
        }
        if nap.copied != NONE && self.cycle < nap.copied + period {
            return Ok(());
        }
        if nap.copied != NONE && self.cycle == nap.copied + period {
            if self.tallies[pe as usize].events == self.steady.tallies[pe as usize].events {
                self.steady.naps[pe as usize].copied = NONE;
                return Ok(());
            }
            if let Some(periods) = self.repeats(pe) {
                self.sleep(pe, periods, visits);
                return Ok(());
            }
            let nap = &mut self.steady.naps[pe as usize];
            nap.misses += 1;
            // One miss is usual when an operation begins. After more misses, copies are made less often.
            nap.again = self.cycle + if nap.misses < 2 { 0 } else { period << (nap.misses - 2).min(4) };
            nap.copied = NONE;
        }
        if self.cycle >= self.steady.naps[pe as usize].again {
            self.copy(pe);
        }
        Ok(())
    }

    /// Wakes all PEs at the beginning of a cycle; afterwards no PE sleeps any more.
    pub(super) fn end_sleep(&mut self) -> Result<(), SimError> {
        self.wake_all()?;
        self.steady = Steady { still: std::mem::take(&mut self.steady.still), ..Steady::default() };
        Ok(())
    }

    /// Wakes all PEs at the beginning of a cycle, and forgets the copies of their states.
    pub(super) fn wake_all(&mut self) -> Result<(), SimError> {
        for pe in 0..narrow(self.steady.naps.len()) {
            if self.steady.sleeps(pe) {
                self.wake(pe)?;
                self.note_at(pe, self.cycle);
            }
        }
        self.steady.naps.fill(Nap::AWAKE);
        Ok(())
    }

    fn pe_ranges(&self, pe: u32) -> [std::ops::Range<u32>; 3] {
        let range = |of: &[u32]| of[pe as usize]..of[pe as usize + 1];
        [range(&self.pe_threads), range(&self.tables.pe_rows), range(&self.tables.pe_queues)]
    }

    /// Copies the state of a PE, and schedules a visit one period later.
    fn copy(&mut self, pe: u32) {
        let [threads, rows, queues] = self.pe_ranges(pe);
        let s = &mut self.steady;
        for t in threads.start as usize..threads.end as usize {
            s.threads[t].clone_from(&self.threads[t]);
        }
        for r in rows {
            s.positions[r as usize] = self.tables.rows[r as usize].position;
            s.moved[r as usize] = self.router_log.count(r);
        }
        for q in queues.clone() {
            s.passed[q as usize] = self.ramp_log.count(q);
        }
        s.queues.copy_from(&self.tables.queues, queues);
        s.turns[pe as usize] = (self.thread_turn[pe as usize], self.router_turn[pe as usize]);
        s.tallies[pe as usize] = self.tallies[pe as usize];
        s.naps[pe as usize].copied = self.cycle;
        let again = self.cycle + s.period;
        self.note_at(pe, again);
    }

    /// Returns the number of periods for which a PE can sleep; `None` if its state differs from its state a period
    /// before. A sleep of fewer than two periods is not worth its cost.
    fn repeats(&self, pe: u32) -> Option<u32> {
        let s = &self.steady;
        let (then, period) = (s.naps[pe as usize].copied, s.period);
        let turns = (self.thread_turn[pe as usize], self.router_turn[pe as usize]);
        if turns != s.turns[pe as usize] || then < self.start(pe as usize) {
            return None;
        }
        // A control wavelet that reaches the last position leaves the state unchanged, but does not repeat.
        if self.tallies[pe as usize].controls != s.tallies[pe as usize].controls {
            return None;
        }
        let [threads, rows, queues] = self.pe_ranges(pe);
        let mut periods = u32::MAX;
        for t in threads.start as usize..threads.end as usize {
            periods = periods.min(self.threads[t].periods(&s.threads[t], then, period)?);
        }
        let row = |r: u32| {
            self.tables.rows[r as usize].position == s.positions[r as usize] && self.router_log.is_steady(r, then)
        };
        let queue = |q: u32| {
            self.ramp_log.is_steady(q, then) && self.tables.queues.repeats(q, &s.queues, then, period) != Repeat::No
        };
        let steady = periods >= 2 && rows.clone().all(row) && queues.clone().all(queue) && self.rooms_repeat(pe);
        steady.then_some(periods)
    }

    /// Returns true if the neighbors' queues to which a PE sends are as full as a period before.
    fn rooms_repeat(&self, pe: u32) -> bool {
        let [_, rows, _] = self.pe_ranges(pe);
        let s = &self.steady;
        (0..4).filter_map(|port| Some((port, self.neighbor_if(pe, port)?))).all(|(port, neighbor)| {
            let outputs = rows.clone().map(|r| self.tables.rows[r as usize].outputs[port]).filter(|&q| q != NONE);
            let awake = !s.sleeps(neighbor);
            let mut rings = outputs.map(|q| (self.tables.queues.ring_of(q), self.tables.queues.popped(q)));
            rings.all(|(mut ring, popped)| {
                if awake {
                    forget(&mut ring.push, ring.push_last, self.cycle, s.period);
                    forget(&mut ring.pop, popped, self.cycle, s.period);
                }
                ring.push.count_ones() == ring.pop.count_ones()
            })
        })
    }

    #[expect(clippy::cast_possible_truncation, reason = "the hot loop; masked, bounded by the line, or of few rows")]
    fn sleep(&mut self, pe: u32, periods: u32, visits: &mut Vec<u32>) {
        let (now, period) = (self.cycle, self.steady.period);
        let until = u64::from(now) + u64::from(periods) * u64::from(period);
        let nap = &mut self.steady.naps[pe as usize];
        (nap.since, nap.until) = (now, NONE);
        if periods != u32::MAX {
            nap.until = until.min(u64::from(LAST_CYCLE)) as u32;
            let until = nap.until;
            self.alarm(pe, until);
        }
        for port in 0..4 {
            let Some(neighbor) = self.neighbor_if(pe, port) else { continue };
            self.steady.still[neighbor as usize] |= 1 << (port ^ 1);
            if self.steady.sleeps(neighbor) {
                continue;
            }
            // When a sleeping PE takes wavelets from the neighbor, it does not mark the neighbor's rows as pending.
            self.call_rows(neighbor);
            let mut busy = false;
            for queue in self.common_queues(pe, port) {
                let popped = self.tables.queues.popped(queue);
                let ring = self.tables.queues.ring(queue);
                forget(&mut ring.push, ring.push_last, now, period);
                forget(&mut ring.pop, popped, now, period);
                busy |= ring.push | ring.pop != 0;
            }
            // The neighbor must be visited in cycles in which its moves may differ from those of a period before.
            if busy {
                self.join(neighbor, visits);
            }
        }
    }

    /// Returns the queues between a PE and its neighbor at a port, in both directions.
    fn common_queues(&self, pe: u32, port: usize) -> Vec<u32> {
        let [_, rows, _] = self.pe_ranges(pe);
        let rows = &self.tables.rows[rows.start as usize..rows.end as usize];
        rows.iter().flat_map(|r| [r.inputs[port], r.outputs[port]]).filter(|&q| q != NONE).collect()
    }

    fn wake(&mut self, pe: u32) -> Result<(), SimError> {
        let (now, period) = (self.cycle, self.steady.period);
        let nap = self.steady.naps[pe as usize];
        let slept = now - nap.since;
        // The cycle in which the PE was disturbed differs from the cycle a period before, so it must be repeated
        // exactly.
        let rest = if nap.disturbed { (slept - 1) % period + 1 } else { slept % period };
        self.skip(pe, (slept - rest) / period);
        self.call_rows(pe);
        let mut wakes = Wakes::default();
        self.steady.alone = true;
        self.cycle = now - rest;
        self.note_arrivals(pe);
        for cycle in now - rest..now {
            self.cycle = cycle;
            self.feed(pe, LINKS);
            self.visit_router(pe, LINKS, &mut wakes)?;
            self.visit_pe(pe, &mut wakes);
        }
        self.steady.alone = false;
        self.cycle = now;
        self.steady.naps[pe as usize] = Nap::AWAKE;
        for port in 0..4 {
            let Some(neighbor) = self.neighbor_if(pe, port) else { continue };
            self.steady.still[neighbor as usize] &= !(1 << (port ^ 1));
            if self.steady.sleeps(neighbor) {
                continue;
            }
            for queue in self.common_queues(pe, port) {
                self.tables.queues.ring(queue).push_last = now - 1;
                self.tables.queues.set_popped(queue, now - 1);
            }
        }
        self.note_what_comes(pe);
        Ok(())
    }

    /// Marks all rows of a router as pending.
    #[expect(clippy::cast_possible_truncation, reason = "the hot loop; masked, bounded by the line, or of few rows")]
    fn call_rows(&mut self, pe: u32) {
        let [_, rows, _] = self.pe_ranges(pe);
        self.pending[pe as usize] = ((1u128 << rows.len()) - 1) as u64;
    }

    /// Records the cycles in which the wavelets at a router may move, after their times have changed.
    fn note_arrivals(&mut self, pe: u32) {
        let [_, rows, _] = self.pe_ranges(pe);
        for r in rows {
            for queue in self.tables.rows[r as usize].inputs.into_iter().filter(|&q| q != NONE) {
                for wavelet in self.tables.queues.wavelets(queue).collect::<Vec<_>>() {
                    self.arrive(queue, wavelet, pe);
                }
            }
        }
    }

    /// Schedules visits in the cycles in which a move becomes possible at a PE that has slept.
    fn note_what_comes(&mut self, pe: u32) {
        let [threads, _, queues] = self.pe_ranges(pe);
        let mut later: Vec<u32> = threads.map(|t| self.threads[t as usize].earliest()).collect();
        later.extend(queues.flat_map(|q| self.tables.queues.wavelets(q)).map(Wavelet::ready));
        later.retain(|&c| c > self.cycle);
        for cycle in later {
            self.note_at(pe, cycle);
        }
    }

    /// Advances a sleeper by whole periods.
    fn skip(&mut self, pe: u32, periods: u32) {
        if periods == 0 {
            return;
        }
        let [threads, rows, queues] = self.pe_ranges(pe);
        let s = &self.steady;
        let (then, cycles) = (s.naps[pe as usize].copied, periods * s.period);
        for t in threads.start as usize..threads.end as usize {
            self.threads[t].skip(&s.threads[t], periods, s.period);
        }
        for r in rows {
            let more = self.router_log.count(r) - s.moved[r as usize];
            self.router_log.extend(r, periods * more);
        }
        for q in queues {
            let more = self.ramp_log.count(q) - s.passed[q as usize];
            self.ramp_log.extend(q, periods * more);
            if self.tables.queues.repeats(q, &s.queues, then, s.period) == Repeat::Shifted {
                self.tables.queues.delay(q, cycles);
            }
        }
        let (tally, before) = (&mut self.tallies[pe as usize], &s.tallies[pe as usize]);
        tally.events += u64::from(periods) * (tally.events - before.events);
        tally.hops += u64::from(periods) * (tally.hops - before.hops);
        tally.stalls += u64::from(periods) * (tally.stalls - before.stalls);
        tally.last += cycles;
    }

    /// Repeats the pushes that the neighbors at the ports `still` made a period before. These neighbors are not
    /// visited.
    pub(super) fn feed(&mut self, pe: u32, still: u8) {
        let bit = self.steady.bit(self.cycle);
        let [_, rows, _] = self.pe_ranges(pe);
        for r in rows {
            for port in (0..4).filter(|p| still >> p & 1 == 1) {
                let queue = self.tables.rows[r as usize].inputs[port];
                if queue == NONE {
                    continue;
                }
                let ring = self.tables.queues.ring_of(queue);
                if ring.push & bit != 0 {
                    let control = ring.control == self.cycle;
                    let ready = self.cycle + 1;
                    let wavelet = if control { Wavelet::control(ready) } else { Wavelet::data(ready, false) };
                    self.push_link(queue, wavelet, pe);
                }
            }
        }
    }

    /// Returns true if the queue of a sleeping neighbor had room at the start of the cycle.
    pub(super) fn has_room_still(&self, pe: u32, port: usize, queue: u32) -> bool {
        let s = &self.steady;
        let ring = self.tables.queues.ring_of(queue);
        if s.alone {
            return ring.push & s.bit(self.cycle) != 0;
        }
        let since = s.naps[self.neighbor(pe, port) as usize].since;
        let passed = span(s.period, since % s.period, (self.cycle - since) % s.period);
        let came = self.tables.queues.len(queue) + (ring.push & passed).count_ones();
        came - (ring.pop & passed).count_ones() < self.tables.queues.capacity(queue)
    }

    /// Pushes a wavelet to a sleeping neighbor.
    pub(super) fn push_still(&mut self, pe: u32, port: usize, queue: u32, wavelet: Wavelet) {
        let bit = self.steady.bit(self.cycle);
        let ring = self.tables.queues.ring(queue);
        if self.steady.alone {
            debug_assert!(ring.push & bit != 0, "it did so a period ago");
            return;
        }
        ring.push_last = self.cycle;
        if wavelet.is_control() {
            ring.control = self.cycle;
        } else if ring.push & bit != 0 {
            return;
        }
        ring.push |= bit;
        self.disturb(pe, port);
    }

    /// Compares the moves of a PE in this cycle with the moves that its sleeping neighbors expect.
    pub(super) fn compare(&mut self, pe: u32, still: u8, wakes: &mut Wakes) {
        let (now, bit) = (self.cycle, self.steady.bit(self.cycle));
        let [_, rows, _] = self.pe_ranges(pe);
        for r in rows {
            for port in (0..4).filter(|p| still >> p & 1 == 1) {
                let row = &self.tables.rows[r as usize];
                let (input, output) = (row.inputs[port], row.outputs[port]);
                let mut differs = false;
                if output != NONE {
                    let ring = self.tables.queues.ring(output);
                    if ring.push & bit != 0 && ring.push_last != now {
                        ring.push &= !bit;
                        differs = true;
                    }
                    if ring.push | ring.pop != 0 {
                        wakes.next();
                    }
                }
                if input != NONE {
                    let popped = self.tables.queues.popped_in(input, now);
                    let ring = self.tables.queues.ring(input);
                    if (ring.pop & bit != 0) != popped {
                        ring.pop ^= bit;
                        differs = true;
                    }
                    if ring.push | ring.pop != 0 {
                        wakes.next();
                    }
                }
                if differs {
                    self.disturb(pe, port);
                }
            }
        }
    }

    /// Makes the neighbor at a port wake in the next cycle.
    fn disturb(&mut self, pe: u32, port: usize) {
        let neighbor = self.neighbor(pe, port);
        let nap = &mut self.steady.naps[neighbor as usize];
        (nap.until, nap.disturbed) = (self.cycle + 1, true);
        self.note_at(neighbor, self.cycle + 1);
    }

    /// Returns the neighbor at a port, if the grid has one.
    fn neighbor_if(&self, pe: u32, port: usize) -> Option<u32> {
        debug_assert!(port < RAMP);
        let grid = self.program.grid;
        let (row, col) = grid.row_col(pe);
        let room = [row > 0, row + 1 < grid.rows, col > 0, col + 1 < grid.cols][port];
        room.then(|| self.neighbor(pe, port))
    }
}
