//! The text of a plan from the thread blocks of its GPUs: operations name channels and buffers by places in lists.

use serde_json::{Value, json};
use unisono_base::{NodeId, narrow};

use super::{
    export::{At, Exporter},
    plan::Protocol,
};

impl Exporter<'_> {
    /// The plan, with the indices of channels and remote buffers.
    pub(super) fn plan(mut self) -> String {
        let c = *self.schedule.collective();
        let mut gpus = Vec::new();
        for gpu in 0..c.ranks {
            let node = NodeId(gpu);
            let mine: Vec<(At, At)> =
                self.channels.iter().flat_map(|&(a, b)| [(a, b), (b, a)]).filter(|(own, _)| own.0 == gpu).collect();
            let peers: Vec<u32> = mine.iter().map(|(_, peer)| peer.0).collect();
            let mut remote: Vec<u32> = Vec::new();
            let count = self.made.range((gpu, 0)..(gpu + 1, 0)).map(|((_, b), _)| b + 1).max().unwrap_or(0);
            let mut blocks = Vec::new();
            for block in 0..count {
                let mut ops = self.made.remove(&(gpu, block)).unwrap_or_default();
                let (mut ids, mut buffers): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
                for op in &mut ops {
                    for id in op.get_mut("channel_ids").and_then(Value::as_array_mut).into_iter().flatten() {
                        let peer = (id[0].as_u64(), id[1].as_u64());
                        let is =
                            |m: &(At, At)| m.0 == (gpu, block) && peer == (Some(u64::from(m.1.0)), Some(m.1.1 as u64));
                        *id = json!(place(&mut ids, mine.iter().position(is).unwrap_or(0)));
                    }
                    for sink in op.get_mut("dst_buff").and_then(Value::as_array_mut).into_iter().flatten() {
                        if let Some(to) = sink.get("buffer_id").and_then(Value::as_u64) {
                            let global = place(&mut remote, narrow(to));
                            sink["buffer_id"] = json!(place(&mut buffers, global));
                        }
                    }
                }
                if block > 0 {
                    ops.splice(
                        0..0,
                        [json!({"name": "sem_acquire", "semaphore_ids": [block - 1]}), json!({"name": "nop"})],
                    );
                }
                if block + 1 < count {
                    ops.extend([json!({"name": "nop"}), json!({"name": "sem_release", "semaphore_ids": [block]})]);
                } else {
                    ops.push(json!({"name": "nop"}));
                }
                blocks.push(json!({"id": block, "ops": ops,
                    "channels": [{"channel_type": "memory", "channel_ids": ids}],
                    "remote_buffer_refs": [{"access_channel_type": "memory", "remote_buffer_ids": buffers}]}));
            }
            let n = node.index();
            let raw = self.own[n] + self.temporary[n];
            let scratch = self.landed[n] + if self.protocol == Protocol::LL { raw.div_ceil(2) } else { raw };
            let semaphores = vec![json!({"init_value": 0}); count.saturating_sub(1)];
            let remote: Vec<Value> = remote
                .iter()
                .map(|rank| json!({"rank": rank, "type": "s", "access_channel_types": ["memory"]}))
                .collect();
            gpus.push(json!({"id": gpu, "input_chunks": self.schedule.input_len(node) / self.unit,
                "output_chunks": self.schedule.output_len(node) / self.unit, "scratch_chunks": scratch,
                "threadblocks": blocks, "channels": [{"channel_type": "memory", "connected_to": peers}],
                "remote_buffers": remote, "semaphores": semaphores}));
        }
        let is_ll = self.protocol == Protocol::LL;
        let collective =
            super::layout::COLLECTIVES.iter().find(|(_, kind)| *kind == c.kind).map_or("", |(name, _)| name);
        let bytes = c.input_len(0).max(c.output_len(0));
        let bytes = u64::from(bytes) * c.dtype.bytes();
        let origin = if self.schedule.origin().is_empty() { c.kind.name() } else { self.schedule.origin() };
        let plan = json!({"name": format!("unisono-{}", origin.replace(' ', "-")), "collective": collective,
            "protocol": if is_ll { "LL" } else { "Simple" }, "inplace": false, "reuse_resources": false, "gpus": gpus,
            "num_threads_per_block": 1024, "use_double_scratch_buffer": is_ll, "buffer_alignment": 16,
            "min_message_size": bytes, "max_message_size": bytes});
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
