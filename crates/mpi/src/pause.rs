//! Pauses of a planned call that waits. The MPI library pauses only in its own waits.
//!
//! Open MPI may yield or sleep in `MPI_Test`. MPICH yields or sleeps only in functions that wait, such as `MPI_Wait`;
//! two of its variables determine when. A planned call tests its messages. Without its own pauses it would therefore
//! keep a core from the other ranks that share the core.

use std::{env, thread, time::Duration};

use crate::{abi::Abi, switch};

/// The number of polls between two pauses of MPICH, if no variable states it.
const DEFAULT_POLLS: u32 = 1000;

/// The times and the kind of the pauses in which a waiting call leaves its core to other processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pause {
    /// The number of polls between two pauses.
    polls: u32,
    /// True if the rank sleeps for the shortest time of the system's timers; false if it only yields.
    sleeps: bool,
    turns: u32,
}

impl Pause {
    /// Returns the pauses that a library needs, according to the environment of this process; None if the library
    /// itself pauses.
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

    /// Counts a poll that made no progress, and pauses once the number of such polls is reached.
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
