//! The time of a program's communication on a machine. Each distinct operation is priced once.
//!
//! Operations run in the order in which the program issues them, without overlap with other operations or kernels. A
//! collective takes the time that [`plan_best`] predicts for its best algorithm. The messages of one read of a buffer
//! form one schedule, which is timed. Ranks prove and execute the same schedule (`unisono_discover::DirectSchedule`). A
//! collective with parts of unequal lengths is priced as if all parts had the largest length.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use serde::Serialize;
use unisono_algorithms::{Means, Params};
use unisono_collective::{Dtype, Kind};
use unisono_discover::{Devices, Direct, DirectSchedule, Discovery, Extremes, Moved, Pattern, whole_elements};
use unisono_lower::{File, VerifiedFile};
use unisono_machine::{Machine, Shape};
use unisono_schedule::verify::{Expected, Method};

use crate::{
    BoundReport, Part, PlanError, Problem, Request, Root, RunError, RunOptions, Target, place, plan_best, predict,
    report::map,
    simulate,
    targets::{kind_of, require},
};

/// One distinct operation of a program, with its task and its buffer.
#[derive(Clone, PartialEq, Debug)]
pub struct MovedData {
    pub moved: Moved,
    pub task: String,
    pub buffer: String,
    pub element_bytes: u64,
    /// The number of ranks of the program.
    pub nodes: u32,
    /// The extra bytes that messages carry with each element, if only messages reduce the buffer because no collective
    /// of a library combines its elements. `None` for other buffers.
    pub reduced_with: Option<u64>,
}

impl MovedData {
    /// Returns the operations that a discovery has found so far. `reduced` maps each buffer that only messages reduce
    /// to the extra bytes of its elements.
    pub fn all(discovery: &Discovery, reduced: &HashMap<u32, u64>) -> Vec<Self> {
        let buffers: Vec<_> = discovery.buffers().collect();
        let named = |moved: Moved| {
            let (task, buffer) = (discovery.task_name(moved.before).to_owned(), buffers[moved.buffer.index()]);
            let (name, element_bytes) = (buffer.name.clone(), buffer.element_bytes);
            let reduced_with = reduced.get(&moved.buffer.0).copied();
            Self { moved, task, buffer: name, element_bytes, nodes: discovery.options().nodes, reduced_with }
        };
        discovery.moved().into_iter().map(named).collect()
    }

    /// Returns the operations among the memories of a process with devices. Memory 0 is the host's.
    pub fn on_devices(discovery: &Discovery, devices: &Devices) -> Vec<Self> {
        let buffers: Vec<_> = discovery.buffers().collect();
        let named = |moved: &Moved| {
            let (task, buffer) = (discovery.task_name(moved.before).to_owned(), buffers[moved.buffer.index()]);
            let (name, element_bytes) = (buffer.name.clone(), buffer.element_bytes);
            let nodes = devices.count() + 1;
            Self { moved: moved.clone(), task, buffer: name, element_bytes, nodes, reduced_with: None }
        };
        devices.rows().iter().map(|row| named(&row.moved)).collect()
    }

