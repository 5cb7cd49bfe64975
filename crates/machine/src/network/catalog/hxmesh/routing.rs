//! Minimal adaptive routing of a HammingMesh.
//!
//! Source: "HammingMesh", section 3.2: shortest paths; North-last on a board; the virtual channel rises on entering a
//! tree. A packet between accelerators of one board may go through a tree if that path is not longer. A path uses the
//! tree of each dimension at most once, so three virtual channels suffice.
//!
//! There is no cycle of dependencies, because the virtual channel never decreases. On one virtual channel, links of
//! trees come first, up before down, then links of boards, on which North-last allows no cycle of turns: a packet goes
//! North only when it has no more hops East or West, and going North does not add any.

use unisono_base::narrow;

use super::{DOWN, Dimension, HxMesh, PORTS};
use crate::network::{Header, Hop, Plane, Routing, Topology, wiring::Wiring};

/// A coordinate of an accelerator: the board, and the offset on the board.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Spot {
    board: u16,
    offset: u16,
}

/// The dimension of a switch of the plane, and its role in the line.
#[derive(Clone, Copy)]
struct Switch {
    dim: u8,
    part: Part,
}

#[derive(Clone, Copy)]
enum Part {
    Leaf { index: u16, down: u8 },
    Above { index: u16 },
}

pub struct MinimalAdaptive {
    plane: Plane,
    dims: [Dimension; 2],
    /// The tree of a line in each dimension, and the number of boards of a leaf.
    trees: [Wiring; 2],
    boards_a_leaf: [u32; 2],
    spots: Vec<[Spot; 2]>,
    switches: Vec<Switch>,
}

/// The directions along a dimension that shortest paths take.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Ways {
    before: bool,
    after: bool,
}

impl Ways {
    fn any(self) -> bool {
        self.before || self.after
    }
}

impl MinimalAdaptive {
    pub fn new(mesh: &HxMesh) -> Self {
        let spot = |at: u32, d: Dimension| Spot { board: narrow(at / d.board), offset: narrow(at % d.board) };
        let [rows, columns] = mesh.dims;
        let spots = (0..rows.extent())
            .flat_map(|r| (0..columns.extent()).map(move |c| [spot(r, rows), spot(c, columns)]))
            .collect();
        let mut switches = Vec::new();
        for (dim, d) in mesh.dims.iter().enumerate() {
            let tree = d.tree();
            let leaves = (0..tree.sources).map(|leaf| {
                let left = d.ports() - leaf * DOWN;
                let down = if tree.targets == 0 { left } else { left.min(DOWN) };
                Part::Leaf { index: narrow(leaf), down: narrow(down) }
            });
            let line: Vec<Part> = leaves.chain((0..tree.targets).map(|i| Part::Above { index: narrow(i) })).collect();
            for _ in 0..mesh.lines(dim) {
                switches.extend(line.iter().map(|&part| Switch { dim: narrow(dim), part }));
            }
        }
        let plane = mesh.plane().expect("a plane that was built before");
        let (trees, boards_a_leaf) = (mesh.dims.map(Dimension::tree), mesh.dims.map(Dimension::boards_a_leaf));
        Self { plane, dims: mesh.dims, trees, boards_a_leaf, spots, switches }
    }

    /// Returns the directions of the shortest paths. To another board, they lead to the nearer edge, or to both edges;
    /// on the same board, directly or around through the line, over two cables.
    fn ways(d: Dimension, at: Spot, to: Spot) -> Ways {
        let (before, after) = (u32::from(at.offset), d.board - 1 - u32::from(at.offset));
        if at.board != to.board {
            return Ways { before: before <= after, after: after <= before };
        }
        let (here, there) = (u32::from(at.offset), u32::from(to.offset));
        let straight = here.abs_diff(there);
        let around = d.board + 1 - straight;
        match here.cmp(&there) {
            std::cmp::Ordering::Equal => Ways { before: false, after: false },
            std::cmp::Ordering::Less => Ways { before: around <= straight, after: straight <= around },
            std::cmp::Ordering::Greater => Ways { before: straight <= around, after: around <= straight },
        }
    }

    fn hops_at_accelerator(&self, at: u32, header: Header, hops: &mut Vec<Hop>) {
        let (here, there) = (self.spots[at as usize], self.spots[header.to as usize]);
        let first = 4 * at;
        let ways = [0, 1].map(|dim| Self::ways(self.dims[dim], here[dim], there[dim]));
        for dim in [1, 0] {
            let [before, after] = PORTS[dim];
            let offset = u32::from(here[dim].offset);
            if ways[dim].before {
                if offset == 0 {
                    hops.push(Hop { link: first + before, vc: header.vc + 1 });
                } else if dim == 1 || !ways[1].any() {
                    // A packet may go West at any time, and North only as its last direction.
                    hops.push(Hop { link: first + before, vc: header.vc });
                }
            }
            if ways[dim].after {
                let enters = offset + 1 == self.dims[dim].board;
                hops.push(Hop { link: first + after, vc: header.vc + u8::from(enters) });
            }
        }
    }

    /// Returns the first hop at a switch, and the number of hops. The hops have consecutive links.
    fn run_at_switch(&self, at: u32, header: Header) -> (Hop, u32) {
        let Switch { dim, part } = self.switches[(at - self.plane.accelerators()) as usize];
        let dim = usize::from(dim);
        let (d, to) = (self.dims[dim], self.spots[header.to as usize][dim]);
        let leaf = u32::from(to.board) / self.boards_a_leaf[dim];
        let ports = match part {
            Part::Leaf { index, down } if u32::from(index) != leaf => u32::from(down)..u32::from(down) + d.up,
            Part::Leaf { .. } => {
                let edge = 2 * (u32::from(to.board) - leaf * self.boards_a_leaf[dim]);
                let (before, after) = (u32::from(to.offset), d.board - 1 - u32::from(to.offset));
                edge + u32::from(before > after)..edge + 1 + u32::from(after <= before)
            }
            Part::Above { index } => self.trees[dim].towards(u32::from(index), leaf..leaf + 1),
        };
        (Hop { link: self.plane.port(at, ports.start), vc: header.vc }, ports.end - ports.start)
    }
}

impl Routing for MinimalAdaptive {
    fn name(&self) -> &'static str {
        "minimal adaptive, North last"
    }

    fn virtual_channels(&self) -> u8 {
        3
    }

    fn run(&self, at: u32, header: Header) -> Option<(Hop, u32)> {
        (at >= self.plane.accelerators()).then(|| self.run_at_switch(at, header))
    }

    fn hops(&self, at: u32, header: Header, hops: &mut Vec<Hop>) {
        if at < self.plane.accelerators() {
            self.hops_at_accelerator(at, header, hops);
        } else {
            let (first, count) = self.run_at_switch(at, header);
            hops.extend((first.link..first.link + count).map(|link| Hop { link, ..first }));
        }
    }
}
