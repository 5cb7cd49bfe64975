//! The sizes of a plan's buffers in grains, and which of them are one memory.

use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_formats::{Facts, ImportError};

use super::{
    plan::{Name, Plan, Protocol},
    program::{Space, Span},
};
use crate::{collectives::Collectives, ordered::gcd};

/// The most grains (smallest spans of equal length) in a chunk if the file does not fix the size.
const GRAINS: u32 = 1 << 10;

pub const COLLECTIVES: Collectives = Collectives { lacks: &[Kind::Gather, Kind::Scatter] };

#[derive(Clone, Debug)]
pub struct Layout {
    /// `None` if the contents of the collective are not known.
    pub collective: Option<Collective>,
    /// Grains of a chunk, and elements of a grain.
    pub grains: u32,
    pub elements: u32,
    /// Bytes of a grain, if the size was asked for.
    grain_bytes: Option<u64>,
    /// Bytes and grains of the unit of pipelines that the others are multiples of, if the size is open.
    unit: (u64, u32),
    /// Chunks of input, output, scratch memory and packets of each GPU.
    chunks: Vec<[u64; 4]>,
    /// The peers of each GPU's port channels.
    pub port_peers: Vec<Vec<u32>>,
    in_place: Option<Kind>,
    is_ll: bool,
}

/// Grains of a chunk, and of the smallest unit of pipelines.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Scale {
    pub grains: u32,
    pub unit: u32,
}

impl Layout {
    /// The layout for the elements asked for or for a scale, or for the fewest elements asked for, or for the fewest
    /// that each thread block of a group and each iteration of a pipeline has one of.
    ///
    /// # Errors
    /// Sizes that do not fit the collective or each other.
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

    /// Bytes of a chunk, if the size was asked for.
    pub fn chunk_bytes(&self) -> Option<u64> {
        Some(self.grain_bytes? * u64::from(self.grains))
    }

    pub fn in_place(&self) -> Option<Kind> {
        self.in_place
    }

    /// Grains of a memory of a GPU.
    pub fn len(&self, gpu: u32, space: Space) -> u32 {
        let chunks = self.chunks[gpu as usize][space as usize];
        u32::try_from(chunks * u64::from(self.grains)).unwrap_or(u32::MAX)
    }

    /// The fault of a slice that ends after `chunks` chunks, if that is outside of its buffer.
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

    /// The first grain of share `index` of `shares`, by the runtime's rule: the first shares get one more.
    pub fn share(&self, grains: u32, index: u32, shares: u32) -> u32 {
        let (least, more) = (grains / shares, grains % shares);
        index.min(shares) * least + index.min(more)
    }

    /// Grains of a pipeline's unit.
    pub fn unit(&self, bytes: u64) -> u32 {
        let (of, grains) = self.grain_bytes.map_or((self.unit.0, u64::from(self.unit.1)), |grain| (grain, 1));
        u32::try_from((bytes / of).saturating_mul(grains).max(1)).unwrap_or(u32::MAX)
    }

    /// Returns the span; input and output are one memory if the plan runs in place.
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

/// Chunks of a message, whose bytes the loader compares with the sizes that a plan serves.
pub fn message_chunks(plan: &Plan) -> Option<u64> {
    let gpu = plan.gpus.first()?;
    Some(u64::from(if plan.collective == "allgather" { gpu.output_chunks } else { gpu.input_chunks }))
}

/// Returns the elements, as MPI counts them, of the only size that a plan serves; `None` if it serves several, or a
/// size that does not divide into its chunks.
pub fn stated_elements(plan: &Plan, facts: &Facts) -> Option<u64> {
    let size = plan.max_message_size.filter(|&most| plan.min_message_size == Some(most) && most > 0)?;
    let kind = COLLECTIVES.kind(&plan.collective)?;
    let per_rank = u64::from(chunks_per_rank(plan, kind).ok()?);
    let parts = message_chunks(plan).filter(|&chunks| chunks > 0)?;
    let (all, width) = (size.checked_mul(per_rank)?, facts.dtype.unwrap_or(Dtype::F32).bytes());
    let elements = all / parts / width;
    (size.is_multiple_of(parts) && (size / parts).is_multiple_of(width) && elements > 0).then_some(elements)
}

/// Elements of a buffer that are checked at most.
const BUFFER: u64 = (u32::MAX / 4) as u64;

/// Returns the fault of the buffers of a GPU that are too large, in chunks of `each` elements.
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

/// Returns the chunks of the buffer that MPI counts: a rank's part, if ranks contribute or keep parts.
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

/// The size that the units of all pipelines are multiples of.
pub fn unit_bytes(plan: &Plan) -> u64 {
    plan.ops().filter_map(|op| op.iter_context).map(|i| i.unit_size).fold(0, gcd).max(1)
}

/// The size of a group that the sizes of all groups divide, as far as it is moderate.
pub fn group_size(plan: &Plan) -> u32 {
    let sizes = plan.ops().filter_map(|op| op.tbg_info).map(|group| u64::from(group.tbg_size.clamp(1, GRAINS)));
    let all = sizes.fold(1, |all, size| (all / gcd(all, size) * size).min(GRAINS.into()));
    u32::try_from(all).unwrap_or(GRAINS)
}

/// Grains with which every thread block of a group has some, and every pipeline two iterations.
fn natural_grains(plan: &Plan) -> u32 {
    let grains = group_size(plan);
    if plan.ops().any(|op| op.name == Name::Pipeline) { 2 * grains } else { grains }
}
