//! Machines of kind `endpoint`: ranks exchange messages at a cost that depends on the two ranks and the length, not on
//! other traffic.
//!
//! Sources: Hockney, 1994 (alpha, beta); "Recursive multiplying" (Int. J. HPC Appl., 2014 ff.), section 3, for the
//! postal and the pipelining postal model; Culler et al., 1993 (LogP); Alexandrov et al., 1995 (LogGP); Hoefler et al.,
//! 2006 (LogfP); Hoefler, Schneider, Lumsdaine, 2010 (LogGOPS).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use unisono_base::{excerpt, keyed::with_nearest};

use crate::{Description, MachineError, MachineText, Shape};

unisono_base::named! {
    /// A model of the time of a message.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum EndpointModel {
        Hockney = "hockney",
        LogfP = "logfp",
        LogGOPS = "loggops",
        LogGP = "loggp",
        LogP = "logp",
        #[serde(rename = "pipelining-postal")]
        PipeliningPostal = "pipelining-postal",
        Postal = "postal",
    }
}

impl EndpointModel {
    pub fn summary(self) -> &'static str {
        match self {
            Self::Hockney => {
                "a message takes alpha + n beta of both ports; a port sends one and receives one at a time"
            }
            Self::Postal => "a message takes alpha + n beta of its sender; receives are free",
            Self::PipeliningPostal => "a message takes alpha_r + n beta of its sender and arrives alpha_p later",
            Self::LogP => "latency, overhead and gap, whatever the length",
            Self::LogGP => "LogP with a gap per byte",
            Self::LogfP => "LogP where f messages leave before the gap is felt",
            Self::LogGOPS => "LogGP with an overhead per byte and a rendezvous beyond S bytes",
        }
    }

    /// Returns the keys that a machine file must contain for the model.
    fn needs(self) -> &'static [&'static str] {
        match self {
            Self::Hockney | Self::Postal => &["alpha_ns", "beta_ns_per_byte"],
            Self::PipeliningPostal => &["alpha_p_ns", "alpha_r_ns", "beta_ns_per_byte"],
            Self::LogP => &["L_ns", "o_ns", "g_ns"],
            Self::LogGP => &["L_ns", "o_ns", "g_ns", "G_ns_per_byte"],
            Self::LogfP => &["L_ns", "o_ns", "g_ns", "f_messages"],
            Self::LogGOPS => &["L_ns", "o_ns", "g_ns", "G_ns_per_byte", "O_ns_per_byte", "S_bytes"],
        }
    }
}

/// The parameters of all models. A model ignores the parameters that it does not need.
///
/// Times are nanoseconds. A level inherits the parameters that it does not state from the machine.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[allow(non_snake_case, reason = "the field's own names")]
pub struct Parameters {
    /// The latency of one message (Hockney, postal).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha_ns: Option<f64>,
    /// The time from the end of a message's issue to its arrival (pipelining postal).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha_p_ns: Option<f64>,
    /// The sender's time for one message (pipelining postal).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha_r_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beta_ns_per_byte: Option<f64>,
    /// The time to reduce one byte of one operand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gamma_ns_per_byte: Option<f64>,
    /// The fixed time of a reduction, in addition to the time of its bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compute_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub L_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub o_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub g_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub G_ns_per_byte: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub O_ns_per_byte: Option<f64>,
    /// The longest message that does not wait for its receiver (LogGOPS).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub S_bytes: Option<u64>,
    /// LogfP: the number of messages that can be sent back to back before the gap applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub f_messages: Option<u32>,
}

