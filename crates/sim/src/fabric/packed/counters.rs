//! Up to 32 counters from 0 to 15 that are counted up and down together, in bit slices.

/// Counters by number: bit `n` of slice `k` is bit `k` of counter `n`.
#[derive(Clone, Copy, Default)]
pub struct Counters([u32; 4]);

/// The highest count.
pub const MOST: u32 = 15;

impl Counters {
    /// Adds 1 to the counters whose bit is set; none of them may be at its highest count.
    #[inline]
    pub fn add(&mut self, which: u32) {
        let mut carry = which;
        for slice in &mut self.0 {
            (*slice, carry) = (*slice ^ carry, *slice & carry);
        }
        debug_assert!(carry == 0, "a counter is beyond its highest count");
    }

    /// Takes 1 from the counters whose bit is set; none of them may be 0.
    #[inline]
    pub fn sub(&mut self, which: u32) {
        let mut borrow = which;
        for slice in &mut self.0 {
            (*slice, borrow) = (*slice ^ borrow, !*slice & borrow);
        }
        debug_assert!(borrow == 0, "a counter is below 0");
    }

    /// Returns the bits of the counters that are not 0.
    #[inline]
    pub fn nonzero(&self) -> u32 {
        self.0.iter().fold(0, |all, slice| all | slice)
    }

    /// Sets a counter that is 0.
    pub fn set(&mut self, counter: u32, count: u32) {
        debug_assert!(count <= MOST, "beyond the highest count");
        for (k, slice) in self.0.iter_mut().enumerate() {
            *slice |= (count >> k & 1) << counter;
        }
    }

    #[cfg(test)]
    fn get(&self, counter: u32) -> u32 {
        (0..4).map(|k| (self.0[k] >> counter & 1) << k).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_count_like_numbers() {
        let mut counters = Counters::default();
        let mut plain = [0u32; 32];
        for n in 0..32 {
            (plain[n as usize], _) = (n % 16, counters.set(n, n % 16));
        }
        for step in 0..200u64 {
            let draw = unisono_base::mix(step) as u32;
            let up = (0..32).filter(|&n| draw >> n & 1 == 1 && plain[n] < MOST).fold(0, |m, n| m | 1 << n);
            counters.add(up);
            (0..32).for_each(|n| plain[n] += up >> n & 1);
            let draw = unisono_base::mix(step + 1000) as u32;
            let down = (0..32).filter(|&n| draw >> n & 1 == 1 && plain[n] > 0).fold(0, |m, n| m | 1 << n);
            counters.sub(down);
            (0..32).for_each(|n| plain[n] -= down >> n & 1);
            assert_eq!((0..32).map(|n| counters.get(n)).collect::<Vec<_>>(), plain);
            assert_eq!(counters.nonzero(), (0..32).filter(|&n| plain[n] > 0).fold(0, |m, n| m | 1 << n));
        }
    }
}
