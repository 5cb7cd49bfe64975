//! One line of GOAL, token by token.

/// What a line lacks: shown after what was found.
pub(super) type Wrong = String;

/// Numbers of so many digits fit in 64 bits.
const MOST_DIGITS: usize = 19;

pub(super) struct Line<'a> {
    rest: &'a [u8],
}

impl<'a> Line<'a> {
    /// A line without its end.
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

    /// Takes `token` if it comes next.
    #[inline]
    pub fn take(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token.as_bytes()) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Drops everything up to the end of `token`; whether there was one.
    pub fn skip_past(&mut self, token: &str) -> bool {
        let at = self.rest.windows(token.len()).position(|w| w == token.as_bytes());
        self.rest = at.map_or(&[], |at| &self.rest[at + token.len()..]);
        at.is_some()
    }

    /// `[a-zA-Z][a-zA-Z0-9_]*`; empty if something else comes next.
    #[inline]
    pub fn word(&mut self) -> &'a [u8] {
        if !self.rest.first().is_some_and(u8::is_ascii_alphabetic) {
            return &[];
        }
        let inside = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
        let end = self.rest.iter().position(|b| !inside(b)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    /// A keyword, after blanks.
    #[inline]
    pub fn keyword(&mut self, keyword: &str) -> Result<(), Wrong> {
        self.skip_blanks();
        if self.take(keyword) { Ok(()) } else { Err(self.wrong(&format!("'{keyword}'"))) }
    }

    /// A keyword that may be missing, after blanks.
    #[inline]
    pub fn option(&mut self, keyword: &str) -> bool {
        self.skip_blanks();
        self.take(keyword)
    }

    /// A number up to `most`, after blanks.
    #[inline]
    pub fn number(&mut self, what: &str, most: u64) -> Result<u64, Wrong> {
        self.skip_blanks();
        let start = self.rest;
        let digits = start.iter().position(|b| !b.is_ascii_digit()).unwrap_or(start.len());
        self.rest = &start[digits..];
        let add = |value: u64, digit: &u8| value.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
        let value = if digits <= MOST_DIGITS {
            Some(start[..digits].iter().fold(0, add))
        } else {
            let checked = |value: u64, digit: &u8| value.checked_mul(10)?.checked_add(u64::from(digit - b'0'));
            start[..digits].iter().try_fold(0, checked)
        };
        match value.filter(|v| *v <= most) {
            Some(value) if digits > 0 => Ok(value),
            None => Err(format!("{what} is {}; at most {most} fits", shown(&start[..digits]))),
            _ => Err(self.wrong(what)),
        }
    }

    /// A number up to `most`, or -1 for any.
    #[inline]
    pub fn number_or_any(&mut self, what: &str, most: u64) -> Result<Option<u64>, Wrong> {
        self.skip_blanks();
        if self.take("-1") { Ok(None) } else { self.number(what, most).map(Some) }
    }

    /// Nothing more but blanks.
    #[inline]
    pub fn end(&mut self) -> Result<(), Wrong> {
        self.skip_blanks();
        if self.rest.is_empty() { Ok(()) } else { Err(self.wrong("the end of the line")) }
    }

    /// `what` was wanted where the line is now.
    #[cold]
    pub fn wrong(&self, what: &str) -> Wrong {
        if self.rest.is_empty() {
            format!("the line ends where {what} is expected")
        } else {
            format!("found '{}' where {what} is expected", shown(self.rest))
        }
    }
}

/// The start of a text, for people.
pub(super) fn shown(text: &[u8]) -> String {
    const MOST: usize = 40;
    let start: String = String::from_utf8_lossy(&text[..text.len().min(MOST)]).escape_debug().collect();
    if text.len() > MOST { start + "..." } else { start }
}