    /// Returns the name of the collective pattern; `point-to-point` if none was found.
    pub fn pattern(&self) -> &'static str {
        self.moved.what.pattern.map_or("point-to-point", Pattern::name)
    }

    /// Returns true if the operation consists of messages between pairs: it is not a collective, or it is too large for
    /// a collective of a library.
    pub fn is_messages(&self) -> bool {
        !self.moved.what.messages.is_empty()
    }

    fn reduces(&self) -> bool {
        self.moved.what.pattern.is_some_and(Pattern::reduces)
    }

    fn bytes(&self, of: Extremes) -> Vec<u64> {
        [of.least, of.most].map(|elements| elements.saturating_mul(self.element_bytes)).to_vec()
    }

    /// Returns the operation as a collective among its participants: kind, elements, datatype and root.
    fn collective(&self) -> Result<(Kind, u64, Dtype, u64), PlanError> {
        let what = &self.moved.what;
        let (dtype, elements) = whole_elements(self.element_bytes, what.part.most);
        let root = what.root.map_or(0, |root| what.participants.iter().take_while(|&k| k < root).count() as u64);
        Ok((self.pattern().parse()?, elements, dtype, root))
    }

    pub fn message_bytes(&self) -> u64 {
        self.element_bytes + if self.reduces() { self.reduced_with.unwrap_or(0) } else { 0 }
    }

    /// Returns the messages that perform the operation; `None` if a plan or a library performs it. Messages perform a
    /// reduction if `by_messages` is true, or if only messages reduce the buffer.
    fn direct(&self, by_messages: bool) -> Option<Direct> {
        let summed = self.reduces() && (by_messages || self.reduced_with.is_some());
        if self.moved.what.by_messages || summed { self.moved.what.direct() } else { None }
    }

    /// Builds the schedule of the messages among all nodes, with the expected contents of each output. Ranks prove and
    /// execute the same schedule.
    ///
    /// # Errors
    /// Returns an error if the operation is a collective that combines nothing, or the schedule is too large.
    pub fn schedule(&self) -> Result<DirectSchedule, PlanError> {
        let not_timed = |message| PlanError::NotTimed { algorithm: "messages".to_owned(), model: "messages", message };
        let direct = self.moved.what.direct().ok_or_else(|| not_timed("it combines nothing".to_owned()))?;
        DirectSchedule::new(&direct, self.nodes, self.message_bytes()).map_err(|e| not_timed(e.to_string()))
    }
}

/// One distinct operation with its price, whose fields are the keys of the report.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PricedOperation {
    pub task: String,
    pub task_index: u32,
    pub buffer: String,
    /// The number of times that the operation occurs.
    pub count: u64,
    pub pattern: &'static str,
    pub ranks: u32,
    /// Intervals of participants: the first and the last rank of each.
    pub participants: Vec<Vec<u32>>,
    pub root: Option<u32>,
    /// The least and the most bytes that a rank sends.
    pub gives: Vec<u64>,
    /// The least and the most bytes that a rank receives.
    pub gets: Vec<u64>,
    pub bytes: u64,
    pub messages: Option<usize>,
    /// The name of the schedule of the messages, as in traces of runs.
    pub schedule: Option<String>,
    /// `largest` if parts of unequal lengths are priced as if all had the largest length, otherwise `exact`.
    pub counts: &'static str,
    pub part_bytes: u64,
    /// `first` if the ranks are priced on the first places of the machine, `own` if on their own places.
    pub places: &'static str,
    pub algorithm: &'static str,
    pub params: BTreeMap<String, String>,
    pub seconds: f64,
    pub total_seconds: f64,
    pub lower_bound: Option<BoundReport>,
    pub ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulated_seconds: Option<f64>,
}

/// The time of the communication for one task.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TaskTime {
    pub task: String,
    pub seconds: f64,
}

/// The time of a program's communication, whose fields are the keys of the report.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ProgramTime {
    pub seconds: f64,
    pub model: &'static str,
    /// The time of each task, in the order of the tasks' first operations.
    pub tasks: Vec<TaskTime>,
    pub operations: Vec<PricedOperation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulated_seconds: Option<f64>,
    /// Sentences on costs that the time omits, and on assumptions.
    pub notes: Vec<String>,
}

impl ProgramTime {
    fn of(model: &'static str, operations: Vec<PricedOperation>, simulated: bool, machine: &Machine) -> Self {
        let mut tasks = Vec::<TaskTime>::new();
        for row in &operations {
            match tasks.iter_mut().find(|time| time.task == row.task) {
                Some(time) => time.seconds += row.total_seconds,
                None => tasks.push(TaskTime { task: row.task.clone(), seconds: row.total_seconds }),
            }
        }
        let all = |seconds: fn(&PricedOperation) -> f64| operations.iter().fold(0.0, |sum, row| sum + seconds(row));
        let seconds = all(|row| row.total_seconds);
        let simulated = simulated.then(|| all(|row| row.simulated_seconds.unwrap_or(0.0) * row.count as f64));
        let longest = operations.iter().flat_map(|row| row.gives.iter().chain(&row.gets)).max();
        let notes = machine.notes(longest.copied().unwrap_or(0), Some(model));
        Self { seconds, model, tasks, operations, simulated_seconds: simulated, notes }
    }
}

