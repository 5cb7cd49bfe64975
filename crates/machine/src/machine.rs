//! A machine of any kind, read from TOML text.

use std::{any::Any, fmt, ops::Deref, sync::Arc};

use serde::{Deserialize, Serialize, Serializer, de::DeserializeOwned};
use unisono_base::{
    excerpt,
    keyed::{self, with_nearest},
};

use crate::{KINDS, MachineError, PRESETS, Shape};

/// The description of a machine of one kind. A new kind is a file with its description, and a line in [`KINDS`].
pub trait Description: Clone + PartialEq + fmt::Debug + Serialize + Send + Sync + 'static {
    /// The name of the kind in machine files.
    const KIND: &'static str;

    /// # Errors
    /// Returns an error if the text is not TOML, a key is unknown, or a value is out of range.
    fn read(source: &MachineText) -> Result<Self, MachineError>;

    fn name(&self) -> &str;

    fn summary(&self) -> &str;

    /// Returns the shape of the part in use: the requested shape, or that of the whole machine; `None` if there is
    /// neither.
    ///
    /// # Errors
    /// Returns an error if the machine has no such part.
    fn shape(&self, asked: Option<Shape>) -> Result<Option<Shape>, MachineError>;

    /// Returns the fixed time of a reduction in nanoseconds, and its nanoseconds for each byte, for message formats of
    /// other programs. `None` if the machine states no such times.
    fn reduction_ns(&self) -> Option<[f64; 2]> {
        None
    }

    /// Returns a sentence for each cost that predicted times on this machine omit, and for each assumed value. `bytes`
    /// is the vector's length; `model` names the cost model, and `None` stands for the machine's own. Programs that
    /// print predicted times must print the sentences.
    fn notes(&self, _bytes: u64, _model: Option<&str>) -> Vec<String> {
        Vec::new()
    }

    /// Returns the same machine with another number of nodes.
    ///
    /// # Errors
    /// Returns an error if this kind of machine has no nodes, or too many.
    fn with_nodes(&self, _nodes: u32) -> Result<Self, MachineError> {
        Err(MachineError::NoNodes { machine: self.name().to_owned(), kind: Self::KIND })
    }

    /// Returns the same machine without the links and nodes in `failed`. Earlier failures remain.
    ///
    /// # Errors
    /// Returns an error if this kind of machine has no parts that can fail, or `failed` names a part that it does not
    /// have.
    fn with_failures(&self, _failed: &[String]) -> Result<Self, MachineError> {
        Err(MachineError::NoFailures { machine: self.name().to_owned(), kind: Self::KIND })
    }

    /// Returns the shape of all ranks of some nodes.
    ///
    /// # Errors
    /// Returns an error if a node does not exist, or this kind of machine has no nodes with several ranks.
    fn shape_of(&self, _nodes: &[u32]) -> Result<Shape, MachineError> {
        Err(MachineError::NoNodes { machine: self.name().to_owned(), kind: Self::KIND })
    }
}

pub struct MachineText<'a> {
    pub text: &'a str,
    /// The name of the file, for messages.
    pub origin: &'a str,
    /// Function that returns the text of a file that the description names; `None` if it is not available.
    pub files: &'a dyn Fn(&str) -> Option<String>,
}

impl MachineText<'_> {
    /// # Errors
    /// Returns an error if the text is not TOML with the keys of `T`; the message names the line.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, MachineError> {
        toml::Deserializer::parse(self.text).and_then(keyed::read).map_err(|e| {
            if let Some(missing) = self.missing::<T>(e.message()) {
                let (keys, are) = if missing.len() == 1 { ("key", "is") } else { ("keys", "are") };
                let message = format!("the {keys} {} {are} missing", missing.join(", "));
                return MachineError::Toml { origin: self.origin.to_owned(), message };
            }
            let before = e.span().and_then(|span| self.text.get(..span.start));
            let line = before.map(|before| before.matches('\n').count() + 1);
            let origin = line.map_or_else(|| self.origin.to_owned(), |line| format!("{}, line {line}", self.origin));
            let written = line.and_then(|line| self.text.lines().nth(line - 1)).unwrap_or_default();
            MachineError::Toml {
                origin,
                message: in_words(&with_nearest(&e.message().trim().replace('\n', ", ")), written),
            }
        })
    }

    /// Returns all top-level keys that the file lacks, if `message` reports one of them.
    ///
    /// The reader reports only the first missing key. To find the others, this function inserts the reported key with a
    /// value of each type in turn, until the reader reports another fault or none.
    fn missing<T: DeserializeOwned>(&self, message: &str) -> Option<Vec<String>> {
        fn lacking(message: &str) -> Option<String> {
            message.trim().strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')).map(str::to_owned)
        }
        let mut table: toml::Table = self.text.parse().ok()?;
        let mut found: Vec<String> = Vec::new();
        let mut next = lacking(message);
        while let Some(key) = next.take().filter(|key| !table.contains_key(key)) {
            let values = [
                toml::Value::Integer(1),
                toml::Value::String(String::new()),
                toml::Value::Table(toml::Table::new()),
                toml::Value::Array(Vec::new()),
                toml::Value::Boolean(false),
            ];
            for value in values {
                table.insert(key.clone(), value);
                // The table is printed as text, because a second reader, for tables, would add a quarter to this
                // crate's compile time.
                let text = table.to_string();
                let read = toml::Deserializer::parse(&text).and_then(keyed::read::<_, T>);
                let fault = read.err().map(|e| e.message().to_owned());
                let other = fault.as_deref().and_then(lacking);
                if fault.is_none() || other.as_ref().is_some_and(|other| *other != key) {
                    found.push(key.clone());
                    next = other;
                    break;
                }
            }
        }
        (!found.is_empty()).then_some(found)
    }
}

