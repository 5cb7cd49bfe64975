//! The kinds of machines for which plans are made, one file each, registered in [`TARGETS`].
//!
//! The set of kinds is open: code for one kind requests its type (`Machine::get`), and no `match` lists all kinds. Only
//! the times of other tools' programs (`workload/graph/`) distinguish networks from ranks. Each target has its own
//! model, and targets share only the type `Time`: a wafer computes times from cost terms, messages among ranks have
//! prices, and networks route messages. A lower bound reads its own type of part (`CostProblem::on`), and does not
//! apply to other kinds.

mod endpoint;
mod in_network;
mod network;
mod wafer;

use unisono_algorithms::{Info, Means};
use unisono_collective::Kind;
use unisono_lower::{File, Placement, VerifiedFile};
use unisono_machine::{Description, Machine, Shape};
use unisono_schedule::Schedule;

use crate::{Part, PlanError, Request, Run, RunError, RunOptions, Simulator, Target};

pub type Open = fn(&Request) -> Option<Result<Box<dyn Target>, PlanError>>;

/// Opens a part of a machine by the function `on`, if `M` describes the machine; `None` for a machine of another kind.
fn opened<M: Description, T: Target + 'static>(
    request: &Request,
    on: fn(&Request, &M) -> Result<T, PlanError>,
) -> Option<Result<Box<dyn Target>, PlanError>> {
    let machine = request.machine.get::<M>()?;
    Some(on(request, machine).map(|target| Box::new(target) as Box<dyn Target>))
}

/// Runs proved schedules together on one machine; all start at the same time.
pub type SimulateBeside = fn(&[VerifiedFile]) -> Result<Vec<Run>, RunError>;

/// A kind of machine for which plans are made.
pub struct TargetKind {
    /// The name of the kind in machine files.
    pub name: &'static str,
    /// The means of communication that parts of such machines offer.
    pub offers: &'static [Means],
    /// Algorithms that such machines cannot run, but whose times plans compute by a formula for comparison.
    pub compares: &'static [&'static str],
    /// Returns the baseline algorithm for speed-ups in a sweep of a collective.
    pub baseline: fn(Kind) -> &'static str,
    /// Opens the requested part of a machine; `None` for a machine of another kind.
    pub open: Open,
    /// Places a schedule from any source.
    pub place: fn(&Placing) -> Result<Option<Placement>, PlanError>,
    pub simulator: &'static Simulator,
    /// Runs a proved schedule with the simulator of the kind.
    pub simulate: fn(&VerifiedFile, &RunOptions) -> Result<Run, RunError>,
    /// Runs proved schedules together on one machine; `None` if the simulator runs only one schedule.
    pub simulate_beside: Option<SimulateBeside>,
    /// Returns the part on which a placed schedule runs.
    pub part: fn(&File) -> Result<Part, PlanError>,
}

/// A request to place a schedule on a machine.
pub struct Placing<'a> {
    pub schedule: &'a Schedule,
    pub machine: &'a Machine,
    pub part: &'a Part,
    /// The present placement of the schedule, if there is one.
    pub kept: Option<&'a Placement>,
    /// The machine of the present placement, if there is one.
    pub before: Option<&'a Machine>,
    /// The shape of the part on which the schedule is placed at present, on this or another machine.
    pub was: Option<Shape>,
}

impl Placing<'_> {
    fn ranks(&self) -> u32 {
        self.schedule.collective().ranks
    }

    fn shape(&self) -> Option<Shape> {
        if let Part::Shape(shape) = self.part { Some(*shape) } else { None }
    }

    fn refuse_places(&self) -> Result<(), PlanError> {
        let (machine, kind) = (self.machine.name().to_owned(), self.machine.kind());
        if let Part::Places(_) = self.part { Err(PlanError::NoPlaces { machine, kind }) } else { Ok(()) }
    }

    /// Refuses a schedule with nodes that are not ranks, because such nodes must be switches that reduce.
    fn refuse_switches(&self) -> Result<(), PlanError> {
        self.schedule.check_ranks_only().map_err(|found| PlanError::Switches {
            found,
            machine: self.machine.name().to_owned(),
            kind: self.machine.kind(),
        })
    }

    fn other_size(&self, count: u64, what: &'static str, found: u64, places: &'static str) -> PlanError {
        PlanError::OtherSize { count, what, found, places }
    }
}

