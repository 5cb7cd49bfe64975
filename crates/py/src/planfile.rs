//! Writes, reads and proves `.plan` files: decision tables with stored schedules.

use std::collections::BTreeMap;

use pyo3::{prelude::*, types::PyBytes};
use serde::Serialize;
use unisono_collective::{Choice, DecisionTable, Kind, OperatorClass, Row};
use unisono_mpi::TUNED;
use unisono_plan::{PlanError, stored};
use unisono_schedule::{
    plan_file::{self, MOST_BYTES, PlanFile, PlanFileError},
    stored::{Blocking, Stored, condense},
};

use crate::{
    errors::{UnsupportedError, detached, input, plan_error, to_python},
    plan::Plan,
    schedule::Schedule,
};

/// The source of a row: a plan, a user's schedule, or `(collective, ranks)` for calls that the MPI library makes.
#[derive(FromPyObject)]
pub enum Serves<'py> {
    Plan(PyRef<'py, Plan>),
    Schedule(PyRef<'py, Schedule>),
    Library((String, u32)),
}

/// A row from Python: its source, first byte count, last byte count or None, ranks per node or None, and the conditions
/// of its measurement or None.
type Given<'py> = (Serves<'py>, u64, Option<u64>, Option<u32>, Option<String>);

/// Returns the bytes of a `.plan` file. `unlike_bits` marks rows of allreduces that may give different bits on
/// different ranks. The mark permits these rows to serve rounded results too.
#[pyfunction]
#[pyo3(signature = (rows, unlike_bits = false))]
pub fn encode_plan<'py>(py: Python<'py>, rows: Vec<Given<'py>>, unlike_bits: bool) -> PyResult<Bound<'py, PyBytes>> {
    let mut all: Vec<(Row, Option<Stored>)> = Vec::with_capacity(rows.len());
    let mut found = 0;
    for (serves, first_bytes, last, per_node, tuned) in rows {
        let last_bytes = last.unwrap_or(u64::MAX);
        let row = |kind, ranks, class, choice| Row { kind, ranks, per_node, class, first_bytes, last_bytes, choice };
        let made = match &serves {
            Serves::Library((collective, ranks)) => {
                let kind: Kind = collective.parse().map_err(input)?;
                let class = match kind.reduces() && kind != Kind::Barrier {
                    true => OperatorClass::Commutative,
                    false => OperatorClass::None,
                };
                all.push((row(kind, *ranks, class, Choice::Library), None));
                continue;
            }
            Serves::Plan(plan) => {
                let plan = plan.inner();
                let best = plan.best();
                let params = best.params.iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
                let choice = Choice::Algorithm { name: best.algorithm.name().to_owned(), params };
                let stored = detached(py, || plan.stored())?;
                stored.map(|stored| (stored, choice))
            }
            Serves::Schedule(schedule) => {
                let choice =
                    Choice::Algorithm { name: schedule.file().schedule.origin().to_owned(), params: Vec::new() };
                let file = schedule.file();
                let stored = detached(py, || stored(condense(&file.schedule)))?;
                stored.map(|stored| (stored, choice))
            }
        };
        let (stored, mut choice) = made.map_err(store_error)?;
        found += stored.programs().iter().map(plan_file::program_bytes).sum::<u64>();
        if found > MOST_BYTES {
            return Err(UnsupportedError::new_err(format!(
                "the programs of the rows up to {first_bytes} bytes take {found} bytes, and MPI programs read files of at \
                 most {MOST_BYTES}; serve fewer or smaller sizes, or in fewer pieces"
            )));
        }
        let (c, class) = (stored.facts().collective, stored.facts().class);
        if let Choice::Algorithm { params, .. } = &mut choice
            && unlike_bits
            && c.kind == Kind::Allreduce
            && !stored.facts().repeatable
        {
            params.push(("bits".to_owned(), "unlike".to_owned()));
        }
        if let (Choice::Algorithm { params, .. }, Some(conditions)) = (&mut choice, tuned) {
            params.push((TUNED.to_owned(), conditions));
        }
        all.push((row(c.kind, c.ranks, class, choice), Some(stored)));
    }
    // The table sorts its rows, so the schedules are sorted in the same order.
    let table = DecisionTable::new(all.iter().map(|(row, _)| row.clone()).collect()).map_err(input)?;
    let mut plan = plan_file::Plan { table, ..plan_file::Plan::default() };
    for row in plan.table.rows() {
        let at = all.iter().position(|(other, _)| other == row).expect("the table holds the same rows");
        let (_, stored) = all.swap_remove(at);
        plan.uses.push(stored.map(|stored| {
            plan.schedules.push(stored);
            plan.schedules.len() - 1
        }));
    }
    let mut bytes = Vec::new();
    plan_file::write(&plan, &mut bytes).map_err(input)?;
    Ok(PyBytes::new(py, &bytes))
}

