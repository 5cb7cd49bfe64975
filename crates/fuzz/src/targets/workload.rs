//! Training workloads.

use unisono_machine::Machine;
use unisono_machine::network::Network;
use unisono_plan::Part;
use unisono_plan::workload::graph::{Level, ProgramPrices, Step};
use unisono_plan::workload::{Workload, places};

use crate::{FuzzTarget, uses};

pub const TARGET: FuzzTarget =
    FuzzTarget::new("workload", "reads a workload in TOML, and computes an iteration on a network", run)
        .seeds(&[("workloads", ".toml")])
        .quick_runs(150);

fn run(input: &[u8]) -> bool {
    let Some(workload) = uses::read(Workload::from_toml(&uses::text(input), "fuzz")) else { return false };
    let machine = Machine::preset("hx2mesh-small").unwrap();
    let network: &Network = machine.get().unwrap();
    let Ok(places) = places(&workload, &network.name, &[32, 32]) else { return true };
    let (graph, part) = (workload.program(), Part::Places(places));
    for (level, overlap) in [("model", true), ("model", false), ("flow", true), ("packet", true)] {
        if level == "packet" && workload.accelerators() > 64 {
            continue;
        }
        let Ok(prices) = ProgramPrices::new(&graph, &machine, &part) else { return true };
        drop(Step { prices, accelerator: None, overlap, level: Level::named(level, "fuzz").unwrap() }.report());
    }
    true
}
