//! The time of rounds in which all ranks send, receive and reduce equal amounts.

use unisono_lower::{Round, Waits};

use super::{LevelPrices, TICKS_PER_NS};

/// Returns the nanoseconds of consecutive rounds at the prices of the outermost level. A round with [`Waits::Pipeline`]
/// takes the time of the busiest rank, on its CPU or on one direction of its interface. Any other round without
/// messages takes the time of its reduction. A round with [`Waits::All`] takes the time of its reduction plus the
/// longer of two times: of the sends back to back plus the flight of the last message, or of the CPU for all messages.
/// A round with [`Waits::Lanes`] takes the longer of two times: of the work of a rank, or of the flight plus the
/// reduction of one message. The result is exact for the postal models if all ranks do the same (Eq. 1 and 3 of
/// "Recursive multiplying"), otherwise an estimate.
pub fn rounds_ns(rounds: &[Round], prices: &LevelPrices) -> f64 {
    rounds.iter().map(|round| ticks(round, prices) * u128::from(round.repeat)).sum::<u128>() as f64 / TICKS_PER_NS
}

fn ticks(round: &Round, prices: &LevelPrices) -> u128 {
    let prices = prices.outermost(round.bytes);
    let (send, receive) = (prices.send(round.bytes), prices.receive(round.bytes));
    let [messages, reduce] = [u64::from(round.messages), prices.reduce(round.reduced)].map(u128::from);
    if messages == 0 && !matches!(round.waits, Waits::Pipeline { .. }) {
        return reduce;
    }
    let flight = u128::from(send.flight) + u128::from(receive.cpu);
    let on_cpu = if prices.uses_cpus() { receive.cpu } else { 0 };
    let busy = |sends: u128, receives: u128| {
        let of = |sent: u64, received: u64| sends * u128::from(sent) + receives * u128::from(received);
        (of(send.cpu, on_cpu) + reduce).max(of(send.nic, 0)).max(of(0, receive.nic))
    };
    match round.waits {
        Waits::All => {
            let apart = u128::from(send.cpu.max(send.nic).max(receive.cpu).max(receive.nic));
            let hold = u128::from(send.cpu) + u128::from(on_cpu);
            ((messages - 1) * apart + flight).max(messages * hold) + reduce
        }
        Waits::Lanes => busy(messages, messages).max(flight + reduce / messages),
        Waits::Pipeline { receives } => busy(messages, receives.into()),
    }
}