/// Maps to `UnsupportedError` an error in storing a schedule that is correct but that MPI cannot run.
fn store_error(error: PlanError) -> PyErr {
    match error {
        PlanError::Store(why) => UnsupportedError::new_err(why.to_string()),
        other => plan_error(other),
    }
}

/// Proves the programs of a `.plan` file: those of all rows, or of the rows for `ranks` ranks.
#[pyfunction]
#[pyo3(signature = (bytes, ranks = None))]
pub fn prove_plan(py: Python<'_>, bytes: &[u8], ranks: Option<u32>) -> PyResult<()> {
    let file = PlanFile::read(bytes.to_vec()).map_err(input)?;
    detached(py, || file.prove_rows(ranks))?.map_err(input)
}

/// Returns the rows of a `.plan` file, the error of a failed proof or None, and the properties of the bits of each
/// collective on each number of ranks. The property `ranks-count` is checked for `contributors` logical contributors,
/// if given.
#[pyfunction]
#[pyo3(signature = (bytes, contributors = None))]
pub fn check_plan_file<'py>(
    py: Python<'py>,
    bytes: &[u8],
    contributors: Option<u32>,
) -> PyResult<(Bound<'py, PyAny>, Option<String>, Bound<'py, PyAny>)> {
    let checked = detached(py, || {
        let file = PlanFile::read(bytes.to_vec())?;
        let bits = file.bits(contributors);
        Ok::<_, PlanFileError>((file, bits))
    })?;
    let (file, bits) = checked.map_err(input)?;
    let (refused, bits) = match bits {
        Ok(bits) => (None, bits),
        Err(why) => (Some(why.to_string()), Vec::new()),
    };
    Ok((rows(py, &file)?, refused, to_python(py, &bits)?))
}

/// A row of a `.plan` file. The values of the schedule are `None` if the row leaves its calls to the MPI library.
#[derive(Serialize)]
#[serde(rename = "PlanRow")]
struct RowReport<'a> {
    collective: &'static str,
    ranks: u32,
    per_node: Option<u32>,
    operators: &'static str,
    first_bytes: u64,
    last_bytes: Option<u64>,
    algorithm: Option<&'a str>,
    params: BTreeMap<&'a str, &'a str>,
    /// The conditions under which the row was measured: library, version, `spin` or `yield`, `own` or `shared` cores.
    tuned: Option<&'a str>,
    blocks: Option<u32>,
    any_count: Option<bool>,
    in_place: Option<bool>,
    repeatable: Option<bool>,
    expression_class: Option<String>,
}

/// Returns the rows of a `.plan` file, each as a dict.
#[pyfunction]
pub fn decode_plan<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    rows(py, &PlanFile::read(bytes.to_vec()).map_err(input)?)
}

fn rows<'py>(py: Python<'py>, file: &PlanFile) -> PyResult<Bound<'py, PyAny>> {
    let mut rows = Vec::new();
    for (number, row) in file.table().rows().iter().enumerate() {
        let (algorithm, given) = match &row.choice {
            Choice::Library => (None, &[][..]),
            Choice::Algorithm { name, params } => (Some(name.as_str()), &params[..]),
        };
        let mut params: BTreeMap<_, _> = given.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let tuned = params.remove(TUNED);
        let facts = file.schedule(number).map(|schedule| file.facts(schedule));
        rows.push(RowReport {
            collective: row.kind.name(),
            ranks: row.ranks,
            per_node: row.per_node,
            operators: row.class.name(),
            first_bytes: row.first_bytes,
            last_bytes: (row.last_bytes != u64::MAX).then_some(row.last_bytes),
            algorithm,
            params,
            tuned,
            blocks: facts.map(|f| f.collective.elements),
            any_count: facts.map(|f| f.blocking == Blocking::Any || f.collective.elements == 1),
            in_place: facts.map(|f| f.in_place),
            repeatable: facts.map(|f| f.repeatable),
            expression_class: facts.map(|f| f.expression.clone()),
        });
    }
    to_python(py, &rows)
}
