//! Four arc-disjoint spanning trees, with one root, of a mesh of 2x2 boards. A switch joins the ranks of each row of
//! ranks, and another switch the ranks of each column.
//!
//! Along each axis, a rank reaches one rank of its board by a link, and the other boards of its row or column by a port
//! of the switch. A rank has four incoming connections, two links and two ports: each belongs to one tree. Of its
//! outgoing connections, each belongs to at most one tree. A tree that enters a board of a line at one end continues to
//! the other end by the link; a second tree enters at the other end and uses the opposite link. A board that is inner
//! to one tree of a line uses both its ports for this tree and is a leaf of the other tree, so both are binary trees of
//! boards ("two-tree", Sanders et al. 2009).
//!
//! The root is at row 0 and column 0. Trees 0 and 1 go along the rows. They reach the rows along column 2 (tree 0) and
//! column 1 (tree 1), which are their spines. Trees 2 and 3 do the same with rows and columns exchanged. A spine
//! replaces one of the two trees of its column. The replaced tree enters the ranks of the spine by ports of the rows
//! instead; these ports are free because the tree of the spine enters its rows at these ranks.
//!
//! The deepest rank is 1 + 2 log2(B) ports and up to as many links away, with B boards along the longer side.

use std::collections::BTreeSet;

use super::torus_trees::TREES;

/// The times of a link and of a port, in arbitrary units. The earliest free port is chosen by these times.
const LINK: u32 = 1;
const PORT: u32 = 2;

/// The least number of ranks of a side. A line needs the board of its first two positions, and two more boards that
/// have spines or are inner boards of each tree.
const LEAST: u32 = 6;

/// `(position, tree)`: the port into this position of a line belongs to this tree of the other axis.
type Free = (u32, usize);

/// The two trees that enter the boards of a line, each with the position at which it begins, and the ports that trees
/// of the other axis use.
struct LineTrees {
    trees: [(usize, u32); 2],
    free: [Option<Free>; 2],
}

/// Returns the trees of line `at`; `along` are the trees of its axis, and `across` the trees of the other axis.
fn line_trees(at: u32, along: [usize; 2], across: [usize; 2]) -> LineTrees {
    let ([p, q], [s, t]) = (along, across);
    match at {
        0 => LineTrees { trees: [(p, 2), (q, 1)], free: [None, None] },
        1 => LineTrees { trees: [(t, 0), (p, 2)], free: [Some((0, q)), Some((2, s))] },
        2 => LineTrees { trees: [(s, 0), (q, 1)], free: [Some((0, p)), Some((1, t))] },
        _ => LineTrees { trees: [(p, 2), (q, 1)], free: [Some((2, s)), Some((1, t))] },
    }
}

/// The free ports of a line: the ranks that a tree must still enter, each with its tree, and the ranks whose outgoing
/// ports are not in use.
struct Open {
    into: Vec<(u32, usize)>,
    out: Vec<u32>,
}

struct Trees {
    parents: [Vec<Option<u32>>; TREES],
}

impl Trees {
    /// Adds the boards of a line to its two trees, and returns the ports that are still free.
    fn line(&mut self, at: u32, boards: u32, of: &LineTrees, rank: impl Fn(u32) -> u32) -> Open {
        let [first, second] = of.trees.map(|(_, begin)| begin / 2);
        let others: Vec<u32> = (0..boards).filter(|&board| board != first && board != second).collect();
        // The second tree gets more inner boards, because the root has already used a port of its board in line 0.
        let (inner, rest): (Vec<_>, Vec<_>) = (0..).zip(others).partition(|(number, _)| number % 2 == 1);
        let inner = [inner, rest].map(|boards| boards.into_iter().map(|(_, board)| board).collect::<Vec<_>>());
        let mut out: BTreeSet<u32> = (0..2 * boards).collect();
        if at == 0 {
            out.remove(&0);
        }
        for (way, (tree, begin)) in of.trees.into_iter().enumerate() {
            let other = of.trees[1 - way].1;
            let end = |board: u32| match board {
                _ if board == begin / 2 => begin % 2,
                // A tree enters the board in which it begins at its own end. In line 0 the first tree enters only
                // position 1 of the other boards.
                _ if board == other / 2 => 1 - other % 2,
                _ => u32::from(way == 1),
            };
            let mut ports = BTreeSet::new();
            let own = begin / 2;
            let shares = own == other / 2;
            ports.insert((PORT, begin));
            if !(shares || at == 0 && own == 0) {
                ports.insert((PORT + LINK, begin ^ 1));
            }
            let leaves = inner[1 - way].iter().copied().chain((!shares).then_some(other / 2));
            let order = inner[way].iter().copied().map(|board| (board, true)).chain(leaves.map(|board| (board, false)));
            self.link(tree, begin, at, &rank);
            for (board, is_inner) in order {
                let Some((time, port)) = ports.pop_first() else { return Open { into: Vec::new(), out: Vec::new() } };
                out.remove(&port);
                let entry = 2 * board + end(board);
                let entry = if at == 0 && entry == 0 { 1 } else { entry };
                self.parents[tree][rank(entry) as usize] = Some(rank(port));
                if !(at == 0 && board == 0) {
                    self.link(tree, entry, at, &rank);
                }
                if is_inner {
                    ports.insert((time + PORT, entry));
                    ports.insert((time + LINK + PORT, entry ^ 1));
                }
            }
        }
        let into = of.free.iter().flatten().map(|&(position, tree)| (rank(position), tree)).collect();
        Open { into, out: out.into_iter().map(rank).collect() }
    }

