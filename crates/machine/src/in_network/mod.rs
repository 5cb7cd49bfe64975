//! Machines whose switches reduce. Each core has a switch, on a mesh in a socket; the sockets of a node are fully
//! connected; nodes form a HyperX. "Accelerating Allreduce with in-network reduction on Intel PIUMA".
//!
//! Networks can have switches that reduce too. There a switch is a rank of the task graph and receives each message
//! whole. The two kinds of machines remain separate: 2.1 million cores need the closed form and the simulation of
//! registers that skips packets exactly, and a chunk of a network's schedule is an instruction, so a machine with 2.1
//! million cores would need billions of instructions.

mod description;
mod layout;
mod nodes;
mod site;

pub use description::{Device, Host, InNetwork, OPERATORS};
pub use layout::{Layout, LevelOf, MEMORY, Peer, Port};
pub use nodes::balanced;
pub use site::Site;
