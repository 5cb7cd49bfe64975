//! A machine of any kind, from TOML text.

use std::{any::Any, fmt, sync::Arc};

use serde::{Deserialize, Serialize, Serializer, de::DeserializeOwned};
use unisono_base::{
    excerpt,
    keyed::{self, with_nearest},
};

use crate::{KINDS, MachineError, PRESETS, Shape};

/// The description of a machine of one kind. A new kind is a file with its description, and its line in [`KINDS`].
pub trait Description: Clone + PartialEq + fmt::Debug + Serialize + Send + Sync + 'static {
    /// As machine files name it.
    const KIND: &'static str;

    /// # Errors
    /// Text that is not TOML, an unknown key, a value out of range.
    fn read(source: &MachineText) -> Result<Self, MachineError>;

    fn name(&self) -> &str;

    fn summary(&self) -> &str;

    /// The shape of the part that is used: the one asked for, or the whole machine where it has a whole.
    ///
    /// # Errors
    /// The machine has no such part.
    fn shape(&self, asked: Option<Shape>) -> Result<Option<Shape>, MachineError>;

    /// The nanoseconds of a reduction, and of each byte of it, that messages in other programs' formats carry. `None`
    /// where they carry none.
    fn reduction_ns(&self) -> Option<[f64; 2]> {
        None
    }

    /// Returns a sentence for each cost that times on this machine leave out, and for each value that is assumed: of
    /// collectives of so many bytes, by the model that is named or the machine's own. Whatever prints such times prints
    /// these sentences.
    fn notes(&self, _bytes: u64, _model: Option<&str>) -> Vec<String> {
        Vec::new()
    }

    /// The same machine with so many nodes.
    ///
    /// # Errors
    /// Such machines are not sized by nodes, or there are too many.
    fn with_nodes(&self, _nodes: u32) -> Result<Self, MachineError> {
        Err(MachineError::NoNodes { machine: self.name().to_owned(), kind: Self::KIND })
    }

    /// The same machine without links and nodes that failed, beside those that failed before.
    ///
    /// # Errors
    /// Such machines have no links or nodes that can fail, or not these.
    fn with_failures(&self, _failed: &[String]) -> Result<Self, MachineError> {
        Err(MachineError::NoFailures { machine: self.name().to_owned(), kind: Self::KIND })
    }

    /// The shape of all ranks of some nodes.
    ///
    /// # Errors
    /// A node that is not there; such machines have no nodes with several ranks.
    fn shape_of(&self, _nodes: &[u32]) -> Result<Shape, MachineError> {
        Err(MachineError::NoNodes { machine: self.name().to_owned(), kind: Self::KIND })
    }
}

/// The text of a machine file.
pub struct MachineText<'a> {
    pub text: &'a str,
    /// The name of the file, for messages.
    pub origin: &'a str,
    /// The text of a file that the description names.
    pub files: &'a dyn Fn(&str) -> Option<String>,
}

impl MachineText<'_> {
    /// # Errors
    /// Text that is not TOML of this form; the message names the line.
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

    /// The keys at the top level that the file lacks, if `message` is about one of them.
    ///
    /// The reader names one missing key at a time, so each is put in with a value of the type that it takes, which is
    /// the one after which the reader finds another fault or none.
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
                // As text: a second reader, of tables, would take a quarter of the time that this crate compiles.
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

/// A message of the reader about a line, in plain words where it is about a value.
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

/// A message of the reader about the type of a value, in plain words.
pub(crate) fn of_value(message: &str) -> String {
    let Some((found, expected)) =
        message.strip_prefix("invalid type: ").and_then(|rest| rest.split_once(", expected "))
    else {
        return message.to_owned();
    };
    let accepted = match expected {
        "f64" => "a number",
        "u8" | "u16" | "u32" | "u64" => "a whole number",
        "a map" => "a table",
        other => other,
    };
    format!("found the {found}; accepted is {accepted}")
}

/// A kind of machine: the name that files give it, and its reader.
pub struct MachineKind {
    pub name: &'static str,
    read: fn(&MachineText) -> Result<Machine, MachineError>,
}

impl MachineKind {
    pub(crate) const fn of<T: Description>() -> Self {
        Self { name: T::KIND, read: |source| T::read(source).map(Machine::from) }
    }
}

/// Links of another rate are measured at the same share of it.
fn keep_share(table: &mut toml::Table, before: Option<&toml::Value>, after: &toml::Value) {
    let number = |value: &toml::Value| value.as_float().or_else(|| value.as_integer().map(|n| n as f64));
    let measured = table.get("measured_gbps").and_then(number);
    if let Some(((measured, before), after)) = measured.zip(before.and_then(number)).zip(number(after)) {
        table.insert("measured_gbps".to_owned(), (measured / before * after).into());
    }
}

