//! Arguments as Python users give them.

use pyo3::{
    prelude::*,
    types::{PyBool, PyDict},
};
use unisono_algorithms::Params;
use unisono_base::narrow;
use unisono_collective::{Dtype, Kind, Operator};
use unisono_machine::{Grid, Machine as Description, Shape};
use unisono_plan::{Request, endpoint::EndpointRequest, in_network::InNetworkRequest, network::NetworkRequest};

use crate::{
    errors::{input, plan_error},
    machine::Machine,
};

/// A whole number; a truth value is none, although Python counts with it.
pub fn whole(what: &str, value: &Bound<'_, PyAny>) -> PyResult<i128> {
    let number = if value.is_instance_of::<PyBool>() { None } else { value.extract::<i128>().ok() };
    number.ok_or_else(|| input(format!("{what} is {value}; accepted is a whole number")))
}

/// A whole number of at least 0 that fits 64 bits.
pub fn count(what: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    let number = whole(what, value)?;
    u64::try_from(number).map_err(|_| input(format!("{what} is {number}; accepted are 0 to {}", u64::MAX)))
}

/// The same within 32 bits, as tables count.
pub fn index(what: &str, value: &Bound<'_, PyAny>) -> PyResult<u32> {
    let number = count(what, value)?;
    u32::try_from(number).map_err(|_| input(format!("{what} is {number}; accepted are 0 to {}", u32::MAX)))
}

/// `(n,)` or `(m, n)`.
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
        input(format!("'{shown}' is not a shape; accepted are N (a row of N PEs) and MxN, each at least 1"))
    })
}

pub fn params(given: Option<&Bound<'_, PyDict>>) -> PyResult<Params> {
    let Some(given) = given else {
        return Ok(Params::new());
    };
    given.iter().map(|(k, v)| Ok((k.str()?.to_string(), v.str()?.to_string()))).collect()
}

/// A request of any kind of machine.
pub enum AnyRequest {
    Wafer(Request),
    Endpoint(Box<EndpointRequest>),
    InNetwork(Box<InNetworkRequest>),
    Network(Box<NetworkRequest>),
}

/// A checked request; the root is a rank or, on a grid, `(row, column)`. `model` is read where the machine's kind fixes
/// the request by it.
pub fn request(
    collective: &str,
    machine: &Machine,
    elements: &Bound<'_, PyAny>,
    dtype: &str,
    operator: &str,
    root: &Bound<'_, PyAny>,
    model: Option<&str>,
) -> PyResult<AnyRequest> {
    let kind: Kind = collective.parse().map_err(input)?;
    let dtype: Dtype = dtype.parse().map_err(input)?;
    let operator: Operator = operator.parse().map_err(input)?;
    let elements = count("elements", elements)?;
    let wafer = match machine.description() {
        Description::Wafer(wafer) => wafer,
        Description::Endpoint(endpoint) => {
            let root = count("root", root)?;
            let ranks = machine.asked().map(|s| narrow(s.grid.count()));
            let made = EndpointRequest::new(kind, endpoint, ranks, elements, root, operator, dtype, model);
            return made.map(|made| AnyRequest::Endpoint(Box::new(made))).map_err(plan_error);
        }
        Description::InNetwork(switches) => {
            let (root, part) = (count("root", root)?, machine.part());
            let made = InNetworkRequest::new(kind, switches, &part, elements, root, operator, dtype, model);
            return made.map(|made| AnyRequest::InNetwork(Box::new(made))).map_err(plan_error);
        }
        Description::Network(network) => {
            let root = count("root", root)?;
            let made = NetworkRequest::new(kind, network, machine.asked(), elements, root, operator, dtype, model);
            return made.map(|made| AnyRequest::Network(Box::new(made))).map_err(plan_error);
        }
    };
    let shape = wafer.choose(machine.asked()).map_err(input)?;
    let root = match root.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() {
        Ok((row, col)) => {
            Request::root_at(shape, count("root row", &row)?, count("root column", &col)?).map_err(plan_error)?
        }
        Err(_) => count("root", root)?,
    };
    let made = Request::new(kind, wafer, Some(shape), elements, root, operator, dtype);
    made.map(AnyRequest::Wafer).map_err(plan_error)
}
