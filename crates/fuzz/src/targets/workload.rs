//! Training workloads.

use unisono_machine::Machine;
use unisono_plan::workload::{OnNetwork, Workload, iterate, tasks};

use crate::{Target, uses};

pub struct WorkloadText;

impl Target for WorkloadText {
    fn name(&self) -> &'static str {
        "workload"
    }

    fn summary(&self) -> &'static str {
        "reads a workload in TOML, and computes an iteration on a network"
    }

    fn seeds(&self) -> &'static [(&'static str, &'static str)] {
        &[("workloads", ".toml")]
    }

    fn quick_runs(&self) -> u32 {
        150
    }

    fn run(&self, input: &[u8]) -> bool {
        let workload = match Workload::from_toml(&uses::text(input), "fuzz") {
            Ok(workload) => workload,
            Err(error) => {
                assert!(error.to_string().starts_with("fuzz"), "the error does not name its file: {error}");
                return false;
            }
        };
        let Ok(Machine::Network(machine)) = Machine::preset("hx2mesh-small") else { panic!("a preset is a network") };
        let Ok(on) = OnNetwork::new(&workload, &machine) else { return true };
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
}
