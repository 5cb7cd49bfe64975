//! Tests of `catalog::two_phase_searched`.

use unisono_algorithms::{
    Params,
    internals::{
        two_phase::grouped,
        two_phase_searched::{TwoPhaseSearched, best_group},
    },
    line::{LineTree, Side, Sides},
};

#[test]
fn the_note_says_the_group() {
    let note = |left: u32, right: u32, wavelets| {
        let sides = TwoPhaseSearched.sides(left, right, wavelets, 5.0, &Params::new()).unwrap();
        (TwoPhaseSearched.note(&sides), [left, right].map(|far| best_group(far + 1, wavelets, 5.0)))
    };
    for pes in 3..200 {
        for wavelets in [1, 64, 5000] {
            let (note, [_, group]) = note(0, pes - 1, wavelets);
            assert_eq!(note, Some(format!("groups of {group}")), "{pes} {wavelets}");
        }
    }
    let (both, [left, right]) = note(20, 90, 64);
    assert_eq!(both, Some(format!("groups of {left} and {right}")));
    assert_eq!(note(0, 1, 64).0, None);
}

#[test]
fn the_closed_form_is_that_of_the_tree() {
    for pes in [3u32, 8, 17, 40] {
        for wavelets in [1u64, 16, 300] {
            let time = |group| {
                let sides = Sides { left: Side::new(vec![0]), right: grouped(pes, group) };
                let t = sides.terms(wavelets);
                t.contention.max(t.energy / t.links + t.distance) + 5.0 * t.depth
            };
            let least = (2..pes).map(time).fold(f64::INFINITY, f64::min);
            assert_eq!(time(best_group(pes, wavelets, 5.0)), least, "{pes} {wavelets}");
        }
    }
}
