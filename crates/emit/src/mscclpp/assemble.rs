//! The text of a plan from the thread blocks of its GPUs: operations name channels and buffers by places in lists.

use serde_json::{Value, json};
use unisono_base::{NodeId, narrow};
use unisono_collective::{Collective, Kind};

use super::{
    export::{At, Exporter},
    together::{fused, turned},
};

/// What a thread block uses: indices into the lists of its GPU.
#[derive(Default)]
struct Lists {
    memory: Used,
    port: Used,
    switches: Vec<usize>,
}

#[derive(Default)]
struct Used {
    channels: Vec<usize>,
    buffers: Vec<usize>,
}

impl Lists {
    fn block(self, id: usize, ops: Vec<Value>) -> Value {
        let mut channels = vec![json!({"channel_type": "memory", "channel_ids": self.memory.channels})];
        let mut buffers = vec![json!({"access_channel_type": "memory", "remote_buffer_ids": self.memory.buffers})];
        if !self.port.channels.is_empty() {
            channels.push(json!({"channel_type": "port", "channel_ids": self.port.channels}));
            buffers.push(json!({"access_channel_type": "port", "remote_buffer_ids": self.port.buffers}));
        }
        if !self.switches.is_empty() {
            channels.push(json!({"channel_type": "switch", "channel_ids": self.switches}));
        }
        json!({"id": id, "ops": ops, "channels": channels, "remote_buffer_refs": buffers})
    }
}

/// The sources and destinations of an operation.
pub(super) fn slices(op: &mut Value) -> Vec<&mut Value> {
    let Some(keys) = op.as_object_mut() else { return Vec::new() };
    let lists = keys.iter_mut().filter(|(key, _)| matches!(key.as_str(), "src_buff" | "dst_buff"));
    lists.filter_map(|(_, list)| list.as_array_mut()).flatten().collect()
}

/// Elements of the input and of the output, which all GPUs have in the runtime.
fn lengths(c: &Collective) -> (u32, u32) {
    match c.kind {
        Kind::Broadcast | Kind::Reduce => (c.elements, c.elements),
        _ => (c.input_len(0), c.output_len(0)),
    }
}

