//! The expansion of loops and calls of a module into the nodes that it executes.
//!
//! A value depends on the last compute and the last communication that it needs. Each queue runs in program order, so
//! these two imply all earlier dependencies. A loop with an unknown number of iterations is expanded once. For a
//! conditional, the first branch with the most instructions of its own is chosen.

use std::{collections::BTreeMap, rc::Rc};

use unisono_base::{excerpt, interrupt::poll, narrow};

use super::{
    collective::{Devices, ListText, Pattern, bytes, pattern, sent_pairs},
    compute::{Arithmetic, is_product},
    module::{Computation, Half, Instruction, Module},
    opcodes::{Cost, cost},
    opinion::{Finding, Sufficient, suffices, users},
    redundant::{Among, Known, pure_computations},
    text::{bracketed, parts},
};
use crate::{Collected, Groups, RankClass, Work, WorkNode, WorkloadGraph, error::Wrong, graph::Distinct};

const MOST_NODES: usize = 1 << 20;
/// The maximum number of visits of instructions and iterations of loops together.
const MOST_VISITS: u64 = 1 << 24;
/// The largest accepted product of the number of devices and the number of distinct lists of groups or pairs.
const MOST_PLACES: u64 = 1 << 25;
/// The maximum depth of nested calls, and of nested tuples.
const MOST_DEPTH: u32 = 32;

/// The last node of each queue that a value waits for, plus 1; 0 for none.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Needs {
    computed: u32,
    communicated: u32,
}

impl Needs {
    fn and(self, other: Self) -> Self {
        Self { computed: self.computed.max(other.computed), communicated: self.communicated.max(other.communicated) }
    }
}

/// A value and the nodes that it needs. A tuple also has its elements and its depth.
#[derive(Clone, Default)]
struct Value {
    needs: Needs,
    elements: Option<Rc<[Value]>>,
    depth: u32,
}

impl Value {
    fn plain(needs: Needs) -> Self {
        Self { needs, ..Self::default() }
    }

    /// Makes a tuple. If the nesting exceeds [`MOST_DEPTH`], more than compilers produce, the tuple is stored without
    /// its elements.
    fn tuple(elements: Vec<Value>) -> Self {
        let needs = elements.iter().fold(Needs::default(), |all, value| all.and(value.needs));
        let depth = 1 + elements.iter().map(|value| value.depth).max().unwrap_or(0);
        let elements = (depth <= MOST_DEPTH).then(|| elements.into());
        Self { needs, depth: if elements.is_some() { depth } else { 0 }, elements }
    }

    fn element(&self, n: usize) -> Self {
        self.elements.as_ref().and_then(|elements| elements.get(n)).cloned().unwrap_or(Self::plain(self.needs))
    }
}

/// The communication of an instruction; `None` if it has none, or no rank sends to another one.
type Read = Option<Work>;

/// The list of a communication: true for groups, false for pairs; and its text.
type Listed<'a> = (bool, ListText<'a>);

pub struct Expansion<'a> {
    module: &'a Module<'a>,
    strict: bool,
    devices: Devices,
    arithmetic: Arithmetic,
    nodes: Vec<WorkNode>,
    groups: Distinct<Groups>,
    receivers: Distinct<Vec<Vec<u32>>>,
    /// For each text of a list, the index of its set of groups or tables of receivers.
    texts: rustc_hash::FxHashMap<Listed<'a>, u32>,
    /// The number of devices times the number of entries of `texts`.
    places: u64,
    communication: rustc_hash::FxHashMap<(usize, usize), Read>,
    /// The findings, by computation and instruction.
    findings: BTreeMap<(usize, usize), Finding>,
    /// The computations whose collectives were already examined for findings.
    judged: rustc_hash::FxHashSet<usize>,
    are_pure: Vec<bool>,
    unknown: BTreeMap<String, u64>,
    /// For each list of pairs, the needs of the messages of its last `send`.
    sent: rustc_hash::FxHashMap<&'a str, Needs>,
    /// The pairs of the last `recv` of each channel.
    receives: rustc_hash::FxHashMap<&'a str, &'a str>,
    visits: u64,
    /// The number of conditionals for which a branch was chosen.
    branches: u64,
}

