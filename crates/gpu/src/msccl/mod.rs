//! MSCCL XML: a schedule as a program of thread blocks for the GPU executors that read this format, and back.
//!
//! ```text
//! <algo name proto nchannels nchunksperloop ngpus coll inplace outofplace minBytes maxBytes>
//!   <gpu id i_chunks o_chunks s_chunks>
//!     <tb id send recv chan>                                    at most one peer each way, -1 for none
//!       <step s type srcbuf srcoff dstbuf dstoff cnt depid deps hasdep/>
//! ```
//!
//! Buffers are measured in chunks, equal parts of the vector. A pair of GPUs has one connection for each channel and
//! direction, a FIFO between two thread blocks. These files emit a program, in this order:
//!
//! * `pieces`: the chunk (the largest unit that divides all slices), and instructions divided so that both ends of a
//!   stream move pieces of one size;
//! * `ops`: `combine` as receive, reduce, copy and send;
//! * `connections`: the connections of streams, pairs of them joined in one thread block for fused steps, and channels;
//! * `blocks`: the steps of each thread block; `waits`: their waits, and the check that they may run in place;
//! * `instances`: parts of chunks with thread blocks of their own;
//! * `write`: the text. `emit` reads it back (`parse`, `import`) and proves it again before it is returned.
//!
//! Reading follows the executor's parser and kernel, not the structure of the file: `text` implements the parser's
//! syntax, `executed` the steps as they run, `slots` the sizes at which connections are too short, and `limits` the
//! limits of the executor. `check` proves a file in each way and at each size for which the executor accepts it.
//!
//! Source: the parser and the interpreter of msccl-executor-nccl (`src/misc/msccl/msccl_parser.cc`,
//! `src/device/msccl_kernel_impl.h`), and the writer of msccl-tools (`msccl/language/ir.py`). `docs/export.md` lists
//! the checks made.
//!
//! The written file is proved with a capacity of two chunks for each connection, which every connection has.

mod blocks;
mod check;
mod connections;
mod emit;
mod executed;
mod format;
mod import;
mod instances;
mod limits;
pub(crate) mod ops;
mod parse;
mod pieces;
mod places;
mod program;
mod slots;
mod text;
mod waits;
mod write;

pub use check::{Checked, Finding, check};
pub use format::MscclXml;

const NAME: &str = "msccl-xml";
