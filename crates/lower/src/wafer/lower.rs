//! Lowers a placed schedule to the program of a wafer.
//!
//! Streams of one color that meet at a router pass it in the order of their readers in the schedule. If two consecutive
//! streams use different ports there, the router must change its [`Position`] between them. The operation that sends
//! the first stream does this: either its own router advances after the last wavelet (`advance`), or a control wavelet
//! advances every router of the route (`control`). A control wavelet is correct only if no other router of the route
//! still needs its position. Lowering checks this rule, and that waits for colors do not form a cycle.
//!
//! For trees in pre-order, colored by the parity of the depth, the result has the routes of the paper's own code: only
//! the last child of a PE sends a control wavelet. Source: "Near-Optimal Wafer-Scale Reduce", sections 5 and 8.2.

use rustc_hash::FxHashSet;
use unisono_base::{Diagnostics, InstrId, LaneId, NodeId, StreamId, interrupt::check, limits, narrow};
use unisono_collective::Dtype;
use unisono_machine::Wafer;
use unisono_schedule::{
    Flow, Operand, Schedule,
    stored::packed,
    topological, topological_with,
    verify::{Method, Proof, Verified},
};

use super::{
    color::{Colors, allocate},
    program::{Color, ColorRoute, End, Op, PeProgram, Position, Step, WaferProgram},
    way::{Way, ways},
};
use crate::{GridPlacement, OnGrid, Placed};

