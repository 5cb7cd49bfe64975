//! Lines of GOAL, token by token.

use unisono_base::narrow;

/// Description of an error in a line; messages print it after the line's number.
pub(super) type Wrong = String;

/// Greatest number of digits of a number that always fits into 64 bits.
const MOST_DIGITS: usize = 19;
/// Number of bytes that are parsed at a time.
const CHUNK: usize = 8;
/// Greatest number of digits of a numbered label.
const MOST_LABEL_DIGITS: usize = 9;

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

/// A word: `[a-zA-Z][a-zA-Z0-9_]*`, or empty.
#[derive(Clone, Copy)]
pub struct Word<'a> {
    pub text: &'a [u8],
    /// Number of a word that consists of one letter and at most nine digits without leading zeros; `u32::MAX` for other
    /// words.
    pub number: u32,
}

impl Word<'_> {
    #[inline(always)]
    pub fn is_numbered(self) -> bool {
        self.number < u32::MAX
    }
}

/// Current line of a text, from the current position on. Each line, except the last one, ends with `\n` or `\r\n`.
pub struct Line<'a> {
    rest: &'a [u8],
}

impl<'a> Line<'a> {
    /// Creates the first line of a text.
    #[inline(always)]
    pub fn new(text: &'a [u8]) -> Self {
        Self { rest: text }
    }

    /// Returns whether the text ends at the current position.
    #[inline(always)]
    pub fn ends_text(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns whether the line ends at the current position.
    #[inline(always)]
    pub fn is_over(&self) -> bool {
        matches!(self.rest, [b'\n', ..] | [b'\r', b'\n', ..] | [b'\r'] | [])
    }

    /// Returns whether a word is next.
    #[inline(always)]
    pub fn begins_word(&self) -> bool {
        self.rest.first().is_some_and(u8::is_ascii_alphabetic)
    }

    /// Moves to the begin of the next line.
    #[inline(always)]
    pub fn next(&mut self) {
        let end = if let [b'\n', ..] = self.rest { Some(0) } else { memchr::memchr(b'\n', self.rest) };
        self.rest = end.map_or(&[], |end| &self.rest[end + 1..]);
    }

    #[inline(always)]
    pub fn skip_blanks(&mut self) {
        while let [b' ' | b'\t', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    /// If `token` is next, takes it and returns true. The length of the token is a compile-time constant, so that the
    /// compiler compares integers instead of bytes.
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

    /// Skips everything up to the end of `token`, or the rest of the line; returns whether the token was found.
    #[inline(always)]
    pub fn skip_past(&mut self, token: &[u8]) -> bool {
        let line = line_of(self.rest);
        let at = line.windows(token.len()).position(|w| w == token);
        self.rest = &self.rest[at.map_or(line.len(), |at| at + token.len())..];
        at.is_some()
    }

    /// Takes a word; returns an empty word if something else is next.
    #[inline(always)]
    pub fn word(&mut self) -> Word<'a> {
        let start = self.rest;
        if !self.begins_word() {
            return Word { text: &[], number: u32::MAX };
        }
        let (digits, value) = leading_number(&start[1..]);
        let mut end = 1 + digits;
        let is_plain = (1..=MOST_LABEL_DIGITS).contains(&digits) && (digits == 1 || start[1] != b'0');
        let mut number = if is_plain { narrow(value) } else { u32::MAX };
        while let Some(&byte) = start.get(end)
            && IN_WORD[usize::from(byte)]
        {
            number = u32::MAX;
            end += 1;
        }
        let (text, rest) = start.split_at(end);
        self.rest = rest;
        Word { text, number }
    }

    /// Takes the word `word` if it is next, and returns whether it is.
    #[inline(always)]
    pub fn take_word<const N: usize>(&mut self, word: &[u8; N]) -> bool {
        self.rest.get(N).is_none_or(|&byte| !IN_WORD[usize::from(byte)]) && self.take(word)
    }

    /// Takes keywords that must be next. `usual` contains the keywords with the blanks that programs usually write
    /// between them; a text with exactly these blanks is accepted by one comparison. Other blanks are accepted more
    /// slowly.
    #[inline(always)]
    pub fn keywords<const N: usize>(&mut self, usual: &[u8; N]) -> Result<(), Wrong> {
        if !self.take(usual) {
            let wrong = |(rest, keyword): (_, &[u8])| wrong(rest, &format!("'{}'", shown(keyword)));
            self.rest = spaced(self.rest, usual).map_err(wrong)?;
        }
        Ok(())
    }

    /// Takes a keyword, written as in [`Line::keywords`], if it is next; returns whether it is.
    #[inline(always)]
    pub fn option<const N: usize>(&mut self, usual: &[u8; N]) -> bool {
        let is_usual = self.take(usual);
        is_usual || !self.is_over() && spaced(self.rest, usual).map(|rest| self.rest = rest).is_ok()
    }

    /// Takes a number of at most `most`, after blanks. Errors name the number `what`.
    #[inline(always)]
    pub fn number(&mut self, what: &str, most: u64) -> Result<u64, Wrong> {
        let (mut digits, mut value) = leading_number(self.rest);
        if digits == 0 {
            self.skip_blanks();
            (digits, value) = long_number(self.rest);
            if digits == 0 {
                return Err(self.wrong(what));
            }
        }
        let (digits, rest) = self.rest.split_at(digits);
        self.rest = rest;
        if digits.len() <= MOST_DIGITS && value <= most { Ok(value) } else { large(digits, what, most) }
    }

    /// Takes a number of at most `most`, after blanks; `None` for -1, which means any.
    #[inline(always)]
    pub fn number_or_any(&mut self, what: &str, most: u64) -> Result<Option<u64>, Wrong> {
        if !self.rest.first().is_some_and(u8::is_ascii_digit) {
            self.skip_blanks();
            if self.take(b"-1") {
                return Ok(None);
            }
        }
        self.number(what, most).map(Some)
    }

    /// Checks that only blanks remain.
    #[inline(always)]
    pub fn end(&mut self) -> Result<(), Wrong> {
        self.skip_blanks();
        if self.is_over() { Ok(()) } else { Err(self.wrong("the end of the line")) }
    }

    /// Returns the error that `what` is expected at the current position of the line.
    #[inline(always)]
    pub fn wrong(&self, what: &str) -> Wrong {
        wrong(self.rest, what)
    }
}

// The error functions take the text instead of the line, so that the line can stay in registers.

#[cold]
fn wrong(rest: &[u8], what: &str) -> Wrong {
    match line_of(rest) {
        [] => format!("the line ends where {what} is expected"),
        rest => format!("found '{}' where {what} is expected", shown(rest)),
    }
}

/// Returns the text after keywords that are next; blanks are skipped. The error names the first other text, and the
/// missing keyword.
#[inline(never)]
fn spaced<'a, 'k>(rest: &'a [u8], keywords: &'k [u8]) -> Result<&'a [u8], (&'a [u8], &'k [u8])> {
    let mut line = Line::new(rest);
    for keyword in keywords.split(|&byte| byte == b' ').filter(|keyword| !keyword.is_empty()) {
        line.skip_blanks();
        line.rest = line.rest.strip_prefix(keyword).ok_or((line.rest, keyword))?;
    }
    Ok(line.rest)
}

/// Returns the rest of the line at the begin of `rest`, without its end.
fn line_of(rest: &[u8]) -> &[u8] {
    let line = &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())];
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Returns the number of digits at the begin of a text, and their value modulo 2^64.
#[inline(always)]
fn leading_number(text: &[u8]) -> (usize, u64) {
    match text.first_chunk().map(|&bytes| number_in(u64::from_le_bytes(bytes))) {
        Some((digits, value)) if digits < CHUNK => (digits, value),
        _ => long_number(text),
    }
}

