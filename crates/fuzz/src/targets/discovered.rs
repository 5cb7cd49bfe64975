//! Programs of tasks, converted to programs of ranks.

use unisono_machine::Machine;
use unisono_plan::{
    Part,
    workload::{
        discovered,
        graph::{Clock, Level, ProgramPrices, Step},
    },
};
use unisono_workload::Accelerator;

use crate::{FuzzTarget, uses};

pub const TARGET: FuzzTarget =
    FuzzTarget::new("discovered", "discovers the communication of tasks among ranks, and times what the ranks do", run)
        .seeds(&[("crates/fuzz/corpus/task-program", ".json")])
        .quick_runs(150);

fn run(input: &[u8]) -> bool {
    let text = uses::text(input);
    drop(discovered(&text, "fuzz", 2, true));
    let mut accepted = false;
    for ranks in [1, 3, 8] {
        let Ok(graph) = discovered(&text, "fuzz", ranks, false) else { continue };
        accepted = true;
        assert_eq!(graph.ranks, ranks);
        graph.check_messages().expect("every message that is sent is received");
        for overlap in [true, false] {
            let clock = Clock::new(&graph, overlap, |_, node| 1.0 + (node % 3) as f64);
            drop(clock.expect("no rank waits for ever"));
        }
        let machine = Machine::preset("fattree-small").unwrap();
        let Ok(prices) = ProgramPrices::new(&graph, &machine, &Part::All) else { continue };
        let accelerator = Some(Accelerator { operations_per_second: 1e12, memory_bytes_per_second: 1e12 });
        if let Ok(report) = (Step { prices, accelerator, overlap: true, level: Level::Model }).report() {
            let of = &report.iteration;
            let parts = of.compute_seconds + of.exposed_seconds + of.waiting_seconds;
            assert!((parts - of.seconds).abs() <= 1e-6 * of.seconds, "{parts} s of {} s", of.seconds);
        }
    }
    accepted
}