/// Rewrites the reader's message about a line in plain words, if it is about a value.
fn in_words(message: &str, line: &str) -> String {
    let (key, value) = line.split_once('=').map_or(("", ""), |(key, value)| (key.trim(), value.trim()));
    if message.starts_with("string values must be quoted") {
        return format!(
            "{key} is {}; accepted are a number without a unit, as in 4096, true or false, and a text in quotes",
            excerpt(value)
        );
    }
    let plain = of_value(message);
    if plain == message || key.is_empty() { plain } else { format!("{key}: {plain}") }
}

pub(crate) fn of_value(message: &str) -> String {
    let wrong = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "));
    let Some((found, expected)) = wrong.and_then(|rest| rest.split_once(", expected ")) else {
        return message.to_owned();
    };
    let accepted = match expected {
        "f64" => "a number",
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" => "a whole number from 0 on",
        "a map" => "a table",
        other => other,
    };
    format!("found the {found}; accepted is {accepted}")
}

/// A kind of machine: its name in machine files, and its reader.
pub struct MachineKind {
    pub name: &'static str,
    read: fn(&MachineText) -> Result<Machine, MachineError>,
}

impl MachineKind {
    pub(crate) const fn of<T: Description>() -> Self {
        Self { name: T::KIND, read: |source| T::read(source).map(Machine::from) }
    }
}

/// Multiplies the machine's `measured_gbps` by `after` / `before`, its new and its previous `link_gbps`, if the machine
/// states all three.
fn keep_share(table: &mut toml::Table, before: Option<&toml::Value>, after: &toml::Value) {
    let number = |value: &toml::Value| value.as_float().or_else(|| value.as_integer().map(|n| n as f64));
    let measured = table.get("measured_gbps").and_then(number);
    if let Some(((measured, before), after)) = measured.zip(before.and_then(number)).zip(number(after)) {
        table.insert("measured_gbps".to_owned(), (measured / before * after).into());
    }
}

/// The methods of [`Description`] as an object-safe trait. A [`Machine`] has these methods.
pub trait Erased: fmt::Debug + erased_serde::Serialize + Send + Sync {
    fn kind(&self) -> &'static str;
    fn name(&self) -> &str;
    fn summary(&self) -> &str;
    /// Returns the shape of the part in use ([`Description::shape`]).
    fn shape(&self, asked: Option<Shape>) -> Result<Option<Shape>, MachineError>;
    /// Returns the fixed nanoseconds of a reduction, and those of each byte ([`Description::reduction_ns`]).
    fn reduction_ns(&self) -> Option<[f64; 2]>;
    /// Returns sentences on costs that predictions omit or assume ([`Description::notes`]).
    fn notes(&self, bytes: u64, model: Option<&str>) -> Vec<String>;
    /// Returns the same machine with another number of nodes ([`Description::with_nodes`]).
    fn with_nodes(&self, nodes: u32) -> Result<Machine, MachineError>;
    /// Returns the same machine without failed links and nodes ([`Description::with_failures`]).
    fn with_failures(&self, failed: &[String]) -> Result<Machine, MachineError>;
    /// Returns the shape of all ranks of some nodes ([`Description::shape_of`]).
    fn shape_of(&self, nodes: &[u32]) -> Result<Shape, MachineError>;
    fn equals(&self, other: &dyn Erased) -> bool;
    fn as_any(&self) -> &dyn Any;
}

