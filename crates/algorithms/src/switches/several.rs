//! Concurrent trees, each for a part of the vector, that share as few links as possible.
//!
//! Spanning trees are packed (`packing.rs`) over the switches of a node, and over the nodes of one dimension; a tree of
//! the whole machine combines a tree of a node with a tree of each dimension, and is dimension-ordered between nodes.
//! "Accelerating Allreduce with in-network reduction on Intel PIUMA", section "Discussion", names several trees as
//! future work.

use unisono_base::narrow;
use unisono_collective::{Collective, Kind};
use unisono_lower::switches::Embedding;
use unisono_machine::in_network::{Layout, MEMORY, Port};

use super::{
    Site,
    grow::{Plan, Root, TreeSlice, grow},
    packing::pack,
    tree::root_of,
    ways::{Ways, inside, ways},
};

/// The links between switches of the first node, each once.
struct Links {
    ends: Vec<(u32, u32)>,
    ports: Vec<(Port, Port)>,
}

fn links(layout: &Layout) -> Links {
    let mut all = Links { ends: Vec::new(), ports: Vec::new() };
    for (from, port, there, _) in inside(layout).filter(|&(from, _, there, _)| from < there) {
        all.ends.push((from, there));
        all.ports.push((port, layout.peer(from, port).map_or(MEMORY, |peer| peer.port)));
    }
    all
}

struct Tree<'a> {
    site: &'a Site,
    root: Root,
    /// For each dimension and coordinate, the next coordinate on the path to the root; `None` at the coordinate of the
    /// root.
    lines: Vec<Vec<Option<u32>>>,
    /// For each switch of a node, a mask of the ports whose links belong to this tree.
    own: Vec<u64>,
    known: Vec<Option<Ways>>,
}

impl Plan for Tree<'_> {
    fn leave(&self, node: u32) -> Option<(usize, u32)> {
        let layout = &*self.site.layout;
        self.lines.iter().enumerate().find_map(|(dim, next)| Some((dim, next[layout.coordinate(node, dim) as usize]?)))
    }

    fn inside(&mut self, to: u32) -> &Ways {
        let own = &self.own;
        let usable = |switch: u32, port: Port| own[switch as usize] & 1 << port != 0;
        self.known[to as usize].get_or_insert_with(|| ways(&self.site.machine, &self.site.layout, to, usable))
    }

    fn root(&self) -> Root {
        self.root
    }
}

/// Returns one embedding for each part of the vector.
pub fn several(site: &Site, c: &Collective, parts: &[TreeSlice]) -> Vec<Embedding> {
    let layout = &*site.layout;
    let count = narrow::<u32>(parts.len());
    let links = links(layout);
    let spread: Vec<u32> = (0..count).map(|tree| tree * layout.locals() / count).collect();
    let inside = pack(layout.locals() as usize, &links.ends, &spread).expect("switches of a node are joined");
    let (root_node, root) = root_of(site, c);
    let fixed = matches!(c.kind, Kind::Broadcast | Kind::Reduce);
    let mut lines = vec![Vec::new(); parts.len()];
    for (dim, &size) in layout.dims().iter().enumerate() {
        let at = layout.coordinate(root_node, dim);
        let roots: Vec<u32> = (0..count).map(|tree| if fixed { at } else { (at + tree) % size }).collect();
        let edges: Vec<(u32, u32)> = (0..size).flat_map(|a| (a + 1..size).map(move |b| (a, b))).collect();
        let packed = pack(size as usize, &edges, &roots).expect("nodes of a dimension are joined");
        for (tree, (line, &root)) in packed.trees.iter().zip(&roots).enumerate() {
            lines[tree].push(towards(size, root, line.iter().map(|&edge| edges[edge])));
        }
    }
    let trees = parts.iter().zip(inside.trees).zip(lines);
    trees
        .map(|((&part, tree), lines)| {
            let mut own = vec![0_u64; layout.locals() as usize];
            for edge in tree {
                let ((a, b), (pa, pb)) = (links.ends[edge], links.ports[edge]);
                own[a as usize] |= 1 << pa;
                own[b as usize] |= 1 << pb;
            }
            let known = vec![None; layout.locals() as usize];
            grow(site, c, part, &mut Tree { site, root, lines, own, known })
        })
        .collect()
}

/// Returns the next vertex of each vertex on the path to the root of a tree; `None` for the root.
fn towards(vertices: u32, root: u32, edges: impl Iterator<Item = (u32, u32)>) -> Vec<Option<u32>> {
    let mut beside = vec![Vec::new(); vertices as usize];
    for (a, b) in edges {
        beside[a as usize].push(b);
        beside[b as usize].push(a);
    }
    let mut next = vec![None; vertices as usize];
    let mut waiting = vec![root];
    while let Some(v) = waiting.pop() {
        for &there in &beside[v as usize] {
            if there != root && next[there as usize].is_none() {
                next[there as usize] = Some(v);
                waiting.push(there);
            }
        }
    }
    next
}
