//! Files of plans for GPUs: their times, and the choice of the fastest form.
//!
//! A schedule can be written in several forms, which differ in protocol and number of thread blocks. If the machine has
//! rates of thread blocks, each protocol is written with one share, read back and simulated at 1, 2, 4, ... times the
//! rates, since n thread blocks that share the work move n times as much. The fastest forms are then written and
//! simulated as they are. There is one form if the user chose the protocol or the number of thread blocks, or if the
//! machine has no such rates.

use unisono_base::{InstrId, LaneId, narrow};
use unisono_cost::Time;
use unisono_emit::{Asked, Choices, Emitter, Files, IMPORTERS, Refused};
use unisono_lower::{File, Placement, VerifiedFile};
use unisono_machine::network::{Network, Protocol};
use unisono_schedule::verify::Method;

use crate::{RunOptions, simulate};

/// The least share of the time that twice as many thread blocks must save.
const WORTH: f64 = 0.05;
/// The most packets of the largest buffer when forms are compared. The time of the chosen form counts all packets.
const PACKETS: u64 = 1 << 10;
/// The most instructions of a schedule whose forms are compared.
pub(crate) const MOST_INSTRUCTIONS: usize = 1 << 10;
/// The most bytes of the largest buffer for which MSCCL++ plans with packets are tried. Their proof orders each packet
/// against every other one (17 GB at 64 KiB).
const MOST_PACKET_BYTES: u64 = 1 << 14;
/// The most forms of a schedule that are written and simulated as they are.
const MOST_WRITTEN: usize = 3;

/// A form of the files of a schedule, with an estimate of its time.
pub(crate) struct Form {
    choices: Choices,
    pub(crate) seconds: f64,
}

/// Writes the files of a target in the form that is fastest by simulation. Also returns its time, if the target has
/// thread blocks and the schedule is on a network.
///
/// # Errors
/// The target cannot express the schedule, or cannot do so with the user's choices.
pub fn written(
    emitter: &dyn Emitter,
    proven: &VerifiedFile,
    choices: &Choices,
) -> Result<(Files, Option<Time>), Refused> {
    let forms = if choices.protocol.is_none() && choices.thread_blocks.is_none() {
        forms(emitter, proven, choices)
    } else {
        Vec::new()
    };
    written_as(emitter, proven, choices, &forms)
}

/// As [`written`], with forms that [`forms`] returned.
pub(crate) fn written_as(
    emitter: &dyn Emitter,
    proven: &VerifiedFile,
    choices: &Choices,
    forms: &[Form],
) -> Result<(Files, Option<Time>), Refused> {
    let network = network(emitter, proven.file());
    let time = |files: &Files| {
        let read = read(emitter, files, proven.file())?;
        Some(Time { seconds: simulated(&read, network?)?, cycles: None })
    };
    let (mut best, mut looked) = (None::<(Files, Time)>, 0);
    for form in forms {
        let is_best = best.as_ref().is_some_and(|(_, time)| time.seconds <= form.seconds);
        if is_best || looked >= MOST_WRITTEN {
            break;
        }
        let Ok(files) = emitter.emit_as(proven, &form.choices) else { continue };
        looked += 1;
        if let Some(found) = time(&files)
            && best.as_ref().is_none_or(|(_, time)| found.seconds < time.seconds)
        {
            best = Some((files, found));
        }
    }
    if let Some((files, time)) = best {
        return Ok((files, Some(time)));
    }
    let files = emitter.emit_as(proven, choices)?;
    let found = time(&files);
    Ok((files, found))
}

