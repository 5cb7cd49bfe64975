//! Machines whose switches reduce. Each core has a switch, on a mesh in a socket; the sockets of a node are fully
//! connected; nodes form a HyperX. "Accelerating Allreduce with in-network reduction on Intel PIUMA".

mod description;
mod layout;
mod nodes;
mod site;

pub use description::{Device, Host, InNetwork, OPERATORS};
pub use layout::{Layout, LevelOf, MEMORY, Peer, Port};
pub use nodes::balanced;
pub use site::Site;
