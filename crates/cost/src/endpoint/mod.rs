//! What messages and reductions cost at endpoints: one linear form for all models, its closed forms, and lower bounds.

mod prices;
mod rounds;

pub use prices::{LevelPrices, Linear, Prices, Receive, Send, TICKS_PER_NS, seconds};
pub use rounds::rounds_ns;
