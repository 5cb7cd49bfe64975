//! Machines whose switches reduce: cores with a switch each, on a mesh in a socket; sockets all joined in a node; nodes
//! on a HyperX. "Accelerating Allreduce with in-network reduction on Intel PIUMA".

mod description;
mod layout;
mod nodes;
mod site;

pub use description::{Device, Host, InNetwork, OPERATORS};
pub use layout::{Layout, LevelOf, MEMORY, Peer, Port};
pub use nodes::balanced;
pub use site::Site;
