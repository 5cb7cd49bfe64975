//! The packet simulator: against closed forms, against its rules written straight down, and under stress.

mod closed_forms;
mod common;
mod estimates;
mod flows;
mod flow {
    mod max_min;
}
mod oracle;
mod regions;
mod straight;
mod stress;
mod waiting;