#[derive(Clone)]
struct Price {
    algorithm: &'static str,
    params: BTreeMap<String, String>,
    seconds: f64,
    simulated: Option<f64>,
    bound: Option<BoundReport>,
    ratio: Option<f64>,
}

/// The properties that determine the price of an operation.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Messages(u64, Direct),
    Collective { pattern: &'static str, elements: u64, dtype: Dtype, root: u64, ranks: Vec<(u32, u32)> },
}

/// Prices of the operations of programs on a part of a machine. Prices of equal operations are cached.
pub struct Pricing {
    machine: Machine,
    part: Part,
    request: Option<String>,
    simulates: bool,
    target: Arc<dyn Target>,
    known: HashMap<Key, Price>,
}

impl Pricing {
    /// Uses the first `nodes` ranks of a machine, or `part` if it is a grid of `nodes` ranks. If `model` is `None`, the
    /// machine's own model is used. If `simulates` is true, every operation also runs on the machine's simulator.
    ///
    /// # Errors
    ///
    /// Returns an error if the machine's ranks exchange no messages, the machine is too small, `nodes` is 0, or the
    /// model is unknown.
    pub fn new(
        machine: &Machine,
        part: &Part,
        nodes: u32,
        model: Option<&str>,
        simulates: bool,
    ) -> Result<Self, PlanError> {
        require(machine, Means::Messages, "programs of tasks are predicted on")?;
        if nodes == 0 {
            return Err(PlanError::NoNodes);
        }
        let request = if let Part::Shape(shape) = part { Some(*shape) } else { None };
        let grid = machine.shape(request)?.filter(|s| s.dims().len() > 1 && s.grid.count() == u64::from(nodes));
        let part = grid.map_or_else(|| Part::Shape(Shape::line(nodes)), |_| part.clone());
        let target = Problem::new(&Request { model, ..Request::new(Kind::Barrier, machine, part.clone(), 0) })?.target;
        let (machine, request) = (machine.clone(), model.map(str::to_owned));
        Ok(Self { machine, part, request, simulates, target, known: HashMap::new() })
    }

    /// Prices all operations of a program. If `by_messages` is true, messages between pairs also perform reductions, as
    /// in a program without a search for collectives.
    ///
    /// # Errors
    ///
    /// Returns an error if an operation is too large, or its simulation fails.
    pub fn predict(&mut self, moved: &[&MovedData], by_messages: bool) -> Result<ProgramTime, RunError> {
        let rows: Result<_, _> = moved.iter().map(|data| self.row(data, by_messages)).collect();
        Ok(ProgramTime::of(self.target.model(), rows?, self.simulates, self.target.machine()))
    }

    fn row(&mut self, data: &MovedData, by_messages: bool) -> Result<PricedOperation, RunError> {
        let (what, count) = (&data.moved.what, data.moved.count);
        let ranks: Vec<u32> = what.participants.iter().collect();
        let direct = data.direct(by_messages);
        let name = direct.as_ref().map(|direct| direct.name(data.message_bytes()));
        let exact = direct.is_some();
        let price = self.price(data, &ranks, direct)?;
        let own = exact || self.part_of(&ranks).1;
        Ok(PricedOperation {
            task: data.task.clone(),
            task_index: data.moved.before.0,
            buffer: data.buffer.clone(),
            count,
            pattern: data.pattern(),
            ranks: what.participants.len(),
            participants: what.participants.intervals().iter().map(|&(first, end)| vec![first, end - 1]).collect(),
            root: what.root,
            gives: data.bytes(what.gives),
            gets: data.bytes(what.gets),
            bytes: what.elements.saturating_mul(data.element_bytes),
            messages: data.is_messages().then_some(what.messages.len()),
            schedule: name,
            counts: if exact || what.part.alike() { "exact" } else { "largest" },
            part_bytes: what.part.most.saturating_mul(data.element_bytes),
            places: if own { "own" } else { "first" },
            algorithm: price.algorithm,
            params: price.params,
            seconds: price.seconds,
            total_seconds: price.seconds * count as f64,
            lower_bound: price.bound,
            ratio: price.ratio,
            simulated_seconds: price.simulated,
        })
    }

