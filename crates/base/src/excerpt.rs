//! Excerpts of texts of users and of their files, for messages.

/// The most characters that a message shows.
const MOST: usize = 40;

/// Returns the beginning of a text for a message: at most 40 characters, with escapes for those that control a
/// terminal.
///
/// A message must stay one readable line for any file, and must not show more of a file than its reader needs.
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
