//! The proof of a schedule. Only this module makes a [`Verified`]; emission, execution and simulations of users accept
//! nothing else. It proves, in this order:
//!
//! 1. **well-formed**: spans inside buffers, streams with equal counts at both ends, operands that exist;
//! 2. **no deadlock** with the declared capacities at any granularity ([`crate::order`] has the argument), and **no
//!    race** between lanes that access the same slice;
//! 3. **complete**: each output element holds each required contribution exactly once, in an order the operator allows;
//! 4. **repeatable**, a property that is not required: outputs that must be equal are the same expression up to
//!    swapping the two operands of a commutative operator. So they are bit-identical in floating point, except for the
//!    bits of a NaN. A barrier has no outputs, so it is repeatable. `min` and `max` on floating point may return either
//!    of +0 and -0, so their operands may not be swapped. **place**, which is not required either: all elements of a
//!    result have the same expression ([`elements`]);
//! 5. **memory**: the scratch memory of the node that needs most.
//!
//! Each expression is stored once, and expressions are compared by their ids ([`expressions`]), so repeatability is
//! exact. The ranks of an expression are exact sets ([`exact`]) as long as these need little memory, otherwise
//! fingerprints ([`fingerprint`]); the proof records the method and the probability of a wrong result.

pub(crate) mod allowance;
pub mod certificate;
mod clock;
mod contents;
mod contributors;
mod elements;
mod exact;
pub(crate) mod expressions;
pub(crate) mod fingerprint;
mod name;
pub(crate) mod race;
mod seed;
pub(crate) mod segments;

use std::{borrow::Cow, collections::BTreeMap, str::FromStr};

use serde::Serialize;
use unisono_base::{Bytes, Diagnostic, Diagnostics, InstrId, Span, parallel};
use unisono_collective::{Collective, Kind, Operator};

use self::{
    allowance::Allowance,
    contents::{Contributions, Demanded, Stopped},
    expressions::Expressions,
};
use crate::{order::depth_first, runs::Runs, schedule::Schedule, well_formed};

pub use contributors::{Expression, MOST_CONTRIBUTORS};
pub use exact::DEFAULT_BUDGET;
pub use seed::Seed;

/// Representation of the ranks in each expression. The proof of a barrier is always exact.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Method {
    /// Exact up to [`DEFAULT_BUDGET`] intervals of ranks, otherwise by fingerprint.
    #[default]
    Auto,
    Exact,
    Fingerprint,
}

/// The error for a method or a seed that is not accepted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ProofOptionError {
    #[error("'{0}' is not a method of proof; accepted are auto, exact, fingerprint")]
    Method(String),
    #[error("seed '{0}' is not accepted; a seed is 1 to 32 hexadecimal digits, as a proof prints it")]
    Seed(String),
}

impl FromStr for Method {
    type Err = ProofOptionError;

    fn from_str(text: &str) -> Result<Self, ProofOptionError> {
        match text {
            "auto" => Ok(Method::Auto),
            "exact" => Ok(Method::Exact),
            "fingerprint" => Ok(Method::Fingerprint),
            _ => Err(ProofOptionError::Method(text.to_owned())),
        }
    }
}

#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Proof {
    pub complete: bool,
    pub deadlock_free: bool,
    pub race_free: bool,
    pub repeatable: bool,
    /// `exact` or `fingerprint`.
    pub method: &'static str,
    /// Upper bound of the probability that a wrong schedule passes a proof by fingerprint; `None` for an exact proof.
    pub error_probability: Option<f64>,
    /// Seed that repeats a proof by fingerprint; `None` for an exact proof.
    pub seed: Option<Seed>,
    pub scratch_bytes_max: Bytes,
    /// Digest, 128 bits, of the results' expressions: two schedules of one collective with the same class give the same
    /// bits, under the conditions of `repeatable`. `None` if the results are not proved, or have too many combinations.
    pub expression_class: Option<String>,
    /// Names of the bitwise properties that hold: `ranks` (the same as `repeatable`) and `place`.
    pub bits: Vec<&'static str>,
    /// Digest, 256 bits, of the expression that all elements of a result have; `None` without `place`.
    pub element_class: Option<String>,
    /// Expression of all elements; `None` without `place`, for a scan, and for collectives that combine nothing.
    #[serde(skip)]
    pub element_expression: Option<Expression>,
    /// Two elements of a result with different expressions, described for users; `None` with `place`, or if the
    /// schedule is not proved.
    pub unlike_elements: Option<String>,
    pub diagnostics: Vec<Diagnostic>,
}

impl Proof {
    pub fn holds(&self) -> bool {
        self.diagnostics.is_empty()
    }
}

/// The required contents of an output span, for messages that are not a collective: the inputs of `ranks` combined,
/// each exactly once, in an order that the operator allows. For a single rank, this is its input, unchanged. Output
/// element `k` of the span combines the input elements `input_start + k`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expected {
    pub span: Span,
    pub input_start: u32,
    /// Sorted half-open intervals of ranks, disjoint and not adjacent.
    pub ranks: Vec<(u32, u32)>,
}

