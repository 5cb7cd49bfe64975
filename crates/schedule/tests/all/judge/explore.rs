//! The verdict of a walk through all interleavings, which visits every reachable state once.
//!
//! A state is the progress of each lane, with the contents of memory and streams. States are identified by progress
//! alone. If two runs reach the same progress with different contents, this is reported. An element is atomic: its
//! sources are read and all its sinks are written in one step. In a walk by whole instructions, an instruction is
//! atomic.

use std::hash::{BuildHasherDefault, Hasher};

use super::{
    model::{MOST_LANES, Model, Source},
    random::mix,
    value::{self, UNWRITTEN, Value},
};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Found {
    pub deadlock: bool,
    /// Two instructions that access the same place had both started, or could both start next.
    pub overlap: bool,
    /// Two steps that access the same place were possible at the same time.
    pub both_next: bool,
    /// The same progress was reached with different contents.
    pub contents_differ: bool,
    pub undefined: bool,
    pub wrong: bool,
    /// The walk was stopped early. Its findings are valid.
    pub given_up: bool,
    pub states: usize,
}

#[derive(Clone, Copy)]
pub struct Walk {
    /// True if a step is a whole instruction, not one element.
    pub whole: bool,
    /// True if streams have their declared capacities, not unlimited ones.
    pub bounded: bool,
    pub most_states: usize,
}

#[derive(Default)]
pub struct Mixing(u64);

impl Hasher for Mixing {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.0 = mix(self.0 ^ u64::from(b)));
    }
    fn write_u128(&mut self, n: u128) {
        self.0 = mix(n as u64 ^ mix((n >> 64) as u64 ^ 0x1234_5678));
    }
}

type States = std::collections::HashMap<u128, u64, BuildHasherDefault<Mixing>>;

/// A walker that reuses its table of states from walk to walk.
#[derive(Default)]
pub struct Explorer {
    states: States,
}

struct State<'a> {
    model: &'a Model,
    walk: Walk,
    states: &'a mut States,
    found: Found,
    /// For each lane, its row and the number of that row's completed elements.
    at: [(usize, usize); MOST_LANES],
    steps: [u8; MOST_LANES],
    row_done: Vec<bool>,
    pushed: Vec<usize>,
    popped: Vec<Vec<usize>>,
    memory: Vec<Value>,
    streams: Vec<Vec<Value>>,
    /// Hash of the memory; `undo` has the old values of the writes so far.
    contents: u64,
    undo: Vec<(usize, Value)>,
}

impl Explorer {
    pub fn walk(&mut self, model: &Model, walk: Walk) -> Found {
        self.states.clear();
        let mut at = [(0, 0); MOST_LANES];
        model.lanes.iter().enumerate().for_each(|(l, rows)| at[l] = (rows.start, 0));
        let mut state = State {
            model,
            walk,
            states: &mut self.states,
            found: Found::default(),
            at,
            steps: [0; MOST_LANES],
            row_done: vec![false; model.rows.len()],
            pushed: vec![0; model.streams.len()],
            popped: model.streams.iter().map(|s| vec![0; s.sinks]).collect(),
            memory: vec![UNWRITTEN; model.places],
            streams: model.streams.iter().map(|s| vec![UNWRITTEN; s.len]).collect(),
            contents: 0,
            undo: Vec::new(),
        };
        for (place, rank, element) in model.inputs() {
            state.memory[place] = value::leaf(rank, element);
        }
        state.visit();
        Found { states: state.states.len(), ..state.found }
    }
}

