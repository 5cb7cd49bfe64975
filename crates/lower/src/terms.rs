//! The quantities from which cost models of a wafer compute the time of one phase of a placed schedule.
//!
//! Source: "Near-Optimal Wafer-Scale Reduce", section 3, Table 1. `max_link_load` and `datapath` are added here,
//! because averages over links and counts of wavelets can imply a time that no link or datapath achieves.

use serde::Serialize;

/// The terms of a phase. Their types are fractional, because closed forms may divide a vector into equal parts. For
/// phases among ranks, bytes replace wavelets, and messages replace hops.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Terms {
    /// E: the hops of all wavelets together.
    pub energy: f64,
    /// L: hops along the longest chain of dependent wavelets.
    pub distance: f64,
    /// D: messages along the longest chain of dependent messages.
    pub depth: f64,
    /// C: the maximum number of wavelets that one PE sends, or that one PE receives.
    pub contention: f64,
    /// N: the number of directed links in use.
    pub links: f64,
    /// The maximum number of wavelets that pass one directed link.
    pub max_link_load: f64,
    /// The maximum number of element operations of one PE, counted in wavelets: an n-source combine costs max(1, n - 1)
    /// operations for each wavelet of its length.
    pub datapath: f64,
}

/// A time that an algorithm computes itself, because this time is more precise than the one that a model computes from
/// the terms.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sharper {
    /// The cycles of the phase, without the cycles that depend on the depth. This value replaces the term `max(C, E/N +
    /// L)` of the model.
    pub cycles_beside_depth: f64,
    pub why: &'static str,
}

/// A named part of a schedule. Phases run in sequence, so their times add up.
#[derive(Clone, PartialEq, Debug)]
pub struct Phase {
    pub name: String,
    pub terms: Terms,
    pub sharper: Option<Sharper>,
    /// Cycles of the phase if every PE receives from its children one after another; `None` if the algorithm does not
    /// state them. The model `links` uses this value.
    pub in_turn: Option<f64>,
    /// The parameters that the algorithm chose, as text for reports.
    pub note: Option<String>,
}

/// The terms of a schedule, known before it runs.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Estimate {
    pub phases: Vec<Phase>,
}

impl Phase {
    pub fn new(name: &str, terms: Terms) -> Self {
        Self { name: name.to_owned(), terms, sharper: None, in_turn: None, note: None }
    }
}

impl Estimate {
    /// Returns the terms of all phases together. Energy, distance, depth and contention add up, because phases run in
    /// sequence. Links, link load and datapath are the maxima over the phases.
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

/// A round of messages. The round is the same on every rank, or its numbers are those of the slowest rank. Each rank
/// sends `messages` messages of `bytes` bytes back to back, receives the same number of messages (a [`Waits::Pipeline`]
/// states its own number), and reduces `reduced` bytes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Round {
    pub messages: u32,
    pub bytes: u64,
    pub reduced: u64,
    /// The number of equal rounds in sequence.
    pub repeat: u32,
    pub waits: Waits,
}

/// The messages for which the next equal round waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waits {
    /// All messages of the round.
    All,
    /// For each message, the previous message of its lane.
    Lanes,
    /// No messages, as in a pipeline. The time of a round is the work of the busiest rank, which receives `receives`
    /// messages in one round.
    Pipeline { receives: u32 },
}

impl Round {
    /// Makes a round that ends when its messages have arrived.
    pub fn new(messages: u32, bytes: u64) -> Self {
        Self { messages, bytes, reduced: 0, repeat: 1, waits: Waits::All }
    }

    /// Makes a round of parallel lanes, each with a message of `bytes` bytes.
    pub fn lanes(lanes: u32, bytes: u64) -> Self {
        Self { waits: Waits::Lanes, ..Self::new(lanes, bytes) }
    }

    /// Makes a round of a pipeline: the busiest rank sends `sends` and receives `receives` messages of `bytes` bytes.
    pub fn pipelined(sends: u32, receives: u32, bytes: u64) -> Self {
        Self { waits: Waits::Pipeline { receives }, ..Self::new(sends, bytes) }
    }

    /// Sets the number of bytes that each rank reduces in one round.
    #[must_use]
    pub fn reducing(self, reduced: u64) -> Self {
        Self { reduced, ..self }
    }

    #[must_use]
    pub fn times(self, repeat: u32) -> Self {
        Self { repeat, ..self }
    }
}
