//! A collective on given ranks: its buffer sizes and the contents that each output must end with.
//!
//! Counts follow MPI: `elements` is the whole vector of a broadcast, reduce, allreduce, scan or message; the block that
//! one rank contributes to an allgather or gather; the block that one rank receives from a scatter or reduce-scatter;
//! the block of one pair of ranks of an alltoall. A barrier has one element without meaning, so that its
//! synchronization is a dependency of data.

use unisono_base::{Span, narrow};

use crate::{CollectiveError, Dtype, Kind, Operator};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Collective {
    pub kind: Kind,
    pub ranks: u32,
    pub elements: u32,
    /// The root; 0 if the collective has none.
    pub root: u32,
    pub operator: Operator,
    pub dtype: Dtype,
    /// The number of the caller's elements in one element of the buffers: 1 in schedules that are executed; more in
    /// plans and bounds whose buffers would otherwise have 2^32 elements or more.
    pub unit: u32,
}

/// The required contents of one span of an output. Element `k` of the span results from input elements
/// `input_start + k`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Required {
    pub span: Span,
    pub input_start: u32,
    pub source: Source,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// The input of one rank, unchanged.
    Copy { rank: u32 },
    /// The reduction of the inputs of ranks `0 .. ranks`, each exactly once.
    Reduction { ranks: u32 },
    /// Data of every rank `0 .. ranks`, each at least once (a barrier).
    AtLeastOnce { ranks: u32 },
}

impl Collective {
    /// The maximum number of ranks of a collective. The limit keeps a damaged file from causing tables of billions of
    /// rows.
    pub const MAX_RANKS: u32 = 1 << 22;
    /// The maximum number of elements of a buffer in a plan. The largest buffer times the number of ranks is also
    /// limited, to 2^54 elements, so that sums over ranks and links fit 64 bits.
    pub const MAX_PLANNED: u64 = 1 << 40;

    /// Returns whether no data has to travel.
    pub fn is_local(&self) -> bool {
        self.ranks == 1 || (self.elements == 0 && self.kind != Kind::Barrier)
    }

    /// Returns whether results depend on the order in which operands are combined, because each combination rounds.
    pub fn rounds(&self) -> bool {
        let is_exact = self.dtype.is_integer() || matches!(self.operator, Operator::Min | Operator::Max);
        self.kind.reduces() && self.kind != Kind::Barrier && !is_exact
    }

    /// # Errors
    /// Returns an error if there are no ranks, or more than [`Self::MAX_RANKS`].
    pub fn check_ranks(ranks: u32) -> Result<(), CollectiveError> {
        match ranks {
            0 => Err(CollectiveError::NoRanks),
            1..=Self::MAX_RANKS => Ok(()),
            _ => Err(CollectiveError::TooManyRanks { ranks, most: Self::MAX_RANKS }),
        }
    }

    /// Describes a collective whose buffers have fewer than 2^32 elements each.
    ///
    /// # Errors
    /// Returns an error if there are no ranks or too many, the root is not a rank (also if the collective has none), a
    /// reduction's operator is not defined for the datatype, or a buffer has 2^32 elements or more.
    pub fn new(
        kind: Kind,
        ranks: u32,
        elements: u64,
        root: u64,
        operator: Operator,
        dtype: Dtype,
    ) -> Result<Self, CollectiveError> {
        Self::check_ranks(ranks)?;
        if root >= u64::from(ranks) {
            return Err(CollectiveError::Root { root, ranks });
        }
        let operator = match operator.check(dtype) {
            // Nothing reads the sums of a barrier, so any operator of the datatype serves.
            Err(_) if kind == Kind::Barrier => Operator::Sum,
            Err(error) if kind.reduces() => return Err(error),
            _ => operator,
        };
        let elements = if kind == Kind::Barrier { 1 } else { elements };
        let buffer = buffer(kind, ranks, elements);
        if buffer > u128::from(u32::MAX) {
            let (kind, most) = (kind.name(), u32::MAX.into());
            return Err(CollectiveError::TooLarge { kind, elements, ranks, buffer, most });
        }
        Ok(Self {
            kind,
            ranks,
            elements: narrow(elements),
            root: if kind.has_root() { narrow(root) } else { 0 },
            operator,
            dtype,
            unit: 1,
        })
    }

    /// Describes a collective for plans and bounds. If a buffer has 2^32 elements or more, elements are counted in the
    /// smallest unit of 2, 4, 8, ... with which the count is less than 2^32.
    ///
    /// # Errors
    /// Returns an error if a buffer exceeds the limits of [`Self::MAX_PLANNED`], the elements are not a multiple of
    /// that unit, or [`Self::new`] does.
    pub fn planned(
        kind: Kind,
        ranks: u32,
        elements: u64,
        root: u64,
        operator: Operator,
        dtype: Dtype,
    ) -> Result<Self, CollectiveError> {
        let elements = if kind == Kind::Barrier { 1 } else { elements };
        let (buffer, most) =
            (buffer(kind, ranks, elements), Self::MAX_PLANNED.min((1 << 54) / u64::from(ranks.max(1))));
        if buffer > u128::from(most) {
            return Err(CollectiveError::TooLarge { kind: kind.name(), elements, ranks, buffer, most });
        }
        let unit = narrow::<u64>(buffer.div_ceil(u128::from(u32::MAX)).max(1)).next_power_of_two();
        if !elements.is_multiple_of(unit) {
            return Err(CollectiveError::Uneven { kind: kind.name(), elements, ranks, unit });
        }
        Ok(Self { unit: narrow(unit), ..Self::new(kind, ranks, elements / unit, root, operator, dtype)? })
    }