impl State<'_> {
    fn visit(&mut self) {
        if self.found.given_up || self.found.both_next {
            return;
        }
        let key = u128::from_le_bytes(self.steps);
        match self.states.get(&key) {
            Some(&contents) => {
                self.found.contents_differ |= contents != self.contents;
                return;
            }
            None if self.states.len() >= self.walk.most_states => {
                self.found.given_up = true;
                return;
            }
            None => self.states.insert(key, self.contents),
        };
        let lanes = self.model.lanes.len();
        let mut next = [false; MOST_LANES];
        let (mut any, mut all_done) = (false, true);
        for (lane, next) in next.iter_mut().enumerate().take(lanes) {
            all_done &= self.at[lane].0 == self.model.lanes[lane].end;
            *next = self.can_step(lane);
            any |= *next;
        }
        if all_done {
            let c = &self.model.collective;
            let wrong = self.model.required().any(|(p, e, s)| !value::is_right(self.memory[p], e, s, c.operator));
            self.found.wrong |= wrong;
            return;
        }
        self.found.deadlock |= !any;
        for a in 0..lanes {
            for b in a + 1..lanes {
                self.compare(a, b, &next);
            }
        }
        for lane in (0..lanes).filter(|&l| next[l]) {
            let undo = self.undo.len();
            let taken = self.step(lane);
            self.visit();
            self.back(lane, taken, undo);
        }
    }

    fn amount(&self, lane: usize) -> usize {
        if self.walk.whole { self.model.rows[self.at[lane].0].len } else { 1 }
    }

    fn can_step(&self, lane: usize) -> bool {
        let (r, k) = self.at[lane];
        if r == self.model.lanes[lane].end {
            return false;
        }
        let row = &self.model.rows[r];
        let n = self.amount(lane);
        (k > 0 || row.after.iter().all(|&e| self.row_done[e]))
            && row.pops().all(|p| self.popped[p.stream][p.sink] + n <= self.pushed[p.stream])
            && (!self.walk.bounded
                || row.pushes.iter().all(|&(s, _)| {
                    let slowest = self.popped[s].iter().min();
                    slowest.is_none_or(|slowest| self.pushed[s] + n <= slowest + self.model.streams[s].capacity)
                }))
    }

    fn compare(&mut self, a: usize, b: usize, next: &[bool; MOST_LANES]) {
        let (model, (r, j), (q, k)) = (self.model, self.at[a], self.at[b]);
        if r == model.lanes[a].end || q == model.lanes[b].end || !model.rows_meet(r, q) {
            return;
        }
        self.found.overlap |= (next[a] || j > 0) && (next[b] || k > 0);
        if next[a] && next[b] {
            self.found.both_next |= self.walk.whole || model.elements_meet(r, j, q, k);
        }
    }

    fn put(&mut self, place: usize, value: Value) {
        let old = std::mem::replace(&mut self.memory[place], value);
        self.undo.push((place, old));
        let hash = |v: Value| mix(v << 8 | place as u64);
        self.contents = self.contents.wrapping_add(hash(value)).wrapping_sub(hash(old));
    }

    fn step(&mut self, lane: usize) -> usize {
        let model = self.model;
        let (r, k) = self.at[lane];
        let row = &model.rows[r];
        let n = self.amount(lane);
        for k in k..k + n {
            let mut sum = None;
            for source in &row.sources {
                let value = match *source {
                    Source::Place(p) => {
                        self.found.undefined |= self.memory[p + k] == UNWRITTEN;
                        self.memory[p + k]
                    }
                    Source::Pop(p) => self.streams[p.stream][self.popped[p.stream][p.sink]],
                };
                sum = Some(sum.map_or(value, |s| value::combine(s, value)));
            }
            let value = sum.unwrap_or(UNWRITTEN);
            row.pops().for_each(|p| self.popped[p.stream][p.sink] += 1);
            row.writes.iter().for_each(|&p| self.put(p + k, value));
            for &(s, _) in &row.pushes {
                let at = self.pushed[s];
                self.streams[s][at] = value;
                self.pushed[s] += 1;
            }
        }
        self.steps[lane] += n as u8;
        self.row_done[r] = k + n == row.len;
        self.at[lane] = if k + n == row.len { (r + 1, 0) } else { (r, k + n) };
        n
    }

    fn back(&mut self, lane: usize, n: usize, undo: usize) {
        let (r, k) = self.at[lane];
        let r = if k == 0 { r - 1 } else { r };
        let row = &self.model.rows[r];
        self.at[lane] = (r, if k == 0 { row.len - n } else { k - n });
        self.steps[lane] -= n as u8;
        self.row_done[r] = false;
        row.pops().for_each(|p| self.popped[p.stream][p.sink] -= n);
        row.pushes.iter().for_each(|&(s, _)| self.pushed[s] -= n);
        while self.undo.len() > undo {
            let Some((place, old)) = self.undo.pop() else { unreachable!("longer than before") };
            let now = std::mem::replace(&mut self.memory[place], old);
            let hash = |v: Value| mix(v << 8 | place as u64);
            self.contents = self.contents.wrapping_add(hash(old)).wrapping_sub(hash(now));
        }
    }
}
