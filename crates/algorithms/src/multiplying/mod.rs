//! Recursive multiplying: the language of its schedules, their cost, and the search for the best one.
//!
//! A stage with factor f has every rank send what it holds to the f - 1 others of its group, back to back; the factors
//! of all stages multiply to the number of ranks. Where that number factors badly, a *split* first collapses groups of
//! ranks into one and in the end expands to them, or a *merge* sets some ranks apart, which hand their value to a group
//! in the first stage and hear of the result in the last.
//! Source: Ruefenacht, Bull, Booth: "Generalisation of recursive doubling for AllReduce: Now with simulation", 2017.
//! Its rules hold here with the corrections that `papers/multiplying/errata.md` lists.

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
pub use search::{Best, Search, best_factored};
pub use stages::{Stage, Stages, StagesError, Wrap};
