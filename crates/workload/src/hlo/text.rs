//! Functions that split HLO text at separators outside of brackets and strings.

/// Calls `at` with the position and value of each byte outside of brackets and strings; a bracket at the outermost
/// level is itself outside. Returns the first position for which `at` returns true.
fn outside(text: &str, mut at: impl FnMut(usize, u8) -> bool) -> Option<usize> {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for (n, byte) in text.bytes().enumerate() {
        if quoted {
            quoted = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            continue;
        }
        let closes = matches!(byte, b')' | b']' | b'}');
        depth = if closes { depth.saturating_sub(1) } else { depth };
        if depth == 0 && at(n, byte) {
            return Some(n);
        }
        quoted = byte == b'"';
        if matches!(byte, b'(' | b'[' | b'{') {
            depth += 1;
        }
    }
    None
}

/// Splits at commas. Removes blanks around the parts, and comments before them. Leaves out blank parts.
pub fn parts(text: &str) -> Vec<&str> {
    let (mut parts, mut begin) = (Vec::new(), 0);
    outside(text, |n, byte| {
        if byte == b',' {
            parts.push(&text[begin..n]);
            begin = n + 1;
        }
        false
    });
    parts.push(&text[begin..]);
    parts.retain(|part| !part.trim().is_empty());
    parts.into_iter().map(without_comment).collect()
}

fn without_comment(text: &str) -> &str {
    let text = text.trim();
    let comment = text.strip_prefix("/*").and_then(|rest| rest.split_once("*/"));
    comment.map_or(text, |(_, rest)| rest.trim())
}

/// Splits `(inside) rest`, with brackets of any of the three sorts.
pub fn bracketed(text: &str) -> Option<(&str, &str)> {
    let closing = match text.as_bytes().first()? {
        b'(' => b')',
        b'[' => b']',
        b'{' => b'}',
        _ => return None,
    };
    let end = outside(text, |n, byte| n > 0 && byte == closing)?;
    Some((&text[1..end], &text[end + 1..]))
}

pub fn numbers(text: &str) -> Option<Vec<u64>> {
    parts(text).into_iter().map(|part| part.parse().ok()).collect()
}

/// Returns the value of `key=value` among the parts. A part that begins with `device_ids=` belongs to the value before
/// it: XLA writes the devices of a mesh after its axes, separated by a comma.
pub fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let parts = parts(text);
    let value = |part: &'a str| part.strip_prefix(key)?.strip_prefix('=');
    let (at, value) = parts.iter().enumerate().find_map(|(n, part)| Some((n, value(part)?)))?;
    let Some(more) = parts.get(at + 1).filter(|part| part.starts_with("device_ids=")) else {
        return Some(value);
    };
    let offset = |part: &str| part.as_ptr().addr() - text.as_ptr().addr();
    Some(&text[offset(value)..offset(more) + more.len()])
}
