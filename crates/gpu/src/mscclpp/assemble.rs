//! The assembly of a plan from the thread blocks of its GPUs: operations refer to channels and buffers by list indices.

use unisono_base::narrow;
use unisono_collective::{Collective, Kind};

use super::{
    export::Exporter,
    layout::COLLECTIVES,
    plan::{
        Buffer, ChannelIds, ChannelType, Channels, Gpu, Name, Op, Plan, Protocol, RankGroup, RemoteBuffer,
        RemoteBufferIds, Semaphore, ThreadBlock, ThreadBlockGroup,
    },
    step::{At, Step},
    together::{fused, turned},
};
use crate::ordered::plan_name;

/// The channels and buffers that a thread block uses, as indices into the lists of its GPU.
#[derive(Default)]
struct Lists {
    memory: Used,
    port: Used,
    switches: Vec<u32>,
}

#[derive(Default)]
struct Used {
    channels: Vec<u32>,
    buffers: Vec<u32>,
}

impl Lists {
    fn block(self, id: u32, ops: Vec<Op>) -> ThreadBlock {
        let (mut channels, mut remote_buffer_refs) = (Vec::new(), Vec::new());
        for (kind, used) in [(ChannelType::Memory, self.memory), (ChannelType::Port, self.port)] {
            if kind == ChannelType::Port && used.channels.is_empty() {
                continue;
            }
            channels.push(ChannelIds { channel_type: kind, buff: None, channel_ids: used.channels });
            remote_buffer_refs.push(RemoteBufferIds { access_channel_type: kind, remote_buffer_ids: used.buffers });
        }
        if !self.switches.is_empty() {
            channels.push(ChannelIds { channel_type: ChannelType::Switch, buff: None, channel_ids: self.switches });
        }
        ThreadBlock { id, ops, channels, remote_buffer_refs }
    }
}

/// Returns the lengths of input and output in elements, which are the same for all GPUs in the runtime.
fn lengths(c: &Collective) -> (u32, u32) {
    match c.kind {
        Kind::Broadcast | Kind::Reduce => (c.elements, c.elements),
        _ => (c.input_len(0), c.output_len(0)),
    }
}

/// The two ends of each channel of a GPU, its own end first.
type Ends = Vec<(At, At)>;

