//! Files of plans for GPUs: their times, and the choice of the fastest form.
//!
//! A schedule can be written in several forms, which differ in protocol and number of thread blocks. If the machine has
//! rates of thread blocks, a draft of each protocol with as many thread blocks as are useful is simulated. Then drafts
//! with fewer thread blocks follow, as long as these cost little time, because thread blocks take processors from
//! programs. The chosen form is written, read back and simulated. There is only one form if the user chose the protocol
//! or the number of thread blocks, or if the machine has no such rates.

use unisono_base::parallel;
use unisono_collective::Operator;
use unisono_cost::Time;
use unisono_formats::{Emitter, Facts, Files, Refused};
use unisono_gpu::{Choices, GpuFormat};
use unisono_lower::{File, Placement, VerifiedFile};
use unisono_machine::network::{BlockRate, Network, Protocol};
use unisono_schedule::verify::{Method, Proof};

use crate::{RunOptions, simulate};

/// Fewer thread blocks are preferred as long as they take at most this multiple of the shortest time.
const SLOWER: f64 = 1.02;
/// Twice as many thread blocks are tried only if they save at least this fraction of the time.
const WORTH: f64 = 0.05;
/// The most packets into which the largest buffer is cut when forms are compared. The final time is that of all
/// packets.
const PACKETS: u64 = 1 << 10;
/// The most instructions of a schedule whose forms are compared.
const MOST_INSTRUCTIONS: usize = 1 << 13;
/// [`MOST_INSTRUCTIONS`] for MSCCL++, whose plans take longer to read back.
const MOST_OF_MSCCLPP: usize = 1 << 12;
/// If only one form is timed, the limits [`MOST_INSTRUCTIONS`] and [`MOST_OF_MSCCLPP`] are multiplied by this.
const MORE_OF_ONE: usize = 4;
/// The most bytes of the largest buffer for which the packet protocols of MSCCL++ are tried. Their proof orders each
/// packet against every other packet, which takes 17 GB of memory at 64 KiB.
const MOST_PACKET_BYTES: u64 = 1 << 14;

/// A form of the files of a schedule, with its simulated time in seconds. The packets of the simulation are coarse
/// ([`PACKETS`]).
pub(crate) struct Form {
    choices: Choices,
    pub(crate) seconds: f64,
    /// The instructions of all files read back to find this form.
    pub(crate) instructions: usize,
}

/// Writes the files of a target, for GPUs in the form that is fastest by simulation. Also returns the time of that
/// form, if the schedule is on a network.
///
/// # Errors
/// Returns an error if the target cannot express the schedule with the user's choices.
pub fn written(
    emitter: &dyn Emitter,
    proven: &VerifiedFile,
    choices: &Choices,
) -> Result<(Files, Option<Time>), Refused> {
    let Some(format) = unisono_gpu::named(emitter.name()) else {
        if *choices == Choices::default() {
            return Ok((emitter.emit(proven)?, None));
        }
        let reason = "it has no plans in place and no boxes of GPUs; only mscclpp has these choices";
        return Err(Refused::new(emitter.name(), reason));
    };
    let is_free = choices.protocol.is_none() && choices.thread_blocks.is_none();
    let form = if is_free { fastest_form(format, proven, choices) } else { None };
    written_as(format, proven, choices, form.as_ref())
}

/// Writes and times a schedule in a form from [`fastest_form`], or with the given choices if there is no such form.
pub(crate) fn written_as(
    format: &dyn GpuFormat,
    proven: &VerifiedFile,
    choices: &Choices,
    form: Option<&Form>,
) -> Result<(Files, Option<Time>), Refused> {
    let files = match form {
        // The proof of a written file may find faults that its draft did not show.
        Some(form) => format.emit_as(proven, &form.choices).or_else(|_| format.emit_as(proven, choices))?,
        None => format.emit_as(proven, choices)?,
    };
    let time = network(proven.file()).and_then(|network| {
        let read = read(format, &files, proven.file())?;
        Some(Time { seconds: simulated(&read, network, None)?, cycles: None })
    });
    Ok((files, time))
}

