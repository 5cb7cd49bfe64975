//! The readers of programs.

mod hlo;
mod hlo_groups;
