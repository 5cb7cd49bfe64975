//! `Machine`: the description of a machine, and the part of the machine that is used.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use pyo3::{prelude::*, types::PyTuple};
use unisono_algorithms::Means;
use unisono_machine::{
    Machine as Description, PRESETS, Shape, Wafer,
    network::{DATA_SHEET, Network},
};
use unisono_plan::{Part, kind_of, require};

use crate::{
    convert,
    errors::{detached, input, to_python},
};

/// A machine and the part of it that is used. For a grid of PEs, the part is a shape `(n,)` or `(rows, columns)`.
#[pyclass(frozen, module = "unisono")]
pub struct Machine {
    description: Description,
    part: Part,
}

impl Machine {
    pub fn new(description: Description, shape: Option<Shape>) -> PyResult<Self> {
        Self::checked(description, shape.map_or(Part::All, Part::Shape))
    }

    fn checked(description: Description, part: Part) -> PyResult<Self> {
        part.check(&description).map_err(input)?;
        Ok(Self::of_part(description, part))
    }

    pub fn of_part(description: Description, part: Part) -> Self {
        Self { description, part }
    }

    pub fn description(&self) -> &Description {
        &self.description
    }

    pub fn wafer(&self) -> PyResult<&Wafer> {
        self.of("a wafer")
    }

    /// Returns the description, if it is of the kind `T`.
    ///
    /// # Errors
    /// Returns an error if the machine is of another kind.
    pub fn of<T: unisono_machine::Description>(&self, needed: &str) -> PyResult<&T> {
        let (name, kind) = (self.description.name(), self.description.kind());
        self.description.get().ok_or_else(|| input(format!("{name} is of kind {kind}; this needs {needed}")))
    }

    pub fn part(&self) -> &Part {
        &self.part
    }

    /// Checks that the whole machine is used. `what` names the purpose for the error.
    ///
    /// # Errors
    /// Returns an error if a part of the machine is selected.
    pub fn check_whole(&self, what: &str) -> PyResult<()> {
        if self.part.is_whole(&self.description).map_err(input)? {
            return Ok(());
        }
        Err(input(format!("{what} the whole of {}, and {} is asked for; ask for no part", self.name(), self.part)))
    }
}

/// The description as TOML text, its name, the sides of a shape, and the participating nodes.
type Pickled = (String, String, Option<Vec<u32>>, Option<Vec<u32>>);

#[pymethods]
impl Machine {
    /// Returns a machine that is part of the package, with `shape` ranks or rows and columns (None: all of it).
    #[staticmethod]
    #[pyo3(signature = (name, shape = None))]
    fn preset(name: &str, shape: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        Self::new(Description::preset(name).map_err(input)?, convert::shape(shape)?)
    }

    /// Returns the machine that a text in TOML describes. `origin` names the text in errors; `files` has the texts of
    /// the files that the description names.
    #[staticmethod]
    #[pyo3(signature = (text, origin, shape = None, files = None))]
    fn from_toml(
        py: Python<'_>,
        text: &str,
        origin: &str,
        shape: Option<&Bound<'_, PyAny>>,
        files: Option<BTreeMap<String, String>>,
    ) -> PyResult<Self> {
        let named = |name: &str| files.as_ref()?.get(name).cloned();
        let description = detached(py, || Description::from_toml_with(text, origin, &named))?.map_err(input)?;
        Self::new(description, convert::shape(shape)?)
    }

    /// Two machines are equal if their descriptions, names and selected parts are.
    fn __eq__(&self, other: &Self) -> bool {
        let name = |machine: &Self| (machine.name().to_owned(), machine.description.to_toml());
        self.part == other.part && name(self) == name(other)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.name().hash(&mut hasher);
        hasher.finish()
    }

