//! The proof of a schedule. Only this module makes a [`Verified`]; simulation, emission and execution accept nothing
//! else. It proves, in this order:
//!
//! 1. **well-formed**: spans inside buffers, streams with equal counts at both ends, operands that exist;
//! 2. **no deadlock** with the declared capacities at any granularity ([`crate::order`] has the argument), and **no
//!    race** between lanes on a slice;
//! 3. **complete**: each output element holds each required contribution exactly once, in an order the operator allows;
//! 4. **repeatable**, a fact and no demand: outputs that must be equal are the same expression up to swapping the two
//!    operands of a commutative operator, hence bit-identical in floating point;
//! 5. **memory**: the most scratch a node needs.
//!
//! Contents are exact ([`exact`]) while the sets of contributions stay affordable, and fingerprints ([`fingerprint`])
//! beyond that; the proof says which.

pub mod certificate;
mod clock;
mod contents;
mod exact;
mod fingerprint;
mod race;

use std::str::FromStr;

use serde::Serialize;
use unisono_base::{Bytes, Diagnostic, Diagnostics, mix};
use unisono_collective::Required;

use crate::{flow::Flow, order::topological, schedule::Schedule};

pub use exact::DEFAULT_BUDGET;

/// How contents are proved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Method {
    /// Exact while at most [`DEFAULT_BUDGET`] intervals of ranks are needed, else by fingerprint.
    #[default]
    Auto,
    Exact,
    Fingerprint,
}

impl FromStr for Method {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Method::Auto),
            "exact" => Ok(Method::Exact),
            "fingerprint" => Ok(Method::Fingerprint),
            _ => Err(format!("'{text}' is not a method of proof; accepted are auto, exact, fingerprint")),
        }
    }
}

/// What was proved, and what was found wrong.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Proof {
    pub complete: bool,
    pub deadlock_free: bool,
    pub race_free: bool,
    pub repeatable: bool,
    /// `exact` or `fingerprint`.
    pub method: &'static str,
    pub scratch_bytes_max: Bytes,
    /// Names the expression of the results: two schedules of one collective with the same class give the same bits.
    pub expression_class: Option<String>,
    pub diagnostics: Vec<Diagnostic>,
}

impl Proof {
    /// Whether the schedule is proved.
    pub fn holds(&self) -> bool {
        self.diagnostics.is_empty()
    }
}

/// A schedule with its proof.
#[derive(Clone, PartialEq, Debug)]
pub struct Verified {
    schedule: Schedule,
    proof: Proof,
}

impl Verified {
    /// # Errors
    /// The failed proof, whose diagnostics say what is wrong where.
    pub fn new(schedule: Schedule, method: Method) -> Result<Self, Box<Proof>> {
        let proof = verify(&schedule, method);
        if proof.holds() { Ok(Self { schedule, proof }) } else { Err(Box::new(proof)) }
    }

    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    pub fn proof(&self) -> &Proof {
        &self.proof
    }
}

/// Checks everything and collects what it finds; later checks are left out where earlier ones took their ground away.
pub fn verify(schedule: &Schedule, method: Method) -> Proof {
    prove(schedule, method, &|rank| schedule.collective().required(rank).collect())
}

/// The same where outputs must hold something else than the collective says: of each rank ascending spans, which need not
/// cover its output. The collective then says no more than how long the buffers are.
pub fn verify_with(schedule: &Schedule, method: Method, required: &[Vec<Required>]) -> Proof {
    prove(schedule, method, &|rank| required.get(rank as usize).cloned().unwrap_or_default())
}

/// What the output of each rank must hold.
type Demand<'a> = &'a dyn Fn(u32) -> Vec<Required>;

fn prove(schedule: &Schedule, method: Method, required: Demand<'_>) -> Proof {
    let mut found = Diagnostics::default();
    let mut proof = Proof {
        complete: false,
        deadlock_free: false,
        race_free: false,
        repeatable: false,
        method: if method == Method::Fingerprint { "fingerprint" } else { "exact" },
        scratch_bytes_max: scratch_bytes_max(schedule),
        expression_class: None,
        diagnostics: Vec::new(),
    };
    let flow = Flow::new(schedule, &mut found);
    if found.is_empty() {
        let order = topological(schedule, &flow, &mut found);
        proof.deadlock_free = found.is_empty();
        if proof.deadlock_free {
            race::check(schedule, &flow, &order, &mut found);
            proof.race_free = found.is_empty();
            let contents = contents(schedule, &flow, &order, method, required);
            proof.method = contents.method;
            proof.complete = contents.findings.is_empty();
            proof.repeatable = proof.complete && proof.race_free && contents.repeatable;
            proof.expression_class =
                (proof.complete && proof.race_free).then(|| format!("{:016x}", contents.expression));
            proof.diagnostics = contents.findings.into_vec();
        }
    }
    let mut all = found.into_vec();
    all.append(&mut proof.diagnostics);
    proof.diagnostics = all;
    proof
}

struct Outcome {
    method: &'static str,
    findings: Diagnostics,
    repeatable: bool,
    expression: u64,
}

fn contents(
    schedule: &Schedule,
    flow: &Flow,
    order: &[unisono_base::InstrId],
    method: Method,
    required: Demand<'_>,
) -> Outcome {
    let c = schedule.collective();
    if method != Method::Fingerprint {
        let budget = if method == Method::Exact { usize::MAX } else { DEFAULT_BUDGET };
        let mut domain = exact::Exact::new(c, budget);
        match contents::run(schedule, flow, order, &mut domain, required) {
            Ok(done) => return Outcome { method: "exact", ..done },
            // What was found before the budget ran out is definite, and nothing that follows can mend it.
            Err(contents::OverBudget(findings)) if !findings.is_empty() => {
                return Outcome { method: "exact", findings, repeatable: false, expression: 0 };
            }
            Err(_) => {}
        }
    }
    let mut domain = fingerprint::Fingerprint::new(c, seed(schedule));
    match contents::run(schedule, flow, order, &mut domain, required) {
        Ok(done) => Outcome { method: "fingerprint", ..done },
        Err(contents::OverBudget(_)) => unreachable!("fingerprints have no budget"),
    }
}

/// A hash of all tables.
fn seed(schedule: &Schedule) -> u64 {
    use std::hash::{Hash, Hasher};
    let mut hasher = rustc_hash::FxHasher::default();
    schedule.collective.hash(&mut hasher);
    schedule.operands.hash(&mut hasher);
    for i in &schedule.instrs {
        (i.first_operand, i.sources, i.len).hash(&mut hasher);
    }
    for s in &schedule.streams {
        (s.source, s.len, s.first_sink).hash(&mut hasher);
    }
    (&schedule.sinks, &schedule.node_lanes, &schedule.lane_instrs).hash(&mut hasher);
    mix(hasher.finish())
}

fn scratch_bytes_max(schedule: &Schedule) -> Bytes {
    let most = schedule.scratch.iter().copied().max().unwrap_or(0);
    Bytes(u64::from(most) * schedule.collective().dtype.bytes())
}
