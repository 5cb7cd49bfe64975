//! The radices that a plan considers for an algorithm whose rounds are about log_k P for a radix k, and the times of
//! k-nomial trees by which it compares them.

use unisono_base::narrow;

use crate::Message;

/// A plan compares each radix up to this one. Of larger radices it compares the least with each number of rounds.
const EACH: u32 = 64;
/// The most radices that are worth ranking.
const MOST: usize = 3;
/// The time, in least times, up to which a radix is worth ranking: the estimates are not exact.
const NEAR: f64 = 1.1;

/// Returns the radices, at most `most`, that take the least times by the estimate `ns`, fastest first.
pub fn fastest(ranks: u32, most: u32, ns: impl Fn(u32) -> f64) -> Vec<u32> {
    let least = |rounds: u32| (2..).find(|radix: &u32| radix.saturating_pow(rounds) >= ranks);
    let few_rounds = (2..u32::BITS).filter_map(least).chain([ranks]).take_while(|_| ranks > EACH);
    let mut compared: Vec<u32> = (2..=EACH.min(ranks)).chain(few_rounds).filter(|&radix| radix <= most).collect();
    compared.sort_unstable();
    compared.dedup();
    let mut timed: Vec<(f64, u32)> = compared.into_iter().map(|radix| (ns(radix), radix)).collect();
    // A radix near the number of ranks leaves few ranks to a second round; without a gain, one round is simpler.
    if let Some(&(whole, _)) = timed.iter().find(|one| one.1 == ranks) {
        timed.retain(|&(time, radix)| radix == ranks || radix <= ranks / 2 || time.total_cmp(&whole).is_ne());
    }
    // Of radices with equal times the largest is first; it shows that there is one round.
    timed.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
    let longest = timed.first().map_or(0.0, |fastest| fastest.0 * NEAR);
    timed.into_iter().take_while(|one| one.0 <= longest).take(MOST).map(|one| one.1).collect()
}

/// The times of a k-nomial tree. They depend only on the size of a subtree, so they follow from the subtrees of full
/// size, which is a power of the radix, and from the last subtree of each rank, which may not be full.
pub struct Knomial<F> {
    pub radix: u32,
    /// The message between the top of a subtree and its parent, by the number of ranks of the subtree.
    pub message: F,
}

impl<F: Fn(u32) -> Message> Knomial<F> {
    /// Returns the time of a collective that sends up the tree; `reduces` is true if the messages are reduced.
    pub fn up_ns(&self, ranks: u32, reduces: bool) -> f64 {
        self.of_subtrees(ranks, &|children| {
            let (mut cpu, mut nic) = (0.0_f64, 0.0_f64);
            for &(m, done, count) in children {
                for _ in 0..count {
                    let arrived = (done + m.flight).max(nic - m.slack);
                    let start = if m.uses_cpus { arrived.max(cpu) } else { arrived };
                    nic = nic.max(start) + m.receive_nic;
                    cpu = cpu.max(start + m.receive_cpu) + if reduces { m.reduce } else { 0.0 };
                }
            }
            cpu
        })
    }

    /// Returns the time of a collective that sends down the tree, into the largest subtrees first.
    pub fn down_ns(&self, ranks: u32) -> f64 {
        self.of_subtrees(ranks, &|children| {
            let (mut cpu, mut nic, mut end) = (0.0_f64, 0.0_f64, 0.0_f64);
            for &(m, after, count) in children.iter().rev() {
                for _ in 0..count {
                    let start = cpu.max(nic - m.slack);
                    cpu = if m.uses_cpus { start + m.send_cpu } else { cpu };
                    nic = nic.max(start) + m.send_nic;
                    end = end.max(start + m.flight + m.receive_cpu + after);
                }
            }
            end.max(cpu)
        })
    }

    /// Returns the time of a tree, which `time` computes from the message, the time and the number of equal subtrees,
    /// smallest first.
    fn of_subtrees(&self, ranks: u32, time: &impl Fn(&[(Message, f64, u32)]) -> f64) -> f64 {
        let mut full = vec![((self.message)(1), 0.0, self.radix - 1)];
        let mut size = u64::from(self.radix);
        while size < u64::from(ranks) {
            let next = ((self.message)(narrow(size)), time(&full), self.radix - 1);
            full.push(next);
            size *= u64::from(self.radix);
        }
        self.partial(ranks, &full, time)
    }

    /// Returns the time of a tree of any size from the full subtrees of each smaller size.
    fn partial(&self, ranks: u32, full: &[(Message, f64, u32)], time: &impl Fn(&[(Message, f64, u32)]) -> f64) -> f64 {
        let Some(level) = ranks.checked_sub(1).and_then(|others| others.checked_ilog(self.radix)) else { return 0.0 };
        let unit = self.radix.pow(level);
        let (count, rest) = (ranks / unit - 1, ranks % unit);
        let mut children = full[..=level as usize].to_vec();
        children[level as usize].2 = count;
        if rest > 0 {
            children.push(((self.message)(rest), self.partial(rest, full, time), 1));
        }
        time(&children)
    }
}
