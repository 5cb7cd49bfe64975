//! Trees that join all ranks through switches that reduce and copy.
//!
//! A reduction runs from the leaves of a tree to its root, and a broadcast in the other direction; an allreduce does
//! both. A vector is cut into equal parts, one for each tree. As a fluid, it takes the maximum over links of (trees on
//! the link) / (all trees) / (rate of the link). The best trees are hard to find (Steiner tree packing: Jain, Mahdian,
//! Salavatipour, 2003), so trees are grown one after another: the tree starts at a root, and the nearest rank joins
//! next (Takahashi and Matsuyama, 1980), at prices of links that rise with the number of trees on them. Then each tree
//! is grown again at the prices that the other trees cause, and the best set of trees is kept.

use std::{cmp::Reverse, collections::BinaryHeap};

use unisono_base::{interrupt::poll, narrow};

use crate::Graph;

/// The use that a tree may make of a node of the graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// The node must be in every tree, and may have any number of links in it.
    Rank,
    /// A switch that reduces or copies, as the collective requires: any number of links in a tree.
    Joins,
    /// The node only forwards: two links in a tree.
    Forwards,
    /// The node may be in no tree.
    Closed,
}

/// A tree of nodes of a graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SpanningTree {
    /// The nodes of the tree: the root first, each other node after its parent.
    pub nodes: Vec<u32>,
    /// The index in `nodes` of each node's parent; 0 for the root.
    pub parents: Vec<u32>,
    /// The maximum number of links between the root and a node.
    pub depth: u32,
}

impl SpanningTree {
    /// Returns the children of each node, as indices in `nodes`.
    pub fn children(&self) -> Vec<Vec<u32>> {
        let mut children = vec![Vec::new(); self.nodes.len()];
        for (at, &parent) in (0..).zip(&self.parents).skip(1) {
            children[parent as usize].push(at);
        }
        children
    }
}

/// Trees that carry equal parts of a vector.
#[derive(Clone, PartialEq, Debug)]
pub struct SpanningTrees {
    pub trees: Vec<SpanningTree>,
    /// The time that a vector of one unit takes on the busiest link.
    pub time: f64,
}

/// The number of rounds in which every tree is grown again at the prices that the other trees cause.
const ROUNDS: u32 = 2;
/// The exponent k in a link's price, ((trees on the link + 1) x (highest rate) / (rate of the link))^k.
const STEEPNESS: i32 = 6;
/// The steepnesses tried in order: if paths through forwarding nodes block every path to a rank, prices are made
/// flatter.
const FLATTER: [i32; 3] = [STEEPNESS, 2, 0];
/// The price of one level of a tree, relative to that of an unused link of the highest rate. Among equally priced
/// paths, the tree takes the one with fewer levels.
const LEVEL: f64 = 1.0 / 64.0;

/// Grows `count` trees from the given root, or each with its middle as the root. `None` if a rank cannot be reached.
pub fn spanning(graph: &Graph, roles: &[Role], root: Option<u32>, count: u32) -> Option<SpanningTrees> {
    let mut packing = Packing::new(graph, roles);
    for _ in 0..count {
        let start = root.or_else(|| packing.start())?;
        let tree = packing.grown(start)?;
        packing.add(tree);
    }
    let mut best = (packing.busiest(), packing.trees.clone());
    for _ in 0..if count > 1 { ROUNDS } else { 0 } {
        for at in 0..packing.trees.len() {
            packing.remove(at);
            let start = root.or_else(|| packing.start())?;
            packing.put(at, packing.grown(start)?);
        }
        if packing.busiest() < best.0 {
            best = (packing.busiest(), packing.trees.clone());
        }
    }
    let (busiest, trees) = best;
    let rooted = |tree: Edges| if root.is_some() { tree.rooted(tree.start) } else { tree.rooted(tree.middle(roles)) };
    Some(SpanningTrees { trees: trees.into_iter().map(rooted).collect(), time: busiest / f64::from(count.max(1)) })
}

/// A tree as links between nodes.
#[derive(Clone)]
struct Edges {
    start: u32,
    /// The nodes except the start, in the order in which they were added, each with the arc that leads to it.
    joined: Vec<(u32, u32)>,
    /// The two nodes of each link.
    ends: Vec<[u32; 2]>,
}

struct Packing<'a> {
    graph: &'a Graph,
    roles: &'a [Role],
    /// The opposite arc of each arc.
    back: Vec<u32>,
    /// True for nodes connected with rank 0 through nodes that are not [`Role::Closed`].
    reached: Vec<bool>,
    most_rate: f64,
    /// The number of trees on each arc; a tree counts in both directions of a link.
    load: Vec<u32>,
    trees: Vec<Edges>,
}

const NONE: u32 = u32::MAX;

