//! Tests of `switch`.

use std::ffi::OsStr;

use unisono_mpi::internals::switch::is_on_value;

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
