//! The machines that come with the program: the files of `machines/`, built in.

pub struct Preset {
    pub name: &'static str,
    pub toml: &'static str,
}

/// Sorted by name; one entry a file of `machines/`.
pub const PRESETS: &[Preset] = &[
    Preset { name: "archer", toml: include_str!("../../../machines/archer.toml") },
    Preset { name: "archer-median", toml: include_str!("../../../machines/archer-median.toml") },
    Preset { name: "dragonfly-large", toml: include_str!("../../../machines/dragonfly-large.toml") },
    Preset { name: "dragonfly-small", toml: include_str!("../../../machines/dragonfly-small.toml") },
    Preset { name: "fattree-large", toml: include_str!("../../../machines/fattree-large.toml") },
    Preset { name: "fattree-small", toml: include_str!("../../../machines/fattree-small.toml") },
    Preset { name: "fattree-tapered50-large", toml: include_str!("../../../machines/fattree-tapered50-large.toml") },
    Preset {
        name: "fattree-tapered50-large-artifact",
        toml: include_str!("../../../machines/fattree-tapered50-large-artifact.toml"),
    },
    Preset { name: "fattree-tapered50-small", toml: include_str!("../../../machines/fattree-tapered50-small.toml") },
    Preset {
        name: "fattree-tapered50-small-artifact",
        toml: include_str!("../../../machines/fattree-tapered50-small-artifact.toml"),
    },
    Preset { name: "fattree-tapered75-large", toml: include_str!("../../../machines/fattree-tapered75-large.toml") },
    Preset {
        name: "fattree-tapered75-large-artifact",
        toml: include_str!("../../../machines/fattree-tapered75-large-artifact.toml"),
    },
    Preset { name: "fattree-tapered75-small", toml: include_str!("../../../machines/fattree-tapered75-small.toml") },
    Preset {
        name: "fattree-tapered75-small-artifact",
        toml: include_str!("../../../machines/fattree-tapered75-small-artifact.toml"),
    },
    Preset { name: "hx2mesh-large", toml: include_str!("../../../machines/hx2mesh-large.toml") },
    Preset { name: "hx2mesh-small", toml: include_str!("../../../machines/hx2mesh-small.toml") },
    Preset { name: "hx4mesh-large", toml: include_str!("../../../machines/hx4mesh-large.toml") },
    Preset { name: "hx4mesh-small", toml: include_str!("../../../machines/hx4mesh-small.toml") },
    Preset { name: "hyperx2d-large", toml: include_str!("../../../machines/hyperx2d-large.toml") },
    Preset { name: "hyperx2d-small", toml: include_str!("../../../machines/hyperx2d-small.toml") },
    Preset { name: "paper-sim", toml: include_str!("../../../machines/paper-sim.toml") },
    Preset { name: "piuma", toml: include_str!("../../../machines/piuma.toml") },
    Preset { name: "piuma-a100", toml: include_str!("../../../machines/piuma-a100.toml") },
    Preset { name: "piuma-wide", toml: include_str!("../../../machines/piuma-wide.toml") },
    Preset { name: "torus2d-large", toml: include_str!("../../../machines/torus2d-large.toml") },
    Preset { name: "torus2d-small", toml: include_str!("../../../machines/torus2d-small.toml") },
    Preset { name: "wse2", toml: include_str!("../../../machines/wse2.toml") },
];
