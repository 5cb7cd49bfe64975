//! Tests of the packet simulator: closed forms, a direct implementation of its rules, and stress.

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
