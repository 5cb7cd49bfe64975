//! Assigns a queue to each color of a program file.
//!
//! A queue serves one color. On the WSE-2, an operation's microthread is the number of its output queue, or of its
//! first input queue if the operation sends nothing; two operations that may run together must differ in queue and
//! microthread. On the WSE-3, each thread has its own microthread, so only queues must differ.

use unisono_lower::wafer::End;

use super::plan::{ClassKey, Operation};
use crate::{SdkTarget, order::Order};

/// For each color parameter, its input and its output queue; `None` if no operation receives from, or sends on, the
/// color.
pub struct Queues {
    pub input: Vec<Option<u8>>,
    pub output: Vec<Option<u8>>,
}

impl Queues {
    pub fn assign(key: &ClassKey, target: &SdkTarget) -> Result<Self, String> {
        let lengths: Vec<usize> = key.threads.iter().map(Vec::len).collect();
        let order = Order::new(&lengths, &key.waits)
            .ok_or("the threads wait for each other in a circle, or for what is not there")?;
        let ops: Vec<&Operation> = key.threads.iter().flatten().collect();
        let colors = usize::from(key.colors);
        let mut queues = Queues { input: vec![None; colors], output: vec![None; colors] };
        queues.outputs(&ops, target)?;
        // For each color, the queue numbers (one bit each) that its input queue must not have. `names_thread` marks the
        // colors whose input queue determines a microthread.
        let mut avoid = vec![0u32; colors];
        let mut names_thread = vec![false; colors];
        if key.threads.len() > 1 {
            for (a, op) in ops.iter().enumerate() {
                let together = (0..ops.len()).filter(|&b| order.may_meet(a, b));
                for b in together {
                    no_color_twice(op, ops[b])?;
                    if let Some(sent) = ops[b].sends()
                        && target.microthreads.is_empty()
                    {
                        for c in name_threads(op) {
                            names_thread[c] = true;
                            if let Some(q) = queues.output[sent] {
                                avoid[c] |= 1 << q;
                            }
                        }
                    }
                }
            }
        }
        queues.inputs(&ops, &avoid, &names_thread, target)?;
        Ok(queues)
    }

    fn outputs(&mut self, ops: &[&Operation], target: &SdkTarget) -> Result<(), String> {
        let mut free = target.output_queues.iter();
        for op in ops {
            if let Some(c) = op.sends()
                && self.output[c].is_none()
            {
                self.output[c] = Some(
                    *free
                        .next()
                        .ok_or_else(|| too_many("sends on", sent(ops), target.output_queues.len(), "output"))?,
                );
            }
        }
        Ok(())
    }

    fn inputs(
        &mut self,
        ops: &[&Operation],
        avoid: &[u32],
        names_thread: &[bool],
        target: &SdkTarget,
    ) -> Result<(), String> {
        let all = received(ops);
        let mut free: Vec<u8> = target.input_queues.to_vec();
        if all.len() > free.len() {
            return Err(too_many("receives on", all.len(), free.len(), "input"));
        }
        // The colors whose choice is restricted get their queues first.
        let (bound, rest): (Vec<usize>, Vec<usize>) = all.into_iter().partition(|&c| names_thread[c]);
        for c in bound.into_iter().chain(rest) {
            let at = free.iter().position(|&q| avoid[c] >> q & 1 == 0).ok_or(
                "no input queue is left whose microthread is not taken by a sender that runs at the same time",
            )?;
            self.input[c] = Some(free.remove(at));
        }
        Ok(())
    }
}

fn too_many(what: &str, found: usize, limit: usize, kind: &str) -> String {
    format!("the PE {what} {found} colors; it has {limit} {kind} queues")
}

fn fabric(ends: &[End]) -> impl Iterator<Item = usize> + '_ {
    ends.iter().filter_map(|e| match e {
        End::Fabric(c) => Some(usize::from(*c)),
        _ => None,
    })
}

fn distinct(colors: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut seen = Vec::new();
    for c in colors {
        if !seen.contains(&c) {
            seen.push(c);
        }
    }
    seen
}

fn received(ops: &[&Operation]) -> Vec<usize> {
    distinct(ops.iter().flat_map(|o| fabric(&o.sources)))
}

fn sent(ops: &[&Operation]) -> usize {
    distinct(ops.iter().filter_map(|o| o.sends())).len()
}

/// Returns the colors whose input queues determine the microthreads of an operation; if it takes sources in turns, the
/// colors of all its vector operations that write to memory.
fn name_threads(op: &Operation) -> Vec<usize> {
    let sends = matches!(op.sink, End::Fabric(_));
    if op.mapped {
        return fabric(&op.sources).collect();
    }
    if !op.in_turns() {
        return if sends { Vec::new() } else { fabric(&op.sources).take(1).collect() };
    }
    let to_memory = op.sources.len() - usize::from(sends);
    let first = op.first_taken();
    // If a vector operation takes two sources, the first one from the fabric determines its microthread.
    let named = fabric(&op.sources[..first]).take(1).collect::<Vec<_>>();
    named.into_iter().chain(fabric(&op.sources[first..to_memory.max(first)])).collect()
}

fn no_color_twice(a: &Operation, b: &Operation) -> Result<(), String> {
    let shared = fabric(&a.sources).find(|c| fabric(&b.sources).any(|d| d == *c));
    let sent = a.sends().is_some() && a.sends() == b.sends();
    if shared.is_some() || sent {
        let what = if sent { "send on" } else { "receive on" };
        return Err(format!(
            "two threads {what} one color at the same time; a color has one queue, which serves one operation"
        ));
    }
    Ok(())
}
