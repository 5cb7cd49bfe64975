//! The steps of a thread block as the executor runs them, which may differ from those in the file.
//!
//! * A `nop` is not a step: its wait is added to those of the next step. The executor counts waits, not `nop`s, so a
//!   `nop` without a wait shifts the numbers of all later steps, and the `hasdep` of a `nop` has no effect.
//! * Consecutive `re` from one buffer into one place become one step with the count of the last, if only the first has
//!   a wait and no earlier one has `hasdep="1"`. A `nop` between them does not end such a run; its wait is added to the
//!   step after the run.
//! * A wait for step n ends with the first flag of at least n.
//!
//! Source: msccl-executor-nccl, `src/misc/msccl/msccl_parser.cc` and `src/device/msccl_kernel.cu`.

use unisono_base::narrow;
use unisono_formats::ImportError;

use super::{
    limits,
    ops::Place,
    program::{Block, Gpu, Program, Step, Type},
};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transmission {
    /// The line of the transmission's last step in the file, for errors.
    pub line: u32,
    /// The index of the transmission's first step in the thread block of the file.
    pub step: u32,
    pub kind: Type,
    /// The place that is read, or the places read by fused reductions, in order.
    pub sources: Vec<Place>,
    pub destination: Place,
    /// The length in chunks.
    pub count: u32,
    /// The transmissions of the same GPU that must be complete before, each as the index of its thread block and its
    /// index there.
    pub after: Vec<(u32, u32)>,
}

/// A wait for step `goal` of thread block `block`.
struct Wait {
    block: u32,
    goal: u32,
    line: u32,
}

struct Raw {
    made: Transmission,
    waits: Vec<Wait>,
    is_awaited: bool,
}

/// The transmissions of each thread block of each GPU.
pub type Running = Vec<Vec<Vec<Transmission>>>;

/// Returns the transmissions of a program.
///
/// # Errors
/// Returns the errors of [`transmissions`].
pub fn running(p: &Program) -> Result<Running, ImportError> {
    p.gpus.iter().map(transmissions).collect()
}

/// Returns the transmissions of each thread block of a GPU.
///
/// # Errors
/// Returns an error with the line if the executor's parser refuses a step, or a step waits for a flag that is never
/// set.
fn transmissions(gpu: &Gpu) -> Result<Vec<Vec<Transmission>>, ImportError> {
    let mut blocks = gpu.blocks.iter().map(parsed).collect::<Result<Vec<_>, _>>()?;
    let flags: Vec<Vec<(u32, u32)>> = blocks.iter().map(|b| flags(b)).collect();
    for raw in blocks.iter_mut().flatten() {
        for wait in &raw.waits {
            let Some(flags) = flags.get(wait.block as usize) else {
                let message =
                    format!("the step waits for step {} of thread block {}, which is not there", wait.goal, wait.block);
                return Err(ImportError::new(wait.line, message));
            };
            let Some(&(_, at)) = flags.iter().find(|(flag, _)| *flag >= wait.goal) else {
                return Err(ImportError::new(wait.line, never(&gpu.blocks[wait.block as usize], wait, flags)));
            };
            raw.made.after.push((wait.block, at));
        }
    }
    Ok(blocks.into_iter().map(|b| b.into_iter().map(|raw| raw.made).collect()).collect())
}

fn never(block: &Block, wait: &Wait, flags: &[(u32, u32)]) -> String {
    let base = format!("the step waits for step {} of thread block {}", wait.goal, wait.block);
    match block.steps.get(wait.goal as usize) {
        None => format!("{base}, which is not there"),
        Some(step) if !step.is_awaited => format!("{base}, which has hasdep=\"0\""),
        Some(step) if step.kind == Type::Nothing => {
            format!("{base}, a nop, whose hasdep the executor drops: the wait never ends")
        }
        Some(_) => {
            let last = flags.last().map_or("none".to_owned(), |(flag, _)| format!("number {flag}"));
            format!(
                "{base}, and the executor does not count a nop that waits for nothing, so that the last flag there is \
                 {last}: the wait never ends"
            )
        }
    }
}

/// Returns the flag that each transmission with `is_awaited` sets, and the index of the transmission.
fn flags(block: &[Raw]) -> Vec<(u32, u32)> {
    let mut step = 0;
    let mut found = Vec::new();
    for (at, raw) in block.iter().enumerate() {
        step += narrow::<u32>(raw.waits.len().saturating_sub(1));
        if raw.made.kind == Type::Reduce && raw.made.count > 0 {
            step += narrow::<u32>(raw.made.sources.len()) - 1;
        }
        if raw.is_awaited {
            found.push((step, narrow(at)));
        }
        step += 1;
    }
    found
}

fn parsed(block: &Block) -> Result<Vec<Raw>, ImportError> {
    let mut made: Vec<Raw> = Vec::new();
    let mut pending: Vec<Wait> = Vec::new();
    // `open` is true while the last transmission is a run of reductions that may continue.
    let (mut open, mut reductions) = (false, 0);
    for (n, step) in block.steps.iter().enumerate() {
        let wait = step.waits_for.map(|(block, goal)| Wait { block, goal, line: step.line });
        let waits = wait.is_some();
        pending.extend(wait);
        if step.kind == Type::Nothing {
            continue;
        }
        if let Some(last) = made.last_mut().filter(|last| open && !waits && continues(&last.made, step)) {
            last.made.line = step.line;
            last.made.count = step.count;
            last.made.sources.push(step.source);
            last.is_awaited = step.is_awaited;
            if last.made.sources.len() > limits::FUSED {
                let message = format!(
                    "the executor takes {} reductions as one, and holds {}; hasdep=\"1\" ends such a run",
                    last.made.sources.len(),
                    limits::FUSED
                );
                return Err(ImportError::new(step.line, message));
            }
        } else {
            if !pending.is_empty() && !waits {
                let message = "a nop before the step waits, and the step does not; the executor refuses such a file";
                return Err(ImportError::new(step.line, message));
            }
            let transmission = Transmission {
                line: step.line,
                step: narrow(n),
                kind: step.kind,
                sources: if step.kind.reads() { vec![step.source] } else { Vec::new() },
                destination: step.destination,
                count: step.count,
                after: Vec::new(),
            };
            made.push(Raw { made: transmission, waits: std::mem::take(&mut pending), is_awaited: step.is_awaited });
        }
        reductions += usize::from(step.kind == Type::Reduce);
        // The parser compares the number of reductions in the whole thread block with the number that it can fuse.
        open = step.kind == Type::Reduce && !step.is_awaited && reductions != limits::FUSED + 1;
    }
    Ok(made)
}

/// Returns whether a step continues a run of reductions.
fn continues(run: &Transmission, step: &Step) -> bool {
    step.kind == Type::Reduce
        && run.destination == step.destination
        && run.sources.last().is_some_and(|s| s.buffer == step.source.buffer)
}
