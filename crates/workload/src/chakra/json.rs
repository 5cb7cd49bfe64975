//! The JSON form of a trace: `{"workload_graph": [node, ...]}`, as the feeder of Chakra reads it.
//!
//! A node has `Id`, `Name`, `NodeType`, `ctrl_deps`, `data_deps` and `runtime` in microseconds; its other keys are the
//! attributes of the Protobuf form. Source: `src/feeder/json_node.cpp` (github.com/mlcommons/chakra).

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, SeqAccess, Visitor},
};
use serde_json::Map;
use unisono_base::{excerpt, interrupt::poll, keyed};

use super::messages::{BoolList, MOST_NODES, Node, READ, Value};

const LIST: &str = "workload_graph";

#[derive(Deserialize)]
struct Trace {
    #[serde(deserialize_with = "read_nodes")]
    workload_graph: Vec<Node>,
}

/// Reads nodes one by one, so that unused parts take no memory.
fn read_nodes<'de, D: Deserializer<'de>>(list: D) -> Result<Vec<Node>, D::Error> {
    struct Nodes;
    impl<'de> Visitor<'de> for Nodes {
        type Value = Vec<Node>;

        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("a list of nodes")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut nodes = Vec::new();
            while let Some(read) = list.next_element()? {
                poll();
                nodes.push(node(read).map_err(A::Error::custom)?.without_unread());
                if nodes.len() > MOST_NODES {
                    return Err(A::Error::custom(format!("it has more than {MOST_NODES} nodes")));
                }
            }
            Ok(nodes)
        }
    }
    list.deserialize_seq(Nodes)
}

#[derive(Deserialize)]
struct JsonNode {
    #[serde(rename = "Id")]
    id: u64,
    #[serde(rename = "Name", default)]
    name: String,
    #[serde(rename = "NodeType")]
    kind: i32,
    #[serde(default)]
    ctrl_deps: Vec<u64>,
    #[serde(default)]
    data_deps: Vec<u64>,
    #[serde(default)]
    runtime: u64,
    #[serde(flatten)]
    attributes: Map<String, serde_json::Value>,
}

/// Returns whether a file begins like the JSON form of a trace.
pub fn is_it(begin: &[u8]) -> bool {
    let begin = String::from_utf8_lossy(begin);
    let key = begin.trim_start().strip_prefix('{').map(str::trim_start);
    key.is_some_and(|key| key.starts_with(&format!("\"{LIST}\"")))
}

/// Returns the nodes of a trace.
///
/// # Errors
/// Returns an error for damaged JSON, too many nodes, a node without `Id` or `NodeType`, or a read attribute that is an
/// object, or a list other than of booleans.
pub fn nodes(bytes: &[u8]) -> Result<Vec<Node>, String> {
    let trace: Trace = keyed::json(bytes).map_err(|e| format!("the JSON form of a trace is damaged: {e}"))?;
    Ok(trace.workload_graph)
}

/// Converts a node, keeping the attributes that have a value. Attributes that are read must not be objects, or lists
/// other than of booleans.
fn node(read: JsonNode) -> Result<Node, String> {
    let JsonNode { id, name, kind, ctrl_deps, data_deps, runtime, attributes } = read;
    let node = Node { id, name, kind, ctrl_deps, data_deps, duration_micros: runtime, attributes: Vec::new() };
    attributes.into_iter().try_fold(node, |node, (name, value)| match attribute(&value) {
        Some(value) => Ok(node.with(&name, value)),
        None if READ.contains(&&*name) && !value.is_null() => {
            let found = excerpt(&value.to_string());
            Err(format!("{name} of node {id} is {found}; accepted are a number, a text, true and false"))
        }
        None => Ok(node),
    })
}

fn attribute(value: &serde_json::Value) -> Option<Value> {
    match value {
        serde_json::Value::Bool(set) => Some(Value::Bool(*set)),
        serde_json::Value::String(text) => Some(Value::String(text.clone())),
        serde_json::Value::Array(list) => {
            let values: Option<_> = list.iter().map(serde_json::Value::as_bool).collect();
            values.map(|values| Value::Bools(BoolList { values }))
        }
        serde_json::Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
            (Some(n), ..) => Some(Value::Uint64(n)),
            (_, Some(n), _) => Some(Value::Int64(n)),
            (.., n) => n.map(Value::Double),
        },
        _ => None,
    }
}
