//! Checks of the files of GPU communication libraries.

use pyo3::prelude::*;
use unisono_emit::{
    Asked, PROCESSORS, msccl,
    mscclpp::{self, Options},
};

use crate::{
    convert,
    errors::{detached, input, to_python},
};

// Python reads the default below from the signature, which cannot name a constant.
const _: () = assert!(PROCESSORS == 108);

/// Checks an execution plan of MSCCL++ and returns all faults. `origin` names the file in errors.
#[pyfunction]
#[pyo3(signature = (text, origin = "file", elements = None, dtype = None, trust_relaxed = false, method = "auto", processors = 108))]
#[allow(clippy::too_many_arguments)]
pub fn check_plan<'py>(
    py: Python<'py>,
    text: &str,
    origin: &str,
    elements: Option<&Bound<'_, PyAny>>,
    dtype: Option<&str>,
    trust_relaxed: bool,
    method: &str,
    processors: u32,
) -> PyResult<Bound<'py, PyAny>> {
    let asked = Asked {
        elements: elements.map(|n| convert::count("elements", n)).transpose()?,
        dtype: dtype.map(str::parse).transpose().map_err(input)?,
        ..Asked::default()
    };
    let options = Options { trust_relaxed, method: method.parse().map_err(input)?, processors };
    let checked = detached(py, || mscclpp::check(text, &asked, options))?;
    to_python(py, &checked.map_err(|e| input(format!("{origin}: {e}")))?)
}

/// True if a JSON text is an execution plan of MSCCL++ rather than a schedule.
#[pyfunction]
pub fn is_gpu_plan(py: Python<'_>, text: &str) -> PyResult<bool> {
    detached(py, || mscclpp::is_plan(text))
}

/// Checks a file of MSCCL at all sizes and in all ways that its executor accepts, or at the given size. `origin` names
/// the file in errors.
#[pyfunction]
#[pyo3(signature = (text, origin = "file", elements = None, dtype = None, op = None, root = None, method = "auto", processors = 108))]
#[allow(clippy::too_many_arguments)]
pub fn check_msccl<'py>(
    py: Python<'py>,
    text: &str,
    origin: &str,
    elements: Option<&Bound<'_, PyAny>>,
    dtype: Option<&str>,
    op: Option<&str>,
    root: Option<&Bound<'_, PyAny>>,
    method: &str,
    processors: u32,
) -> PyResult<Bound<'py, PyAny>> {
    let asked = Asked {
        elements: elements.map(|n| convert::count("elements", n)).transpose()?,
        dtype: dtype.map(str::parse).transpose().map_err(input)?,
        operator: op.map(str::parse).transpose().map_err(input)?,
        root: root.map(|n| convert::count("root", n)).transpose()?,
    };
    let method = method.parse().map_err(input)?;
    let checked = detached(py, || msccl::check(text, &asked, method, processors))?;
    to_python(py, &checked.map_err(|e| input(format!("{origin}: {e}")))?)
}
