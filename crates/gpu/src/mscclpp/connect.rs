//! The setup of the executor before a plan runs: channels between GPUs, groups of GPUs behind switches, and the indices
//! by which thread blocks refer to them.
//!
//! Source: microsoft/mscclpp, `src/core/executor/executor.cc` and `src/core/switch_channel.cc` at commit 1f5f065d.

use std::collections::BTreeMap;

use unisono_base::narrow;
use unisono_formats::ImportError;

use super::{
    fault::Fault,
    plan::{Buffer, ChannelType, Channels, Plan},
    program::End,
};

/// For each GPU and type of channel (true for port), the index of its first end in the list of all ends.
pub type Firsts = BTreeMap<(u32, bool), u32>;

/// Returns the ends of all memory and port channels. As in the executor, the `k`-th channel of a type from one GPU to
/// another is paired with the `k`-th channel of that type in the other direction.
pub fn ends(plan: &Plan) -> Result<(Vec<End>, Firsts), ImportError> {
    let (mut ends, mut firsts) = (Vec::new(), Firsts::new());
    for (g, gpu) in plan.gpus.iter().enumerate() {
        let path = format!("gpus[{g}]");
        if gpu.id as usize != g {
            return Err(ImportError::new(0, format!("{path}.id: {} is not {g}, its place", gpu.id)));
        }
        for is_port in [false, true] {
            let kind = if is_port { ChannelType::Port } else { ChannelType::Memory };
            firsts.insert((gpu.id, is_port), narrow(ends.len()));
            let peers = gpu.channels.iter().filter(|c| c.channel_type == kind).flat_map(|c| c.peers());
            for (n, &peer) in peers.enumerate() {
                if peer as usize >= plan.gpus.len() || peer == gpu.id {
                    let message = format!(
                        "{path}.channels: a channel is connected to gpu {peer}, which is no other GPU of the plan"
                    );
                    return Err(ImportError::new(0, message));
                }
                ends.push(End { gpu: gpu.id, peer_gpu: peer, index: narrow(n), is_port, peer: None });
            }
        }
    }
    let mut of_pair: BTreeMap<(u32, u32, bool), Vec<u32>> = BTreeMap::new();
    for (n, end) in ends.iter().enumerate() {
        of_pair.entry((end.gpu, end.peer_gpu, end.is_port)).or_default().push(narrow(n));
    }
    for (&(gpu, peer, is_port), mine) in &of_pair {
        let theirs = of_pair.get(&(peer, gpu, is_port)).map_or(&[][..], Vec::as_slice);
        mine.iter().zip(theirs).for_each(|(&a, &b)| ends[a as usize].peer = Some(b));
    }
    Ok((ends, firsts))
}

/// For each GPU and each of its switch channels, the GPUs of the channel's group, each with the buffer that it binds.
pub type Switches = Vec<Vec<Vec<(u32, Buffer)>>>;

/// A switch channel in the list of one GPU.
struct Group {
    buffer: Buffer,
    ranks: Vec<u32>,
}

/// Returns the groups of all switch channels of a plan that passes [`references`]. The GPUs of a group connect at the
/// same time, each in the order of its list, so the k-th channel of a group is the same for all of them.
///
/// A fault is a group to which some of its GPUs never connect: the executor then waits forever.
///
/// # Errors
/// Returns one sentence with the path inside the file.
pub fn switches(plan: &Plan) -> Result<(Switches, Vec<Fault>), ImportError> {
    let lists: Vec<Vec<Group>> =
        (0..plan.gpus.len()).map(|gpu| groups(plan, gpu)).collect::<Result<_, ImportError>>()?;
    // The executor has not connected any channel yet: each channel binds the buffer that its own GPU names, on all GPUs
    // of the group.
    let mut found: Switches = lists
        .iter()
        .map(|list| list.iter().map(|group| group.ranks.iter().map(|&rank| (rank, group.buffer)).collect()).collect())
        .collect();
    let mut next = vec![0; lists.len()];
    let mut open: Vec<usize> = (0..lists.len()).collect();
    while let Some(gpu) = open.pop() {
        let Some(group) = lists[gpu].get(next[gpu]) else { continue };
        let member = |rank: u32| lists[rank as usize].get(next[rank as usize]);
        if !group.ranks.iter().all(|&rank| member(rank).is_some_and(|other| other.ranks == group.ranks)) {
            continue;
        }
        let bound: Vec<(u32, Buffer)> =
            group.ranks.iter().filter_map(|&rank| Some((rank, member(rank)?.buffer))).collect();
        for &(rank, _) in &bound {
            found[rank as usize][next[rank as usize]].clone_from(&bound);
            next[rank as usize] += 1;
            open.push(rank as usize);
        }
    }
    let stuck = (0..lists.len()).filter(|&gpu| next[gpu] < lists[gpu].len());
    let faults = stuck.map(|gpu| {
        let group = &lists[gpu][next[gpu]];
        let names: Vec<String> = group.ranks.iter().map(u32::to_string).collect();
        let message = format!(
            "switch channel {} of gpu {gpu} connects gpus {}, and not all of them have this group next in their lists; \
             the executor waits for them forever",
            next[gpu],
            names.join(", ")
        );
        Fault::of_gpu("switch", narrow(gpu), message)
    });
    let faults = faults.collect();
    Ok((found, faults))
}

