//! Simulations of schedules in packets, and the costs of tasks other than messages.

use std::time::Instant;

use unisono_base::{TaskId, narrow, rounded};
use unisono_cost::endpoint::TICKS_PER_NS;
use unisono_lower::{
    File, Placement, VerifiedFile,
    tasks::{Charges, Kind, Passes, with_switches, with_thread_blocks},
};
use unisono_machine::network::{BlockRate, DATA_SHEET, Network, Protocol};
use unisono_sim::network::{self as packets, Interconnect, SimError};

use crate::{Run, RunError, RunOptions, targets::machine_of};

const ONE_MODEL: &str =
    "queue_depth and noop_probability are a wafer's, and the only model of packets to choose is data-sheet; drop them";

/// Simulates a schedule in packets, on the nodes of its placement.
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
    let mut interconnect = Interconnect::new(network)?;
    let mut hosts = options.in_ticks()?;
    let graph = match proven.file().blocks.as_ref().zip(network.thread_block) {
        None => with_switches(proven.verified(), (&interconnect.computing, &places), charges(network))?,
        Some((blocks, block)) => {
            let ticks = |protocol| Some(block.of(protocol).pass_ns_per_byte()? * TICKS_PER_NS);
            let passes = Passes::new(blocks, Protocol::ALL.map(ticks));
            let most = |of: fn(BlockRate) -> f64| {
                blocks.protocols().into_iter().map(|protocol| of(block.of(protocol))).fold(0.0, f64::max)
            };
            let start_ns = network.launch_ns + most(|rate| rate.start_ns);
            let on = (&interconnect.computing, places.as_slice());
            let charges = Charges { launch: rounded(start_ns * TICKS_PER_NS), ..charges(network) };
            let graph = with_thread_blocks(proven.verified(), on, charges, passes)?;
            interconnect.timing.signal_ps += rounded(most(|rate| rate.message_ns) * TICKS_PER_NS);
            // A thread block waits until all its data is on the link.
            let all = (0..graph.task_count()).map(|task| TaskId(narrow(task)));
            hosts.leaving = all.filter(|&task| graph.task(task).kind == Kind::Send).collect();
            graph
        }
    };
    let ranks = proven.file().schedule.collective().ranks as usize;
    if !hosts.start.is_empty() {
        if hosts.start.len() != ranks {
            return Err(not_of_each_rank(hosts.start.len(), ranks).into());
        }
        // Switches are ready from the start.
        hosts.start.resize(graph.rank_count() as usize, 0);
    }
    let options = packets::Options { hosts, places, ..packets::Options::default() };
    let mut run = packets::run(&graph, &interconnect, &options)?;
    run.hosts.finish.truncate(ranks);
    Ok(Run::on_network(run, TICKS_PER_NS, network.working_planes(), begin.elapsed().as_secs_f64()))
}

/// Returns the time before a rank begins, and the time per copied byte, in picoseconds.
pub fn notes(file: &File) -> Vec<String> {
    let Some(blocks) = &file.blocks else { return Vec::new() };
    let unserved = blocks.unserved().map(str::to_owned);
    let network = file.machine.as_ref().and_then(|machine| machine.get::<Network>());
    let Some(network) = network else { return unserved.into_iter().collect() };
    let stated = network.thread_block.unwrap_or_default();
    let bare = blocks.protocols().into_iter().filter(|&protocol| stated.of(protocol).gb_per_second.is_none());
    let note = |protocol: Protocol| {
        format!(
            "thread blocks have no rate in protocol {} on {}, so these times count links only; state it in [thread_block] \
             of the machine file",
            protocol.name(),
            network.name
        )
    };
    unserved.into_iter().chain(bare.map(note)).collect()
}

/// Returns the time before a rank begins, and the time of a copied byte, in picoseconds.
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
