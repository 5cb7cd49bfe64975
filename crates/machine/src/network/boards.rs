//! Boards of accelerators in rows and columns, of which any rows and columns join to a smaller network.

use unisono_base::narrow;

/// Row-major everywhere: boards in the grid, accelerators over the global grid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Boards {
    /// Rows and columns of boards.
    pub count: [u32; 2],
    /// Rows and columns of accelerators on a board.
    pub board: [u32; 2],
    /// Rows, and columns, of boards that one switch of the lowest level joins.
    pub leaf: [u32; 2],
    /// Whether a job takes adjacent rows and columns, around the ends, as links between neighbors need it.
    pub adjacent: bool,
}

impl Boards {
    pub fn all(&self) -> u64 {
        u64::from(self.count[0]) * u64::from(self.count[1])
    }

    /// The accelerators of a virtual sub-mesh, the boards at the crossings of some rows and columns, in the order of
    /// its ranks: row-major over its own grid, which has the second result's extents. Where a rank of a collective
    /// runs.
    pub fn accelerators(&self, rows: &[u32], columns: &[u32]) -> (Vec<u32>, [u32; 2]) {
        let [high, wide] = self.board;
        let along = |boards: &[u32], size: u32| -> Vec<u32> {
            boards.iter().flat_map(|b| (0..size).map(move |at| b * size + at)).collect()
        };
        let (down, across) = (along(rows, high), along(columns, wide));
        let width = self.count[1] * wide;
        let places = down.iter().flat_map(|r| across.iter().map(move |c| r * width + c)).collect();
        (places, [narrow(down.len()), narrow(across.len())])
    }
}
