//! The sizes of a plan's buffers in grains, and which of them share memory.

use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_formats::{Facts, ImportError};

use super::{
    plan::{Name, Plan, Protocol},
    program::{Space, Span},
};
use crate::{collectives::Collectives, ordered::gcd};

/// The upper limit of the common multiple of the sizes of groups of thread blocks, which determines the number of
/// grains of a chunk.
const GRAINS: u32 = 1 << 10;

pub const COLLECTIVES: Collectives = Collectives { lacks: &[Kind::Gather, Kind::Scatter] };

#[derive(Clone, Debug)]
pub struct Layout {
    /// The collective; `None` if it is not known.
    pub collective: Option<Collective>,
    /// The number of grains of a chunk.
    pub grains: u32,
    /// The number of elements of a grain.
    pub elements: u32,
    /// The bytes of a grain, if a size was requested.
    grain_bytes: Option<u64>,
    /// The largest unit that divides the units of all pipelines, in bytes and in grains; used if no size was requested.
    unit: (u64, u32),
    /// For each GPU, the lengths of its input, output, scratch memory and packet memory in chunks.
    chunks: Vec<[u64; 4]>,
    /// The peers of each GPU's port channels.
    pub port_peers: Vec<Vec<u32>>,
    in_place: Option<Kind>,
    is_ll: bool,
}

/// The numbers of grains of a chunk, and of the smallest unit of pipelines.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Scale {
    pub grains: u32,
    pub unit: u32,
}

impl Layout {
    /// Returns the layout for the requested elements or for a scale. By default, a chunk has the fewest grains that
    /// give each thread block of a group one grain in each of two iterations of a pipeline; without pipelines, one
    /// grain in total.
    ///
    /// # Errors
    /// Returns an error if sizes do not fit the collective or each other.
    pub fn new(plan: &Plan, facts: &Facts, scale: Option<Scale>) -> Result<Self, ImportError> {
        let fail = |message: String| ImportError::new(0, message);
        let ranks = u32::try_from(plan.gpus.len()).ok().filter(|&n| n > 0 && n <= 1 << 16);
        let ranks = ranks.ok_or_else(|| fail(format!("gpus: {} GPUs; accepted are 1 to 65536", plan.gpus.len())))?;
        let kind = COLLECTIVES.kind(&plan.collective);
        let per_rank = kind.map(|kind| chunks_per_rank(plan, kind)).transpose()?;
        let dtype = facts.dtype.unwrap_or(Dtype::F32);
        let alignment = u64::from(plan.buffer_alignment);
        let (grains, elements, grain_bytes) = match (facts.elements, per_rank) {
            (Some(n), Some(chunks)) => {
                let each = n / u64::from(chunks);
                if n == 0 || !n.is_multiple_of(u64::from(chunks)) {
                    let message = format!(
                        "{n} elements do not divide into the {chunks} chunks of the plan; accepted are multiples"
                    );
                    return Err(fail(message));
                }
                let wide =
                    alignment.is_multiple_of(dtype.bytes()) && (each * dtype.bytes()).is_multiple_of(alignment.max(1));
                let scale = if wide && alignment > 0 { alignment / dtype.bytes() } else { 1 };
                let fits = |n: u64| u32::try_from(n).map_err(|_| fail(format!("{n} elements in a chunk are too many")));
                (fits(each / scale)?, fits(scale)?, Some(scale * dtype.bytes()))
            }
            _ => (scale.map_or_else(|| natural_grains(plan), |s| s.grains), 1, None),
        };
        let collective = match (kind, per_rank) {
            (Some(kind), Some(chunks)) => {
                let operator = facts.operator.unwrap_or(Operator::Sum);
                let n = u64::from(chunks) * u64::from(grains) * u64::from(elements);
                let root = facts.root.or(plan.root).unwrap_or(0);
                Some(Collective::new(kind, ranks, n, root, operator, dtype).map_err(|e| fail(e.to_string()))?)
            }
            _ => None,
        };
        let is_ll = plan.protocol == Protocol::LL;
        let mut chunks = Vec::with_capacity(plan.gpus.len());
        for (g, gpu) in plan.gpus.iter().enumerate() {
            let room = u64::from(gpu.scratch_chunks) * if is_ll { 2 } else { 1 };
            let all = [u64::from(gpu.input_chunks), u64::from(gpu.output_chunks), room, room / 2];
            if let Some(message) = too_large(all, u64::from(grains) * u64::from(elements), facts, dtype) {
                return Err(fail(format!("gpus[{g}]: {message}")));
            }
            chunks.push(all);
        }
        let peers = |gpu: &super::plan::Gpu| {
            let ports = gpu.channels.iter().filter(|c| c.channel_type == super::plan::ChannelType::Port);
            ports.flat_map(|c| c.peers().to_vec()).collect()
        };
        let port_peers = plan.gpus.iter().map(peers).collect();
        let in_place = kind.filter(|_| plan.inplace);
        let unit = (unit_bytes(plan), scale.map_or(1, |s| s.unit));
        Ok(Self { collective, grains, elements, grain_bytes, unit, chunks, port_peers, in_place, is_ll })
    }

