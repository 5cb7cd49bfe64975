//! CSL projects: files one after the other, each behind a line `=== PATH`.

use unisono_emit::csl::{Project, SdkTarget, check, read};

use crate::{FuzzTarget, uses};

pub const TARGET: FuzzTarget =
    FuzzTarget::new("project", "reads a CSL project as a tree and as a program of a wafer, and checks it", run);

fn run(input: &[u8]) -> bool {
    let text = format!("\n{}", uses::text(input));
    let parts = text.split("\n=== ").filter_map(|part| part.split_once('\n'));
    let files: Vec<(String, String)> = parts.map(|(path, text)| (path.to_owned(), text.to_owned())).collect();
    let project = Project::parse(&files);
    if let Ok(project) = &project {
        drop(check(project, &SdkTarget::WSE2_SDK_1_0));
    }
    read(&files).is_ok() || project.is_ok()
}
