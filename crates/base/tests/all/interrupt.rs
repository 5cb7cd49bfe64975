//! Tests of `interrupt`.

use std::panic::{AssertUnwindSafe, catch_unwind};

use unisono_base::interrupt::{Interrupted, poll, watch};

#[test]
fn a_poll_unwinds_when_the_hook_says_so() {
    let mut asked = 0;
    let hook = Box::new(move || {
        asked += 1;
        asked == 2
    });
    let work = || loop {
        poll();
    };
    let stopped = catch_unwind(AssertUnwindSafe(|| watch(hook, work))).unwrap_err();
    assert_eq!(stopped.downcast_ref(), Some(&Interrupted));
}

#[test]
fn without_a_watch_polls_do_nothing() {
    (0..1000).for_each(|_| poll());
}
