//! The reader of compiled XLA modules in HLO text, as `jit(step).lower(...).compile().as_text()` returns it.
//!
//! All devices of a module execute the same program, so the program has one class of ranks. Rank r is device r of the
//! device assignment: replica r / partitions, partition r mod partitions.

mod collective;
mod compute;
mod expand;
mod module;
mod opcodes;
mod opinion;
mod redundant;
mod replica_groups;
mod shape;
mod text;

use crate::{ReadError, WorkloadGraph, error::Wrong};
pub use opinion::{Finding, Sufficient};
pub use redundant::Redundancy;

use expand::Expansion;
use module::Module;

/// Returns whether a file begins with the text of a module, after comments.
pub fn is_it(bytes: &[u8]) -> bool {
    let lines = bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let mut code = lines.filter(|line| !line.is_empty() && !line.starts_with(b"//"));
    code.next().is_some_and(|line| line.starts_with(b"HloModule"))
}

/// Reads a module. `origin` is the name of the file in errors. With `strict`, an operation of unknown time is an error.
///
/// # Errors
/// Returns an error if the text is not an HLO module or is cut off, has invalid groups, expands to too many nodes or,
/// with `strict`, has an unknown operation.
pub fn read(text: &str, origin: &str, strict: bool) -> Result<WorkloadGraph, ReadError> {
    let graph = || -> Result<WorkloadGraph, Wrong> {
        let module = Module::read(text)?;
        Expansion::new(&module, strict)?.graph()
    };
    graph().map_err(|wrong| wrong.of(origin))
}
