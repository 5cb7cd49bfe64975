//! Trees of ranks, and the reduce and the broadcast along them. Except in the tree by levels, each subtree is an
//! interval of virtual ranks.
//!
//! In the k-nomial tree, the parent of virtual rank v is v with its lowest nonzero digit in base k set to 0; the
//! binomial tree has base 2. In the binary tree a rank has at most two children, each with half of the rest of the
//! rank's interval. In the chain a rank has one child.
//!
//! Source: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH", 2005.

use unisono_base::{NodeId, Span, narrow};
use unisono_collective::Collective;
use unisono_schedule::{Builder, Operand};

/// The base of the binomial tree.
pub const BINARY: u32 = 2;

/// Returns the place value of the lowest nonzero digit of `v` > 0 in base `radix`.
fn unit(v: u32, radix: u32) -> u32 {
    let mut unit = 1;
    while u64::from(v).is_multiple_of(u64::from(unit) * u64::from(radix)) {
        unit *= radix;
    }
    unit
}

/// Returns the parent of virtual rank `v` > 0 in the k-nomial tree.
pub fn parent(v: u32, radix: u32) -> u32 {
    let unit = unit(v, radix);
    v - v / unit % radix * unit
}

/// Returns the number of ranks in the subtree of `v` in the k-nomial tree of `ranks` ranks.
pub fn size(v: u32, ranks: u32, radix: u32) -> u32 {
    if v == 0 { ranks } else { unit(v, radix).min(ranks - v) }
}

/// Returns the children of `v` in the k-nomial tree, smallest subtrees first.
pub fn children(v: u32, ranks: u32, radix: u32) -> impl DoubleEndedIterator<Item = u32> + Clone {
    let size = u64::from(size(v, ranks, radix));
    let units = std::iter::successors(Some(1), |unit| Some(unit * u64::from(radix))).take_while(|&unit| unit < size);
    let below = units.flat_map(|unit| (1..u64::from(radix)).map(move |digit| digit * unit)).filter(|&at| at < size);
    below.map(|at| v + narrow::<u32>(at)).collect::<Vec<_>>().into_iter()
}

/// Returns the rank at the top of a reduction: the root, or rank 0 if the operator does not commute. In the latter
/// case, rank 0 then sends the result to the root (as in MPICH).
pub fn top(c: &Collective) -> u32 {
    if c.operator.commutative() { c.root } else { 0 }
}

/// A tree of ranks; virtual ranks count from its top.
pub struct Tree {
    pub ranks: u32,
    pub top: u32,
    parents: Vec<u32>,
    sizes: Vec<u32>,
    /// The children of all virtual ranks, smaller subtrees first. The children of `v` are `children[first[v]..first[v +
    /// 1]]`.
    children: Vec<u32>,
    first: Vec<u32>,
}

impl Tree {
    pub fn binomial(ranks: u32, top: u32, radix: u32) -> Self {
        Self::of_children(ranks, top, |v, _| children(v, ranks, radix).collect())
    }

    pub fn chain(ranks: u32, top: u32) -> Self {
        Self::of_children(ranks, top, |v, size| (v + 1..v + size).take(1).collect())
    }

    pub fn binary(ranks: u32, top: u32) -> Self {
        let halves = |v: u32, size: u32| match size - 1 {
            0 => vec![],
            1 => vec![v + 1],
            rest => vec![v + 1, v + 1 + rest / 2],
        };
        Self::of_children(ranks, top, halves)
    }

    /// Makes the binary tree by levels: level l consists of the 2^l virtual ranks from 2^l - 1 on. Its subtrees are not
    /// intervals.
    pub fn levels(ranks: u32, top: u32) -> Self {
        let mut tree = Self {
            ranks,
            top,
            parents: vec![0; ranks as usize],
            sizes: vec![1; ranks as usize],
            children: Vec::with_capacity(ranks as usize),
            first: vec![0],
        };
        for v in 0..ranks {
            let width = 1_u64 << (v + 1).ilog2();
            for child in [2 * width, width].map(|step| u64::from(v) + step).into_iter().filter(|&at| at < ranks.into())
            {
                let child = narrow::<u32>(child);
                tree.parents[child as usize] = v;
                tree.children.push(child);
            }
            tree.first.push(narrow(tree.children.len()));
        }
        for v in (1..ranks as usize).rev() {
            tree.sizes[tree.parents[v] as usize] += tree.sizes[v];
        }
        tree
    }

    /// Makes a tree: `children(v, size)` returns, in ascending order, the children of virtual rank `v`, whose subtree
    /// has `size` ranks.
    fn of_children(ranks: u32, top: u32, children: impl Fn(u32, u32) -> Vec<u32>) -> Self {
        let mut tree = Self {
            ranks,
            top,
            parents: vec![0; ranks as usize],
            sizes: vec![ranks; ranks as usize],
            children: Vec::with_capacity(ranks as usize),
            first: vec![0],
        };
        for v in 0..ranks {
            let end = v + tree.sizes[v as usize];
            let below = children(v, tree.sizes[v as usize]);
            for (n, &child) in below.iter().enumerate() {
                tree.parents[child as usize] = v;
                tree.sizes[child as usize] = below.get(n + 1).unwrap_or(&end) - child;
            }
            tree.children.extend(below);
            tree.first.push(narrow(tree.children.len()));
        }
        tree
    }