impl<T: Description> Erased for T {
    fn kind(&self) -> &'static str {
        T::KIND
    }

    fn name(&self) -> &str {
        Description::name(self)
    }

    fn summary(&self) -> &str {
        Description::summary(self)
    }

    fn shape(&self, asked: Option<Shape>) -> Result<Option<Shape>, MachineError> {
        Description::shape(self, asked)
    }

    fn reduction_ns(&self) -> Option<[f64; 2]> {
        Description::reduction_ns(self)
    }

    fn notes(&self, bytes: u64, model: Option<&str>) -> Vec<String> {
        Description::notes(self, bytes, model)
    }

    fn with_nodes(&self, nodes: u32) -> Result<Machine, MachineError> {
        Description::with_nodes(self, nodes).map(Machine::from)
    }

    fn with_failures(&self, failed: &[String]) -> Result<Machine, MachineError> {
        Description::with_failures(self, failed).map(Machine::from)
    }

    fn shape_of(&self, nodes: &[u32]) -> Result<Shape, MachineError> {
        Description::shape_of(self, nodes)
    }

    fn equals(&self, other: &dyn Erased) -> bool {
        other.as_any().downcast_ref::<T>() == Some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A machine of any kind. Clones share the description.
#[derive(Clone)]
pub struct Machine(Arc<dyn Erased>);

impl<T: Description> From<T> for Machine {
    fn from(description: T) -> Self {
        Self(Arc::new(description))
    }
}

impl Deref for Machine {
    type Target = dyn Erased;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl PartialEq for Machine {
    fn eq(&self, other: &Self) -> bool {
        self.0.equals(&*other.0)
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Machine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        erased_serde::serialize(&*self.0, serializer)
    }
}

/// The key that selects the kind of description. The full text is then read again, so that errors name lines.
#[derive(Deserialize)]
struct KindOnly {
    kind: String,
}

impl Machine {
    /// # Errors
    /// Returns an error if the text is not TOML, a kind or key is unknown, or a value is out of range; the message
    /// names `origin` and the line.
    pub fn from_toml(text: &str, origin: &str) -> Result<Self, MachineError> {
        Self::from_toml_with(text, origin, &|_| None)
    }

    /// Returns the same machine with `value` for one key of its file. Dots select keys of tables. A value that is not
    /// valid TOML is taken as a string. A new `link_gbps` changes `measured_gbps` in proportion.
    ///
    /// # Errors
    /// Returns an error if the key identifies the machine, the file cannot have the key, or the value is out of range.
    pub fn with_value(&self, key: &str, value: &str) -> Result<Self, MachineError> {
        let origin = format!("{} with {}={}", self.name(), excerpt(key), excerpt(value));
        if ["name", "kind", "summary"].contains(&key) {
            let message = format!("{key} identifies the machine; accepted are other keys of its file, as link_gbps");
            return Err(MachineError::Toml { origin, message });
        }
        let source = self.to_toml();
        let mut table: toml::Table = MachineText { text: &source, origin: &origin, files: &|_| None }.parse()?;
        let read = format!("value = {value}").parse::<toml::Table>().ok().and_then(|mut read| read.remove("value"));
        let value = read.unwrap_or_else(|| toml::Value::String(value.to_owned()));
        let mut at = &mut table;
        let (folders, last) = key.rsplit_once('.').map_or(("", key), |(folders, last)| (folders, last));
        for name in folders.split('.').filter(|name| !name.is_empty()) {
            let inner = at.entry(name).or_insert_with(|| toml::Value::Table(toml::Table::new()));
            at = inner.as_table_mut().ok_or_else(|| MachineError::Toml {
                origin: origin.clone(),
                message: format!("{} is not a table of the machine file", excerpt(name)),
            })?;
        }
        let before = at.insert(last.to_owned(), value.clone());
        if key == "link_gbps" {
            keep_share(&mut table, before.as_ref(), &value);
        }
        // The user has not seen this text, so the message omits its lines.
        Self::from_toml(&table.to_string(), &origin).map_err(|error| match error {
            MachineError::Toml { message, .. } => {
                // The origin already names the key.
                let message = message.strip_prefix(&format!("{last}: ")).unwrap_or(&message);
                MachineError::Toml { origin, message: of_value(message) }
            }
            other => other,
        })
    }

    /// Reads a machine. `files` returns the text of a file that the description names.
    ///
    /// # Errors
    /// Returns the errors of [`Machine::from_toml`], and an error if a file has no text.
    pub fn from_toml_with(
        text: &str,
        origin: &str,
        files: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, MachineError> {
        let source = MachineText { text, origin, files };
        let KindOnly { kind: found } = source.parse()?;
        match KINDS.iter().find(|kind| kind.name == found) {
            Some(kind) => (kind.read)(&source),
            None => Err(MachineError::UnknownKind {
                origin: origin.to_owned(),
                found,
                kinds: KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", "),
            }),
        }
    }

    /// # Errors
    /// Returns an error if no preset has this name; the message lists all presets.
    pub fn preset(name: &str) -> Result<Self, MachineError> {
        match PRESETS.iter().find(|p| p.name == name) {
            Some(preset) => Self::from_toml(preset.toml, preset.name),
            None => Err(MachineError::UnknownPreset {
                found: name.to_owned(),
                presets: PRESETS.iter().map(|p| p.name).collect::<Vec<_>>().join(", "),
            }),
        }
    }

    pub fn get<T: Description>(&self) -> Option<&T> {
        self.0.as_any().downcast_ref()
    }

    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("descriptions hold only what TOML can write")
    }
}
