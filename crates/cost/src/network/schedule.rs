//! The messages of a schedule among ranks, divided into rounds, and its longest chain of messages.

use rustc_hash::FxHashMap;
use unisono_base::{Diagnostic, Diagnostics};
use unisono_schedule::{Flow, Operand, Schedule, topological};

use crate::endpoint::terms::chains;

pub struct Message {
    pub from: u32,
    pub to: u32,
    pub bytes: u64,
}

/// The messages whose longest chains of earlier messages have equal lengths.
#[derive(Default)]
pub struct MessageRound {
    pub messages: Vec<Message>,
    /// The most bytes of operands that one rank reduces between the messages of this round and the messages of the next
    /// round.
    pub reduced: u64,
}

impl MessageRound {
    pub fn most_messages(&self, ranks: u32) -> u32 {
        let mut sent = vec![0; ranks as usize];
        self.messages.iter().for_each(|m| sent[m.from as usize] += 1);
        sent.into_iter().max().unwrap_or(0)
    }
}

/// Returns the messages in rounds, and the time in ns of the longest chain of messages. The round of a message is the
/// number of messages in the longest chain before it. A message takes `nanoseconds(from, to)`.
///
/// # Errors
///
/// Returns the faults of a schedule that is not well-formed, or that cannot run.
pub fn message_rounds(
    schedule: &Schedule,
    nanoseconds: impl Fn(u32, u32) -> f64,
) -> Result<(Vec<MessageRound>, f64), Vec<Diagnostic>> {
    let mut found = Diagnostics::default();
    let flow = Flow::new(schedule, &mut found);
    let order = if found.is_empty() { topological(schedule, &flow, &mut found) } else { Vec::new() };
    if !found.is_empty() {
        return Err(found.into_vec());
    }
    let chain: Vec<u32> = chains(schedule, &flow, &order, |_, _| 1);
    let node = |id| flow.node_of(id).0;
    let longest: Vec<f64> = chains(schedule, &flow, &order, |a, b| nanoseconds(node(a), node(b)));
    let width = schedule.collective().element_bytes();
    let mut rounds: Vec<MessageRound> = Vec::new();
    let mut work = FxHashMap::<(u32, u32), u64>::default();
    for &id in &order {
        let (depth, node) = (chain[id.index()], node(id));
        let bytes = u64::from(schedule.instr(id).len) * width;
        let operands = schedule.sources(id).len() as u64 - 1;
        if operands > 0 {
            *work.entry((depth, node)).or_default() += bytes * operands;
        }
        for sink in schedule.sinks(id).iter() {
            let Operand::Stream(stream) = sink else { continue };
            rounds.resize_with(rounds.len().max(depth as usize + 1), MessageRound::default);
            let to = schedule.stream_sinks(stream).iter();
            rounds[depth as usize].messages.extend(to.map(|to| Message { from: node, to: to.0, bytes }));
        }
    }
    for (&(depth, _), &bytes) in &work {
        // A reduction belongs to the round of the messages before it; a reduction before all messages belongs to the
        // first round.
        let round = (depth as usize).saturating_sub(1);
        rounds.resize_with(rounds.len().max(round + 1), MessageRound::default);
        rounds[round].reduced = rounds[round].reduced.max(bytes);
    }
    Ok((rounds, longest.into_iter().fold(0.0, f64::max)))
}
