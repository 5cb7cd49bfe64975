//! Checks of the files of GPU communication libraries.

use pyo3::prelude::*;
use unisono_formats::Emitter;
use unisono_gpu::{FORMATS, Options, PROCESSORS, mscclpp};

use crate::{
    errors::{detached, input, to_python},
    export,
};

// The signature below states this default as a number, because it cannot name a constant.
const _: () = assert!(PROCESSORS == 108);

/// Checks the text of a plan for GPUs, and returns its faults and its proved properties. `origin` names the file in
/// errors.
#[pyfunction]
#[pyo3(signature = (text, format, origin = "file", elements = None, dtype = None, op = None, root = None, trust_relaxed = false, method = "auto", processors = 108))]
#[expect(clippy::too_many_arguments, reason = "keywords of Python")]
pub fn check_plan<'py>(
    py: Python<'py>,
    text: &str,
    format: &str,
    origin: &str,
    elements: Option<&Bound<'_, PyAny>>,
    dtype: Option<&str>,
    op: Option<&str>,
    root: Option<&Bound<'_, PyAny>>,
    trust_relaxed: bool,
    method: &str,
    processors: u32,
) -> PyResult<Bound<'py, PyAny>> {
    let Some(plans) = unisono_gpu::named(format) else {
        let names: Vec<_> = FORMATS.iter().map(|format| Emitter::name(*format)).collect();
        return Err(input(format!("'{format}' is not a format of plans for GPUs; accepted are {}", names.join(", "))));
    };
    let facts = export::facts(elements, dtype, op, root)?;
    let options = Options { trust_relaxed, method: method.parse().map_err(input)?, processors };
    let checked = detached(py, || plans.check(text, &facts, options))?;
    to_python(py, &checked.map_err(|e| input(format!("{origin}: {e}")))?.report)
}

/// Returns true if a JSON text is an execution plan of MSCCL++ instead of a schedule.
#[pyfunction]
pub fn is_gpu_plan(py: Python<'_>, text: &str) -> PyResult<bool> {
    detached(py, || mscclpp::is_plan(text))
}
