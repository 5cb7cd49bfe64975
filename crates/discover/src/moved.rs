//! The data that a program moves between ranks, for cost models: each distinct operation once, with its number of
//! occurrences.
//!
//! Equal operations on one buffer before tasks of one name share one row, so a loop of any length has few rows.

use unisono_base::{BufferId, TaskId, narrow};

use crate::{
    direct::{Cell, Direct, DirectExchange, Message},
    exchange::Operation,
    pattern::Pattern,
    plan::{Pushed, ReadPlan},
    side::{Ranks, Sides},
};

/// The smallest and the largest of several counts of elements. There is one count for each participating rank or for
/// each message. Both values are 0 if there are no counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Extremes {
    pub least: u64,
    pub most: u64,
}

impl Extremes {
    pub(crate) fn of(counts: impl IntoIterator<Item = u64>) -> Self {
        let found = counts.into_iter().fold(None, |found: Option<Self>, n| match found {
            Some(Self { least, most }) => Some(Self { least: least.min(n), most: most.max(n) }),
            None => Some(Self { least: n, most: n }),
        });
        found.unwrap_or_default()
    }

    pub fn alike(self) -> bool {
        self.least == self.most
    }
}

/// A collective, or the messages of one read.
#[derive(Clone, PartialEq, Debug)]
pub struct What {
    /// The pattern; `None` for messages between pairs of ranks that are not a halo.
    pub pattern: Option<Pattern>,
    pub participants: Ranks,
    pub root: Option<u32>,
    /// The size of a collective, in elements. Allgather and gather: the contribution of each rank. Scatter and
    /// reduce-scatter: the result of each rank, except that of the root. Alltoall: the message of each pair. Other
    /// collectives: the whole vector. For messages between pairs: the lengths of the messages.
    pub part: Extremes,
    /// The elements that each rank contributes, each counted once. For messages: the elements that each rank sends.
    pub gives: Extremes,
    pub gets: Extremes,
    /// The number of elements that all ranks together receive from other ranks ([`Operation::elements`]).
    pub elements: u64,
    /// The messages `(from, to, elements)`, sorted by sender, then receiver. Usually empty for a collective. A
    /// collective without reduction has messages if its bytes exceed the count of one MPI call
    /// ([`crate::MOST_COUNTED`]); a reduction has `cells` instead.
    pub messages: Vec<(u32, u32, u64)>,
    /// For a reduction: the sets of elements with the same givers and takers.
    pub cells: Vec<Cell>,
    /// True if messages between pairs of ranks execute the operation for any element type, in place of a plan or a
    /// library.
    pub by_messages: bool,
}

impl What {
    pub fn of_operation(operation: &Operation, sides: &Sides, element_bytes: u64) -> Self {
        collective(operation, sides, element_bytes)
    }

    /// Returns the messages between pairs of ranks; `None` for a collective without reduction that a plan or a library
    /// executes.
    pub fn direct(&self) -> Option<Direct> {
        if !self.cells.is_empty() {
            return Some(Direct::Cells(self.cells.clone()));
        }
        let message = |&(from, to, elements): &(u32, u32, u64)| Message { from, to, elements };
        (!self.messages.is_empty()).then(|| Direct::Messages(self.messages.iter().map(message).collect()))
    }
}

/// The data of one operation or exchange, in all reads of one buffer by tasks of one name.
#[derive(Clone, PartialEq, Debug)]
pub struct Moved {
    /// The first task with such a read.
    pub before: TaskId,
    pub buffer: BufferId,
    /// The number of such reads.
    pub count: u64,
    pub what: What,
}

/// Returns the data that a read with this plan moves, in the order of issue.
pub fn moves(plan: &ReadPlan, sides: &Sides, element_bytes: u64) -> Vec<What> {
    let operations = plan.operations.iter().map(|operation| What::of_operation(operation, sides, element_bytes));
    let pushed = (!plan.pushed.parts.is_empty()).then(|| messages(&plan.pushed, sides));
    operations.chain(pushed.filter(|what| what.elements > 0)).collect()
}

fn collective(operation: &Operation, sides: &Sides, element_bytes: u64) -> What {
    let given = |k: u32| operation.given(sides, k).volume();
    let received = |k: u32| operation.received(sides, k).volume();
    let ranks = || operation.participants.iter();
    let others = || ranks().filter(|&k| Some(k) != operation.root);
    let root = operation.root.unwrap_or(0);
    let part = match operation.pattern {
        Pattern::Gather => Extremes::of(others().map(given)),
        Pattern::Allgather => Extremes::of(ranks().map(given)),
        Pattern::Broadcast => Extremes::of([given(root)]),
        Pattern::Scatter => Extremes::of(others().map(received)),
        Pattern::Alltoall => {
            let pairs = operation.participants.len().saturating_sub(1) as usize;
            Extremes::of(ranks().flat_map(|k| {
                let sent = operation.sends(sides, k);
                // If a pair of ranks has no message, the least size is 0.
                let nothing = (sent.len() < pairs).then_some(0);
                sent.into_iter().map(|(_, region)| region.volume()).chain(nothing).collect::<Vec<_>>()
            }))
        }
        Pattern::ReduceScatter => Extremes::of(ranks().map(received)),
        Pattern::Reduce => Extremes::of([received(root)]),
        Pattern::Allreduce | Pattern::Halo => Extremes::of(ranks().map(received)),
    };
    let by_messages = operation.by_messages(sides, element_bytes);
    let (mut messages, mut cells) = (Vec::new(), Vec::new());
    if by_messages || operation.pattern.reduces() {
        match DirectExchange::of_operation(operation, sides, None).lengths {
            Direct::Messages(list) => messages.extend(list.iter().map(|m| (m.from, m.to, m.elements))),
            Direct::Cells(list) => cells = list,
        }
    }
    What {
        pattern: Some(operation.pattern),
        participants: operation.participants.clone(),
        root: operation.root,
        part,
        gives: Extremes::of(ranks().map(given)),
        gets: Extremes::of(ranks().map(received)),
        elements: operation.elements(sides),
        messages,
        cells,
        by_messages,
    }
}

fn messages(pushed: &Pushed, sides: &Sides) -> What {
    let messages = pushed.messages(sides);
    let last = messages.iter().map(|m| m.0.max(m.1)).max().unwrap_or(0) as usize;
    let (mut gives, mut gets, mut takes_part) = (vec![0; last + 1], vec![0; last + 1], vec![false; last + 1]);
    for &(from, to, elements) in &messages {
        gives[from as usize] += elements;
        gets[to as usize] += elements;
        takes_part[from as usize] = true;
        takes_part[to as usize] = true;
    }
    let ranks = || (0..=last).filter(|&k| takes_part[k]);
    What {
        pattern: pushed.halo.then_some(Pattern::Halo),
        participants: Ranks::of(ranks().map(|k| (narrow(k), narrow::<u32>(k) + 1)).collect()),
        root: None,
        part: Extremes::of(messages.iter().map(|m| m.2)),
        gives: Extremes::of(ranks().map(|k| gives[k])),
        gets: Extremes::of(ranks().map(|k| gets[k])),
        elements: messages.iter().map(|m| m.2).sum(),
        messages,
        cells: Vec::new(),
        by_messages: true,
    }
}
