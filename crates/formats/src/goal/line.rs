//! One line of GOAL, token by token.

/// Description of an error in a line; messages print it after the line's number.
pub(super) type Wrong = String;

/// Greatest number of digits of a number that always fits into 64 bits.
const MOST_DIGITS: usize = 19;

/// True for the bytes that a word may contain.
const IN_WORD: [bool; 256] = {
    let mut inside = [false; 256];
    let mut byte = 0_u8;
    while byte < u8::MAX {
        inside[byte as usize] = byte.is_ascii_alphanumeric() || byte == b'_';
        byte += 1;
    }
    inside
};

pub(super) struct Line<'a> {
    rest: &'a [u8],
}

impl<'a> Line<'a> {
    /// Creates a line from a text without its line end.
    pub fn new(text: &'a [u8]) -> Self {
        Self { rest: text }
    }

    #[inline]
    pub fn skip_blanks(&mut self) {
        while let [b' ' | b'\t', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Takes `token` if it is next, and returns whether it is. The length of the token is constant, so that integers
    /// are compared.
    #[inline(always)]
    pub fn take<const N: usize>(&mut self, token: &[u8; N]) -> bool {
        match self.rest.split_first_chunk() {
            Some((first, rest)) if first == token => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// Skips everything up to the end of `token`; returns whether it was found.
    pub fn skip_past(&mut self, token: &[u8]) -> bool {
        let at = self.rest.windows(token.len()).position(|w| w == token);
        self.rest = at.map_or(&[], |at| &self.rest[at + token.len()..]);
        at.is_some()
    }

    /// Takes `[a-zA-Z][a-zA-Z0-9_]*`; returns an empty word if something else is next.
    #[inline(always)]
    pub fn word(&mut self) -> &'a [u8] {
        if !self.rest.first().is_some_and(u8::is_ascii_alphabetic) {
            return &[];
        }
        let end = self.rest.iter().position(|&b| !IN_WORD[usize::from(b)]).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    /// Takes a keyword that must be next, after blanks.
    #[inline(always)]
    pub fn keyword<const N: usize>(&mut self, keyword: &[u8; N]) -> Result<(), Wrong> {
        self.skip_blanks();
        if self.take(keyword) { Ok(()) } else { Err(self.wrong(&format!("'{}'", shown(keyword)))) }
    }

    /// Takes a keyword, after blanks, if it is next; returns whether it is.
    #[inline(always)]
    pub fn option<const N: usize>(&mut self, keyword: &[u8; N]) -> bool {
        self.skip_blanks();
        self.take(keyword)
    }

    /// Takes a number of at most `most`, after blanks. Errors name the number `what`.
    #[inline(always)]
    pub fn number(&mut self, what: &str, most: u64) -> Result<u64, Wrong> {
        self.skip_blanks();
        let start = self.rest;
        let (mut value, mut digits) = (0u64, 0);
        while let Some(digit) = start.get(digits).map(|b| b.wrapping_sub(b'0')).filter(|&digit| digit < 10) {
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            digits += 1;
        }
        if digits == 0 {
            return Err(self.wrong(what));
        }
        let (digits, rest) = start.split_at(digits);
        self.rest = rest;
        if digits.len() <= MOST_DIGITS && value <= most { Ok(value) } else { large(digits, what, most) }
    }

    /// Takes a number of at most `most`, after blanks; `None` for -1, which means any.
    #[inline(always)]
    pub fn number_or_any(&mut self, what: &str, most: u64) -> Result<Option<u64>, Wrong> {
        self.skip_blanks();
        if self.take(b"-1") { Ok(None) } else { self.number(what, most).map(Some) }
    }

    /// Checks that only blanks remain.
    #[inline]
    pub fn end(&mut self) -> Result<(), Wrong> {
        self.skip_blanks();
        if self.rest.is_empty() { Ok(()) } else { Err(self.wrong("the end of the line")) }
    }

    /// Returns the error that `what` is expected at the current position of the line.
    #[cold]
    pub fn wrong(&self, what: &str) -> Wrong {
        if self.rest.is_empty() {
            format!("the line ends where {what} is expected")
        } else {
            format!("found '{}' where {what} is expected", shown(self.rest))
        }
    }
}

/// Parses a number with many digits, or returns the error that a number is too large.
#[cold]
fn large(digits: &[u8], what: &str, most: u64) -> Result<u64, Wrong> {
    let add = |value: u64, digit: &u8| value.checked_mul(10)?.checked_add(u64::from(digit - b'0'));
    let value = digits.iter().try_fold(0, add).filter(|&value| value <= most);
    value.ok_or_else(|| format!("{what} is {}; at most {most} fits", shown(digits)))
}

/// Returns at most 40 bytes from the start of a text, escaped for messages.
pub(super) fn shown(text: &[u8]) -> String {
    const MOST: usize = 40;
    let start: String = String::from_utf8_lossy(&text[..text.len().min(MOST)]).escape_debug().collect();
    if text.len() > MOST { start + "..." } else { start }
}
