//! The trace of one rank: its kernels sorted by time, and the nodes that represent them.

use unisono_base::{excerpt, interrupt::poll, keyed, narrow};
use unisono_collective::Kind;

use super::events::{Arguments, Distributed, Event, Trace, element_bytes};
use crate::{
    Compute,
    error::{Place, Wrong},
};

/// A collective of a trace, with the name of its group and, if the trace lists them, the group's ranks.
#[derive(Clone, PartialEq, Debug)]
pub struct Met {
    pub kind: Kind,
    /// The number of bytes, counted as in MPI.
    pub bytes: u64,
    /// Set if the number of ranks does not divide the elements of an all-to-all: the bytes of the input, and the number
    /// of ranks.
    pub rounded: Option<(u64, u64)>,
    pub element_bytes: u32,
    pub group: String,
    pub ranks: Option<Vec<u32>>,
}

#[derive(Clone)]
pub enum Step {
    Compute(Compute),
    Collective(Met),
    /// A message to rank `peer` if `sends` is true, otherwise a message from it.
    Message {
        sends: bool,
        peer: u32,
        bytes: u64,
    },
}

pub struct Node {
    /// The index of the event in the file.
    pub event: u64,
    pub name: String,
    pub step: Step,
    pub after: Vec<u32>,
}

pub struct RankTrace {
    pub rank: u32,
    /// The number of ranks of the program, if the trace states it.
    pub world: Option<u32>,
    pub nodes: Vec<Node>,
    pub unknown: Vec<String>,
}

/// A kernel with its start and end in microseconds.
struct Kernel {
    event: u64,
    name: String,
    begin: f64,
    end: f64,
    /// The collective or the message; `None` for compute.
    communicates: Option<Step>,
}

pub fn read(bytes: &[u8], strict: bool) -> Result<RankTrace, Wrong> {
    let trace: Trace = keyed::json(bytes).map_err(|e| Wrong::json("it is not a trace of PyTorch's profiler", &e))?;
    let info = trace.distributed.as_ref();
    let (rank, world) = (info.and_then(|info| info.rank), info.and_then(|info| info.world_size));
    let mut read = RankTrace { rank: rank.unwrap_or(0), world, nodes: Vec::new(), unknown: Vec::new() };
    if rank.is_none() && trace.events.iter().any(|(_, event)| met_name(event).is_some()) {
        return Err(Wrong::file(
            "it has collectives, and no distributedInfo with the rank; record it with a process group",
        ));
    }
    if let Some(world) = world.filter(|&world| read.rank >= world) {
        return Err(Wrong::file(format!("it is of rank {}, and its world_size is {world}", read.rank)));
    }
    let mut kernels = Vec::new();
    for (number, event) in &trace.events {
        poll();
        let number = *number;
        let wrong = |message| Wrong { place: Place::Node { rank: read.rank, node: number }, message };
        let (begin, end) = event.times().map_err(wrong)?;
        let communicates = match met_name(event) {
            None if is_of_nccl(&event.name) => {
                // The kernel communicates, but without metadata its collective is unknown.
                let name = format!("{} without metadata", excerpt(event.name.split('(').next().unwrap_or_default()));
                if strict {
                    return Err(wrong(format!("'{name}' is not known; without --strict it is counted and left out")));
                }
                read.unknown.push(name);
                continue;
            }
            None => None,
            Some((name @ ("send" | "recv"), arguments)) => Some(message(name == "send", arguments).map_err(wrong)?),
            Some((name, arguments)) => match kind(name) {
                Some(kind) => {
                    if arguments.has_unequal_parts(kind).map_err(wrong)? {
                        let name = format!("{} of unequal parts, taken as equal ones", excerpt(name));
                        if strict {
                            return Err(wrong(format!(
                                "the time of '{name}' is not known; without --strict it is counted"
                            )));
                        }
                        read.unknown.push(name);
                    }
                    Some(Step::Collective(met(kind, arguments, info).map_err(wrong)?))
                }
                None if strict => {
                    let message =
                        format!("the collective '{}' is not known; without --strict it is counted", excerpt(name));
                    return Err(wrong(message));
                }
                None => {
                    read.unknown.push(excerpt(name));
                    continue;
                }
            },
        };
        kernels.push(Kernel { event: number, name: event.name.to_string(), begin, end, communicates });
    }
    kernels.sort_by(|a, b| a.begin.total_cmp(&b.begin).then(a.event.cmp(&b.event)));
    read.nodes = nodes(kernels);
    Ok(read)
}

/// Returns whether the name of a kernel begins like those of NCCL or RCCL.
fn is_of_nccl(name: &str) -> bool {
    let begins = |prefix: &str| name.get(..prefix.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(prefix));
    begins("nccl") || begins("rccl")
}

fn met_name<'a>(event: &'a Event) -> Option<(&'a str, &'a Arguments)> {
    let arguments = event.args.as_ref()?;
    Some((arguments.collective.as_deref()?, arguments))
}

/// Returns the kind of a collective by its name, such as `allreduce`, `_allgather_base` or
/// `reduce_scatter_tensor_coalesced`: the name of the kind is a prefix of the letters of the name.
fn kind(name: &str) -> Option<Kind> {
    let letters: String = name.chars().filter(char::is_ascii_alphabetic).collect::<String>().to_ascii_lowercase();
    let kinds = [
        ("allreduce", Kind::Allreduce),
        ("allgather", Kind::Allgather),
        ("reducescatter", Kind::ReduceScatter),
        ("alltoall", Kind::Alltoall),
        ("broadcast", Kind::Broadcast),
        ("barrier", Kind::Barrier),
        ("reduce", Kind::Reduce),
        ("gather", Kind::Gather),
        ("scatter", Kind::Scatter),
    ];
    kinds.into_iter().find(|(begin, _)| letters.starts_with(begin)).map(|(_, kind)| kind)
}

