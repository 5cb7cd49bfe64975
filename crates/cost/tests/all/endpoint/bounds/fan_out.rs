//! Tests of `endpoint::bounds::fan_out`.

use unisono_cost::internals::fan_out::broadcast_ticks;

#[test]
fn doubles_in_the_telephone_model_and_is_fibonacci_at_latency_two() {
    for (ranks, rounds) in [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (1024, 10), (1025, 11)] {
        assert_eq!(broadcast_ticks(ranks, 1, 1), rounds, "{ranks}");
    }
    // Bar-Noy and Kipnis: with latency 2 the informed ranks are the Fibonacci numbers.
    for (ranks, ticks) in [(2, 2), (3, 3), (5, 4), (8, 5), (13, 6), (21, 7), (14, 7)] {
        assert_eq!(broadcast_ticks(ranks, 1, 2), ticks, "{ranks}");
    }
}
