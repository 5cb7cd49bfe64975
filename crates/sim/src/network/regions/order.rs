//! The order in which one thread would create all events, when regions create them concurrently.
//!
//! Events of the same time happen in the order in which they were created. Each region logs the events that happened in
//! a window and created other events, with their keys. All logs merged by key are the order in which one thread
//! executes these events, so the k-th event that they create gets stamp k, counted after the stamps of earlier windows.
//! An event may precede an event of its region that was created earlier (ranks have events in the past); it is logged
//! at the position at which the region executed it, so each entry has the greatest key of its log up to there.

/// Flag of `Entry::order`: an event of ranks, which follows the packets' events of the same time.
const OF_RANKS: u64 = 1 << 63;
/// Flag of `Entry::order`: the stamp was made in this window; the number is its index among the region's stamps.
const IN_WINDOW: u64 = 1 << 62;
/// Lowest bit of the number in `Entry::order`. The bits below it count the stamps that the event made: 6 bits for
/// packets' events, then 4 bits for ranks' events. An event that made more has several entries.
const NUMBER: u32 = 10;
const MOST_MADE: [u64; 2] = [(1 << 6) - 1, (1 << 4) - 1];

/// An event that created other events, in 16 bytes, because the threads of all regions read it.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Entry {
    time: u64,
    order: u64,
}

/// Entries of a region in a window.
#[derive(Default)]
pub(in super::super) struct Log {
    pub entries: Vec<Entry>,
    /// Number of stamps of packets' events that all regions made before this window.
    base: u64,
    /// `base` plus the number of stamps of packets' events in `entries`.
    listed: u64,
    /// Greatest time and order of an entry.
    last: (u64, u64),
    /// Stamp in the order of all regions, for each stamp that this region made for ranks' events before this window.
    of_ranks: Vec<u32>,
}

impl Log {
    pub fn began(&mut self, rank: u32, made: u32) {
        self.add(0, OF_RANKS | u64::from(rank) << NUMBER, self.listed, made);
    }

    /// Logs an event of ranks; `made` is the total number of stamps of packets' events so far.
    pub fn stepped(&mut self, time: u64, stamp: u32, made: u64, of_ranks: u32) {
        let before = self.of_ranks.len();
        let order = self.of_ranks.get(stamp as usize).map_or_else(
            || IN_WINDOW | (u64::from(stamp) - before as u64) << NUMBER,
            |&stamp| u64::from(stamp) << NUMBER,
        );
        self.add(time, OF_RANKS | order, made, of_ranks);
    }

    /// Logs an event of packets; `made` is as in [`Self::stepped`].
    #[inline]
    pub fn moved(&mut self, time: u64, stamp: u64, made: u64, of_ranks: u32) {
        if made != self.listed || of_ranks != 0 {
            let in_window = IN_WINDOW | stamp.wrapping_sub(self.base + 1) << NUMBER;
            self.add(time, if stamp > self.base { in_window } else { stamp << NUMBER }, made, of_ranks);
        }
    }

    /// Adds entries for an event with this [`Entry::order`]. Not inlined, so that runs without regions have short loops.
    #[inline(never)]
    fn add(&mut self, time: u64, order: u64, made: u64, of_ranks: u32) {
        if made == self.listed && of_ranks == 0 {
            return;
        }
        self.last = self.last.max((time, order));
        let (time, order) = self.last;
        let (mut packets, mut ranks) = (made - self.listed, u64::from(of_ranks));
        self.listed = made;
        while packets > MOST_MADE[0] || ranks > MOST_MADE[1] {
            let now = [packets.min(MOST_MADE[0]), ranks.min(MOST_MADE[1])];
            (packets, ranks) = (packets - now[0], ranks - now[1]);
            self.entries.push(Entry { time, order: order | now[1] << 6 | now[0] });
        }
        self.entries.push(Entry { time, order: order | ranks << 6 | packets });
    }

    /// Begins the next window, after `order` was computed for this one.
    #[expect(clippy::cast_possible_truncation, reason = "tasks and messages have 32-bit numbers")]
    pub fn next_window(&mut self, order: &Order, region: usize) {
        self.entries.clear();
        self.last = (0, 0);
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
    #[expect(clippy::cast_possible_truncation, reason = "a few bits")]
    pub fn merge(&mut self, logs: &[&[Entry]]) {
        for kind in 0..2 {
            self.before[kind] += u64::from(self.made[kind]);
            self.made[kind] = 0;
            self.places.iter_mut().for_each(|places| places[kind].clear());
        }
        let mut left = logs.to_vec();
        // The key of each region's next entry, with the region, in ascending order.
        let mut heads: Vec<_> = (0..logs.len()).map(|r| (self.key(r, [0, 0], logs[r].first()), r)).collect();
        heads.sort_unstable();
        while let Some(&(mut key, region)) = heads.first().filter(|head| head.0 < u128::MAX) {
            let bound = heads.get(1).map_or(u128::MAX, |head| head.0);
            // The entries of this region up to the next entry of another region.
            let begin = self.made;
            let ([mut packets, mut ranks], mut log) = (begin, left[region]);
            while key < bound
                && let [entry, later @ ..] = log
            {
                packets += (entry.order & MOST_MADE[0]) as u32;
                ranks += (entry.order >> 6 & MOST_MADE[1]) as u32;
                log = later;
                key = self.key(region, begin, log.first());
            }
            (self.made, left[region]) = ([packets, ranks], log);
            for kind in 0..2 {
                if begin[kind] < self.made[kind] {
                    self.places[region][kind].extend(begin[kind]..self.made[kind]);
                }
            }
            let mut at = 0;
            while let Some(&next) = heads.get(at + 1).filter(|next| next.0 < key) {
                heads[at] = next;
                at += 1;
            }
            heads[at] = (key, region);
        }
    }

    /// Returns the key of an entry, the greatest one if there is no entry. The latest stamps of its region that
    /// `places` does not hold yet are at positions from `begin` on.
    #[inline]
    fn key(&self, region: usize, begin: [u32; 2], entry: Option<&Entry>) -> u128 {
        let Some(&Entry { time, order }) = entry else { return u128::MAX };
        let mut order = order >> NUMBER << NUMBER;
        if order & IN_WINDOW != 0 {
            let kind = usize::from(order & OF_RANKS != 0);
            let number = (order & !(OF_RANKS | IN_WINDOW)) >> NUMBER;
            // Stamps of packets' events begin at 1. The entry that created this event was merged before it.
            let first = self.before[kind] + u64::from(kind == 0);
            let places = &self.places[region][kind];
            let place = places
                .get(number as usize)
                .map_or_else(|| u64::from(begin[kind]) + number - places.len() as u64, |&place| u64::from(place));
            order = order & OF_RANKS | (first + place) << NUMBER;
        }
        u128::from(time) << 64 | u128::from(order)
    }

    /// Returns the number of stamps of packets' events, in this window and all earlier ones.
    pub fn packets_made(&self) -> u64 {
        self.before[0] + u64::from(self.made[0])
    }

    /// Returns the stamp in the order of all regions for each stamp that a region made in this window for a packet's
    /// event: the entry k, added to the first such stamp, is that of the k-th.
    pub fn places(&self, region: usize) -> (u64, &[u32]) {
        (self.before[0] + 1, &self.places[region][0])
    }
}
