//! Adapts the chunk, pace and colors of a placement to the restrictions of a target of emitted code. The schedule stays
//! the same.
//!
//! * An instruction with several fabric sources or several sinks processes them in turn, in chunks, as no vector
//!   operation has three sources or two sinks.
//! * Leaves are not paced, as a vector operation runs at the speed of the datapath.
//! * No control wavelet is sent: routers switch only after their own PE has sent its last wavelet (`advance`). On some
//!   targets a switch changes the inputs or the outputs of wavelets, but not both.
//!
//! Additional colors remove the control wavelets. The streams of one color that one PE receives from one port are a
//! *group*. Two groups conflict if a router on both would have to switch between them without an `advance`. A greedy
//! coloring of the groups, in the order in which they pass routers, splits each color of the placement. Groups of
//! different colors without a common router may also share a color. Of three greedy colorings (each color separately;
//! all groups in that order; all groups by descending length) the one with the fewest colors is chosen. Lowering
//! allocates the colors of other streams.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use unisono_base::{Diagnostics, InstrId, StreamId, interrupt::check, narrow};
use unisono_schedule::{Flow, Operand, Schedule, topological};

use super::{
    lower::LowerError,
    program::{Port, Position},
    way::{Way, ways},
};
use crate::{ANY_COLOR, GridPlacement, OnGrid};

/// The restrictions of a target of emitted code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Needs {
    /// The minimum chunk ([`GridPlacement::chunk`]) if some instruction is not one vector operation: it replaces a
    /// chunk of 1.
    pub chunk: u32,
    /// The maximum number of fabric sources, 1 or 2, of a vector operation with two sources.
    pub fabric_sources: usize,
    /// True if one switch of a router may change both the input and the output ports of wavelets.
    pub switches_both_sides: bool,
}

/// The passage of one stream through one router; `turn` is the position of its first reader in the topological order.
struct Visit {
    pe: u32,
    color: u8,
    turn: u32,
    group: u32,
    /// True if the PE of the router sends the stream.
    own: bool,
    position: Position,
}

impl Needs {
    /// Returns the placement with the pace, chunk and colors that the needs require.
    ///
    /// # Errors
    /// Returns an error if the schedule or placement is invalid, or needs more colors than a placement can number.
    pub fn adapt(&self, placed: OnGrid) -> Result<GridPlacement, LowerError> {
        let mut placement = placed.placement.clone();
        placement.pace = 1;
        if placement.chunk == 1 && self.takes_turns(placed.schedule) {
            placement.chunk = self.chunk;
        }
        if !placement.colors.is_empty() {
            placement.colors = split(placed, self.switches_both_sides)?;
        }
        Ok(placement)
    }

    /// Returns whether some instruction cannot be one vector operation, because it has several sinks, or three or more
    /// sources with several streams among them, or more streams than one operation may have.
    fn takes_turns(&self, schedule: &Schedule) -> bool {
        (0..schedule.instr_count()).map(InstrId::new).any(|id| {
            let sources = schedule.sources(id);
            let streams = sources.iter().filter(|s| matches!(s, Operand::Stream(_))).count();
            schedule.sinks(id).len() > 1 || streams > 1 && (sources.len() > 2 || streams > self.fabric_sources)
        })
    }
}

/// Returns colors of all streams with which no control wavelets are needed, from the coloring with the fewest colors;
/// [`ANY_COLOR`] for streams without a color in the placement.
fn split(placed: OnGrid, both_sides: bool) -> Result<Vec<u8>, LowerError> {
    let schedule = placed.schedule;
    let groups = Groups::new(placed)?;
    let mut by_turn: Vec<u32> = (0..narrow(groups.count)).collect();
    let apart = coloring(&groups, &groups.conflicts(false, both_sides), &by_turn);
    let together = groups.conflicts(true, both_sides);
    let merged = coloring(&groups, &together, &by_turn);
    let mut routers = vec![0u32; groups.count];
    groups.visits.iter().for_each(|v| routers[v.group as usize] += 1);
    by_turn.sort_by_key(|&g| std::cmp::Reverse(routers[g as usize]));
    let longest_first = coloring(&groups, &together, &by_turn);
    // A new color is a pair: the placement's color (0 in merged colorings), and the number from the coloring.
    let colorings = [merged, longest_first].map(|share| share.into_iter().map(|n| (0, n)).collect::<Vec<_>>());
    let apart: Vec<(u8, u32)> = groups.color.iter().copied().zip(apart).collect();
    let count = |c: &[(u8, u32)]| c.iter().collect::<BTreeSet<_>>().len();
    let fewest = colorings.into_iter().fold(apart, |best, c| if count(&c) < count(&best) { c } else { best });
    let used: BTreeSet<(u8, u32)> = fewest.iter().copied().collect();
    let numbers: FxHashMap<(u8, u32), usize> = used.into_iter().enumerate().map(|(n, c)| (c, n)).collect();
    if numbers.len() >= usize::from(ANY_COLOR) {
        return Err(LowerError::TooMany {
            what: "colors",
            place: " without control wavelets".to_owned(),
            found: numbers.len(),
            most: usize::from(ANY_COLOR) - 1,
        });
    }
    let number = |stream: StreamId| groups.of[stream.index()].and_then(|g| numbers.get(&fewest[g as usize]));
    Ok(schedule.all_streams().map(|stream| number(stream).map_or(ANY_COLOR, |&n| narrow(n))).collect())
}

