//! Board edges: the links at the edges of boards limit an alltoall on the boards of a HammingMesh. All blocks for other
//! columns of boards leave by the two edges of the board's rows, and all blocks for other rows of boards by the two
//! edges of the board's columns.
//!
//! With N accelerators on x by x boards of a by a accelerators, the reachable fraction of the injection rate is at most
//! (1/2a) (N-1)/(N-N/x). Source: counted from "HammingMesh", section 3: an accelerator on the edge has one port there.

use unisono_collective::Kind;

use super::NetworkCase;
use crate::{Bound, Time};

pub const BOARD_EDGES: Bound = Bound {
    name: "board-edges",
    reference: "HammingMesh, section 3: ports of a board",
    assumes: "every accelerator has a rank; bytes not compressed",
    time: |problem| nanoseconds(&NetworkCase::of(problem)?).map(Time::from_ns),
    ..Bound::OF_MACHINE
};

fn nanoseconds(case: &NetworkCase) -> Option<f64> {
    let (c, boards) = (&case.collective, case.topology.boards()?);
    let all = case.topology.accelerators();
    if c.kind != Kind::Alltoall || c.ranks != all || all < 2 {
        return None;
    }
    let block = c.bytes() as f64;
    let of_dim = |dim: usize| {
        let elsewhere = f64::from(all) - f64::from(all) / f64::from(boards.count[dim]);
        let blocks = f64::from(boards.board[0] * boards.board[1]) * elsewhere;
        let ports = f64::from(2 * boards.board[1 - dim]);
        blocks * block / ports * case.model.ns_per_byte
    };
    Some(of_dim(0).max(of_dim(1)))
}
