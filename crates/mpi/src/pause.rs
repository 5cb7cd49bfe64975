//! Pauses of a planned call that waits, where the MPI library pauses only in its own waits.
//!
//! Open MPI may yield or sleep in `MPI_Test`. MPICH does so only in functions that wait, such as `MPI_Wait`, and two of
//! its variables say when. A planned call tests its messages, so without pauses of its own it would keep a core from
//! the other ranks that share it.

use std::{env, thread, time::Duration};

use crate::{abi::Abi, switch};

/// The polls of MPICH between two pauses if no variable states them.
const DEFAULT_POLLS: u32 = 1000;

/// When and how a waiting call leaves its core to other processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pause {
    /// The number of polls between two pauses.
    polls: u32,
    /// True if the rank sleeps for the least time of the system's timers; else it only yields.
    sleeps: bool,
    turns: u32,
}

impl Pause {
    /// Returns the pauses of a library, by the environment of this process; None if the library itself pauses.
    pub(crate) fn of(abi: Abi) -> Option<Self> {
        if abi != Abi::Mpich {
            return None;
        }
        let stated = env::var("MPIR_CVAR_POLLS_BEFORE_YIELD").ok().and_then(|text| text.trim().parse().ok());
        let polls = stated.unwrap_or(DEFAULT_POLLS);
        let sleeps = switch::is_on("MPIR_CVAR_ENABLE_HEAVY_YIELD", |_| ());
        // MPICH never pauses if the number is 0.
        (polls > 0).then_some(Self { polls, sleeps, turns: 0 })
    }

    /// Counts a poll that advanced nothing, and pauses if enough were counted.
    #[inline]
    pub fn idle(&mut self) {
        self.turns += 1;
        if self.turns == self.polls {
            self.turns = 0;
            if self.sleeps {
                thread::sleep(Duration::from_nanos(1));
            } else {
                thread::yield_now();
            }
        }
    }
}
