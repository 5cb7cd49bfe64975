//! Checks the files of `tests/filetests`. Line 1 has the command and the expected facts; expected errors are comments
//! on the lines at which they occur.
//!
//! `; verify` proves the schedule and checks its placement. `; error: CODE` on an instruction's line expects a finding
//! with that code at that instruction; on any other line it expects a finding without an instruction. Other findings
//! are not permitted. Facts follow the command: `; verify repeatable=false`. A file without errors must be equal after
//! it was printed and read again. `; parse` expects that the parser refuses the file with the message after `;
//! message:`.

use std::{collections::BTreeSet, fs, path::Path};

use unisono_lower::{from_json, parse, print, to_json};
use unisono_schedule::verify::{Method, verify};

#[test]
fn all_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/filetests");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 10, "there are {} file tests", files.len());
    for path in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        let command = text.lines().next().unwrap().trim_start_matches(';').trim().to_owned();
        let mut words = command.split_whitespace();
        match words.next() {
            Some("verify") => check(&name, &text, words.collect()),
            Some("parse") => {
                let message = text.lines().find_map(|l| l.split_once("; message: ")).unwrap().1;
                assert_eq!(parse(&text, &name).unwrap_err().to_string(), format!("{name}, {message}"));
            }
            other => panic!("{name}: line 1 names no command: {other:?}"),
        }
    }
}

fn check(name: &str, text: &str, facts: Vec<&str>) {
    let file = parse(text, name).unwrap();
    let proof = verify(&file.schedule, Method::Exact);
    let mut found = proof.diagnostics.clone();
    found.extend(file.check());
    let found: BTreeSet<(String, Option<u32>)> = found.iter().map(|d| (d.code.to_owned(), d.instruction)).collect();
    let mut expected = BTreeSet::new();
    for line in text.lines() {
        if let Some((code, errors)) = line.split_once("; error: ") {
            let id = code.trim_start().strip_prefix('i').and_then(|c| c.split([' ', ':']).next()?.parse().ok());
            expected.extend(errors.split(',').map(|e| (e.trim().to_owned(), id)));
        }
    }
    assert_eq!(found, expected, "{name}: {:#?}", proof.diagnostics);
    for fact in facts {
        let (key, value) = fact.split_once('=').unwrap_or((fact, "true"));
        let holds = match key {
            "complete" => proof.complete,
            "deadlock_free" => proof.deadlock_free,
            "race_free" => proof.race_free,
            "repeatable" => proof.repeatable,
            other => panic!("{name}: {other} is no fact of a proof"),
        };
        assert_eq!(holds.to_string(), value, "{name}: {key}");
    }
    let mut printed = String::new();
    print(&file, &mut printed).unwrap();
    assert_eq!(parse(&printed, name).unwrap(), file, "{name} prints and reads back");
    assert_eq!(from_json(&to_json(&file), name).unwrap(), file, "{name} through JSON");
}