    /// Returns the bytes of one element of the buffers.
    pub fn element_bytes(&self) -> u64 {
        self.dtype.bytes() * u64::from(self.unit)
    }

    /// Returns the most elements for which a schedule can be built on these ranks: its largest buffer must have fewer
    /// than 2^32.
    pub fn most_elements(&self) -> u64 {
        narrow(u128::from(u32::MAX) / buffer(self.kind, self.ranks, 1))
    }

    /// Returns the bytes of [`Self::elements`].
    pub fn bytes(&self) -> u64 {
        u64::from(self.elements) * self.element_bytes()
    }

    /// Returns the number of the caller's elements: [`Self::elements`] times [`Self::unit`].
    pub fn count(&self) -> u64 {
        u64::from(self.elements) * u64::from(self.unit)
    }

    /// Returns the number of elements of a rank's read-only input buffer.
    pub fn input_len(&self, rank: u32) -> u32 {
        let n = self.elements;
        match self.kind {
            Kind::Broadcast => self.only_if(rank == self.root, n),
            Kind::Message => self.only_if(rank == self.sender(), n),
            Kind::Scatter => self.only_if(rank == self.root, n * self.ranks),
            Kind::ReduceScatter | Kind::Alltoall => n * self.ranks,
            Kind::Allreduce | Kind::Allgather | Kind::Gather | Kind::Reduce | Kind::Scan | Kind::Barrier => n,
        }
    }

    /// Returns the number of elements of a rank's output buffer. The root of a broadcast has an empty output: its input
    /// is the result.
    pub fn output_len(&self, rank: u32) -> u32 {
        let n = self.elements;
        match self.kind {
            Kind::Broadcast => self.only_if(rank != self.root, n),
            Kind::Reduce | Kind::Message => self.only_if(rank == self.root, n),
            Kind::Gather => self.only_if(rank == self.root, n * self.ranks),
            Kind::Allgather | Kind::Alltoall => n * self.ranks,
            Kind::Allreduce | Kind::Scatter | Kind::ReduceScatter | Kind::Scan | Kind::Barrier => n,
        }
    }

    /// Returns the rank whose vector a collective of kind [`Kind::Message`] carries: the last rank, or rank 0 if the
    /// root is the last.
    pub fn sender(&self) -> u32 {
        if self.root + 1 == self.ranks { 0 } else { self.ranks - 1 }
    }

    /// Returns the required contents of the output of `rank`, as ascending spans that cover it; no span is empty.
    pub fn required(&self, rank: u32) -> impl Iterator<Item = Required> + use<> {
        let (n, p) = (self.elements, self.ranks);
        let len = self.output_len(rank);
        // Outputs of gather, allgather and alltoall have one block per rank, others one block.
        let (blocks, block) = match self.kind {
            Kind::Gather | Kind::Allgather | Kind::Alltoall if len > 0 => (p, n),
            _ => (u32::from(len > 0), len),
        };
        let (kind, root, sender) = (self.kind, self.root, self.sender());
        (0..blocks).map(move |b| {
            let (source, input_start) = match kind {
                Kind::Broadcast => (Source::Copy { rank: root }, 0),
                Kind::Message => (Source::Copy { rank: sender }, 0),
                Kind::Scatter => (Source::Copy { rank: root }, rank * n),
                Kind::Gather | Kind::Allgather => (Source::Copy { rank: b }, 0),
                Kind::Alltoall => (Source::Copy { rank: b }, rank * n),
                Kind::Reduce | Kind::Allreduce => (Source::Reduction { ranks: p }, 0),
                Kind::ReduceScatter => (Source::Reduction { ranks: p }, rank * n),
                Kind::Scan => (Source::Reduction { ranks: rank + 1 }, 0),
                Kind::Barrier => (Source::AtLeastOnce { ranks: p }, 0),
            };
            Required { span: Span::new(b * block, block), input_start, source }
        })
    }

    fn only_if(&self, part: bool, len: u32) -> u32 {
        if part { len } else { 0 }
    }
}

/// Returns the number of elements of the largest buffer of any rank.
fn buffer(kind: Kind, ranks: u32, elements: u64) -> u128 {
    match kind {
        Kind::Allgather | Kind::Gather | Kind::Scatter | Kind::ReduceScatter | Kind::Alltoall => {
            u128::from(elements) * u128::from(ranks)
        }
        _ => u128::from(elements),
    }
}
