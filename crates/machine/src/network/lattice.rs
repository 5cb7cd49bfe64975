//! Grids of nodes with any number of dimensions: nodes are numbered row-major and lie on boards. Meshes and tori are
//! built from them.

use serde::Deserialize;
use unisono_base::narrow;

use super::{
    Bill, Boards, NodeName, Plane, Routing, Topology,
    allocate::{JobSpace, MOST_DIMENSIONS as MOST_SEARCHED, Rule},
    cut::{Cut, Halves},
    topology,
};
use crate::MachineError;

#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lattice {
    /// The number of nodes along each dimension.
    pub dims: Vec<u32>,
    /// The number of nodes of a board along each dimension; 1 by default.
    #[serde(default)]
    board: Vec<u32>,
}

/// The largest number of dimensions, because tables have a row for each.
const MOST_DIMENSIONS: usize = 255;
/// The largest length of a list of numbers that a message shows.
const MOST_SHOWN: usize = 16;

/// Returns a list of numbers for a message.
pub fn listed(numbers: &[u32]) -> String {
    match numbers.len() {
        0..=MOST_SHOWN => format!("{numbers:?}"),
        n => format!("a list of {n} numbers"),
    }
}

impl Lattice {
    /// # Errors
    /// Returns an error if an extent is below `least`, or a board does not divide its extent.
    pub fn read(table: &toml::Table, origin: &str, least: u32) -> Result<Self, MachineError> {
        let lattice: Self = topology::parse(table, origin)?;
        let Self { dims, board } = &lattice;
        if !(1..=MOST_DIMENSIONS).contains(&dims.len()) || dims.iter().any(|&d| d < least) {
            let found = listed(dims);
            let message =
                format!("dims is {found}; accepted are 1 to {MOST_DIMENSIONS} extents, each at least {least}");
            return Err(topology::refused(origin, message));
        }
        let closes = |(n, b): (&u32, &u32)| *b > 0 && n % b == 0;
        if !board.is_empty() && (board.len() != dims.len() || !dims.iter().zip(board).all(closes)) {
            let found = listed(board);
            let message = format!("board is {found}; accepted is one divisor of each extent of dims, {dims:?}");
            return Err(topology::refused(origin, message));
        }
        topology::accelerators(dims, origin)?;
        Ok(lattice)
    }

    /// Makes a lattice without boards.
    pub fn of(dims: Vec<u32>) -> Self {
        Self { dims, board: Vec::new() }
    }

    pub fn count(&self) -> u32 {
        self.dims.iter().product()
    }

    pub fn stride(&self, dim: usize) -> u32 {
        self.dims[dim + 1..].iter().product()
    }

    pub fn at(&self, node: u32, dim: usize) -> u32 {
        node / self.stride(dim) % self.dims[dim]
    }

    /// Returns whether a coordinate along a dimension and the next larger one are on the same board.
    pub fn on_board(&self, coordinate: u32, dim: usize) -> bool {
        !(coordinate + 1).is_multiple_of(self.board(dim))
    }

    /// Returns the name of a node by its coordinates, and of its board if boards have several nodes.
    pub fn name(&self, role: &'static str, node: u32) -> NodeName {
        let of = |divided: &dyn Fn(usize) -> u32| -> Vec<u32> {
            (0..self.dims.len()).map(|dim| self.at(node, dim) / divided(dim)).collect()
        };
        let name = NodeName::new(role, &of(&|_| 1));
        let is_alone = (0..self.dims.len()).all(|dim| self.board(dim) == 1);
        if is_alone { name } else { name.within(NodeName::new("board", &of(&|dim| self.board(dim))).own) }
    }

    pub fn boards(&self, dim: usize) -> u32 {
        self.dims[dim] / self.board(dim)
    }

    pub fn lines(&self, dim: usize) -> u64 {
        u64::from(self.count() / self.dims[dim])
    }

    /// Returns the least cut of an array into halves, if a cut of a line of nodes crosses `links` links. The cut
    /// divides the longest extent in the middle. If this extent is odd, its middle layer is cut into halves in the same
    /// way.
    ///
    /// Source: Aroca, Fernandez Anta, "Bisection (Band)Width of Product Networks", 2014, for arrays and tori.
    pub fn halves(&self, links: u32) -> Cut {
        let mut extents: Vec<u32> = self.dims.iter().copied().filter(|&extent| extent > 1).collect();
        extents.sort_unstable();
        let (mut layer, mut cut) = (self.count(), 0);
        while let Some(extent) = extents.pop() {
            layer /= extent;
            cut += layer;
            if extent % 2 == 0 {
                break;
            }
        }
        Cut { inside: self.count() / 2, rate: f64::from(links * cut) }
    }

