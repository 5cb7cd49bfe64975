//! The fuzz targets, one in each file.

mod decision_table;
mod discovered;
mod goal;
mod gpu_plan;
mod jobs;
mod library_table;
mod machine;
mod machine_import;
mod msccl_xml;
mod multiplying;
mod plan_file;
mod problem;
mod program;
mod registers;
mod schedule_json;
mod schedule_text;
mod shape;
mod small_schedule;
mod stored_program;
mod task_program;
mod traffic;
mod workload;

use crate::FuzzTarget;

/// All targets, sorted by name.
pub const TARGETS: &[&FuzzTarget] = &[
    &decision_table::TARGET,
    &discovered::TARGET,
    &goal::TARGET,
    &gpu_plan::TARGET,
    &jobs::TARGET,
    &library_table::TARGET,
    &machine::TARGET,
    &machine_import::TARGET,
    &msccl_xml::TARGET,
    &multiplying::TARGET,
    &plan_file::TARGET,
    &problem::TARGET,
    &program::TARGET,
    &registers::TARGET,
    &schedule_json::TARGET,
    &schedule_text::TARGET,
    &shape::TARGET,
    &small_schedule::TARGET,
    &stored_program::TARGET,
    &task_program::TARGET,
    &traffic::TARGET,
    &workload::TARGET,
];
