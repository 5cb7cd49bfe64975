//! Operations of a plan under construction, which refer to the ends of channels until all indices are known.

use super::plan::{Buffer, ChannelType, Name, Op, Slice};

/// A GPU, and the index of one of its thread blocks.
pub(super) type At = (u32, usize);

/// An operation of a thread block. The `buffer_id` of a remote slice is its GPU, and the `switch_channel_id` of a slice
/// behind a switch is the index of its group.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub name: Name,
    pub sources: Vec<Slice>,
    pub sinks: Vec<Slice>,
    /// The thread blocks at the other ends of the operation's channels.
    pub ends: Vec<At>,
    pub channel: Option<ChannelType>,
    /// The index of the part that the operation covers, and the number of equal parts.
    pub part: (u32, u32),
}

impl Step {
    /// Returns an operation without data or channels.
    pub fn new(name: Name) -> Self {
        Self { name, sources: Vec::new(), sinks: Vec::new(), ends: Vec::new(), channel: None, part: (0, 1) }
    }

    /// Returns a meeting of the threads of a block.
    pub fn meeting() -> Self {
        Self::new(Name::Nop)
    }

    /// Returns an operation on channels of one type, such as a signal.
    pub fn on(channel: ChannelType, name: Name, ends: Vec<At>) -> Self {
        Self { ends, channel: Some(channel), ..Self::new(name) }
    }

    /// Returns an operation on data. A destination on another GPU, or behind a switch, determines the operation's type
    /// of channel.
    pub fn moving(name: Name, sources: &[Slice], sinks: &[Slice]) -> Self {
        let channel = sinks.iter().find_map(|sink| match (sink.switch_channel_id, sink.buffer_id) {
            (Some(_), _) => Some(ChannelType::Switch),
            (None, Some(_)) => Some(ChannelType::Memory),
            (None, None) => None,
        });
        Self { sources: sources.to_vec(), sinks: sinks.to_vec(), channel, ..Self::new(name) }
    }

    pub fn is_on(&self, channel: ChannelType) -> bool {
        self.channel == Some(channel)
    }

    pub fn slices(&mut self) -> impl Iterator<Item = &mut Slice> {
        self.sources.iter_mut().chain(&mut self.sinks)
    }

    /// Returns the operation for the file, on the channels `channel_ids`.
    pub fn into_op(self, channel_ids: Vec<u32>) -> Op {
        Op {
            name: self.name,
            src_buff: self.sources,
            dst_buff: self.sinks,
            channel_ids,
            channel_type: self.channel,
            reduce_op: self.name.reduces().then(|| "sum".to_owned()),
            tbg_info: None,
            barrier_id: None,
            num_threadblocks: None,
            semaphore_ids: None,
            iter_context: None,
            ops: Vec::new(),
        }
    }
}

impl Slice {
    pub fn local(buffer: Buffer, index: u32, size: u32) -> Self {
        Self { buffer: Some(buffer), buffer_id: None, switch_channel_id: None, index, size }
    }

    pub fn remote(buffer_id: u32, index: u32, size: u32) -> Self {
        Self { buffer: None, buffer_id: Some(buffer_id), switch_channel_id: None, index, size }
    }

    pub fn behind_switch(channel: u32, index: u32, size: u32) -> Self {
        Self { buffer: None, buffer_id: None, switch_channel_id: Some(channel), index, size }
    }
}