    /// Returns the job space of boards, in which a job gets a box of boards; `None` if there are too many dimensions to
    /// try all orders of a box's sides. There are no switches, so no traffic uses an upper level.
    pub fn jobs(&self, wraps: bool) -> Option<JobSpace> {
        let dims = 0..self.dims.len();
        (dims.len() <= MOST_SEARCHED).then(|| {
            let count: Vec<u32> = dims.clone().map(|dim| self.boards(dim)).collect();
            let board = dims.map(|dim| self.board(dim)).collect();
            JobSpace { leaf: count.clone(), count, board, rule: Rule::SubBox { wraps } }
        })
    }

    fn board(&self, dim: usize) -> u32 {
        self.board.get(dim).copied().unwrap_or(1)
    }
}

/// A network whose accelerators are linked with their neighbors of every dimension.
#[derive(Clone, Debug)]
pub struct LatticeNetwork {
    pub family: &'static str,
    pub lattice: Lattice,
    /// True if the ends of each line are neighbors.
    pub wraps: bool,
    pub plane: fn(&Lattice) -> Result<Plane, MachineError>,
    pub routing: fn(&Lattice) -> Box<dyn Routing>,
}

impl Topology for LatticeNetwork {
    fn name(&self) -> &'static str {
        self.family
    }

    fn accelerators(&self) -> u32 {
        self.lattice.count()
    }

    /// Returns the number of ports of an accelerator that is not at an end.
    fn ports(&self) -> u32 {
        2 * narrow::<u32>(self.lattice.dims.len())
    }

    fn bill(&self) -> Bill {
        let ends = u32::from(!self.wraps);
        let off_board = |dim: usize| u64::from(self.lattice.boards(dim) - ends) * self.lattice.lines(dim);
        Bill { aoc: (0..self.lattice.dims.len()).map(off_board).sum(), ..Bill::default() }
    }

    fn diameter(&self) -> u32 {
        self.lattice.dims.iter().map(|d| if self.wraps { d / 2 } else { d - 1 }).sum()
    }

    /// Returns the least cut of the array of nodes, which crosses two links of each ring that it divides.
    fn halves(&self) -> Option<Cut> {
        Cut::best(self.accelerators(), [self.lattice.halves(if self.wraps { 2 } else { 1 })])
    }

    fn halves_are(&self) -> Halves {
        Halves::Least
    }

    fn extents(&self) -> Vec<u32> {
        self.lattice.dims.clone()
    }

    fn boards(&self) -> Option<Boards> {
        if !self.wraps || self.lattice.dims.len() != 2 {
            return None;
        }
        let count = [0, 1].map(|dim| self.lattice.boards(dim));
        Some(Boards { count, board: [0, 1].map(|dim| self.lattice.dims[dim] / count[dim]) })
    }

    fn jobs(&self) -> Option<JobSpace> {
        self.lattice.jobs(self.wraps)
    }

    fn node_name(&self, node: u32) -> NodeName {
        self.lattice.name("accelerator", node)
    }

    fn plane(&self) -> Result<Plane, MachineError> {
        (self.plane)(&self.lattice)
    }

    fn routing(&self) -> Box<dyn Routing> {
        (self.routing)(&self.lattice)
    }
}

/// The coordinates of all nodes, so that routing a packet needs no division.
pub struct Coordinates {
    dims: usize,
    all: Vec<u32>,
}

impl Coordinates {
    pub fn new(lattice: &Lattice) -> Self {
        let dims = lattice.dims.len();
        let all = (0..lattice.count()).flat_map(|n| (0..dims).map(move |d| lattice.at(n, d))).collect();
        Self { dims, all }
    }

    #[inline]
    pub fn of(&self, node: u32) -> &[u32] {
        &self.all[node as usize * self.dims..][..self.dims]
    }

    /// Returns the first dimension in which the coordinates of two nodes differ; `None` for the same node.
    #[inline]
    pub fn first_apart(&self, a: u32, b: u32) -> Option<usize> {
        let (a, b) = (self.of(a), self.of(b));
        (0..self.dims).find(|&dim| a[dim] != b[dim])
    }
}