impl Parameters {
    /// Returns each key with its value. The end of a key is the unit of its value.
    fn all(&self) -> [(&'static str, Option<f64>); 13] {
        [
            ("alpha_ns", self.alpha_ns),
            ("alpha_p_ns", self.alpha_p_ns),
            ("alpha_r_ns", self.alpha_r_ns),
            ("beta_ns_per_byte", self.beta_ns_per_byte),
            ("gamma_ns_per_byte", self.gamma_ns_per_byte),
            ("compute_ns", self.compute_ns),
            ("L_ns", self.L_ns),
            ("o_ns", self.o_ns),
            ("g_ns", self.g_ns),
            ("G_ns_per_byte", self.G_ns_per_byte),
            ("O_ns_per_byte", self.O_ns_per_byte),
            ("S_bytes", self.S_bytes.map(|n| n as f64)),
            ("f_messages", self.f_messages.map(f64::from)),
        ]
    }

    /// Fills each missing parameter from `other`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            alpha_ns: self.alpha_ns.or(other.alpha_ns),
            alpha_p_ns: self.alpha_p_ns.or(other.alpha_p_ns),
            alpha_r_ns: self.alpha_r_ns.or(other.alpha_r_ns),
            beta_ns_per_byte: self.beta_ns_per_byte.or(other.beta_ns_per_byte),
            gamma_ns_per_byte: self.gamma_ns_per_byte.or(other.gamma_ns_per_byte),
            compute_ns: self.compute_ns.or(other.compute_ns),
            L_ns: self.L_ns.or(other.L_ns),
            o_ns: self.o_ns.or(other.o_ns),
            g_ns: self.g_ns.or(other.g_ns),
            G_ns_per_byte: self.G_ns_per_byte.or(other.G_ns_per_byte),
            O_ns_per_byte: self.O_ns_per_byte.or(other.O_ns_per_byte),
            S_bytes: self.S_bytes.or(other.S_bytes),
            f_messages: self.f_messages.or(other.f_messages),
        }
    }
}

/// A level of the machine: groups of ranks with cheaper messages between them, such as the cores of a node.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Level {
    pub name: String,
    /// The number of members of a group: ranks at the innermost level, groups of the next inner level at all others.
    pub size: u32,
    #[serde(flatten)]
    pub parameters: Parameters,
}

/// Other parameters for long messages, because MPI libraries change from an eager to a rendezvous protocol. They apply
/// between members of the outermost level. Source: Kielmann, Bal, Verstoep, 2000, whose parameterized LogP has a
/// parameter for each length.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Protocol {
    /// The length of the shortest message with these parameters. A message has the parameters of the last protocol
    /// whose `from_bytes` it reaches.
    pub from_bytes: u64,
    #[serde(flatten)]
    pub parameters: Parameters,
}

/// The assignment of consecutive ranks to nodes, the innermost groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RankOrder {
    /// Each node is filled before the next.
    #[default]
    Block,
    /// Consecutive ranks are on consecutive nodes.
    Cyclic,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Endpoint {
    pub name: String,
    pub kind: String,
    #[serde(default)]
    pub summary: String,
    pub model: EndpointModel,
    /// The default number of ranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks: Option<u32>,
    #[serde(default)]
    pub placement: RankOrder,
    #[serde(flatten)]
    pub parameters: Parameters,
    /// The levels, innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<Level>,
    /// The protocols of long messages, shortest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protocols: Vec<Protocol>,
    /// The fit reported by a calibration. Only `poor`, the list of parameters with a poor fit, and `values`, which is
    /// `minima` if the prices are those of the fastest rounds, are read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit: Option<toml::Table>,
}

/// The keys of a machine besides its parameters.
const MACHINE_KEYS: &[&str] = &["name", "kind", "summary", "model", "ranks", "placement", "levels", "protocols", "fit"];
/// The lists of a machine, with the keys of an entry besides its parameters.
const LISTS: [(&str, &[&str]); 2] = [("levels", &["name", "size"]), ("protocols", &["from_bytes"])];
/// Parameters that belong to a rank and apply to all its messages. Levels and protocols cannot change them.
const OF_RANKS: &[&str] = &["gamma_ns_per_byte", "compute_ns", "S_bytes", "f_messages"];
/// Up to this vector length in bytes, `FREE_BYTES` is not reported.
const FEW_BYTES: u64 = 1024;
const FREE_BYTES: &str = "a byte costs nothing on this machine (no beta, no G), so the length of the vector has no \
    part in these times; for long vectors use a machine file that states the cost of a byte";
/// The value of the key `values` of a fit to the fastest rounds.
const MINIMA: &str = "minima";
/// The largest value of every parameter except `S_bytes` and `f_messages`: a day in nanoseconds.
const DAY_NS: f64 = 8.64e13;

impl Description for Endpoint {
    const KIND: &'static str = "endpoint";