/// Numbers the colors of groups from 0 by a greedy coloring, in the given order. Each group gets the lowest number that
/// no conflicting earlier group has.
fn coloring(groups: &Groups, conflicts: &[BTreeSet<u32>], order: &[u32]) -> Vec<u32> {
    let mut numbers = vec![u32::MAX; groups.count];
    for &group in order {
        let taken: BTreeSet<u32> = conflicts[group as usize].iter().map(|&other| numbers[other as usize]).collect();
        numbers[group as usize] = (0..).find(|c| !taken.contains(c)).unwrap_or(0);
    }
    numbers
}

/// Returns whether a router may pass `later` after `earlier` on one color: in the same position, or in the next one, to
/// which the sender of `earlier` advances it. If the output ports change, `later` must have one output port, and the
/// target must support the switch if the input ports change too.
fn may_follow(earlier: &Visit, later: &Visit, both_sides: bool) -> bool {
    let (a, b) = (earlier.position, later.position);
    match (a.rx == b.rx, a.tx == b.tx) {
        (true, true) => true,
        (false, true) => earlier.own,
        (is_same, false) => earlier.own && b.tx.count() == 1 && (is_same || both_sides),
    }
}

struct Groups {
    /// The group of each stream; None if the placement assigns no color to the stream.
    of: Vec<Option<u32>>,
    count: usize,
    /// The placement's color of each group.
    color: Vec<u8>,
    /// Sorted by router, color and turn.
    visits: Vec<Visit>,
}

impl Groups {
    /// Returns, for each group, the groups whose colors must differ from its own.
    ///
    /// Two groups of one color need different colors if a router would have to switch between them other than by an
    /// advance. If `across` is true, groups of different colors that share a router also conflict, because their order
    /// is not known.
    fn conflicts(&self, across: bool, both_sides: bool) -> Vec<BTreeSet<u32>> {
        let mut conflicts = vec![BTreeSet::new(); self.count];
        for at in self.visits.chunk_by(|a, b| a.pe == b.pe) {
            check();
            // The last visit of each run of visits with equal color, group and position.
            let same = |a: &Visit, b: &Visit| (a.color, a.group, a.position) == (b.color, b.group, b.position);
            let runs: Vec<&Visit> = at.chunk_by(same).filter_map(<[Visit]>::last).collect();
            for (n, later) in runs.iter().enumerate() {
                for earlier in runs[..n].iter().filter(|e| e.group != later.group) {
                    let apart =
                        if earlier.color == later.color { !may_follow(earlier, later, both_sides) } else { across };
                    if apart {
                        conflicts[earlier.group as usize].insert(later.group);
                        conflicts[later.group as usize].insert(earlier.group);
                    }
                }
            }
        }
        conflicts
    }

    fn new(placed: OnGrid) -> Result<Self, LowerError> {
        let schedule = placed.schedule;
        let wrong = |found: Diagnostics| found.into_vec().first().map(|d| LowerError::Wrong(d.to_string()));
        let mut found = Diagnostics::default();
        let flow = Flow::new(schedule, &mut found);
        placed.placement.check(schedule, &mut found);
        if let Some(e) = wrong(found) {
            return Err(e);
        }
        let mut found = Diagnostics::default();
        let order = topological(schedule, &flow, &mut found);
        if let Some(e) = wrong(found) {
            return Err(e);
        }
        let mut rank = vec![0u32; schedule.instr_count()];
        for (at, id) in order.iter().enumerate() {
            rank[id.index()] = narrow(at);
        }
        let turn = |s: StreamId| flow.readers(s).iter().map(|p| rank[p.instr.index()]).min().unwrap_or(u32::MAX);
        let mut streams: Vec<StreamId> =
            schedule.all_streams().filter(|&s| placed.placement.color(s).is_some()).collect();
        streams.sort_unstable_by_key(|&s| (turn(s), s));
        // The group by color, receiving PE and port of that PE.
        let mut numbers: FxHashMap<(u8, u32, Option<Port>), u32> = FxHashMap::default();
        let mut all = Self { of: vec![None; schedule.stream_count()], count: 0, color: Vec::new(), visits: Vec::new() };
        let mut way: Vec<Way> = Vec::new();
        for stream in streams {
            check();
            let Some(color) = placed.placement.color(stream) else { continue };
            ways(placed, stream, &mut way);
            let sinks = schedule.stream_sinks(stream);
            let last = sinks.last().map_or(u32::MAX, |n| n.0);
            let from = way.iter().find(|w| w.pe == last).and_then(|w| w.position.rx.iter().next());
            // A flood (a stream with several sinks) is grouped by its source instead of its receiver. The two kinds of
            // keys cannot be equal, because keys of floods count down from the largest number.
            let key = if sinks.len() == 1 { last } else { u32::MAX - schedule.stream(stream).source.0 };
            let next = narrow::<u32>(numbers.len());
            let group = *numbers.entry((color, key, from)).or_insert(next);
            all.of[stream.index()] = Some(group);
            if group == next {
                all.color.push(color);
            }
            let (turn, source) = (turn(stream), schedule.stream(stream).source.0);
            let visit = |w: &Way| Visit { pe: w.pe, color, turn, group, own: w.pe == source, position: w.position };
            all.visits.extend(way.iter().map(visit));
        }
        all.count = numbers.len();
        all.visits.sort_by_key(|v| (v.pe, v.color, v.turn));
        Ok(all)
    }
}
