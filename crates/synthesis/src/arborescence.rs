//! Cheapest arborescences: trees of arcs that lead from a root to every node.

use unisono_base::interrupt::poll;

/// Prices of arcs for all ordered pairs of nodes; infinite if there is no arc.
#[derive(Clone, Debug)]
pub struct ArcWeights {
    nodes: usize,
    /// The price of the arc from node `from` to node `to`, at index `to * nodes + from`.
    of: Vec<f64>,
}

impl ArcWeights {
    /// Creates a table without arcs.
    pub fn new(nodes: usize) -> Self {
        Self { nodes, of: vec![f64::INFINITY; nodes * nodes] }
    }

    pub fn nodes(&self) -> usize {
        self.nodes
    }

    pub fn get(&self, from: usize, to: usize) -> f64 {
        self.of[to * self.nodes + from]
    }

    /// Returns the prices of the arcs into a node, indexed by start node.
    fn into(&self, to: usize) -> &[f64] {
        &self.of[to * self.nodes..(to + 1) * self.nodes]
    }

    pub fn set(&mut self, from: usize, to: usize, price: f64) {
        self.of[to * self.nodes + from] = price;
    }
}

/// The parent of nodes without one, such as the root.
pub const NONE: usize = usize::MAX;

/// Returns the parent of each node in a cheapest arborescence (Edmonds, 1967); `None` if a node cannot be reached.
pub fn cheapest(prices: &ArcWeights, root: usize) -> Option<Vec<usize>> {
    poll();
    let n = prices.nodes;
    let mut parent = vec![NONE; n];
    for to in (0..n).filter(|&to| to != root) {
        let mut best = f64::INFINITY;
        for (from, &price) in prices.into(to).iter().enumerate() {
            if price < best && from != to {
                (best, parent[to]) = (price, from);
            }
        }
        if parent[to] == NONE {
            return None;
        }
    }
    let Circles { of, count } = circles(&parent, root);
    if count == 0 {
        return Some(parent);
    }
    // Every cycle is contracted to one node. The price of an arc into a cycle is reduced by the price of the arc that
    // it would replace.
    let mut number = of.clone();
    let mut nodes = count;
    for at in number.iter_mut().filter(|at| **at == NONE) {
        *at = nodes;
        nodes += 1;
    }
    let mut smaller = ArcWeights::new(nodes);
    let mut arc = vec![(NONE, NONE); nodes * nodes];
    for to in (0..n).filter(|&to| to != root) {
        let replaced = if of[to] == NONE { 0.0 } else { prices.get(parent[to], to) };
        let place = number[to] * nodes;
        for (from, price) in prices.into(to).iter().enumerate() {
            let at = place + number[from];
            if price - replaced < smaller.of[at] && number[from] != number[to] {
                smaller.of[at] = price - replaced;
                arc[at] = (from, to);
            }
        }
    }
    let chosen = cheapest(&smaller, number[root])?;
    for (to, from) in chosen.into_iter().enumerate().filter(|&(to, _)| to != number[root]) {
        let (from, to) = arc[to * nodes + from];
        parent[to] = from;
    }
    Some(parent)
}

struct Circles {
    /// For each node, the index of its cycle; [`NONE`] if it is on no cycle.
    of: Vec<usize>,
    count: usize,
}

fn circles(parent: &[usize], root: usize) -> Circles {
    let (mut of, mut seen, mut count) = (vec![NONE; parent.len()], vec![NONE; parent.len()], 0);
    for start in 0..parent.len() {
        let mut at = start;
        while at != root && seen[at] == NONE {
            seen[at] = start;
            at = parent[at];
        }
        if at != root && seen[at] == start && of[at] == NONE {
            let first = at;
            loop {
                of[at] = count;
                at = parent[at];
                if at == first {
                    break;
                }
            }
            count += 1;
        }
    }
    Circles { of, count }
}

/// Returns the number of arcs from the root to each node.
pub fn depths(parent: &[usize], root: usize) -> Vec<u32> {
    let mut depth = vec![u32::MAX; parent.len()];
    depth[root] = 0;
    let mut path = Vec::new();
    for start in 0..parent.len() {
        let mut at = start;
        while depth[at] == u32::MAX {
            path.push(at);
            at = parent[at];
        }
        while let Some(below) = path.pop() {
            depth[below] = depth[at] + 1;
            at = below;
        }
    }
    depth
}

