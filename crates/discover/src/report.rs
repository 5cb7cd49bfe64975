//! The report of `unisono discover` about a program.

use serde::Serialize;

use crate::{
    discovery::{Discovery, Options},
    error::DiscoverError,
    pattern::Pattern,
    program::Program,
    rules::Rules,
    space::Box3,
};

/// Data that a task (`before_task`) needs from an earlier task (`after_task`).
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename = "Forward")]
pub struct ForwardReport {
    pub after_task: String,
    pub before_task: String,
    /// The producer's index in the program, from 0.
    pub after_index: u32,
    /// The reader's index, from 0.
    pub before_index: u32,
    pub buffer: String,
    /// The region as a list of boxes `[min, max)`.
    pub region: Vec<Vec<Vec<i64>>>,
    pub collective: Option<Pattern>,
    /// The number of the forward's operation, which several forwards may share.
    pub group: Option<u32>,
}

/// The messages of all ranks.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename = "MessageCounts")]
pub struct Messages {
    /// The number of messages between pairs of ranks: one for each ordered pair that communicates in a read, also in a
    /// halo.
    pub p2p: u64,
    pub collective: u64,
    pub p2p_bytes: u64,
    /// The bytes that all ranks receive from other ranks in collectives; for a reduction, the minimum is counted
    /// ([`crate::Operation::elements`]).
    pub collective_bytes: u64,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename = "Discovered")]
pub struct Report {
    pub nodes: u32,
    /// The forwards in the order of issue, which is the same on every rank.
    pub forwards: Vec<ForwardReport>,
    pub messages: Messages,
}

pub fn report(program: &Program, nodes: u32, rules: Rules) -> Result<Report, DiscoverError> {
    let mut discovery = Discovery::new(Options::report(nodes, rules))?;
    program.submit(&mut discovery)?;
    Ok(report_of(&mut discovery))
}

/// Returns the report of the submitted tasks, and removes their forwards.
pub fn report_of(discovery: &mut Discovery) -> Report {
    let forwards = discovery.take_forwards();
    let (traffic, (pushed, moved)) = discovery.traffic();
    let buffers: Vec<_> = discovery.buffers().collect();
    let corners = |b: &Box3, dims: usize| vec![b.min[..dims].to_vec(), b.max[..dims].to_vec()];
    let forwards = forwards
        .iter()
        .map(|f| {
            let buffer = buffers[f.buffer.index()];
            ForwardReport {
                after_task: discovery.task_name(f.after).to_owned(),
                before_task: discovery.task_name(f.before).to_owned(),
                after_index: f.after.0,
                before_index: f.before.0,
                buffer: buffer.name.clone(),
                region: f.region.boxes().iter().map(|b| corners(b, buffer.dims)).collect(),
                collective: f.pattern,
                group: f.group,
            }
        })
        .collect();
    let messages =
        Messages { p2p: traffic.pushes, collective: traffic.collectives, p2p_bytes: pushed, collective_bytes: moved };
    Report { nodes: discovery.options().nodes, forwards, messages }
}
