//! The use of links over time, in slots of equal length.

use unisono_base::{narrow, rounded};

/// Slots of each link. The last one holds all that comes later.
pub(crate) const SLOTS: usize = WORDS * u64::BITS as usize;
const WORDS: usize = 8;
/// Shares of a message, and of a slot, that count as none.
const NOTHING: f64 = 1e-9;

/// Links with the time for which they are busy in each slot.
pub(crate) struct Slots {
    /// The length of a slot.
    slot: f64,
    rates: Vec<f64>,
    /// Link by link; and the slots in which a link has no time left, one bit each.
    busy: Vec<f64>,
    full: Vec<[u64; WORDS]>,
}

/// The slots of a message: the first one, and the share of the message in each from there on.
#[derive(Clone, Default, Debug)]
pub(crate) struct Held {
    first: usize,
    shares: Vec<f64>,
}

impl Slots {
    /// Slots up to `end` together; `rates` are those of the links.
    pub(crate) fn new(rates: Vec<f64>, end: f64) -> Self {
        let links = rates.len();
        Self { slot: end / SLOTS as f64, busy: vec![0.0; links * SLOTS], full: vec![[0; WORDS]; links], rates }
    }

    /// The end of a message of one unit over `links`, which takes all the time that these have left from `ready` on.
    /// `held` becomes its slots.
    pub(crate) fn fit(&self, links: &[u32], ready: f64, held: &mut Held) -> f64 {
        let mut at = narrow::<usize>(rounded((ready / self.slot).floor())).min(SLOTS - 1);
        at = self.next(links, at);
        held.first = at;
        held.shares.clear();
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
            held.shares.push(share);
            left -= share;
            if left < NOTHING {
                let end = |&link: &u32| {
                    let takes = share / self.rates[link as usize];
                    (start + self.busy[link as usize * SLOTS + at] + takes).max(from + takes)
                };
                return links.iter().map(end).fold(0.0, f64::max);
            }
            let next = self.next(links, at + 1);
            (at + 1..next).for_each(|_| held.shares.push(0.0));
            at = next;
        }
    }

    /// The first slot from `at` on in which all links have time left.
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

    /// Takes the slots of a message, or with -1 gives them back.
    pub(crate) fn take(&mut self, links: &[u32], held: &Held, times: f64) {
        for &link in links {
            let place = link as usize * SLOTS;
            let each = times / self.rates[link as usize];
            for (at, share) in (held.first..).zip(&held.shares) {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn messages_take_the_time_that_is_left() {
        // Slots of one unit.
        let mut slots = Slots::new(vec![1.0, 2.0], SLOTS as f64);
        let (mut first, mut second) = (Held::default(), Held::default());
        assert_eq!(slots.fit(&[0], 0.5, &mut first), 1.5);
        slots.take(&[0], &first, 1.0);
        // Half of slot 0 and half of slot 1 are left.
        assert_eq!(slots.fit(&[0], 0.0, &mut second), 2.0);
        slots.take(&[0], &second, 1.0);
        // Both are full. Link 1 is twice as fast, and waits for link 0.
        assert_eq!(slots.fit(&[1], 0.0, &mut Held::default()), 0.5);
        assert_eq!(slots.fit(&[0, 1], 0.0, &mut Held::default()), 3.0);
        slots.take(&[0], &first, -1.0);
        assert_eq!(slots.fit(&[0, 1], 0.0, &mut Held::default()), 2.0);
    }

    proptest! {
        #[test]
        fn no_slot_holds_more_than_its_time(
            messages in prop::collection::vec((0.0_f64..30.0, 1_u32..8), 1..60),
            slot in 0.05_f64..0.4,
        ) {
            let rates = vec![1.0, 3.0, 0.5];
            let mut slots = Slots::new(rates.clone(), slot * SLOTS as f64);
            let mut all = Vec::new();
            for (ready, links) in messages {
                let links: Vec<u32> = (0..3).filter(|link| links >> link & 1 == 1).collect();
                let mut held = Held::default();
                let end = slots.fit(&links, ready, &mut held);
                let takes = links.iter().map(|&link| 1.0 / rates[link as usize]).fold(0.0, f64::max);
                prop_assert!(end >= ready + takes * (1.0 - 1e-6), "{end} {ready} {takes}");
                prop_assert!((held.shares.iter().sum::<f64>() - 1.0).abs() < 1e-6);
                slots.take(&links, &held, 1.0);
                all.push((links, held));
            }
            let full = |busy: &[f64]| busy[..SLOTS - 1].iter().all(|&busy| busy <= slot * (1.0 + 1e-6));
            prop_assert!(slots.busy.chunks(SLOTS).all(full));
            all.iter().for_each(|(links, held)| slots.take(links, held, -1.0));
            prop_assert!(slots.busy.iter().all(|busy| busy.abs() < 1e-9));
        }
    }
}
