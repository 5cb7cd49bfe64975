//! Expressions over logical contributors, which are independent of the number of ranks.
//!
//! `n` contributors are added by one tree that `n` alone defines. Let `f` be the least prime factor of `n`: groups of
//! `f` neighbors are added, and the `n / f` sums are the contributors to which the rule applies again. Within a group,
//! pairs of neighbors are added until one sum is left; an unpaired last one waits for the next round. So 4 contributors
//! are `((0 + 1) + (2 + 3))`, and 6 are `(((0 + 1) + (2 + 3)) + (4 + 5))`.
//!
//! Let each of `P` ranks add its `n / P` consecutive contributors by the same rule. The ranks have the tree of all `n`
//! if the expression of their collective, with these sums instead of the inputs, is that tree.

use sha2::{Digest, Sha256};
use unisono_base::narrow;

use super::name::{COMBINE, OUTPUT, PREFIX, SPAN};

/// Greatest number of contributors of an expression.
pub const MOST_CONTRIBUTORS: u32 = 1 << 20;

/// Expression of all elements of a result, in postfix order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expression {
    /// Ranks and combinations, encoded as in [`super::name`].
    words: Vec<u32>,
}

impl Expression {
    pub(super) fn new(words: Vec<u32>) -> Self {
        Self { words }
    }

    /// Returns the tree of `n` contributors.
    pub fn of_contributors(n: u32) -> Self {
        Self { words: tree(0, n) }
    }

    /// Returns the operands of each combination in the tree of `n` contributors: `n + k` is combination `k`, lower
    /// numbers are contributors.
    pub fn combinations_of(n: u32) -> Vec<(u32, u32)> {
        let (mut made, mut open) = (Vec::new(), Vec::new());
        for word in tree(0, n) {
            let operands = if word == COMBINE { open.pop().zip(open.pop()) } else { None };
            match operands {
                None => open.push(word),
                Some((right, left)) => {
                    open.push(n + narrow::<u32>(made.len()));
                    made.push((left, right));
                }
            }
        }
        made
    }

    /// Returns the expression over contributors: the input of each rank becomes the tree of its `share` consecutive
    /// contributors.
    #[must_use]
    pub fn over_contributors(&self, share: u32) -> Self {
        // A sum contains each rank once, so no word refers to an earlier expression.
        let of = |&word: &u32| if word < COMBINE { tree(word * share, share) } else { vec![word] };
        Self { words: self.words.iter().flat_map(of).collect() }
    }

    /// Returns the class of the expression: its SHA-256, in hexadecimal.
    pub fn class(&self) -> String {
        let mut digest = Sha256::new_with_prefix(PREFIX);
        for word in [OUTPUT, 0].iter().chain(&self.words).chain(&[SPAN, 0, 0]) {
            digest.update(word.to_le_bytes());
        }
        digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Returns the tree of `count` contributors from `first` on, in postfix order.
fn tree(first: u32, count: u32) -> Vec<u32> {
    let mut sums: Vec<Vec<u32>> = (first..first + count).map(|one| vec![one]).collect();
    while sums.len() > 1 {
        let group = least_factor(sums.len());
        sums = sums.chunks(group).map(in_pairs).collect();
    }
    sums.pop().unwrap_or_default()
}

fn least_factor(n: usize) -> usize {
    (2..).take_while(|f| f * f <= n).find(|f| n.is_multiple_of(*f)).unwrap_or(n)
}

/// Adds pairs of neighbors until one sum is left.
fn in_pairs(group: &[Vec<u32>]) -> Vec<u32> {
    let mut sums = group.to_vec();
    while sums.len() > 1 {
        let added = |pair: &[Vec<u32>]| match pair {
            [a, b] => [a.as_slice(), b, &[COMBINE]].concat(),
            _ => pair.concat(),
        };
        sums = sums.chunks(2).map(added).collect();
    }
    sums.concat()
}
