//! The registry of algorithms as a report.

use serde::Serialize;
use unisono_algorithms::{Formula, Param, algorithms};
use unisono_collective::Kind;

use crate::targets::TARGETS;

#[derive(Serialize)]
pub struct ParamReport {
    name: &'static str,
    values: &'static str,
}

#[derive(Serialize)]
pub struct FormulaReport {
    model: &'static str,
    collectives: Vec<&'static str>,
    time: &'static str,
    /// The condition under which the formula holds; `None` if it always holds.
    when: Option<&'static str>,
}

#[derive(Serialize)]
pub struct AlgorithmReport {
    pub name: &'static str,
    collectives: Vec<&'static str>,
    params: Vec<ParamReport>,
    /// The kinds of machines on which the algorithm is a candidate.
    pub machines: Vec<&'static str>,
    formulas: Vec<FormulaReport>,
    reference: &'static str,
    summary: &'static str,
}

/// Returns reports of all algorithms, or of those for one collective.
pub fn registry(kind: Option<Kind>) -> Vec<AlgorithmReport> {
    let names = |kinds: &[Kind]| kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>();
    let param = |param: &Param| ParamReport { name: param.name, values: param.values };
    let formula = |formula: &Formula| FormulaReport {
        model: formula.model,
        collectives: names(formula.collectives),
        time: formula.time,
        when: Some(formula.when).filter(|condition| !condition.is_empty()),
    };
    let listed = algorithms().into_iter().filter(|a| kind.is_none_or(|kind| a.info().collectives.contains(&kind)));
    let report = |name, info: &unisono_algorithms::Info| AlgorithmReport {
        name,
        collectives: names(info.collectives),
        params: info.params.iter().map(param).collect(),
        machines: TARGETS.iter().filter(|kind| kind.lists(info)).map(|kind| kind.name).collect(),
        formulas: info.formulas.iter().map(formula).collect(),
        reference: info.reference,
        summary: info.summary,
    };
    listed.map(|a| report(a.name(), a.info())).collect()
}