/// The methods of a [`Description`] whose type is not known.
trait Erased: fmt::Debug + erased_serde::Serialize + Send + Sync {
    fn kind(&self) -> &'static str;
    fn name(&self) -> &str;
    fn summary(&self) -> &str;
    fn shape(&self, asked: Option<Shape>) -> Result<Option<Shape>, MachineError>;
    fn reduction_ns(&self) -> Option<[f64; 2]>;
    fn notes(&self, bytes: u64, model: Option<&str>) -> Vec<String>;
    fn with_nodes(&self, nodes: u32) -> Result<Machine, MachineError>;
    fn with_failures(&self, failed: &[String]) -> Result<Machine, MachineError>;
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

/// A machine of any kind. Copies share the description.
#[derive(Clone)]
pub struct Machine(Arc<dyn Erased>);

impl<T: Description> From<T> for Machine {
    fn from(description: T) -> Self {
        Self(Arc::new(description))
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

/// The key that says which description follows; the full text is then read for its own messages with places.
#[derive(Deserialize)]
struct KindOnly {
    kind: String,
}

impl Machine {
    /// # Errors
    /// Text that is not TOML, an unknown kind or key, a value out of range; the message names `origin` and the line.
    pub fn from_toml(text: &str, origin: &str) -> Result<Self, MachineError> {
        Self::from_toml_with(text, origin, &|_| None)
    }

    /// Returns the same machine with another value of one key of its file, as TOML writes it; dots lead into tables.
    ///
    /// # Errors
    /// A key that the file cannot have, or a value out of range.
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
        // The user has not seen the lines of this text.
        Self::from_toml(&table.to_string(), &origin).map_err(|error| match error {
            MachineError::Toml { message, .. } => {
                // The origin names the key already.
                let message = message.strip_prefix(&format!("{last}: ")).unwrap_or(&message);
                MachineError::Toml { origin, message: of_value(message) }
            }
            other => other,
        })
    }

    /// The same with the text of files that the description names.
    ///
    /// # Errors
    /// As [`Machine::from_toml`]; a file that is not given.
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
    /// No preset has the name; the message lists those there are.
    pub fn preset(name: &str) -> Result<Self, MachineError> {
        match PRESETS.iter().find(|p| p.name == name) {
            Some(preset) => Self::from_toml(preset.toml, preset.name),
            None => Err(MachineError::UnknownPreset {
                found: name.to_owned(),
                presets: PRESETS.iter().map(|p| p.name).collect::<Vec<_>>().join(", "),
            }),
        }
    }

    /// The description, if the machine is of its kind.
    pub fn get<T: Description>(&self) -> Option<&T> {
        self.0.as_any().downcast_ref()
    }

    pub fn kind(&self) -> &'static str {
        self.0.kind()
    }

    pub fn name(&self) -> &str {
        self.0.name()
    }

    pub fn summary(&self) -> &str {
        self.0.summary()
    }

    /// As [`Description::shape`].
    ///
    /// # Errors
    /// The machine has no such part.
    pub fn shape(&self, asked: Option<Shape>) -> Result<Option<Shape>, MachineError> {
        self.0.shape(asked)
    }

    /// As [`Description::reduction_ns`].
    pub fn reduction_ns(&self) -> Option<[f64; 2]> {
        self.0.reduction_ns()
    }

    /// As [`Description::notes`].
    pub fn notes(&self, bytes: u64, model: Option<&str>) -> Vec<String> {
        self.0.notes(bytes, model)
    }

    /// As [`Description::with_nodes`].
    ///
    /// # Errors
    /// The machine is not sized by nodes, or there are too many.
    pub fn with_nodes(&self, nodes: u32) -> Result<Self, MachineError> {
        self.0.with_nodes(nodes)
    }

    /// As [`Description::with_failures`].
    ///
    /// # Errors
    /// The machine has no links or nodes that can fail, or not these.
    pub fn with_failures(&self, failed: &[String]) -> Result<Self, MachineError> {
        self.0.with_failures(failed)
    }

    /// As [`Description::shape_of`].
    ///
    /// # Errors
    /// A node that is not there; a machine without nodes.
    pub fn shape_of(&self, nodes: &[u32]) -> Result<Shape, MachineError> {
        self.0.shape_of(nodes)
    }

    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("descriptions hold only what TOML can write")
    }
}
