//! HammingMesh: boards whose accelerators form a mesh. A switched line joins all board edges of each row and of each
//! column.
//!
//! Source: "HammingMesh", section 3. An accelerator has four ports for each plane (N, E, S, W). Inside a board a port
//! has a trace to the neighbor; at the edge, a cable to the tree of its row (W, E: copper) or column (N, S: optical). A
//! line is one switch if its ports fit, else a tree of two levels. Leaves of a tree have 32 ports down and 32 up, or
//! fewer up if the tree is tapered. With boards of 1x1, the topology is a 2D HyperX.
//!
//! Every row and column of the grid of all accelerators has a line. If several lines of one row of boards fit one
//! switch, the bill counts one switch, but in the plane each line is a switch of its own.

mod routing;

use serde::Deserialize;

use super::super::{
    Bill, Boards, Cable, Family, NodeName, Plane, PlaneBuilder, Routing, Speed, Topology,
    allocate::{JobSpace, Rule},
    cut::{Cut, Halves, below_leaves},
    topology::{self, SWITCH_PORTS},
    wiring::Wiring,
};
use crate::MachineError;

pub const FAMILY: Family = Family {
    name: "hxmesh",
    summary: "boards with a mesh inside; trees join the edges of all boards of a row, and of a column",
    reference: "HammingMesh, section 3",
    keys: &["board", "boards", "up"],
    jobs: Some("hxmesh"),
    read,
};

/// The number of down-ports of a leaf, and of its up-ports without taper: half of a switch.
const DOWN: u32 = SWITCH_PORTS / 2;
/// The maximum number of boards of a line: every leaf must reach every switch above.
const MOST_BOARDS: u32 = DOWN * SWITCH_PORTS / 2;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    /// Rows and columns of accelerators on a board.
    board: [u32; 2],
    /// Rows and columns of boards.
    boards: [u32; 2],
    /// The numbers of up-ports of a leaf in the tree of a column and of a row; 32 by default.
    #[serde(default = "nonblocking")]
    up: [u32; 2],
}

fn nonblocking() -> [u32; 2] {
    [DOWN; 2]
}

/// One of the two dimensions of the grid: along a column or along a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Dimension {
    board: u32,
    boards: u32,
    up: u32,
}

impl Dimension {
    fn extent(self) -> u32 {
        self.board * self.boards
    }

    /// Returns the number of ports of a line: two edges of every board.
    fn ports(self) -> u32 {
        2 * self.boards
    }

    /// Returns the cables from leaves to the switches above them; none if the line is a single switch.
    fn tree(self) -> Wiring {
        if self.ports() <= SWITCH_PORTS {
            return Wiring { sources: 1, each: 0, targets: 0 };
        }
        let sources = self.ports().div_ceil(DOWN);
        Wiring { sources, each: self.up, targets: (sources * self.up).div_ceil(SWITCH_PORTS) }
    }

    /// Returns the number of cables between the two board edges of a line that are farthest apart.
    fn across(self) -> u32 {
        if self.tree().targets == 0 { 2 } else { 4 }
    }

    fn boards_a_leaf(self) -> u32 {
        if self.tree().targets == 0 { self.boards } else { DOWN / 2 }
    }

    /// Returns the diameter of a line, in links: to the nearest board edge, across the line's switches, and from the
    /// other board's edge. A single board and its line form a ring.
    fn diameter(self) -> u32 {
        if self.boards == 1 { self.board.div_ceil(2) } else { 2 * ((self.board - 1) / 2) + self.across() }
    }

    /// Returns the number of links that a cut of one line into halves crosses: all ports of half of the boards, or all
    /// cables above their leaves. An odd number of boards with several accelerators along the line adds a port and a
    /// trace of the middle board.
    fn cut(self) -> u32 {
        let middle = u32::from(self.boards % 2 == 1 && self.board > 1);
        let inside = self.boards / 2 * 2 + middle;
        let below = if self.tree().targets == 0 { inside } else { below_leaves(inside, self.ports(), DOWN, self.up) };
        below + middle
    }