/// Returns for each node whether rank 0 reaches it through nodes that are not [`Role::Closed`].
fn reached(graph: &Graph, roles: &[Role]) -> Vec<bool> {
    let mut reached = vec![false; graph.nodes() as usize];
    let mut open: Vec<u32> = (0..graph.ranks().min(1)).collect();
    while let Some(at) = open.pop() {
        poll();
        if roles[at as usize] != Role::Closed && !std::mem::replace(&mut reached[at as usize], true) {
            open.extend(graph.leaving(at).iter().map(|&arc| graph.arcs()[arc as usize].to));
        }
    }
    reached
}

impl<'a> Packing<'a> {
    fn new(graph: &'a Graph, roles: &'a [Role]) -> Self {
        let arcs = graph.arcs();
        let known: rustc_hash::FxHashMap<(u32, u32), u32> =
            (0..).zip(arcs).map(|(at, arc)| ((arc.from, arc.to), at)).collect();
        let back = arcs.iter().map(|arc| known.get(&(arc.to, arc.from)).copied().unwrap_or(NONE)).collect();
        let most_rate = arcs.iter().map(|arc| arc.rate).max().unwrap_or(1) as f64;
        Self {
            graph,
            roles,
            back,
            reached: reached(graph, roles),
            most_rate,
            load: vec![0; arcs.len()],
            trees: Vec::new(),
        }
    }

    /// Returns the largest busy time: an arc's number of trees, divided by its rate.
    fn busiest(&self) -> f64 {
        let each = self.graph.arcs().iter().zip(&self.load);
        each.map(|(arc, &load)| f64::from(load) / arc.rate as f64).fold(0.0, f64::max)
    }

    fn count(&mut self, tree: &Edges, change: impl Fn(&mut u32)) {
        for &(_, arc) in &tree.joined {
            change(&mut self.load[arc as usize]);
            if self.back[arc as usize] != NONE {
                change(&mut self.load[self.back[arc as usize] as usize]);
            }
        }
    }

    fn add(&mut self, tree: Edges) {
        self.count(&tree, |load| *load += 1);
        self.trees.push(tree);
    }

    fn remove(&mut self, at: usize) {
        let tree = self.trees[at].clone();
        self.count(&tree, |load| *load -= 1);
    }

    fn put(&mut self, at: usize, tree: Edges) {
        self.count(&tree, |load| *load += 1);
        self.trees[at] = tree;
    }

    fn price(&self, arc: u32, steepness: i32) -> f64 {
        let rate = self.graph.arcs()[arc as usize].rate as f64;
        (f64::from(self.load[arc as usize] + 1) * self.most_rate / rate).powi(steepness)
    }

    /// Returns the start of the next tree: among the connected switches with [`Role::Joins`], the switch whose links
    /// are cheapest on average; rank 0 if no such switch exists.
    fn start(&self) -> Option<u32> {
        let joins = (self.graph.ranks()..self.graph.nodes())
            .filter(|&node| self.roles[node as usize] == Role::Joins && self.reached[node as usize]);
        // The mean price of the links. Among equal prices, the node with more links is preferred.
        let price = |node: u32| {
            let links = self.graph.leaving(node);
            let sum: f64 = links.iter().map(|&arc| self.price(arc, STEEPNESS)).sum();
            (sum / links.len().max(1) as f64, Reverse(links.len()))
        };
        let cheaper = |a: &u32, b: &u32| {
            let (a, b) = (price(*a), price(*b));
            a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
        };
        joins.min_by(cheaper).or_else(|| (self.graph.ranks() > 0).then_some(0))
    }

    /// Returns a new tree at the present prices; `None` if a rank cannot be reached.
    fn grown(&self, start: u32) -> Option<Edges> {
        FLATTER.iter().find_map(|&steepness| self.grown_at(start, steepness))
    }

    fn grown_at(&self, start: u32, steepness: i32) -> Option<Edges> {
        let nodes = self.graph.nodes() as usize;
        let mut growth = Growth {
            depth: vec![NONE; nodes],
            price: vec![f64::INFINITY; nodes],
            by: vec![NONE; nodes],
            open: BinaryHeap::new(),
        };
        let prices: Vec<f64> = (0..narrow(self.load.len())).map(|arc| self.price(arc, steepness)).collect();
        growth.depth[start as usize] = 0;
        growth.begin(start);
        let mut tree = Edges { start, joined: Vec::new(), ends: Vec::new() };
        let mut missing = (0..self.graph.ranks()).filter(|&rank| rank != start).count();
        while missing > 0 {
            poll();
            let Reverse((bits, at)) = growth.open.pop()?;
            // Prices are not negative, so comparing the bits of two prices compares the prices.
            if f64::from_bits(bits) > growth.price[at as usize] {
                continue;
            }
            let is_new = growth.depth[at as usize] == NONE;
            if self.roles[at as usize] == Role::Rank && is_new {
                missing -= 1;
                if self.join(at, &mut growth, &mut tree) {
                    growth.again(|node| self.roles[node] != Role::Forwards);
                }
                continue;
            }
            if self.roles[at as usize] == Role::Forwards && !is_new {
                continue;
            }
            for &arc in self.graph.leaving(at) {
                let to = self.graph.arcs()[arc as usize].to as usize;
                let price = growth.price[at as usize] + prices[arc as usize];
                let is_open = self.roles[to] != Role::Closed && growth.depth[to] == NONE;
                if is_open && price < growth.price[to] {
                    (growth.price[to], growth.by[to]) = (price, arc);
                    growth.open.push(Reverse((price.to_bits(), narrow(to))));
                }
            }
        }
        tree.drop_bare_start(self.roles);
        Some(tree)
    }

