//! Writes a project: checks the limits, groups PEs that run the same code, and prints the files.

mod host;
mod layout;
mod limits;
mod mapped;
mod measured;
mod module;
mod operator;
mod pe;
mod ping_pong;
mod plan;
mod queues;
pub(crate) mod ranges;
mod steps;
mod turns;

use unisono_formats::Refused;
use unisono_lower::wafer::WaferProgram;

use super::SdkTarget;
use measured::{Measuring, Role};
use ping_pong::PingPong;
use plan::Plan;

pub use operator::uncounted;

/// Name of the project's format. Refusals by checks that all three formats share have this name.
pub const NAME: &str = "csl";

/// Files, each as its relative path and its text.
pub type Files = Vec<(String, String)>;

/// Returns the line at the head of every emitted file.
fn head(target: &SdkTarget) -> String {
    format!("Written for {}. It was not compiled with the vendor's SDK.", target.name)
}

fn article(name: &str) -> &'static str {
    if name.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

/// Ids of local tasks in projects that measure, which need additional colors. The ids that are not colors come first.
const MEASURED_TASKS: &[u8] = &[26, 25, 24, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 7, 6, 5, 4, 3, 2, 1, 0];

/// Checks that a wafer program can be written as a CSL project.
///
/// # Errors
/// Returns the errors of [`emit`].
pub fn accepts(program: &WaferProgram, target: &SdkTarget) -> Result<(), Refused> {
    plan(program, target).map(drop)
}

fn plan(program: &WaferProgram, target: &SdkTarget) -> Result<Plan, Refused> {
    let refused = |reason| Refused::new(NAME, reason);
    limits::check(program, target).map_err(refused)?;
    Plan::new(program, target).map_err(refused)
}

/// Returns the files of [`emit`] with functions that measure the time, and `measure.py`, which calls them. A broadcast
/// from the first PE of a line is measured by ping-pong if its program allows it.
///
/// # Errors
/// Returns the errors of [`emit`], and an error for a single PE, if too few colors or queues are left, or if the
/// target's cycles of a hop are not published (except for ping-pong).
pub fn emit_measured(program: &WaferProgram, target: &SdkTarget) -> Result<Files, Refused> {
    let refused = |reason| Refused::new("csl-measured", reason);
    if let Some(both) = ping_pong::there_and_back(program) {
        return emit_ping_pong(&plan(&both, target)?, target).map_err(refused);
    }
    if target.hop_cycles.is_none() {
        return Err(refused(format!(
            "the clocks of PEs are taken to one by the cycles of a hop, which are not published for the {}; broadcasts from the \
             first PE of a line are measured without",
            target.wafer
        )));
    }
    let target = &SdkTarget { local_tasks: MEASURED_TASKS, ..target.clone() };
    let plan = plan(program, target)?;
    let measuring = Measuring::new(&plan, target).map_err(refused)?;
    let layout = measuring.layout(&layout::print(&plan, target, |row, col| measuring.role(row, col)));
    let of_class = |number: usize, text: &str| measuring.program(&plan, number, text, target);
    project(&plan, target, layout, of_class, Some((host::measure_script(&plan, target), host::MEASURED)))
        .map_err(refused)
}

/// Returns the files of a broadcast with its return path, the function that measures it, and `measure.py`, which calls
/// the function.
fn emit_ping_pong(plan: &Plan, target: &SdkTarget) -> Result<Files, String> {
    let measuring = PingPong::new(plan, target)?;
    let layout = measuring.layout(&layout::print(plan, target, |row, col| measuring.role(row, col)));
    let of_class = |number: usize, text: &str| measuring.program(&plan.classes[number], text, target);
    project(plan, target, layout, of_class, Some((host::ping_pong_script(target), host::PING_PONG)))
}

/// Returns the modules of a wafer program, which a user's program imports.
///
/// # Errors
/// Returns the errors of [`emit`], and an error for more than 8192 kinds of PEs.
pub fn emit_module(program: &WaferProgram, target: &SdkTarget) -> Result<Files, Refused> {
    module::files(&plan(program, target)?, target).map_err(|reason| Refused::new("csl-module", reason))
}

/// Returns the CSL project of a wafer program.
///
/// # Errors
/// Returns an error if the target cannot express the program; the message has the number found and the limit.
pub fn emit(program: &WaferProgram, target: &SdkTarget) -> Result<Files, Refused> {
    let plan = plan(program, target)?;
    let layout = layout::print(&plan, target, |_, _| Role::default());
    project(&plan, target, layout, |_, text| Ok(text.to_owned()), None).map_err(|reason| Refused::new(NAME, reason))
}

/// Returns the files of a project. `of_class` converts the program of a class without measurement into the final
/// program; `measured` has the script that measures, and the paragraph of the README about it.
///
/// # Errors
/// Returns the errors of `of_class`.
fn project(
    plan: &Plan,
    target: &SdkTarget,
    layout: String,
    of_class: impl Fn(usize, &str) -> Result<String, String>,
    measured: Option<(String, &str)>,
) -> Result<Files, String> {
    let mut files = vec![("layout.csl".to_owned(), layout)];
    for (number, class) in plan.classes.iter().enumerate() {
        let text = pe::print(plan, class, target, pe::Form::Project);
        files.push((plan::file_name(number), of_class(number, &text)?));
    }
    if plan.is_mapped() {
        files.extend(operator::module(&plan.collective, target).map(|text| (operator::FILE.to_owned(), text)));
    }
    files.push(("run.py".to_owned(), host::run_script(plan, target)));
    let (mut commands, mut readme) = (host::commands(plan, target), host::readme(plan, target));
    if let Some((script, told)) = measured {
        files.push(("measure.py".to_owned(), script));
        commands += host::MEASURE;
        readme += told;
    }
    files.push(("commands.sh".to_owned(), commands));
    files.push(("README.md".to_owned(), readme));
    Ok(files)
}
