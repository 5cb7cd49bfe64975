//! The levels at which programs are timed, beside each other and beside straight simulations.

mod model;
mod random;
