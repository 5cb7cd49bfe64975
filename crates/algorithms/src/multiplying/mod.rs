//! Recursive multiplying: the language of its schedules, their cost, and the search for the best one.
//!
//! In a stage with factor f every rank sends its value to the f - 1 others of its group; the product of all factors is
//! the number of ranks. If the number has only large factors, a *wrap* ([`Wrap`]) surrounds the stages of the *plain*
//! factors: a *split* collapses groups of ranks into one rank before and expands them at the end, or a *merge* sets
//! ranks apart, which send their value to a group in the first stage and receive the result in the last. Source:
//! Ruefenacht, Bull, Booth: "Generalisation of recursive doubling for AllReduce: Now with simulation", 2017, with the
//! corrections in `papers/multiplying/errata.md`.

mod cost;
mod fan_out;
mod listing;
mod order;
mod parse;
mod puts;
mod search;
mod stages;

pub use cost::StagePrices;
pub use fan_out::best_fan_out;
pub use listing::{Count, count, list};
pub use order::{best_of, orders, within_nodes};
pub use puts::Running;
pub use search::{Best, Search, best_factored, best_factors};
pub use stages::{Stage, Stages, StagesError, Wrap};
