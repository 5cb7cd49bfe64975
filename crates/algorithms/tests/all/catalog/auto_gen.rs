//! Tests of `catalog::auto_gen`.

use unisono_algorithms::{
    internals::auto_gen::{best, energy, tree},
    line::{Side, Sides},
};

/// Returns the least energy e(P, D, C) of a tree with P PEs, depth D and contention C by its recursion, indexed by D, C
/// and P; `None` without a tree.
fn recursion(most: usize, depth: usize, contention: usize) -> Vec<Vec<Vec<Option<u64>>>> {
    let mut e = vec![vec![vec![None; most + 1]; contention + 1]; depth + 1];
    for d in 0..=depth {
        for c in 0..=contention {
            e[d][c][1] = Some(0);
            for p in 2..=most {
                if d > 0 && c > 0 {
                    e[d][c][p] = (1..p).filter_map(|i| Some(e[d][c - 1][i]? + e[d - 1][c][p - i]? + i as u64)).min();
                }
            }
        }
    }
    e
}

#[test]
fn the_closed_form_is_the_recursion() {
    let e = recursion(40, 39, 39);
    for pes in 2..=40u32 {
        for depth in 1..pes {
            let (energy, contention) = energy(pes, depth).unwrap();
            assert_eq!(e[depth as usize][contention as usize][pes as usize], Some(energy), "{pes} {depth}");
            assert_eq!(e[depth as usize][contention as usize - 1][pes as usize], None, "least contention");
            assert_eq!(e[depth as usize][39][pes as usize], Some(energy), "more contention gains nothing");
        }
    }
}

#[test]
fn trees_have_the_energy_depth_and_contention_they_promise() {
    for pes in (1..70).chain([512, 1000]) {
        for depth in (1..pes).filter(|d| *d < 20 || d % 97 == 0) {
            let (energy, contention) = energy(pes, depth).unwrap();
            let sides = Sides { left: Side::new(vec![0]), right: tree(pes, depth, contention) };
            let t = sides.terms(1);
            assert_eq!(t.energy as u64, energy, "{pes} {depth}");
            assert!(t.depth <= f64::from(depth) && t.contention <= f64::from(contention), "{pes} {depth} {t:?}");
        }
    }
}

#[test]
fn the_reference_values_hold() {
    let s = best(512, 1, 5.0).unwrap();
    assert_eq!((s.depth, s.contention, s.energy), (3, 13, 4836));
    let s = best(512, 256, 5.0).unwrap();
    assert_eq!((s.depth, s.contention, s.energy), (31, 2, 991));
    assert!((s.cycles - 1162.47).abs() < 0.01);
    assert!((best(512, 1024, 5.0).unwrap().cycles - 2651.88).abs() < 0.01);
    assert_eq!(best(512, 4096, 5.0).unwrap().depth, 511);
}
