//! One training iteration as a workload file describes it: computation, and communication among ranks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use unisono_base::{
    exact,
    keyed::{self, with_nearest},
};
use unisono_collective::Kind;

use super::{WorkloadError, error::WrongWorkload};

/// A workload: the dimensions of parallelism of its ranks, and the steps that each rank runs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    pub name: String,
    #[serde(default)]
    pub summary: String,
    /// The source of the workload's numbers.
    #[serde(default)]
    pub reference: String,
    /// The dimensions of parallelism, outermost first. Ranks that differ only in the last dimension are neighbors.
    pub dimensions: Vec<Dimension>,
    pub steps: Vec<Step>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dimension {
    pub name: String,
    pub size: u32,
    /// The rows and columns that the members occupy on a network of rows and columns. Their product is `size`. `None`
    /// is a row.
    #[serde(default, deserialize_with = "exact::optional", skip_serializing_if = "Option::is_none")]
    pub shape: Option<[u32; 2]>,
    /// True if each member holds a copy of the model, so that `size` can be changed to fill a machine. At most one
    /// dimension may have this property.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub data_parallel: bool,
}

/// A step of a rank, which computes, then begins its communication. A rank skips the steps of other ranks
/// ([`Step::only`]) without waiting, so steps of different ranks run concurrently.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    pub name: String,
    #[serde(default)]
    pub compute_us: f64,
    /// True if all communication begun earlier must end before the step computes.
    #[serde(default)]
    pub waits: bool,
    /// The ranks that run the step; `None` for all ranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<Only>,
    #[serde(default)]
    pub communication: Vec<Communication>,
}

/// The ranks at positions `first`, `first + every`, `first + 2 every`, and so on of a dimension.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Only {
    pub dimension: String,
    #[serde(default)]
    pub first: u32,
    #[serde(default = "one")]
    pub every: u32,
}

fn one() -> u32 {
    1
}

/// A collective of every group of ranks that differ only in the dimensions `over`; all groups perform it at the same
/// time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Communication {
    pub collective: Pattern,
    /// The number of elements, of 4 bytes each, counted as in MPI.
    pub elements: u64,
    /// The names of dimensions; empty for all dimensions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over: Vec<String>,
    /// True if the next step waits for the communication.
    #[serde(default = "yes")]
    pub blocking: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, String>,
    /// The partners in an exchange: rank k of a group swaps elements with rank k XOR p for each p listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partners: Vec<u32>,
}

fn yes() -> bool {
    true
}

/// The communication pattern of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    Collective(Kind),
    /// Each rank of a group sends to the next rank; the last sends nothing.
    Send,
    /// Each rank swaps elements with its partners.
    Exchange,
}

impl Pattern {
    pub fn name(self) -> &'static str {
        match self {
            Pattern::Collective(kind) => kind.name(),
            Pattern::Send => "send",
            Pattern::Exchange => "exchange",
        }
    }
}

impl Serialize for Pattern {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.as_str() {
            "send" => Ok(Pattern::Send),
            "exchange" => Ok(Pattern::Exchange),
            name => name.parse().map(Pattern::Collective).map_err(|_| {
                let kinds = Kind::ALL.iter().map(|k| k.name()).collect::<Vec<_>>().join(", ");
                serde::de::Error::custom(format!(
                    "'{name}' is not a communication; accepted are {kinds}, send, exchange"
                ))
            }),
        }
    }
}

/// The most elements. A larger number is a mistake in units. Up to this limit, sizes in bytes fit their type.
const MOST_ELEMENTS: u64 = 1 << 48;
/// The longest compute of a step: a year.
const YEAR_US: f64 = 3.2e13;

impl Workload {
    /// Reads a workload from the text of its file.
    ///
    /// # Errors
    /// Returns an error that names `origin` for text that is not TOML, unknown keys, or values that do not fit
    /// together.
    pub fn from_toml(text: &str, origin: &str) -> Result<Self, WorkloadError> {
        let workload: Self = toml::Deserializer::parse(text).and_then(keyed::read).map_err(|e| {
            let line = e.span().and_then(|s| text.get(..s.start)).map_or(1, |t| t.matches('\n').count() + 1);
            let message = with_nearest(&e.message().trim().replace('\n', ", "));
            WorkloadError::Toml { origin: origin.to_owned(), line, message }
        })?;
        workload.checked(origin)
    }

    /// Returns the workload if its values fit together, otherwise an error that names `origin`.
    pub(super) fn checked(self, origin: &str) -> Result<Self, WorkloadError> {
        match self.check() {
            Ok(()) => Ok(self),
            Err(error) => Err(WorkloadError::Wrong { origin: origin.to_owned(), error }),
        }
    }

    /// Returns the built-in workload with a name.
    ///
    /// # Errors
    /// Returns an error that lists the presets if none has the name.
    pub fn preset(name: &str) -> Result<Self, WorkloadError> {
        match super::WORKLOADS.iter().find(|w| w.name == name) {
            Some(preset) => Self::from_toml(preset.toml, preset.name),
            None => Err(WorkloadError::Unknown {
                found: name.to_owned(),
                presets: super::WORKLOADS.iter().map(|w| w.name).collect::<Vec<_>>().join(", "),
            }),
        }
    }

