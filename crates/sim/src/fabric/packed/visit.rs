//! One cycle of a group of PEs and their routers, in all lanes at once.
//!
//! Loops over lanes are written for vectorization: they run over arrays of [`LANES`] words, take no branches, and
//! access words whose addresses do not depend on data.

use std::sync::PoisonError;

use unisono_base::narrow;

use super::{
    super::{
        Options,
        clock::Clock,
        noop,
        pe::Thread,
        tables::{Place, RAMP, UNDONE},
    },
    Row,
    faces::{Face, View},
    group::{AHEAD, DONE, Group, LANES, Lanes, NEVER, NO_BITS, NO_COLOR, Slot, add, count_slices, nonzero, sub},
    sweeps::Shared,
};

/// Values that all groups share in a cycle.
pub struct Cycle {
    pub at: u32,
    /// The index of the word of [`Group::to_router`] with the wavelets that arrive in this cycle. `sent` is the index
    /// for wavelets that leave in this cycle. `handed` and `moved` are the same for [`Group::to_pe`].
    routed: usize,
    sent: usize,
    handed: usize,
    moved: usize,
    /// Depth of a queue, and the depth minus one, as [`count_slices`].
    depth: ([u32; 4], [u32; 4]),
}

impl Cycle {
    pub fn new(at: u32, ramp_latency: u32, queue_depth: u32) -> Self {
        let slot = |ahead: u32, slots: u32| ((at + ahead) % slots) as usize;
        // Only as many words are used as there are cycles on the ramp, so that fewer words are read.
        let (up, down) = (ramp_latency + 2, ramp_latency + 1);
        debug_assert!(up <= AHEAD, "`is_plain` checks the latency");
        Self {
            at,
            routed: slot(0, up),
            sent: slot(1 + ramp_latency, up),
            handed: slot(0, down),
            moved: slot(ramp_latency, down),
            depth: (count_slices(queue_depth), count_slices(queue_depth - 1)),
        }
    }
}

/// Numbers of moves in a cycle, for each lane, from which stalls are computed.
#[derive(Clone, Default)]
pub struct Moves {
    /// The number of wavelets that left a queue, minus the number of wavelets that entered a queue of another router.
    pub left: Lanes,
    /// Number of wavelets that PEs sent.
    pub sent: Lanes,
}

impl Moves {
    #[inline(always)]
    fn count_sent(&mut self, mut sent: Lanes) {
        let mut more = 1;
        while more != 0 {
            more = 0;
            for (count, sent) in self.sent.iter_mut().zip(&mut sent) {
                *count += u32::from(*sent != 0);
                *sent &= sent.wrapping_sub(1);
                more |= *sent;
            }
        }
    }

    /// Returns the contribution of these moves to the stalls, modulo 2^64.
    pub fn stalls(&self, cycle: &Cycle, ramp_latency: u32) -> u64 {
        let sum = |of: &Lanes| of.iter().fold(0u32, |sum, &n| sum.wrapping_add(n));
        // This number may be negative: more wavelets may have entered than left.
        let left = i64::from(sum(&self.left).cast_signed()).cast_unsigned();
        let sent = u64::from(sum(&self.sent));
        left.wrapping_mul(u64::from(cycle.at)).wrapping_sub(sent * u64::from(cycle.at + 1 + ramp_latency))
    }
}

#[expect(clippy::needless_range_loop, reason = "a lane has the same number in many arrays")]
impl Group {
    /// Moves wavelets through the routers, at most one over each outgoing link. Returns a word that is 0 if no wavelet
    /// arrived or moved, and the colors that left the ramps to the routers.
    #[inline(always)]
    pub fn move_wavelets(
        &mut self,
        view: &View<'_>,
        face: &mut Face,
        cycle: &Cycle,
        moves: &mut Moves,
    ) -> (u32, Lanes) {
        let (mut came, mut full, mut any, mut several) = (self.to_router[cycle.routed], NO_BITS, 0, 0);
        for n in 0..LANES {
            came[n] |= view.arrive[0][n] | view.arrive[1][n] | view.arrive[2][n] | view.arrive[3][n];
            for port in 0..RAMP {
                // If the queue had one free slot, and this router sent a wavelet to it in the last cycle, the queue is
                // now full.
                full[n] |= self.rows_to[port][n] & (view.full[port][n] | view.nearly[port][n] & view.left[port][n]);
            }
        }
        let mut movable = NO_BITS;
        for n in 0..LANES {
            add(&mut self.waiting, n, came[n]);
            let blocked = full[n] | self.rows_to[RAMP][n] & !nonzero(&self.inbox_room, n);
            movable[n] = nonzero(&self.waiting, n) & !blocked;
            several |= movable[n] & self.several[n];
            any |= came[n] | movable[n];
        }
        let mut moved = NO_BITS;
        if several == 0 {
            self.move_to_one(&movable, &mut moved, face, moves);
        } else {
            self.move_to_several(movable, &mut moved, face, moves);
        }
        for n in 0..LANES {
            sub(&mut self.waiting, n, moved[n]);
            face.show(&self.waiting, n, cycle.depth);
            // The color that went first is tried last in the next turn.
            let turn = self.router_turn[n];
            let later = self.present[n] & (turn << 1).wrapping_neg();
            let next = first_of(if later == 0 { self.present[n] } else { later });
            self.router_turn[n] = if moved[n] & turn == 0 { turn } else { next };
            sub(&mut self.inbox_room, n, face.out[RAMP][n]);
        }
        self.to_pe[cycle.moved] = face.out[RAMP];
        let (handed, mut freed) = (self.to_pe[cycle.handed], NO_BITS);
        for n in 0..LANES {
            add(&mut self.inbox, n, handed[n]);
            any |= handed[n];
            freed[n] = moved[n] & self.from_ramp[n];
        }
        (any, freed)
    }

