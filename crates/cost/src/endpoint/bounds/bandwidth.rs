//! Bytes through one interface: what some rank must send, or receive, at the price of a byte.
//!
//! An allreduce needs P-1 transfers to combine each byte and P-1 to give it to all, so of 2(P-1) n bytes some rank sends
//! 2(P-1)/P n. Sources: Chan, Heimlich, Purkayastha, van de Geijn, "Collective communication: theory, practice, and
//! experience", 2007, section 2; Patarasuk, Yuan, "Bandwidth optimal all-reduce algorithms", 2009, Theorem 1.

use unisono_collective::Kind;

use super::{EndpointBound, EndpointCase};
use crate::endpoint::TICKS_PER_NS;

pub struct Bandwidth;

impl EndpointBound for Bandwidth {
    fn name(&self) -> &'static str {
        "bandwidth"
    }

    fn reference(&self) -> &'static str {
        "Chan, Heimlich, Purkayastha, van de Geijn, 2007, section 2; Patarasuk and Yuan, 2009, Theorem 1"
    }

    fn assumes(&self) -> &'static str {
        "nothing beyond the model: one interface a rank, bytes neither compressed nor sent twice"
    }

    fn nanoseconds(&self, case: &EndpointCase) -> Option<f64> {
        if case.is_local() {
            return Some(0.0);
        }
        let (others, n) = (f64::from(case.collective.ranks - 1), case.bytes());
        // Bytes that some rank must send, and that some rank must receive.
        let share = others / (others + 1.0);
        let (sent, received) = match case.collective.kind {
            Kind::Broadcast | Kind::Message => (n, n),
            Kind::Reduce => (n * share, n),
            Kind::Scan => (n * share, n),
            Kind::Allreduce => (2.0 * n * share, 2.0 * n * share),
            Kind::Allgather | Kind::Alltoall | Kind::ReduceScatter => (n * others, n * others),
            Kind::Gather => (n, n * others),
            Kind::Scatter => (n * others, n),
            Kind::Barrier => return None,
        };
        let cheapest = case.prices.cheapest();
        let (first, arrived) = (cheapest.send(1), cheapest.receive(1));
        // Whether in long messages or in single bytes, no byte is cheaper than the cheaper of the two.
        let (send_byte, receive_byte) = cheapest.ticks_per_byte();
        let issue = first.cpu.max(first.nic) as f64;
        let after_issue = (first.flight as f64 - issue).max(0.0);
        let first_received = (first.flight + arrived.cpu) as f64;
        let ticks = (sent * send_byte + after_issue).max(first_received + (received - 1.0) * receive_byte);
        Some(ticks / TICKS_PER_NS)
    }
}
