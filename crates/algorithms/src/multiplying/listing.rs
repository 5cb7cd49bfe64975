//! Lists and counts all schedules for a number of ranks.

use super::{Stages, Wrap};

/// The numbers of factored schedules, of splits and of merges.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Count {
    pub factored: u64,
    pub split: u64,
    pub merge: u64,
}

/// Returns the numbers of schedules for `ranks` ranks, at most `u64::MAX` each. One rank has one schedule, without
/// stages.
pub fn count(ranks: u32) -> Count {
    let n = ranks as usize;
    // The number of ordered factorizations of each number n: for each factor f, as many as of n / f.
    let mut ways = vec![0u64; n.max(1) + 1];
    ways[1] = 1;
    for part in 1..=n / 2 {
        for whole in (2 * part..=n).step_by(part) {
            ways[whole] = ways[whole].saturating_add(ways[part]);
        }
    }
    let sum = |of: &mut dyn Iterator<Item = u64>| of.fold(0, u64::saturating_add);
    Count {
        factored: if n == 0 { 0 } else { ways[n] },
        split: sum(&mut splits(ranks).map(|(_, inner)| ways[inner as usize])),
        // A merge needs at least two factors, so the factorization with one factor is not counted.
        merge: sum(&mut (4..n).map(|inner| ways[inner] - 1)),
    }
}

/// Returns every schedule for `ranks` ranks: factored schedules, then splits, then merges. Their number grows fast; see
/// [`count`].
pub fn list(ranks: u32) -> Vec<Stages> {
    let mut all = Vec::new();
    if ranks > 0 {
        factorizations(ranks, &mut |f| all.push(Stages::fitting(ranks, Wrap::Plain, f.to_vec())));
    }
    for (wrap, inner) in splits(ranks) {
        factorizations(inner, &mut |f| all.push(Stages::fitting(ranks, wrap, f.to_vec())));
    }
    for rest in 1..=ranks.saturating_sub(4) {
        factorizations(ranks - rest, &mut |f| {
            if let [first, inner @ .., last] = f {
                let wrap = Wrap::Merge { rest, first: *first, last: *last };
                all.push(Stages::fitting(ranks, wrap, inner.to_vec()));
            }
        });
    }
    all
}

/// Returns every split, with the product of its plain factors.
fn splits(ranks: u32) -> impl Iterator<Item = (Wrap, u32)> {
    (2..=ranks).flat_map(move |base| {
        (1..=ranks / base).map(move |leaders| {
            let threshold = leaders * base;
            (Wrap::Split { threshold, base }, ranks - threshold + leaders)
        })
    })
}

/// Calls `f` with every ordered factorization of `n` into factors of at least 2; for 1 with the empty factorization.
fn factorizations(n: u32, f: &mut impl FnMut(&[u32])) {
    fn go(n: u32, before: &mut Vec<u32>, f: &mut impl FnMut(&[u32])) {
        if n == 1 {
            return f(before);
        }
        for factor in (2..=n).filter(|factor| n.is_multiple_of(*factor)) {
            before.push(factor);
            go(n / factor, before, f);
            before.pop();
        }
    }
    go(n, &mut Vec::new(), f);
}