/// A proved schedule. Lowering, emission and storing accept only this type.
#[derive(Clone, PartialEq, Debug)]
pub struct Verified<'a> {
    schedule: Cow<'a, Schedule>,
    proof: Proof,
}

impl<'a> Verified<'a> {
    /// # Errors
    /// Returns the failed proof, whose diagnostics name each fault and its location.
    pub fn new(schedule: Schedule, method: Method) -> Result<Self, Box<Proof>> {
        Self::holding(verify(&schedule, method), Cow::Owned(schedule))
    }

    /// # Errors
    /// Returns the errors of [`Verified::new`].
    pub fn of(schedule: &'a Schedule, method: Method) -> Result<Self, Box<Proof>> {
        Self::holding(verify(schedule, method), Cow::Borrowed(schedule))
    }

    /// Proves messages that are not a collective; see [`verify_with`].
    ///
    /// # Errors
    /// Returns the errors of [`Verified::new`].
    pub fn of_messages(schedule: &'a Schedule, method: Method, expected: &[Vec<Expected>]) -> Result<Self, Box<Proof>> {
        Self::holding(verify_with(schedule, method, Seed::random(), expected), Cow::Borrowed(schedule))
    }

    fn holding(proof: Proof, schedule: Cow<'a, Schedule>) -> Result<Self, Box<Proof>> {
        if proof.holds() { Ok(Self { schedule, proof }) } else { Err(Box::new(proof)) }
    }

    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    pub fn proof(&self) -> &Proof {
        &self.proof
    }
}

/// Rounding of an instruction that does not only add its sources from left to right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounding {
    /// The sum starts from +0. So a sum whose terms are all -0 is +0.
    FromZero,
    /// The order of the additions is defined by the program that executes the instruction, not by the schedule. Two
    /// results are equal only if the operands are equal and the instructions have the same number, which is below 2^30.
    Own(u32),
}

impl Rounding {
    /// Returns the second operand of the row that marks an expression with this rounding.
    fn mark(self) -> u32 {
        match self {
            Self::FromZero => expressions::END,
            Self::Own(number) => expressions::END | 1 << 30 | number,
        }
    }
}

/// Instructions that have a special rounding; only floating-point sums have one.
pub type Roundings = BTreeMap<InstrId, Rounding>;

/// Proves a schedule and collects findings, up to the limit of [`Diagnostics`]. Checks that depend on a failed check
/// are skipped. The operating system seeds the random numbers.
pub fn verify(schedule: &Schedule, method: Method) -> Proof {
    verify_seeded(schedule, method, Seed::random())
}

/// Proves a schedule executed by a program that rounds the instructions in `roundings` by its own order of additions.
pub fn verify_rounded(schedule: &Schedule, method: Method, roundings: &Roundings) -> Proof {
    let demand = |rank| schedule.collective().required(rank).map(Demanded::from).collect();
    prove((schedule, roundings), method, Seed::random(), &demand)
}

/// Proves a schedule with a given seed, to repeat an earlier proof. A proof by fingerprint shows nothing if the author
/// of the schedule could know the seed.
pub fn verify_seeded(schedule: &Schedule, method: Method, seed: Seed) -> Proof {
    let demand = |rank| schedule.collective().required(rank).map(Demanded::from).collect();
    prove((schedule, &Roundings::new()), method, seed, &demand)
}

/// Proves a schedule against expected contents instead of those of the collective. `expected` has, for each rank, spans
/// in ascending order, which need not cover its output. The collective only defines the lengths of the buffers.
pub fn verify_with(schedule: &Schedule, method: Method, seed: Seed, expected: &[Vec<Expected>]) -> Proof {
    prove((schedule, &Roundings::new()), method, seed, &|rank| {
        expected.get(rank as usize).into_iter().flatten().map(Demanded::from).collect()
    })
}

