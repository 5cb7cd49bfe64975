//! Judges a schedule by the order of its events.
//!
//! An event is an element of an instruction. Each lane has one next event. The set of events that have happened
//! determines if the next event can happen, and further events never prevent it, because a stream has one lane at each
//! end. So events of different lanes never disable each other: all runs to the end consist of the same events, and the
//! runs are exactly the linear extensions of one partial order. A run that stops early stops in every interleaving. Two
//! unordered events are next at the same time in some run. One pass over the events therefore judges all interleavings.
//! `explore.rs` tests this argument: it walks through the interleavings themselves.

use super::{
    model::{Model, Set, Source},
    random::mix,
    value::{self, UNWRITTEN, Value},
};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Verdict {
    pub deadlock: bool,
    /// Two instructions of different lanes that access the same place may run at the same time, with some capacities at
    /// least as large as declared.
    pub race: bool,
    /// The same for two single elements, with the declared capacities.
    pub race_of_elements: bool,
    /// A place is read before it is written.
    pub undefined: bool,
    /// An output element differs from the requirement.
    pub wrong: bool,
    /// An element combines different input elements, or one contribution twice, in an output or elsewhere.
    pub faulty: bool,
    /// Outputs that must be equal have one expression, up to the order of the operands of a commutative operator.
    pub one_expression: bool,
    /// These outputs have the same bits in the floating-point sums that were tried.
    pub equal_bits: bool,
}

impl Verdict {
    pub fn is_right(&self) -> bool {
        !(self.deadlock || self.race || self.undefined || self.wrong)
    }
}

/// The direct predecessors of each event.
pub struct Causes {
    pub free: Vec<Set>,
    /// `free`, plus the events that make room in streams with the declared capacities.
    pub bounded: Vec<Set>,
    pub is_bounded: bool,
}

fn bit(event: usize) -> Set {
    1 << event
}

impl Causes {
    pub fn new(model: &Model) -> Self {
        let mut free: Vec<Set> = vec![0; model.events];
        // The event that pushes each element of each stream, and the events that pop the element.
        let mut pushed: Vec<Vec<usize>> = model.streams.iter().map(|s| vec![0; s.len]).collect();
        let mut popped: Vec<Vec<Set>> = model.streams.iter().map(|s| vec![0; s.len]).collect();
        for row in &model.rows {
            for k in 0..row.len {
                row.pushes.iter().for_each(|&(s, from)| pushed[s][from + k] = row.event + k);
                row.pops().for_each(|p| popped[p.stream][p.from + k] |= bit(row.event + k));
            }
        }
        for (lane, rows) in model.lanes.iter().enumerate() {
            let mut last = None;
            for row in &model.rows[rows.clone()] {
                debug_assert_eq!(row.lane, lane);
                for k in 0..row.len {
                    let causes = &mut free[row.event + k];
                    *causes |= last.map_or(0, bit);
                    last = Some(row.event + k);
                    row.pops().for_each(|p| *causes |= bit(pushed[p.stream][p.from + k]));
                }
                for &earlier in &row.after {
                    let earlier = &model.rows[earlier];
                    free[row.event] |= bit(earlier.event + earlier.len - 1);
                }
            }
        }
        let mut bounded = free.clone();
        let mut is_bounded = false;
        for (s, stream) in model.streams.iter().enumerate().filter(|(_, s)| s.capacity < s.len && s.sinks > 0) {
            is_bounded = true;
            for (n, &event) in pushed[s].iter().enumerate().skip(stream.capacity) {
                bounded[event] |= popped[s][n - stream.capacity];
            }
        }
        Self { free, bounded, is_bounded }
    }
}

/// The chunks of instructions: the chunk of each event, and the number of chunks.
struct Chunks {
    of: Vec<u8>,
    count: usize,
}

impl Chunks {
    /// Cuts every instruction at the events whose bit is set in `cuts`.
    fn new(model: &Model, cuts: Set) -> Self {
        let mut of = vec![0; model.events];
        let mut count = 0;
        for row in &model.rows {
            for (k, chunk) in of[row.event..row.event + row.len].iter_mut().enumerate() {
                count += usize::from(k == 0 || cuts & bit(row.event + k) != 0);
                *chunk = (count - 1) as u8;
            }
        }
        Self { of, count }
    }