/// Returns no placement. Refuses a list of places, a schedule with nodes that are not ranks, and a shape whose number
/// of ranks differs from the schedule's.
fn anywhere(placing: &Placing) -> Result<Option<Placement>, PlanError> {
    placing.refuse_places()?;
    placing.refuse_switches()?;
    let ranks = u64::from(placing.ranks());
    match placing.shape().map(|shape| shape.grid.count()) {
        Some(found) if found != ranks => Err(placing.other_size(ranks, "ranks", found, "ranks")),
        _ => Ok(None),
    }
}

/// Returns the machine of a file as the type of its kind. Only functions of a [`TargetKind`] may call this, because
/// their files are on machines of their kind.
fn machine_of<T: Description>(file: &File) -> &T {
    file.machine.as_ref().and_then(Machine::get).expect("the kind of the machine")
}

fn first_ranks(file: &File) -> Result<Part, PlanError> {
    Ok(Part::Shape(Shape::line(file.schedule.collective().ranks)))
}

pub fn kind_of(machine: &Machine) -> &'static TargetKind {
    TARGETS.iter().find(|kind| kind.name == machine.kind()).expect("every kind of machine has a target")
}

/// Checks that a machine offers a means of communication. `purpose` is the beginning of the reason in the error, such
/// as "tuning is for".
///
/// # Errors
/// Returns an error if the kind of machine does not offer the means.
pub fn require(machine: &Machine, needed: Means, purpose: &str) -> Result<(), PlanError> {
    let kind = kind_of(machine);
    if kind.offers.contains(&needed) {
        return Ok(());
    }
    Err(PlanError::NotOffered {
        machine: machine.name().to_owned(),
        kind: kind.name,
        offers: kind.offers.iter().map(|means| means.phrase()).collect::<Vec<_>>().join(" and "),
        purpose: purpose.to_owned(),
        needed: needed.phrase(),
    })
}

/// Places a schedule from any source on a part of a machine. If the part is the whole machine, a schedule that is
/// already on this machine keeps its places. Another schedule gets the part with the shape that it has on its own
/// machine, or the first places.
///
/// # Errors
/// Returns an error if the part does not exist or has another number of ranks, or the machine cannot run the schedule.
pub fn place(file: &File, machine: &Machine, part: &Part) -> Result<Option<Placement>, PlanError> {
    let before = file.machine.as_ref();
    let was = if let Some(Part::Shape(shape)) = part_of(file)? { Some(shape) } else { None };
    let (schedule, kept) = (&file.schedule, file.placement.as_ref());
    (kind_of(machine).place)(&Placing { schedule, machine, part, kept, before, was })
}

/// Returns the part of its machine on which a file's schedule runs; `None` if the file has no machine.
///
/// # Errors
/// Returns an error if the machine has an invalid topology.
pub fn part_of(file: &File) -> Result<Option<Part>, PlanError> {
    file.machine.as_ref().map(|machine| (kind_of(machine).part)(file)).transpose()
}

impl TargetKind {
    /// Returns true if plans for such machines may contain an algorithm.
    pub fn lists(&self, algorithm: &Info) -> bool {
        algorithm.needs.iter().any(|means| self.offers.contains(means)) || self.compares.contains(&algorithm.name)
    }
}

/// All kinds of machines, sorted by name.
pub const TARGETS: &[TargetKind] = &[endpoint::KIND, in_network::KIND, network::KIND, wafer::KIND];

pub use network::notes;
pub(crate) use network::{charges, prices, spread};
pub use wafer::measure_on_fabric;

/// Returns the error for a part that the kind of machine cannot have.
fn no_part(request: &Request, accepted: &'static str) -> PlanError {
    PlanError::Part { part: request.part.to_string(), machine: request.machine.name().to_owned(), accepted }
}

/// Refuses all models except the only model of the kind of machine.
fn only_model(own: &str, request: Option<&str>) -> Result<(), PlanError> {
    match request.filter(|&request| request != own) {
        Some(found) => Err(PlanError::Model { found: found.to_owned(), accepted: own.to_owned() }),
        None => Ok(()),
    }
}
