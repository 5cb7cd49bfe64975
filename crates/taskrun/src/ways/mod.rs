//! The ways to carry out a collective: by a plan, by the MPI library, or by messages between pairs of ranks.
//!
//! The `Way` of an operation is chosen once, from facts that all ranks have, so that all ranks choose the same; each
//! repetition in a loop only packs and starts. Each file has the ways of some patterns. [`choose`] lists the ways of
//! each pattern in the order of attempts; messages between pairs carry out operations that none of them supports.

mod about;
mod exchanges;
mod gathers;
pub mod library_call;
mod reductions;
mod routes;
pub mod sums;
mod world_call;

use std::sync::Arc;

use unisono_discover::Pattern;

use about::About;
pub use about::{MpiReduction, Reducing};
pub use routes::Routes;
pub use world_call::WorldCall;

use self::{library_call::LibraryCall, sums::PairSums};
use crate::{error::RunError, memory::Rows};

/// A way to carry out a collective.
#[derive(Clone)]
pub enum Way {
    /// A plan of the host.
    World(Arc<WorldCall>),
    Library(Arc<LibraryCall>),
    /// Messages between pairs of ranks: the sends and the receives.
    Pairs(Rows, Rows),
    Sums(Arc<PairSums>),
}

impl Way {
    /// Returns whether the collective uses the memory of the array itself, so that nothing else may access the array
    /// meanwhile.
    pub fn is_in_place(&self) -> bool {
        match self {
            Self::World(call) => call.in_place().is_some(),
            Self::Library(call) => call.is_in_place(),
            Self::Pairs(..) | Self::Sums(_) => false,
        }
    }
}

/// The `Way` of a collective, and its properties for traces.
#[derive(Clone)]
pub struct Route {
    pub way: Way,
    /// The bytes that all ranks together receive from other ranks.
    pub bytes: u64,
    /// The name of the schedule of messages that is executed, as in predictions; `None` for a plan or a call of the
    /// library, and if each rank lists only its own messages.
    pub schedule: Option<Arc<str>>,
}

/// The choice for an operation, before communicators and plans are known.
struct Chosen {
    /// The call for a plan of the host; `None` if no plan can carry out the operation.
    world: Option<WorldCall>,
    library: LibraryCall,
}

impl From<LibraryCall> for Chosen {
    fn from(library: LibraryCall) -> Self {
        Self { world: None, library }
    }
}

type Tried = Result<Option<Chosen>, RunError>;

/// Returns the first choice that supports the operation; `None` if messages between pairs carry it out.
fn choose(about: &About<'_>) -> Tried {
    let ways: &[fn(&About<'_>) -> Tried] = match about.operation.pattern {
        Pattern::Gather => &[gathers::gather],
        Pattern::Allgather => &[gathers::world_allgather, gathers::gather],
        Pattern::Broadcast => &[gathers::world_broadcast, gathers::broadcast, exchanges::alltoall],
        Pattern::Scatter => &[exchanges::scatter, exchanges::alltoall],
        Pattern::Alltoall => &[exchanges::world_alltoall, exchanges::alltoall],
        Pattern::Reduce | Pattern::Allreduce => &[reductions::world_reduction, reductions::reduction],
        Pattern::ReduceScatter => &[reductions::world_reduce_scatter, reductions::reduce_scatter],
        Pattern::Halo => &[],
    };
    ways.iter().find_map(|way| way(about).transpose()).transpose()
}