    /// Chooses for each link the first color in turn. All colors go to one link only.
    #[inline(always)]
    fn move_to_one(&self, movable: &Lanes, moved: &mut Lanes, face: &mut Face, moves: &mut Moves) {
        for port in 0..=RAMP {
            let (to, out) = (&self.rows_to[port], &mut face.out[port]);
            for n in 0..LANES {
                let chosen = first_in_turn(movable[n] & to[n], self.router_turn[n].wrapping_neg());
                out[n] = chosen;
                moved[n] |= chosen;
            }
        }
        for n in 0..LANES {
            moves.left[n] = moves.left[n].wrapping_add(u32::from(face.out[RAMP][n] != 0));
        }
    }

    /// Chooses one color after the other, each with all links to which the color goes.
    #[inline(never)]
    fn move_to_several(&self, mut movable: Lanes, moved: &mut Lanes, face: &mut Face, moves: &mut Moves) {
        face.out = [NO_BITS; RAMP + 1];
        let mut more = 1;
        while more != 0 {
            more = 0;
            for n in 0..LANES {
                let chosen = first_in_turn(movable[n], self.router_turn[n].wrapping_neg());
                moved[n] |= chosen;
                let (mut taken, mut left) = (chosen, u32::from(chosen != 0));
                for port in 0..=RAMP {
                    let to = self.rows_to[port][n];
                    let goes = to & chosen;
                    face.out[port][n] |= goes;
                    taken |= if goes == 0 { 0 } else { to };
                    left = left.wrapping_sub(u32::from(goes != 0 && port != RAMP));
                }
                moves.left[n] = moves.left[n].wrapping_add(left);
                movable[n] &= !taken;
                more |= movable[n];
            }
        }
    }

    /// Returns, for each PE, the bit of the first thread in turn that can do a step.
    #[inline(always)]
    fn choose(&self, slots: &[Slot], cycle: &Cycle) -> Lanes {
        let (mut lacks, mut no_room) = (NO_BITS, NO_BITS);
        for n in 0..LANES {
            lacks[n] = !nonzero(&self.inbox, n);
            no_room[n] = !nonzero(&self.ramp_room, n);
        }
        let mut able = NO_BITS;
        for k in bits_of(self.live) {
            let slot = &slots[k as usize];
            if self.paced >> k & 1 == 1 {
                for n in 0..LANES {
                    let has_all = slot.takes[n] & lacks[n] | slot.sends[n] & no_room[n] == 0;
                    // Cycles are below `NEVER`, so signed comparisons are correct. They are faster than unsigned
                    // comparisons.
                    let is_time = slot.earliest[n].cast_signed() <= cycle.at.cast_signed();
                    able[n] |= u32::from(has_all & is_time) << k;
                }
                continue;
            }
            for n in 0..LANES {
                let has_all = slot.takes[n] & lacks[n] | slot.sends[n] & no_room[n] == 0;
                able[n] |= if has_all { 1 << k } else { 0 };
            }
        }
        let mut chosen = NO_BITS;
        for n in 0..LANES {
            chosen[n] = first_in_turn(able[n], self.thread_turn[n].wrapping_neg());
        }
        chosen
    }

