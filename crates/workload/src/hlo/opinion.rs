//! The search for two kinds of collectives. The first can be replaced by a cheaper collective, because each rank uses
//! only its own part of the result. The second is not needed, because ranks already have the result (`redundant.rs`).
//!
//! * An all-reduce of B bytes of which each of n ranks reads at most B / n is a reduce-scatter.
//! * An all-gather of B bytes of which each of n ranks reads at most B / n is an all-to-all with blocks of B / n^2.
//!
//! A rank reads only a part if every use is a slice whose offset depends on the device's number. The text does not show
//! whether the slices of a group are disjoint. They are disjoint if offsets are computed from the index in the group,
//! as partitioners do.

use unisono_collective::Kind;

use super::{
    compute::sliced,
    module::{Computation, Half, Instruction, Module},
    redundant::Redundancy,
};
use crate::{Collected, Work};

/// The maximum number of renamings through which a value is followed; also the maximum number of instructions through
/// which an offset is followed.
const MOST_DEPTH: usize = 64;
/// The maximum number of instructions that are examined for one collective; a collective with more uses has no finding.
const MOST_STEPS: usize = 1 << 16;

/// A communication that is not needed, or that a cheaper communication could replace, and the number of its executions.
#[derive(Clone, PartialEq, Debug)]
pub struct Finding {
    pub name: String,
    pub count: u64,
    pub found: Work,
    pub suffices: Sufficient,
}

/// The cheaper replacement of a communication, or the reason why the communication is not needed.
#[derive(Clone, PartialEq, Debug)]
pub enum Sufficient {
    /// A collective that moves only the part of the result that each rank uses.
    Part(Collected),
    /// Ranks already have the result.
    Nothing(Redundancy),
}

/// Returns, for each instruction of a computation, the instructions that have it as an operand, ascending.
pub fn users(computation: &Computation) -> Vec<Vec<usize>> {
    let mut users = vec![Vec::new(); computation.instructions.len()];
    for (user, i) in computation.instructions.iter().enumerate() {
        for &operand in &i.operands {
            if users[operand].last() != Some(&user) {
                users[operand].push(user);
            }
        }
    }
    users
}

/// Returns the cheaper collective, if there is one, that can replace instruction `n` of the computation with index
/// `at`, among groups of `size` ranks. `users` lists the users of each instruction ([`users`]).
pub fn suffices(
    module: &Module,
    at: usize,
    users: &[Vec<usize>],
    n: usize,
    collected: &Collected,
    size: u32,
) -> Option<Collected> {
    let within = &module.computations[at];
    let (whole, kind) = match collected.kind {
        Kind::Allreduce => (collected.bytes, Kind::ReduceScatter),
        Kind::Allgather => (collected.bytes.checked_mul(u64::from(size))?, Kind::Alltoall),
        _ => return None,
    };
    let read = Uses { module, at, within, users, left: MOST_STEPS }.read(n, 0)?;
    let size = u64::from(size);
    let part = whole.div_ceil(size);
    let bytes = if kind == Kind::Alltoall { part.div_ceil(size) } else { part };
    (read > 0 && read <= part).then_some(Collected { kind, bytes, ..*collected })
}

struct Uses<'a> {
    module: &'a Module<'a>,
    at: usize,
    within: &'a Computation<'a>,
    users: &'a [Vec<usize>],
    left: usize,
}

impl Uses<'_> {
    /// Returns the bytes of a value that slices read. Returns `None` if another operation reads the value, if no
    /// operation reads it, if it is the computation's result, or if the search exceeds its depth or its number of
    /// steps.
    fn read(&mut self, n: usize, depth: usize) -> Option<u64> {
        if n == self.within.root || depth > MOST_DEPTH {
            return None;
        }
        let mut sum = None;
        let (users, within) = (self.users, self.within);
        for &user in &users[n] {
            let i = &within.instructions[user];
            self.left = self.left.checked_sub(1 + i.operands.len())?;
            let bytes = match i.opcode {
                _ if i.half == Half::Rest => self.read(user, depth + 1)?,
                "bitcast" | "get-tuple-element" => self.read(user, depth + 1)?,
                "dynamic-slice" if i.operands[0] == n && self.follows_device(i) => i.shape().bytes(),
                "fusion" => self.read_by_fusion(i, n)?,
                _ => return None,
            };
            sum = Some(sum.unwrap_or(0_u64).saturating_add(bytes));
        }
        sum
    }

    fn read_by_fusion(&mut self, i: &Instruction, n: usize) -> Option<u64> {
        let fused = &self.module.computations[self.module.called(i, self.at, "calls").ok()?];
        self.left = self.left.checked_sub(fused.instructions.len())?;
        let parameters = i.operands.iter().enumerate().filter(|&(_, &operand)| operand == n);
        let reads = sliced(fused);
        let has_number = fused.instructions.iter().any(Instruction::names_device) || self.follows_device(i);
        let read = |(number, _)| fused.parameters.get(number).copied().flatten().and_then(|place| reads[place]);
        if has_number { parameters.map(read).sum() } else { None }
    }

    /// Returns whether an operand depends on the device's number through scalars and at most [`MOST_DEPTH`]
    /// instructions.
    fn follows_device(&self, i: &Instruction) -> bool {
        let (mut open, mut steps) = (i.operands.clone(), 0);
        while let Some(n) = open.pop() {
            steps += 1;
            let operand = &self.within.instructions[n];
            if operand.names_device() {
                return true;
            }
            // Offsets are scalars.
            if steps < MOST_DEPTH && operand.shape().dims().is_empty() {
                open.extend(&operand.operands);
            }
        }
        false
    }
}
