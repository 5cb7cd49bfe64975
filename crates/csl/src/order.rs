//! The steps of a PE that may run at the same time. They belong to different threads, and neither program order nor
//! waits order them.

use unisono_base::narrow;

/// The order of a PE's steps, numbered over all threads. `before[a]` is the set of steps that have completed when step
/// `a` starts, as one bit for each step.
pub struct Order {
    thread: Vec<u32>,
    words: usize,
    before: Vec<u64>,
}

impl Order {
    /// Creates the order of steps. `lengths` has the number of steps of each thread, `waits` pairs `(step, step that
    /// must have completed before)`. Returns `None` if the waits form a cycle or name a step that does not exist.
    pub fn new(lengths: &[usize], waits: &[(u32, u32)]) -> Option<Self> {
        let thread: Vec<u32> =
            lengths.iter().enumerate().flat_map(|(t, &n)| std::iter::repeat_n(narrow(t), n)).collect();
        let n = thread.len();
        let mut after = vec![Vec::new(); n];
        let mut missing = vec![0u32; n];
        let in_threads = (1..n).filter(|&s| thread[s] == thread[s - 1]).map(|s| (narrow(s), narrow::<u32>(s) - 1));
        for (step, earlier) in in_threads.chain(waits.iter().copied()) {
            *missing.get_mut(step as usize)? += 1;
            after.get_mut(earlier as usize)?.push(step as usize);
        }
        let words = n.div_ceil(64);
        let mut before = vec![0u64; n * words];
        let mut ready: Vec<usize> = (0..n).filter(|&s| missing[s] == 0).collect();
        let mut done = 0;
        while let Some(step) = ready.pop() {
            done += 1;
            for &next in &after[step] {
                for w in 0..words {
                    before[next * words + w] |= before[step * words + w];
                }
                before[next * words + step / 64] |= 1 << (step % 64);
                missing[next] -= 1;
                if missing[next] == 0 {
                    ready.push(next);
                }
            }
        }
        (done == n).then_some(Self { thread, words, before })
    }

    fn precedes(&self, a: usize, b: usize) -> bool {
        self.before[b * self.words + a / 64] >> (a % 64) & 1 == 1
    }

    pub fn may_meet(&self, a: usize, b: usize) -> bool {
        self.thread[a] != self.thread[b] && !self.precedes(a, b) && !self.precedes(b, a)
    }
}
