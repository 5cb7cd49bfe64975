//! Tests of `switch`.

use std::ffi::OsStr;

use unisono_mpi::{
    OF_PROGRAMS, REPORTED,
    internals::switch::{is_on_value, unknown},
};

#[test]
fn values_of_switches() {
    for (value, on, complains) in [
        ("", false, false),
        ("0", false, false),
        ("False", false, false),
        ("off", false, false),
        ("1", true, false),
        ("TRUE", true, false),
        ("on", true, false),
        ("2", true, true),
        ("no", true, true),
    ] {
        let mut said = String::new();
        assert_eq!(is_on_value("X", OsStr::new(value), |line| line.clone_into(&mut said)), on, "{value}");
        assert_eq!(said.contains("X is") && said.contains(value), complains, "{value}: {said}");
    }
}

fn unknown_of(names: &[&str]) -> Option<String> {
    unknown(names.iter().map(|&name| name.to_owned()))
}

#[test]
fn known_and_foreign_names_have_no_sentence() {
    let foreign = ["PATH", "UNISONO", "UNISONOPLAN", "MY_UNISONO_PLAN", REPORTED, "_UNISONO_COMPLETE", "UNISONO_SOAK"];
    assert_eq!(unknown_of(&[&OF_PROGRAMS[..], &foreign].concat()), None);
}

#[test]
fn a_name_with_a_wrong_letter_has_its_name_as_the_nearest() {
    let prefix = "UNISONO_".len();
    for name in OF_PROGRAMS {
        let mut wrong = vec![name.to_ascii_lowercase(), format!("_{name}"), format!("{name}S")];
        for at in prefix..name.len() {
            wrong.push(format!("{}{}", &name[..at], &name[at + 1..]));
            wrong.push(format!("{}7{}", &name[..at], &name[at + 1..]));
            wrong.push(format!("{}7{}", &name[..at], &name[at..]));
        }
        for wrong in wrong {
            let expected = format!("nothing reads {wrong} (the nearest name is {name})");
            assert_eq!(unknown_of(&["PATH", name, &wrong]), Some(expected));
        }
    }
}

#[test]
fn names_are_one_line_of_bounded_length() {
    let long = format!("UNISONO_{}", "é".repeat(100_000));
    let names = [long.as_str(), "UNISONO_\n\u{1b}[31m", "UNISONO_PALN", "UNISONO_B", "UNISONO_A"];
    let found = unknown_of(&names).unwrap();
    assert!(found.len() < 600 && !found.contains(char::is_control), "{found}");
    assert!(found.starts_with("nothing reads UNISONO_\\n") && found.ends_with(", and 2 more"), "{found}");
}
