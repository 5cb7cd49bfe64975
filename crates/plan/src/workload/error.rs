//! The reasons why a workload has no time.

use unisono_base::limits::OverLimit;
use unisono_machine::network::Network;

use super::graph::ClockError;

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WorkloadError {
    #[error("'{found}' is neither a workload nor a workload file; workloads are {presets}")]
    Unknown { found: String, presets: String },
    #[error("{origin}, line {line}: {message}")]
    Toml { origin: String, line: usize, message: String },
    #[error("{origin}: {error}")]
    Wrong { origin: String, error: WrongWorkload },
    #[error("{origin}: level is '{found}'; accepted are {accepted}")]
    Level { accepted: &'static str, origin: String, found: String },
    #[error("{name} needs {ranks} accelerators, and {machine} has {accelerators}{or}")]
    TooLarge { name: String, ranks: u32, machine: String, accelerators: u64, or: String },
    #[error(
        "{name} takes {tall}x{wide} accelerators, which do not fit on the {rows}x{cols} of {machine}; give its dimensions another shape"
    )]
    DoesNotFit { name: String, tall: u64, wide: u64, machine: String, rows: u32, cols: u32 },
    #[error(
        "{name} cannot fill {machine}: none of its dimensions has data_parallel = true, so the number of its ranks is fixed; mark \
         the dimension over which gradients are reduced in its file"
    )]
    NoCopies { name: String, machine: String },
    #[error(
        "programs are timed on networks and among ranks whose messages have prices; {machine}, of kind {kind}, states no prices \
         of messages, so take a machine of another kind"
    )]
    NoPrices { machine: String, kind: &'static str },
    #[error("{name} has {ranks} ranks, and the part of the machine has {found}; ask for a part with as many")]
    Ranks { name: String, ranks: u32, found: u32 },
    #[error(
        "{0} counts operations; give the rates of the accelerator with --tflops and --memory-gb-per-second, or as [accelerator] \
         in the machine file"
    )]
    NoAccelerator(String),
    #[error("{0}: {1}")]
    Waits(String, ClockError),
    #[error(
        "{program}: rank {rank} makes another collective in node {node} ('{name}') than the other ranks of its groups; accepted are \
         programs in which the ranks of a group make the same collectives in the same order"
    )]
    Unlike { program: String, rank: u32, node: usize, name: String },
    #[error(
        "{0} has messages between pairs of ranks, which flows are not made of; accepted are the levels model and packet"
    )]
    NoFlows(String),
    #[error("{program} has no {kind}, so no algorithm can be named for it; accepted are {made}")]
    Unused { program: String, kind: String, made: String },
    #[error(
        "{program}: {over}; {kind} among {ranks} ranks by {algorithm} takes up to {tasks} tasks, so name an algorithm of fewer \
         messages, such as --algorithm {kind}=ring (in Python algorithms={{'{kind}': 'ring'}}), or take the level flow"
    )]
    Large { program: String, over: Box<OverLimit>, kind: &'static str, ranks: usize, algorithm: String, tasks: u64 },
    #[error("{name} cannot be simulated: {message}")]
    Tasks { name: String, message: String },
    #[error("step '{step}': {message}")]
    Step { step: String, message: String },
}

impl WorkloadError {
    /// Adds the number of boxes to an error on a machine that is too small ([`Network::boxes_for`]).
    #[must_use]
    pub fn with_boxes_named(self, network: &Network) -> Self {
        match self {
            Self::TooLarge { name, ranks, machine, accelerators, .. } => {
                let boxes = network.boxes_for(ranks);
                let smaller = "; take a larger machine, or a workload file with smaller dimensions".to_owned();
                let or = boxes.map_or(smaller, |n| format!("; {n} boxes have as many: --nodes {n}"));
                Self::TooLarge { name, ranks, machine, accelerators, or }
            }
            other => other,
        }
    }
}

/// The reasons why a workload description is invalid.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WrongWorkload {
    #[error("a workload has at least one dimension and one step")]
    Empty,
    #[error("dimension '{0}' has size 0; accepted is at least 1")]
    Size(String),
    #[error("dimension '{name}' of size {size} has shape {rows}x{cols}")]
    Shape { name: String, size: u32, rows: u32, cols: u32 },
    #[error(
        "dimensions '{0}' and '{1}' are both data_parallel; accepted is one, whose members hold copies of the model"
    )]
    Copies(String, String),
    #[error("two dimensions are named '{0}'")]
    Twice(String),
    #[error("the sizes of its dimensions have a product above 2^32")]
    Product,
    #[error("step '{step}' has compute_us {found}; accepted is 0 to a year")]
    Compute { step: String, found: String },
    #[error("step '{step}' has {found} elements; accepted are at most 2^48")]
    Elements { step: String, found: u64 },
    #[error("step '{step}' communicates over '{found}'; dimensions are {known}")]
    Dimension { step: String, found: String, known: String },
    #[error("step '{step}' is only for ranks of dimension '{found}'; dimensions are {known}")]
    OnlyDimension { step: String, found: String, known: String },
    #[error(
        "step '{step}' is only for ranks {first}, {first} + {every}, ... of dimension '{dimension}'; accepted are a first below its \
         size of {size}, and every of at least 1"
    )]
    Only { step: String, first: u32, every: u32, dimension: String, size: u32 },
    #[error(
        "step '{step}' is only for some ranks of dimension '{dimension}', and its {collective} is over that dimension; communicate over it \
         in a step of all ranks"
    )]
    OverOnly { step: String, collective: &'static str, dimension: String },
    #[error("step '{step}' has partner {found} in groups of {ranks} ranks")]
    Partner { step: String, found: u32, ranks: u32 },
    #[error("step '{0}': an exchange has partners, and nothing else has")]
    Partners(String),
}
