//! LogGOPS in integers, as LogGOPSim computes the times of GOAL files: one tick is one nanosecond, or one picosecond if
//! a parameter has a fraction of a nanosecond.
//!
//! Each byte after the first costs O or G, in unsigned arithmetic modulo 2^64. A message of 0 bytes therefore has
//! 2^64 - 1 bytes after its first, and is sent O earlier than a message of 1 byte. The time of the receiver's CPU
//! contains the greater of the two *unsigned* products. So for 0 bytes the CPU is busy for o - min(O, G) if both are
//! positive, otherwise for o - max(O, G). With [`ZeroBytes::Sane`] a message of 0 bytes takes as long as one of 1 byte.
//! Source: LogGOPSim ("LogGOPSim", Hoefler, Schneider, Lumsdaine, 2010), its public code of 2023.

use super::{Prices, Receive, Send};

/// The rule for the number of bytes after the first in a message of 0 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ZeroBytes {
    /// The rule of LogGOPSim: 2^64 - 1 bytes after the first.
    #[default]
    Wrapped,
    /// No bytes after the first.
    Sane,
}

/// Parameters in ticks, G and O per byte, S in bytes. The defaults are LogGOPSim's, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(non_snake_case, reason = "the field's own names")]
pub struct Goal {
    pub L: u64,
    pub o: u64,
    pub g: u64,
    pub G: u64,
    pub O: u64,
    pub S: u64,
    pub zero_bytes: ZeroBytes,
    /// The number of ticks in a nanosecond, which is the unit of a program's calcs.
    pub ticks_per_ns: u64,
}

impl Default for Goal {
    fn default() -> Self {
        Self { L: 2500, o: 1500, g: 1000, G: 6, O: 0, S: 65_535, zero_bytes: ZeroBytes::Wrapped, ticks_per_ns: 1 }
    }
}

impl Goal {
    /// Returns the number of bytes of a message after the first.
    fn rest(&self, bytes: u64) -> u64 {
        match self.zero_bytes {
            ZeroBytes::Wrapped => bytes.wrapping_sub(1),
            ZeroBytes::Sane => bytes.saturating_sub(1),
        }
    }
}

impl Prices for Goal {
    /// Returns false, because LogGOPSim does not delay a task for a task on another CPU.
    fn ties_cpus(&self) -> bool {
        false
    }

    #[inline]
    fn send(&self, _from: u32, _to: u32, bytes: u64) -> Send {
        let rest = self.rest(bytes);
        Send {
            cpu: self.o.wrapping_add(rest.wrapping_mul(self.O)),
            nic: self.g.wrapping_add(rest.wrapping_mul(self.G)),
            flight: self.o.wrapping_add(self.L),
        }
    }

    #[inline]
    fn receive(&self, _from: u32, _to: u32, bytes: u64) -> Receive {
        let rest = self.rest(bytes);
        let (per_o, per_g) = (rest.wrapping_mul(self.O), rest.wrapping_mul(self.G));
        Receive { cpu: self.o.wrapping_add(per_o.max(per_g)), nic: self.g.wrapping_add(per_g) }
    }

    /// Returns 0: GOAL states the time of computation as calcs, so reductions cost nothing.
    fn reduce(&self, _rank: u32, _bytes: u64) -> u64 {
        0
    }

    /// Returns the ticks of a calc of `amount` ns. If they exceed a `u64`, returns its maximum, which the simulator
    /// refuses.
    fn calc(&self, amount: u64) -> u64 {
        amount.saturating_mul(self.ticks_per_ns)
    }

    fn eager_bytes(&self) -> u64 {
        self.S
    }

    fn may_wrap(&self, bytes: u64) -> bool {
        bytes == 0 && self.zero_bytes == ZeroBytes::Wrapped
    }
}
