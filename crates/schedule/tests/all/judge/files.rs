//! Schedules that earlier proofs or plans judged wrongly, and schedules that are refused although their elements are in
//! a right order. The first line of each file is the expected outcome: `; right, repeatable`, or `; refused: ` and the
//! reason.

use std::path::PathBuf;

use unisono_schedule::{Schedule, text};

/// Returns name, expected outcome and schedule of each file of `schedules/`.
pub fn all() -> Vec<(String, String, Schedule)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../schedule/tests/all/judge/schedules");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let source = std::fs::read_to_string(path).unwrap();
        let expected = source.lines().next().and_then(|l| l.strip_prefix("; ")).unwrap_or_default().to_owned();
        let (schedule, _) = text::parse(&source).unwrap_or_else(|e| panic!("{name}: {e}"));
        (name, expected, schedule)
    };
    paths.into_iter().map(read).collect()
}
