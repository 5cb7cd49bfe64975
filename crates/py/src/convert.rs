//! Conversion of arguments from Python.

use pyo3::{
    prelude::*,
    types::{PyBool, PyMapping},
};
use unisono_algorithms::Params;
use unisono_base::excerpt;
use unisono_machine::{Grid, Shape};
use unisono_plan::{Part, Request, Root};

use crate::{errors::input, machine::Machine};

/// Converts a whole number. A truth value is refused, although it is a number in Python. `what` is the argument's name.
pub fn whole(what: &str, value: &Bound<'_, PyAny>) -> PyResult<i128> {
    let number = if value.is_instance_of::<PyBool>() { None } else { value.extract::<i128>().ok() };
    number.ok_or_else(|| input(format!("{what} is {value}; accepted is a whole number")))
}

/// Converts a whole number from 0 to 2^64 - 1.
pub fn count(what: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    let number = whole(what, value)?;
    u64::try_from(number).map_err(|_| input(format!("{what} is {number}; accepted are 0 to {}", u64::MAX)))
}

/// Converts a whole number from 0 to 2^32 - 1.
pub fn index(what: &str, value: &Bound<'_, PyAny>) -> PyResult<u32> {
    let number = count(what, value)?;
    u32::try_from(number).map_err(|_| input(format!("{what} is {number}; accepted are 0 to {}", u32::MAX)))
}

/// Converts text, for the arguments of constructors. For functions, `unisono.base.border` explains a failed conversion.
pub fn text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    value.extract::<String>().map_err(|_| match value.repr() {
        Ok(shown) => input(format!("{} is not text, and the argument must be text", excerpt(&shown.to_string_lossy()))),
        Err(_) => input("an argument that must be text is none"),
    })
}

/// Converts `(n,)` or `(m, n)` to a shape.
pub fn shape(value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Shape>> {
    let Some(value) = value else { return Ok(None) };
    let sides = value.extract::<Vec<Bound<'_, PyAny>>>();
    let sides = sides.map_err(|_| input(format!("shape is {value}; accepted are (n,) and (rows, columns)")))?;
    let dims = sides.iter().map(|side| whole("a side of the shape", side)).collect::<PyResult<Vec<_>>>()?;
    let side = |n: i128| u32::try_from(n).ok().filter(|&n| n > 0);
    let shape = match dims[..] {
        [n] => side(n).map(Shape::line),
        [m, n] => side(m).zip(side(n)).map(|(m, n)| Shape { grid: Grid::new(m, n), dims: 2 }),
        _ => None,
    };
    let shown = dims.iter().map(ToString::to_string).collect::<Vec<_>>().join("x");
    shape.map(Some).ok_or_else(|| {
        input(format!("'{shown}' is not a shape; accepted are N (a row of N PEs) and MxN, each 1 to 4294967295"))
    })
}

pub fn params(given: Option<&Bound<'_, PyMapping>>) -> PyResult<Params> {
    let Some(given) = given else {
        return Ok(Params::new());
    };
    let text = |pair: Bound<'_, PyAny>| {
        let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair.extract()?;
        Ok((key.str()?.to_string(), value.str()?.to_string()))
    };
    given.items()?.iter().map(text).collect()
}

/// Converts the arguments of a Python call to a request that uses the machine's own model. `root` is a rank or `(row,
/// column)` of a grid, by default rank 0. `places` lists the accelerators of ranks on a network, by default the
/// machine's part.
pub fn request<'a>(
    collective: &str,
    machine: &'a Machine,
    elements: &Bound<'_, PyAny>,
    dtype: &str,
    operator: &str,
    root: Option<&Bound<'_, PyAny>>,
    places: Option<Vec<u32>>,
) -> PyResult<Request<'a>> {
    Ok(Request {
        kind: collective.parse().map_err(input)?,
        dtype: dtype.parse().map_err(input)?,
        operator: operator.parse().map_err(input)?,
        elements: count("elements", elements)?,
        root: match root {
            None => Root::Rank(0),
            Some(root) => match root.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() {
                Ok((row, col)) => Root::At(count("root row", &row)?, count("root column", &col)?),
                Err(_) => Root::Rank(count("root", root)?),
            },
        },
        part: places.map_or_else(|| machine.part().clone(), Part::Places),
        machine: machine.description(),
        model: None,
    })
}

/// Returns the HTML table that a notebook shows for an object.
pub fn display(subject: &Bound<'_, PyAny>) -> PyResult<String> {
    subject.py().import("unisono.viewing.displays")?.call_method1("display", (subject,))?.extract()
}