    /// Returns the part with these ranks, and true if each rank keeps its place in the part.
    fn part_of(&self, ranks: &[u32]) -> (Part, bool) {
        if ranks.len() == self.target.ranks() as usize { (self.part.clone(), true) } else { self.target.among(ranks) }
    }

    fn price(&mut self, data: &MovedData, ranks: &[u32], direct: Option<Direct>) -> Result<Price, RunError> {
        let what = &data.moved.what;
        if ranks.len() < 2 || what.part.most == 0 {
            let simulated = self.simulates.then_some(0.0);
            return Ok(Price { simulated, ..Price::new("nothing", 0.0) });
        }
        let by_messages = direct.is_some();
        let key = if let Some(direct) = direct {
            Key::Messages(data.message_bytes(), direct)
        } else {
            let (_, elements, dtype, root) = data.collective()?;
            let ranks = what.participants.intervals().to_vec();
            Key::Collective { pattern: data.pattern(), elements, dtype, root, ranks }
        };
        if let Some(price) = self.known.get(&key) {
            return Ok(price.clone());
        }
        let price = if by_messages { self.messages(data)? } else { self.collective(data, ranks)? };
        self.known.insert(key, price.clone());
        Ok(price)
    }

    fn messages(&self, data: &MovedData) -> Result<Price, RunError> {
        // The schedule contains all nodes, including nodes without messages.
        let DirectSchedule { schedule, expected } = data.schedule()?;
        let file = File { schedule, placement: None, machine: Some(self.machine.clone()), blocks: None };
        let file = File { placement: place(&file, &self.machine, &self.part)?, ..file };
        let seconds = predict(&file, self.request.as_deref())?.seconds;
        Ok(Price { simulated: self.simulated(&file, Some(&expected))?, ..Price::new("messages", seconds) })
    }

    fn collective(&self, data: &MovedData, ranks: &[u32]) -> Result<Price, RunError> {
        let (kind, elements, dtype, root) = data.collective()?;
        let (part, model) = (self.part_of(ranks).0, self.request.as_deref());
        let request =
            Request { root: Root::Rank(root), dtype, model, ..Request::new(kind, &self.machine, part, elements) };
        let plan = plan_best(Problem::new(&request)?, None, &Params::new())?;
        let best = plan.best();
        let simulated = match self.simulates {
            true => {
                let file = plan.file()?;
                self.simulated(&file, None)?
            }
            false => None,
        };
        Ok(Price {
            params: map(&best.params),
            simulated,
            bound: plan.bound(),
            ratio: plan.ratio(),
            ..Price::new(best.algorithm.name(), best.time.seconds)
        })
    }

    fn simulated(&self, file: &File, expected: Option<&[Vec<Expected>]>) -> Result<Option<f64>, RunError> {
        if !self.simulates {
            return Ok(None);
        }
        let proven = match expected {
            Some(expected) => VerifiedFile::of_messages(file, Method::Auto, expected),
            None => VerifiedFile::new(file, Method::Auto),
        };
        let proven = proven.map_err(|proof| PlanError::NotProved {
            algorithm: file.schedule.origin().to_owned(),
            message: proof.diagnostics.first().map_or_else(String::new, ToString::to_string),
        })?;
        let takes_model = kind_of(&self.machine).simulator.takes_model;
        let model = takes_model.then(|| self.target.model().to_owned());
        let options = RunOptions { model, ..RunOptions::default() };
        Ok(Some(simulate(&proven, &options)?.seconds))
    }
}

impl Price {
    fn new(algorithm: &'static str, seconds: f64) -> Self {
        Self { algorithm, params: BTreeMap::new(), seconds, simulated: None, bound: None, ratio: None }
    }
}
