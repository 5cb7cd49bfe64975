//! Repeated launches. On a GPU, a launch begins after the previous one has ended; between GPUs only the operations of
//! the plan order launches.
//!
//! Plain data need the check of one launch only: each access of another GPU's memory begins after that GPU's kernel has
//! started and is complete before that kernel ends, which [`super::race`] proves. Packets need neither condition, so a
//! packet of a later launch may overwrite an earlier packet at the same offset before it is read. Two launches in
//! sequence show such a fault; if launches alternate between halves of scratch memory, three do. All launches are
//! equal, so the first and the last of these launches represent all such pairs. Other plans between two launches are
//! not considered.
//!
//! With `use_double_scratch_buffer`, the runtime shifts the addresses of local accesses and of packets by half of
//! scratch memory in every second launch, as each GPU counts launches. It does not shift plain data that another GPU, a
//! switch or a port channel accesses.

use std::collections::{BTreeMap, BTreeSet};

use unisono_base::narrow;
use unisono_formats::ImportError;

use super::{
    fault::{Fault, Place},
    knowledge::history,
    layout::Layout,
    plan::{Buffer, ChannelType, Name, Op, Plan},
    program::{Act, Block, Move, Program, Space, Span, Step},
    race::before,
    run::run,
};

/// The id of the barrier of all thread blocks of a GPU between two launches, which plans do not use.
const BOUNDARY: u32 = u32::MAX;
/// The number of faults of one kind after which the search ends.
const KEPT: usize = 64;

/// Returns the faults of repeated launches of a plan. A single launch of the plan must be correct.
pub fn faults(plan: &Plan, program: &Program, layout: &Layout, trust_relaxed: bool) -> Result<Vec<Fault>, ImportError> {
    let mut faults: Vec<Fault> = kept_buffers(plan).into_iter().collect();
    if plan.use_double_scratch_buffer {
        faults.extend(unlike_halves(plan, program));
        faults.extend(unshifted(program));
    }
    if faults.is_empty() && program.moves().any(|(_, m)| m.has_packets()) {
        let gap = if plan.use_double_scratch_buffer { 2 } else { 1 };
        faults.extend(overwritten(program, layout, gap, trust_relaxed)?);
    }
    Ok(faults)
}

/// Returns a fault if the plan has `reuse_resources`, with which the runtime keeps the input and output of the first
/// launch, so that later launches would access them.
fn kept_buffers(plan: &Plan) -> Option<Fault> {
    let is_given = |buffer: Buffer| buffer != Buffer::Scratch;
    let by_port = |op: &Op| {
        op.channel_type == Some(ChannelType::Port) && op.src_buff.iter().any(|s| s.buffer.is_some_and(is_given))
    };
    let gpu = plan.gpus.iter().find(|gpu| {
        gpu.remote_buffers.iter().any(|remote| is_given(remote.buffer))
            || gpu.channels.iter().any(|channel| channel.buffer_type.is_some_and(is_given))
            || gpu.ops().any(by_port)
    })?;
    plan.reuse_resources.then(|| {
        let message = "with reuse_resources, a launch reaches the input and output of other GPUs, and those behind a port \
                       channel, at the addresses of the first launch; use scratch memory, or leave reuse_resources out";
        Fault::of_gpu("relaunch", gpu.id, message.to_owned())
    })
}

/// Returns a fault if a GPU sends packets to a GPU with scratch memory of another size: the sender shifts its writes by
/// half of its own scratch memory, which is not half of the receiver's.
fn unlike_halves(plan: &Plan, program: &Program) -> Option<Fault> {
    let chunks = |gpu: u32| plan.gpus[gpu as usize].scratch_chunks;
    let (place, to) = program.moves().find_map(|(step, m)| {
        let packets = m.writes.iter().filter(|s| s.space == Space::Packets);
        let unlike = { packets }.find(|s| chunks(s.gpu) != chunks(step.place.gpu))?;
        Some((step.place, unlike.gpu))
    })?;
    // With `reuse_resources`, all scratch memories have one size.
    (!plan.reuse_resources).then(|| {
        let (own, theirs) = (chunks(place.gpu), chunks(to));
        let message = format!(
            "{place} writes packets to gpu {to}, behind half of its own scratch memory in each second launch, and gpu {to} \
             reads behind half of its own; gpu {} has {own} scratch_chunks and gpu {to} has {theirs}, so give both the same",
            place.gpu
        );
        let trace = vec![
            "launch 1 ends on all GPUs".to_owned(),
            format!("{place} of launch 2 writes packets behind {own} of the chunks of gpu {to}, whose half has {theirs}"),
        ];
        Fault::at("relaunch", &place, message).with_trace(trace)
    })
}

