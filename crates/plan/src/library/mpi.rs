//! The choice of an MPI library, timed like the candidates of a plan.

use unisono_algorithms::{Means, Params};
use unisono_collective::Collective;

use super::LibraryReport;
use crate::{PlanError, Problem, candidates::named};

/// An MPI library that chooses by a table.
pub struct MpiLibrary {
    pub name: &'static str,
    pub title: &'static str,
    /// The source of the rules.
    pub version: &'static str,
    /// The condition under which the library uses the table.
    pub note: &'static str,
    /// Returns the library's name of the algorithm that it chooses; `None` for a collective that the table lacks.
    pub chosen: fn(&Collective) -> Option<&'static str>,
    /// Returns an algorithm of Unisono that is equivalent to the library's algorithm; `None` if there is none.
    pub run: fn(&Collective, &str) -> Option<Run>,
}

/// An algorithm of Unisono that is equivalent to a library's algorithm.
pub enum Run {
    /// An algorithm of the catalog, with parameters.
    Algorithm(&'static str, Params),
    /// A reduce to rank 0, followed by a broadcast.
    Reduced(Box<Run>, Box<Run>),
}

impl Run {
    pub fn of(algorithm: &'static str) -> Self {
        Self::Algorithm(algorithm, Params::new())
    }

    /// Adds a parameter to an algorithm of the catalog; [`Run::Reduced`] gets none.
    pub fn with(self, key: &str, value: impl ToString) -> Self {
        match self {
            Self::Algorithm(name, params) => Self::Algorithm(name, params.with(key, value)),
            other => other,
        }
    }

    /// Returns the time of the algorithm.
    ///
    /// # Errors
    /// Returns an error if the algorithm does not support the problem.
    pub fn seconds(&self, problem: &Problem) -> Result<f64, PlanError> {
        let c = problem.collective;
        let of = |kind| Problem { collective: Collective { kind, root: 0, ..c }, target: problem.target.clone() };
        let timed = match self {
            Self::Algorithm(name, params) => {
                let (algorithm, params) = problem.target.resolve(c, name, params)?;
                named(problem, algorithm, &params)?
            }
            Self::Reduced(reduce, broadcast) => {
                let after = broadcast.seconds(&of(unisono_collective::Kind::Broadcast))?;
                return Ok(reduce.seconds(&of(unisono_collective::Kind::Reduce))? + after);
            }
        };
        Ok(timed.timed[0].time.seconds)
    }
}

/// Returns the choice of a library by its table.
///
/// # Errors
/// Returns an error if the machine runs no MPI programs, or the table lacks the collective.
pub fn choice(library: &MpiLibrary, problem: &Problem) -> Result<LibraryReport, PlanError> {
    let (c, title) = (&problem.collective, library.title);
    let machine = problem.target.machine();
    if !problem.target.kind().offers.contains(&Means::Messages) {
        let (name, kind) = (machine.name(), machine.kind());
        let message = format!("{title} runs on ranks that exchange messages; {name} is of kind {kind}");
        return Err(PlanError::NoLibrary(message));
    }
    let algorithm =
        (library.chosen)(c).ok_or_else(|| PlanError::NoLibraryTime(format!("{title} has no rules for {}", c.kind)))?;
    let mut notes = vec![
        format!(
            "the choice is that of {}; the time is that of the same algorithm among the candidates",
            library.version
        ),
        library.note.to_owned(),
    ];
    let timed = match (library.run)(c, algorithm) {
        _ if c.is_local() => Ok(0.0),
        Some(run) => run.seconds(problem).map_err(|e| e.to_string()),
        None => Err(format!("no algorithm here does the same for a {}", c.kind)),
    };
    let seconds = timed.map_err(|reason| notes.push(format!("{algorithm} has no time: {reason}"))).ok();
    let (name, version) = (library.name, library.version);
    Ok(LibraryReport { name, version, algorithm, seconds, notes, ..LibraryReport::default() })
}
