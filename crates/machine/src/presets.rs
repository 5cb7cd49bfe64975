//! The machines that come with the program: the files of `machines/`, built in.

pub struct Preset {
    pub name: &'static str,
    pub toml: &'static str,
}

/// Sorted by name; one entry a file of `machines/`.
pub const PRESETS: &[Preset] = &[Preset { name: "wse2", toml: include_str!("../../../machines/wse2.toml") }];