/// Returns [`leading_number`] of eight bytes, the first of which is the lowest. Eight digits mean that the number may
/// continue. All eight bytes are compared at once, and digits are summed in pairs, fours and eights (Lemire, "Number
/// Parsing at a Gigabyte per Second", 2021).
#[inline(always)]
fn number_in(bytes: u64) -> (usize, u64) {
    let digits = bytes ^ 0x3030_3030_3030_3030;
    // The top bit of a byte of 10 or more becomes 1; sums carry only into bytes after such a byte.
    let others = (digits.wrapping_add(0x7676_7676_7676_7676) | digits) & 0x8080_8080_8080_8080;
    let zeros = others.trailing_zeros();
    // Shifts by 64 - 8 * count bits; `zeros` is 8 * count + 7, so its complement modulo 64 is 56 - 8 * count.
    let ones = (digits << 8).wrapping_shl(!zeros);
    let twos = ones.wrapping_mul(10).wrapping_add(ones >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = twos.wrapping_mul(100).wrapping_add(twos >> 16) & 0x0000_ffff_0000_ffff;
    let eights = fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xffff_ffff;
    (zeros as usize / CHUNK, eights)
}

/// Returns [`leading_number`] of a text byte by byte.
#[inline(never)]
fn long_number(text: &[u8]) -> (usize, u64) {
    let (mut value, mut digits) = (0u64, 0);
    while let Some(digit) = text.get(digits).map(|b| b.wrapping_sub(b'0')).filter(|&digit| digit < 10) {
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        digits += 1;
    }
    (digits, value)
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
