//! The plan of a problem: its candidates, best first, and the schedule of the best.

use std::sync::{Arc, OnceLock};

use unisono_algorithms::{Means, Params};
use unisono_base::limits::counted;
use unisono_collective::Collective;
use unisono_cost::Time;
use unisono_lower::{File, Placed};
use unisono_schedule::{Schedule, stored::Stored};

use crate::{
    Bits, LibraryReport, PlanError, Problem, Timed,
    candidates::{Ranked, Ranking, named, rank},
    compositions,
    expressible::{self, Expressible, mark, suited},
    format::{self, Format},
    stored::store_best,
};

/// The model that simulates schedules on networks in packets, without thread blocks.
const PACKETS: &str = "packets";

pub struct Plan {
    pub problem: Problem,
    /// The timed candidates, best first; never empty. Candidates that the format cannot express come last.
    pub candidates: Vec<Timed>,
    /// The format that the plan is for.
    pub form: Option<Format>,
    /// For each candidate: if the format can express it.
    pub expressible: Vec<Expressible>,
    /// A library's own choice, if it was requested.
    pub library: Option<LibraryReport>,
    /// The property of bits that all candidates have, if one was requested.
    pub bits: Option<Bits>,
    /// The time of the fastest candidate with or without the property of bits, if a property but no algorithm was
    /// requested. For `size` and `ranks-count`, only candidates that a `.plan` file can hold are considered.
    pub fastest: Option<Time>,
    /// True if the choice of the best candidate was not checked: a finer model could not time a candidate within its
    /// limits, or not all candidates near the best were simulated.
    pub is_unchecked: bool,
    /// A sentence that names the candidates that were left out because their timing takes long.
    pub untimed: Option<String>,
    built: OnceLock<Result<Arc<File>, PlanError>>,
}

/// Ranks every candidate, or those of the named algorithm. The ranking chooses the parameters that are not given. If
/// the given parameters of a named algorithm are exactly those of a candidate, only this candidate is timed.
///
/// # Errors
/// Returns an error for unknown names or parameters, and for cases that are not supported.
pub fn plan(problem: Problem, algorithm: Option<&str>, params: &Params) -> Result<Plan, PlanError> {
    planned(problem, algorithm.map(Named::best), params, None, Ranked::All)
}

/// Times an algorithm with the given parameters, and its own defaults for the others.
///
/// # Errors
/// Returns the errors of [`plan`].
pub fn plan_at(problem: Problem, algorithm: &str, params: &Params) -> Result<Plan, PlanError> {
    planned(problem, Some(Named { algorithm, at_defaults: true }), params, None, Ranked::Best)
}

/// Plans like [`plan`], for callers that need only the best candidate. The timing of a candidate stops when the
/// candidate is known to be slower than the best so far. The plan does not list such candidates.
///
/// # Errors
///
/// Returns the errors of [`plan`].
pub fn plan_best(problem: Problem, algorithm: Option<&str>, params: &Params) -> Result<Plan, PlanError> {
    planned(problem, algorithm.map(Named::best), params, None, Ranked::Best)
}

/// An algorithm that a user names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named<'a> {
    pub algorithm: &'a str,
    /// True if parameters that are not given have the algorithm's default values. If false, the ranking chooses the
    /// values.
    pub at_defaults: bool,
}

impl<'a> Named<'a> {
    fn best(algorithm: &'a str) -> Self {
        Self { algorithm, at_defaults: false }
    }
}

/// Ranks candidates for a format, and chooses the best candidate that the format can express. If the format is code,
/// candidates are adapted to it first.
///
/// # Errors
///
/// Returns the errors of [`plan`], or an error if the format can express no candidate.
pub fn plan_for(
    problem: Problem,
    algorithm: Option<&str>,
    params: &Params,
    form: Option<Format>,
) -> Result<Plan, PlanError> {
    planned(problem, algorithm.map(Named::best), params, form, Ranked::All)
}

/// Plans like [`plan_for`]; the plan contains the candidates that `ranked` requires.
pub(crate) fn planned(
    problem: Problem,
    algorithm: Option<Named>,
    params: &Params,
    form: Option<Format>,
    ranked: Ranked,
) -> Result<Plan, PlanError> {
    let emitter = form.as_ref().and_then(Format::emitter);
    if let Some(emitter) = emitter
        && unisono_gpu::named(emitter.name()).is_some()
        && problem.target.model() == PACKETS
    {
        let accepted =
            format!("links and data-sheet for {}, whose files are timed by their thread blocks", emitter.name());
        return Err(PlanError::Model { found: PACKETS.to_owned(), accepted });
    }
    if emitter.is_some() {
        check_counted(&problem.collective)?;
    }
    let Ranking { timed: candidates, is_unchecked, untimed } =
        timed(&problem, algorithm, params, form.as_ref(), ranked)?;
    let (candidates, expressible) = match &form {
        Some(Format::Code(emitter)) => mark(&problem, *emitter, candidates)?,
        Some(Format::Rules { tuning, library }) => format::mark(&problem, tuning, library.as_ref(), candidates)?,
        Some(Format::Preload) => format::mark_for_mpi(&problem, candidates)?,
        None => {
            let unmarked = vec![None; candidates.len()];
            (candidates, unmarked)
        }
    };
    let (library, bits, fastest, built) = (None, None, None, OnceLock::new());
    Ok(Plan { problem, candidates, form, expressible, library, bits, fastest, is_unchecked, untimed, built })
}

