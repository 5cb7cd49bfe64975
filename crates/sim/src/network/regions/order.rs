//! The order in which one thread would create all events, when regions create them concurrently.
//!
//! Events of the same time happen in the order in which they were created. Each region logs the events that happened in
//! a window and created other events, with their keys. All logs merged by key are the order in which one thread
//! executes these events, so the k-th event that they create gets stamp k, counted after the stamps of earlier windows.
//! An event may precede an event of its region that was created earlier (ranks have events in the past); it is logged
//! at the position at which the region executed it, so a log is merged by the greatest key up to each of its entries.

/// Flag of `Entry::order`: an event of ranks, which follows the packets' events of the same time.
const OF_RANKS: u64 = 1 << 63;
/// Flag of `Entry::order`: the stamp was made in this window; the number is its index among the region's stamps.
const IN_WINDOW: u64 = 1 << 62;
/// Lowest bit of the number in `Entry::order`. The bits below it count the stamps that the event made: 6 bits for
/// packets' events, then 4 bits for ranks' events. An event that made more has several entries.
const NUMBER: u32 = 10;
const MOST_MADE: [u32; 2] = [(1 << 6) - 1, (1 << 4) - 1];

/// An event that created other events, in 16 bytes, because the threads of all regions read it.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Entry {
    time: u64,
    order: u64,
}

impl Entry {
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a few bits")]
    fn made(self) -> [u32; 2] {
        [self.order as u32 & MOST_MADE[0], (self.order >> 6) as u32 & MOST_MADE[1]]
    }
}

/// Entries of a region in a window.
#[derive(Default)]
pub(in super::super) struct Log {
    pub entries: Vec<Entry>,
    /// Number of stamps of packets' events that all regions made before this window.
    base: u64,
    /// `base` plus the number of stamps of packets' events in `entries`.
    listed: u64,
    /// Stamp in the order of all regions, for each stamp that this region made for ranks' events before this window.
    of_ranks: Vec<u32>,
}

impl Log {
    pub fn began(&mut self, rank: u32, made: u32) {
        self.add(0, OF_RANKS | u64::from(rank), 0, made);
    }

    /// Logs an event of ranks; `made` is the total number of stamps of packets' events so far.
    pub fn stepped(&mut self, time: u64, stamp: u32, made: u64, of_ranks: u32) {
        let before = self.of_ranks.len();
        let order = self
            .of_ranks
            .get(stamp as usize)
            .map_or_else(|| IN_WINDOW | (u64::from(stamp) - before as u64), |&stamp| u64::from(stamp));
        self.add(time, OF_RANKS | order, made, of_ranks);
    }

    /// Logs an event of packets; `made` is as in [`Self::stepped`].
    #[inline]
    pub fn moved(&mut self, time: u64, stamp: u64, made: u64, of_ranks: u32) {
        let order = if stamp > self.base { IN_WINDOW | (stamp - self.base - 1) } else { stamp };
        self.add(time, order, made, of_ranks);
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "an event makes few others")]
    fn add(&mut self, time: u64, order: u64, made: u64, of_ranks: u32) {
        let mut left = [made.saturating_sub(self.listed) as u32, of_ranks];
        while left != [0, 0] {
            let [packets, ranks] = [0, 1].map(|kind| left[kind].min(MOST_MADE[kind]));
            left = [left[0] - packets, left[1] - ranks];
            self.listed += u64::from(packets);
            let number = order & !(OF_RANKS | IN_WINDOW);
            let order = order & (OF_RANKS | IN_WINDOW) | number << NUMBER | u64::from(ranks << 6 | packets);
            self.entries.push(Entry { time, order });
        }
    }

    /// Begins the next window, after `order` was computed for this one.
    #[expect(clippy::cast_possible_truncation, reason = "tasks and messages have 32-bit numbers")]
    pub fn next_window(&mut self, order: &Order, region: usize) {
        self.entries.clear();
        let [packets, ranks] = order.before;
        (self.base, self.listed) = (packets + u64::from(order.made[0]), packets + u64::from(order.made[0]));
        self.of_ranks.extend(order.places[region][1].iter().map(|&place| ranks as u32 + place));
    }

    pub fn base(&self) -> u64 {
        self.base
    }
}

