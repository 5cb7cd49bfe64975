//! A line of the text form as a cursor, and the error that names the line's number.

use std::str::FromStr;

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct ParseError {
    pub line: usize,
    pub message: String,
}

/// One line without its comment. The cursor moves from left to right.
pub struct Line<'a> {
    pub number: usize,
    rest: &'a str,
    /// True if white space is required at the spaces of a token, and forbidden elsewhere.
    exact: bool,
}

/// Greatest number of digits of a number on an exact line, including leading zeros.
const MOST_DIGITS: usize = 10;
/// White space of a schedule; a carriage return is allowed only at line ends.
const BLANKS: [char; 2] = [' ', '\t'];

impl<'a> Line<'a> {
    /// Returns a line of a `machine` or `placement` section, in which white space may follow every token.
    pub fn new(number: usize, text: &'a str) -> Self {
        let code = text.split_once(';').map_or(text, |(code, _)| code);
        Self { number, rest: code.trim(), exact: false }
    }

    /// Returns a line of the schedule itself. White space is fixed there, so that all readers agree.
    pub(super) fn exact(number: usize, text: &'a str) -> Result<Self, ParseError> {
        let code = text.split_once(';').map_or(text, |(code, _)| code);
        let line = Self { number, rest: code.trim_matches(BLANKS), exact: true };
        match code.chars().find(|c| !c.is_ascii()) {
            Some(found) if !code.starts_with("origin ") && !code.starts_with("phases ") => Err(line.error(format!(
                "the line has the character '{found}'; only comments and lines that start with 'origin ' or \
                 'phases ' have others than those of ASCII"
            ))),
            _ => Ok(line),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub fn rest(&self) -> &'a str {
        self.rest
    }

    pub fn error(&self, message: String) -> ParseError {
        ParseError { line: self.number, message }
    }

    pub fn expected(&self, what: &str) -> ParseError {
        let found: String = self.rest.chars().take(24).collect();
        self.error(if found.is_empty() {
            format!("the line ends where {what} is expected")
        } else {
            format!("found '{found}' where {what} is expected")
        })
    }

    /// Consumes `token` if it is next. On a line of a section, also consumes white space after the token; on an exact
    /// line, each space of the token matches one or more blanks.
    pub fn take(&mut self, token: &str) -> bool {
        let mut rest = self.rest;
        for (n, word) in token.split(' ').enumerate() {
            let at = if n == 0 { rest } else { rest.trim_start_matches(BLANKS) };
            match at.strip_prefix(word) {
                Some(after) if n == 0 || at.len() < rest.len() => rest = after,
                _ => return false,
            }
        }
        self.go_on(rest);
        true
    }

    pub(super) fn skip_white_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn go_on(&mut self, rest: &'a str) {
        self.rest = if self.exact { rest } else { rest.trim_start() };
    }

    pub fn expect(&mut self, token: &str) -> Result<(), ParseError> {
        if self.take(token) { Ok(()) } else { Err(self.expected(&format!("'{token}'"))) }
    }

    /// Returns the next word, which ends at white space or one of `:,=`.
    pub fn word(&mut self, what: &str) -> Result<&'a str, ParseError> {
        let end = self.rest.find(|c: char| c.is_whitespace() || ":,=".contains(c)).unwrap_or(self.rest.len());
        if end == 0 {
            return Err(self.expected(what));
        }
        let (word, rest) = self.rest.split_at(end);
        self.go_on(rest);
        Ok(word)
    }

    pub fn number<T: FromStr>(&mut self, what: &str) -> Result<T, ParseError> {
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        match digits.parse() {
            Ok(n) if end <= MOST_DIGITS || !self.exact => {
                self.go_on(rest);
                Ok(n)
            }
            _ => Err(self.expected(what)),
        }
    }

    /// Reads ` key=VALUE` with a number as its value.
    pub(super) fn key<T: FromStr>(&mut self, key: &str) -> Result<T, ParseError> {
        self.expect(&format!(" {key}="))?;
        self.number(&format!("the value of {key}"))
    }

    pub fn end(&self) -> Result<(), ParseError> {
        if self.is_empty() { Ok(()) } else { Err(self.expected("the end of the line")) }
    }
}
