//! The normal form of a wafer program: the properties that CSL can express.
//!
//! The form omits these parts of a program: the schedule instruction from which an operation was lowered; the chunk of
//! an operation, unless its sources or sinks are taken in turns; threads without operations; repeated waits; and waits
//! for an earlier operation of the same thread. If an operation has two sources, a fabric source is moved behind a
//! memory source: `@fadds` requires this order, and all emitted operators commute. A fabric sink is moved behind the
//! memory sink from which it takes chunks.

use unisono_base::{InstrId, narrow};
use unisono_lower::wafer::{End, PeProgram, WaferProgram};

/// Returns whether an operation takes two or more fabric sources in turns: one chunk of each source after another,
/// through memory. An operation takes sources in turns if it has three or more sources, which do not fit into one
/// vector operation, or chunks of several elements.
pub(super) fn in_turns(sources: &[End], chunk: u32) -> bool {
    let fabric = sources.iter().filter(|s| matches!(s, End::Fabric(_))).count();
    fabric > 1 && (sources.len() > 2 || chunk > 1)
}

/// Returns the program of a PE with its threads and waits in normal form.
pub(super) fn normalised_pe(program: &WaferProgram, pe: usize) -> PeProgram {
    let mut threads = Vec::new();
    let mut waits = Vec::new();
    let first = program.threads(pe).next().map_or(0, |t| program.thread_ops(t).start);
    for thread in program.threads(pe) {
        let ops = program.thread_ops(thread);
        if ops.is_empty() {
            continue;
        }
        for op in ops.clone() {
            let others = program.waits(op).filter(|w| !(ops.start..op).contains(w));
            waits.extend(others.map(|w| (narrow(op - first), narrow::<u32>(w).wrapping_sub(narrow(first)))));
        }
        let steps = ops.map(|op| {
            let mut o = *program.op(op);
            o.instr = InstrId(0);
            if !in_turns(program.sources(op), o.chunk) && !o.sinks_in_turn {
                o.chunk = 1;
            }
            let mut sources = program.sources(op).to_vec();
            if let [End::Fabric(_), second] = sources[..]
                && !matches!(second, End::Fabric(_))
            {
                sources.swap(0, 1);
            }
            let mut sinks = program.sinks(op).to_vec();
            sinks.sort_by_key(|s| matches!(s, End::Fabric(_)));
            (o, sources, sinks)
        });
        threads.push(steps.collect());
    }
    waits.sort_unstable();
    waits.dedup();
    PeProgram { routes: program.routes(pe).to_vec(), threads, waits, scratch: program.scratch_elements(pe) }
}
