//! Accesses beyond an array or beyond packed memory are refused.

use unisono_discover::Box3;
use unisono_mpi::{Function, Layout};
use unisono_taskrun::{
    Arguments,
    internals::{LibraryCall, Packed, Packing},
    layout,
};

const RANKS: usize = 3;

fn eight() -> Layout {
    layout(&[8], 8).expect("one dimension")
}

fn line(elements: i64) -> Box3 {
    Box3::new([0; 3], [elements, 1, 1])
}

/// Returns packed memory of `bytes` bytes, which contains the whole array or no part.
fn side(whole: bool, bytes: usize, counts: &[usize], places: &[usize]) -> Option<Packed> {
    let parts = if whole { vec![(line(8), 0, line(8))] } else { Vec::new() };
    Some(Packed::new(&eight(), parts, bytes, counts, places).expect("it fits"))
}

fn refusal(function: Function, reduces: bool, packing: Packing) -> String {
    let arguments = Arguments { function, comm: 0, reduction: reduces.then_some((1, 1)), root: 0 };
    let unit = if reduces { 8 } else { 1 };
    let checked = LibraryCall::new(arguments, eight(), packing).checked(RANKS, true, unit);
    checked.err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn calls_stay_within_their_memory() {
    const COUNTS: &str = "counts and places of a collective do not fit its packed memory";
    const SIDES: &str = "a side of a collective is missing or not in its array";
    let given = || side(true, 64, &[64], &[]);
    let with = |got| Packing { given: given(), got, ..Packing::default() };
    let one = |got| Packing { got, shared: true, ..Packing::default() };
    let all = |bytes, count, rows: usize| side(false, bytes, &vec![count; rows], &vec![0; rows]);
    let cases = [
        (Function::Allgather, false, with(None), SIDES),
        // The memory has the bytes of one rank's part, although all ranks have parts.
        (Function::Allgather, false, with(side(false, 64, &[64], &[])), COUNTS),
        (
            Function::Allgather,
            false,
            Packing { in_place: Some((0, Vec::new())), ..with(side(false, 64 * RANKS, &[64], &[])) },
            SIDES,
        ),
        (Function::Allgatherv, false, with(all(64, 65, RANKS)), COUNTS),
        (Function::Allgatherv, false, with(all(640, 64, RANKS + 1)), COUNTS),
        (
            Function::Allgatherv,
            false,
            Packing { in_place: Some((8, vec![56; RANKS])), ..with(all(64, 8, RANKS)) },
            SIDES,
        ),
        (
            Function::Allreduce,
            true,
            Packing { given: side(true, 64, &[9], &[]), ..one(side(true, 64, &[8], &[])) },
            COUNTS,
        ),
        (Function::Allreduce, true, with(side(true, 64, &[8], &[])), COUNTS),
        (Function::Allreduce, false, with(side(true, 64, &[64], &[])), SIDES),
        (Function::Broadcast, false, Packing { at: Some(1), ..one(side(false, 64, &[64], &[])) }, SIDES),
        (Function::Broadcast, false, Packing { at: Some(0), ..one(side(false, 64, &[64], &[])) }, ""),
        (Function::Allgather, false, with(side(false, 64 * RANKS, &[64], &[])), ""),
    ];
    for (number, (function, reduces, packing, expected)) in cases.into_iter().enumerate() {
        assert_eq!(refusal(function, reduces, packing), expected, "case {number}: {function:?}");
    }
}

#[test]
fn parts_stay_within_the_array_and_packed_memory() {
    let refused = |part: Box3, bytes, counts: &[usize]| {
        let made = Packed::new(&eight(), [(part, 0, part)], bytes, counts, &[]);
        made.err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert_eq!(refused(line(9), 72, &[72]), "a part is not in its box, or the box is not in the array");
    assert_eq!(refused(line(8), 63, &[63]), "packed memory has 63 bytes; the parts need 64");
    assert!(refused(line(8), 64, &[1 << 31]).starts_with("a count or a place is 2147483648"));
}
