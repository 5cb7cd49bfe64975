//! The text form of a schedule (`.sched`), which prints and parses back to the same schedule.
//!
//! ```text
//! unisono-schedule 1
//! collective allreduce ranks=2 elements=8 root=0 operator=sum dtype=f32
//! origin hand-written
//! phases reduce broadcast
//! nodes 2                               ; ranks, then switches
//! stream s0: 1 -> 0
//! stream s1: 0 -> 1 capacity=8          ; default: the whole length
//! node 0: tmp=0
//!   i0: in[0..8] + s0 -> out[0..8]
//!   i1 p1: out[0..8] -> s1              ; in phase 1, "broadcast"
//! node 1:
//!   i2: in[0..8] -> s0
//!   lane                                ; the next instructions run in another lane
//!   i3 p1: s1 -> out[0..8] after=i2     ; starts when i2 has completed
//! ```
//!
//! An instruction whose operands are all streams states its length: `i4: s1 -> s2 len=8`. Ids count from 0 in the order
//! of the file; nodes are in ascending order. `;` starts a comment. Sections `machine` and `placement` may follow; the
//! reader of a placed schedule parses them.

mod line;
mod parse;
mod print;

pub use line::{Line, ParseError};
pub use parse::{Tail, parse};
pub use print::print;
