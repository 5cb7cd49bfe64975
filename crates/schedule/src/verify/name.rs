//! The name of the results of a schedule: a digest of their expressions.
//!
//! The expressions of all outputs are written one after another, operands before their combination; an expression that
//! was already written is replaced by its number. Operands that may be swapped are sorted by their lowest ranks. These
//! ranks differ, because no rank is in both operands. So equal expressions have equal texts, and different expressions
//! have different texts. The name is the first half of the SHA-256 of the text; the class of elements
//! ([`super::elements`]) is the whole SHA-256.

use sha2::{Digest, Sha256};
use unisono_base::{Span, interrupt};

use super::expressions::{END, Expressions};

/// Greatest number of combinations of results that get a name.
const MOST: usize = 1 << 22;

/// The number of spans whose expressions are read ahead in turns, and the most expressions of each span that are read
/// ahead.
const AHEAD: usize = 4;
const MOST_AHEAD: usize = 1 << 12;

/// The words of the text that are not ranks: a combination, an output, a span, or a mark. The highest bit of a word is
/// set if it is the number of an expression.
pub const COMBINE: u32 = (1 << 30) | 1;
pub const OUTPUT: u32 = (1 << 30) | 2;
pub const SPAN: u32 = (1 << 30) | 3;
const MARK: u32 = (1 << 30) | 4;
const NUMBER: u32 = 1 << 31;

/// First bytes of every text.
pub const PREFIX: &[u8] = b"unisono-expression 1\n";

pub struct Name {
    /// SHA-256 so far; `None` for too many combinations.
    digest: Option<Sha256>,
    words: Vec<u8>,
    /// Number of each expression that was written; 0 for all others.
    numbers: Vec<u32>,
    written: u32,
    /// True if expressions are part of the name. False for a barrier.
    expressions: bool,
    /// All words of the text, if the name was created by [`Name::keeping`].
    kept: Option<Vec<u32>>,
}

impl Name {
    pub fn new(expressions: bool) -> Self {
        let digest = Some(Sha256::new_with_prefix(PREFIX));
        Self { digest, words: Vec::new(), numbers: Vec::new(), written: 0, expressions, kept: None }
    }

    /// Returns an empty name that also stores all words of its text.
    pub fn keeping() -> Self {
        Self { kept: Some(Vec::new()), ..Self::new(true) }
    }

    pub fn add(&mut self, rank: u32, output: &[(Span, u32)], expressions: &Expressions) {
        if self.numbers.is_empty() {
            // `resize` would write to all pages. A zeroed allocation uses memory only for entries that are written.
            self.numbers = vec![0; expressions.count()];
        }
        self.word(OUTPUT);
        self.word(rank);
        let mut open = Vec::new();
        for (n, &(span, id)) in output.iter().enumerate() {
            if self.digest.is_none() {
                return;
            }
            if self.expressions && n % AHEAD == 0 {
                self.read_ahead(&output[n..], expressions);
            }
            if self.expressions {
                self.write(id, &mut open, expressions);
            }
            self.word(SPAN);
            self.word(span.start);
            self.word(span.len);
        }
    }

    /// Reads the expressions of the first spans, so that they are in the cache when they are written. The address of an
    /// expression is known only after its combination was read, so the reads of several spans alternate.
    fn read_ahead(&self, output: &[(Span, u32)], expressions: &Expressions) {
        let mut ids: Vec<u32> = output.iter().take(AHEAD).map(|one| one.1).collect();
        for _ in 0..MOST_AHEAD {
            ids.retain_mut(|id| {
                let younger = expressions.younger_operand(*id).filter(|_| self.numbers[*id as usize] == 0);
                *id = younger.unwrap_or(*id);
                younger.is_some()
            });
            if ids.is_empty() {
                break;
            }
        }
        std::hint::black_box(ids);
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

    /// Returns the words of the only expression: those between the words of its output and its span. Returns `None` if
    /// words were not kept, or for too many combinations.
    pub fn expression(&mut self) -> Option<Vec<u32>> {
        let kept = self.kept.take().filter(|_| self.digest.is_some())?;
        Some(kept.get(2..kept.len().checked_sub(3)?)?.to_vec())
    }

    /// Returns the first `bytes` bytes of the digest in hexadecimal; `None` for too many combinations.
    pub fn digest(self, bytes: usize) -> Option<String> {
        let mut digest = self.digest?;
        digest.update(&self.words);
        Some(digest.finalize()[..bytes].iter().map(|byte| format!("{byte:02x}")).collect())
    }
}
