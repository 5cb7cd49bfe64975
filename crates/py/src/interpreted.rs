//! Runs schedules on arrays of NumPy, with the interpreter.

use half::{bf16, f16};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use unisono_collective::Dtype;
use unisono_schedule::{
    interpret::{self, Element, InterpretError, Options},
    verify::Method,
};

use crate::{
    errors::{detached, input, simulation_error, verify_error},
    schedule::Schedule,
};

/// Runs a schedule on one input array for each rank and returns the outputs. Arrays of bf16 values have the type
/// float32.
pub fn interpreted<'py>(
    py: Python<'py>,
    schedule: &Schedule,
    inputs: &[Bound<'py, PyAny>],
    options: Options,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    match schedule.inner().collective().dtype {
        Dtype::F32 => run::<f32, f32>(py, schedule, inputs, options, "float32", |x| x, |x| x),
        Dtype::F64 => run::<f64, f64>(py, schedule, inputs, options, "float64", |x| x, |x| x),
        Dtype::I16 => run::<i16, i16>(py, schedule, inputs, options, "int16", |x| x, |x| x),
        Dtype::I32 => run::<i32, i32>(py, schedule, inputs, options, "int32", |x| x, |x| x),
        Dtype::I64 => run::<i64, i64>(py, schedule, inputs, options, "int64", |x| x, |x| x),
        Dtype::F16 => run::<f16, f16>(py, schedule, inputs, options, "float16", |x| x, |x| x),
        Dtype::Bf16 => run::<f32, bf16>(py, schedule, inputs, options, "float32", bf16::from_f32, bf16::to_f32),
    }
}

fn run<'py, A: numpy::Element + Copy, T: Element + Send + Sync>(
    py: Python<'py>,
    of: &Schedule,
    inputs: &[Bound<'py, PyAny>],
    options: Options,
    dtype: &str,
    to: fn(A) -> T,
    back: fn(T) -> A,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let mut data = Vec::with_capacity(inputs.len());
    for (rank, given) in inputs.iter().enumerate() {
        let array: PyReadonlyArray1<'_, A> =
            given.extract().map_err(|_| input(format!("the input of rank {rank} is not a 1-D array of {dtype}")))?;
        data.push(array.as_array().iter().map(|&x| to(x)).collect::<Vec<T>>());
    }
    let schedule = of.inner();
    match detached(py, || interpret::run(schedule, &data, options))? {
        Ok(outputs) => Ok(outputs
            .into_iter()
            .map(|o| PyArray1::from_vec(py, o.into_iter().map(back).collect()).into_any())
            .collect()),
        Err(InterpretError::Stuck { stuck }) => {
            let message = InterpretError::Stuck { stuck: stuck.clone() }.to_string();
            Err(simulation_error(py, message, stuck.iter().map(ToString::to_string).collect()))
        }
        Err(InterpretError::IllFormed(_)) => Err(verify_error(py, &of.prove(Method::Auto).diagnostics)),
        Err(e) => Err(input(e)),
    }
}