    /// Does one step of each chosen thread. `any` is the union of the threads' bits, and `freed` has the colors that
    /// left the ramps to the routers. Returns the lanes in which a thread's state must be looked up.
    #[inline(always)]
    fn do_steps(
        &mut self,
        slots: &mut [Slot],
        (chosen, any): (&Lanes, u32),
        freed: &Lanes,
        cycle: &Cycle,
        moves: &mut Moves,
    ) -> Lanes {
        let (mut took, mut sent, mut over) = (NO_BITS, NO_BITS, NO_BITS);
        for k in bits_of(any) {
            let slot = &mut slots[k as usize];
            let mut does = NO_BITS;
            for n in 0..LANES {
                does[n] = if chosen[n] & 1 << k == 0 { 0 } else { u32::MAX };
                took[n] |= does[n] & slot.takes[n];
                sent[n] |= does[n] & slot.sends[n];
                over[n] |= if slot.left[n] == 0 { does[n] } else { 0 };
                slot.left[n] = slot.left[n].wrapping_add(does[n]);
            }
            if self.flips >> k & 1 == 1 {
                for n in 0..LANES {
                    slot.takes[n] ^= slot.flip_takes[n] & does[n];
                    slot.sends[n] ^= slot.flip_sends[n] & does[n];
                }
            }
            if self.paced >> k & 1 == 1 {
                for n in 0..LANES {
                    let next = cycle.at + slot.pace[n];
                    slot.earliest[n] = does[n] & next | !does[n] & slot.earliest[n];
                    slot.pace[n] ^= slot.flip_pace[n] & does[n];
                }
            }
        }
        for n in 0..LANES {
            sub(&mut self.inbox, n, took[n]);
            // The router was visited earlier in this cycle, so it sees this room in the next cycle.
            add(&mut self.inbox_room, n, took[n]);
            sub(&mut self.ramp_room, n, sent[n]);
            // The PE also sees this room in the next cycle.
            add(&mut self.ramp_room, n, freed[n]);
            let turn = chosen[n] << 1 & self.threads[n];
            let next = turn | u32::from(turn == 0);
            // A branch would prevent vectorization.
            let keep = if chosen[n] == 0 { u32::MAX } else { 0 };
            self.thread_turn[n] = self.thread_turn[n] & keep | next & !keep;
        }
        self.to_router[cycle.sent] = sent;
        moves.count_sent(sent);
        over
    }
}

/// Returns the positions of the bits of a word.
#[inline(always)]
fn bits_of(mut word: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let place = word.trailing_zeros();
        word &= word.wrapping_sub(1);
        (place < u32::BITS).then_some(place)
    })
}

#[inline(always)]
fn first_of(bits: u32) -> u32 {
    bits & bits.wrapping_neg()
}

#[inline(always)]
fn any_of(lanes: &Lanes) -> u32 {
    lanes.iter().fold(0, |any, bits| any | bits)
}

/// Returns the first bit of `bits` that is also in `from`, a word of ones from some position on. If there is none,
/// returns the lowest bit of `bits`.
#[inline(always)]
fn first_in_turn(bits: u32, from: u32) -> u32 {
    let later = bits & from;
    first_of(if later == 0 { bits } else { later })
}

impl Row {
    /// Runs one cycle of a group between the rows above and below. Returns true if anything happened.
    #[inline(always)]
    pub fn visit(
        &mut self,
        (above, below): (&Self, &Self),
        at: usize,
        shared: &Shared<'_, '_>,
        cycle: &Cycle,
        moves: &mut Moves,
    ) -> bool {
        let group = &mut self.groups[at];
        let slots = &mut self.slots[group.first_slot as usize..(group.first_slot + group.slots) as usize];
        let [even, odd] = &mut self.faces;
        let (before, now) = if cycle.at.is_multiple_of(2) { (&*odd, even) } else { (&*even, odd) };
        let last = (cycle.at as usize + 1) % 2;
        let view = before.view(&above.faces[last], &below.faces[last], at);
        if group.quiet > AHEAD && view.is_quiet() {
            return false;
        }
        let mut face = Face::closed();
        let (mut any, freed) = group.move_wavelets(&view, &mut face, cycle, moves);
        now.put(at, &face);
        let mut chosen = group.choose(slots, cycle);
        let mut steps = any_of(&chosen);
        any |= steps;
        if shared.noisy {
            keep_quiet(shared.options, group.first_pe, &mut chosen, cycle.at);
            steps = any_of(&chosen);
        }
        let over = group.do_steps(slots, (&chosen, steps), &freed, cycle, moves);
        if any_of(&over) != 0 {
            self.look_up(shared, at, &chosen, &over, cycle);
        }
        let group = &mut self.groups[at];
        // A thread that only waits for a time continues without an event.
        let is_quiet = any == 0 && group.paced == 0 && (0..LANES).all(|lane| nonzero(&group.waiting, lane) == 0);
        group.quiet = if is_quiet { group.quiet + 1 } else { 0 };
        any != 0
    }