    /// Returns the number of switches on the bill for all `lines` lines of one row, or one column, of boards.
    fn switches(self, lines: u32) -> u64 {
        let tree = self.tree();
        if tree.targets == 0 {
            let a_switch = SWITCH_PORTS / self.ports();
            return u64::from(lines.div_ceil(a_switch));
        }
        u64::from(lines) * u64::from(tree.sources + tree.targets)
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HxMesh {
    /// The dimensions along a column and along a row, in the order of an accelerator's two coordinates.
    dims: [Dimension; 2],
}

fn read(table: &toml::Table, origin: &str, _: Speed) -> Result<Box<dyn Topology>, MachineError> {
    let keys: Keys = topology::parse(table, origin)?;
    let dims = [0, 1].map(|d| Dimension { board: keys.board[d], boards: keys.boards[d], up: keys.up[d] });
    topology::accelerators(&[keys.board[0], keys.board[1], keys.boards[0], keys.boards[1]], origin)?;
    if let Some(d) = dims.iter().find(|d| d.boards > MOST_BOARDS || d.board > MOST_BOARDS) {
        let found = d.boards.max(d.board);
        let message = format!(
            "{found} in a line; accepted are at most {MOST_BOARDS} boards in a row or column, and accelerators of a board likewise"
        );
        return Err(topology::refused(origin, message));
    }
    if let Some(d) = dims.iter().find(|d| !(1..=DOWN).contains(&d.up)) {
        let message = format!("a leaf has {} ports up; accepted are 1 to {DOWN}", d.up);
        return Err(topology::refused(origin, message));
    }
    Ok(Box::new(HxMesh { dims }))
}

/// The ports of an accelerator, numbered N, E, S, W: `[dimension][towards smaller, towards larger coordinates]`.
const PORTS: [[u32; 2]; 2] = [[0, 2], [3, 1]];

impl HxMesh {
    /// Returns the number of lines along a dimension, which is the extent of the other dimension.
    fn lines(&self, dim: usize) -> u32 {
        self.dims[1 - dim].extent()
    }

    fn line_nodes(&self, dim: usize) -> u32 {
        let tree = self.dims[dim].tree();
        tree.sources + tree.targets
    }

    /// Returns the number of a line's first node. Leaves come before the switches above them, and columns before rows.
    fn line(&self, dim: usize, line: u32) -> u32 {
        let before = if dim == 0 { 0 } else { self.lines(0) * self.line_nodes(0) };
        self.accelerators() + before + line * self.line_nodes(dim)
    }

    fn cable(dim: usize) -> Cable {
        if dim == 0 { Cable::Aoc } else { Cable::Dac }
    }

    fn wire(&self, plane: &mut PlaneBuilder, dim: usize, line: u32) {
        let (d, columns) = (self.dims[dim], self.dims[1].extent());
        let node = |at: u32| if dim == 0 { at * columns + line } else { line * columns + at };
        let [before, after] = PORTS[dim];
        let (switch, tree) = (self.line(dim, line), d.tree());
        for at in 0..d.extent() {
            if (at + 1) % d.board != 0 {
                plane.join((node(at), after), (node(at + 1), before), Cable::Board);
            }
        }
        // Board k has ports 2k and 2k + 1 of the line.
        for port in 0..d.ports() {
            let (board, side) = (port / 2, port % 2);
            let at = board * d.board + side * (d.board - 1);
            let (leaf, down) = if tree.targets == 0 { (0, port) } else { (port / DOWN, port % DOWN) };
            plane.join((node(at), [before, after][side as usize]), (switch + leaf, down), Self::cable(dim));
        }
        for leaf in 0..tree.sources {
            let down = (d.ports() - leaf * DOWN).min(DOWN);
            for i in 0..tree.each {
                let (above, port) = tree.end(leaf, i);
                plane.join((switch + leaf, down + i), (switch + tree.sources + above, port), Cable::Aoc);
            }
        }
    }
}

impl Topology for HxMesh {
    fn name(&self) -> &'static str {
        FAMILY.name
    }

    fn accelerators(&self) -> u32 {
        self.dims[0].extent() * self.dims[1].extent()
    }

    fn ports(&self) -> u32 {
        4
    }

    fn bill(&self) -> Bill {
        let mut bill = Bill { switch_ports: SWITCH_PORTS, ..Bill::default() };
        for (dim, d) in self.dims.iter().enumerate() {
            let other = self.dims[1 - dim];
            let ends = u64::from(self.lines(dim)) * u64::from(d.ports());
            bill.switches += u64::from(other.boards) * d.switches(other.board);
            bill.aoc += u64::from(self.lines(dim)) * u64::from(d.tree().cables());
            *(if dim == 0 { &mut bill.aoc } else { &mut bill.dac }) += ends;
        }
        bill
    }

    fn diameter(&self) -> u32 {
        self.dims[0].diameter() + self.dims[1].diameter()
    }

    /// Returns the better one of two cuts that halve all lines of one dimension: "HammingMesh", section 3.1, 1/(2a) for
    /// an even number of boards of a x a.
    fn halves(&self) -> Option<Cut> {
        let along = |dim: usize| {
            let (d, lines) = (self.dims[dim], self.lines(dim));
            Cut { inside: d.extent() / 2 * lines, rate: f64::from(d.cut() * lines) }
        };
        Cut::best(self.accelerators(), [along(0), along(1)])
    }

    /// Returns [`Halves::Published`], because a narrower cut may exist. The switch of a line is on the side of most of
    /// its ports, so a rectangle of boards with more than half of the rows and of the columns may have fewer cables to
    /// the other boards than a cut that halves all lines.
    fn halves_are(&self) -> Halves {
        Halves::Published
    }

    fn extents(&self) -> Vec<u32> {
        self.dims.map(Dimension::extent).to_vec()
    }

    fn boards(&self) -> Option<Boards> {
        Some(Boards { count: self.dims.map(|d| d.boards), board: self.dims.map(|d| d.board) })
    }

    fn jobs(&self) -> Option<JobSpace> {
        Some(JobSpace {
            count: self.dims.map(|d| d.boards).to_vec(),
            board: self.dims.map(|d| d.board).to_vec(),
            leaf: self.dims.map(Dimension::boards_a_leaf).to_vec(),
            rule: Rule::Crossings,
        })
    }

    /// Returns the names of a node. A line is a switch, such as `row switch 3`, or a tree with `row leaf 1 of row 3`
    /// and `row top 0 of row 3`.
    fn node_name(&self, node: u32) -> NodeName {
        let columns = self.dims[1].extent();
        if node < self.accelerators() {
            let at = [node / columns, node % columns];
            let board = [at[0] / self.dims[0].board, at[1] / self.dims[1].board];
            return NodeName::new("accelerator", &at).within(NodeName::new("board", &board).own);
        }
        let dim = usize::from(node >= self.line(1, 0));
        let (at, tree) = (node - self.line(dim, 0), self.dims[dim].tree());
        let (line, at) = (at / self.line_nodes(dim), at % self.line_nodes(dim));
        let [switch, leaf, top] =
            [["column switch", "column leaf", "column top"], ["row switch", "row leaf", "row top"]][dim];
        let name = ["column", "row"][dim];
        if tree.targets == 0 {
            NodeName::new(switch, &[line])
        } else if at < tree.sources {
            NodeName::new(leaf, &[at]).of(format!("{name} {line}"))
        } else {
            NodeName::new(top, &[at - tree.sources]).of(format!("{name} {line}"))
        }
    }

    fn plane(&self) -> Result<Plane, MachineError> {
        let switches: u32 = (0..2).map(|dim| self.lines(dim) * self.line_nodes(dim)).sum();
        let of_line = |d: Dimension| {
            let on_boards = u64::from(d.boards) * u64::from(d.board - 1);
            on_boards + u64::from(d.ports()) + u64::from(d.tree().cables())
        };
        let cables = (0..2).map(|dim| u64::from(self.lines(dim)) * of_line(self.dims[dim])).sum();
        let mut plane = PlaneBuilder::new(self.accelerators(), switches, cables)?;
        for dim in 0..2 {
            for line in 0..self.lines(dim) {
                self.wire(&mut plane, dim, line);
            }
        }
        plane.finish()
    }

    fn routing(&self) -> Box<dyn Routing> {
        Box::new(routing::MinimalAdaptive::new(self))
    }
}