    /// Returns the bytes of a chunk, if a size was requested.
    pub fn chunk_bytes(&self) -> Option<u64> {
        Some(self.grain_bytes? * u64::from(self.grains))
    }

    pub fn in_place(&self) -> Option<Kind> {
        self.in_place
    }

    /// Returns the length of a memory of a GPU in grains.
    pub fn len(&self, gpu: u32, space: Space) -> u32 {
        let chunks = self.chunks[gpu as usize][space as usize];
        u32::try_from(chunks * u64::from(self.grains)).unwrap_or(u32::MAX)
    }

    /// Checks that a memory has at least `chunks` chunks. If it has fewer, returns the code and the message of the
    /// fault.
    pub fn outside(&self, gpu: u32, space: Space, chunks: u64) -> Option<(&'static str, String)> {
        let has = self.chunks[gpu as usize][space as usize];
        if chunks <= has {
            return None;
        }
        let name = space.name();
        Some(match space {
            Space::Packets if !self.is_ll => (
                "scratch",
                format!(
                    "packets up to chunk {chunks} take {} chunks of scratch memory, and gpu {gpu} has {}; packets need protocol LL",
                    2 * chunks,
                    2 * has
                ),
            ),
            Space::Scratch | Space::Packets => (
                "scratch",
                format!("scratch memory of gpu {gpu} is too small: {chunks} chunks are used and {has} are there"),
            ),
            _ => ("range", format!("the {name} of gpu {gpu} has {has} chunks, and chunk {} is used", chunks - 1)),
        })
    }

    /// Returns the first grain of share `index`, if `grains` grains are divided into `shares` shares. As in the
    /// runtime, the first shares are one grain longer if the division has a remainder.
    pub fn share(&self, grains: u32, index: u32, shares: u32) -> u32 {
        let (least, more) = (grains / shares, grains % shares);
        index.min(shares) * least + index.min(more)
    }

    /// Returns the grains of a pipeline's unit of `bytes`, at least 1.
    pub fn unit(&self, bytes: u64) -> u32 {
        let (of, grains) = self.grain_bytes.map_or((self.unit.0, u64::from(self.unit.1)), |grain| (grain, 1));
        u32::try_from((bytes / of).saturating_mul(grains).max(1)).unwrap_or(u32::MAX)
    }

    /// Maps a span of input or output to the memory that both share if the plan runs in place; otherwise returns the
    /// span.
    pub fn canonical(&self, span: Span) -> Span {
        let shift = |space, of: Space| Span { space, start: span.start + span.gpu * self.len(span.gpu, of), ..span };
        match (self.in_place, span.space) {
            (Some(Kind::Allgather), Space::Input) => shift(Space::Output, Space::Input),
            (Some(Kind::ReduceScatter), Space::Output) => shift(Space::Input, Space::Output),
            (Some(Kind::ReduceScatter) | None, _) | (_, Space::Output | Space::Scratch | Space::Packets) => span,
            (_, Space::Input) => Span { space: Space::Output, ..span },
        }
    }
}

/// Returns the number of chunks of a message, whose bytes the loader compares with the accepted sizes; `None` without
/// GPUs.
pub fn message_chunks(plan: &Plan) -> Option<u64> {
    let gpu = plan.gpus.first()?;
    Some(u64::from(if plan.collective == "allgather" { gpu.output_chunks } else { gpu.input_chunks }))
}