    /// Adds the path to a rank to the tree. Returns whether the path contains a forwarding node, which then is closed
    /// to other paths.
    fn join(&self, rank: u32, growth: &mut Growth, tree: &mut Edges) -> bool {
        let mut way = Vec::new();
        let mut at = rank;
        while growth.depth[at as usize] == NONE {
            let arc = growth.by[at as usize];
            way.push((at, arc));
            at = self.graph.arcs()[arc as usize].from;
        }
        let mut forwards = false;
        for &(node, arc) in way.iter().rev() {
            let from = self.graph.arcs()[arc as usize].from;
            growth.depth[node as usize] = growth.depth[from as usize] + 1;
            tree.joined.push((node, arc));
            tree.ends.push([from, node]);
            growth.begin(node);
            forwards |= self.roles[node as usize] == Role::Forwards;
        }
        forwards
    }
}

/// The search for the rank that is cheapest to add to a tree.
struct Growth {
    /// The level of each node of the tree; [`NONE`] outside the tree.
    depth: Vec<u32>,
    /// The price of the cheapest path found from the tree to each node.
    price: Vec<f64>,
    /// The last arc on the cheapest path from the tree to each node.
    by: Vec<u32>,
    open: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Growth {
    /// Makes a node of the tree a start of paths.
    fn begin(&mut self, node: u32) {
        let price = f64::from(self.depth[node as usize]) * LEVEL;
        self.price[node as usize] = price;
        self.open.push(Reverse((price.to_bits(), node)));
    }

    /// Discards all paths, and starts again at those nodes of the tree to which a link may be added.
    fn again(&mut self, joins: impl Fn(usize) -> bool) {
        self.open.clear();
        for node in 0..self.depth.len() {
            if self.depth[node] == NONE {
                self.price[node] = f64::INFINITY;
            } else if joins(node) {
                self.begin(narrow(node));
            }
        }
    }
}

impl Edges {
    /// Removes the start node repeatedly, as long as it is a switch with one link.
    fn drop_bare_start(&mut self, roles: &[Role]) {
        while roles[self.start as usize] != Role::Rank {
            let mut links = (0..self.ends.len()).filter(|&at| self.ends[at].contains(&self.start));
            let (Some(only), None) = (links.next(), links.next()) else { return };
            let [a, b] = self.ends.remove(only);
            self.joined.remove(only);
            self.start = if a == self.start { b } else { a };
        }
    }

    /// Returns the tree with the given node as its root.
    fn rooted(&self, root: u32) -> SpanningTree {
        let neighbors = self.neighbors();
        let (mut nodes, mut parents, mut depths) = (vec![root], vec![0_u32], vec![0_u32]);
        let mut at = 0;
        while at < nodes.len() {
            let (node, above) = (nodes[at], nodes[parents[at] as usize]);
            for &next in neighbors.get(&node).into_iter().flatten().filter(|&&next| at == 0 || next != above) {
                nodes.push(next);
                parents.push(narrow(at));
                depths.push(depths[at] + 1);
            }
            at += 1;
        }
        SpanningTree { nodes, parents, depth: depths.last().copied().unwrap_or(0) }
    }

    fn neighbors(&self) -> std::collections::BTreeMap<u32, Vec<u32>> {
        let mut neighbors = std::collections::BTreeMap::<u32, Vec<u32>>::new();
        for &[a, b] in &self.ends {
            neighbors.entry(a).or_default().push(b);
            neighbors.entry(b).or_default().push(a);
        }
        neighbors
    }

    /// Returns the rank or joining switch nearest to the middle of the longest path in the tree; of two equally near
    /// nodes, the one that is not a rank.
    fn middle(&self, roles: &[Role]) -> u32 {
        let one_end = self.rooted(self.start).nodes.last().copied().unwrap_or(self.start);
        let longest = self.rooted(one_end);
        let (mut at, mut way) = (longest.nodes.len() - 1, Vec::new());
        loop {
            way.push(longest.nodes[at]);
            if at == 0 {
                break;
            }
            at = longest.parents[at] as usize;
        }
        let from_middle = |place: usize| (2 * place).abs_diff(way.len() - 1);
        let joins = (0..way.len()).filter(|&place| matches!(roles[way[place] as usize], Role::Rank | Role::Joins));
        let nearest = joins.min_by_key(|&place| (from_middle(place), roles[way[place] as usize] == Role::Rank));
        nearest.map_or(self.start, |place| way[place])
    }
}