impl<'a> Expansion<'a> {
    pub fn new(module: &'a Module<'a>, strict: bool) -> Result<Self, Wrong> {
        Ok(Self {
            module,
            strict,
            devices: Devices::of(module)?,
            arithmetic: Arithmetic::new(module)?,
            nodes: Vec::new(),
            groups: Distinct::new(),
            receivers: Distinct::new(),
            texts: rustc_hash::FxHashMap::default(),
            places: 0,
            communication: rustc_hash::FxHashMap::default(),
            findings: BTreeMap::new(),
            judged: rustc_hash::FxHashSet::default(),
            are_pure: pure_computations(module),
            unknown: BTreeMap::new(),
            sent: rustc_hash::FxHashMap::default(),
            receives: rustc_hash::FxHashMap::default(),
            visits: 0,
            branches: 0,
        })
    }

    pub fn graph(mut self) -> Result<WorkloadGraph, Wrong> {
        self.computation(self.module.entry, &[], 0)?;
        let ranks = self.devices.count();
        let note = (self.branches > 0).then(|| {
            format!(
                "the branch with most instructions is taken of each conditional that is met, here {}",
                self.branches
            )
        });
        Ok(WorkloadGraph {
            name: self.module.name.to_owned(),
            format: "hlo",
            ranks,
            groups: self.groups.into_rows(),
            receivers: self.receivers.into_rows(),
            classes: vec![RankClass { ranks: (0..ranks).collect(), nodes: self.nodes }],
            findings: self.findings.into_values().collect(),
            unknown: self.unknown,
            notes: note.into_iter().collect(),
            ..WorkloadGraph::default()
        })
    }

    fn computation(&mut self, at: usize, arguments: &[Value], depth: u32) -> Result<Value, Wrong> {
        let computation = &self.module.computations[at];
        if depth > MOST_DEPTH {
            let line = computation.instructions[0].line;
            return Err(Wrong::line(line, format!("calls are nested more than {MOST_DEPTH} deep")));
        }
        if self.judged.insert(at) {
            self.judge(at)?;
        }
        let mut values: Vec<Value> = Vec::with_capacity(computation.instructions.len());
        for (n, i) in computation.instructions.iter().enumerate() {
            poll();
            self.visits += 1;
            if self.visits > MOST_VISITS || self.nodes.len() > MOST_NODES {
                let message = format!(
                    "loops and calls expand to more than {MOST_NODES} nodes; accepted are fewer, so compile one step alone"
                );
                return Err(Wrong::line(i.line, message));
            }
            let value = self.instruction(at, n, &values, arguments, depth)?;
            values.push(value);
        }
        Ok(values[computation.root].clone())
    }

    fn instruction(
        &mut self,
        at: usize,
        n: usize,
        values: &[Value],
        arguments: &[Value],
        depth: u32,
    ) -> Result<Value, Wrong> {
        let module = self.module;
        let computation = &module.computations[at];
        let i = &computation.instructions[n];
        let operands = || i.operands.iter().map(|&operand| values[operand].clone());
        let needs = operands().fold(Needs::default(), |all, value| all.and(value.needs));
        if pattern(i).is_some() {
            let done = self.communicate(at, n, needs)?;
            if let Some(pairs) = sent_pairs(i) {
                self.sent.insert(pairs, done);
            }
            return Ok(Value::plain(done));
        }
        if i.half == Half::Rest {
            let arrived = if i.opcode == "recv" { self.arrived(i) } else { Needs::default() };
            let first = operands().next().unwrap_or_default();
            return Ok(if i.opcode == "copy" { first } else { Value::plain(needs.and(arrived)) });
        }
        match i.opcode {
            "parameter" => Ok(i.parameter.and_then(|number| arguments.get(number)).cloned().unwrap_or_default()),
            "tuple" => Ok(Value::tuple(operands().collect())),
            "get-tuple-element" => {
                let index = i.attribute("index").and_then(|text| text.parse().ok());
                let index = index.ok_or_else(|| Wrong::line(i.line, "a get-tuple-element has no index"))?;
                Ok(operands().next().unwrap_or_default().element(index))
            }
            "call" => self.computation(module.called(i, at, "to_apply")?, &operands().collect::<Vec<_>>(), depth + 1),
            "async" => self.computation(module.called(i, at, "calls")?, &operands().collect::<Vec<_>>(), depth + 1),
            "while" => self.repeat(i, at, operands().next().unwrap_or_default(), depth),
            "conditional" => self.branch(i, at, &operands().collect::<Vec<_>>(), depth),
            "recv" => {
                match (i.attribute("channel_id"), sent_pairs(i).filter(|_| !i.is_host_transfer())) {
                    (Some(channel), Some(pairs)) => drop(self.receives.insert(channel, pairs)),
                    _ => self.unknown(i, i.opcode)?,
                }
                Ok(Value::plain(needs))
            }
            "optimization-barrier" | "opt-barrier" | "domain" | "add-dependency" => {
                let first = operands().next().unwrap_or_default();
                Ok(Value { needs, ..first })
            }
            _ => {
                let known = if i.opcode == "custom-call" && is_product(i) { Cost::Local } else { cost(i.opcode) };
                if known == Cost::Unknown {
                    self.unknown(i, i.opcode)?;
                }
                if known == Cost::Free {
                    return Ok(Value::plain(needs));
                }
                let compute = self.arithmetic.compute(module, at, i)?;
                Ok(Value::plain(Needs { computed: self.node(i, Work::Compute(compute), needs), ..Needs::default() }))
            }
        }
    }

