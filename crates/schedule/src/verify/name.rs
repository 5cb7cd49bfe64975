//! The name of the results of a schedule: a digest of their expressions.
//!
//! The expressions of all outputs are written one after another, operands before their combination; an expression that
//! was already written is replaced by its number. Operands that may be swapped are sorted by their lowest ranks, which
//! differ because no rank is in both. So equal expressions have equal texts, and different expressions different texts.
//! The name is the first half of the SHA-256 of the text; the class of elements ([`super::elements`]) is the whole
//! SHA-256.

use sha2::{Digest, Sha256};
use unisono_base::{Span, interrupt, parallel};

use super::expressions::{END, Expressions};

/// Greatest number of combinations of results that get a name.
const MOST: usize = 1 << 22;

/// Words of the text that are not ranks: they state a combination, an output, a span or a mark. The number of an
/// expression has the highest bit set.
pub const COMBINE: u32 = (1 << 30) | 1;
pub const OUTPUT: u32 = (1 << 30) | 2;
pub const SPAN: u32 = (1 << 30) | 3;
const MARK: u32 = (1 << 30) | 4;
const NUMBER: u32 = 1 << 31;

/// First bytes of every text.
pub const PREFIX: &[u8] = b"unisono-expression 1\n";

#[derive(Clone)]
pub struct Name {
    /// SHA-256 so far; `None` for too many combinations.
    digest: Option<Sha256>,
    text: Text,
    /// True if expressions are part of the name; those of a barrier are not.
    expressions: bool,
    /// True if the whole text is stored, as by [`Name::keeping`].
    keeps: bool,
}

impl Name {
    pub fn new(expressions: bool) -> Self {
        let digest = Some(Sha256::new_with_prefix(PREFIX));
        Self { digest, text: Text::default(), expressions, keeps: false }
    }

    /// Returns an empty name that also stores all words of its text.
    pub fn keeping() -> Self {
        Self { keeps: true, ..Self::new(true) }
    }

    pub fn add(&mut self, rank: u32, output: &[(Span, u32)], expressions: &Expressions) {
        self.begin(rank);
        self.add_spans(output, expressions);
    }

    /// Adds an output as [`Self::add`] does, and returns it with the value of `beside`. Two threads write half of the
    /// text each. If an expression is in both halves, the second half is written again.
    pub fn added<T: Send>(
        &self,
        rank: u32,
        output: &[(Span, u32)],
        expressions: &Expressions,
        beside: impl Fn() -> T + Sync,
    ) -> (Self, T) {
        let (first, second) = output.split_at(if parallel::cores() > 1 { output.len() / 2 } else { output.len() });
        let written = || {
            let mut name = self.clone();
            name.begin(rank);
            name.add_spans(first, expressions);
            name
        };
        let others = || {
            let mut text = Text::default();
            for &part in second {
                if self.digest.is_none() || text.is_too_long() {
                    break;
                }
                text.add(part, self.expressions, expressions);
            }
            (text, beside())
        };
        let (mut name, (text, beside)) = parallel::both(written, others);
        if !name.text.append(&text) {
            name.add_spans(second, expressions);
        }
        name.pass();
        (name, beside)
    }

    fn begin(&mut self, rank: u32) {
        self.text.word(OUTPUT);
        self.text.word(rank);
    }

    fn add_spans(&mut self, output: &[(Span, u32)], expressions: &Expressions) {
        for &part in output {
            if self.digest.is_none() {
                return;
            }
            self.text.add(part, self.expressions, expressions);
            self.pass();
        }
    }

    /// Passes the text to the digest if it is long.
    fn pass(&mut self) {
        if self.text.is_too_long() {
            self.digest = None;
        }
        if self.text.words.len() >= 1 << 12
            && !self.keeps
            && let Some(digest) = &mut self.digest
        {
            digest.update(&self.text.words);
            self.text.words.clear();
        }
    }

    /// Returns the words of the only expression: those between the words of its output and its span. Returns `None` if
    /// words were not kept, or for too many combinations.
    pub fn expression(&self) -> Option<Vec<u32>> {
        self.digest.as_ref().filter(|_| self.keeps)?;
        let words: Vec<u32> = self.text.words.as_chunks().0.iter().map(|&word| u32::from_le_bytes(word)).collect();
        Some(words.get(2..words.len().checked_sub(3)?)?.to_vec())
    }

    /// Returns the first `bytes` bytes of the digest in hexadecimal; `None` for too many combinations.
    pub fn digest(self, bytes: usize) -> Option<String> {
        let mut digest = self.digest?;
        digest.update(&self.text.words);
        Some(digest.finalize()[..bytes].iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// The text of some spans of an output, or its end.
#[derive(Clone, Default)]
struct Text {
    words: Vec<u8>,
    /// Number of each expression that was written; 0 for all others.
    numbers: Vec<u32>,
    written: u32,
}

impl Text {
    fn is_too_long(&self) -> bool {
        self.written as usize > MOST
    }

    /// Adds a span and its expression.
    fn add(&mut self, (span, id): (Span, u32), with_expression: bool, expressions: &Expressions) {
        if with_expression {
            self.write(id, expressions);
        }
        self.word(SPAN);
        self.word(span.start);
        self.word(span.len);
    }

    fn write(&mut self, id: u32, expressions: &Expressions) {
        if self.numbers.is_empty() {
            // `resize` would touch all pages; a zeroed allocation uses memory only for written entries.
            self.numbers = vec![0; expressions.count()];
        }
        // Expressions to write; with a second operand, those whose operands are written.
        let mut open = vec![(id, None)];
        while let Some((id, second)) = open.pop() {
            if let Some(b) = second {
                self.written += 1;
                self.numbers[id as usize] = self.written;
                if b < END {
                    self.word(COMBINE);
                } else {
                    self.word(MARK);
                    self.word(b);
                }
                if self.is_too_long() {
                    return;
                }
                if self.written.is_multiple_of(1 << 9) {
                    interrupt::poll();
                }
            } else if let Some((a, b)) = expressions.written(id) {
                if self.numbers[id as usize] != 0 {
                    self.word(NUMBER | self.numbers[id as usize]);
                } else if b >= END {
                    open.extend([(id, Some(b)), (a, None)]);
                } else {
                    open.extend([(id, Some(b)), (b, None), (a, None)]);
                }
            } else {
                self.word(id);
            }
        }
    }

    fn word(&mut self, word: u32) {
        self.words.extend_from_slice(&word.to_le_bytes());
    }

    /// Appends the text of further spans, which was written alone, and counts its numbers from the last one of this
    /// text. Returns false, and appends nothing, if both texts have an expression in common.
    fn append(&mut self, other: &Self) -> bool {
        if self.numbers.iter().zip(&other.numbers).any(|(&one, &two)| one != 0 && two != 0) {
            return false;
        }
        // Words after these two words are no numbers of expressions.
        let mut plain = 0;
        for &word in other.words.as_chunks().0 {
            let mut word = u32::from_le_bytes(word);
            match word {
                _ if plain > 0 => plain -= 1,
                SPAN => plain = 2,
                MARK => plain = 1,
                number if number & NUMBER != 0 => word += self.written,
                _ => {}
            }
            self.word(word);
        }
        self.written += other.written;
        true
    }
}