    pub fn accelerators(&self) -> u32 {
        self.dimensions.iter().map(|d| d.size).product()
    }

    /// Returns the longest compute time of a rank, in seconds.
    pub fn compute_seconds(&self) -> f64 {
        let of_rank = |rank: u32| self.steps.iter().filter(|s| self.runs(s, rank)).map(|s| s.compute_us).sum::<f64>();
        let ranks = if self.is_concurrent() { self.accelerators() } else { 1 };
        (0..ranks).map(of_rank).fold(0.0, f64::max) * 1e-6
    }

    /// Returns whether some step is restricted to some ranks ([`Step::only`]).
    pub fn is_concurrent(&self) -> bool {
        self.steps.iter().any(|s| s.only.is_some())
    }

    /// Returns whether a rank runs a step.
    pub fn runs(&self, step: &Step, rank: u32) -> bool {
        let Some(only) = &step.only else { return true };
        let inner = self.dimensions.iter().rev().take_while(|d| d.name != only.dimension);
        let beside: u32 = inner.map(|d| d.size).product();
        let size = self.dimensions.iter().find(|d| d.name == only.dimension).map_or(1, |d| d.size);
        let place = rank / beside % size;
        place >= only.first && (place - only.first).is_multiple_of(only.every)
    }

    fn check(&self) -> Result<(), WrongWorkload> {
        if self.dimensions.is_empty() || self.steps.is_empty() {
            return Err(WrongWorkload::Empty);
        }
        for (n, d) in self.dimensions.iter().enumerate() {
            if d.size == 0 {
                return Err(WrongWorkload::Size(d.name.clone()));
            }
            if let Some([rows, cols]) = d.shape.filter(|[r, c]| u64::from(*r) * u64::from(*c) != u64::from(d.size)) {
                return Err(WrongWorkload::Shape { name: d.name.clone(), size: d.size, rows, cols });
            }
            if self.dimensions[..n].iter().any(|other| other.name == d.name) {
                return Err(WrongWorkload::Twice(d.name.clone()));
            }
        }
        if let [first, second, ..] = &self.dimensions.iter().filter(|d| d.data_parallel).collect::<Vec<_>>()[..] {
            return Err(WrongWorkload::Copies(first.name.clone(), second.name.clone()));
        }
        if self.dimensions.iter().try_fold(1_u32, |all, d| all.checked_mul(d.size)).is_none() {
            return Err(WrongWorkload::Product);
        }
        for step in &self.steps {
            let name = || step.name.clone();
            if !(0.0..=YEAR_US).contains(&step.compute_us) {
                return Err(WrongWorkload::Compute { step: name(), found: step.compute_us.to_string() });
            }
            self.check_only(step)?;
            for c in &step.communication {
                if c.elements > MOST_ELEMENTS {
                    return Err(WrongWorkload::Elements { step: name(), found: c.elements });
                }
                let known = |name: &&String| self.dimensions.iter().any(|d| d.name == **name);
                if let Some(unknown) = c.over.iter().find(|name| !known(name)) {
                    let known = self.dimensions.iter().map(|d| d.name.as_str()).collect::<Vec<_>>().join(", ");
                    return Err(WrongWorkload::Dimension { step: name(), found: unknown.clone(), known });
                }
                let size = self.group_size(c);
                if let Some(&found) = c.partners.iter().find(|&&p| p == 0 || p >= size.next_power_of_two()) {
                    return Err(WrongWorkload::Partner { step: name(), found, ranks: size });
                }
                if (c.collective == Pattern::Exchange) == c.partners.is_empty() {
                    return Err(WrongWorkload::Partners(name()));
                }
            }
        }
        Ok(())
    }

    fn check_only(&self, step: &Step) -> Result<(), WrongWorkload> {
        let Some(only) = &step.only else { return Ok(()) };
        let (name, dimension) = (step.name.clone(), only.dimension.clone());
        let Some(size) = self.dimensions.iter().find(|d| d.name == dimension).map(|d| d.size) else {
            let known = self.dimensions.iter().map(|d| d.name.as_str()).collect::<Vec<_>>().join(", ");
            return Err(WrongWorkload::OnlyDimension { step: name, found: dimension, known });
        };
        let Only { first, every, .. } = *only;
        if first >= size || every == 0 {
            return Err(WrongWorkload::Only { step: name, first, every, dimension, size });
        }
        // A group must run the step as a whole or not at all.
        let is_over = |c: &&Communication| c.over.is_empty() || c.over.contains(&dimension);
        match step.communication.iter().find(is_over) {
            Some(c) => Err(WrongWorkload::OverOnly { step: name, collective: c.collective.name(), dimension }),
            None => Ok(()),
        }
    }

    /// Returns the number of ranks in a group.
    pub fn group_size(&self, communication: &Communication) -> u32 {
        let of = |d: &&Dimension| communication.over.is_empty() || communication.over.contains(&d.name);
        self.dimensions.iter().filter(of).map(|d| d.size).product()
    }
}
