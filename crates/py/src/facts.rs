//! The names and properties of collectives, datatypes and operators.

use pyo3::{
    prelude::*,
    types::{IntoPyDict, PyDict},
};
use unisono_collective::{Dtype, Kind, Operator};
use unisono_machine::network::Architecture;

use crate::errors::input;

/// Returns `{name: {has_root, reduces}}` of all collectives.
#[pyfunction]
pub fn collectives(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let of = |kind: Kind| [("has_root", kind.has_root()), ("reduces", kind.reduces())].into_py_dict(py);
    let rows = Kind::ALL.iter().map(|&kind| Ok((kind.name(), of(kind)?))).collect::<PyResult<Vec<_>>>()?;
    rows.into_py_dict(py)
}

/// Returns `{name: bytes}`: the size of one element of each datatype.
#[pyfunction]
pub fn dtypes(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    Dtype::ALL.iter().map(|dtype| (dtype.name(), dtype.bytes())).into_py_dict(py)
}

/// Returns `{algbw, busbw}` in GB/s by the definitions of nccl-tests. Both are None for collectives that nccl-tests
/// does not define, and if `seconds` is 0.
#[pyfunction]
#[pyo3(signature = (collective, ranks, bytes, seconds))]
pub fn bandwidths<'py>(
    py: Python<'py>,
    collective: &str,
    ranks: u32,
    bytes: u64,
    seconds: f64,
) -> PyResult<Bound<'py, PyDict>> {
    let kind: Kind = collective.parse().map_err(input)?;
    if ranks == 0 {
        return Err(input("ranks is 0; accepted is at least 1"));
    }
    if !(seconds.is_finite() && seconds >= 0.0) {
        return Err(input(format!("seconds is {seconds}; accepted is a number of at least 0")));
    }
    let found = kind.bandwidths(ranks, bytes, seconds);
    [("algbw", found.map(|b| b.algbw)), ("busbw", found.map(|b| b.busbw))].into_py_dict(py)
}

/// Returns the architecture of a GPU by the name that its driver states; None if the name is not known.
#[pyfunction]
pub fn gpu_architecture(name: &str) -> Option<&'static str> {
    Architecture::of_name(name).map(Architecture::name)
}

/// Returns the names of all operators.
#[pyfunction]
pub fn operators() -> Vec<&'static str> {
    Operator::ALL.iter().map(|operator| operator.name()).collect()
}
