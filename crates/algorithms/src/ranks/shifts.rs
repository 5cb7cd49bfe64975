//! The order of shifts in which ranks send messages to all other ranks. In a step with shift k, rank r sends to rank
//! r + k.
//!
//! If k grew by one in each step, the ranks of a group would send to one other group for many steps, while links to
//! other groups are idle. So successive shifts are far apart, like successive multiples of the golden ratio modulo 1
//! (Weyl, "Ueber die Gleichverteilung von Zahlen mod. Eins", 1916). A few successive shifts then lead to all groups,
//! and to both directions of a ring.

use unisono_base::narrow;

use super::hamilton::gcd;

/// 2^32 divided by the golden ratio.
const GOLDEN_SECTION: u64 = 2_654_435_769;

/// Returns the shifts 1 .. `ranks` - 1, each once: the multiples, modulo `ranks`, of the number coprime to `ranks` that
/// is nearest to `ranks` divided by the golden ratio.
pub fn shifts(ranks: u32) -> impl Iterator<Item = u32> + Clone {
    let all = u64::from(ranks);
    let near = narrow::<u32>((all * GOLDEN_SECTION) >> 32);
    let nearest = (0..ranks).flat_map(|d| [near.saturating_sub(d), near.saturating_add(d)]);
    let factor = nearest.clone().find(|&m| (1..ranks).contains(&m) && gcd(m, ranks) == 1).unwrap_or(1);
    (1..all).map(move |step| narrow((step * u64::from(factor)) % all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shift_comes_once_and_few_of_them_lead_to_all_groups() {
        for ranks in (0..300).chain([1000, 1024, 1155, 4096]) {
            let order: Vec<u32> = shifts(ranks).collect();
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(1..ranks), "{ranks} ranks");
            for group in [4, 16, 128].into_iter().filter(|&g| ranks.is_multiple_of(g) && ranks >= 4 * g) {
                let groups = ranks / group;
                for window in order.chunks_exact(4 * groups as usize) {
                    let mut met = vec![0; groups as usize];
                    window.iter().for_each(|shift| met[(shift / group) as usize] += 1);
                    assert!(met.iter().all(|n| (2..=6).contains(n)), "{ranks} ranks, {group} a group: {met:?}");
                }
            }
        }
    }
}
