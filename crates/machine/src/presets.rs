//! The machines that come with the program: the files of `machines/`, built in.

pub struct Preset {
    pub name: &'static str,
    pub toml: &'static str,
}

/// Sorted by name; one entry a file of `machines/`.
pub const PRESETS: &[Preset] = &[
    Preset { name: "archer", toml: include_str!("../../../machines/archer.toml") },
    Preset { name: "archer-median", toml: include_str!("../../../machines/archer-median.toml") },
    Preset { name: "paper-sim", toml: include_str!("../../../machines/paper-sim.toml") },
    Preset { name: "torus2d-small", toml: include_str!("../../../machines/torus2d-small.toml") },
    Preset { name: "wse2", toml: include_str!("../../../machines/wse2.toml") },
];