/// The reasons why a placed schedule cannot be lowered to a program of this wafer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LowerError {
    #[error(transparent)]
    OverLimit(#[from] limits::OverLimit),
    #[error("the schedule or its placement is wrong: {0}")]
    Wrong(String),
    #[error("no wavelet carries elements of {found}; it carries one element of f32 or i32, or two of i16")]
    Dtype { found: &'static str },
    #[error(
        "a wavelet carries {each} elements of {dtype}, and an instruction or a buffer begins or ends within a wavelet; \
         choose a number of elements, and parameters, by which all parts are multiples of {each}"
    )]
    Packed { dtype: &'static str, each: u32 },
    #[error("the program needs {found} {what}{place}; the machine has {most}")]
    TooMany { what: &'static str, place: String, found: usize, most: usize },
    #[error("{0}")]
    Switching(String),
    #[error("{instr} waits for an instruction on another PE; only a stream can order those")]
    Wait { instr: InstrId },
}

/// Proves a schedule on a grid, and lowers it.
///
/// # Errors
/// Returns an error if [`lower`] does, or if the schedule cannot be proved or is not on a grid.
pub fn prove_and_lower(placed: &Placed, wafer: &Wafer) -> Result<WaferProgram, LowerError> {
    let wrong =
        |proof: Box<Proof>| LowerError::Wrong(proof.diagnostics.first().map_or_else(String::new, ToString::to_string));
    let proven = Verified::of(&placed.schedule, Method::Auto).map_err(wrong)?;
    let grid = placed.grid().ok_or_else(|| LowerError::Wrong("the schedule is not on a grid".to_owned()))?;
    lower(&proven, grid.placement, wafer)
}

/// # Errors
/// Returns an error if the placement is invalid, if no wavelet carries the datatype, if streams of one color need a
/// switch that routers cannot make, if an instruction waits for another PE, or if the schedule needs more colors,
/// positions, queues or threads than the wafer has.
pub fn lower(proven: &Verified, placement: &GridPlacement, wafer: &Wafer) -> Result<WaferProgram, LowerError> {
    let dtype = proven.schedule().collective().dtype;
    let each = packing(dtype).ok_or(LowerError::Dtype { found: dtype.name() })?;
    if each == 1 {
        return of_wavelets(proven.schedule(), placement, wafer);
    }
    let schedule = packed(proven.schedule(), each).ok_or(LowerError::Packed { dtype: dtype.name(), each })?;
    of_wavelets(&schedule, placement, wafer)
}

/// Returns the number of elements that one wavelet carries; `None` for datatypes that PE programs do not support.
///
/// A PE combines both 16-bit integers of a wavelet in one cycle. 16-bit floats are not supported, because their sums
/// round and results are compared exactly.
pub fn packing(dtype: Dtype) -> Option<u32> {
    match dtype {
        Dtype::F32 | Dtype::I32 => Some(1),
        Dtype::I16 => Some(2),
        Dtype::F64 | Dtype::F16 | Dtype::Bf16 | Dtype::I64 => None,
    }
}

/// Lowers a proven schedule whose elements are wavelets.
fn of_wavelets(schedule: &Schedule, placement: &GridPlacement, wafer: &Wafer) -> Result<WaferProgram, LowerError> {
    let placed = OnGrid { schedule, placement };
    let size = (schedule.instr_count() + schedule.stream_count()) as u128;
    limits::admit("the program of the wafer", 192 * size, 512 * size)?;
    let mut found = Diagnostics::default();
    let flow = Flow::new(schedule, &mut found);
    placed.placement.check(schedule, &mut found);
    if let Some(first) = found.into_vec().first() {
        return Err(LowerError::Wrong(first.to_string()));
    }
    let mut found = Diagnostics::default();
    let order = topological(schedule, &flow, &mut found);
    if let Some(first) = found.into_vec().first() {
        return Err(LowerError::Wrong(first.to_string()));
    }
    let mut rank = vec![0u32; schedule.instr_count()];
    for (at, id) in order.iter().enumerate() {
        rank[id.index()] = narrow(at);
    }
    let colors = allocate(placed, wafer)?;
    let mut visits = visits(placed, &flow, &rank, &colors);
    visits.sort_unstable_by_key(|v| (v.pe, v.color, v.rank));
    let switching = switching(schedule, &flow, &visits, wafer)?;
    programs(placed, &flow, wafer, &colors, &visits, &switching)
}

/// The passage of one stream through one router.
#[derive(Clone, Copy)]
struct Visit {
    pe: u32,
    color: Color,
    /// The position of the stream's first reader in the topological order. Streams of one color pass the router in the
    /// order of this number.
    rank: u32,
    stream: StreamId,
    position: Position,
}

fn visits(placed: OnGrid, flow: &Flow, rank: &[u32], colors: &Colors) -> Vec<Visit> {
    let schedule = placed.schedule;
    let mut visits = Vec::with_capacity(2 * schedule.stream_count());
    let mut way: Vec<Way> = Vec::new();
    for stream in schedule.all_streams() {
        check();
        let turn = flow.readers(stream).iter().map(|p| rank[p.instr.index()]).min().unwrap_or(u32::MAX);
        ways(placed, stream, &mut way);
        let color = colors.of(stream);
        visits.extend(way.iter().map(|w| Visit { pe: w.pe, color, rank: turn, stream, position: w.position }));
    }
    visits
}

/// The effect that the end of a stream has on the routers of its route.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Switch {
    /// The number of routers that must advance after the stream; `own` is true if the source's router is one of them.
    needed: u32,
    own: bool,
    /// The number of routers that must not advance after the stream: the next stream at the router has the same
    /// position, and a later stream has another position.
    harmed: u32,
}