fn groups(plan: &Plan, gpu: usize) -> Result<Vec<Group>, ImportError> {
    let mut list = Vec::new();
    let switches = plan.gpus[gpu].channels.iter().filter(|c| c.channel_type == ChannelType::Switch);
    for channel in switches {
        let Some(buffer) = channel.buffer_type else { continue };
        for group in channel.groups() {
            let fail = |message: String| Err(ImportError::new(0, format!("gpus[{gpu}].channels: {message}")));
            let mut ranks = group.ranks.clone();
            ranks.sort_unstable();
            ranks.dedup();
            let name = list.len();
            if ranks.len() != group.ranks.len() || !ranks.contains(&narrow(gpu)) {
                return fail(format!(
                    "the group of switch channel {name} names a GPU twice, or not gpu {gpu}, whose channel it is"
                ));
            }
            if let Some(rank) = ranks.iter().find(|&&rank| rank as usize >= plan.gpus.len()) {
                return fail(format!("the group of switch channel {name} names gpu {rank}, which is not there"));
            }
            list.push(Group { buffer, ranks });
        }
    }
    Ok(list)
}

/// Checks all references, including unused ones, because the loader follows them all.
///
/// # Errors
/// Returns one sentence with the path inside the file.
pub fn references(plan: &Plan) -> Result<(), ImportError> {
    for (g, gpu) in plan.gpus.iter().enumerate() {
        let fail = |path: &str, message: String| Err(ImportError::new(0, format!("gpus[{g}].{path}: {message}")));
        let missing = |channel: &Channels| match channel.channel_type {
            ChannelType::Switch if channel.buffer_type.is_none() => Some("buffer_type"),
            ChannelType::Switch => channel.rank_groups.is_none().then_some("rank_groups"),
            _ => channel.connected_to.is_none().then_some("connected_to"),
        };
        if let Some((n, key)) = gpu.channels.iter().enumerate().find_map(|(n, c)| Some((n, missing(c)?))) {
            return fail(&format!("channels[{n}]"), format!("missing field `{key}`"));
        }
        for (n, remote) in gpu.remote_buffers.iter().enumerate() {
            if remote.rank as usize >= plan.gpus.len() || remote.rank as usize == g {
                let message = format!("it is of gpu {}, which is no other GPU of the plan", remote.rank);
                return fail(&format!("remote_buffers[{n}]"), message);
            }
        }
        let count = |kind: ChannelType| -> usize {
            let of_kind = gpu.channels.iter().filter(|c| c.channel_type == kind);
            of_kind.map(|c| if kind == ChannelType::Switch { c.groups().len() } else { c.peers().len() }).sum()
        };
        for (b, block) in gpu.threadblocks.iter().enumerate() {
            for list in &block.channels {
                let has = count(list.channel_type);
                if let Some(id) = list.channel_ids.iter().find(|&&id| id as usize >= has) {
                    let message = format!("channel {id} is not there: gpu {g} has {has} of that type");
                    return fail(&format!("threadblocks[{b}].channels"), message);
                }
            }
            for list in &block.remote_buffer_refs {
                let kind = list.access_channel_type;
                for &id in &list.remote_buffer_ids {
                    let path = format!("threadblocks[{b}].remote_buffer_refs");
                    let Some(remote) = gpu.remote_buffers.get(id as usize) else {
                        let has = gpu.remote_buffers.len();
                        return fail(&path, format!("remote buffer {id} is not there: gpu {g} has {has}"));
                    };
                    if !remote.access_channel_types.contains(&kind) {
                        return fail(
                            &path,
                            format!("access_channel_types of remote buffer {id} lack its channel type"),
                        );
                    }
                }
            }
        }
    }
    Ok(())
}
