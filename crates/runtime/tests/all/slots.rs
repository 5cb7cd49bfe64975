//! Slots of scratch memory for received messages are added until the waits have no cycle, and no more than that.

use unisono_base::NodeId;
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_runtime::{Blocks, Executor, Slice, Transport, local};
use unisono_schedule::{
    Builder, Operand,
    stored::{Stored, store},
    verify::{Method, Verified},
};

/// Two ranks each send five messages before they read one. With `through_one_place`, all messages are sent from the
/// same element of scratch memory, so each send must end before the next value is written.
fn exchange(kind: Kind, through_one_place: bool) -> Stored {
    let c = Collective::new(kind, 2, 5, 0, Operator::Sum, Dtype::I64).unwrap();
    let mut b = Builder::new(c);
    let streams: Vec<_> = (0..2).map(|r| b.stream(NodeId(r), &[NodeId(1 - r)])).collect();
    for r in 0..2u32 {
        let (node, mine, theirs) = (NodeId(r), Operand::Stream(streams[r as usize]), streams[1 - r as usize]);
        b.scratch(node, 1);
        for k in 0..5 {
            if through_one_place {
                b.combine(node, 0, 1, &[Operand::In(k)], &[Operand::Tmp(0)]);
                b.combine(node, 0, 1, &[Operand::Tmp(0)], &[mine]);
            } else {
                b.combine(node, 0, 1, &[Operand::In(k)], &[mine]);
            }
        }
        for k in 0..5 {
            if kind == Kind::Allreduce {
                b.combine(node, 0, 1, &[Operand::In(k), Operand::Stream(theirs)], &[Operand::Out(k)]);
            } else {
                b.combine(node, 0, 1, &[Operand::Stream(theirs)], &[Operand::Out(5 * (1 - r) + k)]);
                b.combine(node, 0, 1, &[Operand::In(k)], &[Operand::Out(5 * r + k)]);
            }
        }
    }
    let stored = store(&Verified::new(b.finish().unwrap(), Method::Exact).unwrap()).unwrap();
    let inputs: Vec<Vec<i64>> = (0..2).map(|r| (0..5).map(|k| 10 * r + k).collect()).collect();
    let expected =
        if kind == Kind::Allreduce { vec![10, 12, 14, 16, 18] } else { vec![0, 1, 2, 3, 4, 10, 11, 12, 13, 14] };
    for seed in 0..200 {
        let outputs = local::run(stored.facts(), stored.programs(), 5, &inputs, seed).unwrap();
        assert_eq!(outputs, vec![expected.clone(); 2]);
    }
    stored
}

#[test]
fn messages_that_land_at_their_end_need_no_slot() {
    assert_eq!(exchange(Kind::Allgather, true).programs()[0].scratch_blocks, 1);
}

#[test]
fn two_slots_serve_where_nothing_waits_for_its_send() {
    assert_eq!(exchange(Kind::Allreduce, false).programs()[0].scratch_blocks, 1 + 2);
}

#[test]
fn slots_are_added_where_two_would_wait_in_a_circle() {
    // With two slots, neither rank could send its fourth message before it has read one, which it does after all sends.
    assert_eq!(exchange(Kind::Allreduce, true).programs()[0].scratch_blocks, 1 + 5);
}

/// A message layer whose receives end only inside `wait`, like a library that moves messages only while it waits.
struct EndsInWait;

impl Transport for EndsInWait {
    /// True for a send, false for a receive.
    type Request = bool;
    type Error = &'static str;

    fn send(&mut self, _: u32, _: u32, _: Slice) -> Result<bool, Self::Error> {
        Ok(true)
    }

    fn receive(&mut self, _: u32, _: u32, _: Slice) -> Result<bool, Self::Error> {
        Ok(false)
    }

    fn test(&mut self, request: &mut bool) -> Result<bool, Self::Error> {
        Ok(*request)
    }

    fn wait(&mut self, _: &mut bool) -> Result<(), Self::Error> {
        Ok(())
    }

    fn idle(&mut self) -> Result<(), Self::Error> {
        Err("the rank polls, and could wait inside of the message layer")
    }

    fn give_up(&mut self, _: &mut bool) {}

    fn copy(&mut self, _: Slice, _: Slice) {}

    fn combine(&mut self, _: Slice, _: Slice, _: Slice) -> Result<(), Self::Error> {
        Ok(())
    }
}

#[test]
fn a_rank_with_one_lane_waits_inside_the_message_layer() {
    for (kind, through_one_place) in [(Kind::Allreduce, false), (Kind::Allreduce, true), (Kind::Allgather, true)] {
        let stored = exchange(kind, through_one_place);
        let blocks = Blocks::new(stored.facts(), 5).unwrap();
        for program in stored.programs() {
            assert_eq!(program.lanes.len(), 1);
            assert_eq!(Executor::new(program.clone()).run(&blocks, &mut EndsInWait), Ok(()));
        }
    }
}