    /// Looks up the state of threads that have done all computed steps, and computes further steps.
    #[cold]
    fn look_up(&mut self, shared: &Shared<'_, '_>, index: usize, chosen: &Lanes, over: &Lanes, cycle: &Cycle) {
        let m = &mut **shared.machine.lock().unwrap_or_else(PoisonError::into_inner);
        let first_pe = self.groups[index].first_pe;
        for lane in (0..LANES).filter(|&lane| over[lane] != 0) {
            let pe = first_pe + narrow::<u32>(lane);
            let local = chosen[lane].trailing_zeros();
            let thread = (m.pe_threads[pe as usize] + local) as usize;
            let t = &mut m.threads[thread];
            t.do_regular_steps();
            if t.advance(cycle.at).last {
                m.cycle = cycle.at;
                m.finish_op(pe, thread, local);
                self.end_waits(m, shared.bit_of, pe, index, lane);
            }
            self.foresee(m, shared.bit_of, (thread, local), index, lane);
        }
    }

    /// Continues threads of a PE that waited for an operation of another thread.
    fn end_waits(&mut self, m: &Clock<'_>, bit_of: &[u8], pe: u32, index: usize, lane: usize) {
        let threads = m.pe_threads[pe as usize] as usize..m.pe_threads[pe as usize + 1] as usize;
        for (local, thread) in (0..).zip(threads).filter(|t| m.threads[t.1].has_to_wait()) {
            self.foresee(m, bit_of, (thread, local), index, lane);
        }
    }

    /// Computes the next steps of `thread`, which has index `local` in its PE.
    pub fn foresee(&mut self, m: &Clock<'_>, bit_of: &[u8], (thread, local): (usize, u32), index: usize, lane: usize) {
        let (t, group) = (&m.threads[thread], &mut self.groups[index]);
        let slots = &mut self.slots[group.first_slot as usize..(group.first_slot + group.slots) as usize];
        let slot = &mut slots[local as usize];
        slot.earliest[lane] = earliest(m, thread);
        if t.is_done() {
            (slot.takes[lane], slot.sends[lane]) = (DONE, 0);
            if slot.takes.iter().all(|&takes| takes == DONE) {
                group.live &= !(1 << local);
            }
            return;
        }
        let (now, other) = (step(m, t, bit_of, t.at_step()), step(m, t, bit_of, t.other_step()));
        let wait = if slot.earliest[lane] == NEVER { NO_COLOR } else { 0 };
        (slot.takes[lane], slot.flip_takes[lane]) = (now.takes | wait, now.takes ^ other.takes);
        (slot.sends[lane], slot.flip_sends[lane]) = (now.sends, now.sends ^ other.sends);
        (slot.pace[lane], slot.flip_pace[lane]) = (now.pace, now.pace ^ other.pace);
        slot.left[lane] = t.regular_steps();
        let note = |word: &mut u32, which: bool| *word |= u32::from(which) << local;
        note(&mut group.live, true);
        note(&mut group.flips, slot.flip_takes[lane] | slot.flip_sends[lane] != 0);
        note(&mut group.paced, m.program.op(t.op()).pace > 1);
    }

    /// Returns true if some PE continues after cycle `at` only because time passes, without any other event.
    pub fn will_wake(&self, options: &Options, at: u32) -> bool {
        let paused = |&earliest: &u32| earliest != NEVER && earliest > at;
        let starts = |group: &Group| (group.first_pe..).take(LANES).any(|pe| options.start_of(pe) > at);
        self.slots.iter().any(|slot| slot.earliest.iter().any(paused)) || self.groups.iter().any(starts)
    }
}

/// The colors that a step of an operation takes and sends, and the pace of the step, as in [`Slot`].
struct Step {
    takes: u32,
    sends: u32,
    pace: u32,
}

fn step(m: &Clock<'_>, t: &Thread, bit_of: &[u8], step: u8) -> Step {
    let (sources, sinks) = t.places(&m.tables.places);
    let mask =
        |places: &[Place]| places.iter().filter_map(|p| p.queue()).fold(0u32, |mask, q| mask | 1 << bit_of[q as usize]);
    let last = step + 1 == t.steps();
    let sends = if last { mask(sinks) } else { 0 };
    Step { takes: mask(&sources[t.takes_in(step)]), sends, pace: t.pace_after(step) }
}

/// Returns the first cycle in which the next step of a thread may be done; [`NEVER`] if the thread has ended or must
/// wait for an operation.
fn earliest(m: &Clock<'_>, thread: usize) -> u32 {
    let t = &m.threads[thread];
    let must_wait = || t.has_to_wait() && m.program.waits(t.op()).any(|w| m.op_span[w] == UNDONE);
    if t.is_done() || must_wait() { NEVER } else { t.may_step_from() }
}

/// Removes from `chosen` the steps of PEs that idle in this cycle.
#[cold]
fn keep_quiet(options: &Options, first_pe: u32, chosen: &mut Lanes, cycle: u32) {
    for (pe, chosen) in (first_pe..).zip(chosen).filter(|(_, chosen)| **chosen != 0) {
        if cycle < options.start_of(pe) || noop(options, pe, cycle) {
            *chosen = 0;
        }
    }
}
