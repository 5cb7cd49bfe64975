//! The timetables of forests: the start of each message, and the end of the last.

use std::sync::Arc as Shared;

use super::{Fabric, NoForest, Roots, Runs, kept};
use crate::{
    Arc, Forest, Graph, Message,
    forest::{Times, Trees},
    jobs::Sending,
    tree_cache::{self, OfTimes},
};

impl Fabric {
    /// Returns the nanoseconds from the start of a forest to its last message and sum, by its timetable, for chunks of
    /// `bytes`.
    ///
    /// # Errors
    /// Returns the errors of [`Fabric::forest`].
    pub fn end_ns(
        &self,
        roots: Roots,
        depth: Option<u32>,
        chunks: u32,
        bytes: u64,
        runs: Runs,
    ) -> Result<f64, NoForest> {
        let times = self.times(roots, depth, chunks, bytes, runs)?;
        Ok(times.end * (bytes + self.header_bytes) as f64 / self.graph.bytes_per_ns())
    }

    /// Returns the messages of a forest, sorted by begin; a chunk has `bytes` bytes. With [`Runs::Up`], the edges keep
    /// their direction and begins count back from the end: the message that the reduction sends last comes first.
    ///
    /// # Errors
    /// Returns the errors of [`Fabric::forest`].
    pub fn messages(
        &self,
        roots: Roots,
        depth: Option<u32>,
        chunks: u32,
        bytes: u64,
        runs: Runs,
    ) -> Result<Vec<Message>, NoForest> {
        let times = self.times(roots, depth, chunks, bytes, runs)?;
        Ok(self.forest(roots, depth, chunks, bytes)?.messages(self.graph.ranks(), &times))
    }

    fn times(
        &self,
        roots: Roots,
        depth: Option<u32>,
        chunks: u32,
        bytes: u64,
        runs: Runs,
    ) -> Result<Shared<Times>, NoForest> {
        let forest = self.forest(roots, depth, chunks, bytes)?;
        let class = self.class(roots, chunks, bytes);
        let kept_for = |runs, down: &dyn Fn() -> Option<Shared<Times>>| {
            let times = || self.times_after(&forest, bytes + self.header_bytes, class.is_some(), (runs, down));
            kept(&self.times, ((roots, depth, chunks, class), bytes, runs), times)
        };
        Ok(kept_for(runs, &|| Some(kept_for(Runs::Down, &|| None))))
    }

    /// Returns the timetable of a forest, in units of the time of a chunk of `bytes` on a link of rate 1. With
    /// `by_link`, links have their own latencies (of links that are equivalent by symmetry, the largest); otherwise, or
    /// if trees are translated, all have the mean latency.
    pub fn times_of(&self, forest: &Forest, bytes: u64, by_link: bool, runs: Runs) -> Shared<Times> {
        self.times_after(forest, bytes, by_link, (runs, &|| None))
    }

    /// Returns the timetable of [`Fabric::times_of`]. `down` returns the timetable of [`Runs::Down`], if it is at hand.
    /// It is called only if sums take no time: then a timetable of [`Runs::Up`] begins with the same times.
    fn times_after(
        &self,
        forest: &Forest,
        bytes: u64,
        by_link: bool,
        (runs, down): (Runs, &dyn Fn() -> Option<Shared<Times>>),
    ) -> Shared<Times> {
        let graph = self.routed();
        let unit = self.graph.bytes_per_ns() / bytes.max(1) as f64;
        let hops = || self.latencies_ns(graph).into_iter().map(|ns| ns * unit).collect::<Vec<_>>();
        let sum = self.sum_ns_per_byte * self.graph.bytes_per_ns();
        let sums = (runs == Runs::Up && sum > 0.0).then(|| sum.recip());
        let hops = by_link.then(hops);
        let work = self.host_work(bytes);
        let (hop, sending) = (self.hop(bytes), self.sending(bytes));
        let times = || {
            let down = if runs == Runs::Up && sums.is_none() { down() } else { None };
            forest.times(graph, (hop, hops.as_deref()), sending, (runs, down.as_deref()), (sums, work))
        };
        let Trees::RootTrees(trees) = &forest.trees else { return Shared::new(times()) };
        let (graph, trees, hops) = (graph.clone(), trees.clone(), hops.clone());
        tree_cache::times(OfTimes { graph, trees, hop, hops, sending, runs, sums, work }, times)
    }

    /// Returns the parameters of sending messages of `bytes`; `None` if each fits into one packet on each plane, or
    /// send machines are unlimited.
    fn sending(&self, bytes: u64) -> Option<Sending> {
        let (machines, packet_bytes) = self.machines?;
        let held = 1.0 - packet_bytes as f64 / bytes.max(1) as f64;
        (held > 0.0).then_some(Sending { machines, held })
    }

    pub(super) fn latencies_ns(&self, graph: &Graph) -> Vec<f64> {
        let ends = |arc: &Arc| (graph.place(arc.from), graph.place(arc.to));
        graph.arcs().iter().map(|arc| *self.hops_ns.get(&ends(arc)).unwrap_or(&self.hop_ns)).collect()
    }
}
