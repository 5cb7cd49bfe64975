//! Writes a project: checks the limits, gathers PEs that run the same code, and prints.

mod host;
mod layout;
mod limits;
mod mapped;
mod operator;
mod pe;
mod plan;
mod queues;
mod ranges;
mod steps;
mod turns;

use unisono_lower::wafer::WaferProgram;

use super::SdkTarget;
use crate::Refused;
use plan::Plan;

pub use limits::vectors;
pub use operator::{
    FILE as OPERATOR_FILE, FUNCTION as OPERATOR_FUNCTION, MAP, module as operator_module, vector_operation,
};
pub use steps::move_builtin;

/// Texts by relative path.
pub type Files = Vec<(String, String)>;

/// Said at the head of every file that is emitted.
const NOT_COMPILED: &str = "Written for Cerebras SDK 1.0 and the WSE-2. It was not compiled with the vendor's SDK.";

/// Whether a wafer program has a CSL project.
///
/// # Errors
/// As [`emit`].
pub fn accepts(program: &WaferProgram, target: &SdkTarget) -> Result<(), Refused> {
    plan(program, target).map(drop)
}

fn plan(program: &WaferProgram, target: &SdkTarget) -> Result<Plan, Refused> {
    let refused = |reason| Refused { target: "csl", reason };
    limits::check(program, target).map_err(refused)?;
    Plan::new(program, target).map_err(refused)
}

/// The CSL project of a wafer program.
///
/// # Errors
/// What the target cannot express, with the number found and the limit.
pub fn emit(program: &WaferProgram, target: &SdkTarget) -> Result<Files, Refused> {
    let plan = plan(program, target)?;
    let mut files = vec![("layout.csl".to_owned(), layout::print(&plan, target))];
    for (number, class) in plan.classes.iter().enumerate() {
        files.push((plan::file_name(number), pe::print(&plan, class, target)));
    }
    if plan.is_mapped() {
        files.extend(operator::module(&plan.collective).map(|text| (operator::FILE.to_owned(), text)));
    }
    files.push(("run.py".to_owned(), host::run_script(&plan)));
    files.push(("commands.sh".to_owned(), host::commands(&plan, target)));
    files.push(("README.md".to_owned(), host::readme(&plan, target)));
    Ok(files)
}
