//! A symbol that a mapper's function receives instead of a number. It shows how the result of the function depends on
//! its arguments.

use pyo3::{
    exceptions::{PyException, PyTypeError},
    prelude::*,
    types::PyTuple,
};
use unisono_discover::{LinearForm, SymbolicBox, Traced};

/// A linear form in a chunk's corners and a buffer's shape. Symbols and integers can be added and subtracted, and
/// symbols can be negated and multiplied by an integer; every other operation, including a comparison, raises
/// `TypeError`.
#[pyclass(frozen, module = "unisono", skip_from_py_object)]
struct Symbol(LinearForm);

/// An argument of symbolic arithmetic: a number or a symbol.
struct Operand(LinearForm);

impl<'py> FromPyObject<'_, 'py> for Operand {
    type Error = PyErr;

    fn extract(found: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match found.cast::<Symbol>() {
            Ok(symbol) => Ok(Self(symbol.get().0)),
            Err(_) => found.extract::<i64>().map(|number| Self(number.into())),
        }
    }
}

fn refuse<T>() -> PyResult<T> {
    Err(PyTypeError::new_err("a symbol stands for a number of a chunk, which is not known yet"))
}

fn sum(one: &LinearForm, factor: i64, other: &LinearForm) -> PyResult<Symbol> {
    one.plus(factor, other).map_or_else(refuse, |form| Ok(Symbol(form)))
}

#[pymethods]
impl Symbol {
    #[allow(clippy::needless_pass_by_value)]
    fn __add__(&self, other: Operand) -> PyResult<Self> {
        sum(&self.0, 1, &other.0)
    }

    fn __radd__(&self, other: Operand) -> PyResult<Self> {
        self.__add__(other)
    }

    #[allow(clippy::needless_pass_by_value)]
    fn __sub__(&self, other: Operand) -> PyResult<Self> {
        sum(&self.0, -1, &other.0)
    }

    #[allow(clippy::needless_pass_by_value)]
    fn __rsub__(&self, other: Operand) -> PyResult<Self> {
        sum(&other.0, -1, &self.0)
    }

    fn __mul__(&self, factor: i64) -> PyResult<Self> {
        sum(&LinearForm::default(), factor, &self.0)
    }

    fn __rmul__(&self, factor: i64) -> PyResult<Self> {
        self.__mul__(factor)
    }

    fn __neg__(&self) -> PyResult<Self> {
        self.__mul__(-1)
    }

    fn __richcmp__(&self, _other: &Bound<'_, PyAny>, _how: pyo3::basic::CompareOp) -> PyResult<bool> {
        refuse()
    }

    fn __bool__(&self) -> PyResult<bool> {
        refuse()
    }

    fn __hash__(&self) -> PyResult<isize> {
        refuse()
    }
}

/// Traces a mapper's function: calls it with symbols for each number of dimensions. If the function raises an
/// exception, the dependence is unknown for this number of dimensions. Exceptions that end the program are raised
/// again.
pub(crate) fn trace(py: Python<'_>, function: &Py<PyAny>) -> PyResult<Traced> {
    Traced::of(|low, high, shape| {
        let point = |forms: &[LinearForm]| PyTuple::new(py, forms.iter().map(|form| Symbol(*form)));
        let found = function.call1(py, (point(low)?, point(high)?, point(shape)?));
        let boxes = found.and_then(|found| found.extract::<Vec<(Vec<Operand>, Vec<Operand>)>>(py));
        match boxes {
            Ok(boxes) => Ok(Some(boxes.into_iter().map(symbolic).collect())),
            Err(error) if error.is_instance_of::<PyException>(py) => Ok(None),
            Err(error) => Err(error),
        }
    })
}

fn symbolic((low, high): (Vec<Operand>, Vec<Operand>)) -> SymbolicBox {
    let forms = |corner: Vec<Operand>| corner.into_iter().map(|one| one.0).collect();
    (forms(low), forms(high))
}
