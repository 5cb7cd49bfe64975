//! Reduce, then broadcast: an allreduce from any reduce and, on a wafer, a flood, among ranks any broadcast; with the
//! root at the end or in the middle. All ranks get what the root has, so they end with the same bits.
//!
//! T = T_reduce + T_broadcast. Source: "Near-Optimal Wafer-Scale Reduce", sections 6.1 and 7.4 (second way).

use unisono_base::NodeId;
use unisono_collective::Kind;
use unisono_lower::{ANY_COLOR, Estimate, Phase, Placed, Round};
use unisono_schedule::{Builder, Operand, Schedule};

use super::flood::flood_terms;
use crate::{
    ALGORITHMS, Algorithm, AlgorithmError, Case, Param, Params, PlaceKind,
    compose::{find, resolve},
    line::{Keep, broadcast},
};

pub struct ReduceBroadcast;

const NAME: &str = "reduce-broadcast";

/// An algorithm that makes `kind` on the case's machines, with its case and its own parameters.
type Part = (&'static dyn Algorithm, Case, Params);

fn part(case: &Case, params: &Params, kind: Kind, param: &'static str, default: &str) -> Result<Part, AlgorithmError> {
    let root = match params.choice(NAME, "root", &["end", "middle"])? {
        "middle" => case.grid().pe(case.grid().rows / 2, case.grid().cols / 2),
        _ => 0,
    };
    let inner = case.with(kind, root);
    let name = params.get(param).unwrap_or(default);
    if !parts(case, kind).any(|a| a.name() == name) {
        return Err(AlgorithmError::Param {
            algorithm: NAME,
            param,
            found: name.to_owned(),
            accepted: parts(case, kind).map(|a| a.name()).collect::<Vec<_>>().join(", "),
        });
    }
    let mut rest = params.only(|k| !["root", "reduce", "broadcast"].contains(&k));
    if case.kind() != PlaceKind::Wafer {
        // Two parts may have different parameters.
        let own = find(name)?.params();
        rest = rest.only(|k| own.iter().any(|p| p.name == k));
    }
    let (algorithm, rest) = resolve(name, &inner, &rest)?;
    Ok((algorithm, inner, rest))
}

/// The algorithms that make `kind` on the case's machines.
fn parts(case: &Case, kind: Kind) -> impl Iterator<Item = &'static dyn Algorithm> {
    let place = case.kind();
    ALGORITHMS.iter().copied().filter(move |a| a.collectives().contains(&kind) && a.runs_on().contains(&place))
}

fn reduce_part(case: &Case, params: &Params) -> Result<Part, AlgorithmError> {
    let default = match case.kind() {
        PlaceKind::Endpoint | PlaceKind::Network | PlaceKind::InNetwork => "binomial",
        PlaceKind::Wafer if case.grid().is_line() => "auto-gen",
        PlaceKind::Wafer => "x-y",
    };
    part(case, params, Kind::Reduce, "reduce", default)
}

/// Among ranks; a wafer floods.
fn broadcast_part(case: &Case, params: &Params) -> Result<Part, AlgorithmError> {
    part(case, params, Kind::Broadcast, "broadcast", "binomial")
}

