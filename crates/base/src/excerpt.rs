//! Excerpts of texts of users and of their files, for messages.

/// The maximum number of characters of a text that a message shows.
const MOST: usize = 40;

/// Returns the first 40 characters of a text for a message, with escapes for control characters, line separators and
/// invisible characters, and `…` if characters follow.
///
/// So a message remains one readable line for any file, and contains little of the file.
pub fn excerpt(text: &str) -> String {
    let mut shown: String = text.chars().take(MOST).flat_map(escaped).collect();
    if text.chars().nth(MOST).is_some() {
        shown.push('…');
    }
    shown
}

fn escaped(c: char) -> impl Iterator<Item = char> {
    let plain =
        !c.is_control() && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}');
    let escape = (!plain).then(|| c.escape_default());
    plain.then_some(c).into_iter().chain(escape.into_iter().flatten())
}
