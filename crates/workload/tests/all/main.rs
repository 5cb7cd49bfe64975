//! The readers of programs.

mod chakra;
mod hlo;
mod hlo_groups;
mod kineto;
mod orders;
mod redundant;