fn switching(schedule: &Schedule, flow: &Flow, visits: &[Visit], wafer: &Wafer) -> Result<Vec<Switch>, LowerError> {
    let mut switches = vec![Switch::default(); schedule.stream_count()];
    // Pairs `(last push of the later stream, last pop of the earlier stream)`. The pop must come first; otherwise the
    // colors form a cycle of waits.
    let mut turns: FxHashSet<(InstrId, InstrId)> = FxHashSet::default();
    for at in visits.chunk_by(|a, b| (a.pe, a.color) == (b.pe, b.color)) {
        let positions = 1 + at.windows(2).filter(|w| w[0].position != w[1].position).count();
        if positions > wafer.switch_positions as usize {
            return Err(LowerError::TooMany {
                what: "switch positions",
                place: format!(" for color {} at PE {}", at[0].color, at[0].pe),
                found: positions,
                most: wafer.switch_positions as usize,
            });
        }
        // The index of the last visit after which the position changes.
        let last_change = at.windows(2).rposition(|w| w[0].position != w[1].position);
        for (n, visit) in at.iter().enumerate() {
            let switch = &mut switches[visit.stream.index()];
            let changes = at.get(n + 1).is_some_and(|next| next.position != visit.position);
            if changes {
                switch.needed += 1;
                switch.own |= schedule.stream(visit.stream).source.0 == visit.pe;
            } else if last_change.is_some_and(|last| n <= last) {
                switch.harmed += 1;
            }
        }
        for pair in at.windows(2) {
            let Some(push) = flow.writers(pair[1].stream).last() else { continue };
            for readers in flow.readers_by_sink(pair[0].stream) {
                if let Some(pop) = readers.last() {
                    turns.insert((push.instr, pop.instr));
                }
            }
        }
    }
    check_turns(schedule, flow, turns)?;
    for stream in schedule.all_streams() {
        let s = switches[stream.index()];
        let only_own = s.own && s.needed == 1;
        if s.needed > 0 && !only_own && s.harmed > 0 {
            return Err(LowerError::Switching(format!(
                "{stream} must switch {} routers behind it, but {} others on its route still need their position; \
                 give the streams that meet there different colors",
                s.needed, s.harmed
            )));
        }
    }
    Ok(switches)
}

fn check_turns(schedule: &Schedule, flow: &Flow, turns: FxHashSet<(InstrId, InstrId)>) -> Result<(), LowerError> {
    if turns.is_empty() {
        return Ok(());
    }
    if let Some((push, _)) = turns.iter().find(|(push, pop)| push == pop) {
        return Err(LowerError::Switching(format!(
            "{push} receives and sends on one color at one router, where the first stream must end before the second starts"
        )));
    }
    let mut turns: Vec<_> = turns.into_iter().collect();
    turns.sort_unstable();
    let mut found = Diagnostics::default();
    topological_with(schedule, flow, &turns, &mut found);
    match found.into_vec().first() {
        None => Ok(()),
        Some(first) => Err(LowerError::Switching(format!(
            "streams of one color wait for each other at routers: {}",
            first.message
        ))),
    }
}

fn programs(
    placed: OnGrid,
    flow: &Flow,
    wafer: &Wafer,
    colors: &Colors,
    visits: &[Visit],
    switches: &[Switch],
) -> Result<WaferProgram, LowerError> {
    let schedule = placed.schedule;
    let mut rest = visits;
    let program = |node: NodeId| -> Result<PeProgram, LowerError> {
        check();
        let here = rest.partition_point(|v| v.pe == node.0);
        let (mine, others) = rest.split_at(here);
        rest = others;
        let mut pe = PeProgram { scratch: schedule.scratch_elements(node), ..PeProgram::default() };
        for color in mine.chunk_by(|a, b| a.color == b.color) {
            let mut positions: Vec<Position> = color.iter().map(|v| v.position).collect();
            positions.dedup();
            pe.routes.push(ColorRoute::new(color[0].color, &positions));
        }
        for lane in schedule.lanes(node).map(LaneId::new) {
            let steps = schedule.lane_instrs(lane).map(|i| step(placed, flow, colors, switches, InstrId::new(i)));
            pe.threads.push(steps.collect::<Result<_, _>>()?);
        }
        waits(schedule, flow, node, &mut pe)?;
        check_limits(&pe, node, wafer)?;
        Ok(pe)
    };
    // PEs are lowered one after another into the tables, so only one program is in memory.
    let mut all = Ok(());
    let pes = schedule.all_nodes().map(program).map_while(|pe| pe.map_err(|e| all = Err(e)).ok());
    let program =
        WaferProgram::assemble(placed.placement.grid, *schedule.collective(), schedule.phases().to_vec(), pes);
    all.map(|()| program)
}

