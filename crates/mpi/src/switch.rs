//! The switches of the environment, as `UNISONO_ANYWHERE`.

use std::ffi::OsStr;

/// Whether a switch is on, as the environment of this process has it.
///
/// A value that is neither on nor off counts as on. `complain` then gets a line that names the accepted values.
pub fn is_on(name: &str, complain: impl FnOnce(&str)) -> bool {
    std::env::var_os(name).is_some_and(|value| is_on_value(name, &value, complain))
}

pub fn is_on_value(name: &str, value: &OsStr, complain: impl FnOnce(&str)) -> bool {
    let known = match value.to_str().map(str::to_ascii_lowercase).as_deref() {
        Some("" | "0" | "false" | "off") => Some(false),
        Some("1" | "true" | "on") => Some(true),
        _ => None,
    };
    known.unwrap_or_else(|| {
        complain(&format!("{name} is {value:?}, which counts as 1; accepted are 0, 1, false, true, off and on"));
        true
    })
}