    /// Returns true if all chunks can run when a chunk waits for all predecessors of its elements.
    fn can_run(&self, causes: &[Set]) -> bool {
        let mut waits: Vec<Set> = vec![0; self.count];
        for (event, &causes) in causes.iter().enumerate() {
            let chunk = usize::from(self.of[event]);
            let mut rest = causes;
            while rest != 0 {
                let cause = usize::from(self.of[rest.trailing_zeros() as usize]);
                rest &= rest - 1;
                // Elements of the same chunk are ordered only by their lane.
                if cause != chunk {
                    waits[chunk] |= bit(cause);
                }
            }
        }
        run(&waits).1
    }
}

/// Returns the predecessors of each event, true if all events can happen, and an order of the events that can.
fn run(causes: &[Set]) -> (Vec<Set>, bool, Vec<u8>) {
    let all: Set = if causes.len() == 128 { !0 } else { bit(causes.len()) - 1 };
    let mut before: Vec<Set> = vec![0; causes.len()];
    let mut order = Vec::with_capacity(causes.len());
    let (mut done, mut moved): (Set, bool) = (0, true);
    while moved {
        moved = false;
        let mut open = all & !done;
        while open != 0 {
            let event = open.trailing_zeros() as usize;
            open &= open - 1;
            if causes[event] & !done == 0 {
                let mut rest = causes[event];
                let mut closed = rest;
                while rest != 0 {
                    closed |= before[rest.trailing_zeros() as usize];
                    rest &= rest - 1;
                }
                before[event] = closed;
                order.push(event as u8);
                done |= bit(event);
                moved = true;
            }
        }
    }
    (before, done == all, order)
}

/// Judges the schedule; `cuts` chooses one granularity between elements and whole instructions.
pub fn judge(model: &Model, cuts: Set, seed: u64) -> Verdict {
    let mut verdict = Verdict::default();
    let causes = Causes::new(model);
    let (free, all_free, order) = run(&causes.free);
    let (bounded, all_bounded, _) =
        if causes.is_bounded { run(&causes.bounded) } else { (Vec::new(), all_free, vec![]) };
    let whole = Chunks::new(model, 0).can_run(&causes.bounded);
    let between = Chunks::new(model, cuts).can_run(&causes.bounded);
    assert!(between || !whole, "what runs in whole instructions runs in any chunks");
    assert!(all_bounded || !between, "what runs in chunks runs element by element");
    verdict.deadlock = !whole;
    if !all_free || !all_bounded {
        return verdict;
    }
    let strict = if causes.is_bounded { &bounded } else { &free };
    for (a, x) in model.rows.iter().enumerate() {
        for (b, y) in model.rows.iter().enumerate().skip(a + 1) {
            if x.lane == y.lane || !model.rows_meet(a, b) {
                continue;
            }
            let (last_x, last_y) = (x.event + x.len - 1, y.event + y.len - 1);
            verdict.race |= free[y.event] & bit(last_x) == 0 && free[x.event] & bit(last_y) == 0;
            if !verdict.race {
                continue;
            }
            for j in 0..x.len {
                for k in 0..y.len {
                    let (e, f) = (x.event + j, y.event + k);
                    verdict.race_of_elements |=
                        model.elements_meet(a, j, b, k) && strict[e] & bit(f) == 0 && strict[f] & bit(e) == 0;
                }
            }
        }
    }
    contents(model, &order, seed, &mut verdict);
    verdict
}

/// The content of a place: its value, a number that is equal for equal expressions, and two floating-point sums.
#[derive(Clone, Copy)]
pub struct Cell {
    pub value: Value,
    pub expression: u64,
    floats: [f32; 2],
}

pub const NOTHING: Cell = Cell { value: UNWRITTEN, expression: 0, floats: [0.0; 2] };

