//! The preset machines: the files of `machines/`, built into the program.

use std::sync::LazyLock;

use include_dir::{Dir, include_dir};

static FILES: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../machines");

pub struct Preset {
    pub name: &'static str,
    pub toml: &'static str,
}

/// All presets, sorted by name, one for each file of `machines/`.
pub static PRESETS: LazyLock<Vec<Preset>> = LazyLock::new(|| {
    let preset = |file: &'static include_dir::File| {
        let name = file.path().file_stem()?.to_str()?;
        Some(Preset { name, toml: file.contents_utf8()? })
    };
    let mut presets: Vec<Preset> = FILES.files().filter_map(preset).collect();
    presets.sort_unstable_by_key(|preset| preset.name);
    presets
});
