//! Machines whose switches reduce. Each core has a switch, on a mesh in a socket; the sockets of a node are fully
//! connected; nodes form a HyperX. "Accelerating Allreduce with in-network reduction on Intel PIUMA".
//!
//! Networks can have switches that reduce too. In a network, a switch is a rank of the task graph and receives each
//! message as a whole, and each chunk of a schedule is an instruction. A machine with 2.1 million cores would need
//! billions of instructions in that form. The two kinds of machines are therefore separate: this kind has a closed form
//! for times, and a simulation of registers that skips repeated packets without an error.

mod description;
mod layout;
mod nodes;
mod site;

pub use description::{Device, Host, InNetwork, OPERATORS};
pub use layout::{Layout, LevelOf, MEMORY, Peer, Port};
pub use nodes::balanced;
pub use site::Site;