fn step(placed: OnGrid, flow: &Flow, colors: &Colors, switches: &[Switch], id: InstrId) -> Result<Step, LowerError> {
    let schedule = placed.schedule;
    let end = |operand: Operand| match operand {
        Operand::In(start) => End::In(start),
        Operand::Out(start) => End::Out(start),
        Operand::Tmp(start) => End::Tmp(start),
        Operand::Stream(s) => End::Fabric(colors.of(s)),
    };
    for (what, found) in [("sources", schedule.sources(id).len()), ("sinks", schedule.sinks(id).len())] {
        let most = usize::from(u8::MAX);
        if found > most {
            return Err(LowerError::TooMany { what, place: format!(" in {id}"), found, most });
        }
    }
    let mut op = Op { instr: id, phase: narrow(schedule.phase(id).0), ..Op::plain(schedule.instr(id).len) };
    // Only leaves, which send their inputs, are paced. Other PEs follow the pace of arrivals. The flood of the result
    // after a reduce is not paced.
    let memory = |o: Operand| !matches!(o, Operand::Stream(_));
    let given = |o: Operand| matches!(o, Operand::In(_));
    if schedule.sources(id).iter().all(given) && !schedule.sinks(id).iter().all(memory) {
        op.pace = placed.placement.pace;
    }
    let keeps = schedule.sinks(id).len() > 1;
    if keeps || schedule.sources(id).iter().filter(|&o| !memory(o)).count() > 1 {
        op.chunk = placed.placement.chunk.clamp(1, op.len.max(1));
        op.sinks_in_turn = keeps && placed.placement.chunk > 1;
    }
    for (stream, span) in flow.pushes(schedule, id) {
        let switch = switches[stream.index()];
        if switch.needed == 0 || span.end() < u64::from(schedule.stream(stream).len) {
            continue;
        }
        let slot = if switch.own && switch.needed == 1 { &mut op.advance } else { &mut op.control };
        if slot.replace(colors.of(stream)).is_some() {
            return Err(LowerError::Switching(format!("{id} would have to switch two colors at once")));
        }
    }
    Ok((op, schedule.sources(id).iter().map(end).collect(), schedule.sinks(id).iter().map(end).collect()))
}

/// Adds explicit dependencies as pairs of operations, which are numbered from 0 over all threads of the PE.
fn waits(schedule: &Schedule, flow: &Flow, node: NodeId, pe: &mut PeProgram) -> Result<(), LowerError> {
    let first = narrow::<u32>(schedule.node_instrs(node).start);
    for id in schedule.node_instrs(node).map(InstrId::new) {
        for &(_, earlier) in schedule.after(id) {
            if flow.node_of(earlier) != node {
                return Err(LowerError::Wait { instr: id });
            }
            pe.waits.push((id.0 - first, earlier.0 - first));
        }
    }
    Ok(())
}

fn check_limits(pe: &PeProgram, node: NodeId, wafer: &Wafer) -> Result<(), LowerError> {
    let used = |sources: bool| {
        let ends = pe.threads.iter().flatten().flat_map(|s| if sources { &s.1 } else { &s.2 });
        let fabric = ends.filter_map(|e| if let End::Fabric(c) = e { Some(*c) } else { None });
        fabric.collect::<FxHashSet<_>>().len()
    };
    // A PE has one queue for each color that it receives or sends, and each microthread uses one input queue.
    for (what, found, most) in [
        ("input queues", used(true), wafer.input_queues),
        ("output queues", used(false), wafer.output_queues),
        ("microthreads", pe.threads.len(), wafer.input_queues),
    ] {
        if found > most as usize {
            return Err(LowerError::TooMany { what, place: format!(" at PE {}", node.0), found, most: most as usize });
        }
    }
    Ok(())
}
