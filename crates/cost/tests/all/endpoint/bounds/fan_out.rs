//! Tests of `endpoint::bounds::fan_out`.

use std::collections::BTreeMap;

use unisono_cost::internals::fan_out::{Pace, broadcast_ticks, families_ticks};

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

/// Returns the least time to inform `ranks` ranks, by trying all orders of messages. Rank k is in member `k / most`;
/// `idle` has the time from which each informed rank can send.
fn exhaustive(ranks: u64, most: u64, [within, between]: [Pace; 2], idle: &BTreeMap<u64, u64>, from: u64) -> u64 {
    let reached = idle.len() as u64;
    if reached == ranks {
        return from;
    }
    let mut best = u64::MAX;
    for (&sender, &time) in idle {
        // Ranks of a member that have no data yet are alike, so only the first of each member is tried.
        let firsts = (0..ranks.div_ceil(most))
            .filter_map(|member| (member * most..ranks.min((member + 1) * most)).find(|rank| !idle.contains_key(rank)));
        for receiver in firsts {
            let Pace { issue, flight } = if receiver / most == sender / most { within } else { between };
            let mut next = idle.clone();
            next.insert(sender, time + issue);
            next.insert(receiver, time + flight);
            best = best.min(exhaustive(ranks, most, [within, between], &next, from.max(time + flight)));
        }
    }
    best
}

#[test]
fn families_never_take_longer_than_the_best_broadcast_over_two_levels() {
    let pace = |issue, flight| Pace { issue, flight };
    let mut equal = 0;
    for (ranks, most) in [(4, 2), (5, 2), (5, 3), (6, 3)] {
        for within in [pace(1, 1), pace(1, 2), pace(2, 3)] {
            for between in [pace(1, 5), pace(4, 4), pace(3, 7), pace(1, 1)] {
                let members = (u64::div_ceil(ranks, most), between);
                let bound = families_ticks(ranks, members, (most, within));
                let best = exhaustive(ranks, most, [within, between], &BTreeMap::from([(0, 0)]), 0);
                assert!(bound <= best, "{ranks} {most} {within:?} {between:?}: {bound} > {best}");
                equal += u32::from(bound == best);
            }
        }
    }
    assert!(equal >= 24, "the bound is the best time in {equal} of 48 cases");
}
