//! A forest of whole chunks: the block of every root is cut into equal chunks, and each travels on one tree.

use std::sync::Arc as Shared;

use crate::{packing::Tree, translated::Translated};

/// One tree for each chunk of each root.
#[derive(Clone, Debug)]
pub struct Forest {
    /// Of the block of every root.
    pub chunks: u32,
    /// Edges from a root to the farthest rank, the most of all trees.
    pub depth: u32,
    /// Links from a root to the farthest rank, the most of all trees.
    pub links: u32,
    /// The time in which the busiest arc carries its share of blocks of one unit.
    pub time: f64,
    /// Chunks that a rank sends, each to every rank below it, the most of all ranks.
    pub most_sends: u64,
    pub(crate) trees: Trees,
}

#[derive(Clone, Debug)]
pub(crate) enum Trees {
    /// Of each root, its chunks in order.
    Listed { roots: Vec<u32>, of: Vec<Vec<Shared<Tree>>> },
    /// Every root has the trees of rank 0, moved.
    Translated(Translated),
}

impl Forest {
    /// The edges of a chunk's tree, from one rank to another. No edge comes before the one that reaches its start.
    pub fn edges(&self, root: u32, chunk: u32) -> Vec<(u32, u32)> {
        match &self.trees {
            Trees::Listed { roots, of } => {
                let at = roots.binary_search(&root).expect("a root of the forest");
                of[at][chunk as usize].edges.iter().map(|edge| (edge.from, edge.to)).collect()
            }
            Trees::Translated(trees) => trees.edges(root, chunk),
        }
    }
}