/// Returns the number of elements, as MPI counts them, if the plan accepts a single size. `None` if it accepts several
/// sizes, or if its chunks do not divide the size.
pub fn stated_elements(plan: &Plan, facts: &Facts) -> Option<u64> {
    let size = plan.max_message_size.filter(|&most| plan.min_message_size == Some(most) && most > 0)?;
    let kind = COLLECTIVES.kind(&plan.collective)?;
    let per_rank = u64::from(chunks_per_rank(plan, kind).ok()?);
    let parts = message_chunks(plan).filter(|&chunks| chunks > 0)?;
    let (all, width) = (size.checked_mul(per_rank)?, facts.dtype.unwrap_or(Dtype::F32).bytes());
    let elements = all / parts / width;
    (size.is_multiple_of(parts) && (size / parts).is_multiple_of(width) && elements > 0).then_some(elements)
}

/// The largest buffer that is checked, in elements.
const BUFFER: u64 = (u32::MAX / 4) as u64;

/// Returns the fault of the first buffer of a GPU beyond the limit, with chunks of `each` elements; `None` if none is.
fn too_large(chunks: [u64; 4], each: u64, facts: &Facts, dtype: Dtype) -> Option<String> {
    let elements = |chunks: u64| u128::from(chunks) * u128::from(each);
    let (&chunks, space) = chunks.iter().zip(Space::ALL).find(|(chunks, _)| elements(**chunks) > u128::from(BUFFER))?;
    let name = if matches!(space, Space::Scratch | Space::Packets) { "scratch memory" } else { space.name() };
    if facts.elements.is_none() {
        return Some(format!("the {name} has {chunks} chunks, which is more than memory holds"));
    }
    let (elements, bytes) = (elements(chunks), elements(chunks) * u128::from(dtype.bytes()));
    Some(format!(
        "the {name} has {elements} elements of {dtype} at this size, {bytes} bytes; a buffer is checked up to {BUFFER} \
         elements, and the runtime addresses 4294967295 bytes of it"
    ))
}

/// Returns the number of chunks whose elements MPI counts: of a rank's part if each rank has a part, or else of the
/// whole buffer.
fn chunks_per_rank(plan: &Plan, kind: Kind) -> Result<u32, ImportError> {
    let ranks = plan.gpus.len() as u64;
    let (of_input, of_output) = match kind {
        Kind::Allgather => (1, ranks),
        Kind::ReduceScatter => (ranks, 1),
        Kind::Alltoall => (ranks, ranks),
        _ => (1, 1),
    };
    let stated = plan.gpus.first().map_or(0, |g| if of_input == 1 { g.input_chunks } else { g.output_chunks });
    let chunks = if kind == Kind::Alltoall { u64::from(stated) / ranks } else { u64::from(stated) };
    for (g, gpu) in plan.gpus.iter().enumerate() {
        let found = (u64::from(gpu.input_chunks), u64::from(gpu.output_chunks));
        if chunks == 0 || found != (chunks * of_input, chunks * of_output) {
            let message = format!(
                "gpus[{g}]: {} chunks of input and {} of output are no {} on {ranks} GPUs; required are {of_input} to {of_output}, the same on all GPUs",
                found.0, found.1, plan.collective
            );
            return Err(ImportError::new(0, message));
        }
    }
    u32::try_from(chunks).map_err(|_| ImportError::new(0, format!("{chunks} chunks are too many")))
}

/// Returns the greatest common divisor of the units of all pipelines, in bytes; 1 without pipelines.
pub fn unit_bytes(plan: &Plan) -> u64 {
    plan.ops().filter_map(|op| op.iter_context).map(|i| i.unit_size).fold(0, gcd).max(1)
}

/// Returns the least common multiple of the sizes of all groups, up to `GRAINS`.
pub fn group_size(plan: &Plan) -> u32 {
    let sizes = plan.ops().filter_map(|op| op.tbg_info).map(|group| u64::from(group.tbg_size.clamp(1, GRAINS)));
    let all = sizes.fold(1, |all, size| (all / gcd(all, size) * size).min(GRAINS.into()));
    u32::try_from(all).unwrap_or(GRAINS)
}

/// Returns a number of grains that gives every thread block of a group a grain, and every pipeline two iterations.
fn natural_grains(plan: &Plan) -> u32 {
    let grains = group_size(plan);
    if plan.ops().any(|op| op.name == Name::Pipeline) { 2 * grains } else { grains }
}
