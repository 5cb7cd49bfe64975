//! The interface of a kind of machine to the planner: its parts, its model, and the timing and building of algorithms.

use std::{any::Any, sync::Arc};

use unisono_algorithms::{Algorithm, AlgorithmError, Case, Params, resolve};
use unisono_base::narrow;
use unisono_collective::Collective;
use unisono_cost::Time;
use unisono_lower::{File, Placed, Placement, Terms};
use unisono_machine::{Machine, Shape};
use unisono_schedule::Schedule;

use crate::{
    MemoryReport, Part, PhaseReport, Plan, PlanError, Prediction, TimeSource, Timed, candidates,
    targets::{TargetKind, kind_of},
};

/// Facts of a plan that only some kinds of machines have; `None` for other kinds.
#[derive(Default)]
pub struct Details {
    pub memory: Option<MemoryReport>,
    /// The cost terms of the best candidate.
    pub terms: Option<Terms>,
    pub phases: Option<Vec<PhaseReport>>,
    pub note: Option<String>,
}

/// The result of timing a candidate again by a finer model.
pub enum Refined {
    Finer(Time, TimeSource),
    /// The finer model agrees, or there is no finer model for the candidate.
    Agrees,
    /// The remaining steps are too few for the finer model.
    TooLarge,
}

/// Returns true if the indices of ranks or places are 0, 1, 2, and so on.
pub(crate) fn is_first(ranks: &[u32]) -> bool {
    ranks.iter().copied().eq(0..narrow(ranks.len()))
}

/// A part of a machine, prepared for planning any number of collectives.
pub trait Target: Send + Sync {
    /// Returns the machine as a machine file describes it.
    fn machine(&self) -> &Machine;

    /// Returns the number of ranks along each dimension.
    fn shape(&self) -> Vec<u32>;

    /// Returns the name of the model that ranks candidates.
    fn model(&self) -> &'static str;

    /// Returns the part in the form that lower bounds read. Each kind of machine has its own type in `unisono_cost`.
    fn part(&self) -> &dyn Any;

    fn case(&self, collective: Collective) -> Case<'_>;

    /// Returns the algorithm that a name stands for, which may be a composition, with all parameters that it uses.
    ///
    /// # Errors
    ///
    /// Returns an error for an unknown name or parameter, or a case that is not supported.
    fn resolve(
        &self,
        collective: Collective,
        name: &str,
        params: &Params,
    ) -> Result<(&'static dyn Algorithm, Params), AlgorithmError> {
        resolve(name, &self.case(collective), params)
    }

    /// Lists algorithms with parameters that are worth ranking and agree with `wanted`: all algorithms, or the
    /// algorithm named `only`. With `is_named`, lists also those that only a plan of a named algorithm tries.
    fn candidates(
        &self,
        collective: Collective,
        wanted: &Params,
        only: Option<&str>,
        is_named: bool,
    ) -> Vec<(&'static dyn Algorithm, Params)> {
        let is_among = |algorithm: &dyn Algorithm| only.is_none_or(|only| algorithm.name() == only);
        candidates::candidates_among(&self.case(collective), wanted, is_named, is_among)
    }

    /// Returns true if timing takes so long that the candidate is timed only if it is the only algorithm that the user
    /// names.
    fn is_slow(&self, _collective: Collective, _algorithm: &dyn Algorithm, _params: &Params) -> bool {
        false
    }

    /// Simulates the candidates near the best of `_timed`, which is sorted. If the model is a simulation, this is
    /// always done. Otherwise it is done only to check the choice of a best candidate (`_is_choice`). Returns true if
    /// this check left out candidates near the best.
    ///
    /// # Errors
    ///
    /// Returns an error if a candidate cannot be simulated for another reason than a limit.
    fn simulate_best(
        &self,
        _collective: Collective,
        _timed: &mut [Timed],
        _is_choice: bool,
    ) -> Result<bool, PlanError> {
        Ok(false)
    }

