//! The levels at which programs are timed, compared with each other and with direct simulations.

mod apart;
mod bounds;
mod flows;
mod messages;
mod model;
#[path = "../../../../sim/tests/all/network/straight.rs"]
mod packets;
mod random;
mod straight;
