//! Programs as JSON in the format that `unisono discover` reads.
//!
//! `{buffers: [{name, shape, host_initialized, element_bytes}], tasks: [{name, range, offset, granularity, split, op,
//! operations, on, accesses: [{buffer, mode, mapper: {kind, ...}}]}]}`; a list of one number may be written as a
//! number.

use serde::Deserialize;
use unisono_base::{BufferId, keyed, narrow};

use crate::{
    discovery::Discovery,
    error::DiscoverError,
    mapper::Mapper,
    space::{Box3, Point},
    split::{Geometry, Split},
    task::{Access, Buffer, MOST_EXTENT, Mode, sizes3},
    task_list::{ListedTask, Submitted, TaskList},
};

/// One number, or a list with one number for each dimension.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(untagged)]
pub enum Numbers {
    One(i64),
    Many(Vec<i64>),
}

impl Numbers {
    fn list(&self) -> &[i64] {
        match self {
            Self::One(n) => std::slice::from_ref(n),
            Self::Many(list) => list,
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    pub buffers: Vec<BufferJson>,
    pub tasks: Vec<TaskJson>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BufferJson {
    pub name: String,
    pub shape: Numbers,
    #[serde(default)]
    pub host_initialized: bool,
    #[serde(default = "eight")]
    pub element_bytes: u64,
}

fn eight() -> u64 {
    8
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskJson {
    pub name: Option<String>,
    pub range: Numbers,
    pub offset: Option<Numbers>,
    pub granularity: Option<Numbers>,
    #[serde(default)]
    pub split: SplitJson,
    #[serde(default)]
    pub accesses: Vec<AccessJson>,
    /// The operator of the task's reductions, which discovery does not use.
    #[serde(default)]
    pub op: ReductionJson,
    /// The number of arithmetic operations for a point of the range, which discovery does not use.
    #[serde(default)]
    pub operations: Option<f64>,
    /// The location of the task's kernel if processes have devices.
    #[serde(default)]
    pub on: PlaceJson,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlaceJson {
    /// The devices of each process, which share its part of the range.
    #[default]
    Devices,
    Host,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub enum SplitJson {
    #[default]
    #[serde(rename = "1d")]
    OneD,
    #[serde(rename = "2d")]
    TwoD,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReductionJson {
    #[default]
    Sum,
    Prod,
    Min,
    Max,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessJson {
    pub buffer: String,
    pub mode: Mode,
    #[serde(deserialize_with = "keyed::object")]
    pub mapper: MapperJson,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum MapperJson {
    OneToOne,
    All,
    Fixed { offset: Numbers, extent: Numbers },
    Slice { dim: usize },
    Neighborhood { halo: Numbers },
    Transposed { perm: Numbers },
    Row { index: i64 },
    RowChunk { index: i64 },
    Shift { offset: Numbers },
    Project { kernel_dim: usize },
    EvenSplit { granularity: Option<i64> },
}

impl Program {
    pub fn parse(text: &str) -> Result<Self, DiscoverError> {
        keyed::json(text.as_bytes()).map_err(|why| {
            DiscoverError::Input(format!("the program is not as expected: {}", keyed::with_nearest(&why.to_string())))
        })
    }

    /// Declares all buffers, submits all tasks, and settles the waiting ones ([`Discovery::flush`]).
    pub fn submit(&self, to: &mut Discovery) -> Result<(), DiscoverError> {
        self.list()?.submit(to)
    }

    /// Returns the buffers and tasks of the program.
    ///
    /// # Errors
    /// Returns an error if a buffer, a range, a number of operations or a mapper is invalid, two buffers have the same
    /// name, or a task accesses a buffer that is not declared.
    pub fn list(&self) -> Result<TaskList, DiscoverError> {
        let mut list = TaskList::default();
        for (k, buffer) in self.buffers.iter().enumerate() {
            if self.buffers[..k].iter().any(|b| b.name == buffer.name) {
                return Err(DiscoverError::Input(format!("two buffers are named '{}'", buffer.name)));
            }
            let shape = buffer.shape.list();
            list.buffers.push(Buffer::new(&buffer.name, shape, buffer.element_bytes, buffer.host_initialized)?);
        }
        for (k, task) in self.tasks.iter().enumerate() {
            let name = task.name.clone().unwrap_or_else(|| format!("task {k}"));
            ListedTask::check_operations(&name, task.operations)?;
            let accesses = task.accesses.iter().map(|access| self.access(&name, access)).collect::<Result<_, _>>()?;
            let submitted = Submitted::Task { geometry: task.geometry(&name)?, accesses };
            let on_host = task.on == PlaceJson::Host;
            list.tasks.push(ListedTask { name, operations: task.operations, on_host, submitted });
        }
        Ok(list)
    }

    fn access(&self, task: &str, access: &AccessJson) -> Result<Access, DiscoverError> {
        let Some(place) = self.buffers.iter().position(|b| b.name == access.buffer) else {
            let known = self.buffers.iter().map(|b| b.name.as_str()).collect::<Vec<_>>().join(", ");
            let what = format!("task '{task}' accesses buffer '{}'; declared are: {known}", access.buffer);
            return Err(DiscoverError::Input(what));
        };
        let dims = self.buffers[place].shape.list().len();
        let mapper = access.mapper.mapper(dims).map_err(|what| DiscoverError::Access {
            task: task.to_owned(),
            buffer: access.buffer.clone(),
            rank: None,
            what,
        })?;
        Ok(Access::new(BufferId::new(place), access.mode, mapper))
    }
}

impl TaskJson {
    fn geometry(&self, name: &str) -> Result<Geometry, DiscoverError> {
        let range = self.range.list();
        sizes3(&format!("task '{name}': range"), range, 1)?;
        let like = |what: &str, given: &Option<Numbers>, missing: i64, least: i64| {
            let mut full = [missing; 3];
            if let Some(given) = given {
                let list = given.list();
                // A single granularity is that of the first dimension, because every split divides the first dimension.
                let is_first = what == "granularity" && matches!(given, Numbers::One(_));
                if list.len() != range.len() && !is_first {
                    let (have, want) = (list.len(), range.len());
                    return Err(DiscoverError::Input(format!(
                        "task '{name}': {what} has {have} dimensions; the range has {want}"
                    )));
                }
                full = sizes3(&format!("task '{name}': {what}"), list, least)?;
                full[list.len()..].fill(missing);
            }
            Ok(full)
        };
        let granularity = like("granularity", &self.granularity, 1, 1)?;
        let offset = like("offset", &self.offset, 0, 1 - MOST_EXTENT)?;
        let split = match self.split {
            SplitJson::OneD => Split::OneD,
            SplitJson::TwoD => Split::TwoD,
        };
        Ok(Geometry { offset, ..Geometry::of(range).with_granularity(granularity).with_split(split) })
    }
}

impl MapperJson {
    fn mapper(&self, dims: usize) -> Result<Mapper, String> {
        let point = |what: &str, numbers: &Numbers, missing: i64| -> Result<Point, String> {
            let list = numbers.list();
            if list.len() != dims {
                return Err(format!("mapper {what} has {} numbers; the buffer has {dims} dimensions", list.len()));
            }
            if let Some(wrong) = list.iter().find(|n| n.unsigned_abs() >= MOST_EXTENT.unsigned_abs()) {
                return Err(format!("mapper {what} has {wrong}; accepted are numbers below {MOST_EXTENT}"));
            }
            let mut full = [missing; 3];
            full[..dims].copy_from_slice(list);
            Ok(full)
        };
        Ok(match self {
            Self::OneToOne => Mapper::OneToOne,
            Self::All => Mapper::All,
            Self::Fixed { offset, extent } => {
                let (min, extent) = (point("fixed: offset", offset, 0)?, point("fixed: extent", extent, 1)?);
                if let Some(wrong) = extent.iter().find(|&&n| n < 0) {
                    return Err(format!("mapper fixed has an extent of {wrong}; accepted are 0 and more"));
                }
                Mapper::Fixed(Box3::new(min, std::array::from_fn(|d| min[d].saturating_add(extent[d]))))
            }
            Self::Slice { dim } => Mapper::Slice(*dim),
            Self::Neighborhood { halo } => Mapper::Neighborhood(point("neighborhood: halo", halo, 0)?),
            Self::Transposed { perm } => {
                let perm = point("transposed: perm", perm, 0)?;
                if let Some(wrong) = perm.iter().find(|&&d| !(0..3).contains(&d)) {
                    return Err(format!("mapper transposed names dimension {wrong}; the buffer has 0 to {}", dims - 1));
                }
                Mapper::Transposed(perm.map(narrow))
            }
            Self::Row { index } => Mapper::Row(*index),
            Self::RowChunk { index } => Mapper::RowChunk(*index),
            Self::Shift { offset } => Mapper::Shift(point("shift: offset", offset, 0)?),
            Self::Project { kernel_dim } => Mapper::Project(*kernel_dim),
            Self::EvenSplit { granularity } => Mapper::EvenSplit(granularity.unwrap_or(1)),
        })
    }
}
