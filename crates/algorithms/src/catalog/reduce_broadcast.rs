//! Reduce, then broadcast: an allreduce by any reduce, then a broadcast. Among ranks this is any broadcast, on a wafer
//! a flood. The root is rank 0, or on a wafer it may be in the middle. All ranks get the root's result, so they end
//! with the same bits.
//!
//! T = T_reduce + T_broadcast. Source: "Near-Optimal Wafer-Scale Reduce", sections 6.1 and 7.4 (second method).

use unisono_base::NodeId;
use unisono_collective::Kind;
use unisono_lower::{ANY_COLOR, Phase, Placed, Placement};
use unisono_schedule::{Builder, Operand};

use super::flood::flood_terms;
use crate::{
    ALGORITHMS, Algorithm, AlgorithmError, Case, Formula, Info, Means, Param, Params, Profile, Size,
    compose::{find, resolve},
    line::{Keep, broadcast},
};

pub struct ReduceBroadcast;

const INFO: Info = Info {
    name: "reduce-broadcast",
    summary: "a reduce to one rank or PE, then a broadcast from it; on a wafer a flood",
    reference: "Near-Optimal Wafer-Scale Reduce, sections 6.1 and 7.4",
    collectives: &[Kind::Allreduce],
    params: &[
        Param { name: "broadcast", values: "among ranks: a broadcast (default: binomial); on a wafer: flood" },
        Param { name: "reduce", values: "a reduce (default: binomial; on a wafer auto-gen on a line, x-y on a grid)" },
        Param { name: "root", values: "end, middle (default: end)" },
    ],
    needs: &[Means::Grid, Means::Messages],
    formulas: &[Formula::new("paper", &[Kind::Allreduce], "T_reduce + T_broadcast")
        .when("T_reduce and T_broadcast are the times of its parts")],
    sequences: &[(Kind::Allreduce, &[Kind::Reduce, Kind::Broadcast])],
    composed: true,
};

/// The algorithm of the reduce or of the broadcast, with its case and its own parameters.
type Part<'a> = (&'static dyn Algorithm, Case<'a>, Params);

fn part<'a>(
    case: &Case<'a>,
    params: &Params,
    kind: Kind,
    param: &'static str,
    default: &str,
) -> Result<Part<'a>, AlgorithmError> {
    let root = match params.choice(INFO.name, "root", &["end", "middle"])? {
        "middle" => case.grid().pe(case.grid().rows / 2, case.grid().cols / 2),
        _ => 0,
    };
    let inner = case.with(kind, root);
    let name = params.get(param).unwrap_or(default);
    if !parts(case, kind).any(|a| a.name() == name) {
        return Err(AlgorithmError::Param {
            algorithm: INFO.name,
            param,
            found: name.to_owned(),
            accepted: parts(case, kind).map(|a| a.name()).collect::<Vec<_>>().join(", "),
        });
    }
    let mut rest = params.only(|k| !["root", "reduce", "broadcast"].contains(&k));
    if !case.offers().contains(&Means::Grid) {
        // The reduce and the broadcast may have different parameters.
        let own = find(name)?.info().params;
        rest = rest.only(|k| own.iter().any(|p| p.name == k));
    }
    let (algorithm, rest) = resolve(name, &inner, &rest)?;
    Ok((algorithm, inner, rest))
}

/// Returns the algorithms for `kind` that can use messages, or on a wafer the grid. Algorithms that need the links of a
/// network are omitted: a forest, for example, is built for one collective.
fn parts(case: &Case, kind: Kind) -> impl Iterator<Item = &'static dyn Algorithm> {
    let offered: &[Means] = if case.offers().contains(&Means::Messages) { &[Means::Messages] } else { case.offers() };
    ALGORITHMS.iter().copied().filter(move |a| a.info().serves(kind, offered))
}

fn reduce_part<'a>(case: &Case<'a>, params: &Params) -> Result<Part<'a>, AlgorithmError> {
    let default = match case.offers().contains(&Means::Grid) {
        true if case.grid().is_line() => "auto-gen",
        true => "x-y",
        false => "binomial",
    };
    part(case, params, Kind::Reduce, "reduce", default)
}

/// Returns the broadcast among ranks. On a wafer the broadcast is always a flood.
fn broadcast_part<'a>(case: &Case<'a>, params: &Params) -> Result<Part<'a>, AlgorithmError> {
    part(case, params, Kind::Broadcast, "broadcast", "binomial")
}

impl Algorithm for ReduceBroadcast {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn supports(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        if case.collective.kind != Kind::Allreduce {
            let reason = format!("it makes an allreduce, not {}", case.collective.kind);
            return Err(AlgorithmError::Unsupported { algorithm: INFO.name, reason });
        }
        reduce_part(case, params)?;
        if !case.offers().contains(&Means::Grid) {
            return broadcast_part(case, params).map(|_| ());
        }
        match params.get("broadcast") {
            None | Some("flood") => Ok(()),
            Some(found) => Err(AlgorithmError::Param {
                algorithm: INFO.name,
                param: "broadcast",
                found: found.to_owned(),
                accepted: "flood on a wafer".to_owned(),
            }),
        }
    }