type Demand<'a> = &'a (dyn Fn(u32) -> Vec<Demanded<'a>> + Sync);

/// The least number of instructions of a schedule whose contents are computed concurrently with the order and the
/// search for races.
const LONG: usize = 1 << 12;

/// A schedule with its specially rounded instructions.
type Run<'a> = (&'a Schedule, &'a Roundings);

fn prove((schedule, roundings): Run<'_>, method: Method, seed: Seed, demand: Demand<'_>) -> Proof {
    let mut found = Diagnostics::default();
    let mut proof = Proof {
        method: if method == Method::Fingerprint { "fingerprint" } else { "exact" },
        scratch_bytes_max: scratch_bytes_max(schedule),
        ..Proof::default()
    };
    well_formed::check(schedule, &mut found);
    if found.is_empty() {
        let order = Runs::default();
        let order_and_races = || {
            let mut found = Diagnostics::default();
            depth_first(schedule, &order, &mut found);
            let races = found.is_empty().then(|| races(schedule, &order));
            (found, races)
        };
        // The computation of contents follows the order while it is being written. Contents and the search for races
        // have separate allowances.
        let contents = || contents((schedule, roundings), &order, (method, seed), demand);
        let ((ordered, races), contents) = if schedule.instr_count() >= LONG {
            parallel::both(order_and_races, contents)
        } else {
            let (ordered, races) = order_and_races();
            let contents = races.as_ref().and_then(|_| contents());
            ((ordered, races), contents)
        };
        found = ordered;
        proof.deadlock_free = found.is_empty();
        if let Some(races) = races {
            let contents = contents.unwrap_or_else(|| unreachable!("the order is whole"));
            found = races;
            proof.race_free = found.is_empty();
            proof.method = contents.method;
            proof.error_probability = contents.error_probability;
            proof.seed = contents.error_probability.map(|_| seed);
            proof.complete = contents.findings.is_empty();
            proof.repeatable = proof.complete && proof.race_free && contents.repeatable;
            proof.expression_class = contents.expression.filter(|_| proof.complete && proof.race_free);
            if proof.complete && proof.race_free {
                match contents.elements {
                    Ok(found) => {
                        let (class, expression) = found.filter(|_| proof.repeatable).unzip();
                        (proof.element_class, proof.element_expression) = (class, expression.flatten());
                    }
                    Err(unlike) => proof.unlike_elements = Some(unlike),
                }
                let hold = [("ranks", proof.repeatable), ("place", proof.element_class.is_some())];
                proof.bits = hold.into_iter().filter(|one| one.1).map(|one| one.0).collect();
            }
            proof.diagnostics = contents.findings.into_vec();
        }
    }
    let mut all = found.into_vec();
    all.append(&mut proof.diagnostics);
    proof.diagnostics = all;
    proof
}

fn races(schedule: &Schedule, order: &Runs) -> Diagnostics {
    let mut found = Diagnostics::default();
    let mut allowance = Allowance::new(schedule.instr_count());
    if race::check(schedule, order, &mut allowance, &mut found).is_err() {
        found.push("limit", None, None, || allowance.refusal());
    }
    found
}

struct Outcome {
    method: &'static str,
    findings: Diagnostics,
    repeatable: bool,
    expression: Option<String>,
    /// The class and the expression of all elements, or a description of two elements that differ.
    elements: Result<Option<(String, Option<Expression>)>, String>,
    error_probability: Option<f64>,
}

impl Outcome {
    fn failed(method: &'static str, findings: Diagnostics) -> Self {
        Self { method, findings, repeatable: false, expression: None, elements: Ok(None), error_probability: None }
    }
}

/// Returns true if a swap of the operands of a combination leaves the result unchanged, except for the bits of a NaN.
fn swaps(c: &Collective) -> bool {
    let picks = matches!(c.operator, Operator::Min | Operator::Max) && !c.dtype.is_integer();
    c.operator.commutative() && !picks
}

/// Computes the contents of all outputs, and compares them with `demand`; returns `None` if the order ends before the
/// last instruction.
fn contents(run: Run<'_>, order: &Runs, (method, seed): (Method, Seed), demand: Demand<'_>) -> Option<Outcome> {
    fn attempt<C: Contributions>(
        run: Run<'_>,
        order: &Runs,
        mut expressions: Expressions,
        mut contributions: C,
        demand: Demand<'_>,
    ) -> Result<Option<Outcome>, Diagnostics> {
        let mut allowance = Allowance::new(run.0.instr_count());
        let both = (&mut expressions, &mut contributions);
        match contents::run(run, order, both, &mut allowance, demand) {
            Ok(outcome) => Ok(Some(outcome)),
            Err(Stopped::NoOrder) => Ok(None),
            Err(Stopped::OverBudget(findings)) => Err(findings),
            Err(Stopped::OverAllowance) => {
                let mut findings = Diagnostics::default();
                findings.push("limit", None, None, || Allowance::new(run.0.instr_count()).refusal());
                Ok(Some(Outcome::failed(C::METHOD, findings)))
            }
        }
    }
    let c = run.0.collective();
    let mut random = seed.generator();
    // A barrier may combine a rank more than once. Counts and fingerprints cannot distinguish this from a missing rank.
    let is_barrier = c.kind == Kind::Barrier;
    if method != Method::Fingerprint || is_barrier {
        let budget = if method == Method::Exact || is_barrier { usize::MAX } else { DEFAULT_BUDGET };
        let expressions = Expressions::new(c.ranks, swaps(c), &mut random);
        match attempt(run, order, expressions, exact::Exact::new(c, budget), demand) {
            Ok(outcome) => return outcome,
            // Findings from before the budget was exceeded are valid, so another method cannot change the result.
            Err(findings) if !findings.is_empty() => return Some(Outcome::failed("exact", findings)),
            Err(_) => {}
        }
    }
    let fingerprint = fingerprint::Fingerprint::new(c, &mut random);
    let expressions = Expressions::new(c.ranks, swaps(c), &mut random);
    match attempt(run, order, expressions, fingerprint, demand) {
        Ok(outcome) => outcome,
        Err(_) => unreachable!("fingerprints have no budget"),
    }
}

fn scratch_bytes_max(schedule: &Schedule) -> Bytes {
    let most = schedule.scratch.iter().copied().max().unwrap_or(0);
    Bytes(u64::from(most) * schedule.collective().dtype.bytes())
}
