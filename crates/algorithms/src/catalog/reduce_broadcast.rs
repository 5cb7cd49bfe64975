//! Reduce, then broadcast: an allreduce from any reduce and a flood, with the root at the end or in the middle.
//!
//! T = T_reduce + T_broadcast. Source: "Near-Optimal Wafer-Scale Reduce", sections 6.1 and 7.4 (second way).

use unisono_base::NodeId;
use unisono_collective::Kind;
use unisono_lower::{ANY_COLOR, Estimate, Phase, Placed};
use unisono_schedule::{Builder, Operand};

use super::flood::flood_terms;
use crate::{
    ALGORITHMS, Algorithm, AlgorithmError, Case, Param, Params,
    compose::{find, resolve},
    line::{Keep, broadcast},
};

pub struct ReduceBroadcast;

const NAME: &str = "reduce-broadcast";

/// The reduce to use, with its case and its own parameters.
fn part(case: &Case, params: &Params) -> Result<(&'static dyn Algorithm, Case, Params), AlgorithmError> {
    let root = match params.choice(NAME, "root", &["end", "middle"])? {
        "middle" => case.grid().pe(case.grid().rows / 2, case.grid().cols / 2),
        _ => 0,
    };
    let inner = case.with(Kind::Reduce, root);
    let default = if case.grid().is_line() { "auto-gen" } else { "x-y" };
    let name = params.get("reduce").unwrap_or(default);
    let rest = params.only(|k| k != "root" && k != "reduce");
    if !find(name)?.collectives().contains(&Kind::Reduce) {
        let all = ALGORITHMS.iter().filter(|a| a.collectives().contains(&Kind::Reduce));
        return Err(AlgorithmError::Param {
            algorithm: NAME,
            param: "reduce",
            found: name.to_owned(),
            accepted: all.map(|a| a.name()).collect::<Vec<_>>().join(", "),
        });
    }
    let (reduce, rest) = resolve(name, &inner, &rest)?;
    Ok((reduce, inner, rest))
}

impl Algorithm for ReduceBroadcast {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "a reduce to one PE, then a flood from it"
    }

    fn reference(&self) -> &'static str {
        "Near-Optimal Wafer-Scale Reduce, sections 6.1 and 7.4"
    }

    fn collectives(&self) -> &'static [Kind] {
        &[Kind::Allreduce]
    }

    fn params(&self) -> &'static [Param] {
        &[
            Param { name: "reduce", values: "a reduce (default: auto-gen on a line, x-y on a grid)" },
            Param { name: "root", values: "end, middle (default: end)" },
        ]
    }

    fn supports(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        if case.collective.kind != Kind::Allreduce {
            let reason = format!("it makes an allreduce, not {}", case.collective.kind);
            return Err(AlgorithmError::Unsupported { algorithm: NAME, reason });
        }
        part(case, params).map(|_| ())
    }

    fn build(&self, case: &Case, params: &Params) -> Result<Placed, AlgorithmError> {
        let (reduce, inner, rest) = part(case, params)?;
        let Placed { schedule, placement } = reduce.build(&inner, &rest)?;
        // The flood needs a color beside those of the reduce.
        let colors = &placement.colors;
        let color = colors.iter().copied().filter(|&c| c != ANY_COLOR).max().map_or(0, |c| c + 1);
        let mut keep = Keep::resume(&placement);
        // The reduce is continued as the allreduce it becomes: its partial results may now lie in the output.
        let root = NodeId(inner.collective.root);
        let mut b = Builder::resume(schedule, case.collective);
        b.phase("broadcast");
        broadcast(&mut b, root, Operand::Out(0), (0..case.collective.ranks).map(NodeId), &mut keep, color);
        let schedule = b.finish()?;
        let colors = keep.placement(case.grid(), &schedule).colors;
        Ok(Placed { placement: placement.with_colors(&schedule, colors), schedule })
    }

    fn estimate(&self, case: &Case, params: &Params) -> Option<Estimate> {
        let (reduce, inner, rest) = part(case, params).ok()?;
        let mut estimate = reduce.estimate(&inner, &rest)?;
        if case.grid().count() > 1 {
            let terms = flood_terms(case.grid(), inner.collective.root, case.wavelets());
            estimate.phases.push(Phase::new("broadcast", terms));
        }
        Some(estimate)
    }

    fn composed(&self) -> bool {
        true
    }

    fn candidates(&self, case: &Case) -> Vec<Params> {
        let reduces = ALGORITHMS.iter().filter(|a| a.collectives().contains(&Kind::Reduce));
        let mut all = Vec::new();
        for reduce in reduces {
            for rest in reduce.candidates(&case.with(Kind::Reduce, 0)) {
                // A tree on a line means x-y with it twice on a grid, and x-y lists all pairs itself.
                if reduce.line_tree().is_some() && !case.grid().is_line() {
                    continue;
                }
                for root in ["end", "middle"] {
                    all.push(rest.clone().with("reduce", reduce.name()).with("root", root));
                }
            }
        }
        all
    }
}
