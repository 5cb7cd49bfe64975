//! Circulant graphs: the distances over which ranks exchange, and the block that each rank receives in each round.
//!
//! The P ranks are counted from the root. They have q = ceil(log2 P) distances: skip(q) = P and skip(k) =
//! ceil(skip(k+1) / 2), so skip(0) = 1. In round i, with k = i mod q, rank v receives from rank v - skip(k) and sends
//! to rank v + skip(k). Tests check the three conditions of the source for each number of ranks. Source: Träff,
//! "Optimal Broadcast Schedules in Logarithmic Time with Applications to Broadcast, All-Broadcast, Reduction and
//! All-Reduction", arXiv 2407.18004.

use unisono_base::narrow;

/// The distances of exchanges among P ranks, skip(0) to skip(q).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Skips(Vec<u32>);

/// The state of a search for the blocks that one rank receives.
struct Search<'a> {
    skips: &'a [u32],
    /// The rank plus the number of ranks.
    rank: u32,
    /// For each remaining exponent, the next smaller remaining exponent; `larger` has the next larger. Indices and
    /// values are the exponents plus 1.
    smaller: Vec<usize>,
    larger: Vec<usize>,
    found: Vec<usize>,
    /// The last rank whose baseblock ([`Skips::baseblock`]) the search has taken.
    taken: u32,
}

impl Skips {
    /// Computes the distances for `ranks` ranks, at least one.
    pub fn new(ranks: u32) -> Self {
        let halves = std::iter::successors(Some(ranks), |&skip| (skip > 1).then(|| skip.div_ceil(2)));
        let mut skips: Vec<u32> = halves.collect();
        skips.reverse();
        Self(skips)
    }

    /// Returns q, the number of rounds of one block.
    pub fn rounds(&self) -> u32 {
        narrow::<u32>(self.0.len() - 1)
    }

    fn ranks(&self) -> u32 {
        self.skip(self.rounds())
    }

    pub fn skip(&self, k: u32) -> u32 {
        self.0[k as usize]
    }

    /// Returns skip(k+1) - skip(k), the number of blocks that a rank receives in round k of an allgather.
    pub fn step(&self, k: u32) -> u32 {
        self.skip(k + 1) - self.skip(k)
    }

    /// Returns the *baseblock* of a rank (Träff): the exponent of the last distance when the rank is written as a sum
    /// of distances, largest first. For the root it is q.
    pub fn baseblock(&self, rank: u32) -> u32 {
        let (mut left, mut last) = (rank, self.rounds());
        for k in (0..self.rounds()).rev() {
            if left > 0 && self.skip(k) <= left {
                (left, last) = (left - self.skip(k), k);
            }
        }
        last
    }

    /// Returns the block that a rank receives in each of q rounds. A negative number is a block of the preceding q
    /// rounds.
    pub fn receives(&self, rank: u32) -> Vec<i32> {
        let (q, own) = (self.rounds(), self.baseblock(rank));
        let mut search = Search {
            skips: &self.0,
            rank: self.ranks() + rank,
            smaller: (0..=q as usize + 1).map(|e| e.saturating_sub(1)).collect(),
            larger: (1..=q as usize + 2).collect(),
            found: Vec::with_capacity(q as usize),
            taken: 2 * self.ranks(),
        };
        search.take(own as usize);
        search.find(0, q as usize + 1);
        let block = |&e: &usize| if e == q as usize { own.cast_signed() } else { narrow::<i32>(e) - q.cast_signed() };
        search.found.iter().map(block).collect()
    }
}

impl Search<'_> {
    /// Removes an exponent from the remaining exponents.
    fn take(&mut self, exponent: usize) {
        let at = exponent + 1;
        let (smaller, larger) = (self.smaller[at], self.larger[at]);
        if larger < self.smaller.len() {
            self.smaller[larger] = smaller;
        }
        self.larger[smaller] = larger;
    }

    /// Takes the baseblocks of ranks after `from`, over distances with exponents of at most `at - 1`.
    fn find(&mut self, from: u32, mut at: usize) {
        let rounds = self.skips.len() - 1;
        while at > 0 && self.found.len() < rounds {
            let (to, k) = (from + self.skips[at - 1], self.found.len());
            if to <= self.rank - self.skips[k] && to < self.taken {
                if to <= self.rank - self.skips[k + 1] {
                    self.find(to, at);
                }
                if self.found.len() == rounds || from > self.rank - self.skips[self.found.len() + 1] {
                    return;
                }
                self.taken = to;
                self.found.push(at - 1);
                self.take(at - 1);
            }
            at = self.smaller[at];
        }
    }
}

/// The broadcast of blocks from one root: the block that each rank receives in each round.
pub struct Pipeline {
    pub skips: Skips,
    pub blocks: u32,
    /// The blocks of [`Skips::receives`] of all ranks, rank by rank.
    receives: Vec<i32>,
    /// The round in which each rank receives the last block.
    last: Vec<u32>,
}

impl Pipeline {
    /// Computes the blocks of all rounds, for at least two ranks and at least one block.
    pub fn new(ranks: u32, blocks: u32) -> Self {
        let skips = Skips::new(ranks);
        let receives = (0..ranks).flat_map(|rank| skips.receives(rank)).collect();
        let mut pipeline = Self { skips, blocks, receives, last: vec![u32::MAX; ranks as usize] };
        // The search for the last block starts at the first round in which some rank sends it.
        for round in blocks - 1..pipeline.rounds() {
            for rank in 0..ranks {
                if pipeline.received(round, rank) == Some(blocks - 1) {
                    pipeline.last[rank as usize] = round;
                }
            }
        }
        pipeline
    }

    /// Returns the number of rounds: n - 1 + q for n blocks.
    pub fn rounds(&self) -> u32 {
        self.blocks - 1 + self.skips.rounds()
    }

    /// Returns the exponent k of a round's distance, and the number that is added to an entry of `receives` in this
    /// round.
    fn phase(&self, round: u32) -> (u32, i64) {
        let q = self.skips.rounds();
        let before = (q - (self.blocks - 1) % q) % q;
        let at = u64::from(round) + u64::from(before);
        (narrow::<u32>(at % u64::from(q)), narrow::<i64>(at - at % u64::from(q)) - i64::from(before))
    }

    /// Returns the exponent k of a round's distance skip(k).
    pub fn exponent(&self, round: u32) -> u32 {
        self.phase(round).0
    }

    pub fn skip(&self, round: u32) -> u32 {
        self.skips.skip(self.exponent(round))
    }

    /// Returns the block that a rank, counted from the root, receives in a round; `None` for the root, and in rounds
    /// without a block. A rank receives no block twice, so a reduction can run the rounds in reverse.
    pub fn received(&self, round: u32, rank: u32) -> Option<u32> {
        let (k, more) = self.phase(round);
        let at = rank as usize * self.skips.rounds() as usize + k as usize;
        let block = i64::from(self.receives[at]) + more;
        let last = i64::from(self.blocks) - 1;
        let comes = rank > 0 && block >= 0 && (block < last || round <= self.last[rank as usize]);
        comes.then(|| narrow::<u32>(block.min(last)))
    }

    /// Returns the range of rounds in which every rank except the root receives a block.
    pub fn full(&self) -> std::ops::Range<u32> {
        let end = self.blocks - 1;
        (2 * self.skips.rounds() - 1).min(end)..end
    }
}
