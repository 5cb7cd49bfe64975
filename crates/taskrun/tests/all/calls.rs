//! The list of calls under way, with calls that end after a number of polls.

use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use unisono_mpi::{Failed, Outcome};
use unisono_taskrun::internals::{CallList, Phase, Polled, Slot};

/// A call that is complete after a number of polls, or, with `None`, fails immediately. The second field counts the
/// polls.
struct Scripted(Option<u64>, u64);

impl Polled for Scripted {
    fn poll(&mut self) -> Outcome<bool> {
        let left = self.0.as_mut().ok_or(Failed::OTHER)?;
        self.1 += 1;
        *left = left.saturating_sub(1);
        Ok(*left == 0)
    }

    fn moves(&self) -> u64 {
        self.1
    }
}

/// An object that counts its drops, in place of an array that a call keeps alive.
struct Held(Arc<AtomicUsize>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn begun(list: &CallList<Scripted>, polls: Option<u64>, released: &Arc<AtomicUsize>) -> Arc<Slot<Scripted>> {
    let slot = Slot::new();
    let mut work = slot.work().expect("nobody works with it");
    let state = work.state();
    state.plans.push(Some(Scripted(polls, 0)));
    state.phase = Phase::Running(0);
    state.held.push(Box::new(Held(released.clone())));
    drop(work);
    list.begin(&slot);
    slot
}

#[test]
fn a_call_that_nobody_polls_is_advanced_and_freed() {
    let (list, released) = (CallList::new(), Arc::new(AtomicUsize::new(0)));
    let slot = begun(&list, Some(2), &released);
    list.poll_left();
    assert_eq!(list.count(), 1, "its thread polls it");
    list.leave(&slot);
    list.poll_left();
    assert_eq!((list.count(), released.load(Ordering::SeqCst)), (1, 0));
    list.poll_left();
    assert_eq!((list.count(), released.load(Ordering::SeqCst)), (0, 1));
    assert!(!list.has_left());
}

#[test]
fn an_interrupted_call_breaks_its_channel() {
    let (list, released) = (CallList::new(), Arc::new(AtomicUsize::new(0)));
    let slot = begun(&list, Some(1), &released);
    slot.work().expect("nobody works with it").state().phase = Phase::Interrupted(0);
    list.leave(&slot);
    list.poll_left();
    let mut work = slot.work().expect("nobody works with it");
    assert_eq!(work.state().phase, Phase::Broken);
    assert!(work.state().phase.refusal().is_some_and(|text| text.contains("interrupted")));
}

#[test]
fn the_memory_of_a_failed_call_is_never_freed() {
    let (list, released) = (CallList::new(), Arc::new(AtomicUsize::new(0)));
    let slot = begun(&list, None, &released);
    assert_eq!(list.poll_all(|| Some(())), (0, 0));
    assert_eq!(slot.work().expect("nobody works with it").state().phase, Phase::Failed);
    list.leave(&slot);
    list.poll_left();
    assert_eq!((list.count(), released.load(Ordering::SeqCst)), (1, 0));
}

#[test]
fn a_channel_in_work_is_left_to_its_thread() {
    let (list, released) = (CallList::new(), Arc::new(AtomicUsize::new(0)));
    let slot = begun(&list, Some(1), &released);
    let work = slot.work().expect("nobody works with it");
    assert!(slot.work().is_none());
    assert_eq!(list.poll_all(|| Some(())).0, 1);
    list.leave(&slot);
    list.poll_left();
    assert!(list.has_left(), "it is tried again");
    drop(work);
    assert_eq!(list.poll_all(|| None::<()>).0, 1, "no thread may call MPI");
    assert_eq!(list.poll_all(|| Some(())).0, 0);
}

#[test]
fn the_end_of_a_program_waits_for_calls_that_progress() {
    let (list, released) = (CallList::new(), Arc::new(AtomicUsize::new(0)));
    let _slots = [begun(&list, Some(50), &released), begun(&list, Some(7), &released)];
    let patient = Duration::from_secs(3600);
    let ended: Result<(), ()> = CallList::<Scripted>::finish(patient, || Ok(list.poll_all(|| Some(()))), || Ok(()));
    assert_eq!((ended, list.count()), (Ok(()), 0));
    // If the patience is 0, the first poll without progress is the last poll.
    let polls = Cell::new(0);
    let still = || {
        polls.set(polls.get() + 1);
        Ok::<_, ()>((1, 0))
    };
    assert_eq!(CallList::<Scripted>::finish(Duration::ZERO, still, || Ok(())), Ok(()));
    assert_eq!(polls.get(), 1);
    assert_eq!(CallList::<Scripted>::finish(patient, || Err("stopped"), || Ok(())), Err("stopped"));
}
