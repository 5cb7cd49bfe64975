//! Damaged files: readers answer with an error or with a schedule that everything else can take, never with a panic.

use proptest::prelude::*;
use unisono_lower::{File, from_json, parse, print, to_json};
use unisono_machine::Machine;
use unisono_schedule::verify::{Method, verify};

const TEXT: &str = include_str!("../../../tests/filetests/allreduce-4.sched");

fn take(file: &File) {
    verify(&file.schedule, Method::Auto);
    verify(&file.schedule, Method::Fingerprint);
    file.check();
    let mut text = String::new();
    print(file, &mut text).unwrap();
    assert_eq!(&parse(&text, "printed").unwrap(), file, "what was read prints and reads back");
    assert_eq!(&from_json(&to_json(file), "printed").unwrap(), file);
}

/// Edits of a text: cut, repeat, swap lines, change characters and numbers.
fn damage(text: &str, edits: &[(u8, u32, u32)]) -> String {
    let mut text = text.to_owned();
    for &(kind, a, b) in edits {
        let mut lines: Vec<&str> = text.lines().collect();
        if lines.is_empty() {
            break;
        }
        let (i, j) = (a as usize % lines.len(), b as usize % lines.len());
        match kind % 6 {
            0 => {
                lines.remove(i);
            }
            1 => lines.insert(i, lines[j]),
            2 => lines.swap(i, j),
            _ => {}
        }
        let joined = lines.join("\n");
        let mut chars: Vec<char> = joined.chars().collect();
        if !chars.is_empty() {
            let at = a as usize % chars.len();
            match kind % 6 {
                3 => chars[at] = char::from(32 + (b % 96) as u8),
                4 => {
                    chars.remove(at);
                }
                5 => {
                    let number =
                        ["0", "1", "4294967295", "99999999999999999999", "16777216", "-1", "é"][b as usize % 7];
                    let end = (at + 1).min(chars.len());
                    chars.splice(at..end, number.chars());
                }
                _ => {}
            }
        }
        text = chars.into_iter().collect();
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_text(edits in prop::collection::vec(any::<(u8, u32, u32)>(), 1..6)) {
        match parse(&damage(TEXT, &edits), "damaged") {
            Ok(file) if file.schedule.node_count() < 10_000 => take(&file),
            Ok(_) => {}
            Err(e) => prop_assert!(e.to_string().starts_with("damaged"), "{e}"),
        }
    }

    #[test]
    fn damaged_json(edits in prop::collection::vec(any::<(u8, u32, u32)>(), 1..6)) {
        let json = to_json(&parse(TEXT, "text").unwrap()).replace(",\"", ",\n\"");
        match from_json(&damage(&json, &edits), "damaged") {
            Ok(file) if file.schedule.node_count() < 10_000 => take(&file),
            Ok(_) => {}
            Err(e) => prop_assert!(e.to_string().starts_with("damaged"), "{e}"),
        }
    }

    #[test]
    fn damaged_machines(edits in prop::collection::vec(any::<(u8, u32, u32)>(), 1..6)) {
        let text = unisono_machine::PRESETS[0].toml;
        if let Err(e) = Machine::from_toml(&damage(text, &edits), "damaged") {
            prop_assert!(e.to_string().starts_with("damaged"), "{e}");
        }
    }

    #[test]
    fn noise(text in ".{0,200}") {
        prop_assert!(parse(&text, "noise").is_err());
        prop_assert!(from_json(&text, "noise").is_err());
    }
}
