//! The program of a wafer, to which a placed schedule is lowered before it is simulated or printed as code.

mod color;
mod lower;
mod needs;
mod program;
mod way;

pub use lower::{LowerError, lower, packing, prove_and_lower};
pub use needs::Needs;
pub use program::{Color, ColorRoute, End, Op, PeProgram, Port, Ports, Position, Step, WaferProgram};
