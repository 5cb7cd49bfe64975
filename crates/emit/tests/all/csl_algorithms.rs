//! Every registered algorithm, lowered and emitted: it reads back and passes the checks, or is refused for the reason
//! that stands here.

use crate::common;

use std::collections::BTreeMap;
use unisono_machine::Wafer;

use common::{TARGET, round_trip};
use unisono_algorithms::{ALGORITHMS, Algorithm, Case, Params};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_emit::csl;
use unisono_lower::wafer::{WaferProgram, prove_and_lower};
use unisono_machine::{Grid, Machine};

const SHAPES: [(u32, u32); 8] = [(1, 1), (1, 2), (1, 5), (1, 16), (6, 1), (4, 4), (7, 5), (2, 9)];

fn lowered(algorithm: &dyn Algorithm, kind: Kind, grid: Grid, root: u32) -> Option<WaferProgram> {
    let wafer = Machine::preset("wse2").unwrap().get::<Wafer>().unwrap().clone();
    let ranks = grid.count() as u32;
    let collective = Collective::new(kind, ranks, 24, root.into(), Operator::Sum, Dtype::F32).unwrap();
    let case = Case::on_grid(collective, grid, 5.0);
    let params = Params::new();
    algorithm.supports(&case, &params).ok()?;
    let placed = algorithm.build(&case, &params).unwrap();
    Some(prove_and_lower(&placed, &wafer).unwrap())
}

/// Emits what can be, and says how often each algorithm was refused for which reason.
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
                        Ok(_) => drop(round_trip(&program)),
                        // The place and the numbers in front differ.
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
fn algorithms_read_back_or_are_refused() {
    let refused = refusals();
    let reasons = |name: &str| refused[name].keys().map(String::as_str).collect::<Vec<_>>();
    // Several inputs are added element by element, and leaves are paced.
    for name in ["kd-tree", "quad-chain", "quad-two-phase", "slack-tree", "xy-yx"] {
        assert_eq!(
            reasons(name),
            ["a vector operation has 2 sources", "a vector operation runs as fast as the datapath"]
        );
    }
    // Rows and columns are flooded on one color, from other sides.
    assert_eq!(reasons("x-y-allreduce"), ["on the WSE-2 a position changes one of them"]);
    assert_eq!(refused.len(), 6, "{refused:?}");
}