/// Returns the form of the fastest protocol, with the fewest thread blocks that take at most [`SLOWER`] times as long;
/// For a large schedule, or without rates of thread blocks, returns the form of `choices`. `None` if the schedule is
/// even larger or is not on a network, or if no form has a time.
pub(crate) fn fastest_form(format: &dyn GpuFormat, proven: &VerifiedFile, choices: &Choices) -> Option<Form> {
    let file = proven.file();
    let network = network(file)?;
    let is_mscclpp = Emitter::name(format) == "mscclpp";
    let (count, most) = (file.schedule.instr_count(), if is_mscclpp { MOST_OF_MSCCLPP } else { MOST_INSTRUCTIONS });
    if count > MORE_OF_ONE * most {
        return None;
    }
    let coarse = coarse(file, network);
    let rates = network.thread_block.unwrap_or_default();
    let packets = !is_mscclpp || largest_buffer(file) <= MOST_PACKET_BYTES;
    let is_rated = |&p: &Protocol| rates.of(p).gb_per_second.is_some() && (packets || p == Protocol::Simple);
    let drafts = format.drafts(proven);
    let timed = |choices: Choices| {
        let read = placed(drafts(&choices).ok()?, file);
        let seconds = simulated(&read, &coarse, Some(proven.verified().proof()))?;
        Some(Form { choices, seconds, instructions: read.schedule.instr_count() })
    };
    let rated: Vec<Protocol> = format.protocols().iter().copied().filter(is_rated).collect();
    if rated.is_empty() || count > most {
        return timed(*choices);
    }
    let form_of = |&protocol: &Protocol| {
        let most = useful_blocks(file, network, rates.of(protocol)).min(format.thread_blocks()).max(1);
        let counts = (0..=most.ilog2()).rev().map(|n| 1 << n);
        let mut forms = counts
            .filter_map(|blocks| timed(Choices { protocol: Some(protocol), thread_blocks: Some(blocks), ..*choices }));
        let mut chosen = forms.next()?;
        let mut least = chosen.seconds;
        for form in forms {
            let instructions = chosen.instructions + form.instructions;
            if form.seconds > least * SLOWER {
                chosen.instructions = instructions;
                break;
            }
            least = least.min(form.seconds);
            chosen = Form { instructions, ..form };
        }
        Some(chosen)
    };
    parallel::map(&rated, form_of).flatten().reduce(faster)
}

fn faster(a: Form, b: Form) -> Form {
    let instructions = a.instructions + b.instructions;
    Form { instructions, ..if b.seconds < a.seconds { b } else { a } }
}

/// Returns the number of thread blocks, a power of two, at which twice as many thread blocks would save at most the
/// fraction [`WORTH`] of the time. The time of n blocks is `message_ns + signal_ns` + (time in which one block receives
/// and sends the largest buffer) / n. Returns `u32::MAX` if the rate is unlimited or both constants are 0.
fn useful_blocks(file: &File, network: &Network, rate: BlockRate) -> u32 {
    let fixed_ns = rate.message_ns + network.signal_ns;
    let (Some(ns_per_byte), true) = (rate.pass_ns_per_byte(), fixed_ns > 0.0) else { return u32::MAX };
    let shared_ns = largest_buffer(file) as f64 * 2.0 * ns_per_byte;
    // Twice as many blocks as n save shared / 2n of the time fixed + shared / n.
    let most = shared_ns * (0.5 - WORTH) / (WORTH * fixed_ns);
    (0..31).map(|power| 1 << power).find(|&n| f64::from(n) >= most).unwrap_or(u32::MAX)
}

/// Returns the network with packets coarse enough for the file's largest buffer ([`PACKETS`]).
fn coarse(file: &File, network: &Network) -> Network {
    let packet_bytes = u32::try_from(largest_buffer(file) / PACKETS).unwrap_or(u32::MAX).max(network.packet_bytes);
    let buffer_bytes = network.buffer_bytes.max(2 * u64::from(packet_bytes));
    Network { packet_bytes, buffer_bytes, ..network.clone() }
}

fn network(file: &File) -> Option<&Network> {
    file.machine.as_ref()?.get()
}

fn largest_buffer(file: &File) -> u64 {
    let (schedule, c) = (&file.schedule, file.schedule.collective());
    let ranks = schedule.all_nodes().take(c.ranks as usize);
    let most = ranks.map(|node| c.input_len(node.0).max(c.output_len(node.0))).max();
    u64::from(most.unwrap_or(0)) * c.dtype.bytes()
}

/// Reads files back; returns `None` if they cannot be read.
fn read(format: &dyn GpuFormat, files: &Files, of: &File) -> Option<File> {
    let c = of.schedule.collective();
    let facts = Facts { elements: Some(u64::from(c.elements)), dtype: Some(c.dtype), ..Facts::default() };
    format.import(files.first()?.1.text()?, &facts).ok().map(|read| placed(read, of))
}

/// Places a schedule that was read back on the nodes of the file `of`.
fn placed(read: File, of: &File) -> File {
    let nodes = of.placement.as_ref().and_then(Placement::nodes);
    let nodes = nodes.filter(|nodes| nodes.len() == read.schedule.node_count());
    File { placement: nodes.map(|nodes| Placement::Nodes(nodes.to_vec())), ..read }
}

/// Returns the simulated seconds of a file on a network; `None` if the file does not run on the network, or if the
/// expressions of its results differ from those of the proof `of`. Expressions of minima and maxima are not compared,
/// because swapped operands give other expressions with equal results.
fn simulated(file: &File, network: &Network, of: Option<&Proof>) -> Option<f64> {
    let file = File { machine: Some(network.clone().into()), ..file.clone() };
    let proven = VerifiedFile::new(&file, Method::Auto).ok()?;
    let swaps = matches!(file.schedule.collective().operator, Operator::Min | Operator::Max);
    if of.is_some_and(|of| !swaps && of.expression_class != proven.verified().proof().expression_class) {
        return None;
    }
    simulate(&proven, &RunOptions::default()).ok().map(|run| run.seconds)
}
