//! The time of a program's communication on a machine. Each distinct operation is priced once.
//!
//! Operations follow each other in the order of issue: none overlaps another operation or a kernel. A collective takes
//! the time that [`plan_best`] predicts for its best algorithm. The messages of one read are one schedule, which is
//! timed and simulated as such; ranks prove and execute the same one (`unisono_discover::DirectSchedule`). Parts of
//! unlike lengths of a collective are priced as equal parts of the largest length.

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

/// One distinct operation of a program, with the names and sizes of its task and buffer.
#[derive(Clone, PartialEq, Debug)]
pub struct MovedData {
    pub moved: Moved,
    pub task: String,
    pub buffer: String,
    pub element_bytes: u64,
    /// The number of ranks of the program.
    pub nodes: u32,
    /// The extra bytes that messages carry with each element, if only messages reduce the buffer because no library
    /// combines its elements.
    pub reduced_with: Option<u64>,
}

impl MovedData {
    /// Lists the operations that a discovery has found so far. `reduced` lists the buffers that only messages reduce,
    /// with the extra bytes of each element.
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

    /// Lists the operations among the memories of a process with devices. Memory 0 is the host's.
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

    /// Returns the name of the pattern, `point-to-point` if none was found.
    pub fn pattern(&self) -> &'static str {
        self.moved.what.pattern.map_or("point-to-point", Pattern::name)
    }

    /// Returns whether the operation consists of messages between pairs and is not a collective.
    pub fn is_messages(&self) -> bool {
        !self.moved.what.messages.is_empty()
    }

    fn reduces(&self) -> bool {
        self.moved.what.pattern.is_some_and(Pattern::reduces)
    }

    fn bytes(&self, of: Extremes) -> Vec<u64> {
        [of.least, of.most].map(|elements| elements.saturating_mul(self.element_bytes)).to_vec()
    }

    /// Returns the collective among the participants in the planner's terms: kind, elements, datatype and root.
    fn collective(&self) -> Result<(Kind, u64, Dtype, u64), PlanError> {
        let what = &self.moved.what;
        let (dtype, elements) = whole_elements(self.element_bytes, what.part.most);
        let root = what.root.map_or(0, |root| what.participants.iter().take_while(|&k| k < root).count() as u64);
        Ok((self.pattern().parse()?, elements, dtype, root))
    }

    pub fn message_bytes(&self) -> u64 {
        self.element_bytes + if self.reduces() { self.reduced_with.unwrap_or(0) } else { 0 }
    }

    /// Returns the messages that perform the operation; `None` if a plan or a library performs it. With `by_messages`,
    /// messages also perform reductions.
    fn direct(&self, by_messages: bool) -> Option<Direct> {
        let summed = self.reduces() && (by_messages || self.reduced_with.is_some());
        if self.moved.what.by_messages || summed { self.moved.what.direct() } else { None }
    }

    /// Builds the schedule of the messages among all nodes, with the expected contents of each output. Ranks prove and
    /// execute the same schedule.
    ///
    /// # Errors
    /// The operation is a collective that combines nothing, or the schedule is too large.
    pub fn schedule(&self) -> Result<DirectSchedule, PlanError> {
        let not_timed = |message| PlanError::NotTimed { algorithm: "messages".to_owned(), model: "messages", message };
        let direct = self.moved.what.direct().ok_or_else(|| not_timed("it combines nothing".to_owned()))?;
        DirectSchedule::new(&direct, self.nodes, self.message_bytes()).map_err(|e| not_timed(e.to_string()))
    }
}

/// One distinct operation with its price. The fields are the keys of the report.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PricedOperation {
    pub task: String,
    pub task_index: u32,
    pub buffer: String,
    /// The number of times that it occurs.
    pub count: u64,
    pub pattern: &'static str,
    pub ranks: u32,
    /// Intervals of ranks: the first and the last of each.
    pub participants: Vec<Vec<u32>>,
    pub root: Option<u32>,
    /// The least and the most bytes of one rank.
    pub gives: Vec<u64>,
    pub gets: Vec<u64>,
    pub bytes: u64,
    pub messages: Option<usize>,
    /// The name of the schedule of its messages, as in traces of runs.
    pub schedule: Option<String>,
    /// `largest` if unlike parts are priced as the largest, else `exact`.
    pub counts: &'static str,
    pub part_bytes: u64,
    /// `first` if the ranks are priced as the first ranks of the machine, else `own`.
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

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TaskTime {
    pub task: String,
    pub seconds: f64,
}

/// The time of a program's communication. The fields are the keys of the report.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ProgramTime {
    pub seconds: f64,
    pub model: &'static str,
    /// The times of tasks, in the order of the first operation of each name.
    pub tasks: Vec<TaskTime>,
    pub operations: Vec<PricedOperation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulated_seconds: Option<f64>,
    /// Sentences on the costs that the time leaves out and on its assumptions.
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

/// Operations with equal keys have equal prices.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Messages(u64, Direct),
    Collective { pattern: &'static str, elements: u64, dtype: Dtype, root: u64, ranks: Vec<(u32, u32)> },
}

/// Prices the operations of programs on a part of a machine. Equal operations are priced once.
pub struct Pricing {
    machine: Machine,
    part: Part,
    request: Option<String>,
    simulates: bool,
    target: Arc<dyn Target>,
    known: HashMap<Key, Price>,
}

impl Pricing {
    /// Takes the first `nodes` ranks of a machine, or the grid of `part` if it has as many ranks. A `model` of `None`
    /// chooses the machine's own. With `simulates`, every operation also runs on the machine's simulator.
    ///
    /// # Errors
    /// The ranks of the machine do not exchange messages, the machine is too small, `nodes` is 0, or the model is
    /// unknown.
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

    /// Prices all operations of a program. With `by_messages`, reductions too are messages between pairs, as in a
    /// program without a search for collectives.
    ///
    /// # Errors
    /// An operation that is too large, or whose simulation does not end well.
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

    /// Returns the part with these ranks, and whether they are at their own places in it.
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
        // The schedule spans all nodes.
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