    fn read(source: &MachineText) -> Result<Self, MachineError> {
        let MachineText { text, origin, .. } = *source;
        let table: toml::Table = source.parse()?;
        check_table(&table, None, text, origin)?;
        for (list, _) in LISTS {
            let entries = table.get(list).and_then(toml::Value::as_array).into_iter().flatten();
            for (at, entry) in entries.filter_map(toml::Value::as_table).enumerate() {
                check_table(entry, Some((list, at)), text, origin)?;
            }
        }
        let machine: Self = source.parse()?;
        machine.check(text, origin)?;
        Ok(machine)
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn summary(&self) -> &str {
        &self.summary
    }

    fn shape(&self, asked: Option<Shape>) -> Result<Option<Shape>, MachineError> {
        Shape::ranks(asked, &self.name).map(|shape| shape.or(self.ranks.map(Shape::line)))
    }

    fn notes(&self, bytes: u64, model: Option<&str>) -> Vec<String> {
        let model = EndpointModel::ALL.iter().find(|known| model == Some(known.name()));
        let is_free = bytes > FEW_BYTES && !self.prices_bytes(model.copied().unwrap_or(self.model));
        is_free.then(|| FREE_BYTES.to_owned()).into_iter().chain(self.note_on_fit()).collect()
    }

    fn reduction_ns(&self) -> Option<[f64; 2]> {
        Some([self.parameters.compute_ns, self.parameters.gamma_ns_per_byte].map(Option::unwrap_or_default))
    }
}

impl Endpoint {
    /// Returns true if the prices are fitted to typical times, so that messages may be faster than their prices.
    pub fn has_typical_prices(&self) -> bool {
        let values = |fit: &toml::Table| fit.get("values").and_then(toml::Value::as_str) != Some(MINIMA);
        self.fit.as_ref().is_some_and(values)
    }

    /// Returns a sentence if the calibration of this machine reports parameters with a poor fit, in the table `fit` or
    /// a table inside `fit`.
    fn note_on_fit(&self) -> Option<String> {
        let mut poor = BTreeSet::new();
        let mut open: Vec<&toml::Table> = self.fit.iter().collect();
        while let Some(table) = open.pop() {
            let listed = table.get("poor").and_then(toml::Value::as_array).into_iter().flatten();
            poor.extend(listed.filter_map(toml::Value::as_str));
            open.extend(table.values().filter_map(toml::Value::as_table));
        }
        let names = poor.into_iter().collect::<Vec<_>>().join(", ");
        (!names.is_empty()).then(|| {
            format!(
                "this machine was calibrated with a poor fit ({}); calibrate it again on quiet hosts",
                excerpt(&names)
            )
        })
    }

    fn check(&self, text: &str, origin: &str) -> Result<(), MachineError> {
        let bad = |key: &'static str, level, found: String, accepted| {
            Err(MachineError::Value { origin: format!("{origin}{}", line_of(text, level, key)), key, found, accepted })
        };
        if let Some(&missing) = self.missing(self.model).first() {
            return bad(missing, None, "missing".into(), "a number from 0 on, which the model needs");
        }
        if self.ranks == Some(0) {
            return bad("ranks", None, "0".into(), "at least 1");
        }
        let mut members = 1u64;
        for (at, level) in self.levels.iter().enumerate() {
            members = members.saturating_mul(u64::from(level.size));
            if level.size == 0 || members > u64::from(u32::MAX) {
                let accepted = "at least 1, all levels together below 2^32 ranks";
                return bad("size", Some(("levels", at)), level.size.to_string(), accepted);
            }
        }
        let mut least = 2;
        for (at, protocol) in self.protocols.iter().enumerate() {
            if protocol.from_bytes < least {
                let accepted = "at least 2, and more than that of the protocol before";
                return bad("from_bytes", Some(("protocols", at)), protocol.from_bytes.to_string(), accepted);
            }
            least = protocol.from_bytes.saturating_add(1);
        }
        Ok(())
    }

    /// Returns whether the time of a message on this machine depends on its length under `model`.
    pub fn prices_bytes(&self, model: EndpointModel) -> bool {
        let is_paid = |p: &Parameters| match model {
            EndpointModel::Hockney | EndpointModel::Postal | EndpointModel::PipeliningPostal => {
                p.beta_ns_per_byte > Some(0.0)
            }
            EndpointModel::LogP | EndpointModel::LogfP => false,
            EndpointModel::LogGP => p.G_ns_per_byte > Some(0.0),
            EndpointModel::LogGOPS => p.G_ns_per_byte > Some(0.0) || p.O_ns_per_byte > Some(0.0),
        };
        is_paid(&self.parameters) || self.protocols.iter().any(|protocol| is_paid(&protocol.parameters))
    }

