//! An execution plan in its JSON form, with the fields that the runtime's loader reads. The loader tests whether a key
//! exists, not whether it has a value: an empty list or a null is not the same as a missing key.
//!
//! Source: microsoft/mscclpp, `src/core/executor/execution_plan.cc` and `python/mscclpp/language/internal/` at commit
//! 1f5f065d.

use serde::{Deserialize, Deserializer, Serialize};
use unisono_base::keyed;
use unisono_formats::ImportError;

#[derive(Deserialize, Serialize, Clone, Debug)]
pub struct Plan {
    pub name: String,
    pub collective: String,
    pub protocol: Protocol,
    pub inplace: bool,
    #[serde(default)]
    pub reuse_resources: bool,
    /// True if every second launch uses the second half of scratch memory.
    #[serde(default)]
    pub use_double_scratch_buffer: bool,
    #[serde(default = "default_alignment")]
    pub buffer_alignment: u32,
    #[serde(default = "default_threads")]
    pub num_threads_per_block: u32,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub min_message_size: Option<u64>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub max_message_size: Option<u64>,
    /// The root of a broadcast or a reduce, which the loader ignores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<u64>,
    pub gpus: Vec<Gpu>,
}

/// Reads a key that exists. Like the loader, it treats a null as a value, which does not convert.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

fn default_threads() -> u32 {
    1024
}

fn default_alignment() -> u32 {
    16
}

/// The protocol of a plan. The loader treats each name except `LL` as `Simple`.
#[derive(Deserialize, Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(from = "String")]
pub enum Protocol {
    Simple,
    /// Packets of data with flags.
    LL,
}

impl From<String> for Protocol {
    fn from(name: String) -> Self {
        if name == "LL" { Self::LL } else { Self::Simple }
    }
}

#[derive(Deserialize, Serialize, Clone, Debug)]
pub struct Gpu {
    pub id: u32,
    pub input_chunks: u32,
    pub output_chunks: u32,
    pub scratch_chunks: u32,
    pub threadblocks: Vec<ThreadBlock>,
    pub channels: Vec<Channels>,
    pub remote_buffers: Vec<RemoteBuffer>,
    #[serde(default)]
    pub semaphores: Vec<Semaphore>,
}

#[derive(Deserialize, Serialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[serde(rename_all = "lowercase")]
pub enum ChannelType {
    Memory,
    Port,
    Switch,
    None,
}

#[derive(Deserialize, Serialize, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Buffer {
    #[serde(rename = "i")]
    Input,
    #[serde(rename = "o")]
    Output,
    #[serde(rename = "s")]
    Scratch,
}

/// The channels of one type. Memory and port channels have a peer each, switch channels a buffer and a group of GPUs
/// each. The loader reads the peers or the groups of each entry, so the keys exist even if the lists are empty.
#[derive(Deserialize, Serialize, Clone, Debug)]
pub struct Channels {
    pub channel_type: ChannelType,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub connected_to: Option<Vec<u32>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub buffer_type: Option<Buffer>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub rank_groups: Option<Vec<RankGroup>>,
}

#[derive(Deserialize, Serialize, Clone, Debug)]
pub struct RankGroup {
    pub size: u32,
    pub ranks: Vec<u32>,
}

#[derive(Deserialize, Serialize, Clone, Debug)]
pub struct RemoteBuffer {
    pub rank: u32,
    #[serde(rename = "type")]
    pub buffer: Buffer,
    pub access_channel_types: Vec<ChannelType>,
}

#[derive(Deserialize, Serialize, Clone, Debug)]
pub struct Semaphore {
    pub init_value: u32,
}

#[derive(Deserialize, Serialize, Clone, Debug)]
pub struct ThreadBlock {
    pub id: u32,
    pub ops: Vec<Op>,
    pub channels: Vec<ChannelIds>,
    #[serde(default)]
    pub remote_buffer_refs: Vec<RemoteBufferIds>,
}

#[derive(Deserialize, Serialize, Clone, Debug)]
pub struct ChannelIds {
    pub channel_type: ChannelType,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub buff: Option<Buffer>,
    pub channel_ids: Vec<u32>,
}

#[derive(Deserialize, Serialize, Clone, Debug)]
pub struct RemoteBufferIds {
    pub access_channel_type: ChannelType,
    pub remote_buffer_ids: Vec<u32>,
}

