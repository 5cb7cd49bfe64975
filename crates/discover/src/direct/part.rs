//! One rank's part of a proved exchange: its instructions, with regions of the buffer in place of slices.
//!
//! The rank executes exactly this part. Slices of the schedule and regions are matched piece by piece, and an
//! instruction of an unexpected form is an error, so no instruction of the schedule is ignored.

use rustc_hash::FxHashMap;
use unisono_base::{InstrId, NodeId, narrow};
use unisono_schedule::Operand;

use super::{
    Direct,
    schedule::{Proven, whole_elements},
};
use crate::{
    error::DiscoverError,
    space::{Box3, Region},
};

/// One contribution to a part of the rank's output.
#[derive(Clone, PartialEq, Debug)]
pub struct Piece {
    /// The contributing rank; the data of the rank itself are in its input.
    pub from: u32,
    pub boxes: Vec<Box3>,
    /// The index of the first element in the message, or in the rank's own contribution.
    pub start: u64,
    /// True for the first contribution to its boxes. The first contribution is copied; each later one is combined with
    /// the result so far.
    pub first: bool,
}

/// The boxes that a rank sends and receives, in the order of its schedule. Each list's data are stored box after box.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RankPart {
    pub sends: Vec<(u32, Vec<Box3>)>,
    pub receives: Vec<(u32, Vec<Box3>)>,
    /// For a reduction: the contributions to the output, in the order in which they are combined.
    pub pieces: Vec<Piece>,
    /// The boxes of the rank's own contribution.
    pub own: Vec<Box3>,
}

/// The pieces in a memory, each with its offset and length in elements of the schedule, and the index of the message or
/// cell.
#[derive(Default)]
struct Layout(Vec<(u32, u32, usize)>);

impl Layout {
    fn push(&mut self, len: u32, at: usize) {
        let start = self.0.last().map_or(0, |last| last.0 + last.1);
        self.0.push((start, len, at));
    }

    /// Returns the pieces that form a slice; `None` if the slice cuts a piece.
    fn pieces(&self, start: u32, len: u32) -> Option<impl Iterator<Item = usize> + Clone + '_> {
        let first = self.0.binary_search_by_key(&start, |row| row.0).ok()?;
        let end = u64::from(start) + u64::from(len);
        let last = self.0[first..].iter().position(|row| u64::from(row.0) + u64::from(row.1) == end)?;
        Some(self.0[first..=first + last].iter().map(|row| row.2))
    }
}

/// Returns the part of `rank` in a proved schedule whose messages or cells carry `regions`.
pub(super) fn part(proven: &Proven, regions: &[Region], rank: u32) -> Result<RankPart, DiscoverError> {
    let schedule = &proven.schedule;
    let units = |elements| narrow::<u32>(whole_elements(proven.element_bytes, elements).1);
    let (mut inputs, mut outputs, mut packed) = (Layout::default(), Layout::default(), Layout::default());
    match &proven.lengths {
        Direct::Messages(messages) => {
            for (at, m) in messages.iter().enumerate() {
                if m.from == rank {
                    inputs.push(units(m.elements), at);
                }
                if m.to == rank {
                    outputs.push(units(m.elements), at);
                }
            }
        }
        Direct::Cells(cells) => {
            for (at, cell) in cells.iter().enumerate() {
                inputs.push(units(cell.elements), at);
                if cell.takers.has(rank) {
                    outputs.push(units(cell.elements), at);
                }
            }
        }
    }
    let boxes = |pieces: &[usize]| pieces.iter().flat_map(|&at| regions[at].boxes()).copied().collect::<Vec<_>>();
    let volume = |boxes: &[Box3]| boxes.iter().map(Box3::volume).sum::<u64>();
    let mut found = RankPart::default();
    // For each source rank, the index of its list, and the number of its elements so far.
    let mut taken: FxHashMap<u32, (usize, u64)> = FxHashMap::default();
    let combines = matches!(proven.lengths, Direct::Cells(_));
    for id in schedule.node_instrs(NodeId(rank)).map(InstrId::new) {
        let odd = || DiscoverError::Unproved(format!("instruction {id} has a form that no rank executes"));
        let len = schedule.instr(id).len;
        let slice = |layout: &Layout, start| layout.pieces(start, len).map(Iterator::collect::<Vec<_>>).ok_or_else(odd);
        let (sources, sinks) = (schedule.sources(id).to_vec(), schedule.sinks(id).to_vec());
        match (&sources[..], &sinks[..]) {
            (&[source @ (Operand::In(_) | Operand::Tmp(_))], &[Operand::Stream(stream)]) => {
                let layout = if matches!(source, Operand::In(_)) { &inputs } else { &packed };
                let (Operand::In(start) | Operand::Tmp(start)) = source else { return Err(odd()) };
                let &[to] = schedule.stream_sinks(stream) else { return Err(odd()) };
                found.sends.push((to.0, boxes(&slice(layout, start)?)));
            }
            (&[Operand::In(start)], &[Operand::Tmp(into)]) => {
                // Packed memory is filled in ascending order without gaps.
                if packed.0.last().map_or(0, |last| last.0 + last.1) != into {
                    return Err(odd());
                }
                for at in slice(&inputs, start)? {
                    let elements = volume(regions[at].boxes());
                    packed.push(units(elements), at);
                }
            }
            (&[.., source], &[Operand::Out(start)]) => {
                let first = match &sources[..] {
                    [_] => true,
                    &[Operand::Out(before), _] if before == start => false,
                    _ => return Err(odd()),
                };
                let into = slice(&outputs, start)?;
                let from = match source {
                    Operand::Stream(stream) => schedule.stream(stream).source.0,
                    // A rank's own contribution has equal offsets in input and output.
                    Operand::In(input) if slice(&inputs, input)? == into => rank,
                    _ => return Err(odd()),
                };
                let boxes = boxes(&into);
                let row = taken.entry(from).or_insert_with(|| {
                    if from != rank {
                        found.receives.push((from, Vec::new()));
                    }
                    (found.receives.len(), 0)
                });
                let list = if from == rank { &mut found.own } else { &mut found.receives[row.0 - 1].1 };
                list.extend(&boxes);
                let start = row.1;
                row.1 += volume(&boxes);
                if combines {
                    found.pieces.push(Piece { from, boxes, start, first });
                }
            }
            _ => return Err(odd()),
        }
    }
    Ok(found)
}