    /// Returns the parameters that `model` needs and the machine file does not state.
    pub fn missing(&self, model: EndpointModel) -> Vec<&'static str> {
        let said = self.parameters.all();
        model.needs().iter().copied().filter(|need| !said.iter().any(|(k, v)| k == need && v.is_some())).collect()
    }

    /// Returns the number of ranks to plan for: `asked`, or that of the file.
    ///
    /// # Errors
    /// Returns an error if both numbers are missing, or the number is 0.
    pub fn choose(&self, asked: Option<u32>) -> Result<u32, MachineError> {
        match asked.or(self.ranks) {
            Some(0) => Err(MachineError::NoRanks { machine: self.name.clone(), found: "0".to_owned() }),
            Some(ranks) => Ok(ranks),
            None => Err(MachineError::NoRanks { machine: self.name.clone(), found: "missing".to_owned() }),
        }
    }

    /// Returns the number of ranks in one group of each level, innermost first.
    pub fn level_ranks(&self) -> Vec<u32> {
        let members = |all: &mut u32, level: &Level| {
            *all = all.saturating_mul(level.size);
            Some(*all)
        };
        self.levels.iter().scan(1, members).collect()
    }

    /// Returns the position of a rank in an order in which the ranks of a node are adjacent; `ranks` is the number of
    /// all ranks. With cyclic placement, a node that is not full leaves a gap between positions.
    pub fn place(&self, rank: u32, ranks: u32) -> u32 {
        match (self.placement, self.levels.first()) {
            (RankOrder::Cyclic, Some(node)) => {
                let nodes = ranks.div_ceil(node.size);
                rank % nodes * node.size + rank / nodes
            }
            _ => rank,
        }
    }
}

/// An entry of one of the lists of a machine, by the name of the list and its index.
type Entry = (&'static str, usize);

/// Checks the keys and parameters of a machine, or of one of its entries.
fn check_table(table: &toml::Table, entry: Option<Entry>, text: &str, origin: &str) -> Result<(), MachineError> {
    let of_entry = |(list, _)| LISTS.iter().find(|(name, _)| *name == list).map(|(_, keys)| *keys);
    let own = entry.and_then(of_entry).unwrap_or(MACHINE_KEYS);
    let parameters = Parameters::default().all().map(|(name, _)| name);
    let here = |key: &str| entry.is_none() || !OF_RANKS.contains(&key);
    for (key, value) in table {
        let origin = || format!("{origin}{}", line_of(text, entry, key));
        let Some(&parameter) = parameters.iter().find(|name| *name == key).filter(|key| here(key)) else {
            if own.contains(&key.as_str()) {
                continue;
            }
            let accepted: Vec<_> = own.iter().chain(parameters.iter().filter(|key| here(key))).copied().collect();
            let message = format!("unknown field `{key}`, expected one of `{}`", accepted.join("`, `"));
            return Err(MachineError::Toml { origin: origin(), message: with_nearest(&message) });
        };
        let number = value.as_float().or(value.as_integer().map(|n| n as f64));
        let count = value.as_integer();
        let (fits, accepted) = match parameter {
            "S_bytes" => (count.is_some_and(|n| n >= 0), "a whole number from 0 on"),
            "f_messages" => (count.is_some_and(|n| u32::try_from(n).is_ok()), "a whole number from 0 to 4294967295"),
            _ => (number.is_some_and(|n| (0.0..=DAY_NS).contains(&n)), "a number from 0 to 8.64e13"),
        };
        if !fits {
            let found = number.map_or_else(|| value.to_string(), |n| n.to_string());
            return Err(MachineError::Value { origin: origin(), key: parameter, found, accepted });
        }
    }
    Ok(())
}

/// Returns `, line N` for the line that sets `key` in the machine or in one of its entries; empty if no line does.
fn line_of(text: &str, entry: Option<Entry>, key: &str) -> String {
    let sets = |line: &str| line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='));
    let (mut before, mut inside) = (0, entry.is_none());
    for (at, line) in text.lines().map(str::trim_start).enumerate() {
        if line.starts_with('[') {
            let found = entry.filter(|(list, _)| line.starts_with(&format!("[[{list}]]")));
            inside = found.is_some_and(|(_, wanted)| wanted == before);
            before += usize::from(found.is_some());
        } else if inside && sets(line) {
            return format!(", line {}", at + 1);
        }
    }
    String::new()
}
