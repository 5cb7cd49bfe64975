//! What the environment asks for, read once.

use std::{
    ffi::OsString,
    io::Write,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use unisono_schedule::plan_file::PlanFile;

pub enum Report {
    Stderr,
    File(PathBuf),
}

#[derive(Default)]
pub struct Settings {
    pub off: bool,
    pub check: bool,
    /// The program's own operators may be served too.
    pub safe_ops: bool,
    pub report: Option<Report>,
    pub plan: Option<Arc<PlanFile>>,
    /// Why there is no plan though one was named.
    pub complaint: Option<String>,
}

pub fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(Settings::read)
}

impl Settings {
    fn read() -> Self {
        let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let flag = |name: &str| named(name).is_some_and(|value| value != "0");
        if flag("UNISONO_OFF") {
            return Self { off: true, ..Self::default() };
        }
        let report = named("UNISONO_REPORT").map(|value| match value {
            value if value == "stderr" => Report::Stderr,
            value => Report::File(value.into()),
        });
        let read = named("UNISONO_PLAN").map(read_plan).transpose();
        let (plan, complaint) = match read {
            Ok(plan) => (plan.map(Arc::new), None),
            Err(complaint) => (None, Some(complaint)),
        };
        Self { off: false, check: flag("UNISONO_CHECK"), safe_ops: flag("UNISONO_SAFE_OPS"), report, plan, complaint }
    }
}

fn read_plan(path: OsString) -> Result<PlanFile, String> {
    let path = PathBuf::from(path);
    let bytes = std::fs::read(&path).map_err(|e| format!("plan '{}' cannot be read: {e}", path.display()))?;
    PlanFile::read(bytes).map_err(|e| format!("plan '{}': {e}", path.display()))
}

/// One line on standard error, where there is one.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "unisono: {text}");
}
