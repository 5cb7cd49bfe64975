//! Ranks candidates, or times the one that was named.

use std::sync::OnceLock;

use unisono_algorithms::{ALGORITHMS, Algorithm, AlgorithmError, Case, Params, resolve};
use unisono_base::{Cycles, interrupt, limits};
use unisono_cost::{Evaluator, Model, measure, models::Modelled};
use unisono_lower::{Estimate, Placed};
use unisono_schedule::verify::{Method, Verified};

use crate::{PlanError, Request};

/// An algorithm with its parameters and what the model says of it.
#[derive(Clone)]
pub struct Chosen {
    pub algorithm: &'static dyn Algorithm,
    pub params: Params,
    pub estimate: Estimate,
    pub cycles: Cycles,
}

pub struct Plan {
    pub request: Request,
    pub model: &'static dyn Model,
    /// Best first; never empty.
    pub candidates: Vec<Chosen>,
    placed: OnceLock<Result<Placed, PlanError>>,
}

impl Plan {
    pub fn best(&self) -> &Chosen {
        &self.candidates[0]
    }

    /// The schedule of the best candidate, built on first use.
    ///
    /// # Errors
    /// It is larger than its tables can hold.
    pub fn placed(&self) -> Result<&Placed, PlanError> {
        let built = self.placed.get_or_init(|| build(self.best(), &self.request.case()));
        built.as_ref().map_err(Clone::clone)
    }

    /// The schedule with its proof, at the cost of a copy.
    ///
    /// # Errors
    /// It cannot be built, or it is wrong: a fault of the algorithm.
    pub fn verified(&self, method: Method) -> Result<Verified, PlanError> {
        let placed = self.placed()?;
        Verified::new(placed.schedule.clone(), method).map_err(|proof| PlanError::NotProved {
            algorithm: self.best().algorithm.name().to_owned(),
            message: proof.diagnostics.first().map_or_else(String::new, ToString::to_string),
        })
    }
}

/// Bytes and steps of an instruction while a schedule is built, with the streams that it writes: 43 bytes where the
/// instructions are made by node and lane, and up to 77 where they are sorted. Its proof takes no more unless contents
/// are many, which the proof counts itself.
const INSTRUCTION_BYTES: u128 = 80;
const INSTRUCTION_STEPS: u128 = 200;

/// Schedules of more instructions are not made, whatever the limits are.
const MOST_INSTRUCTIONS: u64 = 1 << 27;

/// Admits a schedule before it is built, where its size is known.
///
/// # Errors
/// The schedule is too large for any machine, or over a limit.
pub(crate) fn admit(algorithm: &dyn Algorithm, case: &Case, params: &Params) -> Result<(), PlanError> {
    let Some(instructions) = algorithm.instructions(case, params) else { return Ok(()) };
    if instructions > MOST_INSTRUCTIONS {
        let reason = format!("it would take about {instructions} instructions; at most {MOST_INSTRUCTIONS} are made");
        return Err(AlgorithmError::Unsupported { algorithm: algorithm.name(), reason }.into());
    }
    let instructions = u128::from(instructions);
    Ok(limits::admit("the schedule", INSTRUCTION_BYTES * instructions, INSTRUCTION_STEPS * instructions)?)
}

fn build(chosen: &Chosen, case: &Case) -> Result<Placed, PlanError> {
    admit(chosen.algorithm, case, &chosen.params)?;
    let mut placed = chosen.algorithm.build(case, &chosen.params)?;
    placed.schedule.set_origin(&format!("{} {}", chosen.algorithm.name(), chosen.params));
    Ok(placed)
}

/// The time of one algorithm in a case: from its closed form, or from its schedule where it states none.
pub fn evaluate(
    algorithm: &'static dyn Algorithm,
    params: Params,
    case: &Case,
    model: &'static dyn Model,
) -> Result<Chosen, PlanError> {
    interrupt::check();
    let estimate = match algorithm.estimate(case, &params) {
        Some(estimate) => estimate,
        None => {
            admit(algorithm, case, &params)?;
            let placed = algorithm.build(case, &params)?;
            let phases = measure(&placed).map_err(|found| PlanError::NotProved {
                algorithm: algorithm.name().to_owned(),
                message: found.first().map_or_else(String::new, ToString::to_string),
            })?;
            model.slowest(phases, case.depth_cycles())
        }
    };
    let cycles = Modelled { model, depth_cycles: case.depth_cycles() }.evaluate(&estimate);
    Ok(Chosen { algorithm, params, estimate, cycles })
}

/// Ranks every candidate, or evaluates the algorithm that is named.
///
/// # Errors
/// Unknown names or parameters, cases that are not supported.
pub fn plan(
    request: Request,
    algorithm: Option<&str>,
    params: &Params,
    model: Option<&str>,
) -> Result<Plan, PlanError> {
    let model = request.model(model)?;
    let case = request.case();
    let candidates = match algorithm {
        Some(name) => {
            let (algorithm, params) = resolve(name, &case, params)?;
            vec![evaluate(algorithm, params, &case, model)?]
        }
        None => rank(&request, &case, params, model)?,
    };
    Ok(Plan { request, model, candidates, placed: OnceLock::new() })
}

/// What is worth ranking for a case. Parameters without an algorithm restrict the candidates: those that contradict
/// them are left out.
pub(crate) fn candidates(case: &Case, wanted: &Params) -> Vec<(&'static dyn Algorithm, Params)> {
    let mut candidates = Vec::new();
    for &algorithm in ALGORITHMS.iter().filter(|a| a.collectives().contains(&case.collective.kind)) {
        for params in algorithm.candidates(case) {
            interrupt::check();
            let mut merged = params.clone();
            for (k, v) in wanted.iter() {
                merged = merged.with(k, v);
            }
            let contradicts = params.iter().any(|(k, v)| merged.get(k) != Some(v));
            let Ok((same, merged)) = resolve(algorithm.name(), case, &merged) else {
                continue;
            };
            if !contradicts && same.name() == algorithm.name() {
                candidates.push((algorithm, merged));
            }
        }
    }
    candidates
}

fn rank(request: &Request, case: &Case, wanted: &Params, model: &'static dyn Model) -> Result<Vec<Chosen>, PlanError> {
    let timed =
        candidates(case, wanted).into_iter().map(|(algorithm, params)| evaluate(algorithm, params, case, model));
    let mut candidates = timed.collect::<Result<Vec<_>, _>>()?;
    if candidates.is_empty() {
        return Err(PlanError::NoCandidate {
            kind: request.collective.kind.to_string(),
            shape: request.shape.to_string(),
            machine: request.wafer.name.clone(),
            hint: if wanted.is_empty() { String::new() } else { format!(" with {wanted}") },
        });
    }
    candidates.sort_by(|a, b| a.cycles.0.total_cmp(&b.cycles.0));
    Ok(candidates)
}
