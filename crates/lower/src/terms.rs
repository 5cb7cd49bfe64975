//! The quantities that cost models of a wafer read, for one phase of a placed schedule.
//!
//! Source: "Near-Optimal Wafer-Scale Reduce", section 3, Table 1; the last two go beyond it, because an average over
//! links and a count of wavelets can promise what no link and no datapath can run.

use serde::Serialize;

/// Fractional, so that closed forms may divide a vector evenly.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Terms {
    /// E: wavelet-hops in all.
    pub energy: f64,
    /// L: hops along the longest chain of dependent wavelets.
    pub distance: f64,
    /// D: messages along the longest chain of dependent ones.
    pub depth: f64,
    /// C: the most wavelets that one PE sends, or receives.
    pub contention: f64,
    /// N: directed links in use.
    pub links: f64,
    /// The most wavelets that pass one directed link.
    pub max_link_load: f64,
    /// The most element operations of one PE, as the wavelets that hold the elements: an n-source combine costs
    /// max(1, n - 1) of them for each wavelet of its length.
    pub datapath: f64,
}

/// A time that one algorithm states of itself, sharper than what a model makes of its terms.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Sharper {
    /// Stands for `max(C, E/N + L)`: cycles beside the depth's share.
    pub cycles_beside_depth: f64,
    pub why: &'static str,
}

/// A named part of a schedule; parts follow each other, so their times add up.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Phase {
    pub name: String,
    pub terms: Terms,
    pub sharper: Option<Sharper>,
    /// Cycles of the slowest way if every PE takes its children one after the other, where the algorithm states them.
    /// The model `links` takes them for its own.
    pub in_turn: Option<f64>,
    /// What the algorithm chose for itself, in a few words.
    pub note: Option<String>,
}

/// What is known of a schedule before it runs.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Estimate {
    pub phases: Vec<Phase>,
}

impl Phase {
    pub fn new(name: &str, terms: Terms) -> Self {
        Self { name: name.to_owned(), terms, sharper: None, in_turn: None, note: None }
    }
}

impl Estimate {
    /// Over all phases: energy, distance and depth add up; contention adds up as the phases follow each other; links
    /// and the largest loads are those of the phase that has most.
    pub fn total(&self) -> Terms {
        self.phases.iter().fold(Terms::default(), |sum, Phase { terms: t, .. }| Terms {
            energy: sum.energy + t.energy,
            distance: sum.distance + t.distance,
            depth: sum.depth + t.depth,
            contention: sum.contention + t.contention,
            links: sum.links.max(t.links),
            max_link_load: sum.max_link_load.max(t.max_link_load),
            datapath: sum.datapath.max(t.datapath),
        })
    }
}

/// One round of messages among ranks, the same on every rank (or on the slowest): each sends `messages` of `bytes`
/// back to back, receives as many, and reduces `reduced` bytes.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Round {
    pub messages: u32,
    pub bytes: u64,
    pub reduced: u64,
    /// So many equal rounds follow each other.
    pub repeat: u32,
    pub waits: Waits,
}

/// What the next of equal rounds waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Waits {
    /// For all messages of the round.
    All,
    /// Each message for the one before it in its lane.
    Lanes,
    /// For nothing, as in a pipeline: it takes what the busiest rank works, which receives so many messages in one.
    Pipeline { receives: u32 },
}

impl Round {
    /// A round that ends when its messages have arrived.
    pub fn new(messages: u32, bytes: u64) -> Self {
        Self { messages, bytes, reduced: 0, repeat: 1, waits: Waits::All }
    }

    /// A turn of lanes that run beside each other, with a message of `bytes` each.
    pub fn lanes(lanes: u32, bytes: u64) -> Self {
        Self { waits: Waits::Lanes, ..Self::new(lanes, bytes) }
    }

    /// A turn of a pipeline: the busiest rank sends and receives so many messages of `bytes`.
    pub fn pipelined(sends: u32, receives: u32, bytes: u64) -> Self {
        Self { waits: Waits::Pipeline { receives }, ..Self::new(sends, bytes) }
    }

    /// Each rank also reduces so many bytes.
    #[must_use]
    pub fn reducing(self, reduced: u64) -> Self {
        Self { reduced, ..self }
    }

    #[must_use]
    pub fn times(self, repeat: u32) -> Self {
        Self { repeat, ..self }
    }
}
