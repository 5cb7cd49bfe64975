//! The unit of a kind of machine: its parts, its model, and how it times and builds algorithms.

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

/// Facts of a plan that only some kinds of machines have; `None` where the kind has no such fact.
#[derive(Default)]
pub struct Details {
    pub memory: Option<MemoryReport>,
    /// Cost terms of the best candidate.
    pub terms: Option<Terms>,
    pub phases: Option<Vec<PhaseReport>>,
    pub note: Option<String>,
}

/// Returns whether these are the first ranks, or places, in their order.
pub(crate) fn is_first(ranks: &[u32]) -> bool {
    ranks.iter().copied().eq(0..narrow(ranks.len()))
}

/// A part of a machine of one kind, ready for one collective after another.
pub trait Target: Send + Sync {
    /// The machine as a file describes it.
    fn machine(&self) -> Machine;

    fn machine_name(&self) -> &str;

    /// Ranks along each dimension.
    fn shape(&self) -> Vec<u32>;

    fn ranks(&self) -> u32;

    /// The name of the model that ranks candidates.
    fn model(&self) -> &'static str;

    /// Returns how the ranks are spread over boxes of GPUs; `None` where the machine states no boxes.
    fn spread(&self, _collective: &Collective) -> Option<Spread> {
        None
    }

    /// The rank at a row and a column.
    ///
    /// # Errors
    /// A place off the grid; a machine without one.
    fn root_at(&self, row: u64, col: u64) -> Result<u64, PlanError> {
        Err(PlanError::NoGrid { row, col, machine: self.machine_name().to_owned() })
    }

    /// Returns the view that lower bounds read; each kind of machine has its own type in `unisono_cost`.
    fn part(&self) -> &dyn Any;

    /// Returns the prices of messages, by which programs are timed and simulated; `None` where no prices are stated,
    /// or where messages share links.
    fn prices(&self) -> Option<&dyn Prices> {
        None
    }

    /// The view of a problem that algorithms take.
    fn case(&self, collective: Collective) -> Case<'_>;

    /// Returns the algorithm and parameters that a name stands for.
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

    /// Algorithms with parameters that are worth ranking.
    fn candidates(&self, collective: Collective, wanted: &Params) -> Vec<(&'static dyn Algorithm, Params)> {
        candidates::candidates(&self.case(collective), wanted)
    }

    /// Whether a time takes long, so that the candidate is timed only where it is named alone.
    fn is_slow(&self, _collective: Collective, _algorithm: &dyn Algorithm, _params: &Params) -> bool {
        false
    }

    /// Returns whether the simulator of the machine runs schedules of an algorithm. Other candidates are ranked last.
    fn simulates(&self, _algorithm: &dyn Algorithm) -> bool {
        true
    }

    /// Times the candidates that are worth it by a simulation, if the model is one that simulates.
    ///
    /// # Errors
    /// A candidate that cannot be simulated, for another reason than a limit.
    fn simulate_best(&self, _collective: Collective, _timed: &mut [Timed]) -> Result<(), PlanError> {
        Ok(())
    }

    /// A finer time of the best candidate, and where it comes from; takes its steps from those that are left. `None`
    /// where the target has no finer model, that model agrees with the time, or the steps that are left do not suffice.
    ///
    /// # Errors
    /// The schedule cannot be built or run.
    fn refined(
        &self,
        _collective: Collective,
        _best: &Timed,
        _left: &mut u128,
    ) -> Result<Option<(Time, TimeSource)>, PlanError> {
        Ok(None)
    }

    /// Returns whether the model simulates, and did not simulate this candidate. Such candidates are ranked after the
    /// others.
    fn is_estimated(&self, _timed: &Timed) -> bool {
        false
    }

    /// Simulates the schedule that `file` builds, which is predicted to take `predicted`, and takes the steps from
    /// those that are left. `None` where these do not suffice, and where plans for a format of emitted code are not
    /// simulated.
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

    /// Elementary steps of [`Target::time`], and of [`Target::build`] once more; 0 where they do not count.
    fn steps(&self, _collective: Collective, _algorithm: &dyn Algorithm, _params: &Params) -> u128 {
        0
    }

    /// The time of an algorithm.
    ///
    /// # Errors
    /// A case that is not supported, a schedule that is too large to build.
    fn time(
        &self,
        collective: Collective,
        algorithm: &'static dyn Algorithm,
        params: Params,
    ) -> Result<Timed, PlanError>;

    /// The time of an algorithm; `None` if it takes longer than `most`, as far as that is found sooner than the time.
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

    /// The schedule of a candidate, where it runs.
    ///
    /// # Errors
    /// It is larger than its tables can hold.
    fn build(&self, collective: Collective, candidate: &Timed) -> Result<Placed, PlanError>;

    /// The certificate of a bound, from which the bound can be checked with the machine alone.
    ///
    /// # Errors
    /// The machine has no such bounds, or they do not apply to the collective.
    fn certificate(&self, collective: Collective) -> Result<BoundCertificate, PlanError> {
        let (kind, machine) = (collective.kind, self.machine_name());
        Err(PlanError::NoCertificate(format!(
            "no bound of {kind} on {machine} has a certificate; those on networks have"
        )))
    }

    /// Returns the part that some ranks of this part make, ascending, and whether these ranks are at their own places
    /// in it. Ranks that cannot be named apart are taken to be the first ones.
    fn among(&self, ranks: &[u32]) -> (Part, bool) {
        (Part::Shape(Shape::line(narrow(ranks.len()))), is_first(ranks))
    }

    /// Facts of a plan beyond its time.
    ///
    /// # Errors
    /// The schedule cannot be built.
    fn details(&self, plan: &Plan) -> Result<Details, PlanError>;

    /// The time of a schedule of any origin, by the model.
    ///
    /// # Errors
    /// The schedule is wrong, or the machine has no model of schedules.
    fn predict(&self, _schedule: &Schedule, _placement: Option<&Placement>) -> Result<Prediction, PlanError> {
        let (machine, kind) = (self.machine_name().to_owned(), self.machine().kind().to_owned());
        Err(PlanError::NoPrediction { machine, kind })
    }

    /// The algorithm that speed-ups of a sweep are measured against.
    fn baseline(&self, kind: Kind) -> &'static str;

    /// Returns the parameters of a named algorithm that a sweep tries where the user gives none.
    ///
    /// # Errors
    /// An unknown name.
    fn settings(&self, collective: Collective, name: &str) -> Result<Vec<Params>, AlgorithmError> {
        Ok(find(name)?.candidates(&self.case(collective)))
    }
}
