//! Imports schedules of other tools, and exports decision tables to files of other libraries.

use std::collections::BTreeMap;

use pyo3::{prelude::*, types::PyList};
use serde::Deserialize;
use unisono_base::{Diagnostic, keyed};
use unisono_collective::{Choice, DecisionTable, Kind, OperatorClass, Row};
use unisono_emit::IMPORTERS;
use unisono_formats::{About, Facts, registers};
use unisono_lower::switches::{RaiseError, raise};
use unisono_tables::{LibraryTable, TUNINGS};

use crate::{
    convert,
    errors::{UnsupportedError, detached, input, to_python},
    schedule::Schedule,
};

/// Reads a schedule from the text of another tool's file. `source` is the format; `origin` names the file in errors.
#[pyfunction]
#[pyo3(signature = (text, source, origin = "file", elements = None, dtype = None, op = None, root = None))]
#[expect(clippy::too_many_arguments, reason = "keywords of Python")]
pub fn import_schedule(
    py: Python<'_>,
    text: &str,
    source: &str,
    origin: &str,
    elements: Option<&Bound<'_, PyAny>>,
    dtype: Option<&str>,
    op: Option<&str>,
    root: Option<&Bound<'_, PyAny>>,
) -> PyResult<Schedule> {
    let Some(&importer) = IMPORTERS.iter().find(|i| i.name() == source) else {
        let names: Vec<_> = IMPORTERS.iter().map(|i| i.name()).collect();
        return Err(input(format!("'{source}' is not a format to import; accepted are {}", names.join(", "))));
    };
    let facts = facts(elements, dtype, op, root)?;
    let file = detached(py, || importer.import(text, &facts))?;
    Ok(Schedule::new(file.map_err(|e| input(format!("{origin}: {e}")))?))
}

/// Returns the options of an import: the length, datatype, operator and root that the file does not state.
///
/// # Errors
/// Returns an error if a number is not a count, or a name is unknown.
pub fn facts(
    elements: Option<&Bound<'_, PyAny>>,
    dtype: Option<&str>,
    op: Option<&str>,
    root: Option<&Bound<'_, PyAny>>,
) -> PyResult<Facts> {
    Ok(Facts {
        elements: elements.map(|n| convert::count("elements", n)).transpose()?,
        dtype: dtype.map(str::parse).transpose().map_err(input)?,
        operator: op.map(str::parse).transpose().map_err(input)?,
        root: root.map(|n| convert::count("root", n)).transpose()?,
    })
}

/// Returns `[{code, rank, instruction, message}]` of the first fault in a text of switch registers; the message names
/// the switch. The list is empty if the registers are consistent with each other, the machine and the collective.
#[pyfunction]
pub fn check_registers<'py>(py: Python<'py>, text: &str, origin: &str) -> PyResult<Bound<'py, PyAny>> {
    let (machine, configured) =
        detached(py, || registers::parse(text))?.map_err(|e| input(format!("{origin}: {e}")))?;
    match detached(py, || raise(&machine.layout(), &configured).map(drop))? {
        Err(RaiseError::Registers(fault)) => to_python(py, &[Diagnostic { rank: None, ..fault }]),
        Err(RaiseError::Build(error)) => Err(input(error)),
        Ok(()) => Ok(PyList::empty(py).into_any()),
    }
}

/// A row of a decision table from Python. If `last_bytes` is None, the row has no upper limit. If `class` is None, the
/// operators of a reduction commute.
#[derive(Deserialize)]
struct Given {
    collective: String,
    ranks: u32,
    per_node: Option<u32>,
    class: Option<String>,
    first_bytes: u64,
    last_bytes: Option<u64>,
    algorithm: String,
    params: BTreeMap<String, String>,
}

impl Given {
    fn row(self) -> Result<Row, String> {
        let kind: Kind = self.collective.parse().map_err(|e: unisono_collective::CollectiveError| e.to_string())?;
        let fitting = if kind.reduces() && kind != Kind::Barrier { "commutative" } else { "none" };
        let name = self.class.as_deref().unwrap_or(fitting);
        let Some(&class) = OperatorClass::ALL.iter().find(|c| c.name() == name) else {
            let names: Vec<_> = OperatorClass::ALL.iter().map(|c| c.name()).collect();
            return Err(format!("'{name}' is not a class of operators; accepted are {}", names.join(", ")));
        };
        let choice = if self.algorithm == Choice::Library.to_string() {
            Choice::Library
        } else {
            Choice::Algorithm { name: self.algorithm, params: self.params.into_iter().collect() }
        };
        let (first_bytes, last_bytes) = (self.first_bytes, self.last_bytes.unwrap_or(u64::MAX));
        Ok(Row { kind, ranks: self.ranks, per_node: self.per_node, class, first_bytes, last_bytes, choice })
    }
}

/// Writes a decision table as the file of another library. Returns `{text, load, notes, left, rows}`: the file, the
/// arguments or variables that load it, notes, sentences on rows that are left to the library, and the number of rows
/// that the file expresses at least in part. `library` has the bytes of an MPI library, or of its table of algorithms,
/// for targets that need the table.
#[pyfunction]
#[pyo3(signature = (rows, target, library = None))]
pub fn export_table<'py>(
    py: Python<'py>,
    rows: &Bound<'py, PyAny>,
    target: &str,
    library: Option<&[u8]>,
) -> PyResult<Bound<'py, PyAny>> {
    let Some(&tuning) = TUNINGS.iter().find(|t| t.name == target) else {
        let names: Vec<_> = TUNINGS.iter().map(|t| t.name).collect();
        return Err(input(format!("'{target}' is not a format of tuning files; accepted are {}", names.join(", "))));
    };
    let given: Vec<Given> = keyed::read(&mut pythonize::Depythonizer::from_object(rows))
        .map_err(|e| input(format!("a row of the table: {e}")))?;
    let rows = given.into_iter().map(Given::row).collect::<Result<Vec<_>, _>>().map_err(input)?;
    let table = DecisionTable::new(rows).map_err(input)?;
    let library = library.filter(|_| tuning.needs_table).map(LibraryTable::read).transpose().map_err(input)?;
    let export = detached(py, || (tuning.write)(&table, library.as_ref()))?;
    to_python(py, &export.map_err(|refused| UnsupportedError::new_err(refused.to_string()))?)
}

/// Returns `[{name, summary, reference}]` of all formats of schedules that can be imported.
#[pyfunction]
pub fn importers(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    to_python(py, &IMPORTERS.iter().map(|i| i.about()).collect::<Vec<_>>())
}

/// Returns `[{name, summary, reference}]` of all formats of tuning files.
#[pyfunction]
pub fn tunings(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let rows = TUNINGS.iter().map(|t| About { name: t.name, reference: t.reference, summary: t.summary });
    to_python(py, &rows.collect::<Vec<_>>())
}
