//! The search for collectives whose result a rank already has.
//!
//! * A collective that repeats an earlier one: the same operands, groups and dimensions.
//! * A collective that undoes an earlier one: an all-to-all of the result of the same all-to-all, or a permutation of
//!   the result of its inverse.
//! * An all-gather, an all-reduce, a broadcast or a reduce-scatter of a value that is equal on all ranks of each group:
//!   the result of an all-gather, an all-reduce or a broadcast among them, a constant, or a value computed only from
//!   these.
//!
//! Only collectives of the same computation are compared. Values are followed through copies, renamings that keep the
//! shape, and barriers of the optimizer.

use rustc_hash::FxHashMap;
use unisono_collective::Kind;

use super::{
    collective::pattern,
    module::{Computation, Half, Instruction, Module},
};
use crate::{Groups, Work};

/// The reason why a rank already has the result of a collective.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Redundancy {
    /// The result equals that of the collective with this name.
    Repeats(String),
    /// The result equals the operand of the collective with this name.
    Undoes(String),
    /// The result follows from the operand, because the operand is equal on all ranks of each group.
    Uniform,
}

/// The ranks on which a value is known to be equal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Equal {
    /// The ranks of each group in the set of groups with this index.
    Within(u32),
    Everywhere,
}

impl Equal {
    fn and(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Everywhere, equal) | (equal, Self::Everywhere) => Some(equal),
            (a, b) => (a == b).then_some(a),
        }
    }
}

/// The properties of a collective by which a repetition of it is recognized.
#[derive(PartialEq, Eq, Hash)]
struct Made<'a> {
    opcode: &'a str,
    attributes: [Option<&'a str>; 2],
    operands: Vec<usize>,
    /// True for a set of groups, false for tables of receivers; and its index.
    among: (bool, u32),
}

/// The known properties of the values of a computation. Instructions are added one by one.
pub struct Known<'a, 'm> {
    module: &'m Module<'a>,
    at: usize,
    within: &'m Computation<'a>,
    are_pure: &'m [bool],
    equal: Vec<Option<Equal>>,
    /// For each value, the value that it renames, or itself.
    sources: Vec<usize>,
    /// For each tuple and index, the first value that represents the element.
    elements: FxHashMap<(usize, usize), usize>,
    made: FxHashMap<Made<'a>, usize>,
    works: FxHashMap<usize, Work>,
}

/// The sets of groups and the tables of receivers of a module, by index.
pub struct Among<'m> {
    pub groups: &'m dyn Fn(u32) -> &'m Groups,
    /// Returns the receiver of each rank.
    pub receivers: &'m dyn Fn(u32) -> &'m [u32],
}

/// Returns for each computation whether its result depends only on its parameters.
pub fn pure_computations(module: &Module) -> Vec<bool> {
    let mut pure: Vec<bool> = Vec::with_capacity(module.computations.len());
    for at in 0..module.computations.len() {
        let all = &module.computations[at].instructions;
        pure.push(all.iter().all(|i| i.opcode == "parameter" || is_pure(module, at, i, &pure)));
    }
    pure
}

/// Returns whether the result of an instruction depends only on its operands.
fn is_pure(module: &Module, at: usize, i: &Instruction, pure: &[bool]) -> bool {
    let calls = |key| module.called(i, at, key).is_ok_and(|called| pure[called]);
    match i.opcode {
        "fusion" => calls("calls"),
        "call" => calls("to_apply"),
        "parameter" | "while" | "conditional" | "async" | "custom-call" | "infeed" | "outfeed" | "send" | "recv" => {
            false
        }
        opcode => !opcode.starts_with("rng") && !i.names_device() && pattern(i).is_none(),
    }
}

impl<'a, 'm> Known<'a, 'm> {
    pub fn new(module: &'m Module<'a>, at: usize, are_pure: &'m [bool]) -> Self {
        Self {
            module,
            at,
            within: &module.computations[at],
            are_pure,
            equal: Vec::new(),
            sources: Vec::new(),
            elements: FxHashMap::default(),
            made: FxHashMap::default(),
            works: FxHashMap::default(),
        }
    }

    /// Adds the next instruction with its communication, if any. If the communication is redundant, returns the reason.
    pub fn add(&mut self, work: Option<Work>, among: &Among) -> Option<Redundancy> {
        let n = self.sources.len();
        let i = &self.within.instructions[n];
        let operands = i.operands.iter().try_fold(Equal::Everywhere, |all, &operand| all.and(self.equal[operand]?));
        let Some(work) = work.filter(|_| i.opcode != "send") else {
            let source = self.source(n);
            let passes = i.half == Half::Rest || is_pure(self.module, self.at, i, self.are_pure);
            self.equal.push(operands.filter(|_| passes));
            self.sources.push(source);
            return None;
        };
        self.sources.push(n);
        let found = self.redundancy(n, &work, operands, among);
        self.equal.push(match work {
            Work::Collective(c) if matches!(c.kind, Kind::Allgather | Kind::Allreduce | Kind::Broadcast) => {
                Some(Equal::Within(c.groups))
            }
            _ => None,
        });
        self.works.insert(n, work);
        found
    }

