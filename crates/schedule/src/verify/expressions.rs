//! Expressions over ranks, each stored once: two expressions are the same exactly if their ids are equal.
//!
//! An expression is the input of a rank, whose id is the rank, or a combination of two expressions. The id of an
//! expression is the index of its row. Rows are found by the hash of their operands, and then compared by the operands
//! (hash-consing), so equality is exact. Most expressions are used in one combination, by instructions that soon
//! follow. So the row of an expression links to its first combination, and only further combinations are found by hash.
//! If operands may be swapped without changing the result, the smaller id is first. A row whose second operand is at
//! least [`END`] marks its first operand: the bits of its value differ from those of the plain combination
//! ([`super::Rounding`]).

use chacha20::{ChaCha20Rng, rand_core::Rng};

/// Ids from this value on are not expressions and are free for other uses.
pub const END: u32 = 1 << 31;

const EMPTY: u32 = u32::MAX;

/// An expression. Its fields are stored together, because the code that names results reads operands and lowest ranks
/// at random addresses.
#[derive(Clone, Copy)]
struct Row {
    /// The two operands; [`EMPTY`] for the input of a rank.
    key: (u32, u32),
    /// Lowest rank in the expression.
    lowest: u32,
    /// First combination in which this expression is the operand that was created later; [`EMPTY`] if there is none.
    first: u32,
}

pub struct Expressions {
    ranks: u32,
    /// True if `a, b` and `b, a` are the same expression.
    pub swaps: bool,
    /// Inputs of the ranks, then the combinations.
    rows: Vec<Row>,
    /// Hash table, with open addressing, of combinations. The first combination of each younger operand is not in the
    /// table.
    table: Vec<u32>,
    /// Number of combinations in the table.
    hashed: usize,
    /// Odd random numbers for hashing, so that nobody can construct expressions whose hashes collide.
    keys: (u64, u64),
}

impl Expressions {
    pub fn new(ranks: u32, swaps: bool, random: &mut ChaCha20Rng) -> Self {
        let keys = (random.next_u64() | 1, random.next_u64() | 1);
        let rows = (0..ranks).map(|lowest| Row { key: (EMPTY, EMPTY), lowest, first: EMPTY }).collect();
        Self { ranks, swaps, rows, table: vec![EMPTY; 1 << 10], hashed: 0, keys }
    }

    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// Returns the operands of an expression; `None` for the input of a rank.
    pub fn operands(&self, id: u32) -> Option<(u32, u32)> {
        (id >= self.ranks).then(|| self.rows[id as usize].key)
    }

    /// Returns the operand that was created later; `None` for the input of a rank.
    pub fn younger_operand(&self, id: u32) -> Option<u32> {
        self.operands(id).map(|key| younger(key) as u32)
    }

    /// Returns the operands of a combination, or an expression and its mark, in the order of a text: operands that may
    /// be swapped are sorted by their lowest ranks. Returns `None` for the input of a rank.
    pub fn written(&self, id: u32) -> Option<(u32, u32)> {
        let (a, b) = self.operands(id)?;
        let lowest = |id: u32| self.rows[id as usize].lowest;
        Some(if self.swaps && b < END && lowest(b) < lowest(a) { (b, a) } else { (a, b) })
    }

    /// Returns an expression without the mark `mark`, and true if it had the mark.
    pub fn unmarked(&self, id: u32, mark: u32) -> (u32, bool) {
        match self.operands(id) {
            Some((of, found)) if found == mark => (of, true),
            _ => (id, false),
        }
    }

    /// Returns `a` and `b` in the order in which a combination stores them: if they may be swapped, the smaller id
    /// first.
    pub fn key(&self, a: u32, b: u32) -> (u32, u32) {
        if self.swaps && a > b { (b, a) } else { (a, b) }
    }

    #[inline]
    pub fn find(&self, key: (u32, u32)) -> Option<u32> {
        match self.rows[younger(key)].first {
            // The table has combinations of an operand only if the operand already has its first combination.
            EMPTY => return None,
            id if self.rows[id as usize].key == key => return Some(id),
            _ => {}
        }
        let mut at = self.place(key);
        loop {
            match self.table[at] {
                EMPTY => return None,
                id if self.rows[id as usize].key == key => return Some(id),
                _ => at = (at + 1) & (self.table.len() - 1),
            }
        }
    }

    /// Adds a combination that [`Self::find`] did not find; `None` if there are too many.
    pub fn add(&mut self, key: (u32, u32)) -> Option<u32> {
        let id = u32::try_from(self.rows.len()).ok().filter(|&id| id < END)?;
        let lowest = |id: u32| self.rows.get(id as usize).map_or(u32::MAX, |row| row.lowest);
        self.rows.push(Row { key, lowest: lowest(key.0).min(lowest(key.1)), first: EMPTY });
        let first = &mut self.rows[younger(key)].first;
        if *first == EMPTY {
            *first = id;
            return Some(id);
        }
        self.hashed += 1;
        if 4 * self.hashed > 3 * self.table.len() {
            self.table = vec![EMPTY; 2 * self.table.len()];
            for other in self.ranks..id {
                if self.rows[younger(self.rows[other as usize].key)].first != other {
                    self.enter(other);
                }
            }
        }
        self.enter(id);
        Some(id)
    }

    fn enter(&mut self, id: u32) {
        let mut at = self.place(self.rows[id as usize].key);
        while self.table[at] != EMPTY {
            at = (at + 1) & (self.table.len() - 1);
        }
        self.table[at] = id;
    }

    #[inline]
    fn place(&self, (a, b): (u32, u32)) -> usize {
        let hash = u64::from(a).wrapping_mul(self.keys.0).wrapping_add(u64::from(b).wrapping_mul(self.keys.1));
        ((hash ^ hash >> 29).wrapping_mul(self.keys.1) >> (64 - self.table.len().trailing_zeros())) as usize
    }
}

/// Returns the operand of a combination that was created later; for a marked expression, its only operand.
#[inline]
fn younger((a, b): (u32, u32)) -> usize {
    (if b < END { a.max(b) } else { a }) as usize
}