impl Exporter<'_> {
    /// Returns the plan, with the indices of channels and remote buffers.
    pub(super) fn plan(self) -> Plan {
        let c = *self.schedule.collective();
        let (input, output) = lengths(&c);
        let is_ll = self.is_ll();
        // Each GPU offsets its writes of packets by half of its own scratch memory, also in the memory of another GPU.
        // All GPUs therefore get scratch memory of the same size.
        let same = (0..c.ranks).map(|gpu| self.scratch_chunks(gpu)).max().filter(|_| is_ll);
        // If the chunks of the input may not divide an allocation, the number of chunks is rounded up to a multiple of
        // 8, so that the second half begins at a multiple of 16 bytes.
        let is_odd = is_ll && !(input / self.form.unit).is_power_of_two();
        let gpus = (0..c.ranks).map(|id| {
            let scratch = same.unwrap_or_else(|| self.scratch_chunks(id));
            Gpu {
                input_chunks: input / self.form.unit,
                output_chunks: output / self.form.unit,
                scratch_chunks: if is_odd { scratch.next_multiple_of(8) } else { scratch },
                ..self.gpu(id)
            }
        });
        let bytes = u64::from(input.max(output)) * c.dtype.bytes();
        Plan {
            name: plan_name(self.schedule),
            collective: COLLECTIVES.name(c.kind).to_owned(),
            protocol: self.form.protocol,
            inplace: self.form.in_place,
            reuse_resources: false,
            use_double_scratch_buffer: is_ll,
            buffer_alignment: 16,
            num_threads_per_block: 1024,
            min_message_size: Some(bytes),
            max_message_size: Some(bytes),
            root: matches!(c.kind, Kind::Broadcast | Kind::Reduce).then(|| c.root.into()),
            gpus: gpus.collect(),
        }
    }

    /// Returns the number of chunks of scratch memory that a GPU needs.
    fn scratch_chunks(&self, gpu: u32) -> u32 {
        let n = gpu as usize;
        let raw = self.own[n] + self.copied[n] + self.temporary[n];
        self.landed[n] + if self.form.protocol == Protocol::LL { raw.div_ceil(2) } else { raw }
    }

    /// Returns a GPU with its thread blocks, without the lengths of its buffers.
    fn gpu(&self, id: u32) -> Gpu {
        let shares = self.form.shares;
        let mine = self.channels.iter().flat_map(|&(a, b)| [(a, b), (b, a)]).filter(|(own, _)| own.0 == id);
        let ends: [Ends; 2] = mine.partition(|end| !self.is_port(id, end.1.0)).into();
        let all_groups = self.switches.groups();
        let groups: Vec<u32> =
            all_groups.iter().zip(0..).filter(|(group, _)| group.contains(&id)).map(|(_, n)| n).collect();
        let count = self.made.range((id, 0)..(id + 1, 0)).map(|((_, block), _)| block + 1).max().unwrap_or(0);
        let mut remote = Vec::new();
        let mut threadblocks = Vec::new();
        for (share, block) in (0..shares).flat_map(|share| (0..count).map(move |block| (share, block))) {
            let mut lists = Lists::default();
            let steps = fused(self.made.get(&(id, block)).map_or(&[], Vec::as_slice));
            let steps = steps
                .into_iter()
                .map(|step| self.operation(step, share, (id, block), &ends, &mut lists, &mut remote, &groups));
            let mut ops: Vec<Op> = steps.collect();
            let semaphore = |name: Name, before: usize| Op {
                semaphore_ids: Some(vec![share * narrow::<u32>(count - 1) + narrow::<u32>(before)]),
                ..Step::new(name).into_op(Vec::new())
            };
            let meeting = || Step::meeting().into_op(Vec::new());
            if block > 0 {
                ops.splice(0..0, [semaphore(Name::SemAcquire, block - 1), meeting()]);
            }
            ops.push(meeting());
            if block + 1 < count {
                ops.push(semaphore(Name::SemRelease, block));
            }
            threadblocks.push(lists.block(narrow(threadblocks.len()), ops));
        }
        let mut channels = Vec::new();
        for (kind, ends) in [ChannelType::Memory, ChannelType::Port].into_iter().zip(&ends) {
            let peers: Vec<u32> = ends.iter().map(|(_, peer)| peer.0).collect();
            if kind == ChannelType::Memory || !peers.is_empty() {
                let connected_to = Some(peers.repeat(shares as usize));
                channels.push(Channels { channel_type: kind, connected_to, buffer_type: None, rank_groups: None });
            }
        }
        if !groups.is_empty() {
            let of = |&group: &u32| {
                let ranks = all_groups[group as usize].to_vec();
                RankGroup { size: narrow(ranks.len()), ranks }
            };
            channels.push(Channels {
                channel_type: ChannelType::Switch,
                connected_to: None,
                buffer_type: Some(Buffer::Scratch),
                rank_groups: Some(groups.iter().map(of).collect()),
            });
        }
        let access = |rank: u32| RemoteBuffer {
            rank,
            buffer: Buffer::Scratch,
            access_channel_types: vec![Self::channel_type(self.is_port(id, rank))],
        };
        Gpu {
            id,
            input_chunks: 0,
            output_chunks: 0,
            scratch_chunks: 0,
            threadblocks,
            channels,
            remote_buffers: remote.into_iter().map(access).collect(),
            semaphores: vec![Semaphore { init_value: 0 }; shares as usize * count.saturating_sub(1)],
        }
    }

    /// Returns an operation of one of the thread blocks (`share`) that divide the work of a block, with channels,
    /// remote buffers and groups as indices in that thread block's lists.
    #[expect(clippy::too_many_arguments, reason = "the lists that grow with the operations of a thread block")]
    fn operation(
        &self,
        mut step: Step,
        share: u32,
        at: At,
        ends: &[Ends; 2],
        lists: &mut Lists,
        remote: &mut Vec<u32>,
        groups: &[u32],
    ) -> Op {
        let shares = self.form.shares;
        let is_shared = shares > 1 && !step.sinks.is_empty() && step.name != Name::Flush;
        if is_shared {
            turned(&mut step, share, shares);
        }
        let (ends, used) =
            if step.is_on(ChannelType::Port) { (&ends[1], &mut lists.port) } else { (&ends[0], &mut lists.memory) };
        let first = share as usize * ends.len();
        let of_end = |&end: &At| {
            let of_gpu = ends.iter().position(|&both| both == (at, end)).unwrap_or(0);
            place(&mut used.channels, narrow(first + of_gpu))
        };
        let channel_ids = step.ends.iter().map(of_end).collect();
        for sink in &mut step.sinks {
            if let Some(buffer) = &mut sink.buffer_id {
                *buffer = place(&mut used.buffers, place(remote, *buffer));
            }
        }
        for slice in step.slices() {
            if let Some(channel) = &mut slice.switch_channel_id {
                let own = groups.iter().position(|group| group == channel).unwrap_or(0);
                *channel = place(&mut lists.switches, narrow(own));
            }
        }
        let ((part, parts), (share, shares)) = (step.part, if is_shared { (share, shares) } else { (0, 1) });
        let tbg_info =
            (parts * shares > 1).then_some(ThreadBlockGroup { tb_id: part * shares + share, tbg_size: parts * shares });
        Op { tbg_info, ..step.into_op(channel_ids) }
    }
}

/// Returns the index of a value in a list, after appending it if it is missing.
fn place(list: &mut Vec<u32>, value: u32) -> u32 {
    let place = list.iter().position(|&held| held == value).unwrap_or_else(|| {
        list.push(value);
        list.len() - 1
    });
    narrow(place)
}
