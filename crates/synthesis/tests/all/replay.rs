//! Tests of `replay`.

use unisono_synthesis::{
    HostWork, Runs,
    internals::jobs::{Jobs, Work},
};

/// Rank 0 sends to ranks 1 and 2 on separate links, and rank 1 forwards its message to rank 3. A message takes time 1
/// on a link, with a latency of 2, and time 3 on a host. So rank 0 has sent at 3 and 6, and ranks 1 and 2 have received
/// at 9 and 12. Rank 1 has sent at 12, and rank 3 has received at 18.
#[test]
fn hosts_work_on_one_message_after_the_other() {
    let mut jobs = Jobs::default();
    let classes = [[0, 1], [0, 2], [1, 3]].map(|ends| {
        let class = jobs.class(&[ends[1] - 1]);
        jobs.worked_on(class, Work::Message(ends));
        class
    });
    let first = jobs.add(None, classes[0]);
    jobs.add(None, classes[1]);
    jobs.add(Some(first), classes[2]);
    let (rates, hops) = ([1.0; 3], [2.0; 3]);
    let begins = jobs.begins(&rates, &hops);
    let end = |runs, hosts| jobs.end(&begins, (&rates, &hops), runs, hosts);
    assert_eq!(end(Runs::Down, None), 6.0);
    let hosts = |sends_by_link| Some(HostWork { takes: 3.0, sends_by_link });
    assert_eq!(end(Runs::Down, hosts(false)), 18.0);
    assert_eq!(end(Runs::Down, hosts(true)), 18.0);
}
