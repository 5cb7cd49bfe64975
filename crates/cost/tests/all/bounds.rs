//! Lower bounds compared with brute force, with each other and with values from the papers.

use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_cost::{
    CostProblem, all_bounds, tightest,
    wafer::{
        WaferPart,
        bounds::{PaperTable, tree_energy},
    },
};
use unisono_machine::Grid;

type Case = (Collective, WaferPart);

fn case(kind: Kind, grid: Grid, root: u32, wavelets: u64) -> Case {
    let ranks = grid.count() as u32;
    let collective = Collective::new(kind, ranks, wavelets, root.into(), Operator::Sum, Dtype::F32).unwrap();
    (collective, WaferPart { grid, depth_cycles: 5.0, clock_mhz: 850.0 })
}

fn line(pes: u32, root: u32, wavelets: u64) -> Case {
    case(Kind::Reduce, Grid::new(1, pes), root, wavelets)
}

fn problem((collective, part): &Case) -> CostProblem<'_> {
    CostProblem { collective: *collective, part }
}

fn cycles(name: &str, case: &Case) -> Option<f64> {
    (all_bounds().find(|b| b.name == name).unwrap().time)(&problem(case))?.cycles
}

/// Returns the least energy of any tree toward PE 0 within a depth, by trying all parents: trees need not be in
/// pre-order.
fn brute_force(pes: usize, depth: u32) -> Option<u64> {
    fn go(at: usize, pes: usize, depth: u32, depths: &mut Vec<u32>, energy: u64) -> Option<u64> {
        if at == pes {
            return Some(energy);
        }
        let mut best: Option<u64> = None;
        for parent in 0..at {
            if depths[parent] < depth {
                depths.push(depths[parent] + 1);
                let found = go(at + 1, pes, depth, depths, energy + (at - parent) as u64);
                depths.pop();
                best = best.into_iter().chain(found).min();
            }
        }
        best
    }
    go(1, pes, depth, &mut vec![0], 0)
}

#[test]
fn the_tight_bound_is_the_least_energy_of_any_tree() {
    for pes in 1..=9u32 {
        for depth in 0..pes {
            assert_eq!(tree_energy(pes, depth), brute_force(pes as usize, depth), "P={pes} D={depth}");
        }
    }
}

#[test]
fn the_tight_bound_is_never_below_the_paper_s() {
    for pes in [2u32, 3, 4, 9, 33, 128] {
        for wavelets in [1, 5, 64, 4096] {
            let case = line(pes, 0, wavelets);
            let (paper, tight) = (cycles("paper-1d", &case).unwrap(), cycles("tight-1d", &case).unwrap());
            assert!(paper <= tight + 1e-9, "P={pes} B={wavelets}: {paper} {tight}");
            let physical = cycles("physical-1d", &case).unwrap();
            assert!(physical <= tight + 1e-9, "P={pes} B={wavelets}: {physical} {tight}");
        }
    }
}

#[test]
fn the_paper_s_bound_is_its_recursion() {
    let table = PaperTable::new(40);
    // E*(p, d) by plain recursion over i, from the text of Lemma 5.5.
    let mut e = vec![vec![u64::MAX / 4; 41]; 40];
    for row in &mut e {
        row[1] = 0;
    }
    for d in 1..40 {
        for p in 2..=40usize {
            e[d][p] = (1..p).map(|i| e[d][i] + e[d - 1][p - i] + (i.min(p - i + 1)) as u64).min().unwrap();
        }
    }
    for p in 2..=40u32 {
        for b in [1u64, 17, 300] {
            let time =
                |d: usize| b as f64 * e[d][p as usize] as f64 / f64::from(p - 1) + f64::from(p - 1) + 5.0 * d as f64;
            let want = (1..p as usize).map(time).fold(f64::INFINITY, f64::min);
            assert!((table.cycles(p, b, 5.0) - want).abs() < 1e-9, "P={p} B={b}");
        }
    }
}

#[test]
fn a_middle_root_has_a_bound_of_its_own() {
    // Both sides of 3 PEs need one hop per PE at depth 3: B + 3 + 15. At depth 2 each side needs one more hop.
    let case = line(7, 3, 1000);
    assert_eq!(cycles("tight-1d", &case), Some(1000.0 + 3.0 + 15.0));
    assert_eq!(cycles("paper-1d", &case), None);
    assert_eq!(cycles("physical-1d", &case), Some(1000.0 + 3.0 + 5.0));
}

#[test]
fn blocks_of_16_bits_may_share_wavelets() {
    // If neighbors first pack their elements into one wavelet, all other PEs receive half as many wavelets as elements.
    for (kind, want) in [(Kind::Allgather, 32.0), (Kind::ReduceScatter, 32.0), (Kind::Alltoall, 512.0)] {
        for (dtype, elements) in [(Dtype::F16, 1), (Dtype::Bf16, 3)] {
            let collective = Collective::new(kind, 64, elements, 0, Operator::Sum, dtype).unwrap();
            let part = WaferPart { grid: Grid::new(1, 64), depth_cycles: 5.0, clock_mhz: 850.0 };
            let wavelets =
                (want * elements as f64 - if kind == Kind::Alltoall { 0.0 } else { 0.5 * elements as f64 }).ceil();
            assert_eq!(cycles("blocks", &(collective, part)), Some(wavelets + 6.0), "{kind} {elements}");
        }
    }
}

#[test]
fn what_is_local_costs_nothing() {
    for kind in [Kind::Reduce, Kind::Allreduce, Kind::Broadcast, Kind::Message] {
        for (grid, wavelets) in [(Grid::new(1, 1), 9), (Grid::new(1, 5), 0), (Grid::new(4, 4), 0)] {
            let case = case(kind, grid, 0, wavelets);
            assert_eq!(tightest(&problem(&case)).unwrap().time.cycles, Some(0.0), "{kind} {grid}");
        }
    }
}
