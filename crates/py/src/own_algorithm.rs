//! Registers algorithms whose schedules a Python function makes.

use std::{
    path::Path,
    sync::{Mutex, PoisonError},
};

use pyo3::{exceptions::PyException, prelude::*, types::PyDict};
use unisono_algorithms::{
    Algorithm, AlgorithmError, Case, Info, Means, Param, Params, Place, Size, register, unregister,
};
use unisono_base::parallel;
use unisono_collective::{Collective, Kind};
use unisono_lower::{GridPlacement, Placed, Placement};
use unisono_machine::Grid;
use unisono_schedule::verify::{Method, verify};

use crate::{
    errors::{UnsupportedError, end_with, input},
    schedule::Schedule,
};

struct OwnAlgorithm {
    info: &'static Info,
    candidates: Vec<Params>,
    function: Py<PyAny>,
    /// The schedule of the latest case, or its error. It is stored because a plan requests the schedule several times:
    /// for its size, for its time and for the schedule itself.
    last: Mutex<Option<(Key, Result<Placed, AlgorithmError>)>>,
}

type Key = (Collective, Grid, Params);

impl Algorithm for OwnAlgorithm {
    fn info(&self) -> &'static Info {
        self.info
    }

    /// Checks only the collective. `build` refuses cases that the function refuses.
    fn supports(&self, case: &Case, _params: &Params) -> Result<(), AlgorithmError> {
        let (made, asked) = (self.info.collectives, case.collective.kind);
        if made.contains(&asked) {
            return Ok(());
        }
        let made = made.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
        let reason = format!("it makes {made}, not {asked}");
        Err(AlgorithmError::Unsupported { algorithm: self.info.name, reason })
    }

    fn build(&self, case: &Case, params: &Params) -> Result<Placed, AlgorithmError> {
        let key = (case.collective, case.grid(), params.clone());
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((asked, made)) if *asked == key => made.clone(),
            _ => {
                // The function may plan with the same algorithm, so the lock must not be held while it runs.
                drop(last);
                let made = self.make(case, params);
                last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
                *last = Some((key, made.clone()));
                made
            }
        }
    }

    /// Returns the number of instructions. Returns 0 if the function fails; the planner then reports the failure.
    fn size(&self, case: &Case, params: &Params) -> Size {
        let instructions = self.build(case, params).map_or(0, |placed| placed.schedule.instr_count() as u64);
        Size { instructions: Some(instructions), ..Size::default() }
    }

    fn candidates(&self, _case: &Case) -> Vec<Params> {
        self.candidates.clone()
    }
}

impl OwnAlgorithm {
    /// Calls the function, and proves that the returned schedule performs the case, without switches.
    fn make(&self, case: &Case, params: &Params) -> Result<Placed, AlgorithmError> {
        let algorithm = self.info.name;
        let c = case.collective;
        let given = if params.is_empty() { String::new() } else { format!(" with {params}") };
        let fault = |message: String| AlgorithmError::Own {
            algorithm,
            message: format!("{message} (for {} of {} elements on {} ranks{given})", c.kind, c.elements, c.ranks),
        };
        let made = Python::attach(|py| -> Result<Placed, PyErr> {
            let asked = PyDict::new(py);
            asked.set_item("collective", c.kind.name())?;
            asked.set_item("ranks", c.ranks)?;
            asked.set_item("elements", c.elements)?;
            asked.set_item("root", c.root)?;
            asked.set_item("dtype", c.dtype.name())?;
            asked.set_item("op", c.operator.name())?;
            let grid = case.grid();
            asked.set_item("shape", if grid.is_line() { vec![grid.cols] } else { vec![grid.rows, grid.cols] })?;
            let own = PyDict::new(py);
            for (name, value) in params.iter() {
                own.set_item(name, value)?;
            }
            let made = self.function.bind(py).call1((asked, own))?;
            let made = made.cast::<Schedule>().map_err(PyErr::from)?;
            let file = made.get().file();
            Ok(Placed { schedule: file.schedule.clone(), placement: file.placement.clone() })
        });
        let Placed { schedule, placement } = made.map_err(|error| {
            Python::attach(|py| {
                // Ctrl-C and `SystemExit` end the request, because they are not failures of the function.
                if !error.is_instance_of::<PyException>(py) {
                    end_with(error);
                }
                let text = error.value(py).to_string();
                if error.is_instance_of::<UnsupportedError>(py) {
                    return AlgorithmError::Unsupported { algorithm, reason: text };
                }
                let kind = error.get_type(py).name().map_or_else(|_| "an error".to_owned(), |name| name.to_string());
                fault(format!("failed{}: {kind}: {text}", place_of(py, &error)))
            })
        })?;
        if *schedule.collective() != c {
            let words = |c: &Collective| {
                let (kind, operator, dtype) = (c.kind, c.operator.name(), c.dtype.name());
                format!("{kind} ({operator}) of {} {dtype} on {} ranks, root {}", c.elements, c.ranks, c.root)
            };
            return Err(fault(format!("was asked for {}, and made {}", words(&c), words(schedule.collective()))));
        }
        let proof = verify(&schedule, Method::Auto);
        if let Some(found) = proof.diagnostics.first() {
            return Err(fault(format!("makes a schedule that is wrong: {found}")));
        }
        if schedule.node_count() > c.ranks as usize {
            return Err(fault("uses switches, which only algorithms of the catalog place".to_owned()));
        }
        Ok(match case.place {
            Place::Grid { grid, .. } => match placement {
                Some(Placement::Grid(own)) if own.grid == grid => Placed::on_grid(schedule, own),
                _ => Placed::on_grid(schedule, GridPlacement::new(grid)),
            },
            _ => Placed::among_ranks(schedule),
        })
    }
}

