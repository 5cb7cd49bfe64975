//! Words of CSL. Comments are dropped, but for those that open with `//~`: they carry what CSL has no place for.

use unisono_base::narrow;

use super::ReadError;

#[derive(Clone, PartialEq, Debug)]
pub enum Token {
    Name(String),
    /// `@name`
    Builtin(String),
    Int(u64),
    Str(String),
    /// The rest of a `//~` line.
    Note(String),
    Symbol(&'static str),
    End,
}

/// Longest first.
const SYMBOLS: [&str; 22] =
    ["->", "==", "-=", "+=", "(", ")", "{", "}", "[", "]", "|", ",", ";", ":", ".", "=", "*", "&", "<", "+", "-", "/"];

pub fn lex(file: &str, text: &str) -> Result<Vec<(u32, Token)>, ReadError> {
    let mut tokens = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let line_number = narrow::<u32>(n) + 1;
        let mut rest = line.trim_start();
        while !rest.is_empty() {
            if let Some(note) = rest.strip_prefix("//") {
                if let Some(note) = note.strip_prefix('~') {
                    tokens.push((line_number, Token::Note(note.trim().to_owned())));
                }
                break;
            }
            let (token, length) = word(rest).ok_or_else(|| {
                let found: String = rest.chars().take(12).collect();
                ReadError::new(file, line_number, format!("`{found}` is not CSL as it is emitted"))
            })?;
            tokens.push((line_number, token));
            rest = rest[length..].trim_start();
        }
    }
    Ok(tokens)
}

/// The first word of a text and its length in bytes.
fn word(text: &str) -> Option<(Token, usize)> {
    let first = text.chars().next()?;
    if first == '"' {
        let end = text[1..].find('"')?;
        return Some((Token::Str(text[1..=end].to_owned()), end + 2));
    }
    if first == '@' {
        let length = name_length(&text[1..])?;
        return Some((Token::Builtin(text[..=length].to_owned()), length + 1));
    }
    if first.is_ascii_digit() {
        let length = text.bytes().take_while(u8::is_ascii_digit).count();
        return Some((Token::Int(text[..length].parse().ok()?), length));
    }
    if let Some(length) = name_length(text) {
        return Some((Token::Name(text[..length].to_owned()), length));
    }
    let symbol = SYMBOLS.iter().find(|s| text.starts_with(**s))?;
    Some((Token::Symbol(symbol), symbol.len()))
}

fn name_length(text: &str) -> Option<usize> {
    let length = text.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
    (length > 0).then_some(length)
}
