//! Tests of `watch`.

use std::{
    ffi::c_int,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Instant,
};

use unisono_collective::Kind;
use unisono_mpi::{
    Call,
    internals::watch::{Calls, NOTES, Notes, PATIENCE, Page, TURNS, WORDS, Watch, length},
    noted_length,
};

/// Returns the notes of two ranks on one node; a third rank is on another node.
fn notes() -> Arc<Notes> {
    let page = || -> &'static Page { Box::leak(Box::new([const { [const { AtomicU64::new(0) }; WORDS] }; NOTES])) };
    let (first, own) = (page(), page());
    Arc::new(Notes { ranks: vec![Some(first), Some(own), None], own, next: AtomicUsize::new(0) })
}

fn call(bytes: usize) -> Call {
    Call {
        kind: Kind::Broadcast,
        root: 0,
        elements: bytes,
        element_bytes: 1,
        reduction: None,
        input: std::ptr::null(),
        output: std::ptr::null_mut(),
        in_place: false,
    }
}

fn watch(notes: &Arc<Notes>, serial: c_int) -> Watch {
    Watch::new(Arc::clone(notes), Box::new([0, 1, 2]), serial, Calls::Blocking)
}

fn note(watch: &mut Watch, call: Option<&Call>) {
    let number = watch.calls.note(call.map(noted_length));
    watch.wait_for(number);
}

/// Returns true if `watch` finds another length than that of `call` after the patience.
fn is_found(watch: &mut Watch, call: &Call) -> bool {
    watch.waiting.since = Instant::now().checked_sub(2 * PATIENCE);
    watch.look(call)
}

#[test]
fn only_another_length_of_the_same_call_is_found() {
    let notes = notes();
    let mut here = watch(&notes, 3);
    note(&mut here, Some(&call(64)));
    assert!(!is_found(&mut here, &call(64)), "its own note is right");
    assert!(is_found(&mut here, &call(65)));
    note(&mut here, None);
    assert!(!is_found(&mut here, &call(65)), "another call of the communicator");
    let mut other = watch(&notes, 4);
    note(&mut other, None);
    assert!(!is_found(&mut other, &call(65)), "another communicator");
}

#[test]
fn a_note_that_is_half_written_is_none() {
    let notes = notes();
    let mut here = watch(&notes, 3);
    note(&mut here, Some(&call(64)));
    notes.own[0][1].store(length(Kind::Broadcast, 9), Ordering::Relaxed);
    assert!(!is_found(&mut here, &call(64)));
}

#[test]
fn nothing_is_found_before_the_patience_is_over() {
    let notes = notes();
    let mut here = watch(&notes, 3);
    note(&mut here, Some(&call(64)));
    assert!((0..4 * TURNS).all(|_| !here.finds_unlike(&call(65))));
}

#[test]
fn old_notes_are_overwritten() {
    let notes = notes();
    let mut here = watch(&notes, 3);
    note(&mut here, Some(&call(64)));
    let name = here.calls.name(1);
    assert_eq!(notes.noted(1, name), Some(length(Kind::Broadcast, 64)));
    (0..NOTES).for_each(|_| note(&mut here, Some(&call(64))));
    assert_eq!(notes.noted(1, name), None);
}
