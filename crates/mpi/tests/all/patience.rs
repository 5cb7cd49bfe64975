//! Tests of `patience`.

use std::{cell::RefCell, time::Duration};

use unisono_collective::Kind;
use unisono_mpi::{Awaited, Call, Patience, internals::watch::TURNS};

thread_local! {
    static TOLD: RefCell<Vec<Vec<Awaited>>> = const { RefCell::new(Vec::new()) };
}

fn tell(_: &Call, _: Duration, awaited: &[Awaited]) {
    TOLD.with_borrow_mut(|told| told.push(awaited.to_vec()));
}

fn told() -> Vec<Vec<Awaited>> {
    TOLD.take()
}

fn call() -> Call {
    Call {
        kind: Kind::Allreduce,
        root: 0,
        elements: 1,
        element_bytes: 4,
        reduction: None,
        input: std::ptr::null(),
        output: std::ptr::null_mut(),
        in_place: false,
    }
}

/// Polls `number` times with pending messages of ranks 5 and 2.
fn polls(patience: &mut Patience, number: u32) {
    for _ in 0..number {
        patience.pending(5, false);
        patience.pending(2, true);
        patience.pending(2, true);
        patience.idle(&call());
    }
}

#[test]
fn a_long_wait_is_told_once_with_its_ranks_and_then_its_end() {
    let mut patience = Patience::new(Duration::ZERO, tell);
    polls(&mut patience, TURNS);
    assert_eq!(told(), [[]; 0], "the messages are collected in the next turn");
    polls(&mut patience, 3 * TURNS);
    let (late, untaken) = (Awaited { rank: 2, arrives: true }, Awaited { rank: 5, arrives: false });
    assert_eq!(told(), [vec![late, untaken]]);
    patience.ended(&call());
    assert_eq!(told(), [vec![]]);
    patience.ended(&call());
    assert_eq!(told(), [[]; 0]);
    polls(&mut patience, TURNS + 1);
    assert_eq!(told().len(), 1, "the next wait is told too");
}

#[test]
fn messages_that_arrive_in_time_are_not_told() {
    let mut patience = Patience::new(Duration::ZERO, tell);
    for _ in 0..10 {
        polls(&mut patience, TURNS - 1);
        patience.ended(&call());
    }
    let mut patient = Patience::new(Duration::MAX, tell);
    polls(&mut patient, 10 * TURNS);
    patient.ended(&call());
    assert_eq!(told(), [[]; 0]);
}