    /// Returns the value that instruction `n` renames, or itself.
    fn source(&mut self, n: usize) -> usize {
        let i = &self.within.instructions[n];
        let Some(&operand) = i.operands.first() else { return n };
        let of = |n: usize| &self.within.instructions[n];
        match i.opcode {
            _ if i.half == Half::Rest => self.sources[operand],
            "copy" | "bitcast" | "reshape" if i.half == Half::Whole && i.shape() == of(operand).shape() => {
                self.sources[operand]
            }
            "opt-barrier" | "optimization-barrier" => self.sources[operand],
            "get-tuple-element" => {
                let Some(index) = i.attribute("index").and_then(|text| text.parse::<usize>().ok()) else { return n };
                let tuple = self.sources[operand];
                match of(tuple).operands.get(index) {
                    Some(&element) if of(tuple).opcode == "tuple" => self.sources[element],
                    _ => *self.elements.entry((tuple, index)).or_insert(n),
                }
            }
            _ => n,
        }
    }

    fn redundancy(&mut self, n: usize, work: &Work, equal: Option<Equal>, among: &Among) -> Option<Redundancy> {
        let i = &self.within.instructions[n];
        let of = match *work {
            Work::Collective(c) => (true, c.groups),
            Work::Permute { receivers, .. } => (false, receivers),
            _ => return None,
        };
        let operands: Vec<usize> = i.operands.iter().map(|&operand| self.sources[operand]).collect();
        if self.undoes(&operands, i, work, among).is_some_and(|first| first < n) {
            let first = self.first_of(operands[0]);
            return Some(Redundancy::Undoes(self.within.instructions[first].name.to_owned()));
        }
        let attributes = ["dimensions", "to_apply"].map(|key| i.attribute(key));
        let first = *self.made.entry(Made { opcode: i.opcode, attributes, operands, among: of }).or_insert(n);
        if first != n {
            return Some(Redundancy::Repeats(self.within.instructions[first].name.to_owned()));
        }
        let Work::Collective(c) = work else { return None };
        let kinds = [Kind::Allgather, Kind::Allreduce, Kind::Broadcast, Kind::ReduceScatter];
        let is_equal = match equal? {
            Equal::Everywhere => true,
            Equal::Within(outer) => is_within((among.groups)(c.groups), (among.groups)(outer)),
        };
        (is_equal && kinds.contains(&c.kind)).then_some(Redundancy::Uniform)
    }

    /// Returns the instruction whose result contains a value: the operand of a tuple access, or the value itself.
    fn first_of(&self, value: usize) -> usize {
        let i = &self.within.instructions[value];
        match (i.opcode, i.operands.first()) {
            ("get-tuple-element", Some(&tuple)) => self.sources[tuple],
            _ => value,
        }
    }

    /// Returns the earlier communication that this communication reverses: its operands are the results of the earlier
    /// communication.
    fn undoes(&self, operands: &[usize], i: &Instruction, work: &Work, among: &Among) -> Option<usize> {
        let first = self.first_of(*operands.first()?);
        let (before, earlier) = (self.within.instructions.get(first)?, self.works.get(&first)?);
        let is_inverse = match (*earlier, *work) {
            (Work::Collective(a), Work::Collective(b)) => {
                let dimensions = |i: &Instruction| i.attribute("dimensions").map(str::to_owned);
                // Each operand must be the element with the same index, or the only result.
                let is_element = |(number, &value): (usize, &usize)| {
                    let element = &self.within.instructions[value];
                    value == first && before.operands.len() == 1
                        || self.first_of(value) == first && element.attribute("index") == Some(&*number.to_string())
                };
                a == b
                    && a.kind == Kind::Alltoall
                    && (before.opcode, i.opcode) == ("all-to-all", "all-to-all")
                    && dimensions(before) == dimensions(i)
                    && before.operands.len() == operands.len()
                    && operands.iter().enumerate().all(is_element)
            }
            (Work::Permute { receivers: a, bytes: sent }, Work::Permute { receivers: b, bytes }) => {
                let (a, b) = ((among.receivers)(a), (among.receivers)(b));
                // If every rank sends to another rank and the second permutation returns the data, no rank receives
                // zeros.
                let returns = |(rank, &to): (usize, &u32)| to as usize != rank && b[to as usize] as usize == rank;
                sent == bytes && first == operands[0] && a.iter().enumerate().all(returns)
            }
            _ => false,
        };
        is_inverse.then_some(first)
    }
}

/// Returns whether each group is contained in one of the outer groups.
fn is_within(groups: &Groups, outer: &Groups) -> bool {
    let together = |group: &[u32]| {
        let first = outer.number_of(group[0]);
        first.is_some() && group.iter().all(|&rank| outer.number_of(rank) == first)
    };
    groups.iter().all(together)
}
