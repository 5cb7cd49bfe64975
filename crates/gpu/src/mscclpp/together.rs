//! Fusion of puts to several GPUs into one operation, so that its shares send to all of them at once.
//!
//! A thread block runs its operations in order. `put a, signal a, put b, signal b` becomes `put a b, signal a b`: a put
//! does not wait, so both puts start at the same time as before, and no wait between them can delay a later signal.
//! Each share of such an operation begins with a different destination.

use super::{
    limits,
    plan::{ChannelType, Name},
    step::{At, Step},
};

/// Puts that become one operation, and the signals after them.
struct Window {
    put: Step,
    signals: Vec<At>,
}

fn is_put(step: &Step) -> bool {
    matches!(step.name, Name::Put | Name::Ppkt) && step.is_on(ChannelType::Memory)
}

impl Window {
    fn takes(&mut self, step: &Step) -> bool {
        let fits = |more: usize, held: usize| held + more <= limits::OP_CHANNELS;
        if is_put(step) {
            // The runtime reads all sources of a put from the buffer of the first one.
            let is_alike = self.put.name == step.name && self.put.sources[0].buffer == step.sources[0].buffer;
            if !is_alike || !fits(step.sinks.len(), self.put.sinks.len()) {
                return false;
            }
            self.put.sources.extend_from_slice(&step.sources);
            self.put.sinks.extend_from_slice(&step.sinks);
            return true;
        }
        let is_signal = step.name == Name::Signal && step.is_on(ChannelType::Memory);
        let is_new = step.ends.iter().all(|end| !self.signals.contains(end));
        if is_signal && is_new && fits(step.ends.len(), self.signals.len()) {
            self.signals.extend_from_slice(&step.ends);
            return true;
        }
        false
    }
}

/// Returns the operations of a thread block, with consecutive puts of one name and source buffer on memory
/// channels fused.
pub fn fused(steps: &[Step]) -> Vec<Step> {
    let (mut out, mut window, mut met) = (Vec::with_capacity(steps.len()), None::<Window>, false);
    for step in steps {
        if step.name == Name::Nop {
            met = true;
            continue;
        }
        if let Some(held) = &mut window
            && held.takes(step)
        {
            met = false;
            continue;
        }
        close(&mut out, window.take());
        if met {
            out.push(Step::meeting());
        }
        met = false;
        if is_put(step) {
            window = Some(Window { put: step.clone(), signals: Vec::new() });
        } else {
            out.push(step.clone());
        }
    }
    close(&mut out, window);
    if met {
        out.push(Step::meeting());
    }
    out
}

fn close(out: &mut Vec<Step>, window: Option<Window>) {
    let Some(Window { put, signals }) = window else { return };
    out.push(put);
    if !signals.is_empty() {
        out.push(Step::meeting());
        out.push(Step::on(ChannelType::Memory, Name::Signal, signals));
    }
}

/// Rotates the destinations of a put, so that its shares begin with different ones as far as there are enough.
pub fn turned(step: &mut Step, share: u32, shares: u32) {
    let count = step.sinks.len();
    if !is_put(step) || count < 2 {
        return;
    }
    // Each destination has its own source.
    let by = share as usize * count / shares as usize;
    step.sources.rotate_left(by);
    step.sinks.rotate_left(by);
}