    fn build(&self, case: &Case, params: &Params) -> Result<Placed, AlgorithmError> {
        let (reduce, inner, rest) = reduce_part(case, params)?;
        let Placed { schedule, placement } = reduce.build(&inner, &rest)?;
        // The builder continues the reduce as an allreduce, in which partial results may be in the output.
        let mut b = Builder::resume(schedule, case.collective);
        let nodes = (0..case.collective.ranks).map(NodeId);
        let Some(Placement::Grid(placement)) = placement else {
            let (broadcast, inner, rest) = broadcast_part(case, params)?;
            let broadcast = broadcast.build(&inner, &rest)?.schedule;
            b.embed(&broadcast, &nodes.collect::<Vec<_>>(), |_| Operand::Out(0), |_| Operand::Out(0));
            return Ok(Placed::among_ranks(b.finish()?));
        };
        // The flood needs a color that the reduce does not use.
        let colors = &placement.colors;
        let color = colors.iter().copied().filter(|&c| c != ANY_COLOR).max().map_or(0, |c| c + 1);
        let mut keep = Keep::resume(&placement);
        let root = NodeId(inner.collective.root);
        b.phase("broadcast");
        broadcast(&mut b, root, Operand::Out(0), nodes, &mut keep, color);
        let schedule = b.finish()?;
        let colors = keep.placement(case.grid(), &schedule).colors;
        let placement = placement.with_colors(&schedule, colors);
        Ok(Placed::on_grid(schedule, placement))
    }

    fn profile(&self, case: &Case, params: &Params) -> Option<Profile> {
        let (reduce, inner, rest) = reduce_part(case, params).ok()?;
        match reduce.profile(&inner, &rest)? {
            Profile::Terms(mut estimate) => {
                if case.grid().count() > 1 {
                    let terms = flood_terms(case.grid(), inner.collective.root, case.wavelets());
                    estimate.phases.push(Phase::new("broadcast", terms));
                }
                Some(Profile::Terms(estimate))
            }
            Profile::Rounds(mut rounds) => {
                let (broadcast, inner, rest) = broadcast_part(case, params).ok()?;
                let Profile::Rounds(more) = broadcast.profile(&inner, &rest)? else { return None };
                rounds.extend(more);
                Some(Profile::Rounds(rounds))
            }
            Profile::Exchanges(mut exchanges) => {
                let (broadcast, inner, rest) = broadcast_part(case, params).ok()?;
                let Profile::Exchanges(more) = broadcast.profile(&inner, &rest)? else { return None };
                exchanges.extend(more);
                Some(Profile::Exchanges(exchanges))
            }
            Profile::Trees(trees) => {
                let (broadcast, inner, rest) = broadcast_part(case, params).ok()?;
                let Profile::Trees(more) = broadcast.profile(&inner, &rest)? else { return None };
                Some(Profile::Trees(trees.then(more)))
            }
            Profile::Registers(_) => None,
        }
    }

    fn size(&self, case: &Case, params: &Params) -> Size {
        let Ok((reduce, inner, rest)) = reduce_part(case, params) else { return Size::default() };
        let reduce = reduce.size(&inner, &rest);
        let broadcast = broadcast_part(case, params).ok().filter(|_| case.offers().contains(&Means::Messages));
        let more = broadcast.and_then(|(broadcast, inner, rest)| broadcast.size(&inner, &rest).instructions);
        let instructions = reduce.instructions.zip(more).map(|(a, b)| a + b);
        Size { instructions, ..reduce }
    }

    fn candidates(&self, case: &Case) -> Vec<Params> {
        let mut all = Vec::new();
        for reduce in parts(case, Kind::Reduce) {
            for rest in reduce.candidates(&case.with(Kind::Reduce, 0)) {
                let rest = rest.with("reduce", reduce.name());
                if !case.offers().contains(&Means::Grid) {
                    // The ranks are equivalent, so the choice of the root does not matter. The parameters of the reduce
                    // also suit the broadcast of the same name. If no broadcast has that name, each broadcast that a
                    // plan lists is a candidate.
                    let same = |b: &&dyn Algorithm| b.name() == reduce.name();
                    let alone = !parts(case, Kind::Broadcast).any(|b| same(&b));
                    let is_listed = |b: &&dyn Algorithm| !b.candidates(&case.with(Kind::Broadcast, 0)).is_empty();
                    let broadcasts = parts(case, Kind::Broadcast).filter(|b| same(b) || alone && is_listed(b));
                    all.extend(broadcasts.map(|b| rest.clone().with("broadcast", b.name())));
                    continue;
                }
                // On a grid with several rows and columns, a tree on a line would mean `x-y` with that tree in both
                // dimensions. The candidates of `x-y` already include all pairs of trees.
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
