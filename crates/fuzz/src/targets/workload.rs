//! Training workloads.

use unisono_machine::Machine;
use unisono_machine::network::Network;
use unisono_plan::workload::{NetworkWorkload, Workload, iterate, tasks};

use crate::{FuzzTarget, uses};

pub const TARGET: FuzzTarget =
    FuzzTarget::new("workload", "reads a workload in TOML, and computes an iteration on a network", run)
        .seeds(&[("workloads", ".toml")])
        .quick_runs(150);

fn run(input: &[u8]) -> bool {
    let Some(workload) = uses::read(Workload::from_toml(&uses::text(input), "fuzz")) else { return false };
    let machine = Machine::preset("hx2mesh-small").unwrap().get::<Network>().unwrap().clone();
    let Ok(on) = NetworkWorkload::new(&workload, &machine) else { return true };
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