    /// Returns the needs of the last `send` whose pairs are those of a receive. The pairs are found by the channel of
    /// the receive. Returns no needs if there is no such `send`. The text has the `send` before the `recv-done`.
    fn arrived(&self, i: &Instruction) -> Needs {
        let pairs = i.attribute("channel_id").and_then(|channel| self.receives.get(channel));
        pairs.and_then(|pairs| self.sent.get(pairs)).copied().unwrap_or_default()
    }

    /// Adds a node and returns its index plus 1.
    fn node(&mut self, i: &Instruction, work: Work, needs: Needs) -> u32 {
        let after = [needs.computed, needs.communicated].into_iter().filter_map(|node| node.checked_sub(1)).collect();
        self.nodes.push(WorkNode::new(i.name, work, after));
        narrow(self.nodes.len())
    }

    fn communicate(&mut self, at: usize, n: usize, needs: Needs) -> Result<Needs, Wrong> {
        let i = &self.module.computations[at].instructions[n];
        // Groups of one rank and messages from a rank to itself are not communication.
        let Some(work) = self.communication[&(at, n)] else { return Ok(needs) };
        if i.opcode == "ragged-all-to-all" {
            self.unknown(i, "ragged-all-to-all of unknown lengths, taken as equal parts of the input")?;
        }
        if let Some(finding) = self.findings.get_mut(&(at, n)) {
            finding.count += 1;
        }
        Ok(Needs { communicated: self.node(i, work, needs), ..Needs::default() })
    }

    /// Reads the communications of a computation, and records a finding for each one that is redundant or could be
    /// replaced by a cheaper one.
    fn judge(&mut self, at: usize) -> Result<(), Wrong> {
        let (module, within) = (self.module, &self.module.computations[at]);
        let mut reads: Vec<Read> = Vec::with_capacity(within.instructions.len());
        for (n, i) in within.instructions.iter().enumerate() {
            poll();
            let read = if pattern(i).is_some() { self.read(i, within)? } else { None };
            if pattern(i).is_some() {
                self.communication.insert((at, n), read);
            }
            reads.push(read);
        }
        if reads.iter().all(Option::is_none) {
            return Ok(());
        }
        let (users, mut known) = (users(within), Known::new(module, at, &self.are_pure));
        let among = Among { groups: &|n| self.groups.row(n), receivers: &|n| &self.receivers.row(n)[0] };
        for (n, read) in reads.into_iter().enumerate() {
            poll();
            let redundant = known.add(read, &among).map(Sufficient::Nothing);
            let Some(found) = read else { continue };
            let part = |found: Collected| {
                let size = *self.groups.row(found.groups).sizes().last().unwrap_or(&1);
                suffices(module, at, &users, n, &found, size).map(Sufficient::Part)
            };
            let sufficient = redundant.or_else(|| match found {
                Work::Collective(collected) => part(collected),
                _ => None,
            });
            if let Some(suffices) = sufficient {
                let name = within.instructions[n].name.to_owned();
                self.findings.insert((at, n), Finding { name, count: 0, found, suffices });
            }
        }
        Ok(())
    }

