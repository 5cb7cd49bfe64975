//! Conversion of buffers, tasks and fences that a Python program submits.

use pyo3::prelude::*;
use unisono_base::BufferId;
use unisono_discover::{Access, Box3, DiscoverError, Geometry, Mode, Options, Split, sizes3};

use crate::{
    convert::whole,
    errors::{UnsupportedError, VerifyError, input},
    mapper::Mapper,
};

pub(crate) fn refused(error: DiscoverError) -> PyErr {
    match error {
        DiscoverError::Messages(_) => UnsupportedError::new_err(error.to_string()),
        DiscoverError::Unproved(_) => VerifyError::new_err(error.to_string()),
        _ => input(error),
    }
}

pub(crate) fn nodes_of(value: &Bound<'_, PyAny>) -> PyResult<u32> {
    let number = whole("the number of nodes", value)?;
    let accepted = u32::try_from(number).ok().filter(|n| (1..=Options::MOST_NODES).contains(n));
    let refused = || input(format!("the number of nodes is {number}; accepted are 1 to {}", Options::MOST_NODES));
    accepted.ok_or_else(refused)
}

/// Converts a number or a sequence to whole numbers of at most 64 bits.
pub(super) fn numbers(what: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let fits = |n: i128| i64::try_from(n).map_err(|_| input(format!("{what} has {n}, which does not fit 64 bits")));
    if let Ok(list) = value.extract::<Vec<i64>>() {
        return Ok(list);
    }
    if let Ok(list) = value.extract::<Vec<Bound<'_, PyAny>>>() {
        return list.iter().map(|n| fits(whole(what, n)?)).collect();
    }
    Ok(vec![fits(whole(what, value)?)?])
}

pub(crate) fn point(what: &str, value: &Bound<'_, PyAny>, missing: i64) -> PyResult<[i64; 3]> {
    let list = numbers(what, value)?;
    if list.is_empty() || list.len() > 3 {
        return Err(input(format!("{what} has {} dimensions; accepted are 1 to 3", list.len())));
    }
    let mut full = [missing; 3];
    full[..list.len()].copy_from_slice(&list);
    Ok(full)
}

/// Converts the range and the accesses `(buffer, mode, mapper)` of a task. The last argument is the task's offset,
/// granularity and split.
pub(super) fn submitted(
    name: &str,
    sizes: &Bound<'_, PyAny>,
    accesses: Vec<(u32, Bound<'_, PyAny>, Mapper)>,
    (offset, granularity, split): (Option<&Bound<'_, PyAny>>, Option<&Bound<'_, PyAny>>, &str),
) -> PyResult<(Geometry, Vec<Access>)> {
    let sizes = numbers("the range", sizes)?;
    sizes3(&format!("task '{name}': range"), &sizes, 1).map_err(refused)?;
    let mut geometry = Geometry::of(&sizes);
    if let Some(offset) = offset {
        geometry.offset = point("the offset", offset, 0)?;
    }
    if let Some(granularity) = granularity {
        geometry.granularity = point("the granularity", granularity, 1)?;
    }
    geometry.split = match split {
        "1d" => Split::OneD,
        "2d" => Split::TwoD,
        other => return Err(input(format!("task '{name}': split is '{other}'; accepted are 1d, 2d"))),
    };
    let access = |(buffer, mode, mapper): (u32, Bound<'_, PyAny>, Mapper)| {
        let mode = match mode.extract::<&str>()? {
            "read" => Mode::Read,
            "write" => Mode::Write,
            "read_write" => Mode::ReadWrite,
            "reduce" => Mode::Reduce,
            other => {
                let accepted = "accepted are read, write, read_write, reduce";
                return Err(input(format!("task '{name}': mode is '{other}'; {accepted}")));
            }
        };
        Ok(Access::new(BufferId(buffer), mode, mapper.0))
    };
    Ok((geometry, accesses.into_iter().map(access).collect::<PyResult<_>>()?))
}

pub(super) fn fenced(low: &Bound<'_, PyAny>, high: &Bound<'_, PyAny>) -> PyResult<Box3> {
    Ok(Box3::new(point("low", low, 0)?, point("high", high, 1)?))
}
