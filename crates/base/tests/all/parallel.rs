//! Tests of `parallel`: values, order and limits are those of a loop, on any number of cores.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread::sleep,
    time::Duration,
};

use unisono_base::{
    interrupt::{Interrupted, check, watch},
    limits::{self, DEFAULT_STEPS, OverLimit, admit, counted, last_counted, set_note, spend},
    parallel::{both, map, map_long},
};

/// Work that takes long enough for other threads to start.
fn work() {
    sleep(Duration::from_millis(1));
}

#[test]
fn values_are_those_of_a_loop_in_its_order() {
    let items: Vec<u64> = (0..100).collect();
    let inner = |&n: &u64| map(&items[..5], |m| n * m).sum::<u64>();
    let value = |n: &u64| {
        work();
        inner(n)
    };
    assert_eq!(map(&items, value).collect::<Vec<_>>(), items.iter().map(|n| n * 10).collect::<Vec<_>>());
    assert_eq!(map(&items[..0], value).count(), 0);
}

#[test]
fn steps_add_up_and_are_refused_at_the_same_item() {
    let quarter = |_: &u32| {
        work();
        admit("a test", 0, (DEFAULT_STEPS / 4).into()).is_ok()
    };
    let items = [0; 40];
    let found: Vec<bool> = counted(|| map(&items, quarter).collect());
    assert_eq!(found.iter().take_while(|&&is_ok| is_ok).count(), 4);
    assert_eq!((found.iter().filter(|&&is_ok| is_ok).count(), last_counted()), (4, DEFAULT_STEPS));
}

#[test]
fn work_unwinds_at_its_item() {
    let value = |&n: &u32| {
        work();
        spend("a test", if n == 20 { u64::MAX } else { 1 });
        n
    };
    let items: Vec<u32> = (0..40).collect();
    let mut seen = 0;
    let all = || counted(|| map(&items, value).for_each(|_| seen += 1));
    let over = catch_unwind(AssertUnwindSafe(all)).unwrap_err();
    assert!(over.is::<OverLimit>());
    assert_eq!(seen, 20);
}

#[test]
fn an_interruption_ends_all_threads() {
    let items = [0; 64];
    let endless = |_: &u32| loop {
        work();
        check();
    };
    let mut looks = 0;
    let hook = Box::new(move || {
        looks += 1;
        looks == 2
    });
    let all = || watch(hook, || map(&items, |n| if *n == 0 { endless(n) } else { *n }).count());
    let stopped = catch_unwind(AssertUnwindSafe(all)).unwrap_err();
    assert_eq!(stopped.downcast_ref(), Some(&Interrupted));
}

#[test]
fn a_caller_that_waits_is_interrupted() {
    // The caller processes the short items, and another thread the long item.
    let items: Vec<u32> = (0..64).collect();
    let value = |&n: &u32| {
        if n == 8 {
            (0..100_000).for_each(|_| {
                work();
                check();
            });
        }
        work();
    };
    let mut looks = 0;
    let hook = Box::new(move || {
        looks += 1;
        looks == 8
    });
    let stopped = catch_unwind(AssertUnwindSafe(|| watch(hook, || map(&items, value).count()))).unwrap_err();
    assert_eq!(stopped.downcast_ref(), Some(&Interrupted));
}

#[test]
fn two_functions_give_their_values_and_their_panics() {
    let two = both(
        || 1,
        || {
            work();
            "two"
        },
    );
    assert_eq!(two, (1, "two"));
    assert!(catch_unwind(|| both(|| 1, || -> u8 { panic!("the second fails") })).is_err());
}

#[test]
fn items_that_do_not_fit_beside_each_other_run_one_after_the_other() {
    const GB: u64 = 1 << 60;
    limits::set(4 * GB, DEFAULT_STEPS);
    let (under_way, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let item = |&bytes: &u64| {
        let is_admitted = admit("a test", bytes.into(), 0).is_ok();
        if bytes == 3 * GB {
            most.fetch_max(under_way.fetch_add(1, SeqCst) + 1, SeqCst);
            work();
            under_way.fetch_sub(1, SeqCst);
        }
        is_admitted
    };
    // Small items do not wait for large items.
    let items = [[3 * GB; 8], [5 * GB; 8], [1; 8]].concat();
    let found: Vec<bool> = counted(|| map_long(&items, |bytes| map(&[*bytes; 3], item).all(|is_ok| is_ok)).collect());
    limits::set(u64::MAX, DEFAULT_STEPS);
    assert_eq!(found, [[true; 8], [false; 8], [true; 8]].concat());
    assert_eq!(most.into_inner(), 1);
}

#[test]
fn many_short_items_are_noted_once() {
    let noted = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&noted);
    set_note(Some(Box::new(move |sentence| notes.lock().unwrap().push(sentence))));
    let item = |_: &u32| {
        work();
        admit("the many", 0, 1 << 30).unwrap();
    };
    counted(|| map(&[0; 40], item).count());
    set_note(None);
    let noted = noted.lock().unwrap();
    let of_many: Vec<_> = noted.iter().filter(|sentence| sentence.starts_with("the many")).collect();
    assert_eq!(of_many.len(), 1, "{of_many:?}");
}
