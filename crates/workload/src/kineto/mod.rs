//! The reader of traces of PyTorch's profiler (Kineto) with NCCL metadata, one file for each rank, optionally
//! compressed by gzip.
//!
//! Kernels, copies and fills of a device are compute, in one queue in the order of their begins. The time of a kernel
//! is the part of its duration during which no earlier kernel runs, so concurrent kernels on several streams are not
//! counted twice. Kernels with a `Collective name` are collectives in a separate queue, except that `send` and `recv`
//! are messages between pairs.
//!
//! A trace does not state the dependencies of kernels. A collective waits for the last compute that ended before the
//! collective began. If the compute queue is idle before a kernel, and collectives end in this gap, the kernel waits
//! for the last of these collectives. The rest of the gap is attributed to the host. It becomes compute before the
//! kernel, because a faster network does not make the host faster.
//!
//! Sources: the metadata that PyTorch's profiler writes for NCCL, which lists at most 30 ranks of a group. Most keys
//! were compared with PyTorch's code; `pg_config` was not. Of the names of collectives, only `_reduce_scatter_base` was
//! compared.

mod events;
mod rank;
mod ranks;

pub use ranks::{is_it, read};
