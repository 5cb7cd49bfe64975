//! The interface of a kind of machine to the planner: its parts, its model, the timing and building of algorithms.

use std::any::Any;

use unisono_algorithms::{Algorithm, AlgorithmError, Case, Params, find, resolve};
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

/// Facts of a plan that only some kinds of machines have; `None` for the others.
#[derive(Default)]
pub struct Details {
    pub memory: Option<MemoryReport>,
    /// Cost terms of the best candidate.
    pub terms: Option<Terms>,
    pub phases: Option<Vec<PhaseReport>>,
    pub note: Option<String>,
}

/// The answer of a finer model to the time of a candidate.
pub enum Refined {
    Finer(Time, TimeSource),
    /// The finer model agrees, or there is none.
    Agrees,
    /// The steps that are left do not suffice.
    TooLarge,
}

/// Returns whether the numbers, of ranks or places, are 0, 1, 2, and so on.
pub(crate) fn is_first(ranks: &[u32]) -> bool {
    ranks.iter().copied().eq(0..narrow(ranks.len()))
}

/// A part of a machine, which serves any number of collectives.
pub trait Target: Send + Sync {
    /// Returns the machine as a machine file describes it.
    fn machine(&self) -> &Machine;

    /// Returns the number of ranks along each dimension.
    fn shape(&self) -> Vec<u32>;

    /// Returns the name of the model that ranks candidates.
    fn model(&self) -> &'static str;

    /// Returns the view that lower bounds read; each kind of machine has its own type in `unisono_cost`.
    fn part(&self) -> &dyn Any;

    fn case(&self, collective: Collective) -> Case<'_>;

    /// Returns the algorithm and parameters of a name.
    ///
    /// # Errors
    /// Unknown names or parameters, a case that is not supported.
    fn resolve(
        &self,
        collective: Collective,
        name: &str,
        params: &Params,
    ) -> Result<(&'static dyn Algorithm, Params), AlgorithmError> {
        resolve(name, &self.case(collective), params)
    }

    /// Lists algorithms with parameters that are worth ranking: all of them, or the one named `only`.
    fn candidates(
        &self,
        collective: Collective,
        wanted: &Params,
        only: Option<&str>,
    ) -> Vec<(&'static dyn Algorithm, Params)> {
        let is_among = |algorithm: &dyn Algorithm| only.is_none_or(|only| algorithm.name() == only);
        candidates::candidates_among(&self.case(collective), wanted, is_among)
    }

    /// Returns whether timing takes so long that the candidate is timed only if the user names it alone.
    fn is_slow(&self, _collective: Collective, _algorithm: &dyn Algorithm, _params: &Params) -> bool {
        false
    }

    /// Simulates the candidates near the best one, if the model is a simulation, or if the choice of the best one
    /// (`is_choice`) needs it because the model errs. Returns true if some near the best one were not simulated, so
    /// that the choice is not checked.
    ///
    /// # Errors
    /// A candidate that cannot be simulated, for another reason than a limit.
    fn simulate_best(
        &self,
        _collective: Collective,
        _timed: &mut [Timed],
        _is_choice: bool,
    ) -> Result<bool, PlanError> {
        Ok(false)
    }

    /// Times a candidate by a finer model, if there is one, and subtracts the steps from those that are left.
    ///
    /// # Errors
    /// The schedule cannot be built or run.
    fn refined(&self, _collective: Collective, _best: &Timed, _left: &mut u128) -> Result<Refined, PlanError> {
        Ok(Refined::Agrees)
    }

    /// Returns whether the model is a simulation that did not run for this candidate. Such candidates are ranked after
    /// the others.
    fn is_estimated(&self, _timed: &Timed) -> bool {
        false
    }

    /// Simulates the schedule that `file` builds, with the predicted time `predicted`, and subtracts its steps from
    /// those that are left. `None` if too few are left, or if the kind of machine does not simulate plans for emitted
    /// code.
    ///
    /// # Errors
    /// The schedule cannot be built, or its run cannot finish.
    fn simulated(
        &self,
        _predicted: Time,
        _left: &mut f64,
        _file: &dyn Fn() -> Result<File, PlanError>,
    ) -> Result<Option<Time>, PlanError> {
        Ok(None)
    }

    /// Returns the elementary steps of [`Target::time_within`]; [`Target::build`] takes as many again. 0 if they do not
    /// count.
    fn steps(&self, _collective: Collective, _algorithm: &dyn Algorithm, _params: &Params) -> u128 {
        0
    }

    /// Returns the time of an algorithm; `None` if the target finds early that it takes longer than `most`.
    ///
    /// # Errors
    /// A case that is not supported, a schedule that is too large to build.
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
    /// The schedule is larger than its tables can hold.
    fn build(&self, collective: Collective, candidate: &Timed) -> Result<Placed, PlanError>;

    /// Returns the part that consists of some ranks, in ascending order, and whether the ranks keep their places in it.
    /// If the kind of machine cannot name such a part, the part is the first ranks.
    fn among(&self, ranks: &[u32]) -> (Part, bool) {
        (Part::Shape(Shape::line(narrow(ranks.len()))), is_first(ranks))
    }

    /// Returns facts of a plan beyond its time.
    ///
    /// # Errors
    /// The schedule cannot be built.
    fn details(&self, plan: &Plan) -> Result<Details, PlanError>;

    /// Predicts the time of a schedule of any origin by the model.
    ///
    /// # Errors
    /// The schedule is wrong, or the machine has no model of schedules.
    fn predict(&self, _schedule: &Schedule, _placement: Option<&Placement>) -> Result<Prediction, PlanError> {
        let (machine, kind) = (self.machine().name().to_owned(), self.machine().kind().to_owned());
        Err(PlanError::NoPrediction { machine, kind })
    }

    /// Returns the parameters of a named algorithm that a sweep tries if the user gives none.
    ///
    /// # Errors
    /// An unknown name.
    fn settings(&self, collective: Collective, name: &str) -> Result<Vec<Params>, AlgorithmError> {
        Ok(find(name)?.candidates(&self.case(collective)))
    }
}

impl dyn Target + '_ {
    pub fn ranks(&self) -> u32 {
        self.shape().iter().product()
    }

    pub(crate) fn kind(&self) -> &'static TargetKind {
        kind_of(self.machine())
    }

    /// Returns whether the simulator of the machine runs schedules of an algorithm. Other candidates are ranked last.
    pub fn simulates(&self, algorithm: &dyn Algorithm) -> bool {
        !self.kind().compares.contains(&algorithm.name())
    }
}