    /// Returns the call by which pickle rebuilds the machine, also in another process.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Pickled)> {
        let (sides, nodes) = match &self.part {
            Part::All => (None, None),
            Part::Shape(shape) => (Some(shape.dims().to_vec()), None),
            Part::Nodes(nodes) => (None, Some(nodes.clone())),
            Part::Places(_) => return Err(input("a machine with places of its own cannot be sent to another process")),
        };
        let make = py.get_type::<Self>().getattr("unpickled")?;
        Ok((make, (self.description.to_toml(), self.name().to_owned(), sides, nodes)))
    }

    /// Returns the machine of a pickle.
    #[staticmethod]
    fn unpickled(
        py: Python<'_>,
        text: &str,
        name: &str,
        sides: Option<Vec<u32>>,
        nodes: Option<Vec<u32>>,
    ) -> PyResult<Self> {
        let sides = sides.map(|sides| PyTuple::new(py, sides)).transpose()?;
        let whole = Self::from_toml(py, text, name, sides.as_ref().map(|sides| sides.as_any()), None)?;
        if nodes.is_some() { whole.asked(py, None, None, nodes, None) } else { Ok(whole) }
    }

    /// Returns a changed machine: resized to `nodes`, without the failed parts, and with `subset` or `shape` as the
    /// used part. Without `subset` and `shape`, the present part stays in use. `failed` names nodes of the resized
    /// machine.
    #[pyo3(signature = (shape = None, nodes = None, subset = None, failed = None))]
    fn asked(
        &self,
        py: Python<'_>,
        shape: Option<&Bound<'_, PyAny>>,
        nodes: Option<u32>,
        subset: Option<Vec<u32>>,
        failed: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let (shape, failed) = (convert::shape(shape)?, failed.unwrap_or_default());
        let description = detached(py, || {
            let sized =
                nodes.map_or_else(|| Ok(self.description.clone()), |nodes| self.description.with_nodes(nodes))?;
            if failed.is_empty() { Ok(sized) } else { sized.with_failures(&failed) }
        })?
        .map_err(input)?;
        let part = self.part.renamed(&self.description, &description, shape, subset).map_err(input)?;
        Ok(Self::of_part(description, part))
    }

    /// Returns the same machine with another value of one key of its file. A list of accelerators in use becomes the
    /// whole machine.
    fn changed(&self, py: Python<'_>, key: &str, value: &str) -> PyResult<Self> {
        let description = detached(py, || self.description.with_value(key, value))?.map_err(input)?;
        Self::checked(description, self.part.without_places())
    }

    /// The name of the machine.
    #[getter]
    fn name(&self) -> &str {
        self.description.name()
    }

    /// Returns the source of a network's rates under `model`: `measured` or `data-sheet`; None for other machines.
    #[pyo3(signature = (model = None))]
    fn rates(&self, model: Option<&str>) -> Option<&'static str> {
        let network: &Network = self.description.get()?;
        Some(if model == Some(DATA_SHEET) { DATA_SHEET } else { network.rates() })
    }

    /// Returns the network with only the rates of the data sheet, without the times of kernels, signals and thread
    /// blocks.
    fn data_sheet(&self) -> PyResult<Self> {
        let Some(network) = self.description.get::<Network>() else {
            let (name, kind) = (self.description.name(), self.description.kind());
            return Err(input(format!("{name} is of kind {kind}; {DATA_SHEET} is a model of networks")));
        };
        Self::checked(network.data_sheet().into(), self.part.clone())
    }

    /// The simulator that runs schedules on the machine.
    #[getter]
    fn simulator(&self) -> &'static str {
        kind_of(&self.description).simulator.name
    }

    /// The means of communication that the machine offers, of `grid`, `messages`, `links` and `reducing-switches`.
    #[getter]
    fn offers(&self) -> Vec<&'static str> {
        kind_of(&self.description).offers.iter().map(|means| means.name()).collect()
    }

    /// The kind of the machine: `wafer`, `endpoint`, `network` or `in-network`.
    #[getter]
    fn kind(&self) -> &str {
        self.description.kind()
    }

    /// A sentence on the machine, of its file.
    #[getter]
    fn summary(&self) -> &str {
        self.description.summary()
    }

    /// The rows and columns of PEs, or the number of ranks, as a tuple; None if neither is given.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let shape = detached(py, || self.part.shape(&self.description))?.map_err(input)?;
        shape.map(|s| Ok(PyTuple::new(py, s.dims())?.into_any())).transpose()
    }

    /// The number of ranks along each dimension of the used part, as plans state them; `None` if the machine has no
    /// shape of its own.
    #[getter]
    fn extents<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let extents = detached(py, || self.part.extents(&self.description))?.map_err(input)?;
        extents.map(|extents| Ok(PyTuple::new(py, extents)?.into_any())).transpose()
    }

    /// The clock of a wafer in MHz; for machines of other kinds `InputError` is raised.
    #[getter]
    fn clock_mhz(&self) -> PyResult<f64> {
        self.wafer().map(|wafer| wafer.clock_mhz)
    }

    /// The numbers of parts of a network, its price and its shape; None for other machines.
    #[getter]
    fn topology<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(network) = self.description.get::<Network>() else { return Ok(None) };
        let facts = detached(py, || network.facts())?.map_err(input)?;
        to_python(py, &facts).map(Some)
    }

    /// Returns the description of the whole machine as a dictionary.
    fn describe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, self.description())
    }

    /// Returns a sentence for each cost that predicted times omit and for each assumed value, for collectives of
    /// `bytes` bytes (None: any size) under `model` (None: the machine's default).
    #[pyo3(signature = (bytes = None, model = None))]
    fn notes(&self, bytes: Option<u64>, model: Option<&str>) -> Vec<String> {
        self.description.notes(bytes.unwrap_or(u64::MAX), model)
    }

    /// Returns the description of the whole machine as TOML, as machine files have it.
    fn to_toml(&self) -> String {
        self.description.to_toml()
    }

    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<String> {
        convert::display(slf.as_any())
    }

    fn __repr__(&self) -> String {
        let part = match &self.part {
            Part::All => String::new(),
            Part::Shape(shape) => format!(", shape={shape}"),
            part => format!(", {part}"),
        };
        format!("<unisono.Machine {}{part}>", self.name())
    }
}

