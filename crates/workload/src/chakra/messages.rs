//! The Protobuf messages of Chakra execution traces, and their frames: a length as a varint, then the message.
//!
//! Source: `schema/protobuf/et_def.proto` (github.com/mlcommons/chakra). Fields that are not read are left out.

use prost::Message;

pub const MOST_NODES: usize = 1 << 20;
pub const READ: [&str; 14] = [
    BEGUN,
    SECONDS,
    REDUCES,
    DIMENSIONS,
    "comm_dst",
    "comm_size",
    "comm_src",
    "comm_tag",
    "comm_type",
    "is_cpu_op",
    "num_ops",
    "pg_name",
    "root",
    "tensor_size",
];
/// The attribute with the ids of nodes that must have begun, separated by spaces. Other readers ignore it.
pub const BEGUN: &str = "unisono_begun";
/// The attribute with the exact time of compute in seconds, because the format counts whole microseconds.
pub const SECONDS: &str = "unisono_seconds";
/// The attribute that marks compute as a reduction of a schedule, for which a machine may state a cost.
pub const REDUCES: &str = "unisono_reduces";
/// The attribute by which ASTRA-sim limits a collective among all ranks to the dimensions whose value is true.
const DIMENSIONS: &str = "involved_dim";

#[derive(Clone, PartialEq, Message)]
pub struct GlobalMetadata {
    #[prost(string, tag = "1")]
    pub version: String,
    #[prost(message, repeated, tag = "2")]
    pub attributes: Vec<Attribute>,
}

/// The attribute of the head that states the number of ranks of the program. Only this project writes it.
const RANKS: &str = "ranks";

impl GlobalMetadata {
    pub fn of_ranks(ranks: u32) -> Self {
        let attribute = Attribute { name: RANKS.to_owned(), value: Some(Value::Uint32(ranks)) };
        Self { version: "1.0.0".to_owned(), attributes: vec![attribute] }
    }

    pub fn ranks(&self) -> Option<u32> {
        let stated = self.attributes.iter().find(|attribute| attribute.name == RANKS)?;
        match stated.value {
            Some(Value::Uint32(ranks)) => Some(ranks),
            _ => None,
        }
    }
}

#[derive(Clone, PartialEq, Message)]
pub struct Node {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(int32, tag = "3")]
    pub kind: i32,
    #[prost(uint64, repeated, tag = "4")]
    pub ctrl_deps: Vec<u64>,
    #[prost(uint64, repeated, tag = "5")]
    pub data_deps: Vec<u64>,
    #[prost(uint64, tag = "7")]
    pub duration_micros: u64,
    #[prost(message, repeated, tag = "10")]
    pub attributes: Vec<Attribute>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Attribute {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(oneof = "Value", tags = "3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 28, 29")]
    pub value: Option<Value>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Value {
    #[prost(double, tag = "3")]
    Double(f64),
    #[prost(float, tag = "5")]
    Float(f32),
    #[prost(int32, tag = "7")]
    Int32(i32),
    #[prost(int64, tag = "9")]
    Int64(i64),
    #[prost(uint32, tag = "11")]
    Uint32(u32),
    #[prost(uint64, tag = "13")]
    Uint64(u64),
    #[prost(sint32, tag = "15")]
    Sint32(i32),
    #[prost(sint64, tag = "17")]
    Sint64(i64),
    #[prost(fixed32, tag = "19")]
    Fixed32(u32),
    #[prost(fixed64, tag = "21")]
    Fixed64(u64),
    #[prost(sfixed32, tag = "23")]
    Sfixed32(i32),
    #[prost(sfixed64, tag = "25")]
    Sfixed64(i64),
    #[prost(bool, tag = "27")]
    Bool(bool),
    #[prost(message, tag = "28")]
    Bools(BoolList),
    #[prost(string, tag = "29")]
    String(String),
}

#[derive(Clone, PartialEq, Message)]
pub struct BoolList {
    #[prost(bool, repeated, tag = "1")]
    pub values: Vec<bool>,
}

pub mod kind {
    pub const INVALID: i32 = 0;
    pub const LOAD: i32 = 2;
    pub const STORE: i32 = 3;
    pub const COMPUTE: i32 = 4;
    pub const SEND: i32 = 5;
    pub const RECEIVE: i32 = 6;
    pub const COLLECTIVE: i32 = 7;
}

