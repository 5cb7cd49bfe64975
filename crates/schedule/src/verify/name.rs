//! The name of the results of a schedule: a digest of their expressions.
//!
//! The expressions of all outputs are written one after the other, operands before their combination; an expression
//! that was written before is replaced by its number. Operands that may be swapped are sorted by their lowest ranks,
//! which differ because no rank is in both. So equal expressions have equal texts, other expressions different ones,
//! and the name is the first half of the SHA-256 of the text. The class of elements ([`super::elements`]) is all of it.

use sha2::{Digest, Sha256};
use unisono_base::{Span, interrupt};

use super::expressions::{END, Expressions};

/// The most combinations that get a name.
const MOST: usize = 1 << 22;

/// Words that are not ranks; a number of an expression has the highest bit set.
pub const COMBINE: u32 = (1 << 30) | 1;
pub const OUTPUT: u32 = (1 << 30) | 2;
pub const SPAN: u32 = (1 << 30) | 3;
const MARK: u32 = (1 << 30) | 4;
const NUMBER: u32 = 1 << 31;

/// The beginning of every text.
pub const PREFIX: &[u8] = b"unisono-expression 1\n";

#[derive(Clone)]
pub struct Name {
    /// None if there are too many combinations.
    digest: Option<Sha256>,
    words: Vec<u8>,
    /// The number of each written expression; 0 for the others.
    numbers: Vec<u32>,
    written: u32,
    /// True if the expressions matter; those of a barrier do not.
    expressions: bool,
    /// All words, if they are kept.
    kept: Option<Vec<u32>>,
}

impl Name {
    pub fn new(expressions: bool) -> Self {
        let digest = Some(Sha256::new_with_prefix(PREFIX));
        Self { digest, words: Vec::new(), numbers: Vec::new(), written: 0, expressions, kept: None }
    }

    /// Returns an empty name that also stores all words of which it makes the digest.
    pub fn keeping() -> Self {
        Self { kept: Some(Vec::new()), ..Self::new(true) }
    }

    pub fn add(&mut self, rank: u32, output: &[(Span, u32)], expressions: &Expressions) {
        if self.numbers.is_empty() {
            // `resize` would touch all pages; this takes memory only for written entries.
            self.numbers = vec![0; expressions.count()];
        }
        self.word(OUTPUT);
        self.word(rank);
        let mut open = Vec::new();
        for &(span, id) in output {
            if self.digest.is_none() {
                return;
            }
            if self.expressions {
                self.write(id, &mut open, expressions);
            }
            self.word(SPAN);
            self.word(span.start);
            self.word(span.len);
        }
    }

    fn write(&mut self, id: u32, open: &mut Vec<(u32, bool)>, expressions: &Expressions) {
        open.push((id, false));
        while let Some((id, operands_written)) = open.pop() {
            let Some((a, b)) = expressions.written(id) else {
                self.word(id);
                continue;
            };
            if operands_written {
                self.written += 1;
                self.numbers[id as usize] = self.written;
                if b < END {
                    self.word(COMBINE);
                } else {
                    self.word(MARK);
                    self.word(b);
                }
                if self.written as usize > MOST {
                    self.digest = None;
                    return;
                }
            } else if self.numbers[id as usize] != 0 {
                self.word(NUMBER | self.numbers[id as usize]);
            } else if b >= END {
                open.extend([(id, true), (a, false)]);
            } else {
                open.extend([(id, true), (b, false), (a, false)]);
            }
        }
    }

    fn word(&mut self, word: u32) {
        if let Some(kept) = &mut self.kept {
            kept.push(word);
        }
        self.words.extend_from_slice(&word.to_le_bytes());
        if self.words.len() >= 1 << 12 {
            interrupt::poll();
            if let Some(digest) = &mut self.digest {
                digest.update(&self.words);
            }
            self.words.clear();
        }
    }

    /// Returns the words of one expression: those between the words of its output and of its span.
    pub fn expression(&mut self) -> Option<Vec<u32>> {
        let kept = self.kept.take().filter(|_| self.digest.is_some())?;
        Some(kept.get(2..kept.len().checked_sub(3)?)?.to_vec())
    }

    /// Returns the first bytes of the digest in hexadecimal.
    pub fn digest(self, bytes: usize) -> Option<String> {
        let mut digest = self.digest?;
        digest.update(&self.words);
        Some(digest.finalize()[..bytes].iter().map(|byte| format!("{byte:02x}")).collect())
    }
}