/// Returns an error if the machine does not offer a means of communication. The message begins with `purpose`.
#[pyfunction]
pub fn require_offer(machine: &Machine, needed: &str, purpose: &str) -> PyResult<()> {
    let needed = Means::ALL.into_iter().find(|means| means.name() == needed);
    let needed = needed.ok_or_else(|| input("no machine offers that"))?;
    require(&machine.description, needed, purpose).map_err(input)
}

/// Returns the names of all presets, without reading their files.
#[pyfunction]
pub fn preset_names() -> Vec<&'static str> {
    PRESETS.iter().map(|preset| preset.name).collect()
}

/// Returns `[{name, kind, summary}]` of all presets.
#[pyfunction]
pub fn machine_presets(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let mut rows = Vec::new();
    for preset in PRESETS.iter() {
        let machine = Description::preset(preset.name).map_err(input)?;
        let entry = [("name", machine.name()), ("kind", machine.kind()), ("summary", machine.summary())];
        rows.push(entry.map(|(k, v)| (k.to_owned(), v.to_owned())).into_iter().collect::<BTreeMap<_, _>>());
    }
    to_python(py, &rows)
}

/// Returns the text of a preset's file, with the comments that name the sources of its numbers.
#[pyfunction]
pub fn preset_toml(name: &str) -> PyResult<&'static str> {
    let found = PRESETS.iter().find(|preset| preset.name == name);
    found.map(|preset| preset.toml).ok_or_else(|| input(format!("there is no preset '{name}'")))
}

/// Converts `N` or `MxN` to a tuple.
#[pyfunction]
pub fn parse_shape<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    let shape: Shape = text.parse().map_err(input)?;
    Ok(PyTuple::new(py, shape.dims())?.into_any())
}