/// An operation. Its indices of channels and remote buffers refer to the lists of its thread block.
#[derive(Deserialize, Serialize, Clone, Debug)]
pub struct Op {
    pub name: Name,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub src_buff: Vec<Slice>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dst_buff: Vec<Slice>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub channel_ids: Vec<u32>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub channel_type: Option<ChannelType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reduce_op: Option<String>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub tbg_info: Option<ThreadBlockGroup>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub barrier_id: Option<u32>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub num_threadblocks: Option<u32>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub semaphore_ids: Option<Vec<u32>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub iter_context: Option<Iterations>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ops: Vec<Op>,
}

impl Op {
    pub fn semaphores(&self) -> &[u32] {
        self.semaphore_ids.as_deref().unwrap_or_default()
    }
}

/// The names of operations that the loader accepts.
#[derive(Deserialize, Serialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Name {
    Nop,
    Barrier,
    Put,
    Pws,
    Pwsf,
    Get,
    Copy,
    Signal,
    Wait,
    Flush,
    Re,
    Res,
    Rre,
    Rres,
    Ppkt,
    Rppkt,
    Respkt,
    Cpkt,
    Upkt,
    Repkt,
    Recpkt,
    Recspkt,
    Glres,
    Gstore,
    Gstorepkt,
    Rlxsignal,
    Rlxwait,
    Pipeline,
    #[serde(rename = "sem_acquire")]
    SemAcquire,
    #[serde(rename = "sem_release")]
    SemRelease,
}

impl Channels {
    pub fn peers(&self) -> &[u32] {
        self.connected_to.as_deref().unwrap_or_default()
    }

    pub fn groups(&self) -> &[RankGroup] {
        self.rank_groups.as_deref().unwrap_or_default()
    }
}

impl Name {
    /// Returns whether the kernel moves packets, which always are a whole slice, even in a pipeline.
    pub fn has_packets(self) -> bool {
        matches!(
            self,
            Self::Ppkt
                | Self::Rppkt
                | Self::Respkt
                | Self::Cpkt
                | Self::Upkt
                | Self::Repkt
                | Self::Recpkt
                | Self::Recspkt
                | Self::Gstorepkt
        )
    }

    pub fn reduces(self) -> bool {
        matches!(
            self,
            Self::Re
                | Self::Res
                | Self::Rre
                | Self::Rres
                | Self::Respkt
                | Self::Repkt
                | Self::Recpkt
                | Self::Recspkt
                | Self::Glres
        )
    }
}

impl Plan {
    /// Returns all operations, including those inside pipelines.
    pub fn ops(&self) -> impl Iterator<Item = &Op> {
        self.gpus.iter().flat_map(Gpu::ops)
    }
}

impl Gpu {
    /// Returns all operations, including those inside pipelines.
    pub fn ops(&self) -> impl Iterator<Item = &Op> {
        let outer = self.threadblocks.iter().flat_map(|block| &block.ops);
        outer.flat_map(|op| std::iter::once(op).chain(&op.ops))
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::SemAcquire => f.write_str("sem_acquire"),
            Self::SemRelease => f.write_str("sem_release"),
            other => f.write_str(&format!("{other:?}").to_lowercase()),
        }
    }
}

/// Chunks `index` to `index + size` of a local buffer, a remote buffer or a buffer behind a switch.
#[derive(Deserialize, Serialize, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slice {
    #[serde(rename = "type", default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Buffer>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub buffer_id: Option<u32>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub switch_channel_id: Option<u32>,
    pub index: u32,
    pub size: u32,
}

/// A thread block's share of an operation: its index in the group, and the size of the group.
#[derive(Deserialize, Serialize, Clone, Copy, Debug)]
pub struct ThreadBlockGroup {
    pub tb_id: u32,
    pub tbg_size: u32,
}

#[derive(Deserialize, Serialize, Clone, Copy, Debug)]
pub struct Iterations {
    /// The bytes that each operation moves in an iteration.
    pub unit_size: u64,
    pub num_chunks: u32,
}

/// Returns a plan as the JSON text of its file.
pub fn text(plan: &Plan) -> String {
    serde_json::to_string_pretty(plan).expect("numbers and names have a text") + "\n"
}

/// Reads the text of a plan.
///
/// # Errors
/// Returns one sentence with the path inside the file.
pub fn read(text: &str) -> Result<Plan, ImportError> {
    // A reader that tracks the path takes three times as long, so only an invalid text is read by it.
    keyed::json(text.as_bytes()).map_err(|error| {
        let mut json = serde_json::Deserializer::from_str(text);
        let again = serde_path_to_error::deserialize::<_, Plan>(keyed::source(&mut json));
        let Err(at) = again else { return ImportError::new(0, error.to_string()) };
        let path = at.path().to_string();
        let place = if path == "." { String::new() } else { format!("{path}: ") };
        ImportError::new(0, format!("{place}{}", at.into_inner()))
    })
}
