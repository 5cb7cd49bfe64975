//! The names and properties of collectives, datatypes and operators.

use pyo3::{prelude::*, types::PyDict};
use unisono_collective::{Dtype, Kind, Operator};
use unisono_machine::network::Architecture;

use crate::errors::input;

/// Returns `{name: {has_root, reduces}}` of all collectives.
#[pyfunction]
pub fn collectives(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for kind in Kind::ALL {
        let properties = PyDict::new(py);
        properties.set_item("has_root", kind.has_root())?;
        properties.set_item("reduces", kind.reduces())?;
        dict.set_item(kind.name(), properties)?;
    }
    Ok(dict)
}

/// Returns `{name: bytes}`: the size of one element of each datatype.
#[pyfunction]
pub fn dtypes(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for dtype in Dtype::ALL {
        dict.set_item(dtype.name(), dtype.bytes())?;
    }
    Ok(dict)
}

/// Returns `{algbw, busbw}` in GB/s by the definitions of nccl-tests; the values are None for collectives that
/// nccl-tests lacks, and if `seconds` is 0.
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
    let found = kind.bandwidths(ranks, bytes, seconds);
    let dict = PyDict::new(py);
    dict.set_item("algbw", found.map(|b| b.algbw))?;
    dict.set_item("busbw", found.map(|b| b.busbw))?;
    Ok(dict)
}

/// Returns the architecture of GPUs by the name that their driver states; None if it is not known.
#[pyfunction]
pub fn gpu_architecture(name: &str) -> Option<&'static str> {
    Architecture::of_name(name).map(Architecture::name)
}

/// Returns the names of all operators.
#[pyfunction]
pub fn operators() -> Vec<&'static str> {
    Operator::ALL.iter().map(|operator| operator.name()).collect()
}
