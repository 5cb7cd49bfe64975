//! Proofs at size: exact up to P = 1024 for every algorithm and P = 4096 for those shaped like trees, by fingerprint on
//! demand, and the placed terms of large grids.

mod common;

use common::case;
use unisono_algorithms::{ALGORITHMS, Params};
use unisono_collective::Operator;
use unisono_machine::Grid;
use unisono_schedule::verify::{Method, verify};

#[test]
fn exact_proofs_at_1024_and_4096() {
    for &algorithm in ALGORITHMS {
        for &kind in algorithm.collectives() {
            for grid in [Grid::new(1, 1024), Grid::new(32, 32), Grid::new(1, 4096), Grid::new(64, 64)] {
                let case = case(kind, grid, 1500, 0, Operator::Sum);
                let params = Params::new();
                let ring = algorithm.name() == "ring" && grid.count() > 1024;
                if ring || algorithm.supports(&case, &params).is_err() {
                    continue;
                }
                let placed = algorithm.build(&case, &params).unwrap();
                let proof = verify(&placed.schedule, Method::Auto);
                assert!(proof.holds() && proof.method == "exact", "{} on {grid}: {proof:?}", algorithm.name());
            }
        }
    }
}

#[test]
fn the_whole_wafer_by_fingerprint() {
    let case = case(unisono_collective::Kind::Allreduce, Grid::new(256, 256), 64, 0, Operator::Ordered);
    let placed = unisono_algorithms::find("reduce-broadcast").unwrap().build(&case, &Params::new()).unwrap();
    let proof = verify(&placed.schedule, Method::Fingerprint);
    assert!(proof.holds() && proof.repeatable && proof.method == "fingerprint", "{proof:?}");
}
