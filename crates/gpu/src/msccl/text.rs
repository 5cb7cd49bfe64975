//! The text of a file as the executor's parser reads it. The parser accepts less than XML: no declarations, tabs or
//! single quotes, only blanks between attributes, and at most 16 attributes a tag. Numbers follow C: a leading 0 means
//! base 8.
//!
//! Source: msccl-executor-nccl, `src/misc/msccl/msccl_parser.cc` (`mscclXmlGetNode`) and
//! `src/include/msccl/msccl_parser.h`.

use unisono_base::xml::{self, short};

/// The maximum length in bytes of a value, and of a name before `=`. If another character ends a name, the parser
/// stores that character behind the name, so the name must be one byte shorter.
const LENGTH: usize = 254;
/// The maximum number of attributes of a tag. Each additional blank between two attributes counts as an attribute.
const ATTRIBUTES: usize = 16;
/// The attributes that the parser reads as numbers.
const NUMBERS: &[&str] = &[
    "nchannels",
    "nchunksperloop",
    "ngpus",
    "inplace",
    "outofplace",
    "minBytes",
    "maxBytes",
    "id",
    "i_chunks",
    "o_chunks",
    "s_chunks",
    "send",
    "recv",
    "chan",
    "s",
    "srcoff",
    "dstoff",
    "cnt",
    "depid",
    "deps",
    "hasdep",
];
/// The attributes that the parser reads as text.
const TEXTS: &[&str] = &["proto", "coll", "type", "srcbuf", "dstbuf"];

/// Returns the reason why the parser refuses an XML text, or why it reads a number in the text as another number;
/// `None` if neither happens.
pub fn refused(text: &str) -> Option<String> {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\n', '\r']);
        if rest.is_empty() {
            return None;
        }
        match tag(rest) {
            Ok(next) => rest = next,
            Err(reason) => {
                let line = 1 + text[..text.len() - rest.len()].matches('\n').count();
                return Some(format!("line {line}: {reason}"));
            }
        }
    }
}

/// Returns the text before the first character that ends a name, that character, and the text after it.
fn token(text: &str) -> Result<(&str, char, &str), String> {
    let ends = |c: char| matches!(c, '=' | ' ' | '>' | '/' | '\n' | '\r');
    let at = text.find(ends).ok_or("a tag does not end")?;
    let end = text.as_bytes()[at];
    let most = if end == b'=' { LENGTH } else { LENGTH - 1 };
    if at > most {
        return Err(format!("a name has {at} characters, and the executor's parser holds {most} of it"));
    }
    Ok((&text[..at], char::from(end), &text[at + 1..]))
}

/// Returns the text after a tag or a comment.
fn tag(text: &str) -> Result<&str, String> {
    let Some(body) = text.strip_prefix('<') else {
        let found = text.chars().next().unwrap_or_default();
        return Err(format!(
            "{found:?} stands between elements, and the executor's parser takes blanks and line breaks alone"
        ));
    };
    let (name, mut end, mut rest) = token(body)?;
    if name.starts_with("!--") && end != '=' {
        let close = body[3..].find("-->").ok_or("a comment does not end")?;
        return Ok(&body[3 + close + 3..]);
    }
    if name.is_empty() && end == '/' {
        let (_, end, rest) = token(rest)?;
        return if end == '>' { Ok(rest) } else { Err(separated(end)) };
    }
    let mut count = 0;
    while end == ' ' {
        let key;
        (key, end, rest) = token(rest)?;
        if end == '=' {
            let quoted = rest.strip_prefix('"').and_then(|rest| rest.split_once('"'));
            let (value, behind) = quoted.ok_or_else(|| {
                format!("the executor's parser wants the value of {} in double quotes, right behind the =", short(key))
            })?;
            check(key, value, count)?;
            end = behind.chars().next().ok_or("a tag does not end")?;
            rest = &behind[end.len_utf8()..];
        } else if NUMBERS.contains(&key) || TEXTS.contains(&key) {
            return Err(format!("the executor's parser wants the = and the value of {} right behind it", short(key)));
        }
        count += 1;
    }
    if end == '/' {
        (_, end, rest) = token(rest)?;
    }
    if end == '>' { Ok(rest) } else { Err(separated(end)) }
}

fn separated(end: char) -> String {
    format!(
        "{end:?} stands in a tag, and the executor's parser takes blanks alone between attributes, and none in a closing tag"
    )
}

/// Checks an attribute. `before` is the number of attributes and additional blanks before it in its tag.
fn check(key: &str, value: &str, before: usize) -> Result<(), String> {
    let is_number = NUMBERS.contains(&key);
    if before >= ATTRIBUTES && (is_number || TEXTS.contains(&key)) {
        return Err(format!(
            "{key} stands behind {before} attributes and blanks of its tag, and the executor's parser reads {ATTRIBUTES}"
        ));
    }
    if value.len() > LENGTH {
        let (key, length) = (short(key), value.len());
        return Err(format!("the value of {key} has {length} characters, and the executor's parser holds {LENGTH}"));
    }
    let digits = xml::trimmed(value).trim_start_matches(['+', '-']);
    let of = |base| i64::from_str_radix(digits, base).ok();
    if is_number && digits.starts_with('0') && of(8) != of(10) {
        return Err(format!("{key}=\"{}\" is a number of base 8 to the executor; leave its first 0 out", short(value)));
    }
    Ok(())
}