/// Returns the innermost line of the traceback that is in the function's file, such as ` at own.py:12`; an empty text
/// if unknown.
fn place_of(py: Python<'_>, error: &PyErr) -> String {
    let mut frames = Vec::new();
    let mut next = error.traceback(py).map(Bound::into_any);
    while let Some(frame) = next.filter(|frame| !frame.is_none()) {
        let file =
            frame.getattr("tb_frame").and_then(|f| f.getattr("f_code")?.getattr("co_filename")?.extract::<String>());
        let line = frame.getattr("tb_lineno").and_then(|line| line.extract::<u32>());
        let (Ok(file), Ok(line)) = (file, line) else { break };
        frames.push((file, line));
        next = frame.getattr("tb_next").ok();
    }
    // Frame 0 is the wrapper that calls the function; frame 1 is in the function's file.
    let Some((own, _)) = frames.get(1) else { return String::new() };
    let last = frames.iter().rev().find(|(file, _)| file == own);
    last.map_or_else(String::new, |(file, line)| {
        let name = Path::new(file).file_name().map_or(file.as_str().into(), |name| name.to_string_lossy());
        format!(" at {name}:{line}")
    })
}

/// Adds an algorithm to the registry, or replaces an added algorithm of the same name. `function(case, params)` returns
/// a schedule. `case` has `collective`, `ranks`, `elements`, `root`, `dtype`, `op` and `shape`. `params` maps names to
/// descriptions of the accepted values. `candidates` lists the settings that the planner compares. `wafer` and
/// `messages` select the machines on which the algorithm runs.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the parts of an entry of the registry")]
#[expect(clippy::needless_pass_by_value, reason = "what the Python function is given")]
pub fn register_algorithm(
    name: String,
    collectives: Vec<String>,
    summary: String,
    reference: String,
    params: Vec<(String, String)>,
    candidates: Vec<Vec<(String, String)>>,
    wafer: bool,
    messages: bool,
    function: Py<PyAny>,
) -> PyResult<()> {
    let kinds = collectives.iter().map(|c| c.parse()).collect::<Result<Vec<Kind>, _>>().map_err(input)?;
    let means = [(wafer, Means::Grid), (messages, Means::Messages)];
    let params = params.into_iter().map(|(name, values)| Param { name: keep(name), values: keep(values) });
    // The registry keeps its entries for the rest of the process.
    let info: &'static Info = Box::leak(Box::new(Info {
        name: keep(name),
        summary: keep(summary),
        reference: keep(reference),
        collectives: Vec::leak(kinds),
        params: Vec::leak(params.collect()),
        formulas: &[],
        needs: Vec::leak(means.into_iter().filter_map(|(on, means)| on.then_some(means)).collect()),
        sequences: &[],
        composed: false,
    }));
    let settings = |own: &Vec<(String, String)>| own.iter().fold(Params::new(), |all, (k, v)| all.with(k, v));
    let candidates = candidates.iter().map(settings).collect();
    // Python functions may depend on the thread that calls them, and only the main thread can be interrupted.
    parallel::stay_on_one_thread();
    register(Box::new(OwnAlgorithm { info, candidates, function, last: Mutex::new(None) })).map_err(input)
}

/// Removes the added algorithm of this name. Returns true if there was one.
#[pyfunction]
pub fn unregister_algorithm(name: &str) -> bool {
    unregister(name)
}

fn keep(text: String) -> &'static str {
    String::leak(text)
}