    pub fn children(&self, v: u32) -> &[u32] {
        &self.children[self.first[v as usize] as usize..self.first[v as usize + 1] as usize]
    }

    /// Returns the number of ranks in the subtree of `v`.
    pub fn size(&self, v: u32) -> u32 {
        self.sizes[v as usize]
    }

    /// Returns `[messages, before]` for the slowest path of a broadcast. `messages` is the number of messages on the
    /// path, each of which takes `message_ns`. `before` is the number of messages that ranks of the path send first, to
    /// other children, each of which takes `before_ns`.
    pub fn longest_path(&self, message_ns: f64, before_ns: f64) -> [u32; 2] {
        let mut path = vec![[0, 0]; self.ranks as usize];
        for v in 0..self.ranks {
            let [messages, before] = path[v as usize];
            for (earlier, &child) in (0..).zip(self.children(v).iter().rev()) {
                path[child as usize] = [messages + 1, before + earlier];
            }
        }
        let ns = |[messages, before]: &[u32; 2]| f64::from(*messages) * message_ns + f64::from(*before) * before_ns;
        path.into_iter().max_by(|a, b| ns(a).total_cmp(&ns(b))).unwrap_or_default()
    }

    pub fn real(&self, v: u32) -> NodeId {
        NodeId(narrow::<u32>((u64::from(v) + u64::from(self.top)) % u64::from(self.ranks)))
    }

    /// Returns the ranks in ascending order, with their virtual ranks.
    pub fn all(&self) -> impl Iterator<Item = (NodeId, u32)> + use<> {
        let (ranks, top) = (self.ranks, self.top);
        (0..ranks).map(move |r| (NodeId(r), if r >= top { r - top } else { r + ranks - top }))
    }

    /// Creates the stream between each virtual rank and its parent: to the parent if `upward`, otherwise to the virtual
    /// rank. The entry of the top is not used.
    pub fn edges(&self, b: &mut Builder, upward: bool) -> Vec<Operand> {
        let edge = |v: u32| {
            let (below, above) = (self.real(v), self.real(self.parents[v as usize]));
            let (from, to) = if upward { (below, above) } else { (above, below) };
            Operand::Stream(b.stream(from, &[to]))
        };
        // An entry for the top makes the index equal to the virtual rank.
        std::iter::once(Operand::In(0)).chain((1..self.ranks).map(edge)).collect()
    }

    /// Returns the ranks of the subtree of `v` as intervals `(first, count)`: two if the subtree wraps past the last
    /// rank, otherwise one. The virtual ranks of the subtree must be an interval.
    pub fn intervals(&self, v: u32) -> Vec<(u32, u32)> {
        let (start, count) = (self.real(v).0, self.size(v));
        let first = count.min(self.ranks - start);
        [(start, first), (0, count - first)].into_iter().filter(|i| i.1 > 0).collect()
    }
}

/// Emits a reduce of segments up a tree. `sum` returns the operand in which the root stores its sums. If the top is not
/// the root, it sends the sums to the root.
pub fn reduce(
    b: &mut Builder,
    c: &Collective,
    tree: &Tree,
    segments: impl Iterator<Item = Span> + Clone,
    sum: fn(u32) -> Operand,
) {
    let up = tree.edges(b, true);
    let home = (tree.top != c.root).then(|| Operand::Stream(b.stream(NodeId(tree.top), &[NodeId(c.root)])));
    let longest = segments.clone().map(|s| s.len).max().unwrap_or(0);
    for (node, v) in tree.all() {
        let below = tree.children(v);
        let inner = below.len() > 1 && node.0 != c.root;
        let scratch = if inner { b.scratch(node, longest) } else { 0 };
        for s in segments.clone() {
            let partial = if inner { Operand::Tmp(scratch) } else { sum(s.start) };
            let end = match home {
                _ if v > 0 => up[v as usize],
                Some(home) => home,
                None => sum(s.start),
            };
            let mut have = Operand::In(s.start);
            if below.is_empty() {
                b.combine(node, 0, s.len, &[have], &[end]);
            }
            for (n, &child) in below.iter().enumerate() {
                let sink = if n + 1 == below.len() { end } else { partial };
                b.combine(node, 0, s.len, &[have, up[child as usize]], &[sink]);
                have = partial;
            }
        }
        if let Some(home) = home.filter(|_| node.0 == c.root) {
            for s in segments.clone() {
                b.combine(node, 0, s.len, &[home], &[sum(s.start)]);
            }
        }
    }
}

/// Emits a broadcast of segments down a tree.
pub fn broadcast(b: &mut Builder, tree: &Tree, segments: impl Iterator<Item = Span> + Clone) {
    let down = tree.edges(b, false);
    for (node, v) in tree.all() {
        // The largest subtree is sent to first, because it has the longest path.
        let below: Vec<Operand> = tree.children(v).iter().rev().map(|&child| down[child as usize]).collect();
        for s in segments.clone() {
            let own = (v > 0).then_some(Operand::Out(s.start));
            let source = if v > 0 { down[v as usize] } else { Operand::In(s.start) };
            b.combine(node, 0, s.len, &[source], &own.into_iter().chain(below.iter().copied()).collect::<Vec<_>>());
        }
    }
}
