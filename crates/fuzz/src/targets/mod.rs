//! The targets, one a file.

mod decision_table;
mod goal;
mod jobs;
mod library_table;
mod machine;
mod msccl_xml;
mod multiplying;
mod plan_file;
mod problem;
mod project;
mod registers;
mod schedule_json;
mod schedule_text;
mod shape;
mod small_schedule;
mod stored_program;
mod task_program;
mod traffic;
mod workload;

use crate::Target;

/// Sorted by name.
pub const TARGETS: &[&dyn Target] = &[
    &decision_table::DecisionTableRows,
    &goal::Goal,
    &jobs::JobsFile,
    &library_table::LibraryTableText,
    &machine::MachineText,
    &msccl_xml::MscclXml,
    &multiplying::Multiplying,
    &plan_file::PlanFileBytes,
    &problem::Problem,
    &project::CslProject,
    &registers::RegistersText,
    &schedule_json::ScheduleJson,
    &schedule_text::ScheduleText,
    &shape::Words,
    &small_schedule::SmallSchedule,
    &stored_program::StoredProgram,
    &task_program::TaskProgram,
    &traffic::Traffic,
    &workload::WorkloadText,
];
