//! No damage makes the readers or the checks panic.

use crate::common;

use common::*;
use proptest::prelude::*;
use unisono_emit::csl::{self, Files, Project};

/// Cuts, repeats and swaps lines, changes characters and numbers.
fn damage(text: &str, edits: &[(u8, u32, u32)]) -> String {
    let mut text = text.to_owned();
    for &(kind, a, b) in edits {
        let mut lines: Vec<&str> = text.lines().collect();
        if lines.is_empty() {
            break;
        }
        let (i, j) = (a as usize % lines.len(), b as usize % lines.len());
        match kind % 6 {
            0 => drop(lines.remove(i)),
            1 => lines.insert(i, lines[j]),
            2 => lines.swap(i, j),
            _ => {}
        }
        let mut chars: Vec<char> = lines.join("\n").chars().collect();
        let at = a as usize % chars.len().max(1);
        if !chars.is_empty() && kind % 6 > 2 {
            match kind % 6 {
                3 => chars[at] = char::from(32 + (b % 96) as u8),
                4 => drop(chars.remove(at)),
                _ => {
                    // At a digit, if one is near: numbers are where the harm is.
                    let digit = chars[at..].iter().position(char::is_ascii_digit).map_or(at, |d| at + d);
                    let numbers = [
                        "0",
                        "1",
                        "3",
                        "5",
                        "32767",
                        "4294967296",
                        "18446744073709551615",
                        "99999999999999999999",
                        "é",
                    ];
                    let number = numbers[b as usize % numbers.len()];
                    chars.splice(digit..=digit, number.chars());
                }
            }
        }
        text = chars.into_iter().collect();
    }
    text
}

fn take(files: &Files) {
    let Ok(project) = Project::parse(files) else {
        return;
    };
    let found = csl::check(&project, &TARGET);
    if let Ok(program) = project.program() {
        // What was read can be emitted, or is refused; where nothing was found wrong, it reads back.
        if let Ok(again) = csl::emit(&program, &TARGET)
            && found.is_empty()
        {
            assert!(csl::read(&again).unwrap() == csl::normalised(&program));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::soak::cases(2000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_projects(which: prop::sample::Index, edits in prop::collection::vec(any::<(u8, u32, u32)>(), 1..5), threads: bool) {
        let program = if threads { two_sides(4) } else { grid_reduce(&[0, 1, 0], &[0], 4, true) };
        let mut files = emit(&program);
        files.retain(|f| f.0.ends_with(".csl"));
        let at = which.index(files.len());
        files[at].1 = damage(&files[at].1, &edits);
        take(&files);
    }

    #[test]
    fn noise(layout in ".{0,200}", code in "[a-z@(){}.,;|= 0-9]{0,200}") {
        take(&vec![("layout.csl".to_owned(), layout), ("pe_0.csl".to_owned(), code)]);
    }
}

#[test]
fn deep_nesting_is_refused() {
    for open in ["(", ".{ ", "layout { ", "for (", "if (", "@f("] {
        let text = open.repeat(100_000);
        let e = Project::parse(&[("layout.csl".to_owned(), text)]).unwrap_err();
        assert!(e.to_string().starts_with("layout.csl, line 1: "), "{e}");
    }
}
