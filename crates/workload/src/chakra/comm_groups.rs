//! The process groups of traces, as ASTRA-sim reads them: a JSON object with a list of ranks for each name.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use unisono_base::excerpt;

use crate::{Groups, ReadError, SourceFile, error::Wrong};

/// The name of the file of groups, and the ranks of each named group in order.
pub struct CommGroups<'a> {
    pub origin: &'a str,
    pub ranks: BTreeMap<String, Vec<u32>>,
}

/// Returns whether a file's name ends in `.json`, but its text does not begin like a trace.
pub fn is_json(file: &SourceFile) -> bool {
    file.0.ends_with(".json") && !super::json::is_it(&file.1)
}

/// Reads the file of groups among files that are not traces: a JSON object whose values are all lists of numbers, or
/// that has a key in `named`, the groups of the traces. Other JSON, such as a system file, is ignored.
///
/// # Errors
/// Returns an error for damaged JSON, two files of groups, or a group with a rank that does not exist or occurs twice.
pub fn read<'a>(
    files: impl Iterator<Item = &'a SourceFile>,
    ranks: u32,
    named: &BTreeSet<String>,
) -> Result<Option<CommGroups<'a>>, ReadError> {
    let mut found: Option<CommGroups<'a>> = None;
    for (origin, bytes) in files {
        let value: Value = serde_json::from_slice(bytes).map_err(|e| Wrong::json("it is not JSON", &e).of(origin))?;
        let Value::Object(object) = value else { continue };
        let is_ranks = |list: &Value| list.as_array().is_some_and(|list| list.iter().all(Value::is_number));
        let is_named = object.keys().any(|name| named.contains(name));
        if !is_named && (!object.values().all(is_ranks) || object.is_empty()) {
            continue;
        }
        if let Some(other) = &found {
            let message = format!("'{}' lists process groups too; accepted is one such file", excerpt(other.origin));
            return Err(Wrong::file(message).of(origin));
        }
        found = Some(CommGroups { origin, ranks: listed(object, ranks).map_err(|wrong| wrong.of(origin))? });
    }
    Ok(found)
}

fn listed(object: Map<String, Value>, ranks: u32) -> Result<BTreeMap<String, Vec<u32>>, Wrong> {
    let mut of = BTreeMap::new();
    for (name, list) in object {
        let rank = |rank: &Value| rank.as_u64().and_then(|rank| u32::try_from(rank).ok());
        let list = list.as_array().and_then(|list| list.iter().map(rank).collect::<Option<Vec<u32>>>());
        let wrong = |message: String| Wrong::file(format!("process group '{}': {message}", excerpt(&name)));
        let list = list.ok_or_else(|| wrong("accepted is a list of ranks".to_owned()))?;
        Groups::new(ranks, [list.clone()]).map_err(|e| wrong(e.to_string()))?;
        of.insert(name, list);
    }
    Ok(of)
}
