//! Runs of schedules packet by packet, and what their tasks are charged.

use std::time::Instant;

use unisono_base::rounded;
use unisono_cost::endpoint::TICKS_PER_NS;
use unisono_lower::{
    Placement, VerifiedFile,
    tasks::{Charges, with_switches},
};
use unisono_machine::network::{DATA_SHEET, Network};
use unisono_sim::network::{self as packets, Interconnect, SimError};

use crate::{Run, RunError, RunOptions, targets::machine_of};

const ONE_MODEL: &str =
    "queue_depth and noop_probability are a wafer's, and the only model of packets to choose is data-sheet; drop them";

/// Packet by packet, where the schedule is placed.
pub(super) fn simulate(proven: &VerifiedFile, options: &RunOptions) -> Result<Run, RunError> {
    let model = options.model.as_deref();
    if options.for_wafers() || model.is_some_and(|model| model != DATA_SHEET) {
        return Err(RunError::Options(ONE_MODEL));
    }
    let network: &Network = machine_of(proven.file());
    let sheet = model.map(|_| network.data_sheet());
    let network = sheet.as_ref().unwrap_or(network);
    let places = proven.file().placement.as_ref().and_then(Placement::nodes).unwrap_or_default().to_vec();
    let begin = Instant::now();
    let interconnect = Interconnect::new(network)?;
    let graph = with_switches(proven.verified(), (&interconnect.computing, &places), charges(network))?;
    let mut hosts = options.in_ticks()?;
    let ranks = proven.file().schedule.collective().ranks as usize;
    if !hosts.start.is_empty() {
        if hosts.start.len() != ranks {
            return Err(not_of_each_rank(hosts.start.len(), ranks).into());
        }
        // Switches are ready from the beginning.
        hosts.start.resize(graph.rank_count() as usize, 0);
    }
    let options = packets::Options { hosts, places, ..packets::Options::default() };
    let mut run = packets::run(&graph, &interconnect, &options)?;
    run.hosts.finish.truncate(ranks);
    Ok(Run::on_network(run, TICKS_PER_NS, network.planes, begin.elapsed().as_secs_f64()))
}

/// What tasks are charged in picoseconds.
pub(crate) fn charges(network: &Network) -> Charges {
    let copy_per_byte = network.copy_ns_per_byte * TICKS_PER_NS;
    Charges { launch: rounded(network.launch_ns * TICKS_PER_NS), copy_per_byte }
}

fn not_of_each_rank(found: usize, ranks: usize) -> SimError {
    SimError::Unsupported {
        what: "the number of starting times",
        found: found.to_string(),
        accepted: format!("one for each of {ranks} ranks"),
    }
}
