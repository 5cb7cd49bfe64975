//! X-Y allreduce: an allreduce along every row, then along every column, each with a ring or with a reduce and a flood.
//!
//! T = T_x + T_y. Source: "Near-Optimal Wafer-Scale Reduce", section 7.4 (first method).

use unisono_base::{NodeId, narrow};
use unisono_collective::Kind;
use unisono_lower::{Estimate, Phase, Placed};
use unisono_machine::Grid;
use unisono_schedule::{Builder, Operand};

use super::{flood::flood_terms, ring};
use crate::{
    Algorithm, AlgorithmError, Case, Info, Param, Params, Profile,
    compose::{RING, line_names, line_param},
    line::{Keep, LineTree, broadcast, line_case, reduce, reduce_estimate},
};

pub struct XYAllreduce;

const INFO: Info = Info {
    name: "x-y-allreduce",
    summary: "an allreduce along every row, then along every column",
    reference: "Near-Optimal Wafer-Scale Reduce, section 7.4",
    collectives: &[Kind::Allreduce],
    params: &[
        Param { name: "x", values: "ring, or a reduce on a line to flood after, for the rows (default: auto-gen)" },
        Param { name: "y", values: "the same for the columns (default: auto-gen)" },
    ],
    composed: true,
    ..Info::ON_GRID
};

/// One dimension: its parameter, and the names of its phases with a ring and with a tree.
struct Axis {
    param: &'static str,
    ring: [&'static str; 2],
    tree: [&'static str; 2],
    /// The first color of the reduce. The floods of both dimensions have color 2: every router switches from the first
    /// flood to the second.
    color: u8,
}

const AXES: [Axis; 2] = [
    Axis { param: "x", ring: ["row-reduce-scatter", "row-allgather"], tree: ["row-reduce", "row-broadcast"], color: 0 },
    Axis {
        param: "y",
        ring: ["column-reduce-scatter", "column-allgather"],
        tree: ["column-reduce", "column-broadcast"],
        color: 3,
    },
];

fn is_ring(axis: &Axis, params: &Params) -> bool {
    params.get(axis.param) == Some(RING)
}

/// Returns the tree that the parameters name for an axis without a ring.
fn tree(axis: &Axis, params: &Params) -> Result<&'static dyn LineTree, AlgorithmError> {
    line_param(INFO.name, axis.param, "auto-gen", &[RING], params)
}

fn ring_params(params: &Params) -> Params {
    params.only(|k| k == "mapping")
}

fn emit_line(
    b: &mut Builder,
    case: &Case,
    axis: &Axis,
    line: &[NodeId],
    own: fn(u32) -> Operand,
    keep: &mut Keep,
    params: &Params,
) -> Result<(), AlgorithmError> {
    if is_ring(axis, params) {
        return ring::emit(b, line, own, axis.ring, &ring_params(params));
    }
    let tree = tree(axis, params)?;
    let sides = line_case(tree, case, narrow::<u32>(line.len()), 0, params)?;
    b.phase(axis.tree[0]);
    let at = reduce(b, line, &sides, &|_| own(0), keep, axis.color);
    if line.len() > 1 {
        b.phase(axis.tree[1]);
    }
    if at != Operand::Out(0) {
        b.combine(line[0], 0, case.collective.elements, &[at], &[Operand::Out(0)]);
    }
    broadcast(b, line[0], Operand::Out(0), line.iter().copied(), keep, 2);
    Ok(())
}

impl Algorithm for XYAllreduce {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn supports(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        let no = |reason: String| Err(AlgorithmError::Unsupported { algorithm: INFO.name, reason });
        let c = case.collective;
        if c.kind != Kind::Allreduce {
            return no(format!("it makes an allreduce, not {}", c.kind));
        }
        let mut instructions = 0;
        for (axis, [pes, lines]) in
            AXES.iter().zip([[case.grid().cols, case.grid().rows], [case.grid().rows, case.grid().cols]])
        {
            if !is_ring(axis, params) {
                line_case(tree(axis, params)?, case, pes, 0, params)?;
                continue;
            }
            if !c.operator.commutative() {
                return no(format!("a ring reorders operands, and operator {} does not commute", c.operator));
            }
            ring::mapping(&ring_params(params))?;
            instructions += u64::from(lines) * ring::instructions(pes);
        }
        ring::too_large(instructions).map_or(Ok(()), no)
    }

    fn build(&self, case: &Case, params: &Params) -> Result<Placed, AlgorithmError> {
        let grid = case.grid();
        let mut b = Builder::new(case.collective);
        let mut keep = Keep::default();
        for r in 0..grid.rows {
            let row: Vec<NodeId> = (0..grid.cols).map(|c| NodeId(grid.pe(r, c))).collect();
            emit_line(&mut b, case, &AXES[0], &row, Operand::In, &mut keep, params)?;
        }
        if AXES.iter().any(|axis| is_ring(axis, params)) {
            // The lanes are joined because a ring has two, and both dimensions write the output.
            b.join_lanes();
        }
        if grid.rows > 1 {
            for c in 0..grid.cols {
                let column: Vec<NodeId> = (0..grid.rows).map(|r| NodeId(grid.pe(r, c))).collect();
                emit_line(&mut b, case, &AXES[1], &column, Operand::Out, &mut keep, params)?;
            }
        }
        let schedule = b.finish()?;
        let placement = keep.placement(grid, &schedule);
        Ok(Placed::on_grid(schedule, placement))
    }

    fn profile(&self, case: &Case, params: &Params) -> Option<Profile> {
        let c = case.collective;
        let mut phases = Vec::new();
        for (axis, pes) in AXES.iter().zip([case.grid().cols, case.grid().rows]).filter(|(_, pes)| *pes > 1) {
            if is_ring(axis, params) {
                phases.extend(ring::estimate(pes, c.elements, c.element_bytes(), axis.ring, &ring_params(params))?);
                continue;
            }
            let tree = tree(axis, params).ok()?;
            let sides = line_case(tree, case, pes, 0, params).ok()?;
            phases.push(reduce_estimate(axis.tree[0], tree, &sides, case));
            phases.push(Phase::new(axis.tree[1], flood_terms(Grid::new(1, pes), 0, case.wavelets())));
        }
        Some(Profile::Terms(Estimate { phases }))
    }

    fn candidates(&self, case: &Case) -> Vec<Params> {
        if case.grid().is_line() {
            return Vec::new();
        }
        let names = || line_names().chain([RING]);
        names().flat_map(|x| names().map(move |y| Params::new().with("x", x).with("y", y))).collect()
    }
}
