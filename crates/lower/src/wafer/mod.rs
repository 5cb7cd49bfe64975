//! The program of a wafer: what a placed schedule becomes before it is simulated or printed as code.

mod program;

pub use program::{
    Color, ColorRoute, End, Op, PeProgram, Port, Ports, Position, Step, WaferProgram,
};
