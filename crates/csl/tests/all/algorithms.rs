//! Every registered algorithm, in a placement adapted to the target, is emitted.

use crate::{common, interpreter};

use std::collections::BTreeMap;
use unisono_machine::Wafer;

use common::{TARGET, inputs};
use unisono_algorithms::{ALGORITHMS, Algorithm, Case, Params};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_csl as csl;
use unisono_lower::{
    OnGrid, Placed, Placement,
    wafer::{WaferProgram, prove_and_lower},
};
use unisono_machine::{Grid, Machine};

const SHAPES: [(u32, u32); 8] = [(1, 1), (1, 2), (1, 5), (1, 16), (6, 1), (4, 4), (7, 5), (2, 9)];

fn lowered(algorithm: &dyn Algorithm, kind: Kind, grid: Grid, root: u32) -> Option<WaferProgram> {
    let wafer = Machine::preset("wse2").unwrap().get::<Wafer>().unwrap().clone();
    let ranks = grid.count() as u32;
    let collective = Collective::new(kind, ranks, 24, root.into(), Operator::Sum, Dtype::F32).unwrap();
    let case = Case::on_grid(collective, grid, 5.0);
    let params = Params::new();
    algorithm.supports(&case, &params).ok()?;
    let Placed { schedule, placement } = algorithm.build(&case, &params).unwrap();
    let placement = placement.as_ref().and_then(Placement::grid).unwrap();
    let placement = TARGET.needs.adapt(OnGrid { schedule: &schedule, placement }).unwrap();
    Some(prove_and_lower(&Placed::on_grid(schedule, placement), &wafer).unwrap())
}

/// Emits every algorithm, and counts refusals by algorithm and reason.
fn refusals() -> BTreeMap<&'static str, BTreeMap<String, u32>> {
    let mut refused: BTreeMap<&str, BTreeMap<String, u32>> = BTreeMap::new();
    for &algorithm in ALGORITHMS {
        let reasons = refused.entry(algorithm.name()).or_default();
        for &kind in algorithm.info().collectives {
            for (rows, cols) in SHAPES {
                let grid = Grid::new(rows, cols);
                let last = grid.count() as u32 - 1;
                for root in [0, last / 2, last] {
                    let Some(program) = lowered(algorithm, kind, grid, root) else { continue };
                    match csl::emit(&program, &TARGET) {
                        Ok(files) => drop(interpreter::Wafer::load(&files, &inputs(&program.collective))),
                        // Reasons begin with different locations and numbers.
                        Err(e) => *reasons.entry(e.reason.rsplit("; ").next().unwrap().to_owned()).or_default() += 1,
                    }
                }
            }
        }
    }
    refused.retain(|_, reasons| !reasons.is_empty());
    refused
}

#[test]
fn every_algorithm_is_emitted_and_obeys_the_rules() {
    let refused = refusals();
    assert!(refused.is_empty(), "{refused:?}");
}

/// Placements that are not adapted to the target are refused. In them, several children are received element by
/// element, leaves are paced, and floods of rows and columns share a color.
#[test]
fn other_placements_are_refused() {
    let wafer = Machine::preset("wse2").unwrap().get::<Wafer>().unwrap().clone();
    let cases = [
        ("kd-tree", Kind::Reduce, "take chunks of 2 or more in turns"),
        ("quad-chain", Kind::Reduce, "a vector operation runs as fast as the datapath"),
        ("x-y-allreduce", Kind::Allreduce, "on the WSE-2 a position changes one of them"),
    ];
    for (name, kind, reason) in cases {
        let grid = Grid::new(4, 4);
        let collective = Collective::new(kind, 16, 24, 0, Operator::Sum, Dtype::F32).unwrap();
        let algorithm = unisono_algorithms::find(name).unwrap();
        let placed = algorithm.build(&Case::on_grid(collective, grid, 5.0), &Params::new()).unwrap();
        let found = csl::emit(&prove_and_lower(&placed, &wafer).unwrap(), &TARGET).unwrap_err().reason;
        assert!(found.contains(reason), "{name}: {found}");
    }
}
