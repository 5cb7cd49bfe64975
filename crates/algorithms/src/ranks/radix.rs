//! The radices that a plan considers for an algorithm that takes about log_k P rounds with radix k, and the times of
//! k-nomial trees by which the plan compares the radices.

use unisono_base::narrow;

use crate::Message;

/// A plan compares each radix up to this one. Above it, the plan compares, for each number of rounds, the least radix
/// with this number.
const EACH: u32 = 64;
/// The most radices that become candidates.
const MOST: usize = 3;
/// A radix becomes a candidate if its estimated time is at most this multiple of the least time. The estimates are not
/// exact.
const NEAR: f64 = 1.1;

/// Returns the candidate radices, at most `most` each, with the least times by the estimate `ns(radix)`, fastest first.
pub fn fastest(ranks: u32, most: u32, ns: impl Fn(u32) -> f64) -> Vec<u32> {
    let least = |rounds: u32| (2..).find(|radix: &u32| radix.saturating_pow(rounds) >= ranks);
    let few_rounds = (2..u32::BITS).filter_map(least).chain([ranks]).take_while(|_| ranks > EACH);
    let mut compared: Vec<u32> = (2..=EACH.min(ranks)).chain(few_rounds).filter(|&radix| radix <= most).collect();
    compared.sort_unstable();
    compared.dedup();
    let mut timed: Vec<(f64, u32)> = compared.into_iter().map(|radix| (ns(radix), radix)).collect();
    // With a radix near the number of ranks, few ranks take part in a second round. If such a radix takes as long as
    // one round, it is omitted, because one round is simpler.
    if let Some(&(whole, _)) = timed.iter().find(|one| one.1 == ranks) {
        timed.retain(|&(time, radix)| radix == ranks || radix <= ranks / 2 || time.total_cmp(&whole).is_ne());
    }
    // Of radices with equal times, the largest is first, because it has the fewest rounds.
    timed.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
    let longest = timed.first().map_or(0.0, |fastest| fastest.0 * NEAR);
    timed.into_iter().take_while(|one| one.0 <= longest).take(MOST).map(|one| one.1).collect()
}

/// The times of a k-nomial tree. The time of a subtree depends only on its size. So the time of the tree follows from
/// the full subtrees, whose sizes are powers of the radix, and from the last subtree of each rank, which may not be
/// full.
pub struct Knomial<F> {
    pub radix: u32,
    /// Returns the message between the top of a subtree and its parent, for the number of ranks in the subtree.
    pub message: F,
}

impl<F: Fn(u32) -> Message> Knomial<F> {
    /// Returns the time in ns of a collective that sends up the tree. `reduces` is true if the messages are reduced.
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

    /// Returns the time in ns of a collective that sends down the tree, into the largest subtrees first.
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

    /// Returns the time in ns of a tree. `time(children)` computes it from the children of the top, smallest subtrees
    /// first. Equal subtrees are one entry: the message, the time of the subtree, and the number of such subtrees.
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

    /// Returns the time in ns of a tree of any size. `full` has the full subtrees of each smaller size.
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