    /// Times a candidate by a finer model, if there is one. Subtracts the steps that this takes from the remaining
    /// steps `_left`.
    ///
    /// # Errors
    ///
    /// Returns an error if the schedule cannot be built or run.
    fn refined(&self, _collective: Collective, _best: &Timed, _left: &mut u128) -> Result<Refined, PlanError> {
        Ok(Refined::Agrees)
    }

    /// Returns true if the candidate's time is only an estimate, because the model is a simulation that did not run for
    /// the candidate. Such candidates are ranked last.
    fn is_estimated(&self, _timed: &Timed) -> bool {
        false
    }

    /// Simulates the schedule that `_file` builds, whose predicted time is given. Subtracts the steps of the simulation
    /// from the remaining steps `_left`. Returns `None` if too few steps remain, or if plans for emitted code are not
    /// simulated on this kind of machine.
    ///
    /// # Errors
    ///
    /// Returns an error if the schedule cannot be built, or its run cannot finish.
    fn simulated(
        &self,
        _predicted: Time,
        _left: &mut f64,
        _file: &dyn Fn() -> Result<File, PlanError>,
    ) -> Result<Option<Time>, PlanError> {
        Ok(None)
    }

    /// Returns the elementary steps that [`Target::time_within`] takes; [`Target::build`] takes as many again. 0 if
    /// they are not counted.
    fn steps(&self, _collective: Collective, _algorithm: &dyn Algorithm, _params: &Params) -> u128 {
        0
    }

    /// Returns a candidate with its time; `None` if the target finds early that it takes longer than `most`.
    ///
    /// # Errors
    /// Returns an error if the case is not supported, or the schedule is too large to build.
    fn time_within(
        &self,
        collective: Collective,
        algorithm: &'static dyn Algorithm,
        params: Params,
        most: Option<Time>,
    ) -> Result<Option<Timed>, PlanError>;

    /// Builds the schedule of a candidate with its placement.
    ///
    /// # Errors
    /// Returns an error if the schedule is too large for its tables.
    fn build(&self, collective: Collective, candidate: &Timed) -> Result<Placed, PlanError>;

    /// Returns the part that consists of the given ranks, ascending, and true if the ranks keep their places in the
    /// part. If the kind of machine cannot name this part, returns the part with the same number of first ranks.
    fn among(&self, ranks: &[u32]) -> (Part, bool) {
        (Part::Shape(Shape::line(narrow(ranks.len()))), is_first(ranks))
    }

    /// Returns two parts as targets of their own: the ranks of one node, and one rank of each node. `None` if ranks are
    /// not divided into nodes or there is only one.
    fn levels(&self) -> Option<(Arc<dyn Target>, Arc<dyn Target>)> {
        None
    }

    /// Returns the facts of a plan beyond its time.
    ///
    /// # Errors
    /// Returns an error if the schedule cannot be built.
    fn details(&self, plan: &Plan) -> Result<Details, PlanError>;

    /// Predicts the time of any schedule by the model.
    ///
    /// # Errors
    /// Returns an error if the schedule is wrong, or the machine has no model of schedules.
    fn predict(&self, _schedule: &Schedule, _placement: Option<&Placement>) -> Result<Prediction, PlanError> {
        let (machine, kind) = (self.machine().name().to_owned(), self.machine().kind().to_owned());
        Err(PlanError::NoPrediction { machine, kind })
    }
}

impl dyn Target + '_ {
    pub fn ranks(&self) -> u32 {
        self.shape().iter().product()
    }

    pub(crate) fn kind(&self) -> &'static TargetKind {
        kind_of(self.machine())
    }

    /// Returns true if the machine's simulator can run schedules of an algorithm. Other candidates are ranked last.
    pub fn simulates(&self, algorithm: &dyn Algorithm) -> bool {
        !self.kind().compares.contains(&algorithm.name())
    }
}