    /// Adds to a tree the link from position `entry` of line `at` to the other rank of the board in this line, unless
    /// that is the root.
    fn link(&mut self, tree: usize, entry: u32, at: u32, rank: impl Fn(u32) -> u32) {
        if at != 0 || entry != 1 {
            self.parents[tree][rank(entry ^ 1) as usize] = Some(rank(entry));
        }
    }

    /// Returns the number of edges from the root to a rank in a tree; `None` if a parent on the path is not known yet
    /// or the parents form a cycle.
    fn depth(&self, tree: usize, rank: u32) -> Option<usize> {
        let (mut at, mut depth) = (rank, 0);
        while at != 0 {
            at = self.parents[tree][at as usize]?;
            depth += 1;
            // A path with more edges than the tree has ranks contains a cycle.
            if depth > self.parents[tree].len() {
                return None;
            }
        }
        Some(depth)
    }

    /// Adds one rank to its tree, by the free port nearest to the root. Returns true if a port was free.
    fn enter(&mut self, open: &mut Open) -> bool {
        let ways = open.into.iter().enumerate().flat_map(|(which, &(_, tree))| {
            let to = open.out.iter().enumerate().map(move |(port, &from)| (which, port, tree, from));
            to.map(|way| (self.depth(way.2, way.3), way))
        });
        let nearest = ways.filter_map(|(depth, way)| depth.map(|depth| (depth, way))).min();
        let Some((_, (which, port, tree, from))) = nearest else { return false };
        let (rank, _) = open.into.remove(which);
        open.out.remove(port);
        self.parents[tree][rank as usize] = Some(from);
        true
    }
}

/// Returns the parent of each rank in each tree, for root 0 and ranks numbered row-major; the root is its own parent.
/// `None` if a side is odd or below 6.
pub fn board_trees(rows: u32, columns: u32) -> Option<[Vec<u32>; TREES]> {
    if rows.min(columns) < LEAST || rows % 2 == 1 || columns % 2 == 1 {
        return None;
    }
    let mut trees = Trees { parents: std::array::from_fn(|_| vec![None; (rows * columns) as usize]) };
    trees.parents.iter_mut().for_each(|parents| parents[0] = Some(0));
    // The root begins each tree: the first tree of each axis by a port, the second by a link.
    for (tree, rank) in [(0, 2), (1, 1), (2, 2 * columns), (3, columns)] {
        trees.parents[tree][rank as usize] = Some(0);
    }
    let mut open = Vec::new();
    for row in 0..rows {
        open.push(trees.line(row, columns / 2, &line_trees(row, [0, 1], [2, 3]), |position| row * columns + position));
    }
    for column in 0..columns {
        open.push(
            trees.line(column, rows / 2, &line_trees(column, [2, 3], [0, 1]), |position| position * columns + column),
        );
    }
    while open.iter().any(|line| !line.into.is_empty()) {
        let mut any = false;
        open.iter_mut().for_each(|line| any |= trees.enter(line));
        if !any {
            return None;
        }
    }
    let [a, b, c, d] = trees.parents.map(|parents| parents.into_iter().collect::<Option<Vec<u32>>>());
    Some([a?, b?, c?, d?])
}
