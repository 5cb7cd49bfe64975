//! The routes of a program's collectives, each found once and prepared for each run.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use unisono_base::BufferId;
use unisono_discover::{DirectExchange, DiscoverError, Discovery, Operation, Proofs};
use unisono_mpi::{Layout, Parts};

use super::{
    Chosen, Reducing, Route, Way, about::About, choose, library_call::LibraryCall, sums::PairSums,
    world_call::WorldCall,
};
use crate::{
    error::RunError,
    host::Host,
    layer::MessageLayer,
    memory::{Memory, Rows, parts_of},
};

/// The maximum number of stored routes.
const MOST_KEPT: usize = 1 << 14;

/// The address of an operation, the array, and the reduction, if there is one.
type Key = (usize, u32, Option<Reducing>);

/// A route that was found, with the possible `Way`s.
struct Known {
    /// The operation, stored so that its address is not reused.
    operation: Arc<Operation>,
    world: Option<Arc<WorldCall>>,
    /// The way to carry out the operation unless the host has a plan for `world`: a call of the MPI library, or
    /// messages between pairs of ranks.
    otherwise: Otherwise,
    bytes: u64,
    schedule: Option<Arc<str>>,
}

enum Otherwise {
    /// A call whose communicator is not yet created, and its participants.
    Draft(Box<LibraryCall>, Vec<u32>),
    Ready(Way),
}

/// The routes of a program.
#[derive(Default)]
pub struct Routes {
    known: FxHashMap<Key, Known>,
    /// True if messages between pairs of ranks replace all collectives.
    by_messages: bool,
}

/// The reason why no route was found: an error of the run, or a schedule of messages that was not proved, perhaps only
/// on this rank.
enum Failure {
    Run(RunError),
    Unproved(DiscoverError),
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        Self::Run(error)
    }
}

impl Routes {
    pub fn new(by_messages: bool) -> Self {
        Self { known: FxHashMap::default(), by_messages }
    }

    /// Returns the routes found so far, each as `PATTERN:WAY`, sorted. `world` means that the host's plan is used if it
    /// has one, otherwise the library.
    pub fn names(&self) -> Vec<String> {
        let name = |known: &Known| match &known.otherwise {
            _ if known.world.is_some() => "world",
            Otherwise::Draft(..) | Otherwise::Ready(Way::World(_) | Way::Library(_)) => "library",
            Otherwise::Ready(Way::Pairs(..)) => "messages",
            Otherwise::Ready(Way::Sums(_)) => "sums",
        };
        let names = self.known.values().map(|known| format!("{}:{}", known.operation.pattern, name(known)));
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    /// Prepares and returns the route of an operation on an array. All ranks must call this together, once for each
    /// run.
    ///
    /// # Errors
    /// Returns an error if a schedule of messages cannot be proved, or if the host cannot make a communicator or a
    /// plan.
    pub fn prepare<H: Host, L: MessageLayer>(
        &mut self,
        host: &H,
        (discovery, proofs): (&Discovery, &mut Proofs),
        memory: &Memory<L>,
        operation: &Arc<Operation>,
        buffer: BufferId,
    ) -> Result<Route, H::Error> {
        let reducing = operation.pattern.reduces().then(|| host.reducing(buffer.index())).transpose()?;
        let key = (Arc::as_ptr(operation).addr(), buffer.0, reducing.clone());
        if !self.known.contains_key(&key) {
            if self.known.len() >= MOST_KEPT {
                self.known.clear();
            }
            let limits = Limits { layout: memory.array(buffer.index())?.layout, largest: memory.largest };
            let by_messages = self.by_messages;
            let found = host.guarded(|| find(discovery, proofs, limits, operation, reducing.as_ref(), by_messages))?;
            let known = found.map_err(|failure| match failure {
                Failure::Run(error) => error.into(),
                Failure::Unproved(error) => host.unproved(error),
            })?;
            self.known.insert(key.clone(), known);
        }
        let known = self.known.get_mut(&key).expect("it was just inserted");
        let way = match &known.world {
            Some(world) if host.is_planned(world, buffer.index())? => Way::World(world.clone()),
            _ => known.otherwise.way(host, discovery.options().rank.unwrap_or_default())?,
        };
        Ok(Route { way, bytes: known.bytes, schedule: known.schedule.clone() })
    }
}

impl Otherwise {
    /// Returns the `Way`. The first call creates the communicator of the participants, which must call this together.
    fn way<H: Host>(&mut self, host: &H, rank: u32) -> Result<Way, H::Error> {
        if let Self::Draft(draft, participants) = self {
            let mut call = LibraryCall::clone(draft);
            call.arguments.comm = host.communicator(participants)?;
            let is_root = participants.get(call.arguments.root as usize) == Some(&rank);
            let unit = if call.arguments.reduction.is_some() { call.layout.element_bytes } else { 1 };
            *self = Self::Ready(Way::Library(call.checked(participants.len(), is_root, unit)?));
        }
        match self {
            Self::Ready(way) => Ok(way.clone()),
            Self::Draft(..) => unreachable!("a draft was just made ready"),
        }
    }
}

/// The layout of an operation's array, and the most bytes of one call of the MPI library.
struct Limits {
    layout: Layout,
    largest: usize,
}

fn find(
    discovery: &Discovery,
    proofs: &mut Proofs,
    Limits { layout, largest }: Limits,
    operation: &Arc<Operation>,
    reducing: Option<&Reducing>,
    by_messages: bool,
) -> Result<Known, Failure> {
    let (sides, ranks) = (discovery.sides(), discovery.options().nodes);
    let rank = discovery.options().rank.ok_or_else(|| RunError::input("a discovery without a rank runs nothing"))?;
    let participants: Vec<u32> = operation.participants.iter().collect();
    let about = About { sides, operation, rank, ranks, layout, largest, participants, reducing };
    let bytes = operation.elements(sides).saturating_mul(layout.element_bytes as u64);
    let chosen = if by_messages { None } else { choose(&about)? };
    let (world, otherwise, schedule) = match chosen {
        Some(Chosen { world, library }) => {
            (world.map(Arc::new), Otherwise::Draft(Box::new(library), about.participants), None)
        }
        None => {
            let coded = reducing.is_some_and(|reducing| reducing.operator.is_none());
            let element_bytes = layout.element_bytes as u64 + u64::from(coded);
            let exchange = DirectExchange::of_operation(operation, sides, Some(rank));
            let part = proofs.part(&exchange, ranks, element_bytes, rank).map_err(Failure::Unproved)?;
            let name = exchange.complete.then(|| exchange.lengths.name(element_bytes).into());
            let way = if operation.pattern.reduces() {
                Way::Sums(Arc::new(PairSums::new(&layout, &part, rank, coded)?))
            } else {
                let rows = |rows: &[(u32, Vec<unisono_discover::Box3>)]| -> Result<Rows, RunError> {
                    let row = |(rank, boxes): &(u32, Vec<_>)| Ok((*rank, Arc::new(parts_of(&layout, boxes)?)));
                    Ok(rows.iter().map(row).collect::<Result<Vec<(u32, Arc<Parts>)>, RunError>>()?.into())
                };
                Way::Pairs(rows(&part.sends)?, rows(&part.receives)?)
            };
            (None, Otherwise::Ready(way), name)
        }
    };
    Ok(Known { operation: operation.clone(), world, otherwise, bytes, schedule })
}
