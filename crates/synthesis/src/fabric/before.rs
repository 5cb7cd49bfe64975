//! Forests of a network with failed parts, derived from the forests of the network before the failures.
//!
//! A network without failures often looks alike from many ranks, so its forests need little work. A plan for the
//! complete network was often made shortly before. Most of its trees lose only leaves by a failure. These trees are
//! kept, and the other trees are grown again.

use std::sync::{Arc as Shared, LazyLock};

use rustc_hash::FxHashMap;

use super::{
    Fabric, NoForest, Roots,
    forests::{LONG, admit_growth},
};
use crate::{
    Forest,
    growth::{Growth, Known},
    loads::Links,
    packing::{Edge, Tree},
    tree_cache,
};

type Lazy = LazyLock<Fabric, Box<dyn FnOnce() -> Fabric + Send>>;

/// The network before its failures.
pub(super) struct Before {
    fabric: Lazy,
    /// The present number of each node of the plane before the failures; `None` for lost nodes.
    nodes: Vec<Option<u32>>,
}

impl Fabric {
    /// Sets the network before its failures; all accelerators of that network must be ranks. `nodes` has the present
    /// number of each node of its plane, `None` for lost nodes.
    #[must_use]
    pub fn after_failures(self, fabric: impl FnOnce() -> Fabric + Send + 'static, nodes: Vec<Option<u32>>) -> Self {
        Self { before: Some(Box::new(Before { fabric: LazyLock::new(Box::new(fabric)), nodes })), ..self }
    }

    /// Returns the trees of all roots, most of which are trees from before the failures. `None` if nothing failed, or
    /// if no such forest of the network before the failures exists.
    ///
    /// # Errors
    /// Returns an error if a rank cannot be reached within the depth, or the work exceeds a limit.
    pub(super) fn repaired(
        &self,
        depth: Option<u32>,
        chunks: u32,
        class: Option<u32>,
    ) -> Result<Option<Growth>, NoForest> {
        let Some(before) = &self.before else { return Ok(None) };
        let all = Roots::All;
        let bytes = class.map_or(LONG, |class| 1 << class) / u64::from(chunks);
        let Ok(forest) = before.fabric.forest(all, depth, chunks, bytes) else { return Ok(None) };
        let (graph, roots) = (self.packed(all)?, self.representatives(all));
        admit_growth(chunks, roots.len(), graph.ranks())?;
        let known = self.left_of(before, &forest, &roots);
        let late = class.map_or(Ok(Vec::new()), |class| self.late(all, class))?;
        let links = Links { graph, symmetry: self.symmetry(all), late: &late };
        let grown = tree_cache::growth(&links, roots, depth, chunks, self.enough(all), known)?;
        Ok(Some(Growth::clone(&grown)))
    }

    /// Returns the trees of a forest before the failures that still reach all ranks.
    fn left_of(&self, before: &Before, forest: &Forest, roots: &[u32]) -> Known {
        let (graph, whole) = (self.routed(), before.fabric.routed());
        let number: FxHashMap<u32, u32> = (0..graph.nodes()).map(|node| (graph.place(node), node)).collect();
        let arcs: FxHashMap<(u32, u32), u32> =
            (0..).zip(graph.arcs()).map(|(at, arc)| ((arc.from, arc.to), at)).collect();
        let now = |node: u32| number.get(before.nodes.get(node as usize)?.as_ref()?).copied();
        let was: FxHashMap<u32, u32> =
            (0..whole.ranks()).filter_map(|rank| Some((now(whole.place(rank))?, rank))).collect();
        let tree = |root: u32, chunk: u32| {
            let (mut edges, mut depth) = (Vec::new(), vec![0; graph.ranks() as usize]);
            for way in forest.ways(whole, *was.get(&root)?, chunk) {
                let (&first, &last) = (way.first()?, way.last()?);
                // A lost rank needs no message. If the lost rank sent a message, the tree is not kept.
                let Some(to) = now(last) else { continue };
                let from = now(first)?;
                let nodes = way.iter().map(|&node| now(node)).collect::<Option<Vec<u32>>>()?;
                let arc = |pair: &[u32]| arcs.get(&(pair[0], pair[1])).copied();
                let way = nodes.windows(2).map(arc).collect::<Option<Vec<u32>>>()?;
                depth[to as usize] = depth[from as usize] + 1;
                edges.push(Edge { from, to, way });
            }
            let is_whole = edges.len() + 1 == graph.ranks() as usize;
            is_whole.then(|| Shared::new(Tree { root, edges, depth: depth.into_iter().max().unwrap_or(0) }))
        };
        roots.iter().map(|&root| (0..forest.chunks).map(|chunk| tree(root, chunk)).collect()).collect()
    }
}
