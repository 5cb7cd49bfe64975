//! Tests of `excerpt`.

use unisono_base::excerpt;

#[test]
fn short_text_is_shown_as_it_is() {
    assert_eq!(excerpt("0 1 dac é"), "0 1 dac é");
}

#[test]
fn long_text_is_cut_and_controls_are_escaped() {
    assert_eq!(excerpt(&"x".repeat(5000)).chars().count(), 41);
    assert_eq!(excerpt("\u{1b}[31m\u{202e}"), "\\u{1b}[31m\\u{202e}");
}
