//! Networks: topologies with their routing and price, one in each file, and the properties of their links and packets.
//!
//! A plane lists the elements that packets traverse; a bill lists the elements that are bought. Cables that no packet
//! can use are in the bill only. A routing reads only the node and the header of a packet, so all dependencies between
//! channels can be listed for any family. A link has a one-byte index into the speeds of its plane, where 0 is the
//! machine's own speed, so that a link takes 16 bytes.

mod accelerator_grid;
pub mod allocate;
mod boards;
mod box_numbers;
mod catalog;
pub mod cut;
pub mod deadlock;
mod description;
mod facts;
mod failures;
mod gpu;
pub mod import;
mod joined;
mod lattice;
mod measured;
mod part_names;
mod plane;
mod planes;
mod routing;
mod switches;
mod thread_block;
mod topology;
pub(crate) mod wiring;

pub use accelerator_grid::{AcceleratorGrid, GridBefore, note_on_lost_rows};
pub use boards::Boards;
pub use box_numbers::BoxNumbers;
pub use catalog::FAMILIES;
pub use description::{MachinesPer, Network, Prices, Rates};
pub use facts::{Cables, Facts, PlaneFacts, UnlikeLinks};
pub use failures::Failure;
pub use gpu::{Architecture, Cpu, Gpu, NcclFit, NcclTimes};
pub use measured::DATA_SHEET;
pub use part_names::NodeName;
pub use plane::{Cable, Link, Plane, PlaneBuilder, Speed};
pub use routing::{Header, Hop, MOST_SIMULATED_CHANNELS, Routing};
pub use switches::{SwitchClass, Switches};
pub use thread_block::{BlockRate, Protocol, ThreadBlock};
pub use topology::{Bill, Family, SWITCH_PORTS, Topology};
