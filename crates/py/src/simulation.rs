//! `Simulation`: the result of a simulated run, with the same attributes on every kind of machine.

use numpy::PyArray1;
use pyo3::{
    exceptions::PyTypeError,
    prelude::*,
    types::{PyDict, PyList, PyTuple},
};
use unisono_plan::{Finish, Run, Trace, Value};

use crate::errors::to_python;

/// The result of a simulated run. Values that the simulator does not provide are None.
#[pyclass(frozen, module = "unisono")]
pub struct Simulation(pub Run);

#[pymethods]
impl Simulation {
    /// Returns the value itself, which nothing changes.
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a simulated run is not pickled: send values of it, such as `metrics`, or send the schedule and simulate it in the other \
             process",
        ))
    }

    /// The name of the simulator.
    #[getter]
    fn simulator(&self) -> &str {
        self.0.simulator
    }

    /// The cycles until the last node ends; None on a machine without a clock.
    #[getter]
    fn cycles(&self) -> Option<u64> {
        self.0.cycles
    }

    /// The time in seconds until the last node ends.
    #[getter]
    fn seconds(&self) -> f64 {
        self.0.seconds
    }

    /// The time in nanoseconds, before its conversion to `seconds` rounds it.
    #[getter]
    fn nanoseconds(&self) -> f64 {
        self.0.nanoseconds
    }

    /// The time at which each PE ends its last operation, in cycles (0 without operations); on other machines, the time
    /// at which each rank ends, in seconds.
    #[getter]
    fn finish<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        match &self.0.finish {
            Finish::Cycles(ends) => PyArray1::from_slice(py, ends).into_any(),
            Finish::Nanoseconds(ends) => PyArray1::from_iter(py, ends.iter().map(|ns| ns / 1e9)).into_any(),
        }
    }

    /// The times of `finish` as a list, in cycles or nanoseconds, which needs no NumPy.
    #[getter]
    fn ends<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        match &self.0.finish {
            Finish::Cycles(ends) => PyList::new(py, ends),
            Finish::Nanoseconds(ends) => PyList::new(py, ends),
        }
    }

    /// The number of times in `finish`.
    #[getter]
    fn nodes(&self) -> usize {
        match &self.0.finish {
            Finish::Cycles(ends) => ends.len(),
            Finish::Nanoseconds(ends) => ends.len(),
        }
    }

    /// The times of `finish` in nanoseconds; None on a machine with cycles.
    #[getter]
    fn finish_ns<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        match &self.0.finish {
            Finish::Cycles(_) => None,
            Finish::Nanoseconds(ends) => Some(PyArray1::from_slice(py, ends)),
        }
    }

    /// The number of simulated events.
    #[getter]
    fn events(&self) -> u64 {
        self.0.events
    }

    /// The total cycles for which wavelets waited at routers; None if the simulator does not count them.
    #[getter]
    fn stalls(&self) -> Option<u64> {
        self.0.stalls
    }

    /// True if the outputs equal the result of plain arithmetic; None for a simulation without data.
    #[getter]
    fn result_correct(&self) -> Option<bool> {
        self.0.checked.as_ref().map(|checked| checked.correct)
    }

    /// The number of leading elements of the vector whose outputs were compared with plain arithmetic; None for a
    /// simulation without data.
    #[getter]
    fn elements_checked(&self) -> Option<u32> {
        self.0.checked.as_ref().map(|checked| checked.elements)
    }

    /// A description of the first output that differs from plain arithmetic; None if there is none.
    #[getter]
    fn mismatch(&self) -> Option<&str> {
        self.0.checked.as_ref()?.mismatch.as_deref()
    }

    /// `{name: (value, unit)}` of all other counts of the simulator.
    #[getter]
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, value, unit) in &self.0.metrics {
            let value = match value {
                Value::Count(count) => count.into_pyobject(py)?.into_any(),
                Value::Number(number) => number.into_pyobject(py)?.into_any(),
                Value::Counts(counts) => PyArray1::from_slice(py, counts).into_any(),
                Value::Text(text) => text.into_pyobject(py)?.into_any(),
            };
            dict.set_item(name, PyTuple::new(py, [value, unit.into_pyobject(py)?.into_any()])?)?;
        }
        Ok(dict)
    }

    /// The value of the metric with this name if it is a count. This needs no NumPy.
    fn count(&self, name: &str) -> Option<u64> {
        self.0.metrics.iter().find_map(|(of, value, _)| match value {
            Value::Count(count) if *of == name => Some(*count),
            _ => None,
        })
    }

    /// The time in seconds that the simulation took.
    #[getter]
    fn wall_seconds(&self) -> f64 {
        self.0.wall_seconds
    }

    /// `[{pe, thread, instr, phase, elements, start, end}]` of the traced PEs, in cycles; or `[{rank, kind, cpu, peer,
    /// bytes, start, end}]` of the traced ranks, in ticks of 1/`ticks_per_ns` ns.
    #[getter]
    fn trace_events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.0.trace {
            Trace::None => to_python(py, &[(); 0]),
            Trace::Pes { events, .. } => to_python(py, events),
            Trace::Ranks { events, .. } => to_python(py, events),
        }
    }

    /// The ticks of `trace_events` in a nanosecond; None without traced ranks.
    #[getter]
    fn ticks_per_ns(&self) -> Option<f64> {
        match self.0.trace {
            Trace::Ranks { ticks_per_ns, .. } => Some(ticks_per_ns),
            _ => None,
        }
    }

    /// The names of the phases, to which traced operations of PEs refer by index.
    #[getter]
    fn phases(&self) -> Vec<String> {
        match &self.0.trace {
            Trace::Pes { phases, .. } => phases.clone(),
            _ => Vec::new(),
        }
    }
}
