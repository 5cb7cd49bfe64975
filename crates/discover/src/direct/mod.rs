//! Operations as messages between pairs of ranks, all sent concurrently: one list for predictions, proofs and
//! execution.
//!
//! Reads without a collective communicate in this way, and so do collectives that neither a plan nor a library
//! executes. [`Direct`] contains only the lengths. A predicted time, a proof and a digest depend on nothing else, so
//! equal reads of a loop share them. [`DirectExchange`] adds the region of the buffer that each message or cell
//! carries.
//!
//! **All messages, or those of one rank.** Every rank lists all messages of an exchange with at most [`MOST_MESSAGES`]
//! messages. In a larger exchange, each rank lists only the messages that it sends or receives, so the sender and the
//! receiver of a message both list it. [`schedule`] explains why a proof of this part is enough.

mod cells;
mod part;
mod reads;
mod schedule;

use unisono_base::{limits::take, mix, narrow};

pub use part::{Piece, RankPart};
pub use reads::ProvedReads;
pub use schedule::{DirectSchedule, Proofs, whole_elements};

use crate::{
    exchange::{Operation, OwnedRegion, by_rank, received, targets},
    plan::Pushed,
    side::{Ranks, SideId, Sides},
    space::Region,
};

/// The size of the largest exchange that each rank lists and proves as a whole, which takes a few tenths of a second.
/// The size is the number of ordered pairs of participants or, for a read without a collective, the estimated number of
/// messages.
pub const MOST_MESSAGES: u64 = 1 << 16;

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Message {
    pub from: u32,
    pub to: u32,
    pub elements: u64,
}

/// A set of elements with the same contributors and the same receivers of their sums.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Cell {
    pub elements: u64,
    pub givers: Ranks,
    pub takers: Ranks,
}

/// The lengths of an exchange by messages.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Direct {
    /// One message for each pair of ranks that communicate, sorted by sender, then receiver.
    Messages(Vec<Message>),
    /// A reduction. Each giver of a cell sends its partial result to each taker; all cells of a pair share one message.
    Cells(Vec<Cell>),
}

impl Direct {
    /// Returns the name of the schedule, which is equal if the exchanges and the element sizes are equal.
    pub fn name(&self, element_bytes: u64) -> String {
        let mut digest = element_bytes;
        let mut add = |n: u64| digest = mix(digest ^ n).wrapping_add(1);
        match self {
            Self::Messages(messages) => messages.iter().for_each(|m| {
                add(u64::from(m.from) << 32 | u64::from(m.to));
                add(m.elements);
            }),
            Self::Cells(cells) => {
                // This value separates cells from messages: no message has these ranks, so no list of messages has the
                // same digest input.
                add(u64::MAX);
                for cell in cells {
                    add(cell.elements);
                    for ranks in [&cell.givers, &cell.takers] {
                        add(ranks.intervals().len() as u64);
                        ranks.intervals().iter().for_each(|&(a, b)| add(u64::from(a) << 32 | u64::from(b)));
                    }
                }
            }
        }
        format!("messages-{digest:016x}")
    }

    /// Returns one message for each ordered pair of ranks that communicate, ascending.
    pub fn messages(&self) -> Vec<Message> {
        let cells = match self {
            Self::Messages(messages) => return messages.clone(),
            Self::Cells(cells) => cells,
        };
        let mut rows: Vec<Message> = Vec::new();
        for cell in cells {
            let pairs = u128::from(cell.givers.len()) * u128::from(cell.takers.len());
            take("the list of messages", 32 * (rows.len() as u128 + pairs));
            for from in cell.givers.iter() {
                let others = cell.takers.iter().filter(|&to| to != from);
                rows.extend(others.map(|to| Message { from, to, elements: cell.elements }));
            }
        }
        rows.sort_unstable();
        rows.dedup_by(|row, last| {
            let same = (row.from, row.to) == (last.from, last.to);
            last.elements += if same { row.elements } else { 0 };
            same
        });
        rows
    }
}

/// An exchange by messages, with the region that each message or cell carries.
#[derive(Clone, PartialEq, Debug)]
pub struct DirectExchange {
    pub lengths: Direct,
    /// The region of each message or cell, in the order of `lengths`.
    pub regions: Vec<Region>,
    /// True if the messages of all ranks are listed, false if only those of one rank are.
    pub complete: bool,
}

impl DirectExchange {
    fn of_rows(mut rows: Vec<(u32, u32, Region)>, complete: bool) -> Self {
        rows.sort_unstable_by_key(|&(from, to, _)| (from, to));
        let message = |&(from, to, ref region): &(u32, u32, Region)| Message { from, to, elements: region.volume() };
        let lengths = Direct::Messages(rows.iter().map(message).collect());
        Self { lengths, regions: rows.into_iter().map(|row| row.2).collect(), complete }
    }

    /// Returns an operation's messages: all of them, or those of `rank` if the whole is too large to list.
    pub fn of_operation(operation: &Operation, sides: &Sides, rank: Option<u32>) -> Self {
        let ranks = u64::from(operation.participants.len());
        let only = rank.filter(|_| ranks * ranks.saturating_sub(1) > MOST_MESSAGES);
        if operation.pattern.reduces() {
            return cells::of_reduction(operation, sides, only);
        }
        let to = |to: u32| operation.receives(sides, to).into_iter().map(move |(from, region)| (from, to, region));
        let rows = match only {
            None => gathered(operation.participants.iter().map(to)),
            Some(rank) => {
                let sends = operation.sends(sides, rank).into_iter().map(|(to, region)| (rank, to, region));
                to(rank).chain(sends).collect()
            }
        };
        Self::of_rows(rows, only.is_none())
    }

    /// Returns the messages of a read, like [`Self::of_operation`].
    pub fn of_pushed(pushed: &Pushed, sides: &Sides, rank: Option<u32>) -> Self {
        let Pushed { reader, parts, readers, .. } = pushed;
        let only = rank.filter(|_| pairs(sides, readers, *reader, parts) > MOST_MESSAGES);
        let to = |to: u32| {
            let from = by_rank(parts.iter().flat_map(|part| received(sides, to, *reader, part)));
            from.into_iter().map(move |(from, region)| (from, to, region))
        };
        let rows = match only {
            None => gathered(readers.iter().map(to)),
            Some(rank) => {
                let sends = by_rank(parts.iter().flat_map(|part| targets(sides, rank, *reader, part)));
                to(rank).chain(sends.into_iter().map(|(to, region)| (rank, to, region))).collect()
            }
        };
        Self::of_rows(rows, only.is_none())
    }
}

fn gathered<I: Iterator<Item = (u32, u32, Region)>>(rows: impl Iterator<Item = I>) -> Vec<(u32, u32, Region)> {
    let mut all = Vec::new();
    for rows in rows {
        take("the list of messages", 64 * all.len() as u128);
        all.extend(rows);
    }
    all
}

/// Estimates the number of messages that the readers of some parts receive, from a sample of the readers.
pub fn pairs(sides: &Sides, readers: &Ranks, reader: SideId, parts: &[OwnedRegion]) -> u64 {
    const ASKED: u32 = 4;
    let of = |k: u32| {
        let from =
            parts.iter().map(|part| sides[part.owner].touching(&crate::exchange::need(sides, k, reader, part)).len());
        from.map(u64::from).sum::<u64>()
    };
    let asked = readers.iter().step_by(narrow(readers.len().div_ceil(ASKED).max(1)));
    let (sum, count) = asked.map(of).fold((0, 0), |(sum, count), pairs| (sum + pairs, count + 1));
    (sum / count.max(1)).saturating_mul(u64::from(readers.len()))
}