/// Returns the parents of a cheap arborescence of depth at most `most`; `None` if a node is farther away. The cheapest
/// arborescence of limited depth is NP-hard (the problem includes Steiner trees), so a tree is grown as by Prim's
/// algorithm and improved arc by arc.
pub fn shallow(prices: &ArcWeights, root: usize, most: u32) -> Option<Vec<usize>> {
    let mut parent = grown(prices, root, most).or_else(|| nearest(prices, root, most))?;
    improve(prices, root, most, &mut parent);
    Some(parent)
}

/// Returns the cheapest arborescence of any depth, after the branches deeper than `most` were moved up one by one at
/// the least cost, and the result was improved. This takes longer than [`shallow`]. The tree is often cheaper if few
/// ranks have links of different rates. `None` if a node cannot be reached or a branch cannot be moved.
pub fn shortened(prices: &ArcWeights, root: usize, most: u32) -> Option<Vec<usize>> {
    let n = prices.nodes;
    let mut parent = cheapest(prices, root)?;
    let mut shape = Shape::new(&parent, root);
    loop {
        poll();
        let deep = (0..n).filter(|&to| shape.depth[to] + shape.height[to] > most);
        let mut deep = deep.filter(|&to| to != root).peekable();
        if deep.peek().is_none() {
            break;
        }
        let mut best = (f64::INFINITY, NONE);
        // A node nearer to the root than `to` is not a descendant of `to`.
        let nearer = |shape: &Shape, to: usize| cheapest_above(prices.into(to), &shape.depth, shape.depth[to] - 1);
        for to in deep.filter(|&to| shape.depth[to] > 1) {
            let more = nearer(&shape, to) - prices.get(parent[to], to);
            if more < best.0 {
                best = (more, to);
            }
        }
        let (_, to) = best;
        if to == NONE {
            return None;
        }
        let price = nearer(&shape, to);
        let at = |from: &usize| prices.get(*from, to) == price && shape.depth[*from] + 1 < shape.depth[to];
        parent[to] = (0..n).find(at).expect("the node with that price");
        shape = Shape::new(&parent, root);
    }
    improve(prices, root, most, &mut parent);
    Some(parent)
}

/// Returns the least price of an arc from a node of depth below `limit`; infinite if there is none.
fn cheapest_above(prices: &[f64], depths: &[u32], limit: u32) -> f64 {
    // Several independent minima, so that the compiler uses vector instructions.
    const LANES: usize = 8;
    let mut least = [f64::INFINITY; LANES];
    let less = |least: &mut f64, price: f64, depth: u32| {
        let price = if depth < limit { price } else { f64::INFINITY };
        *least = if price < *least { price } else { *least };
    };
    let (prices, last_prices) = prices.as_chunks::<LANES>();
    let (depths, last_depths) = depths.as_chunks::<LANES>();
    for (prices, depths) in prices.iter().zip(depths) {
        for lane in 0..LANES {
            less(&mut least[lane], prices[lane], depths[lane]);
        }
    }
    last_prices.iter().zip(last_depths).for_each(|(&price, &depth)| less(&mut least[0], price, depth));
    least.into_iter().fold(f64::INFINITY, f64::min)
}

