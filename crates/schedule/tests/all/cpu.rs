//! Measures CPU time, for tests of how time grows with size. Other crates include this file.

fn thread_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux counts the time of threads");
    stat.split(' ').next().and_then(|ns| ns.parse().ok()).expect("the first number of schedstat")
}

/// The kernel updates the time of a running thread at each tick. A tick is at most 4 ms.
const TICK_NS: u64 = 4_000_000;

/// Returns the least CPU time, in nanoseconds, of three runs of `work`, but at least one tick.
pub fn least_ns(mut work: impl FnMut()) -> u64 {
    let time = |_| {
        let begin = thread_ns();
        work();
        thread_ns() - begin
    };
    (0..3).map(time).min().unwrap_or(0).max(TICK_NS)
}
