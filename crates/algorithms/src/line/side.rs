//! The trees of a reduce on a line, and their cost terms.

use unisono_base::narrow;
use unisono_lower::Terms;

/// A tree over the PEs `0 .. n` on one side of the root, which is PE 0. It is in pre-order: the parent of a PE is
/// nearer to the root, every subtree is an interval, and a PE receives from its nearest child first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Side {
    parents: Vec<u32>,
}

impl Side {
    /// Creates a tree from each PE's parent; PE 0 is its own parent.
    pub fn new(parents: Vec<u32>) -> Self {
        debug_assert!(parents.iter().enumerate().skip(1).all(|(i, &p)| (p as usize) < i), "parents lie nearer");
        Self { parents }
    }

    pub fn len(&self) -> u32 {
        narrow::<u32>(self.parents.len())
    }

    pub fn is_empty(&self) -> bool {
        self.parents.is_empty()
    }

    pub fn parent(&self, pe: u32) -> u32 {
        self.parents[pe as usize]
    }

    pub fn parents(&self) -> &[u32] {
        &self.parents
    }

    /// Returns `(first, table)`: the children of PE p, nearest first, are `table[first[p]..first[p + 1]]`.
    pub fn children(&self) -> (Vec<u32>, Vec<u32>) {
        let n = self.parents.len();
        let mut first = vec![0u32; n + 1];
        for &p in self.parents.iter().skip(1) {
            first[p as usize + 1] += 1;
        }
        for i in 0..n {
            first[i + 1] += first[i];
        }
        let mut next = first.clone();
        let mut table = vec![0; n.saturating_sub(1)];
        for (child, &p) in self.parents.iter().enumerate().skip(1) {
            table[next[p as usize] as usize] = narrow::<u32>(child);
            next[p as usize] += 1;
        }
        (first, table)
    }

    /// Returns, for each child of the root, nearest first: the cycle in which the child has sent its last wavelet, and
    /// the hops from the child to the root. See [`Sides::in_turn`].
    fn ends(&self, wavelets: f64, depth_cycles: f64) -> Vec<(f64, f64)> {
        let (first, table) = self.children();
        let mut ends = vec![wavelets; self.parents.len()];
        let of = |pe: usize, ends: &[f64]| -> Vec<(f64, f64)> {
            let own = &table[first[pe] as usize..first[pe + 1] as usize];
            own.iter().map(|&c| (ends[c as usize], f64::from(c) - pe as f64)).collect()
        };
        // Children come after their parents.
        for pe in (1..self.parents.len()).rev() {
            let children = of(pe, &ends);
            if !children.is_empty() {
                ends[pe] = taken_in_turn(children, wavelets, depth_cycles);
            }
        }
        of(0, &ends)
    }

    fn scalar(&self) -> Scalar {
        let n = self.parents.len();
        let mut s = Scalar::default();
        let (mut children, mut depth, mut load) = (vec![0u32; n], vec![0u32; n], vec![0i64; n + 1]);
        for (i, &p) in self.parents.iter().enumerate().skip(1) {
            s.energy += (i - p as usize) as u64;
            children[p as usize] += 1;
            depth[i] = depth[p as usize] + 1;
            s.depth = s.depth.max(depth[i]);
            // The message crosses the links between PEs p and p + 1, ..., i - 1 and i.
            load[p as usize] += 1;
            load[i] -= 1;
        }
        let mut at = 0;
        for l in load {
            at += l;
            s.link_load = s.link_load.max(narrow::<u32>(at));
        }
        s.root_children = children.first().copied().unwrap_or(0);
        s.children = children.iter().skip(1).copied().max().unwrap_or(0);
        s
    }
}

/// Returns the cycle in which a PE has processed the last wavelet of its last child. Children are `(end, hops)`: a
/// child's last wavelet is sent at `end` and processed at least `hops + depth_cycles` cycles later. Vectors pass the
/// ramp in sequence.
fn taken_in_turn(children: impl IntoIterator<Item = (f64, f64)>, wavelets: f64, depth_cycles: f64) -> f64 {
    let take = |done: f64, (end, hops): (f64, f64)| (done + wavelets).max(end + hops + depth_cycles);
    children.into_iter().fold(0.0, take)
}

/// The terms of one side for a vector of one wavelet.
#[derive(Default)]
struct Scalar {
    energy: u64,
    depth: u32,
    link_load: u32,
    root_children: u32,
    /// The most children of a PE other than the root.
    children: u32,
}

/// The trees on both sides of a root on a line: `left` extends to the line's first PE, `right` to its last.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sides {
    pub left: Side,
    pub right: Side,
}

impl Sides {
    pub fn count(&self) -> u32 {
        self.left.len() + self.right.len() - 1
    }

    /// Returns the cycles of a reduce in which every PE receives from its children in sequence, and the root from the
    /// left side first; `None` for one PE or no wavelets. `docs/wafer-model.md` has the recursion for one tree. Each
    /// side proceeds while the root receives from the other side.
    pub fn in_turn(&self, wavelets: u64, depth_cycles: f64) -> Option<f64> {
        let wavelets = wavelets as f64;
        let children = [&self.left, &self.right].map(|side| side.ends(wavelets, depth_cycles));
        (self.count() > 1 && wavelets > 0.0)
            .then(|| taken_in_turn(children.into_iter().flatten(), wavelets, depth_cycles))
    }

    /// Returns the cost terms for a vector of `wavelets` wavelets. A PE that only sends also does one operation per
    /// wavelet; a single PE only copies its vector, which no term counts.
    pub fn terms(&self, wavelets: u64) -> Terms {
        let pes = self.count();
        if pes == 1 || wavelets == 0 {
            return Terms::default();
        }
        let (l, r) = (self.left.scalar(), self.right.scalar());
        let b = wavelets as f64;
        let most = (l.root_children + r.root_children).max(l.children).max(r.children).max(1);
        Terms {
            energy: b * (l.energy + r.energy) as f64,
            distance: f64::from(self.left.len().max(self.right.len()) - 1),
            depth: f64::from(l.depth.max(r.depth)),
            contention: b * f64::from(most),
            links: f64::from(pes - 1),
            max_link_load: b * f64::from(l.link_load.max(r.link_load)),
            datapath: b * f64::from(most),
        }
    }
}
