//! Tests of `fabric::packed::group`.

use unisono_sim::internals::group::{Counters, MOST, add, count_slices, equal, nonzero, set, sub};

fn get(counters: &Counters, lane: usize, bit: u32) -> u32 {
    (0..4).map(|k| (counters[k][lane] >> bit & 1) << k).sum()
}

#[test]
fn counters_count_like_numbers() {
    let mut counters = Counters::default();
    let mut plain = [0u32; 32];
    for n in 0..32 {
        plain[n as usize] = n % 16;
        set(&mut counters, 3, n, n % 16);
    }
    let bits = |f: &dyn Fn(u32) -> bool| (0..32).filter(|&n| f(n)).fold(0u32, |m, n| m | 1 << n);
    for step in 0..200u64 {
        let draw = unisono_base::mix(step) as u32;
        let up = bits(&|n| draw >> n & 1 == 1 && plain[n as usize] < MOST);
        add(&mut counters, 3, up);
        (0..32).for_each(|n| plain[n] += up >> n & 1);
        let draw = unisono_base::mix(step + 1000) as u32;
        let down = bits(&|n| draw >> n & 1 == 1 && plain[n as usize] > 0);
        sub(&mut counters, 3, down);
        (0..32).for_each(|n| plain[n] -= down >> n & 1);
        assert_eq!((0..32).map(|n| get(&counters, 3, n)).collect::<Vec<_>>(), plain);
        assert_eq!(nonzero(&counters, 3), bits(&|n| plain[n as usize] > 0));
        assert_eq!(equal(&counters, 3, count_slices(5)), bits(&|n| plain[n as usize] == 5));
        assert_eq!((nonzero(&counters, 2), nonzero(&counters, 4)), (0, 0));
    }
}