/// Times the candidates with the parameters of a format, whether it can express them or not.
///
/// # Errors
/// Returns the errors of [`plan`].
pub(crate) fn timed(
    problem: &Problem,
    algorithm: Option<Named>,
    params: &Params,
    form: Option<&Format>,
    ranked: Ranked,
) -> Result<Ranking, PlanError> {
    let (target, c) = (&problem.target, problem.collective);
    match algorithm {
        Some(Named { algorithm: name, at_defaults }) => {
            // The default algorithms of the parts may not support the case.
            if name == compositions::NAME
                && params.is_empty()
                && !at_defaults
                && let Ok(found) = rank(problem, params, form, ranked, Some(name))
            {
                return Ok(found);
            }
            let (algorithm, chosen) = target.resolve(c, name, params)?;
            // A name that stands for a composition sets some parameters of the composition, such as `chain` for `x-y`
            // with chains.
            let wanted = if algorithm.name() == name { params } else { &chosen };
            let is_given = at_defaults || algorithm.is_whole(wanted);
            let listed = if is_given { Vec::new() } else { target.candidates(c, wanted, Some(algorithm.name()), true) };
            let is_listed = !params.is_empty() && listed.iter().any(|(_, listed)| listed == wanted);
            if !is_listed && listed.iter().any(|(_, listed)| !target.is_slow(c, algorithm, listed)) {
                rank(problem, wanted, form, ranked, Some(algorithm.name()))
            } else {
                let chosen = suited(form.map_or(&[], Format::params), &target.case(c), algorithm, chosen);
                named(problem, algorithm, &chosen)
            }
        }
        None => rank(problem, params, form, ranked, None),
    }
}

/// Refuses a collective counted in units of several elements, because a schedule counts single elements.
fn check_counted(c: &Collective) -> Result<(), PlanError> {
    let most = c.most_elements();
    if c.unit == 1 { Ok(()) } else { Err(PlanError::NoSchedule { kind: c.kind.name(), count: c.count(), most }) }
}

impl Plan {
    pub fn best(&self) -> &Timed {
        &self.candidates[0]
    }

    /// Returns the schedule of the best candidate with its placement and machine, built on the first call.
    ///
    /// # Errors
    /// Returns an error if the schedule is too large for its tables.
    pub fn built(&self) -> Result<&Arc<File>, PlanError> {
        let build = || {
            let (mut schedule, placement) = match self.form.as_ref().and_then(Format::emitter) {
                None => {
                    let Placed { schedule, placement } =
                        self.problem.target.build(self.problem.collective, self.best())?;
                    (schedule, placement)
                }
                Some(emitter) => {
                    let File { schedule, placement, .. } = expressible::built(&self.problem, emitter, self.best())?;
                    (schedule, placement)
                }
            };
            schedule.set_origin(&format!("{} {}", self.best().algorithm.name(), self.best().params));
            let machine = Some(self.problem.target.machine().clone());
            Ok(Arc::new(File { schedule, placement, machine, blocks: None }))
        };
        // The limit on steps counts the build separately from the timing: `time_and_spare` times a candidate only if
        // the limit admits its steps twice, once for timing and once for the build.
        self.built.get_or_init(|| counted(build)).as_ref().map_err(Clone::clone)
    }

    /// Returns the schedule of the best candidate, without its placement.
    ///
    /// # Errors
    /// Returns the errors of [`Plan::built`].
    pub fn schedule(&self) -> Result<&Schedule, PlanError> {
        Ok(&self.built()?.schedule)
    }

    /// Returns [`Plan::built`] for a run, which requires single elements.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Plan::built`], or an error if the plan counts in units of several elements.
    pub fn file(&self) -> Result<Arc<File>, PlanError> {
        check_counted(&self.problem.collective)?;
        self.built().cloned()
    }

    /// Returns the schedule as programs for MPI.
    ///
    /// # Errors
    /// Returns an error if the machine runs no MPI programs, message passing cannot run the schedule, or it is too
    /// large.
    pub fn stored(&self) -> Result<Stored, PlanError> {
        check_counted(&self.problem.collective)?;
        let target = &self.problem.target;
        let kind = target.kind();
        if !kind.offers.contains(&Means::Messages) {
            return Err(PlanError::NotForMpi { machine: target.machine().name().to_owned(), kind: kind.name });
        }
        store_best(&target.case(self.problem.collective), self.best(), || self.schedule())
    }
}
