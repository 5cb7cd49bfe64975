//! Reads GOAL as a program that computes and communicates; its calcs are in nanoseconds.

use unisono_workload::{Format, Place, ReadError, SourceFile, Unmatched, WorkloadGraph};

use super::{error::Problem, read};
use crate::chakra::{Units, from_tasks};

/// GOAL as a format of programs.
pub const FORMAT: Format = Format { name: "GOAL", is_it, read: read_program };

/// Returns whether a text begins with `num_ranks`, after comments.
fn is_it(bytes: &[u8]) -> bool {
    let mut rest = bytes.trim_ascii_start();
    loop {
        let end: &[u8] = match rest {
            [b'/', b'/', ..] => b"\n",
            [b'/', b'*', ..] => b"*/",
            _ => return rest.starts_with(b"num_ranks"),
        };
        let Some(at) = rest.windows(end.len()).position(|window| window == end) else { return false };
        rest = rest[at + end.len()..].trim_ascii_start();
    }
}

fn read_program(files: &[SourceFile], _strict: bool) -> Result<WorkloadGraph, ReadError> {
    let [(origin, bytes)] = files else {
        let message = "GOAL is one file for all ranks; name one file alone".to_owned();
        return Err(ReadError { origin: files[1].0.clone(), place: Place::File, message });
    };
    let wrong = |place, message: String| ReadError { origin: origin.clone(), place, message };
    let tasks = read(&bytes[..], origin).map_err(|e| match e.problem {
        Problem::Text { line, what } => wrong(Place::Line(u32::try_from(line).unwrap_or(u32::MAX)), what),
        other => wrong(Place::File, other.to_string()),
    })?;
    let name = origin.rsplit('/').next().unwrap_or_default().split('.').next().unwrap_or_default();
    let units = Units { seconds_per_tick: 1e-9, element_bytes: 1 };
    let graph = from_tasks(&tasks, (name, "goal"), units).map_err(|e| wrong(Place::File, e.to_string()))?;
    let unmatched = |Unmatched { rank, node, message }| wrong(Place::Node { rank, node: node as u64 }, message);
    let file_and_node = |_, node| (origin.as_str(), node as u64);
    graph.check_messages().and_then(|()| graph.check_circles(file_and_node)).map_err(unmatched)?;
    Ok(graph)
}
