//! Closed forms of predicted times, as text that a program can evaluate.
//!
//! A form is an expression of numbers, names, `+ - * / ^`, parentheses and `log2 sqrt ceil max min`; two adjacent
//! operands are multiplied, with the precedence of `*`. Names: P, the number of ranks or PEs, M x N on a grid; n, the
//! bytes of the collective, counted as in MPI; B, the number of wavelets of the vector; T_R, the ramp latency in
//! cycles; the parameters of the model: alpha, the time of a message, beta of a byte sent, gamma of a byte reduced;
//! `alpha_r`, the time for which a message occupies its sender, and `alpha_p`, the time by which the message arrives
//! later. The condition of a [`Formula`] defines further names, such as S. A form holds for two or more ranks and a
//! vector that is not empty.

use serde::Serialize;
use unisono_collective::Kind;

/// The conditions that formulas of several algorithms share.
pub const POWER_OF_TWO: &str = "P is a power of two";
pub const EVEN: &str = "P is even";
pub const DIVIDES: &str = "P divides the vector";
pub const POWER_THAT_DIVIDES: &str = "P is a power of two and divides the vector";

/// The time of some collectives by one model. Parameters of the algorithm have their default values, except those that
/// the condition states.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Formula {
    /// Name of the model. `paper` is Eq. 1 of "Near-Optimal Wafer-Scale Reduce", in cycles; others are models of
    /// messages, in the unit of their parameters.
    pub model: &'static str,
    pub collectives: &'static [Kind],
    pub time: &'static str,
    /// The condition under which the form holds, with the meaning of further names; `None` if it always holds.
    pub when: Option<&'static str>,
}

impl Formula {
    pub const fn new(model: &'static str, collectives: &'static [Kind], time: &'static str) -> Self {
        Self { model, collectives, time, when: None }
    }

    #[must_use]
    pub const fn when(self, condition: &'static str) -> Self {
        Self { when: Some(condition), ..self }
    }
}
