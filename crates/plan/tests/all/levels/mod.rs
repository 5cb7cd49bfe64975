//! The levels at which programs are timed, beside each other and beside straight simulations.

mod apart;
mod bounds;
mod flows;
mod messages;
mod model;
#[path = "../../../../sim/tests/all/network/straight.rs"]
mod packets;
mod random;
mod straight;
