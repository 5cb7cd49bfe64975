//! The formats that plans are made for: code, tuning files of libraries, and the `.plan` file of MPI programs.

use unisono_algorithms::Means;
use unisono_collective::{Choice, DecisionTable, Kind, OperatorClass, Row};
use unisono_emit::EMITTERS;
use unisono_formats::Emitter;
use unisono_tables::{LibraryTable, TUNINGS, Tuning};

use crate::{
    PlanError, Problem, Timed,
    expressible::{Expressible, FormatParams, reasons},
    targets::spread,
};

/// The format that a plan is for.
pub enum Format {
    /// Code: candidates that the target can express are built with the target's own parameters and placement.
    Code(&'static dyn Emitter),
    /// A tuning file, by which a library chooses among its own algorithms: the library must have the candidate's
    /// algorithm.
    Rules { tuning: &'static Tuning, library: Option<LibraryTable> },
    /// A `.plan` file, which this project's library for MPI programs runs: its schedules contain only ranks.
    Preload,
}

impl Format {
    /// The name of [`Format::Preload`].
    pub const PRELOAD: &'static str = "preload";

    /// Returns the format with a name. `library` holds the bytes of the MPI library's file (`libmpi.so`), or the
    /// library's table in JSON. Formats that need no table ignore `library`.
    ///
    /// # Errors
    ///
    /// Returns an error if the name is unknown, or the library's file has no table that the format needs.
    pub fn named(name: &str, library: Option<&[u8]>) -> Result<Self, PlanError> {
        if let Some(&emitter) = EMITTERS.iter().find(|e| e.name() == name) {
            return Ok(Self::Code(emitter));
        }
        if name == Self::PRELOAD {
            return Ok(Self::Preload);
        }
        let Some(&tuning) = TUNINGS.iter().find(|t| t.name == name) else {
            let names = EMITTERS.iter().map(|e| e.name()).chain(TUNINGS.iter().map(|t| t.name));
            let names = names.chain([Self::PRELOAD]);
            let accepted = names.collect::<Vec<_>>().join(", ");
            return Err(PlanError::Format { found: name.to_owned(), accepted });
        };
        let library = library.filter(|_| tuning.needs_table).map(LibraryTable::read).transpose();
        Ok(Self::Rules {
            tuning,
            library: library.map_err(|reason| PlanError::Library { format: tuning.name, reason })?,
        })
    }

    pub fn name(&self) -> &'static str {
        match self {
            Self::Code(emitter) => emitter.name(),
            Self::Rules { tuning, .. } => tuning.name,
            Self::Preload => Self::PRELOAD,
        }
    }

    /// Returns the format's values for parameters of algorithms that the user does not give.
    pub(crate) fn params(&self) -> &'static FormatParams {
        match self {
            Self::Code(emitter) => emitter.params(),
            Self::Rules { tuning, .. } => tuning.params,
            Self::Preload => &[],
        }
    }

    /// Returns the emitter, if the format is code.
    pub fn emitter(&self) -> Option<&'static dyn Emitter> {
        match self {
            Self::Code(emitter) => Some(*emitter),
            Self::Rules { .. } | Self::Preload => None,
        }
    }
}

/// Moves candidates that a tuning file cannot name behind all others, keeping their order, and marks all candidates.
///
/// # Errors
///
/// Returns an error if the machine runs no program of the library; or, with the reasons, if the file can name no
/// candidate.
pub(crate) fn mark(
    problem: &Problem,
    tuning: &Tuning,
    library: Option<&LibraryTable>,
    timed: Vec<Timed>,
) -> Result<(Vec<Timed>, Vec<Expressible>), PlanError> {
    check_messages(problem, tuning.name)?;
    if let Some(reason) = (tuning.lacks)(problem.collective.kind) {
        return Err(PlanError::NotExpressible { reason });
    }
    sorted(timed, |candidate| names(problem, tuning, library, candidate))
}