/// Order of the stamps that all regions made in a window.
pub(in super::super) struct Order {
    /// Number of stamps before the window, for packets' and for ranks' events; `made` counts those of the window.
    before: [u64; 2],
    made: [u32; 2],
    /// Position of each stamp among those of all regions, by region and by kind of event.
    places: Vec<[Vec<u32>; 2]>,
}

impl Order {
    pub fn new(regions: usize) -> Self {
        Self { before: [0; 2], made: [0; 2], places: vec![[Vec::new(), Vec::new()]; regions] }
    }

    /// Merges the logs of a window.
    pub fn merge(&mut self, logs: &[&[Entry]]) {
        for kind in 0..2 {
            self.before[kind] += u64::from(self.made[kind]);
            self.made[kind] = 0;
            self.places.iter_mut().for_each(|places| places[kind].clear());
        }
        let mut at = vec![0; logs.len()];
        let mut keys: Vec<u128> =
            (0..logs.len()).map(|r| logs[r].first().map_or(u128::MAX, |&entry| self.key(r, entry))).collect();
        loop {
            let (mut region, mut key, mut bound) = (0, u128::MAX, u128::MAX);
            for (other, &first) in keys.iter().enumerate() {
                if first < key {
                    (region, key, bound) = (other, first, key);
                } else {
                    bound = bound.min(first);
                }
            }
            if key == u128::MAX {
                return;
            }
            // The entries of this region up to the next entry of another region.
            let begin = self.made;
            while key < bound {
                let made = logs[region][at[region]].made();
                self.made = [self.made[0] + made[0], self.made[1] + made[1]];
                at[region] += 1;
                let next = logs[region].get(at[region]);
                key = next.map_or(u128::MAX, |&entry| key.max(self.key_after(region, begin, entry)));
            }
            keys[region] = key;
            for (places, (begin, end)) in self.places[region].iter_mut().zip(begin.into_iter().zip(self.made)) {
                places.extend(begin..end);
            }
        }
    }

    fn key(&self, region: usize, entry: Entry) -> u128 {
        self.key_after(region, self.made, entry)
    }

    /// Returns the key of an entry. The latest stamps of its region that `places` does not hold yet are at positions
    /// from `begin` on.
    #[inline]
    fn key_after(&self, region: usize, begin: [u32; 2], entry: Entry) -> u128 {
        let kind = usize::from(entry.order & OF_RANKS != 0);
        let number = (entry.order & !(OF_RANKS | IN_WINDOW)) >> NUMBER;
        let stamp = if entry.order & IN_WINDOW == 0 {
            number
        } else {
            // Stamps of packets' events begin at 1. The entry that created this event was merged before it.
            let first = self.before[kind] + u64::from(kind == 0);
            let places = &self.places[region][kind];
            let place = places
                .get(number as usize)
                .copied()
                .map_or_else(|| u64::from(begin[kind]) + number - places.len() as u64, u64::from);
            first + place
        };
        u128::from(entry.time) << 64 | u128::from(entry.order & OF_RANKS | stamp)
    }

    /// Returns the number of stamps of packets' events, in this window and all earlier ones.
    pub fn packets_made(&self) -> u64 {
        self.before[0] + u64::from(self.made[0])
    }

    /// Returns, for a stamp that a region made in this window for a packet's event, the stamp in the order of all
    /// regions.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the hot loop; a place in a table")]
    pub fn stamp(&self, region: usize, stamp: u64) -> u64 {
        let base = self.before[0] + 1;
        base + u64::from(self.places[region][0][(stamp - base) as usize])
    }
}
