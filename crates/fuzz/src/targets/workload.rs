//! Training workloads.

use unisono_machine::Machine;
use unisono_machine::network::Network;
use unisono_plan::Part;
use unisono_plan::workload::graph::{Level, Prices, Step};
use unisono_plan::workload::{NetworkWorkload, Workload, iterate, tasks};

use crate::{FuzzTarget, uses};

pub const TARGET: FuzzTarget =
    FuzzTarget::new("workload", "reads a workload in TOML, and computes an iteration on a network", run)
        .seeds(&[("workloads", ".toml")])
        .quick_runs(150);

fn run(input: &[u8]) -> bool {
    let Some(workload) = uses::read(Workload::from_toml(&uses::text(input), "fuzz")) else { return false };
    let described = Machine::preset("hx2mesh-small").unwrap();
    let machine = described.get::<Network>().unwrap().clone();
    let Ok(on) = NetworkWorkload::new(&workload, &machine) else { return true };
    if workload.is_concurrent() {
        let graph = workload.program();
        for level in ["model", "flow"] {
            let level = Level::named(level, "fuzz").unwrap();
            let part = Part::Places(on.places().to_vec());
            let Ok(prices) = Prices::new(&graph, &described, &part) else { return true };
            drop(Step { prices, accelerator: None, overlap: true, level }.report());
        }
        return true;
    }
    for overlap in [false, true] {
        if let Ok(iteration) = iterate(&workload, overlap, |c| on.take(&workload, c)) {
            drop(iteration);
        }
    }
    if workload.accelerators() <= 64 {
        drop(tasks(&workload, true, &on));
    }
    true
}
