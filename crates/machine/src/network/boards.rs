//! Boards of accelerators in rows and columns. Any rows and columns of them form a smaller network of the same kind.

use unisono_base::narrow;

/// The boards of a network, numbered row-major. Accelerators are row-major in the grid of all accelerators.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Boards {
    /// Rows and columns of boards.
    pub count: [u32; 2],
    /// Rows and columns of accelerators on a board.
    pub board: [u32; 2],
}

impl Boards {
    /// Returns the accelerators of the boards at the crossings of `rows` and `columns` of boards, and the extents of
    /// the virtual sub-mesh that they form. Accelerators are in the order of ranks, row-major in the sub-mesh.
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
