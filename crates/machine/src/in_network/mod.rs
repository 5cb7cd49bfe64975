//! Machines whose switches reduce. Each core has a switch, on a mesh in a socket; the sockets of a node are fully
//! connected; nodes form a HyperX. "Accelerating Allreduce with in-network reduction on Intel PIUMA".
//!
//! Networks can have switches that reduce too. There a switch is a rank of the task graph that receives a message
//! whole. The two kinds remain separate: 2.1 million cores need the closed form and the exact skipping of the
//! registers, and a chunk of a network's schedule is an instruction, of which such a machine would need billions.

mod description;
mod layout;
mod nodes;
mod site;

pub use description::{Device, Host, InNetwork, OPERATORS};
pub use layout::{Layout, LevelOf, MEMORY, Peer, Port};
pub use nodes::balanced;
pub use site::Site;
