//! The reason why a plan does not end: a cycle of thread blocks that wait for each other, or a wait that can never end.

use super::{
    fault::{Fault, Place},
    program::{Act, Space, Span},
    run::{At, State},
};

/// Returns the fault of a run that got stuck.
pub fn fault(stuck: &State<'_>) -> Fault {
    let (program, done) = (stuck.program, &stuck.done);
    let first = (0..done.len()).find(|&b| done[b] < program.blocks[b].steps.len()).unwrap_or(0);
    let (mut path, mut lines) = (vec![first], Vec::new());
    loop {
        let at = path[path.len() - 1];
        let (line, next) = stuck.reason((at, done[at]));
        lines.push(line);
        let Some(next) = next else { break };
        if let Some(start) = path.iter().position(|&b| b == next) {
            let cycle = &path[start..];
            let places: Vec<String> = cycle.iter().map(|&b| program.step((b, done[b])).place.to_string()).collect();
            let place = program.step((cycle[0], done[cycle[0]])).place;
            let message = format!("{} wait for each other and never go on", places.join(" and "));
            let mut trace = stuck.ran(cycle);
            trace.extend(lines.drain(start..));
            return Fault::at("deadlock", &place, message).with_trace(trace);
        }
        path.push(next);
    }
    let last = path[path.len() - 1];
    let message = lines.pop().unwrap_or_default();
    let mut trace = stuck.ran(&[last]);
    trace.push(message.clone());
    Fault::at("unmatched", &program.step((last, done[last])).place, message).with_trace(trace)
}

impl State<'_> {
    /// Returns a sentence for each of `blocks` that has completed an operation, with the last completed one.
    fn ran(&self, blocks: &[usize]) -> Vec<String> {
        let ran = blocks.iter().filter(|&&b| self.done[b] > 0);
        ran.map(|&b| {
            let block = &self.program.blocks[b];
            let last = &block.steps[self.done[b] - 1].place;
            format!("gpus[{}].threadblocks[{}] runs its operations up to {last}", block.gpu, block.id)
        })
        .collect()
    }

    /// Returns the reason why a step cannot run, and the thread block that must advance first, if one can.
    fn reason(&self, at: At) -> (String, Option<usize>) {
        let step = self.program.step(at);
        let place = step.place;
        for (n, act) in step.acts.iter().enumerate() {
            match act {
                Act::Wait { end, .. } => {
                    let mine = self.program.ends[*end as usize];
                    let before =
                        step.acts[..n].iter().filter(|a| matches!(a, Act::Wait { end: e, .. } if e == end)).count();
                    let number = self.waits[*end as usize] + before;
                    let sent = mine.peer.map_or(0, |peer| self.signals[peer as usize].len());
                    if number < sent {
                        continue;
                    }
                    let next = mine.peer.and_then(|peer| {
                        self.later(number - sent, |a| matches!(a, Act::Signal { end, .. } if *end == peer))
                    });
                    let Some((signal, block)) = next else {
                        let line = format!(
                            "{place} waits for signal {} on {mine}, and gpu {} sends {sent}",
                            number + 1,
                            mine.peer_gpu
                        );
                        return (line, None);
                    };
                    return (format!("{place} waits for the signal of {signal} on {mine}"), Some(block));
                }
                Act::Acquire(semaphore) => {
                    let (gpu, index, initial) = self.program.semaphores[*semaphore as usize];
                    let released = self.releases[*semaphore as usize].len();
                    let next = self.later(0, |a| matches!(a, Act::Release(s) if s == semaphore));
                    let name = format!("semaphore {index} of gpu {gpu}");
                    let Some((release, block)) = next else {
                        let line = format!(
                            "{place} acquires {name} once more than its initial value {initial} and its {released} releases allow"
                        );
                        return (line, None);
                    };
                    return (format!("{place} waits for {release} to release {name}"), Some(block));
                }
                Act::Barrier { id, blocks } => return self.barrier(at, *id, *blocks),
                Act::Move(m) => {
                    for span in m.reads.iter().filter(|s| s.space == Space::Packets) {
                        if let Some(found) = self.missing_packets(at, *span) {
                            return found;
                        }
                    }
                }
                _ => {}
            }
        }
        (format!("{place} does not run"), None)
    }

    /// Searches the effects that have not run and satisfy `is`, and returns the place and the thread block of the one
    /// at index `skip`; `None` if there are fewer.
    fn later(&self, skip: usize, is: impl Fn(&Act) -> bool) -> Option<(Place, usize)> {
        let blocks = self.program.blocks.iter().enumerate();
        let rest = blocks.flat_map(|(b, block)| block.steps[self.done[b]..].iter().map(move |step| (b, step)));
        let mut found = rest.flat_map(|(b, step)| step.acts.iter().filter(|a| is(a)).map(move |_| (step.place, b)));
        found.nth(skip)
    }

    fn barrier(&self, at: At, id: u32, blocks: u32) -> (String, Option<usize>) {
        let gpu = self.program.blocks[at.0].gpu;
        let place = self.program.step(at).place;
        let is = |a: &Act| matches!(a, Act::Barrier { id: i, .. } if *i == id);
        let missing = self.program.blocks.iter().enumerate().find_map(|(b, block)| {
            let at_barrier = block.steps.get(self.done[b]).is_some_and(|s| s.acts.iter().any(is));
            let comes = || block.steps[self.done[b]..].iter().any(|s| s.acts.iter().any(is));
            (block.gpu == gpu && !at_barrier && comes()).then_some((b, block.id))
        });
        match missing {
            Some((b, name)) => (format!("{place} waits at barrier {id} for thread block {name}"), Some(b)),
            None => (format!("{place} waits at barrier {id} for {blocks} thread blocks, and fewer come"), None),
        }
    }

    /// Returns the reason why some packets have not been written; `None` if all have.
    fn missing_packets(&self, at: At, span: Span) -> Option<(String, Option<usize>)> {
        let place = self.program.step(at).place;
        let writes = |act: &Act, grain: u32| matches!(act, Act::Move(m) if m.writes.iter().any(|w| w.meets(Span { start: grain, len: 1, ..span })));
        for grain in span.start..span.end() {
            let blocks = self.program.blocks.iter().enumerate();
            let mut all =
                blocks.flat_map(|(b, block)| block.steps.iter().enumerate().map(move |(s, step)| (b, s, step)));
            let writer = all.find(|(_, _, step)| step.acts.iter().any(|a| writes(a, grain)));
            match writer {
                Some((b, s, _)) if s < self.done[b] => {}
                Some((b, _, step)) => {
                    return Some((format!("{place} waits for the packets of {}", step.place), Some(b)));
                }
                None => {
                    return Some((format!("{place} waits for packets of gpu {} that nothing writes", span.gpu), None));
                }
            }
        }
        None
    }
}
