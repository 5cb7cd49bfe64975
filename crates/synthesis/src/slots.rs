//! The use of links in time slots of equal length.

use unisono_base::{narrow, rounded};

/// The number of slots of each link. The last slot includes all later time.
pub const SLOTS: usize = WORDS * u64::BITS as usize;
const WORDS: usize = 8;
/// A remainder of a message is ignored below this fraction.
const NOTHING: f64 = 1e-9;

/// The time for which each link is busy in each slot.
pub struct Slots {
    slot: f64,
    rates: Vec<f64>,
    /// The busy time of each link in each slot, at index `link * SLOTS + slot`.
    pub busy: Vec<f64>,
    /// For each link, a bit for each slot, set if the slot is full.
    full: Vec<[u64; WORDS]>,
}

/// The slots in which a message occupies its links: the first slot, and the fraction of the message in this and each
/// later slot.
#[derive(Clone, Default, Debug)]
pub struct Reservation {
    first: usize,
    pub shares: Vec<f64>,
}

impl Slots {
    /// Creates free slots from 0 to `end` for links of given `rates`.
    pub fn new(rates: Vec<f64>, end: f64) -> Self {
        let links = rates.len();
        Self { slot: end / SLOTS as f64, busy: vec![0.0; links * SLOTS], full: vec![[0; WORDS]; links], rates }
    }

    /// Returns the end of a message of one unit that uses all time from `ready` on in which all `links` are free.
    pub fn end(&self, links: &[u32], ready: f64) -> f64 {
        self.fill(links, ready, |_, _| ())
    }

    /// Returns the end as [`Slots::end`] does, and stores the slots of the message in `reserved`.
    pub fn fit(&self, links: &[u32], ready: f64, reserved: &mut Reservation) -> f64 {
        reserved.shares.clear();
        self.fill(links, ready, |at, share| {
            if reserved.shares.is_empty() {
                reserved.first = at;
            }
            reserved.shares.resize(at - reserved.first, 0.0);
            reserved.shares.push(share);
        })
    }

    /// Calls `reserve` with each slot that the message uses, in order, and with the fraction of the message in the
    /// slot.
    #[inline]
    fn fill(&self, links: &[u32], ready: f64, mut reserve: impl FnMut(usize, f64)) -> f64 {
        let mut at = narrow::<usize>(rounded((ready / self.slot).floor())).min(SLOTS - 1);
        at = self.next(links, at);
        let mut left = 1.0_f64;
        loop {
            let start = at as f64 * self.slot;
            let from = start.max(ready);
            let mut share = left;
            if at + 1 < SLOTS {
                let time = start + self.slot - from;
                for &link in links {
                    let free = self.slot - self.busy[link as usize * SLOTS + at];
                    share = share.min(free.min(time) * self.rates[link as usize]);
                }
            }
            let share = if share < NOTHING { 0.0 } else { share };
            reserve(at, share);
            left -= share;
            if left < NOTHING {
                let end = |&link: &u32| {
                    let takes = share / self.rates[link as usize];
                    (start + self.busy[link as usize * SLOTS + at] + takes).max(from + takes)
                };
                return links.iter().map(end).fold(0.0, f64::max);
            }
            at = self.next(links, at + 1);
        }
    }

    /// Returns the first slot from slot `at` on in which all links have time left. The last slot always has time left.
    fn next(&self, links: &[u32], at: usize) -> usize {
        let mut word = at / 64;
        let mut mask = u64::MAX << (at % 64);
        while word < WORDS {
            let full = links.iter().fold(0, |full, &link| full | self.full[link as usize][word]);
            let open = !full & mask;
            if open != 0 {
                return word * 64 + open.trailing_zeros() as usize;
            }
            (word, mask) = (word + 1, u64::MAX);
        }
        SLOTS - 1
    }

    /// Occupies the slots of a message, or frees them if `times` is -1.
    pub fn take(&mut self, links: &[u32], reserved: &Reservation, times: f64) {
        for &link in links {
            let place = link as usize * SLOTS;
            let each = times / self.rates[link as usize];
            for (at, share) in (reserved.first..).zip(&reserved.shares) {
                let busy = &mut self.busy[place + at];
                *busy += share * each;
                let bit = 1 << (at % 64);
                if at + 1 < SLOTS && *busy > self.slot * (1.0 - 1e-6) {
                    self.full[link as usize][at / 64] |= bit;
                } else {
                    self.full[link as usize][at / 64] &= !bit;
                }
            }
        }
    }
}
