//! A subset of a graph's ranks, which one thread runs window by window while other threads run the other ranks.

use unisono_cost::endpoint::Prices;
use unisono_lower::tasks::TaskGraph;

use super::{
    Options, Run,
    carrier::Carrier,
    engine::{self, Engine},
};

/// Some ranks of a graph and the carrier of their messages.
pub(crate) struct Part<'a, P, C>(Engine<'a, P, C>);

impl<'a, P: Prices, C: Carrier> Part<'a, P, C> {
    /// Begins the ranks that `is_own` accepts. The caller must have checked the options with [`check`].
    pub fn new(
        graph: &'a TaskGraph,
        prices: &'a P,
        options: &'a Options,
        carrier: C,
        is_own: impl Fn(u32) -> bool,
    ) -> Self {
        let mut engine = Engine::new(graph, prices, options, true, carrier);
        (0..graph.rank_count()).filter(|&rank| is_own(rank)).for_each(|rank| engine.begin(rank));
        Self(engine)
    }

    pub fn carrier(&mut self) -> &mut C {
        &mut self.0.carrier
    }

    /// Returns the time of the ranks' next event.
    pub fn next_time(&mut self) -> Option<u64> {
        self.0.queue.peek().map(|event| event.time)
    }

    /// Runs all events up to the time `last`. Returns true if classes stayed valid and no time overflowed.
    pub fn run(&mut self, last: u64) -> bool {
        self.0.run_carried(last).is_ok()
    }

    /// Returns the results of these ranks, the number of tasks done, and the carrier. Values for the ranks of other
    /// parts are incomplete: each is at most the value in the results of its own part.
    pub fn results(self) -> (Run, u64, C) {
        let done = self.0.done;
        let (run, carrier) = self.0.results();
        (run, done, carrier)
    }
}

/// The check of options and limits with which [`super::run`] begins.
pub(crate) use engine::check;
