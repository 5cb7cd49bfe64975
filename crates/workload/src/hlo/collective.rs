//! Collective instructions of HLO: kinds, bytes and groups.
//!
//! Meaning of the numbers in `replica_groups` (source: "Operation Semantics" of XLA, and `collective_ops_utils.h`):
//!
//! | `channel_id` | `use_global_device_ids` | numbers | who takes part |
//! |---|---|---|---|
//! | no | | replicas | the same partition of each replica |
//! | yes | no | replicas (all-to-all, broadcast, permute: partitions) | all partitions of each replica (the partitions of one replica) |
//! | yes | yes | devices | these devices |

use unisono_base::{excerpt, narrow};
use unisono_collective::Kind;

use super::{
    module::{Computation, Half, Instruction, Module},
    replica_groups::{MOST_DEVICES, groups, pairs},
};
use crate::{Groups, error::Wrong};

#[derive(Clone, Copy, Debug)]
pub struct Devices {
    replicas: u32,
    partitions: u32,
}

/// The text of the groups or pairs of an instruction, and the meaning of the numbers in it.
pub type ListText<'a> = (Option<&'a str>, Numbers);

/// The communication pattern of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    Collective(Kind),
    Permute,
}

/// Returns the pattern of an instruction, or `None` if the instruction begins no communication. In an asynchronous pair
/// of instructions, the first half begins the communication. A `send` between devices is a permutation; the other end
/// is a `recv` with the same pairs.
pub fn pattern(i: &Instruction) -> Option<Pattern> {
    if i.half == Half::Rest {
        return None;
    }
    Some(match i.opcode {
        "all-gather" => Pattern::Collective(Kind::Allgather),
        "all-reduce" => Pattern::Collective(Kind::Allreduce),
        "all-to-all" | "ragged-all-to-all" => Pattern::Collective(Kind::Alltoall),
        "collective-broadcast" => Pattern::Collective(Kind::Broadcast),
        "collective-permute" => Pattern::Permute,
        "collective-reduce" => Pattern::Collective(Kind::Reduce),
        "reduce-scatter" => Pattern::Collective(Kind::ReduceScatter),
        "send" if !i.is_host_transfer() && sent_pairs(i).is_some() => Pattern::Permute,
        _ => return None,
    })
}

/// Returns the source-target pairs of a `send` or a `recv`, as text; `None` if it states none.
pub fn sent_pairs<'a>(i: &Instruction<'a>) -> Option<&'a str> {
    i.frontend_attribute("_xla_send_recv_source_target_pairs")
}

fn pairs_of(i: &Instruction) -> Result<Vec<(u32, u32)>, String> {
    i.attribute("source_target_pairs").or_else(|| sent_pairs(i)).map_or(Ok(Vec::new()), pairs)
}

impl Devices {
    /// Returns the numbers of replicas and partitions that the head of a module states, or, if it states neither, one
    /// replica with the partitions that groups and pairs name.
    pub fn of(module: &Module) -> Result<Self, Wrong> {
        let (replicas, partitions) = (module.replicas.unwrap_or(1), module.partitions.unwrap_or(1));
        let stated = module.replicas.is_some() || module.partitions.is_some();
        let partitions = if stated { partitions } else { named(module)? };
        let all = u64::from(replicas) * u64::from(partitions);
        if all > MOST_DEVICES {
            return Err(Wrong::line(
                1,
                format!("the module is for {all} devices; accepted are at most {MOST_DEVICES}"),
            ));
        }
        Ok(Self { replicas, partitions })
    }

    pub fn count(self) -> u32 {
        self.replicas * self.partitions
    }

    fn device(self, replica: u32, partition: u32) -> u32 {
        replica * self.partitions + partition
    }

    /// Returns the groups of an instruction as groups of devices; without a list, one group of all.
    pub fn groups(self, i: &Instruction) -> Result<Groups, Wrong> {
        let wrong = |message: String| Wrong::line(i.line, message);
        let listed = i.attribute("replica_groups").map_or(Ok(Vec::new()), groups).map_err(wrong)?;
        let numbers = self.numbers(i);
        let listed = if listed.is_empty() { vec![(0..numbers.count(self)).collect()] } else { listed };
        if let Some(&number) = listed.iter().flatten().find(|&&number| number >= numbers.count(self)) {
            let (what, last) = (numbers.name(), numbers.count(self) - 1);
            return Err(wrong(format!("a group has {what} {number}; accepted are 0 to {last}")));
        }
        let (r, p) = (self.replicas, self.partitions);
        let lists: Vec<Vec<u32>> = match numbers {
            Numbers::Devices => listed,
            Numbers::Replicas => {
                let of = |list: &Vec<u32>, p| list.iter().map(|&r| self.device(r, p)).collect();
                listed.iter().flat_map(|list| (0..p).map(move |p| of(list, p))).collect()
            }
            Numbers::ReplicasWithPartitions => {
                let of = |&r: &u32| (0..p).map(move |p| self.device(r, p));
                listed.iter().map(|list| list.iter().flat_map(of).collect()).collect()
            }
            Numbers::Partitions => {
                let of = |list: &Vec<u32>, r| list.iter().map(|&p| self.device(r, p)).collect();
                listed.iter().flat_map(|list| (0..r).map(move |r| of(list, r))).collect()
            }
        };
        Groups::new(self.count(), lists).map_err(|e| wrong(e.to_string()))
    }

