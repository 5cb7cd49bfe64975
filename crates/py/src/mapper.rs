//! Range mappers, including those made from a user's function.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use pyo3::{
    prelude::*,
    types::{PyDict, PyTuple},
};
use unisono_base::narrow;
use unisono_discover::{Box3, Mapper as Description, UserMapper};

use crate::{convert::index, discover::point, errors::input, symbol::trace};

/// A range mapper. It maps a chunk of a task's range to the part of a buffer that the chunk accesses. Mappers with
/// equal parameters are equal; a mapper made from a function equals only itself.
#[pyclass(frozen, eq, hash, module = "unisono", from_py_object)]
#[derive(Clone, PartialEq, Hash)]
pub struct Mapper(pub(crate) Description);

#[pymethods]
impl Mapper {
    /// Makes a mapper, such as `Mapper("slice", dim=1)`. The parameters are those of programs in JSON.
    #[new]
    #[pyo3(signature = (kind, **params))]
    fn new(kind: &str, params: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let given: Vec<String> = params.map_or_else(Vec::new, |p| p.keys().iter().map(|k| k.to_string()).collect());
        let accepted: &[&str] = match kind {
            "one_to_one" | "all" => &[],
            "fixed" => &["offset", "extent"],
            "slice" => &["dim"],
            "neighborhood" => &["halo"],
            "transposed" => &["perm"],
            "row" | "row_chunk" => &["index"],
            "shift" => &["offset"],
            "project" => &["kernel_dim"],
            "even_split" => &["granularity"],
            other => {
                return Err(input(format!(
                    "mapper is '{other}'; accepted are one_to_one, all, fixed, slice, neighborhood, transposed, row, \
                     row_chunk, shift, project, even_split"
                )));
            }
        };
        if given.len() != accepted.len() || !given.iter().all(|name| accepted.contains(&name.as_str())) {
            let shown = |list: &[&str]| if list.is_empty() { "nothing".to_owned() } else { list.join(" and ") };
            let given: Vec<&str> = given.iter().map(String::as_str).collect();
            return Err(input(format!("mapper {kind} takes {}; given is {}", shown(accepted), shown(&given))));
        }
        let param = |name: &str| -> PyResult<Bound<'_, PyAny>> {
            let found = params.and_then(|p| p.get_item(name).transpose());
            found.unwrap_or_else(|| Err(input(format!("mapper {kind} lacks {name}"))))
        };
        let at = |name: &str, missing: i64| point(&format!("mapper {kind}: {name}"), &param(name)?, missing);
        let number = |name: &str| Ok::<_, PyErr>(index(name, &param(name)?)? as usize);
        Ok(Self(match kind {
            "one_to_one" => Description::OneToOne,
            "all" => Description::All,
            "fixed" => {
                let (min, extent) = (at("offset", 0)?, at("extent", 1)?);
                Description::Fixed(Box3::new(min, std::array::from_fn(|d| min[d].saturating_add(extent[d]))))
            }
            "slice" => Description::Slice(number("dim")?),
            "neighborhood" => Description::Neighborhood(at("halo", 0)?),
            "transposed" => {
                let perm = at("perm", 0)?;
                if let Some(wrong) = perm.iter().find(|d| !(0..3).contains(*d)) {
                    return Err(input(format!("mapper transposed names dimension {wrong}; accepted are 0 to 2")));
                }
                Description::Transposed(perm.map(|d| narrow(d)))
            }
            "row" => Description::Row(i64::from(index("index", &param("index")?)?)),
            "row_chunk" => Description::RowChunk(i64::from(index("index", &param("index")?)?)),
            "shift" => Description::Shift(at("offset", 0)?),
            "project" => Description::Project(number("kernel_dim")?),
            _ => Description::EvenSplit(number("granularity")? as i64),
        }))
    }

    /// Makes a mapper from a function of `(min, max, shape)`: a chunk and the buffer's shape. The function returns
    /// `(min, max)` boxes of the buffer. Points are tuples with a number for each dimension of the range or the buffer.
    /// The function is first called with symbols, to find the arguments on which its result depends. It may raise an
    /// exception on symbols.
    #[staticmethod]
    fn of(py: Python<'_>, name: &str, function: Py<PyAny>) -> PyResult<Self> {
        let traced = Arc::new(trace(py, &function)?);
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let call = move |low: &[i64], high: &[i64], shape: &[i64]| -> Result<Vec<Box3>, String> {
            Python::attach(|py| {
                let point = |p: &[i64]| PyTuple::new(py, p);
                let points = point(low).and_then(|low| Ok((low, point(high)?, point(shape)?)));
                let found = points.and_then(|points| function.call1(py, points));
                let found = found.map_err(|e| e.to_string())?;
                let pairs: Vec<(Vec<i64>, Vec<i64>)> = found
                    .extract(py)
                    .map_err(|_| "it returns no list of boxes; accepted are pairs (min, max) of points".to_owned())?;
                pairs.iter().map(|(min, max)| corners(min, max)).collect()
            })
        };
        Ok(Self(Description::User(UserMapper { number, name: name.into(), function: Arc::new(call), traced })))
    }

    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// Converts a box that a function returned. Missing dimensions have size 1.
fn corners(min: &[i64], max: &[i64]) -> Result<Box3, String> {
    if min.len() != max.len() || min.is_empty() || min.len() > 3 {
        return Err(format!("it returns a box from {min:?} to {max:?}; accepted are 1 to 3 numbers each"));
    }
    if let Some(d) = (0..min.len()).find(|&d| min[d] > max[d]) {
        return Err(format!("it returns a box from {} to {} in dimension {d}", min[d], max[d]));
    }
    let (mut low, mut high) = ([0; 3], [1; 3]);
    low[..min.len()].copy_from_slice(min);
    high[..max.len()].copy_from_slice(max);
    Ok(Box3::new(low, high))
}