impl Cell {
    pub fn input(rank: usize, element: usize, seed: u64) -> Self {
        let float = |draw: u64| {
            let bits = mix(seed ^ mix((rank as u64) << 32 | (element as u64) << 8 | draw));
            let size = f32::powi(2.0, (bits >> 60) as i32 - 8);
            ((bits & 0xff_ffff) as f32 - 8_388_608.0) * size
        };
        let expression = mix(1 + rank as u64);
        Self { value: value::leaf(rank, element), expression, floats: [float(0), float(1)] }
    }

    pub fn combine(self, other: Self, commutative: bool) -> Self {
        let (mut x, mut y) = (self.expression, other.expression);
        if commutative && x > y {
            std::mem::swap(&mut x, &mut y);
        }
        Self {
            value: value::combine(self.value, other.value),
            expression: mix(x.wrapping_mul(3).wrapping_add(mix(y ^ 0x5851_f42d_4c95_7f2d))),
            floats: [self.floats[0] + other.floats[0], self.floats[1] + other.floats[1]],
        }
    }

    pub fn has_equal_bits(&self, other: &Self) -> bool {
        self.floats.map(f32::to_bits) == other.floats.map(f32::to_bits)
    }
}

/// Returns the cells of all places at the end of a run in `order`.
pub fn cells(model: &Model, order: &[u8], seed: u64, verdict: &mut Verdict) -> Vec<Cell> {
    let commutative = model.collective.operator.commutative();
    let idempotent = model.collective.kind == unisono_collective::Kind::Barrier;
    let mut memory = vec![NOTHING; model.places];
    for (place, rank, element) in model.inputs() {
        memory[place] = Cell::input(rank, element, seed);
    }
    let mut streams: Vec<Vec<Cell>> = model.streams.iter().map(|s| vec![NOTHING; s.len]).collect();
    let mut row_of = [0u8; super::model::MOST_EVENTS];
    for (r, row) in model.rows.iter().enumerate() {
        row_of[row.event..row.event + row.len].fill(r as u8);
    }
    for &event in order {
        let row = &model.rows[usize::from(row_of[usize::from(event)])];
        let k = usize::from(event) - row.event;
        let mut sum: Option<Cell> = None;
        for source in &row.sources {
            let cell = match *source {
                Source::Place(p) => memory[p + k],
                Source::Pop(p) => streams[p.stream][p.from + k],
            };
            // A popped element was already checked when it was pushed.
            verdict.undefined |= cell.value == UNWRITTEN && matches!(source, Source::Place(_));
            sum = Some(sum.map_or(cell, |s| s.combine(cell, commutative)));
        }
        let cell = sum.unwrap_or(NOTHING);
        verdict.faulty |= value::is_faulty(cell.value) && !idempotent;
        row.writes.iter().for_each(|&p| memory[p + k] = cell);
        row.pushes.iter().for_each(|&(s, from)| streams[s][from + k] = cell);
    }
    memory
}

fn contents(model: &Model, order: &[u8], seed: u64, verdict: &mut Verdict) {
    let memory = cells(model, order, seed, verdict);
    let operator = model.collective.operator;
    verdict.one_expression = true;
    verdict.equal_bits = true;
    for (place, element, source) in model.required() {
        verdict.wrong |= !value::is_right(memory[place].value, element, source, operator);
    }
    // A barrier has no results to compare.
    use unisono_collective::Kind::{Allgather, Allreduce, Broadcast};
    let c = &model.collective;
    if ![Allgather, Allreduce, Broadcast].contains(&c.kind) {
        return;
    }
    let mut first: Option<u32> = None;
    for rank in (0..c.ranks).filter(|&r| c.output_len(r) > 0) {
        let one = *first.get_or_insert(rank);
        for k in 0..c.output_len(rank) as usize {
            let (a, b) = (&memory[model.first[one as usize][1] + k], &memory[model.first[rank as usize][1] + k]);
            verdict.one_expression &= a.expression == b.expression;
            verdict.equal_bits &= a.has_equal_bits(b);
        }
    }
}

/// Returns an order in which all events can happen; `None` if there is none.
pub fn an_order(model: &Model) -> Option<Vec<u8>> {
    let (_, all, order) = run(&Causes::new(model).free);
    all.then_some(order)
}
