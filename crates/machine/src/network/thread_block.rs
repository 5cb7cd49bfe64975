//! The rate of a thread block, which executes a part of a communication plan on a GPU.
//!
//! A thread block runs its instructions in order. It moves data with loads and stores, so one block does not fill a
//! link: `gb_per_second` is its rate of sending while it receives at the same rate. A block that only sends or only
//! receives reaches twice that rate, because sending and receiving each take time.
//!
//! Source of the protocols: NCCL, `src/device/prims_simple.h`, `prims_ll.h` and `prims_ll128.h`.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

/// The accepted rates of a thread block, in 10^9 bytes per second.
const RATES: RangeInclusive<f64> = 1e-6..=1e9;

/// The accepted times in nanoseconds.
const NS: RangeInclusive<f64> = 0.0..=1e12;

unisono_base::named! {
    /// The encoding in which a thread block sends data; in ascending order of the numbers of protocols.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    #[repr(u8)]
    pub enum Protocol {
        /// Plain data, followed by a signal.
        Simple = "Simple",
        /// A flag of 4 bytes after each 4 bytes.
        Ll = "LL",
        /// A flag of 8 bytes after each 120 bytes.
        Ll128 = "LL128",
    }
}

impl Protocol {
    /// Returns the protocol with the name that MSCCL and MSCCL++ use. Unknown names count as `Simple`.
    pub fn of_name(name: &str) -> Self {
        match name {
            "LL" => Self::Ll,
            "LL128" => Self::Ll128,
            _ => Self::Simple,
        }
    }

    /// Returns the bytes that a link carries for `bytes` bytes of data.
    pub fn wire_bytes(self, bytes: u64) -> u64 {
        match self {
            Self::Simple => bytes,
            Self::Ll => bytes.saturating_mul(2),
            Self::Ll128 => bytes.saturating_add(bytes.div_ceil(15)),
        }
    }
}

/// The rate and the times of thread blocks with one protocol.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BlockRate {
    /// The rate at which a block sends while it receives equally fast, in 10^9 bytes per second; `None` if unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gb_per_second: Option<f64>,
    /// The time from the call until the thread blocks begin, in addition to `launch_ns`.
    pub start_ns: f64,
    /// The time from the end of a message until its receiver continues, in addition to the latency of links and
    /// `signal_ns`.
    pub message_ns: f64,
}

impl BlockRate {
    /// Returns the time in which a block sends or receives one byte; `None` without a rate.
    pub fn pass_ns_per_byte(&self) -> Option<f64> {
        self.gb_per_second.map(|rate| 0.5 / rate)
    }
}

/// The table `[thread_block]` of a network. A missing protocol adds no time to that of the links.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ThreadBlock {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simple: Option<BlockRate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ll: Option<BlockRate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ll128: Option<BlockRate>,
}

impl ThreadBlock {
    /// Returns the rate and the times of a protocol; no limit and 0 if the table lacks it.
    pub fn of(&self, protocol: Protocol) -> BlockRate {
        let stated = match protocol {
            Protocol::Simple => self.simple,
            Protocol::Ll => self.ll,
            Protocol::Ll128 => self.ll128,
        };
        stated.unwrap_or_default()
    }

    /// Returns the table for `blocks` thread blocks that share the work of one: rates are multiplied by `blocks`, and
    /// times stay the same.
    #[must_use]
    pub fn times(self, blocks: u32) -> Self {
        let of = |rate: BlockRate| {
            let gb_per_second = rate.gb_per_second.map(|rate| rate * f64::from(blocks));
            BlockRate { gb_per_second, ..rate }
        };
        Self { simple: self.simple.map(of), ll: self.ll.map(of), ll128: self.ll128.map(of) }
    }

    /// Returns the key of a value that is out of range, the value, and the accepted values; `None` if all are in range.
    pub(super) fn wrong(&self) -> Option<(&'static str, f64, &'static str)> {
        let rate =
            Protocol::ALL.into_iter().filter_map(|p| self.of(p).gb_per_second).find(|rate| !RATES.contains(rate));
        let times = |key, of: fn(BlockRate) -> f64| {
            let found = Protocol::ALL.into_iter().map(|p| of(self.of(p))).find(|ns| !NS.contains(ns))?;
            Some((key, found, "a number from 0 to 1e12"))
        };
        rate.map(|rate| ("thread_block: gb_per_second", rate, "a number above 0, from 1e-6 to 1e9"))
            .or_else(|| times("thread_block: start_ns", |rate| rate.start_ns))
            .or_else(|| times("thread_block: message_ns", |rate| rate.message_ns))
    }
}
