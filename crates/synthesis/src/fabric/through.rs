//! Allreduces whose chunks are summed on their paths to one rank and spread from it, concurrently.

use std::sync::Arc as Shared;

use unisono_base::narrow;

use super::{Fabric, NoForest, Roots, Runs};
use crate::{Message, forest::Trees, packing::Tree};

impl Fabric {
    /// Returns the opposite arc of each arc, if trees are used in both directions at once.
    pub(super) fn back(&self, roots: Roots) -> Option<Vec<u32>> {
        matches!(roots, Roots::Through(_)).then(|| self.routed().back())
    }

    /// Returns the messages of an allreduce through rank `root`, each with its direction, in an order that keeps every
    /// link busy: while a chunk moves up or down by one level, the next chunk follows one step behind.
    /// [`Message::begin`] counts steps.
    ///
    /// # Errors
    /// Returns the errors of [`Fabric::forest`].
    pub fn through(
        &self,
        root: u32,
        depth: Option<u32>,
        chunks: u32,
        bytes: u64,
    ) -> Result<Vec<(Runs, Message)>, NoForest> {
        let forest = self.forest(Roots::Through(root), depth, chunks, bytes)?;
        let Trees::RootTrees(listed) = &forest.trees else { return Err(NoForest::Unreachable) };
        let mut messages = Vec::new();
        for (turn, chunk) in (0..).zip(in_turn(&listed.of[0])) {
            let mut level = vec![0_u32; self.graph.ranks() as usize];
            for edge in forest.edges(root, chunk) {
                level[edge.to as usize] = level[edge.from as usize] + 1;
                let far = level[edge.to as usize];
                for (runs, step) in [(Runs::Up, forest.depth - far), (Runs::Down, forest.depth + far - 1)] {
                    messages.push((runs, Message { begin: f64::from(turn + step), root, chunk, edge }));
                }
            }
        }
        messages.sort_by(|(_, a), (_, b)| a.begin.total_cmp(&b.begin));
        Ok(messages)
    }

    /// Returns the time of the allreduce of [`Fabric::through`] in nanoseconds: each chunk moves one level while the
    /// busiest link carries one chunk.
    ///
    /// # Errors
    /// Returns the errors of [`Fabric::forest`].
    pub fn through_ns(&self, root: u32, depth: Option<u32>, chunks: u32, bytes: u64) -> Result<f64, NoForest> {
        let forest = self.forest(Roots::Through(root), depth, chunks, bytes)?;
        let (chunk_ns, steps) =
            ((bytes + self.header_bytes) as f64 / self.graph.bytes_per_ns(), f64::from(2 * forest.depth - 1));
        Ok(forest.time * chunk_ns * (f64::from(chunks) + steps) + steps * self.hop_ns)
    }
}

/// Returns the indices of chunks in an order that separates equal trees.
fn in_turn(trees: &[Shared<Tree>]) -> Vec<u32> {
    let mut place: Vec<(f64, u32)> = Vec::with_capacity(trees.len());
    for run in trees.chunk_by(Shared::ptr_eq) {
        let (first, count) = (place.len(), run.len() as f64);
        place.extend((0..run.len()).map(|at| ((at as f64 + 0.5) / count, narrow(first + at))));
    }
    place.sort_by(|a, b| a.0.total_cmp(&b.0));
    place.into_iter().map(|(_, chunk)| chunk).collect()
}