/// Returns a fault for each pair of overlapping accesses to scratch memory of which only one is shifted in every second
/// launch, up to [`KEPT`] faults.
fn unshifted(program: &Program) -> Vec<Fault> {
    let (mut shifted, mut fixed) = (Vec::new(), Vec::new());
    for (step, m) in program.moves() {
        let by_block = |span: &Span, writes: bool| {
            let is_local = span.gpu == step.place.gpu && (!m.by_switch || (!writes && step.place.name == Name::Gstore));
            is_local && (writes || m.port.is_none())
        };
        let both = m.reads.iter().map(|s| (s, false)).chain(m.writes.iter().map(|s| (s, true)));
        for (span, writes) in both.filter(|(s, _)| s.space == Space::Scratch) {
            if by_block(span, writes) { &mut shifted } else { &mut fixed }.push((*span, step.place));
        }
    }
    shifted.sort_by_key(|(span, _)| (span.gpu, span.start));
    let mut faults = Vec::new();
    for (span, place) in fixed {
        let Some((_, other)) = shifted.iter().find(|(s, _)| s.meets(span)) else { continue };
        let message = format!(
            "{place} reaches scratch memory of gpu {} at the same place in each launch, and {other} reaches it in the other \
             half in each second launch; leave use_double_scratch_buffer out, or move packets",
            span.gpu
        );
        let trace = vec![
            "launch 1 ends on all GPUs".to_owned(),
            format!("{place} of launch 2 reaches the first half of scratch memory of gpu {}", span.gpu),
            format!("{other} of launch 2 reaches the second half"),
        ];
        faults.push(Fault::at("relaunch", &place, message).with_trace(trace));
        if faults.len() >= KEPT {
            break;
        }
    }
    faults
}

/// Returns a fault for each write of packets over packets of `gap` launches earlier that may not have been read, up to
/// [`KEPT`] faults. If the launches do not end, returns the faults of their run.
fn overwritten(program: &Program, layout: &Layout, gap: u32, trust_relaxed: bool) -> Result<Vec<Fault>, ImportError> {
    let again = repeated(program, layout, gap + 1);
    let run = run(&again);
    if run.ends != Some(true) {
        let found = run.faults.into_iter().map(|fault| Fault { code: "relaunch", ..fault });
        return Ok(found.collect());
    }
    let history = history(&again, &run, trust_relaxed).map_err(|e| ImportError::new(0, e.to_string()))?;
    let launch = |at: (usize, usize)| again.step(at).place.launch.map_or(0, |launch| launch - 1);
    let mut readers: BTreeMap<(u32, u32), Vec<usize>> = BTreeMap::new();
    for (id, event) in history.events.iter().enumerate().filter(|(_, e)| launch(e.at) == 0) {
        for span in event.reads.iter().filter(|s| s.space == Space::Packets) {
            readers.entry((span.gpu, span.start)).or_default().push(id);
        }
    }
    let (mut faults, mut told) = (Vec::new(), BTreeSet::new());
    for event in history.events.iter().filter(|e| launch(e.at) == gap) {
        for span in event.writes.iter().filter(|s| s.space == Space::Packets) {
            let first = span.start - gap * layout.len(span.gpu, Space::Packets);
            let open = readers.get(&(span.gpu, first)).into_iter().flatten();
            for &reader in open.filter(|&&reader| !event.known.has_read(&history.events[reader])) {
                let late = history.events[reader].at;
                if !told.insert((late, event.at)) {
                    continue;
                }
                let (place, reading) = (again.step(event.at).place, again.step(late).place);
                let advice = if gap == 1 {
                    "; use_double_scratch_buffer gives each second launch a place of its own"
                } else {
                    ""
                };
                let message = format!(
                    "{place} writes packets of gpu {} over those that {reading} may still read; no signal reaches gpu {} \
                     after they have been read{advice}",
                    span.gpu, place.gpu
                );
                let mut trace = before(&again, &run, &[event.at]);
                trace.push(format!("{place} writes the packets"));
                trace.push(format!("{reading} reads them after that, and waits forever for those of its own launch"));
                faults.push(Fault::at("relaunch", &place, message).with_trace(trace));
                if faults.len() >= KEPT {
                    return Ok(faults);
                }
            }
        }
    }
    Ok(faults)
}

/// Returns several launches as one program. The packets of each launch have separate memory.
fn repeated(program: &Program, layout: &Layout, launches: u32) -> Program {
    // A thread block without operations takes part in no barrier between launches.
    let busy = || program.blocks.iter().filter(|block| !block.steps.is_empty());
    let blocks = busy().map(|block| {
        let of_gpu = narrow(busy().filter(|other| other.gpu == block.gpu).count());
        let mut steps = Vec::with_capacity((block.steps.len() + 1) * launches as usize);
        for launch in 0..launches {
            if let Some(last) = steps.last().map(|step: &Step| step.place) {
                steps.push(Step { place: last, acts: vec![Act::Barrier { id: BOUNDARY, blocks: of_gpu }] });
            }
            steps.extend(block.steps.iter().map(|step| relaunched(step, layout, launch)));
        }
        Block { steps, ..*block }
    });
    let blocks = blocks.collect();
    Program { blocks, ends: program.ends.clone(), semaphores: program.semaphores.clone(), gpus: program.gpus }
}

fn relaunched(step: &Step, layout: &Layout, launch: u32) -> Step {
    let moved = |span: &Span| match span.space {
        Space::Packets => Span { start: span.start + launch * layout.len(span.gpu, Space::Packets), ..*span },
        _ => *span,
    };
    let all = |spans: &[Span]| spans.iter().map(moved).collect();
    let acts = step.acts.iter().map(|act| match act {
        Act::Move(m) => Act::Move(Move { reads: all(&m.reads), writes: all(&m.writes), ..*m }),
        other => other.clone(),
    });
    let place = Place { launch: Some(launch + 1), ..step.place };
    Step { place, acts: acts.collect() }
}
