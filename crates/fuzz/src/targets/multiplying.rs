//! Schedules of recursive multiplying in users' notation. The first line may be a number of ranks.

use unisono_algorithms::{
    Case, Params, Ranks, find,
    multiplying::{StagePrices, Stages},
};
use unisono_collective::{Collective, Dtype, Kind, Operator};

use crate::{FuzzTarget, uses};

pub const TARGET: FuzzTarget = FuzzTarget::new(
    "multiplying",
    "reads a schedule of recursive multiplying for several numbers of ranks, prices and builds it",
    run,
);

fn run(input: &[u8]) -> bool {
    let text = uses::text(input);
    let (ranks, text) = match text.split_once('\n') {
        Some((first, rest)) => {
            (first.trim().parse().ok().filter(|&n: &u32| (1..=Collective::MAX_RANKS).contains(&n)), rest)
        }
        None => (None, &*text),
    };
    let mut accepted = false;
    for ranks in [Some(1), Some(7), Some(24), Some(96), ranks].into_iter().flatten() {
        let read = Stages::parse(text, ranks);
        if let Ok(stages) = &read {
            accepted = true;
            let printed = stages.to_string();
            assert_eq!(Stages::parse(&printed, ranks).as_ref(), Ok(stages), "'{printed}' reads back");
            let price = StagePrices { latency_ns: 1.0, send_ns: 0.5, reduce_ns: 0.1 }.total_ns(stages);
            assert!(price.is_finite() && price >= 0.0, "a price of {price}");
        }
        if ranks > 200 {
            continue;
        }
        let c = Collective::new(Kind::Allreduce, ranks, 16, 0, Operator::Sum, Dtype::F32).expect("ranks above 0");
        let case = Case::on_ranks(c, Ranks::default());
        let algorithm = find("recursive-multiplying").expect("it is registered");
        let params = Params::new().with("schedule", text);
        if algorithm.supports(&case, &params).is_ok() {
            let built = algorithm.build(&case, &params).expect("what is supported is built").schedule;
            uses::schedule(&built);
        }
    }
    accepted
}
