//! Tests of `msccl::ops`.

use unisono_gpu::internals::ops::{Buffer, End, Op, Place, lower};

const fn at(buffer: Buffer, chunk: u32) -> Place {
    Place { buffer, chunk }
}
const I: Place = at(Buffer::Input, 0);
const O: Place = at(Buffer::Output, 0);
const T: Place = at(Buffer::Scratch, 9);

#[test]
fn every_step_type_of_the_format_comes_about() {
    let (i, o, r, s) = (End::Memory(I), End::Memory(O), End::Wire(1), End::Wire(2));
    let all = |sources: &[End<u8>], sinks: &[End<u8>]| lower(sources, sinks, T, |_, _| true);
    assert_eq!(all(&[i], &[s]), [Op::Send { from: I, to: 2 }]);
    assert_eq!(all(&[i], &[o]), [Op::Copy { from: I, into: O }]);
    assert_eq!(all(&[r], &[o]), [Op::Receive { from: 1, into: O, on: None }]);
    assert_eq!(all(&[r], &[o, s]), [Op::Receive { from: 1, into: O, on: Some(2) }]);
    assert_eq!(all(&[o, i], &[o]), [Op::Reduce { from: I, into: O }]);
    assert_eq!(all(&[i, o], &[o]), [Op::Reduce { from: I, into: O }]);
    assert_eq!(all(&[i, r], &[o]), [Op::ReceiveReduce { from: 1, with: I, into: Some(O), on: None }]);
    assert_eq!(all(&[r, i], &[s]), [Op::ReceiveReduce { from: 1, with: I, into: None, on: Some(2) }]);
    assert_eq!(all(&[r, i], &[s, o]), [Op::ReceiveReduce { from: 1, with: I, into: Some(O), on: Some(2) }]);
}

#[test]
fn a_sink_that_is_still_to_be_read_is_no_home() {
    let (i, o) = (End::Memory(I), End::Memory(O));
    let ops = lower::<u8>(&[i, End::Memory(at(Buffer::Input, 4)), o], &[o], T, |_, _| false);
    let b = at(Buffer::Input, 4);
    assert_eq!(
        ops,
        [
            Op::Copy { from: I, into: T },
            Op::Reduce { from: b, into: T },
            Op::Reduce { from: O, into: T },
            Op::Copy { from: T, into: O }
        ]
    );
}

#[test]
fn what_is_not_joined_goes_through_memory() {
    let ops = lower(&[End::Wire(1), End::Memory(I)], &[End::Wire(2), End::Wire(3)], T, |_, to| to == 3);
    let first = Op::ReceiveReduce { from: 1, with: I, into: Some(T), on: Some(3) };
    assert_eq!(ops, [first, Op::Send { from: T, to: 2 }]);
}
