//! Times of messages and reductions at endpoints (called prices): one linear form for all models, closed forms of the
//! times of collectives, and lower bounds.

pub mod bounds;
mod goal;
mod prices;
mod rounds;
pub(crate) mod terms;

pub use goal::{Goal, ZeroBytes};
pub use prices::{LevelPrices, Linear, Prices, Receive, Send, TICKS_PER_NS, seconds};
pub use rounds::rounds_ns;
pub use terms::schedule_terms;
