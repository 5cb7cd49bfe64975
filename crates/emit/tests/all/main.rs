//! The integration tests of the crate, as one binary.

mod common;
mod csl_algorithms;
mod csl_interpreter;
mod csl_measured;
mod csl_module;
mod csl_projects;
mod csl_refused;
mod csl_rules;
mod csl_sums;
mod csl_wse3;
mod executor;
mod goal;
mod gpu_plans;
mod msccl;
mod registers;
mod tuning;
mod csl {
    mod order;
    mod write {
        mod ranges;
    }
}
#[path = "../../../schedule/tests/all/soak.rs"]
mod soak;