impl Algorithm for ReduceBroadcast {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "a reduce to one rank or PE, then a broadcast from it; on a wafer a flood"
    }

    fn reference(&self) -> &'static str {
        "Near-Optimal Wafer-Scale Reduce, sections 6.1 and 7.4"
    }

    fn collectives(&self) -> &'static [Kind] {
        &[Kind::Allreduce]
    }

    fn runs_on(&self) -> &'static [PlaceKind] {
        &[PlaceKind::Wafer, PlaceKind::Endpoint, PlaceKind::Network]
    }

    fn params(&self) -> &'static [Param] {
        &[
            Param { name: "broadcast", values: "among ranks: a broadcast (default: binomial); on a wafer: flood" },
            Param {
                name: "reduce",
                values: "a reduce (default: binomial; on a wafer auto-gen on a line, x-y on a grid)",
            },
            Param { name: "root", values: "end, middle (default: end)" },
        ]
    }

    fn supports(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        if case.collective.kind != Kind::Allreduce {
            let reason = format!("it makes an allreduce, not {}", case.collective.kind);
            return Err(AlgorithmError::Unsupported { algorithm: NAME, reason });
        }
        reduce_part(case, params)?;
        if case.kind() != PlaceKind::Wafer {
            return broadcast_part(case, params).map(|_| ());
        }
        match params.get("broadcast") {
            None | Some("flood") => Ok(()),
            Some(found) => Err(AlgorithmError::Param {
                algorithm: NAME,
                param: "broadcast",
                found: found.to_owned(),
                accepted: "flood on a wafer".to_owned(),
            }),
        }
    }

    fn build(&self, case: &Case, params: &Params) -> Result<Placed, AlgorithmError> {
        let (reduce, inner, rest) = reduce_part(case, params)?;
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

    fn schedule(&self, case: &Case, params: &Params) -> Result<Schedule, AlgorithmError> {
        let (reduce, inner, rest) = reduce_part(case, params)?;
        let mut b = Builder::resume(reduce.schedule(&inner, &rest)?, case.collective);
        let (broadcast, inner, rest) = broadcast_part(case, params)?;
        let nodes: Vec<NodeId> = (0..case.collective.ranks).map(NodeId).collect();
        b.embed(&broadcast.schedule(&inner, &rest)?, &nodes, |_| Operand::Out(0), |_| Operand::Out(0));
        Ok(b.finish()?)
    }

    fn instructions(&self, case: &Case, params: &Params) -> Option<u64> {
        let (reduce, inner, rest) = reduce_part(case, params).ok()?;
        let all = reduce.instructions(&inner, &rest)?;
        let (broadcast, inner, rest) = broadcast_part(case, params).ok()?;
        Some(all + broadcast.instructions(&inner, &rest)?)
    }

    fn rounds(&self, case: &Case, params: &Params) -> Option<Vec<Round>> {
        let (reduce, inner, rest) = reduce_part(case, params).ok()?;
        let mut rounds = reduce.rounds(&inner, &rest)?;
        let (broadcast, inner, rest) = broadcast_part(case, params).ok()?;
        rounds.extend(broadcast.rounds(&inner, &rest)?);
        Some(rounds)
    }

    fn estimate(&self, case: &Case, params: &Params) -> Option<Estimate> {
        let (reduce, inner, rest) = reduce_part(case, params).ok()?;
        let mut estimate = reduce.estimate(&inner, &rest)?;
        if case.grid().count() > 1 {
            let terms = flood_terms(case.grid(), inner.collective.root, case.wavelets());
            estimate.phases.push(Phase::new("broadcast", terms));
        }
        Some(estimate)
    }

    fn estimate_steps(&self, case: &Case, params: &Params) -> u128 {
        reduce_part(case, params).map_or(0, |(reduce, inner, rest)| reduce.estimate_steps(&inner, &rest))
    }

    fn composed(&self) -> bool {
        true
    }

    fn candidates(&self, case: &Case) -> Vec<Params> {
        let mut all = Vec::new();
        for reduce in parts(case, Kind::Reduce) {
            for rest in reduce.candidates(&case.with(Kind::Reduce, 0)) {
                let rest = rest.with("reduce", reduce.name());
                if case.kind() != PlaceKind::Wafer {
                    // Ranks are alike, so the root may be any. What suits the vector for the reduce does for the
                    // broadcast of the same name; where there is none, all are worth a try.
                    let same = |b: &&dyn Algorithm| b.name() == reduce.name();
                    let alone = !parts(case, Kind::Broadcast).any(|b| same(&b));
                    let broadcasts = parts(case, Kind::Broadcast).filter(|b| alone || same(b));
                    all.extend(broadcasts.map(|b| rest.clone().with("broadcast", b.name())));
                    continue;
                }
                // A tree on a line means x-y with it twice on a grid, and x-y lists all pairs itself.
                if reduce.line_tree().is_some() && !case.grid().is_line() {
                    continue;
                }
                for root in ["end", "middle"] {
                    all.push(rest.clone().with("root", root));
                }
            }
        }
        all
    }
}
