//! The time of rounds in which all ranks do the same.

use unisono_lower::Round;

use super::{Linear, TICKS_PER_NS};

/// Nanoseconds of rounds that follow each other: in each the sends leave back to back, the last message flies, and a
/// rank that is still busy with receiving waits for itself. Exact for the postal models (Eq. 1 and 3 of "Recursive
/// multiplying"), an estimate where receives take time too.
pub fn rounds_ns(rounds: &[Round], prices: &Linear) -> f64 {
    let round = |r: &Round| {
        let (send, receive) = (prices.send(r.bytes), prices.receive(r.bytes));
        let m = u64::from(r.messages);
        let apart = send.cpu.max(send.nic).max(receive.cpu).max(receive.nic);
        let last = if m == 0 { 0 } else { (m - 1) * apart + send.flight + receive.cpu };
        let busy = m * (send.cpu + receive.cpu);
        (last.max(busy) + prices.reduce(r.reduced)) * u64::from(r.repeat)
    };
    rounds.iter().map(round).sum::<u64>() as f64 / TICKS_PER_NS
}