/// Adds the cheapest arc to a new node until all nodes are in the tree; `None` if depth `most` allows no further arc.
fn grown(prices: &ArcWeights, root: usize, most: u32) -> Option<Vec<usize>> {
    poll();
    let n = prices.nodes;
    let (mut parent, mut depth) = (vec![NONE; n], vec![u32::MAX; n]);
    depth[root] = 0;
    // The parent of the cheapest arc to each node outside the tree; among equal prices, the parent of smaller depth.
    let mut by = vec![root; n];
    let mut price: Vec<f64> = (0..n).map(|to| prices.get(root, to)).collect();
    let mut outside: Vec<usize> = (0..n).filter(|&to| to != root).collect();
    while !outside.is_empty() {
        let (mut best, mut place) = (f64::INFINITY, NONE);
        for (at, &to) in outside.iter().enumerate() {
            if price[to] < best || (price[to] == best && place != NONE && depth[by[to]] < depth[by[outside[place]]]) {
                (best, place) = (price[to], at);
            }
        }
        if place == NONE {
            return None;
        }
        let to = outside.remove(place);
        (parent[to], depth[to]) = (by[to], depth[by[to]] + 1);
        if depth[to] < most {
            for &next in &outside {
                let new = prices.get(to, next);
                if new < price[next] || (new <= price[next] && depth[to] < depth[by[next]]) {
                    (price[next], by[next]) = (new, to);
                }
            }
        }
    }
    Some(parent)
}

/// Returns a tree in which every path from the root has the fewest arcs. The arc into a node is the cheapest of those
/// from nodes one arc nearer to the root. Returns `None` if a node is more than `most` arcs from the root.
pub fn nearest(prices: &ArcWeights, root: usize, most: u32) -> Option<Vec<usize>> {
    let n = prices.nodes;
    let mut depth = vec![u32::MAX; n];
    depth[root] = 0;
    let mut queue = vec![root];
    let mut k = 0;
    while let Some(&at) = queue.get(k) {
        k += 1;
        for to in 0..n {
            if depth[to] == u32::MAX && prices.get(at, to) < f64::INFINITY {
                depth[to] = depth[at] + 1;
                queue.push(to);
            }
        }
    }
    let mut parent = vec![NONE; n];
    for to in (0..n).filter(|&to| to != root) {
        if depth[to] > most {
            return None;
        }
        let above = (0..n).filter(|&from| depth[from] == depth[to] - 1);
        parent[to] = above.min_by(|&a, &b| prices.get(a, to).total_cmp(&prices.get(b, to)))?;
    }
    Some(parent)
}

/// Replaces the arcs into nodes by cheaper arcs with which the tree has at most depth `most`, until no arc can be
/// replaced.
pub fn improve(prices: &ArcWeights, root: usize, most: u32, parent: &mut [usize]) {
    const LEAST_GAIN: f64 = 1e-11;
    let n = prices.nodes;
    let mut shape = Shape::new(parent, root);
    let (mut unchanged, mut to) = (0, 0);
    while unchanged < n {
        poll();
        unchanged += 1;
        if to != root {
            let mut best = prices.get(parent[to], to) - LEAST_GAIN;
            let mut by = NONE;
            // The greatest depth of a parent for which the descendants of `to` stay within `most`.
            let above = most - 1 - shape.height[to];
            for (from, &price) in prices.into(to).iter().enumerate() {
                if price < best && shape.depth[from] <= above && !is_below(parent, root, to, from) {
                    (best, by) = (price, from);
                }
            }
            if by != NONE {
                parent[to] = by;
                shape = Shape::new(parent, root);
                unchanged = 0;
            }
        }
        to = (to + 1) % n;
    }
}

/// The depths and heights of a tree's nodes.
struct Shape {
    /// The number of arcs from the root.
    depth: Vec<u32>,
    /// The number of arcs to the farthest descendant.
    height: Vec<u32>,
}

impl Shape {
    fn new(parent: &[usize], root: usize) -> Self {
        let depth = depths(parent, root);
        let mut height = vec![0; parent.len()];
        for start in 0..parent.len() {
            let (mut at, mut below) = (start, 0);
            while at != root {
                (at, below) = (parent[at], below + 1);
                if height[at] >= below {
                    break;
                }
                height[at] = below;
            }
        }
        Self { depth, height }
    }
}

fn is_below(parent: &[usize], root: usize, above: usize, node: usize) -> bool {
    let mut at = node;
    loop {
        if at == above {
            return true;
        }
        if at == root {
            return false;
        }
        at = parent[at];
    }
}

pub fn price_of(prices: &ArcWeights, parent: &[usize]) -> f64 {
    let arcs = parent.iter().enumerate().filter(|&(_, &from)| from != NONE);
    arcs.map(|(to, &from)| prices.get(from, to)).sum()
}
