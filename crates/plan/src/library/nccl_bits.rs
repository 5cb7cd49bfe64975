//! The bits of NCCL's own sums: the settings that give a property of bits, and the algorithms that cannot have it.
//!
//! The order in which NCCL adds an element follows from its algorithm and from the channel that carries the element:
//!
//! * **tree**: a rank adds its own element, then the elements of its children, and the root copies the sum. Each
//!   channel has its own tree; those of the second half of the channels are mirrored or shifted. The channel of an
//!   element changes with the length of the vector, because the number of channels and their shares change. One channel
//!   has one tree.
//! * **ring**: in an allreduce or a reduce-scatter, the sum of a piece begins at another rank than the sum of the next
//!   piece. A reduce passes the ring once, from the rank after the root, so one channel has one order.
//! * **nvls**, **collnet**: a switch adds, and no document states its order.
//!
//! Source: NVIDIA/nccl 5067397c, `src/graph/connect.cc`, `src/graph/trees.cc`, `src/device/all_reduce.h`,
//! `src/device/reduce.h`, `src/device/prims_ll.h`, `src/enqueue.cc`; on one channel sglang#34159 and torchtitan#2994.

use serde::Serialize;
use unisono_collective::Kind;
use unisono_cost::network::nccl::{Algorithm, Nccl};

use super::nccl::{counted, nccl};
use crate::{Bits, PlanError, Problem};

/// The settings of a library, by algorithm and protocol, with which results have or lack a property of bits.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LibraryBits {
    /// The name of the property.
    pub bits: &'static str,
    pub gives: Vec<LibrarySettings>,
    pub loses: Vec<LibraryLoss>,
    pub notes: Vec<String>,
}

/// Settings with which results have a property.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LibrarySettings {
    pub algorithm: &'static str,
    pub protocol: &'static str,
    /// Environment variables, as `NAME=VALUE`.
    pub settings: Vec<String>,
    /// The time with these settings by the library's own model. It is not measured.
    pub seconds: f64,
}

/// An algorithm that cannot have a property.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LibraryLoss {
    pub algorithm: &'static str,
    pub reason: &'static str,
}

/// The settings with which the order of an algorithm's additions has a property of bits.
enum Order {
    /// All settings.
    Any,
    OneChannel,
    Lost(&'static str),
}

fn order(kind: Kind, algorithm: Algorithm, ranks: u32, bits: Bits) -> Order {
    let in_switch = "switches add, and their order and precision are not documented";
    match algorithm {
        _ if !kind.reduces() => Order::Any,
        Algorithm::Nvls | Algorithm::NvlsTree | Algorithm::CollnetDirect | Algorithm::CollnetChain => {
            Order::Lost(in_switch)
        }
        _ if bits == Bits::Ranks => Order::Any,
        _ if matches!(bits, Bits::RanksCount(_)) => {
            Order::Lost("its order is made for a number of ranks, and another number has another one")
        }
        // Two operands have only one order.
        _ if ranks == 2 => Order::Any,
        Algorithm::Tree => Order::OneChannel,
        Algorithm::Ring if kind == Kind::Reduce => Order::OneChannel,
        Algorithm::Ring => Order::Lost(
            "the sum of each piece begins at another rank, and the pieces depend on the length of the vector",
        ),
        Algorithm::Pat => Order::Lost("the piece of each rank has a tree of its own"),
    }
}

fn settings(kind: Kind, algorithm: &str, protocol: &str) -> Vec<String> {
    let function = match kind {
        Kind::ReduceScatter => "reducescatter",
        kind => kind.name(),
    };
    let protocol = if protocol == "simple" { "Simple".to_owned() } else { protocol.to_uppercase() };
    vec![
        format!("NCCL_ALGO={function}:{algorithm}"),
        format!("NCCL_PROTO={function}:{protocol}"),
        "NCCL_MIN_NCHANNELS=1".to_owned(),
        "NCCL_MAX_NCHANNELS=1".to_owned(),
    ]
}

/// Returns the settings with which NCCL's results have a property of bits on the machine of a problem, fastest first,
/// and the algorithms that cannot have it.
///
/// # Errors
/// Returns the errors of [`super::library_choice`].
pub(super) fn settings_with(problem: &Problem, bits: Bits) -> Result<LibraryBits, PlanError> {
    let (nccl, call) = nccl(problem)?;
    let c = &problem.collective;
    let bytes = counted(problem, c.bytes());
    let times = |nccl: &Nccl| nccl.times(call, bytes).map_err(PlanError::NoLibraryTime);
    let mut single = nccl.clone();
    (single.graphs.tree.channels, single.graphs.ring.channels) = (1, 1);
    let (mut gives, mut loses): (Vec<LibrarySettings>, Vec<LibraryLoss>) = (Vec::new(), Vec::new());
    let of_single = times(&single)?;
    for all in times(&nccl)? {
        let one = of_single.iter().find(|one| (one.algorithm, one.protocol) == (all.algorithm, all.protocol));
        let (algorithm, protocol) = (all.algorithm.name(), all.protocol.name());
        match order(c.kind, all.algorithm, c.ranks, bits) {
            Order::Any => {
                gives.push(LibrarySettings { algorithm, protocol, settings: Vec::new(), seconds: all.seconds });
            }
            Order::OneChannel => {
                let seconds = one.map_or(all.seconds, |one| one.seconds);
                gives.push(LibrarySettings {
                    algorithm,
                    protocol,
                    settings: settings(c.kind, algorithm, protocol),
                    seconds,
                });
            }
            Order::Lost(reason) if loses.iter().all(|loss| loss.algorithm != algorithm) => {
                loses.push(LibraryLoss { algorithm, reason });
            }
            Order::Lost(_) => {}
        }
    }
    if !loses.is_empty() {
        // Without settings, the library might choose an algorithm that lacks the property.
        for one in gives.iter_mut().filter(|one| one.settings.is_empty()) {
            one.settings = settings(c.kind, one.algorithm, one.protocol)[..1].to_vec();
        }
    }
    gives.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let mut notes = Vec::new();
    if gives.iter().any(|given| !given.settings.is_empty()) {
        notes.push(
            "more channels keep the bits only where all have one tree, in one order of ranks: NCCL_DEBUG=INFO with \
             NCCL_DEBUG_SUBSYS=GRAPH prints the trees of the channels"
                .to_owned(),
        );
    }
    if c.kind.reduces() {
        notes.push(
            "calls on buffers of a symmetric window run other kernels, whose order is not examined here; NCCL_WIN_ENABLE=0 \
             excludes them. The settings do not bind allreduces that a framework runs without NCCL"
                .to_owned(),
        );
    }
    Ok(LibraryBits { bits: bits.name(), gives, loses, notes })
}