impl Exporter<'_> {
    /// The plan, with the indices of channels and remote buffers.
    pub(super) fn plan(self) -> String {
        let c = *self.schedule.collective();
        let groups: Vec<Vec<u32>> = self.switches.groups().into_iter().map(<[u32]>::to_vec).collect();
        let (input, output) = lengths(&c);
        let mut gpus = Vec::new();
        let scratch = |n: usize| {
            let raw = self.own[n] + self.copied[n] + self.temporary[n];
            self.landed[n] + if self.is_ll() { raw.div_ceil(2) } else { raw }
        };
        // A GPU shifts the packets that it writes by half of its own scratch memory, so all have the same.
        let same = (0..c.ranks).map(|gpu| scratch(NodeId(gpu).index())).max().filter(|_| self.is_ll());
        for gpu in 0..c.ranks {
            let node = NodeId(gpu);
            let mine: Vec<(At, At)> =
                self.channels.iter().flat_map(|&(a, b)| [(a, b), (b, a)]).filter(|(own, _)| own.0 == gpu).collect();
            let (ports, memory): (Vec<_>, Vec<_>) = mine.into_iter().partition(|m| self.is_port(gpu, m.1.0));
            let groups: Vec<usize> =
                groups.iter().enumerate().filter(|(_, group)| group.contains(&gpu)).map(|(n, _)| n).collect();
            let mut remote: Vec<u32> = Vec::new();
            let count = self.made.range((gpu, 0)..(gpu + 1, 0)).map(|((_, b), _)| b + 1).max().unwrap_or(0);
            let mut blocks = Vec::new();
            let shares = self.form.shares;
            for (share, block) in (0..shares).flat_map(|share| (0..count).map(move |block| (share, block))) {
                let mut ops = fused(self.made.get(&(gpu, block)).cloned().unwrap_or_default());
                let mut lists = Lists::default();
                for op in &mut ops {
                    let moves = op.get("dst_buff").is_some() && op["name"] != "flush";
                    if moves && shares > 1 {
                        op["tbg_info"] = json!({"tb_id": share, "tbg_size": shares});
                        turned(op, share, shares);
                    }
                    let is_port = op["channel_type"] == "port";
                    let (mine, lists) = if is_port { (&ports, &mut lists.port) } else { (&memory, &mut lists.memory) };
                    for id in op.get_mut("channel_ids").and_then(Value::as_array_mut).into_iter().flatten() {
                        let peer = (id[0].as_u64(), id[1].as_u64());
                        let is =
                            |m: &(At, At)| m.0 == (gpu, block) && peer == (Some(u64::from(m.1.0)), Some(m.1.1 as u64));
                        let first = share as usize * mine.len();
                        *id = json!(place(&mut lists.channels, first + mine.iter().position(is).unwrap_or(0)));
                    }
                    for sink in op.get_mut("dst_buff").and_then(Value::as_array_mut).into_iter().flatten() {
                        if let Some(to) = sink.get("buffer_id").and_then(Value::as_u64) {
                            let global = place(&mut remote, narrow(to));
                            sink["buffer_id"] = json!(place(&mut lists.buffers, global));
                        }
                    }
                }
                for slice in ops.iter_mut().flat_map(slices) {
                    if let Some(group) = slice.get("switch_channel_id").and_then(Value::as_u64) {
                        let own = groups.iter().position(|&g| g as u64 == group).unwrap_or(0);
                        slice["switch_channel_id"] = json!(place(&mut lists.switches, own));
                    }
                }
                let semaphore = |before: usize| json!([share as usize * (count - 1) + before]);
                if block > 0 {
                    let acquire = json!({"name": "sem_acquire", "semaphore_ids": semaphore(block - 1)});
                    ops.splice(0..0, [acquire, json!({"name": "nop"})]);
                }
                ops.push(json!({"name": "nop"}));
                if block + 1 < count {
                    ops.push(json!({"name": "sem_release", "semaphore_ids": semaphore(block)}));
                }
                blocks.push(lists.block(blocks.len(), ops));
            }
            let scratch = same.unwrap_or_else(|| scratch(node.index()));
            // The second half begins at whole 16 bytes, also where an allocation does not divide into chunks.
            let is_odd = self.is_ll() && !(input / self.form.unit).is_power_of_two();
            let scratch = if is_odd { scratch.next_multiple_of(8) } else { scratch };
            let semaphores = vec![json!({"init_value": 0}); shares as usize * count.saturating_sub(1)];
            let peers = |mine: &[(At, At)]| {
                let of_a_share: Vec<u32> = mine.iter().map(|(_, peer)| peer.0).collect();
                of_a_share.repeat(shares as usize)
            };
            let mut channels = vec![json!({"channel_type": "memory", "connected_to": peers(&memory)})];
            if !ports.is_empty() {
                channels.push(json!({"channel_type": "port", "connected_to": peers(&ports)}));
            }
            if !groups.is_empty() {
                let all = self.switches.groups();
                let of: Vec<Value> = groups.iter().map(|&g| json!({"size": all[g].len(), "ranks": all[g]})).collect();
                channels.push(json!({"channel_type": "switch", "buffer_type": "s", "rank_groups": of}));
            }
            let access = |rank: u32| Self::kind(self.is_port(gpu, rank));
            let remote: Vec<Value> = remote
                .iter()
                .map(|&rank| json!({"rank": rank, "type": "s", "access_channel_types": [access(rank)]}))
                .collect();
            gpus.push(
                json!({"id": gpu, "input_chunks": input / self.form.unit, "output_chunks": output / self.form.unit,
                "scratch_chunks": scratch, "threadblocks": blocks, "channels": channels,
                "remote_buffers": remote, "semaphores": semaphores}),
            );
        }
        let is_ll = self.is_ll();
        let collective =
            super::layout::COLLECTIVES.iter().find(|(_, kind)| *kind == c.kind).map_or("", |(name, _)| name);
        let bytes = u64::from(input.max(output)) * c.dtype.bytes();
        let origin = if self.schedule.origin().is_empty() { c.kind.name() } else { self.schedule.origin() };
        let mut plan = json!({"name": format!("unisono-{}", origin.replace(' ', "-")), "collective": collective,
            "protocol": if is_ll { "LL" } else { "Simple" }, "inplace": self.form.in_place, "reuse_resources": false,
            "gpus": gpus, "num_threads_per_block": 1024, "use_double_scratch_buffer": is_ll, "buffer_alignment": 16,
            "min_message_size": bytes, "max_message_size": bytes});
        if matches!(c.kind, Kind::Broadcast | Kind::Reduce) {
            // The loader passes over it.
            plan["root"] = json!(c.root);
        }
        format!("{plan:#}\n")
    }
}

/// The place of a value in a list, which gets it if it is not there.
fn place<T: PartialEq>(list: &mut Vec<T>, value: T) -> usize {
    list.iter().position(|v| *v == value).unwrap_or_else(|| {
        list.push(value);
        list.len() - 1
    })
}
