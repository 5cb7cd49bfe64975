//! Tests of `plan_bytes`.

use unisono_fuzz::{corpus, internals::plan_bytes::Parts};
use unisono_schedule::plan_file::PlanFile;

#[test]
fn sections_of_a_plan_are_found_and_checksums_hold() {
    let files = corpus::files(&corpus::folder().join("plan-file"));
    let plans: Vec<Vec<u8>> =
        files.iter().map(|path| std::fs::read(path).unwrap()).filter(|b| PlanFile::read(b.clone()).is_ok()).collect();
    assert!(!plans.is_empty(), "the corpus has plans that are read");
    for plan in plans {
        let parts = Parts::of(&plan).unwrap();
        assert!(!parts.rows.is_empty());
        assert_eq!(parts.joined(), plan);
    }
}
