//! Files of the inputs of fuzz targets.

use std::{
    fs,
    path::{Path, PathBuf},
};

use unisono_base::mix;

use crate::FuzzTarget;

/// Greatest size in bytes of a seed from another folder of the repository.
const LONGEST_SEED: u64 = 8 << 10;

/// Returns the folder of the corpus, which has one folder for each target.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// Returns the files of a folder, sorted by name; none if the folder does not exist.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    files
}

pub fn inputs(target: &FuzzTarget) -> Vec<(PathBuf, Vec<u8>)> {
    files(&folder().join(target.name))
        .into_iter()
        .filter_map(|path| Some((path.clone(), fs::read(path).ok()?)))
        .collect()
}

/// Returns the seeds of a session: the corpus, short files of the repository, and the inputs that an earlier session
/// stored in `grown`. If there are none, returns one empty input.
pub fn seeds(target: &FuzzTarget, grown: Option<&Path>) -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = inputs(target).into_iter().map(|(_, input)| input).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (folder, end) in target.seeds {
        let named = |path: &&PathBuf| path.to_string_lossy().ends_with(end);
        let short = |path: &&PathBuf| fs::metadata(path).is_ok_and(|m| m.len() <= LONGEST_SEED);
        let found = files(&root.join(folder));
        seeds.extend(found.iter().filter(named).filter(short).filter_map(|path| fs::read(path).ok()));
    }
    seeds.extend(grown.into_iter().flat_map(files).filter_map(|path| fs::read(path).ok()));
    if seeds.is_empty() {
        seeds.push(Vec::new());
    }
    seeds
}

/// Returns a name for an input, computed from its bytes.
pub fn name(input: &[u8]) -> String {
    let sum = input.iter().fold(mix(input.len() as u64), |sum, &byte| mix(sum ^ u64::from(byte)));
    format!("{sum:016x}")
}