fn met(kind: Kind, arguments: &Arguments, info: Option<&Distributed>) -> Result<Met, String> {
    let (input, output) = arguments.elements()?;
    let group = arguments.group_name()?;
    let configured = info.map_or(Ok(None), |info| info.ranks_of(&group))?;
    let ranks = configured.map_or_else(|| arguments.group_ranks(), |ranks| Ok(Some(ranks)))?;
    let listed = ranks.as_ref().map(|ranks| ranks.len() as u64);
    let size = arguments.group_size()?.or(listed).filter(|&size| size > 0);
    if let (Some(size), Some(listed)) = (size, listed)
        && size != listed
    {
        return Err(format!("'Group size' is {size}, and 'Process Group Ranks' lists {listed}"));
    }
    let needed = |elements: Option<u64>, name| elements.ok_or_else(|| format!("a collective has no '{name}'"));
    let mut split = None;
    let elements = match kind {
        Kind::Barrier => 0,
        Kind::Alltoall => {
            let size = size.ok_or("a collective has neither 'Group size' nor 'Process Group Ranks'")?;
            let all = needed(input, "In msg nelems")?;
            split = Some((all, size)).filter(|_| !all.is_multiple_of(size));
            all.div_ceil(size)
        }
        Kind::ReduceScatter | Kind::Scatter => needed(output, "Out msg nelems")?,
        // Only the root may have an input, so the larger of input and output is read.
        Kind::Broadcast => needed(input.max(output), "In msg nelems")?,
        _ => needed(input, "In msg nelems")?,
    };
    let (bytes, element_bytes) = bytes(arguments, elements)?;
    let rounded = split.map(|(all, size)| (all.saturating_mul(element_bytes.into()), size));
    Ok(Met { kind, bytes, rounded, element_bytes, group, ranks })
}

/// Returns the bytes of `elements` elements, and of one element. Calls without elements, such as barriers, need no
/// type.
fn bytes(arguments: &Arguments, elements: u64) -> Result<(u64, u32), String> {
    let dtype = match arguments.dtype.as_deref() {
        Some(dtype) => dtype,
        None if elements == 0 => "Byte",
        None => return Err("a collective or a message has no 'dtype'".to_owned()),
    };
    let each = element_bytes(dtype).ok_or_else(|| format!("dtype '{}' is not known", excerpt(dtype)))?;
    let all = elements.checked_mul(each.into()).ok_or("a collective has more than 2^64 bytes")?;
    Ok((all, each))
}

/// Reads a message between two ranks. The profiler counts its elements at both ends.
fn message(sends: bool, arguments: &Arguments) -> Result<Step, String> {
    let (input, output) = arguments.elements()?;
    let elements = input.max(output).ok_or("a message has no 'In msg nelems'")?;
    Ok(Step::Message { sends, peer: arguments.peer(sends)?, bytes: bytes(arguments, elements)?.0 })
}

/// Returns the nodes for kernels, which must be sorted by start time: a node for each kernel, and a node for each gap
/// that the host caused. A node lists the nodes for which it waits.
fn nodes(kernels: Vec<Kernel>) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::with_capacity(kernels.len());
    // The ends of computes and of collectives so far, ascending, each with its node.
    let mut computed: Vec<(f64, u32)> = Vec::new();
    let mut communicated: Vec<(f64, u32)> = Vec::new();
    let Some(first) = kernels.first().map(|kernel| kernel.begin) else { return nodes };
    for Kernel { event, name, begin, end, communicates } in kernels {
        let next = |nodes: &Vec<Node>| narrow::<u32>(nodes.len());
        if let Some(step) = communicates {
            let ended = computed.partition_point(|&(ended, _)| ended <= begin);
            let after = ended.checked_sub(1).map(|last| computed[last].1).into_iter().collect();
            let place = communicated.partition_point(|&(other, _)| other <= end);
            communicated.insert(place, (end, next(&nodes)));
            nodes.push(Node { event, name, step, after });
            continue;
        }
        let idle_from = computed.last().map_or(first, |&(ended, _)| ended);
        let mut late_from = idle_from;
        let mut after = Vec::new();
        if begin > idle_from {
            let ended = communicated.partition_point(|&(ended, _)| ended <= begin);
            let last = ended.checked_sub(1).map(|last| communicated[last]);
            if let Some((ended, node)) = last.filter(|&(ended, _)| ended > idle_from) {
                late_from = ended;
                after.push(node);
            }
        }
        let seconds = |from: f64, to: f64| Compute::Measured { seconds: (to - from).max(0.0) * 1e-6 };
        if begin > late_from {
            let late = Step::Compute(seconds(late_from, begin));
            nodes.push(Node { event, name: "host".to_owned(), step: late, after: std::mem::take(&mut after) });
        }
        // A kernel that ends before an earlier kernel ends adds no time.
        let step = Step::Compute(seconds(begin.max(idle_from), end));
        computed.push((end.max(idle_from), next(&nodes)));
        nodes.push(Node { event, name, step, after });
    }
    nodes
}
