//! Plans for GPUs in the form in which they are written: the time of a file, and the form that takes the least.
//!
//! A schedule becomes files of several forms, by protocol and number of thread blocks. Where the machine has rates of
//! thread blocks, each form is written, read back and simulated. Files whose thread blocks the user chose have one
//! form, and so have all files for other machines.

use unisono_cost::Time;
use unisono_emit::{Asked, Choices, Emitter, Files, IMPORTERS, Refused};
use unisono_lower::{File, Placement, VerifiedFile};
use unisono_machine::network::Network;
use unisono_schedule::verify::Method;

use crate::{RunOptions, simulate};

/// Twice as many thread blocks are worth it if they save this share of the time.
const WORTH: f64 = 0.01;
/// Thread blocks that are tried, at most.
const MOST_BLOCKS: u32 = 64;
/// Packets of the largest buffer, at most, where forms are compared. The time of the chosen form counts all.
const PACKETS: u64 = 1 << 10;
/// Instructions of a schedule of which several forms are written.
const MOST_INSTRUCTIONS: usize = 1 << 10;

/// Writes the files of a target in the form that takes the least time by simulation; gives that time if the target has
/// thread blocks and the schedule is on a network.
///
/// # Errors
/// The target cannot express the schedule, or not as the user chose.
pub fn written(
    emitter: &dyn Emitter,
    proven: &VerifiedFile,
    choices: &Choices,
) -> Result<(Files, Option<Time>), Refused> {
    let Some(network) = network(emitter, proven.file()) else { return Ok((emitter.emit_as(proven, choices)?, None)) };
    let is_chosen = choices.protocol.is_some() || choices.thread_blocks.is_some();
    let Some(rates) = network.thread_block.filter(|_| !is_chosen) else {
        let files = emitter.emit_as(proven, choices)?;
        let time = time(emitter, &files, proven.file(), network);
        return Ok((files, time));
    };
    let bytes = largest_buffer(proven.file());
    let packet_bytes = u32::try_from(bytes / PACKETS).unwrap_or(u32::MAX).max(network.packet_bytes);
    let buffer_bytes = network.buffer_bytes.max(2 * u64::from(packet_bytes));
    let coarse = Network { packet_bytes, buffer_bytes, ..network.clone() };
    let first = emitter.emit_as(proven, choices);
    let of_first = first.as_ref().ok().and_then(|files| time(emitter, files, proven.file(), &coarse));
    let mut best = (first, of_first);
    let is_small = proven.file().schedule.instr_count() <= MOST_INSTRUCTIONS;
    // Plans without a time have no form that is known to be better.
    let is_timed = best.0.is_err() || best.1.is_some();
    let protocols =
        emitter.protocols().iter().filter(|&&p| is_small && is_timed && rates.of(p).gb_per_second.is_some());
    for &protocol in protocols {
        let mut last = f64::INFINITY;
        for blocks in (0..=MOST_BLOCKS.ilog2()).map(|n| 1 << n) {
            let form = Choices { protocol: Some(protocol), thread_blocks: Some(blocks), ..*choices };
            let Ok(files) = emitter.emit_as(proven, &form) else { break };
            let Some(found) = time(emitter, &files, proven.file(), &coarse) else { break };
            if found.seconds >= last * (1.0 - WORTH) {
                break;
            }
            last = found.seconds;
            if best.1.is_none_or(|best| found.seconds < best.seconds * (1.0 - WORTH)) {
                best = (Ok(files), Some(found));
            }
        }
    }
    let files = best.0?;
    let exact =
        if packet_bytes == network.packet_bytes { best.1 } else { time(emitter, &files, proven.file(), network) };
    Ok((files, exact))
}

/// The network that a file is on, if the target's files are of thread blocks.
fn network<'a>(emitter: &dyn Emitter, file: &'a File) -> Option<&'a Network> {
    if emitter.protocols().is_empty() { None } else { file.machine.as_ref()?.get::<Network>() }
}

fn largest_buffer(file: &File) -> u64 {
    let (schedule, c) = (&file.schedule, file.schedule.collective());
    let ranks = schedule.all_nodes().take(c.ranks as usize);
    let most = ranks.map(|node| c.input_len(node.0).max(c.output_len(node.0))).max();
    u64::from(most.unwrap_or(0)) * c.dtype.bytes()
}

/// The time of files on a network, where the schedule was placed; `None` if they cannot be read back or run.
fn time(emitter: &dyn Emitter, files: &Files, of: &File, network: &Network) -> Option<Time> {
    let importer = IMPORTERS.iter().find(|importer| importer.name() == emitter.name())?;
    let c = of.schedule.collective();
    let asked = Asked { elements: Some(u64::from(c.elements)), dtype: Some(c.dtype), ..Asked::default() };
    let read = importer.import(files.first()?.1.text()?, &asked).ok()?;
    let nodes = of.placement.as_ref().and_then(Placement::nodes);
    let nodes = nodes.filter(|nodes| nodes.len() == read.schedule.node_count());
    let placement = nodes.map(|nodes| Placement::Nodes(nodes.to_vec()));
    let file = File { placement, machine: Some(network.clone().into()), ..read };
    let proven = VerifiedFile::new(&file, Method::Auto).ok()?;
    let run = simulate(&proven, &RunOptions::default()).ok()?;
    Some(Time { seconds: run.seconds, cycles: None })
}
