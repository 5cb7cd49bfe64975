//! Large proofs: exact up to P = 1024 for every algorithm and P = 4096 for trees in the long run, on smaller grids
//! otherwise; by fingerprint on request; the terms of large grids; the numbers of instructions among very many ranks.

use crate::{common, soak};

use common::{among, case};
use unisono_algorithms::{ALGORITHMS, Means, Params, find};
use unisono_collective::{Kind, Operator};
use unisono_machine::Grid;
use unisono_schedule::verify::{Method, verify};

/// Proves every algorithm on a grid, with or without rings.
fn exact_proofs(grid: Grid, rings: bool) {
    for &algorithm in ALGORITHMS {
        for &kind in algorithm.info().collectives {
            let case = case(kind, grid, 1500, 0, Operator::Sum);
            let params = Params::new();
            let left_out = algorithm.name() == "ring" && !rings;
            if left_out || algorithm.supports(&case, &params).is_err() {
                continue;
            }
            let placed = algorithm.build(&case, &params).unwrap();
            let proof = verify(&placed.schedule, Method::Auto);
            assert!(proof.holds() && proof.method == "exact", "{} on {grid}: {proof:?}", algorithm.name());
        }
    }
}

#[test]
fn exact_proofs_on_a_line() {
    exact_proofs(Grid::new(1, if soak::is_on() { 1024 } else { 200 }), true);
}

#[test]
fn exact_proofs_on_a_square() {
    exact_proofs(if soak::is_on() { Grid::new(32, 32) } else { Grid::new(16, 16) }, true);
}

#[test]
fn exact_proofs_on_a_long_line_but_for_rings() {
    exact_proofs(Grid::new(1, if soak::is_on() { 4096 } else { 400 }), false);
}

#[test]
fn exact_proofs_on_a_large_square_but_for_rings() {
    exact_proofs(if soak::is_on() { Grid::new(64, 64) } else { Grid::new(20, 21) }, false);
}

#[test]
fn the_whole_wafer_by_fingerprint() {
    let case = case(Kind::Allreduce, Grid::new(256, 256), 64, 0, Operator::Ordered);
    let placed = find("reduce-broadcast").unwrap().build(&case, &Params::new()).unwrap();
    let proof = verify(&placed.schedule, Method::Fingerprint);
    assert!(proof.holds() && proof.repeatable && proof.method == "fingerprint", "{proof:?}");
}

#[test]
fn exact_proofs_among_many_ranks() {
    for &algorithm in ALGORITHMS.iter().filter(|a| a.info().needs.contains(&Means::Messages)) {
        for &kind in algorithm.info().collectives {
            // If ranks store the blocks of all other ranks, their proofs do too.
            let blocks = matches!(kind, Kind::Allgather | Kind::Alltoall | Kind::ReduceScatter);
            let sizes = match (soak::is_on(), blocks) {
                (true, true) => [100, 128],
                (true, false) => [1000, 256],
                (false, true) => [50, 64],
                (false, false) => [300, 128],
            };
            for ranks in sizes {
                let case = among(kind, ranks, if blocks { 1 } else { 700 }, 0, Operator::Sum);
                if algorithm.supports(&case, &Params::new()).is_err() {
                    continue;
                }
                let proof = verify(&algorithm.build(&case, &Params::new()).unwrap().schedule, Method::Auto);
                let name = algorithm.name();
                assert!(proof.holds(), "{name} {kind} among {ranks}: {proof:?}");
                // A cycle winds through a torus, so the ranks along it are not intervals, and their sets exceed the
                // limit of exact proofs.
                let winds = name == "dual-rings" && ranks == 1000;
                assert!(winds || proof.method == "exact", "{name} {kind} among {ranks}: {proof:?}");
            }
        }
    }
}

#[test]
fn schedules_of_very_many_ranks_stay_small() {
    // Exponents of 2. The counts are exact for any exponent. The long run uses the sizes of the largest machines.
    let (wide, deep, long, square) = if soak::is_on() { (20, 16, 14, 10) } else { (15, 11, 10, 8) };
    for (name, kind, log, most) in [
        // Exactly two for every second rank, and one for every other rank.
        ("binomial", Kind::Reduce, wide, 3 << (wide - 1)),
        ("binomial", Kind::Broadcast, wide, 1 << wide),
        ("binomial", Kind::Gather, wide, 5 << (wide - 1)),
        ("pipelined-chain", Kind::Reduce, wide, 1 << wide),
        ("linear", Kind::Scan, wide, 1 << wide),
        // One for each rank and round, and the first message.
        ("dissemination", Kind::Barrier, deep, (deep + 1) << deep),
        ("recursive-doubling", Kind::Scan, deep, (deep + 1) << deep),
        ("rabenseifner", Kind::Allreduce, long, (4 * long) << long),
        ("bruck", Kind::Allgather, long, (2 * long + 3) << long),
        ("ring", Kind::Allgather, square, 1 << (2 * square)),
    ] {
        let case = among(kind, 1 << log, 1, 0, Operator::Sum);
        let schedule = find(name).unwrap().build(&case, &Params::new()).unwrap().schedule;
        assert!(schedule.instr_count() <= most, "{name} {kind}: {} > {most}", schedule.instr_count());
    }
}
