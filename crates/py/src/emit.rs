//! `emit`: code and files for other tools.

use pyo3::{
    prelude::*,
    types::{PyBytes, PyDict},
};
use unisono_emit::EMITTERS;
use unisono_formats::Contents;
use unisono_gpu::Choices;
use unisono_plan::{chunks_of_code, written};

use crate::{
    errors::{NotExpressibleError, detached, input, to_python},
    schedule::Schedule,
};

/// Proves a schedule and returns its files in a format, by relative path. Raises `VerifyError` or, if the format cannot
/// express the schedule, `NotExpressibleError`.
#[pyfunction]
#[pyo3(signature = (schedule, target, in_place = None, gpus_per_box = None, thread_blocks = None))]
pub fn emit<'py>(
    py: Python<'py>,
    schedule: &Schedule,
    target: &str,
    in_place: Option<bool>,
    gpus_per_box: Option<u32>,
    thread_blocks: Option<u32>,
) -> PyResult<Bound<'py, PyDict>> {
    let Some(&emitter) = EMITTERS.iter().find(|e| e.name() == target) else {
        let names: Vec<_> = EMITTERS.iter().map(|e| e.name()).collect();
        return Err(input(format!("'{target}' is not a format; accepted are {}", names.join(", "))));
    };
    let proven = schedule.verified(py)?;
    let choices = Choices { in_place, gpus_per_box, thread_blocks, protocol: None };
    let files = detached(py, || written(emitter, &proven, &choices).map(|(files, _)| files))?;
    let files = files.map_err(|refused| NotExpressibleError::new_err(refused.to_string()))?;
    let dict = PyDict::new(py);
    for (path, contents) in files {
        match contents {
            Contents::Text(text) => dict.set_item(path, text)?,
            Contents::Bytes(bytes) => dict.set_item(path, PyBytes::new(py, &bytes))?,
        }
    }
    Ok(dict)
}

/// Returns sentences on parts of the collective of a schedule that the files of a target omit, or that they add. With
/// `texts`, omits sentences that do not apply to these written files.
#[pyfunction]
#[pyo3(signature = (schedule, target, texts = None))]
pub fn emission_notes(schedule: &Schedule, target: &str, texts: Option<Vec<String>>) -> Vec<String> {
    let collective = schedule.file().schedule.collective();
    let emitter = EMITTERS.iter().find(|e| e.name() == target);
    let note = emitter.and_then(|e| texts.map_or_else(|| e.note(collective), |texts| e.note_of(collective, &texts)));
    note.into_iter().chain(emitter.and_then(|&e| chunks_of_code(e, schedule.file()))).collect()
}

/// Returns `[{name, summary, reference}]` of all output formats.
#[pyfunction]
pub fn emitters(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    to_python(py, &EMITTERS.iter().map(|e| e.about()).collect::<Vec<_>>())
}