/// Moves candidates that use switches behind all others. The schedules of a `.plan` file send messages between ranks
/// only. A schedule with more messages or steps than a file can hold is found only when the plan is stored.
///
/// # Errors
///
/// Returns an error if the machine runs no MPI programs, or all candidates reduce in switches.
pub(crate) fn mark_for_mpi(problem: &Problem, timed: Vec<Timed>) -> Result<(Vec<Timed>, Vec<Expressible>), PlanError> {
    check_messages(problem, Format::PRELOAD)?;
    sorted(timed, runs_on_mpi)
}

/// Returns the reason as an error if no `.plan` file can hold the schedule of a candidate.
pub(crate) fn runs_on_mpi(candidate: &Timed) -> Result<(), String> {
    let needs = candidate.algorithm.info().needs;
    if needs.contains(&Means::Messages) || needs.contains(&Means::Links) {
        return Ok(());
    }
    Err(format!("a .plan has schedules of ranks only, and {} uses switches that reduce", candidate.algorithm.name()))
}

/// Checks that the machine of a problem runs processes that exchange messages.
fn check_messages(problem: &Problem, format: &str) -> Result<(), PlanError> {
    let target = &problem.target;
    // The cores of switches that reduce send messages too, but they run no processes of a library.
    if target.kind().offers.contains(&Means::Messages) {
        return Ok(());
    }
    let machine = target.machine().name();
    let reason = format!("{format} is for processes that exchange messages, and {machine} runs none");
    Err(PlanError::NotExpressible { reason })
}

/// Moves candidates that `answer` refuses behind all others, keeping their order, and marks each candidate with its
/// answer.
fn sorted(
    timed: Vec<Timed>,
    answer: impl Fn(&Timed) -> Result<(), String>,
) -> Result<(Vec<Timed>, Vec<Expressible>), PlanError> {
    let marked = timed.into_iter().map(|candidate| (answer(&candidate), candidate));
    let (first, last): (Vec<_>, Vec<_>) = marked.partition(|(answer, _)| answer.is_ok());
    if first.is_empty() {
        let refused = last.iter().filter_map(|(answer, one)| Some((one.algorithm.name(), answer.as_ref().err()?)));
        let reason = reasons(refused).unwrap_or_default();
        return Err(PlanError::NotExpressible { reason });
    }
    Ok(first.into_iter().chain(last).map(|(answer, candidate)| (candidate, Some(answer))).unzip())
}

/// Returns the reason as an error if a tuning file cannot name a candidate at the size of the problem.
fn names(problem: &Problem, tuning: &Tuning, library: Option<&LibraryTable>, candidate: &Timed) -> Result<(), String> {
    let c = problem.collective;
    let skips = |spread| (tuning.skips)(c.kind, candidate.algorithm.name(), spread);
    if let Some(reason) = spread(problem).and_then(skips) {
        return Err(format!("{} cannot have it: {reason}", tuning.name));
    }
    let bytes = c.bytes();
    let class = match (c.kind.reduces() && c.kind != Kind::Barrier, c.operator.commutative()) {
        (false, _) => OperatorClass::None,
        (true, true) => OperatorClass::Commutative,
        (true, false) => OperatorClass::Ordered,
    };
    let params = candidate.params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let choice = Choice::Algorithm { name: candidate.algorithm.name().to_owned(), params };
    let named = format!("{choice}: ");
    let row =
        Row { kind: c.kind, ranks: c.ranks, per_node: None, class, first_bytes: bytes, last_bytes: bytes, choice };
    let table = DecisionTable::new(vec![row]).map_err(|e| e.to_string())?;
    // Reports name the candidate next to the reason, so the reason does not repeat the name.
    let bare = |reason: String| match reason.split_once(&named) {
        Some((_, bare)) => format!("{} cannot have this {} on {} ranks: {bare}", tuning.name, c.kind, c.ranks),
        None => reason,
    };
    let export = (tuning.write)(&table, library).map_err(|unsaid| bare(unsaid.to_string()))?;
    match export.left.first() {
        Some(left) if export.rows == 0 => Err(bare(left.clone())),
        _ => Ok(()),
    }
}
