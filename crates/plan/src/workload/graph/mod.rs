//! The time of a program on a machine. By the model, each distinct communication is priced once, and a clock gives the
//! times of each node. At the other levels, the messages of all nodes share the network.

mod apart;
mod chosen;
mod class;
mod clock;
mod events;
mod flows;
mod groves;
mod level;
mod occurrences;
mod opinion;
mod ports;
mod prices;
mod reduction;
mod report;
pub(crate) mod reported;
mod routes;
mod simulate;
mod tasks;

pub use chosen::Chosen;
pub use clock::{Clock, ClockError, Interval};
pub use level::Level;
pub use opinion::OpinionRow;
pub use ports::{Messages, OnePort, Ports};
pub use prices::{Communication as PricedCommunication, ProgramPrices};
pub use report::{CollectiveRow, GraphReport, Step};
