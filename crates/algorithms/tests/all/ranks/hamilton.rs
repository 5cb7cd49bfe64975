//! Tests of `ranks::hamilton`.

use unisono_algorithms::ranks::hamilton::{gcd, swapped, two_cycles};

/// Returns the edge between two ranks, numbered by its end and direction, if they are neighbors.
fn edge(rows: u32, columns: u32, a: u32, b: u32) -> Option<u32> {
    let at = |v: u32| (v / columns, v % columns);
    let ((ra, ca), (rb, cb)) = (at(a), at(b));
    if ra == rb && (ca + 1) % columns == cb {
        Some(2 * a)
    } else if ra == rb && (cb + 1) % columns == ca {
        Some(2 * b)
    } else if ca == cb && (ra + 1) % rows == rb {
        Some(2 * a + 1)
    } else if ca == cb && (rb + 1) % rows == ra {
        Some(2 * b + 1)
    } else {
        None
    }
}

fn check(rows: u32, columns: u32, cycles: &[Vec<u32>; 2]) {
    let count = (rows * columns) as usize;
    let mut used = vec![false; 2 * count];
    for cycle in cycles {
        let mut met = vec![false; count];
        assert_eq!(cycle.len(), count, "{rows}x{columns}");
        for (q, &at) in cycle.iter().enumerate() {
            assert!(!std::mem::replace(&mut met[at as usize], true), "{rows}x{columns}: {at} twice");
            let to = cycle[(q + 1) % count];
            let edge = edge(rows, columns, at, to).unwrap_or_else(|| panic!("{rows}x{columns}: {at} to {to}"));
            assert!(!std::mem::replace(&mut used[edge as usize], true), "{rows}x{columns}: edge {at}-{to} twice");
        }
    }
}

#[test]
fn hamiltonian_and_edge_disjoint_on_every_torus() {
    let mut closed = 0;
    for rows in 3..=32 {
        for columns in 3..=32 {
            check(rows, columns, &two_cycles(rows, columns).unwrap());
            // The other construction is correct by itself too.
            if rows <= columns {
                check(rows, columns, &swapped(rows, columns));
            }
            closed += u32::from(rows % columns == 0 && gcd(rows, columns - 1) == 1);
        }
    }
    assert_eq!(closed, 52, "tori with the closed form");
    for (rows, columns) in [(3, 500), (501, 4), (128, 128), (63, 130), (37, 100), (100, 37)] {
        check(rows, columns, &two_cycles(rows, columns).unwrap());
    }
}

#[test]
fn sides_below_three_have_none() {
    assert_eq!(two_cycles(2, 8), None);
    assert_eq!(two_cycles(8, 1), None);
}
