//! Partition: in an allreduce, data crosses the borders between parts of the network.
//!
//! If the ranks are in k parts, at least 2 (k - 1) S bytes of an allreduce of S bytes go from one part to another, over
//! the links that leave the parts ([`unisono_synthesis::partition`]). With boxes as parts this is the bound of the
//! links between boxes, and with single ranks as parts the bound `injection`. Switches that copy or reduce must be
//! inside the parts, otherwise the bound does not apply. Source: Harary and Schwenk, "The communication problem on
//! graphs and digraphs", 1974; for single ranks Patarasuk and Yuan, 2009, Theorem 1.

use unisono_collective::Kind;

use super::NetworkCase;
use crate::{Bound, Time};

pub const PARTITION: Bound = Bound {
    name: "partition",
    reference: "Harary and Schwenk, 1974; Patarasuk and Yuan, 2009, Theorem 1",
    assumes: "bytes neither compressed nor sent twice; switches between the parts neither reduce nor copy",
    time: |problem| {
        let case = NetworkCase::of(problem)?;
        let c = &case.collective;
        if c.kind != Kind::Allreduce {
            return None;
        }
        let bytes = c.bytes() as f64;
        let parts = case.fabric.partition()?;
        let ns = if c.is_local() { 0.0 } else { parts.time() * bytes };
        Some(Time::from_ns(ns / case.fabric.graph().bytes_per_ns()))
    },
    ..Bound::OF_MACHINE
};