/// Returns the forms of the files of a schedule, the fastest by estimate first. Empty if the target has no thread
/// blocks, the schedule is not on a network or is too large, or no form has a time.
pub(crate) fn forms(emitter: &dyn Emitter, proven: &VerifiedFile, choices: &Choices) -> Vec<Form> {
    let file = proven.file();
    let Some(network) = network(emitter, file) else { return Vec::new() };
    if file.schedule.instr_count() > MOST_INSTRUCTIONS {
        return Vec::new();
    }
    let packet_bytes = u32::try_from(largest_buffer(file) / PACKETS).unwrap_or(u32::MAX).max(network.packet_bytes);
    let buffer_bytes = network.buffer_bytes.max(2 * u64::from(packet_bytes));
    let coarse = Network { packet_bytes, buffer_bytes, ..network.clone() };
    let rates = network.thread_block.unwrap_or_default();
    let single = |form: &Choices| {
        let files = emitter.emit_as(proven, &Choices { thread_blocks: Some(1), ..*form }).ok()?;
        read(emitter, &files, file)
    };
    let packets = emitter.name() != "mscclpp" || largest_buffer(file) <= MOST_PACKET_BYTES;
    let is_rated = |&p: &Protocol| rates.of(p).gb_per_second.is_some() && (packets || p == Protocol::Simple);
    let rated: Vec<_> = emitter.protocols().iter().copied().filter(is_rated).collect();
    let mut forms = Vec::new();
    if rated.is_empty() {
        let seconds = single(choices).and_then(|read| simulated(&read, &coarse));
        forms.extend(seconds.map(|seconds| Form { choices: *choices, seconds }));
    }
    for protocol in rated {
        let form = Choices { protocol: Some(protocol), ..*choices };
        let Some(read) = single(&form) else { continue };
        let most = emitter.thread_blocks() / thread_blocks(&read).max(1);
        let mut last = f64::INFINITY;
        for blocks in (0..=most.max(1).ilog2()).map(|n| 1 << n) {
            let shared = Network { thread_block: Some(rates.times(blocks)), ..coarse.clone() };
            let Some(seconds) = simulated(&read, &shared).filter(|found| *found < last * (1.0 - WORTH)) else { break };
            last = seconds;
            forms.push(Form { choices: Choices { thread_blocks: Some(blocks), ..form }, seconds });
        }
    }
    forms.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    forms
}

/// Returns the most thread blocks of a GPU.
fn thread_blocks(file: &File) -> u32 {
    let (schedule, Some(blocks)) = (&file.schedule, &file.blocks) else { return 0 };
    let is_block = |lane: &usize| {
        let mut ids = schedule.lane_instrs(LaneId::new(*lane));
        ids.any(|id| blocks.protocol(InstrId::new(id)).is_some())
    };
    let most = schedule.all_nodes().map(|node| schedule.lanes(node).filter(is_block).count()).max();
    narrow(most.unwrap_or(0))
}

/// Returns the network of a file, if the target writes thread blocks.
fn network<'a>(emitter: &dyn Emitter, file: &'a File) -> Option<&'a Network> {
    if emitter.protocols().is_empty() { None } else { file.machine.as_ref()?.get::<Network>() }
}

fn largest_buffer(file: &File) -> u64 {
    let (schedule, c) = (&file.schedule, file.schedule.collective());
    let ranks = schedule.all_nodes().take(c.ranks as usize);
    let most = ranks.map(|node| c.input_len(node.0).max(c.output_len(node.0))).max();
    u64::from(most.unwrap_or(0)) * c.dtype.bytes()
}

/// Reads files back and places their schedule as `of`; `None` if they cannot be read.
fn read(emitter: &dyn Emitter, files: &Files, of: &File) -> Option<File> {
    let importer = IMPORTERS.iter().find(|importer| importer.name() == emitter.name())?;
    let c = of.schedule.collective();
    let asked = Asked { elements: Some(u64::from(c.elements)), dtype: Some(c.dtype), ..Asked::default() };
    let read = importer.import(files.first()?.1.text()?, &asked).ok()?;
    let nodes = of.placement.as_ref().and_then(Placement::nodes);
    let nodes = nodes.filter(|nodes| nodes.len() == read.schedule.node_count());
    Some(File { placement: nodes.map(|nodes| Placement::Nodes(nodes.to_vec())), ..read })
}

/// Returns the simulated seconds of a file on a network; `None` if it does not run there.
fn simulated(file: &File, network: &Network) -> Option<f64> {
    let file = File { machine: Some(network.clone().into()), ..file.clone() };
    let proven = VerifiedFile::new(&file, Method::Auto).ok()?;
    simulate(&proven, &RunOptions::default()).ok().map(|run| run.seconds)
}
