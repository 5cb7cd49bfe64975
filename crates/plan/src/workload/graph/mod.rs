//! The time of a program on a machine: each distinct communication is priced once, and the nodes are put on a clock.

mod class;
mod clock;
mod events;
mod prices;
mod report;

pub use clock::{Clock, ClockError, Interval};
pub use prices::{Communication as PricedCommunication, Prices};
pub use report::{CollectiveRow, GraphReport, OpinionRow, graph_report};
