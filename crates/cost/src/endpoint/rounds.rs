//! The time of rounds in which all ranks do the same.

use unisono_lower::Round;

use super::{Linear, TICKS_PER_NS};

/// Nanoseconds of rounds that follow each other: in each the sends leave back to back, the last message flies, and a
/// rank that is still busy with receiving waits for itself. Exact for the postal models (Eq. 1 and 3 of "Recursive
/// multiplying"), an estimate where receives take time too.
pub fn rounds_ns(rounds: &[Round], prices: &Linear) -> f64 {
    let round = |r: &Round| {
        let (send, receive) = (prices.send(r.bytes), prices.receive(r.bytes));
        let [m, repeat, reduce] =
            [u64::from(r.messages), u64::from(r.repeat), prices.reduce(r.reduced)].map(u128::from);
        let apart = send.cpu.max(send.nic).max(receive.cpu).max(receive.nic);
        let hold = u128::from(send.cpu) + u128::from(receive.cpu);
        let flight = u128::from(send.flight) + u128::from(receive.cpu);
        let last = if m == 0 { 0 } else { (m - 1) * u128::from(apart) + flight };
        (last.max(m * hold) + reduce) * repeat
    };
    rounds.iter().map(round).sum::<u128>() as f64 / TICKS_PER_NS
}