impl Node {
    /// Keeps, for each attribute name that this crate reads, the first attribute, and drops all other attributes.
    pub fn without_unread(mut self) -> Self {
        let mut kept: Vec<Attribute> = Vec::new();
        for attribute in std::mem::take(&mut self.attributes) {
            let is_read = READ.contains(&&*attribute.name);
            if is_read && kept.iter().all(|earlier| earlier.name != attribute.name) {
                kept.push(attribute);
            }
        }
        self.attributes = kept;
        self
    }

    pub fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    fn value(&self, name: &str) -> Option<&Value> {
        self.attributes.iter().find(|attribute| attribute.name == name)?.value.as_ref()
    }

    /// Returns the number of an attribute, rounded to a whole one, from any of the numeric fields or from a text,
    /// because writers use different fields; `None` if the node lacks it. All other values, including negative numbers,
    /// are errors.
    pub fn number(&self, name: &str) -> Result<Option<u64>, String> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let number = match *value {
            Value::Int32(n) | Value::Sint32(n) | Value::Sfixed32(n) => u64::try_from(n).ok(),
            Value::Int64(n) | Value::Sint64(n) | Value::Sfixed64(n) => u64::try_from(n).ok(),
            Value::Uint32(n) | Value::Fixed32(n) => Some(n.into()),
            Value::Uint64(n) | Value::Fixed64(n) => Some(n),
            Value::Double(n) if n >= 0.0 => Some(unisono_base::rounded(n)),
            Value::Float(n) if n >= 0.0 => Some(unisono_base::rounded(n.into())),
            Value::String(ref text) => text.trim().parse().ok(),
            _ => None,
        };
        number.map(Some).ok_or_else(|| format!("{name} is not a number of at least 0"))
    }

    /// Returns an attribute as a time in seconds, which must be a `double`, finite and not negative; `None` if the node
    /// lacks the attribute.
    pub fn seconds(&self, name: &str) -> Result<Option<f64>, String> {
        match self.value(name) {
            None => Ok(None),
            Some(&Value::Double(seconds)) if seconds >= 0.0 && seconds.is_finite() => Ok(Some(seconds)),
            Some(_) => Err(format!("{name} is not a finite number of at least 0")),
        }
    }

    /// Returns an attribute that is a text, or a number of at least 0 as text; `None` if the node lacks it.
    pub fn text(&self, name: &str) -> Result<Option<String>, String> {
        match self.value(name) {
            Some(Value::String(text)) => Ok(Some(text.clone())),
            _ => Ok(self.number(name)?.map(|number| number.to_string())),
        }
    }

    /// Returns whether an attribute is true or a number above 0; false if the node lacks it.
    pub fn is_set(&self, name: &str) -> Result<bool, String> {
        match self.value(name) {
            Some(Value::Bool(set)) => Ok(*set),
            _ => Ok(self.number(name)?.is_some_and(|number| number > 0)),
        }
    }

    /// Returns whether ASTRA-sim limits a collective to some dimensions of its network. It ignores the attribute if the
    /// collective names a process group other than `0`, the group of all ranks.
    pub fn is_limited(&self) -> Result<bool, String> {
        let Some(attribute) = self.attributes.iter().find(|attribute| attribute.name == DIMENSIONS) else {
            return Ok(false);
        };
        let Some(Value::Bools(BoolList { values })) = &attribute.value else {
            return Err(format!("{DIMENSIONS} is not a list of true and false"));
        };
        let is_of_all = self.text("pg_name")?.is_none_or(|name| ["", "0"].contains(&&*name));
        Ok(is_of_all && (values.is_empty() || values.contains(&false)))
    }

    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.attributes.push(Attribute { name: name.to_owned(), value: Some(value) });
        self
    }
}

/// Returns the next frame's message, and the bytes after it.
///
/// # Errors
/// Returns an error if the file ends inside the frame.
pub fn frame(bytes: &[u8]) -> Result<(&[u8], &[u8]), String> {
    let mut rest = bytes;
    let length =
        prost::decode_length_delimiter(&mut rest).map_err(|_| "the length of a message is damaged".to_owned())?;
    if length > rest.len() {
        return Err(format!("a message of {length} bytes is cut off after {}", rest.len()));
    }
    Ok(rest.split_at(length))
}

pub fn append(bytes: &mut Vec<u8>, message: &impl Message) {
    message.encode_length_delimited(bytes).expect("a vector takes everything");
}
