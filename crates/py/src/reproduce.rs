//! Computations that only the reproduction of the papers needs.

use numpy::PyArray2;
use pyo3::{prelude::*, types::PyDict};
use unisono_algorithms::{Params, catalog::auto_gen_best, find};
use unisono_cost::wafer::bounds::PaperTable;

use crate::{
    convert::index,
    errors::{Error, detached, input},
};

/// The cycles that each message in the longest chain costs, on the machine of "Near-Optimal Wafer-Scale Reduce", whose
/// ramp latency T_R is 2.
const DEPTH_CYCLES: f64 = 5.0;

/// Returns the best tree to reduce a vector on a line of PEs: `{depth, contention, energy, cycles}`; zeros if there is
/// none.
#[pyfunction]
pub fn auto_gen<'py>(
    py: Python<'py>,
    pes: &Bound<'py, PyAny>,
    wavelets: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    let (pes, wavelets) = (index("pes", pes)?, index("wavelets", wavelets)?);
    let most = unisono_collective::Collective::MAX_RANKS;
    if pes == 0 || pes > most {
        return Err(input(format!("pes is {pes}; accepted are 1 to {most}")));
    }
    let best = detached(py, || auto_gen_best(pes, u64::from(wavelets), DEPTH_CYCLES))?;
    let dict = PyDict::new(py);
    dict.set_item("depth", best.map_or(0, |s| s.depth))?;
    dict.set_item("contention", best.map_or(0, |s| s.contention))?;
    dict.set_item("energy", best.map_or(0, |s| s.energy))?;
    dict.set_item("cycles", best.map_or(0.0, |s| s.cycles))?;
    Ok(dict)
}

/// Returns, by algorithm, the cycles by Eq. 1 of "Near-Optimal Wafer-Scale Reduce", or of an algorithm's more precise
/// formula, divided by the bound of Lemma 5.5, for P = 2..=pes_max (rows) and vector lengths in wavelets (columns).
#[pyfunction]
pub fn reduce_optimality<'py>(
    py: Python<'py>,
    pes_max: &Bound<'py, PyAny>,
    wavelets: Vec<u32>,
) -> PyResult<Bound<'py, PyDict>> {
    let pes_max = index("pes_max", pes_max)?;
    if !(2..=1024).contains(&pes_max) {
        return Err(input(format!("pes_max is {pes_max}; accepted are 2 to 1024")));
    }
    let names = ["star", "chain", "tree", "two-phase", "auto-gen"];
    let rows = detached(py, || {
        let bound = PaperTable::new(pes_max);
        names.map(|name| {
            let tree = find(name).ok().and_then(|a| a.line_tree())?;
            let ratio = |pes: u32, b: u32| {
                let b = u64::from(b);
                let sides = tree.sides(0, pes - 1, b, DEPTH_CYCLES, &Params::new()).ok()?;
                let t = sides.terms(b);
                let sharper = tree.sharper(&sides, b).map(|s| s.cycles_beside_depth);
                let beside = sharper.unwrap_or_else(|| t.contention.max(t.energy / t.links + t.distance));
                Some((beside + DEPTH_CYCLES * t.depth) / bound.cycles(pes, b, DEPTH_CYCLES))
            };
            (2..=pes_max).flat_map(|p| wavelets.iter().map(move |&b| ratio(p, b))).collect::<Option<Vec<f64>>>()
        })
    })?;
    let dict = PyDict::new(py);
    for (name, row) in names.into_iter().zip(rows) {
        let row = row.ok_or_else(|| Error::new_err(format!("{name} is not a tree on a line")))?;
        let rows: Vec<Vec<f64>> = row.chunks(wavelets.len().max(1)).map(<[f64]>::to_vec).collect();
        dict.set_item(name, PyArray2::from_vec2(py, &rows).map_err(input)?.to_owned())?;
    }
    Ok(dict)
}

/// Returns the claims of a paper as TOML.
#[pyfunction]
pub fn paper_claims(paper: &str) -> PyResult<&'static str> {
    match paper {
        "discovery" => Ok(include_str!("../../../papers/discovery/claims.toml")),
        "hammingmesh" => Ok(include_str!("../../../papers/hammingmesh/claims.toml")),
        "multiplying" => Ok(include_str!("../../../papers/multiplying/claims.toml")),
        "piuma" => Ok(include_str!("../../../papers/piuma/claims.toml")),
        "wafer" => Ok(include_str!("../../../papers/wafer/claims.toml")),
        other => Err(input(format!(
            "'{other}' is not a paper that is reproduced; accepted are discovery, hammingmesh, multiplying, piuma, wafer"
        ))),
    }
}
