//! Reports blocking planned calls that wait for messages longer than a limit, and reports when they continue.
//!
//! MPI waits without a limit for a rank on a host that is cut off, and also for a rank that never makes the call. The
//! report names the ranks whose messages the call waits for, so that the reports of all ranks show which rank delays
//! the others. After the report the call continues to wait, because messages may still arrive, for example after a
//! short outage of the network.

use std::{
    ffi::c_int,
    time::{Duration, Instant},
};

use crate::{call::Call, watch::TURNS};

/// A message that a call waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Awaited {
    /// The peer's rank in the private communicator, which is its rank in `MPI_COMM_WORLD`.
    pub rank: c_int,
    /// True if the peer sends the message, false if the peer receives it.
    pub arrives: bool,
}

/// A function that reports a call: the time for which it has waited, and the messages awaited; none if the call
/// continues.
pub type Tell = fn(&Call, Duration, &[Awaited]);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The wait is still shorter than the limit.
    Waiting,
    /// The limit is reached; the messages that have not ended are collected until the next idle poll.
    Collecting,
    Told,
}

/// Measures the current wait of the running call. Each message that ends restarts the measurement.
pub struct Patience {
    limit: Duration,
    tell: Tell,
    turns: u32,
    since: Option<Instant>,
    stage: Stage,
    awaited: Vec<Awaited>,
}

impl Patience {
    pub fn new(limit: Duration, tell: Tell) -> Self {
        Self { limit, tell, turns: 0, since: None, stage: Stage::Waiting, awaited: Vec::new() }
    }

    /// Records that a message was tested and has not ended.
    #[inline]
    pub fn pending(&mut self, rank: c_int, arrives: bool) {
        if self.stage == Stage::Collecting {
            self.awaited.push(Awaited { rank, arrives });
        }
    }

    /// Records that a message has ended, which restarts the wait.
    #[inline]
    pub fn ended(&mut self, call: &Call) {
        if self.turns > 0 {
            self.begin_anew(call);
        }
    }

    #[cold]
    fn begin_anew(&mut self, call: &Call) {
        if let (Stage::Told, Some(since)) = (self.stage, self.since) {
            (self.tell)(call, since.elapsed(), &[]);
        }
        (self.turns, self.since, self.stage) = (0, None, Stage::Waiting);
    }

    /// Counts a poll that made no progress, and reports the wait once when it has reached the limit. The clock is read
    /// only once in `TURNS` such polls.
    #[inline]
    pub fn idle(&mut self, call: &Call) {
        self.turns = self.turns.wrapping_add(1).max(1);
        if self.stage == Stage::Collecting || self.turns.is_multiple_of(TURNS) {
            self.look(call);
        }
    }

    #[cold]
    fn look(&mut self, call: &Call) {
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        match self.stage {
            Stage::Waiting if waited >= self.limit => {
                self.awaited.clear();
                self.stage = Stage::Collecting;
            }
            Stage::Collecting => {
                self.awaited.sort_unstable();
                self.awaited.dedup();
                self.stage = Stage::Told;
                (self.tell)(call, waited, &self.awaited);
            }
            Stage::Waiting | Stage::Told => {}
        }
    }
}