    /// Returns the text of an instruction's list of groups or pairs, and the meaning of the numbers in the text. Two
    /// equal results list the same devices.
    pub fn list_text<'a>(self, i: &Instruction<'a>) -> ListText<'a> {
        let pairs = || i.attribute("source_target_pairs").or_else(|| sent_pairs(i));
        (i.attribute("replica_groups").or_else(pairs), self.numbers(i))
    }

    fn numbers(self, i: &Instruction) -> Numbers {
        let across = matches!(
            i.opcode,
            "all-to-all" | "ragged-all-to-all" | "collective-permute" | "collective-broadcast" | "send"
        );
        match (i.attribute("channel_id").is_some(), i.attribute("use_global_device_ids") == Some("true")) {
            // With one replica and one partition, the only device has number 0, whatever the numbers mean.
            _ if self.replicas == 1 && self.partitions == 1 => Numbers::Devices,
            (true, true) => Numbers::Devices,
            (true, false) if across => Numbers::Partitions,
            (true, false) => Numbers::ReplicasWithPartitions,
            (false, _) => Numbers::Replicas,
        }
    }

    /// Returns the receiver of each device in a permutation; a device that sends nothing has itself.
    pub fn receivers(self, i: &Instruction) -> Result<Vec<u32>, Wrong> {
        let wrong = |message: String| Wrong::line(i.line, message);
        let listed = pairs_of(i).map_err(wrong)?;
        let numbers = self.numbers(i);
        let mut receivers: Vec<u32> = (0..self.count()).collect();
        let mut sends = vec![false; receivers.len()];
        for (from, to) in listed {
            if let Some(number) = [from, to].into_iter().find(|&number| number >= numbers.count(self)) {
                let (what, last) = (numbers.name(), numbers.count(self) - 1);
                return Err(wrong(format!("a pair has {what} {number}; accepted are 0 to {last}")));
            }
            let copies = self.count() / numbers.count(self);
            for copy in 0..copies {
                let device = |number| match numbers {
                    Numbers::Partitions => self.device(copy, number),
                    Numbers::Replicas => self.device(number, copy),
                    _ => number,
                };
                let from = device(from);
                if std::mem::replace(&mut sends[from as usize], true) {
                    return Err(wrong(format!("device {from} is the source of two pairs; accepted is one")));
                }
                receivers[from as usize] = device(to);
            }
        }
        Ok(receivers)
    }
}

/// The meaning of the numbers in a list of groups or pairs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Numbers {
    Devices,
    Replicas,
    ReplicasWithPartitions,
    Partitions,
}

impl Numbers {
    fn count(self, devices: Devices) -> u32 {
        match self {
            Self::Devices => devices.count(),
            Self::Replicas | Self::ReplicasWithPartitions => devices.replicas,
            Self::Partitions => devices.partitions,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Devices => "device",
            Self::Replicas | Self::ReplicasWithPartitions => "replica",
            Self::Partitions => "partition",
        }
    }
}

/// Returns one more than the largest device that a group or a pair names; 1 if none names a device.
fn named(module: &Module) -> Result<u32, Wrong> {
    let (mut most, mut known) = (0, rustc_hash::FxHashSet::default());
    for i in module.computations.iter().flat_map(|c| &c.instructions).filter(|i| pattern(i).is_some()) {
        let wrong = |message: String| Wrong::line(i.line, message);
        if !known.insert((i.attribute("replica_groups"), i.attribute("source_target_pairs"))) {
            continue;
        }
        let listed = i.attribute("replica_groups").map_or(Ok(Vec::new()), groups).map_err(wrong)?;
        let listed_pairs = pairs_of(i).map_err(wrong)?;
        let all = listed.into_iter().flatten().chain(listed_pairs.into_iter().flat_map(|(from, to)| [from, to]));
        most = all.fold(most, u32::max);
    }
    Ok(most + 1)
}

/// Returns two sizes in bytes: of a collective among groups of `size` ranks, counted as in MPI and rounded up; and of
/// an element.
pub fn bytes(i: &Instruction, within: &Computation, kind: Kind, size: u32) -> Result<(u64, u32), Wrong> {
    let count = match i.opcode {
        // The other operands are not data of the communication: they are the output, offsets and sizes; a token; or a
        // root that is known only at run time.
        "ragged-all-to-all" | "send" => 1,
        _ if i.attribute("has_dynamic_root") == Some("true") => i.operands.len().saturating_sub(1),
        _ => i.operands.len(),
    };
    let shapes = || i.operands.iter().take(count).map(|&operand| within.instructions[operand].shape());
    let Some(first) = shapes().next() else {
        return Err(Wrong::line(i.line, format!("{} '{}' has no operand", i.opcode, excerpt(i.name))));
    };
    let all = shapes().fold(0_u64, |sum, shape| sum.saturating_add(shape.bytes()));
    let one = match kind {
        Kind::ReduceScatter | Kind::Alltoall => all.div_ceil(u64::from(size.max(1))),
        _ => all,
    };
    Ok((one, narrow(first.element_bytes())))
}
