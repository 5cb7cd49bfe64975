//! The interface of a kind of machine to the planner: its parts, its model, the timing and building of algorithms.

use std::any::Any;

use unisono_algorithms::{Algorithm, AlgorithmError, Case, Params, find, resolve};
use unisono_base::narrow;
use unisono_collective::{Collective, Kind};
use unisono_cost::{Time, endpoint::Prices};
use unisono_emit::tuning::Spread;
use unisono_lower::{File, Placed, Placement, Terms};
use unisono_machine::{Machine, Shape};
use unisono_schedule::Schedule;

use crate::{
    BoundCertificate, MemoryReport, Part, PhaseReport, Plan, PlanError, Prediction, TimeSource, Timed, candidates,
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

/// Returns whether these are the first ranks, or places, in order.
pub(crate) fn is_first(ranks: &[u32]) -> bool {
    ranks.iter().copied().eq(0..narrow(ranks.len()))
}

/// A part of a machine, which serves any number of collectives.
pub trait Target: Send + Sync {
    /// Returns the machine as a machine file describes it.
    fn machine(&self) -> Machine;

    fn machine_name(&self) -> &str;

    /// Returns the number of ranks along each dimension.
    fn shape(&self) -> Vec<u32>;

    fn ranks(&self) -> u32;

    /// Returns the name of the model that ranks candidates.
    fn model(&self) -> &'static str;

    /// Returns how the ranks are spread over boxes of GPUs; `None` if the machine states no boxes.
    fn spread(&self, _collective: &Collective) -> Option<Spread> {
        None
    }

    /// Returns the rank at a row and a column.
    ///
    /// # Errors
    /// The place is off the grid, or the machine has no grid.
    fn root_at(&self, row: u64, col: u64) -> Result<u64, PlanError> {
        Err(PlanError::NoGrid { row, col, machine: self.machine_name().to_owned() })
    }

    /// Returns the view that lower bounds read; each kind of machine has its own type in `unisono_cost`.
    fn part(&self) -> &dyn Any;

    /// Returns the prices of messages, by which programs are timed and simulated; `None` if the machine states no
    /// prices, or if messages share links.
    fn prices(&self) -> Option<&dyn Prices> {
        None
    }

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

    /// Lists algorithms with parameters that are worth ranking.
    fn candidates(&self, collective: Collective, wanted: &Params) -> Vec<(&'static dyn Algorithm, Params)> {
        candidates::candidates(&self.case(collective), wanted)
    }

    /// Returns whether timing takes so long that the candidate is timed only if the user names it alone.
    fn is_slow(&self, _collective: Collective, _algorithm: &dyn Algorithm, _params: &Params) -> bool {
        false
    }

    /// Returns whether the simulator of the machine runs schedules of an algorithm. Other candidates are ranked last.
    fn simulates(&self, _algorithm: &dyn Algorithm) -> bool {
        true
    }

    /// Simulates the candidates near the best one, if the model is a simulation, or if the choice of the best one
    /// (`is_choice`) needs it because the model errs.
    ///
    /// # Errors
    /// A candidate that cannot be simulated, for another reason than a limit.
    fn simulate_best(&self, _collective: Collective, _timed: &mut [Timed], _is_choice: bool) -> Result<(), PlanError> {
        Ok(())
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

    /// Returns the elementary steps of [`Target::time`]; [`Target::build`] takes as many again. 0 if they do not count.
    fn steps(&self, _collective: Collective, _algorithm: &dyn Algorithm, _params: &Params) -> u128 {
        0
    }

    /// Returns the time of an algorithm.
    ///
    /// # Errors
    /// A case that is not supported, a schedule that is too large to build.
    fn time(
        &self,
        collective: Collective,
        algorithm: &'static dyn Algorithm,
        params: Params,
    ) -> Result<Timed, PlanError>;

    /// Returns the time of an algorithm; `None` if the target finds early that it takes longer than `most`.
    ///
    /// # Errors
    /// As [`Target::time`].
    fn time_within(
        &self,
        collective: Collective,
        algorithm: &'static dyn Algorithm,
        params: Params,
        _most: Time,
    ) -> Result<Option<Timed>, PlanError> {
        self.time(collective, algorithm, params).map(Some)
    }

    /// Builds the schedule of a candidate with its placement.
    ///
    /// # Errors
    /// The schedule is larger than its tables can hold.
    fn build(&self, collective: Collective, candidate: &Timed) -> Result<Placed, PlanError>;

    /// Returns the certificate of a bound, by which the bound can be checked with the machine alone.
    ///
    /// # Errors
    /// The machine has no such bounds, or they do not apply to the collective.
    fn certificate(&self, collective: Collective) -> Result<BoundCertificate, PlanError> {
        let (kind, machine) = (collective.kind, self.machine_name());
        Err(PlanError::NoCertificate(format!(
            "no bound of {kind} on {machine} has a certificate; those on networks have"
        )))
    }

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
        let (machine, kind) = (self.machine_name().to_owned(), self.machine().kind().to_owned());
        Err(PlanError::NoPrediction { machine, kind })
    }

    /// Returns the algorithm that is the baseline of speed-ups in a sweep.
    fn baseline(&self, kind: Kind) -> &'static str;

    /// Returns the parameters of a named algorithm that a sweep tries if the user gives none.
    ///
    /// # Errors
    /// An unknown name.
    fn settings(&self, collective: Collective, name: &str) -> Result<Vec<Params>, AlgorithmError> {
        Ok(find(name)?.candidates(&self.case(collective)))
    }
}
