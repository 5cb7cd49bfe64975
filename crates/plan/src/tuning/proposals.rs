//! The algorithms that are worth running by the model of a machine, and the classes of sizes that share a plan.

use std::collections::{BTreeMap, BTreeSet};

use unisono_algorithms::Params;
use unisono_collective::{Dtype, Kind, Operator};
use unisono_machine::{Machine, Shape};
use unisono_schedule::verify::{self, Method};

use crate::{
    Format, Part, Plan, PlanError, Problem, Request, Root, Timed,
    candidates::Ranked,
    plan,
    plan::{Named, timed},
    plan_at,
    sweep::as_planned,
};

fn request(kind: Kind, machine: &Machine, ranks: u32, elements: u64, operator: Operator) -> Request<'_> {
    // Operators that do not commute are defined for i64 only.
    let dtype = if operator.commutative() { Dtype::F32 } else { Dtype::I64 };
    let part = Part::Shape(Shape::line(ranks));
    Request { operator, dtype, ..Request::new(kind, machine, part, elements) }
}

/// Returns plans of the best algorithms by the model, each with its best parameters, in order of time, at most `most`.
/// In an allreduce all ranks get the same bits, because programs rely on that.
///
/// # Errors
///
/// Returns the errors of [`plan`].
pub fn proposals(
    kind: Kind,
    machine: &Machine,
    ranks: u32,
    elements: u64,
    most: usize,
    operator: Operator,
) -> Result<Vec<Plan>, PlanError> {
    first(&request(kind, machine, ranks, elements, operator), most)
}

fn first(request: &Request, most: usize) -> Result<Vec<Plan>, PlanError> {
    let ranked = plan(Problem::new(request)?, None, &Params::new())?;
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for candidate in &ranked.candidates {
        if found.len() == most {
            break;
        }
        let name = candidate.algorithm.name();
        if seen.insert(name) {
            found.extend(planned(request, name, &candidate.params)?);
        }
    }
    Ok(found)
}

/// Returns algorithms with parameters: first each algorithm with its best parameters by the model, best algorithm
/// first; then each algorithm with its second best parameters, and so on. The defaults of each algorithm are among
/// these. `format` names the file that will state the parameters; parameters that the format itself sets have its
/// values.
///
/// # Errors
/// Returns the errors of [`plan`], or an error if no format has the name.
pub fn settings(
    kind: Kind,
    machine: &Machine,
    ranks: u32,
    elements: u64,
    format: &str,
) -> Result<Vec<(&'static str, Params)>, PlanError> {
    let request = request(kind, machine, ranks, elements, Operator::Sum);
    let (problem, format) = (Problem::new(&request)?, Format::named(format, None)?);
    let candidates = |name| timed(&problem, name, &Params::new(), Some(&format), Ranked::All);
    let mut all = candidates(None)?.timed;
    let names: BTreeSet<_> = all.iter().map(|one| one.algorithm.name()).collect();
    for algorithm in names {
        match candidates(Some(Named { algorithm, at_defaults: true })) {
            Err(e) if e.is_unsupported() => {}
            usual => all.extend(usual?.timed.into_iter().take(1)),
        }
    }
    all.sort_by(|a, b| a.time.total_cmp(&b.time));
    let mut seen: BTreeMap<&str, Vec<Params>> = BTreeMap::new();
    let mut found = Vec::new();
    for Timed { algorithm, params, .. } in all {
        let known = seen.entry(algorithm.name()).or_default();
        if !known.contains(&params) {
            found.push((known.len(), algorithm.name(), params.clone()));
            known.push(params);
        }
    }
    found.sort_by_key(|&(place, ..)| place);
    Ok(found.into_iter().map(|(_, name, params)| (name, params)).collect())
}

/// Plans one algorithm with `params` or, if these are `None`, with its best parameters by the model. Returns `None` if
/// the algorithm does not support the case, its schedule has nodes in switches, or its allreduce does not give all
/// ranks the same bits.
///
/// # Errors
/// Returns the errors of [`plan`].
pub fn propose(
    kind: Kind,
    machine: &Machine,
    ranks: u32,
    elements: u64,
    algorithm: &str,
    params: Option<&Params>,
) -> Result<Option<Plan>, PlanError> {
    let request = request(kind, machine, ranks, elements, Operator::Sum);
    if let Some(params) = params {
        return planned(&request, algorithm, params);
    }
    match as_planned(&Problem::new(&request)?, algorithm, &Params::new(), true) {
        Err(e) if e.is_unsupported() => Ok(None),
        best => planned(&request, algorithm, &best?.params),
    }
}

fn planned(request: &Request, algorithm: &str, params: &Params) -> Result<Option<Plan>, PlanError> {
    let made = match plan_at(Problem::new(request)?, algorithm, params) {
        Err(e) if e.is_unsupported() => return Ok(None),
        made => made?,
    };
    let schedule = made.schedule()?;
    // Programs run on ranks, and a plan cannot make a library reduce in switches.
    let serves = schedule.check_ranks_only().is_ok()
        && (request.kind != Kind::Allreduce || verify::verify(schedule, Method::Auto).repeatable);
    Ok(serves.then_some(made))
}

/// Returns, for each count, the sorted names of the best `most` algorithms on any of the numbers of ranks. Each of
/// these algorithms can then be timed on each number of ranks.
///
/// # Errors
///
/// Returns the errors of [`plan`].
pub fn worthwhile(
    kind: Kind,
    machine: &Machine,
    counts: &[u64],
    ranks: &[u32],
    most: usize,
) -> Result<Vec<Vec<&'static str>>, PlanError> {
    let names = |&count: &u64| {
        let mut names = BTreeSet::new();
        for &n in ranks {
            let found = proposals(kind, machine, n, count, most, Operator::Sum)?;
            names.extend(found.iter().map(|plan| plan.best().algorithm.name()));
        }
        Ok(names.into_iter().collect())
    };
    counts.iter().map(names).collect()
}

/// The sizes, in bytes, from one power of two up to the next, exclusive. They share a plan.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SizeClass {
    pub first_bytes: u64,
    pub last_bytes: u64,
}

impl SizeClass {
    pub fn of(bytes: u64) -> Self {
        let first_bytes = bytes.checked_ilog2().map_or(0, |power| 1 << power);
        Self { first_bytes, last_bytes: (2 * u128::from(first_bytes)).saturating_sub(1).try_into().unwrap_or(u64::MAX) }
    }

    /// Plans the best algorithm by the model at the middle of the class; `None` if no algorithm serves. Only
    /// collectives with a root use `root`.
    ///
    /// # Errors
    /// Returns the errors of [`plan`].
    pub fn plan(
        self,
        kind: Kind,
        machine: &Machine,
        ranks: u32,
        operator: Operator,
        root: u32,
    ) -> Result<Option<Plan>, PlanError> {
        let middle = self.first_bytes.midpoint(self.last_bytes);
        let one = request(kind, machine, ranks, 1, operator);
        let elements = (middle / one.dtype.bytes()).max(1);
        let found = first(&Request { elements, root: Root::Rank(root.into()), ..one }, 1)?;
        Ok(found.into_iter().next())
    }
}