    fn read(&mut self, i: &Instruction<'a>, within: &Computation) -> Result<Read, Wrong> {
        Ok(match pattern(i).expect("the caller tests it") {
            Pattern::Permute => {
                let receivers = self.listed(i, false)?;
                let bytes = bytes(i, within, unisono_collective::Kind::Message, 2)?.0;
                let is_idle = self.receivers.row(receivers)[0].iter().copied().eq(0..self.devices.count());
                (!is_idle).then_some(Work::Permute { bytes, receivers })
            }
            Pattern::Collective(kind) => {
                let groups = self.listed(i, true)?;
                let size = *self.groups.row(groups).sizes().last().unwrap_or(&1);
                let (bytes, element_bytes) = bytes(i, within, kind, size)?;
                (size > 1).then_some(Work::Collective(Collected { kind, bytes, element_bytes, root: 0, groups }))
            }
        })
    }

    /// Returns the index of the groups of a collective, or of the tables of receivers of a permutation. Equal texts are
    /// read once.
    fn listed(&mut self, i: &Instruction<'a>, groups: bool) -> Result<u32, Wrong> {
        let key = (groups, self.devices.list_text(i));
        if let Some(&number) = self.texts.get(&key) {
            return Ok(number);
        }
        self.places += u64::from(self.devices.count());
        if self.places > MOST_PLACES {
            let message = format!(
                "the module has more than {} different lists of groups or pairs of {} devices",
                self.texts.len(),
                self.devices.count()
            );
            return Err(Wrong::line(i.line, message));
        }
        let number = if groups {
            self.groups.number(self.devices.groups(i)?)
        } else {
            self.receivers.number(vec![self.devices.receivers(i)?])
        };
        self.texts.insert(key, number);
        Ok(number)
    }

    fn repeat(&mut self, i: &Instruction<'a>, at: usize, mut state: Value, depth: u32) -> Result<Value, Wrong> {
        let body = self.module.called(i, at, "body")?;
        let config = i.attribute("backend_config").unwrap_or_default();
        let count = config.split_once("\"known_trip_count\"").and_then(|(_, rest)| {
            rest.split(|c: char| !c.is_ascii_digit()).find(|digits| !digits.is_empty())?.parse::<u64>().ok()
        });
        if count.is_none() {
            self.unknown(i, "while of unknown length, counted once")?;
        }
        for _ in 0..count.unwrap_or(1) {
            poll();
            self.visits += 1;
            state = self.computation(body, &[state], depth + 1)?;
        }
        Ok(state)
    }

    fn branch(&mut self, i: &Instruction<'a>, at: usize, operands: &[Value], depth: u32) -> Result<Value, Wrong> {
        let wrong = |message| Wrong::line(i.line, message);
        let names: Vec<&str> = match i.attribute("branch_computations").and_then(bracketed) {
            Some((inside, _)) => parts(inside),
            None => ["true_computation", "false_computation"].iter().filter_map(|key| i.attribute(key)).collect(),
        };
        let mut best = None;
        for (n, name) in names.into_iter().enumerate() {
            let called = self.module.earlier(name, at).map_err(wrong)?;
            let length = self.module.computations[called].instructions.len();
            if best.is_none_or(|(most, _, _)| length > most) {
                best = Some((length, n, called));
            }
        }
        self.branches += 1;
        let (_, n, called) = best.ok_or_else(|| wrong("a conditional has no branch".to_owned()))?;
        let argument = operands.get(n + 1).cloned().unwrap_or_default();
        let chosen = operands.first().map_or(Needs::default(), |value| value.needs);
        let value = self.computation(called, &[argument], depth + 1)?;
        Ok(Value { needs: value.needs.and(chosen), ..value })
    }

    /// Counts an operation of unknown time, or refuses it if `strict`.
    fn unknown(&mut self, i: &Instruction, what: &str) -> Result<(), Wrong> {
        let target = i.attribute("custom_call_target").map(|target| excerpt(target.trim_matches('"')));
        let name = target.map_or_else(|| excerpt(what), |target| format!("{} {target}", excerpt(what)));
        if self.strict {
            return Err(Wrong::line(
                i.line,
                format!("the time of '{name}' is not known; without --strict it is counted"),
            ));
        }
        *self.unknown.entry(name).or_default() += 1;
        Ok(())
    }
}
