//! Puts to several GPUs in one operation, so that thread blocks that share it serve all of these GPUs at once.
//!
//! A thread block runs its operations in order. `put a, signal a, put b, signal b` becomes `put a b, signal a b`: a put
//! waits for nothing, so both are as soon, and no wait lies in between that a later signal could hold up. Each share of
//! such an operation begins with another destination.

use serde_json::{Value, json};

use super::limits;

/// Puts, and the signals behind them, that are still one operation each.
struct Window {
    put: Value,
    signals: Vec<Value>,
}

fn list<'a>(op: &'a Value, key: &str) -> &'a [Value] {
    op[key].as_array().map_or(&[], Vec::as_slice)
}

fn is_put(op: &Value) -> bool {
    (op["name"] == "put" || op["name"] == "ppkt") && op["channel_type"] == "memory"
}

impl Window {
    fn takes(&mut self, op: &Value) -> bool {
        let fits = |more: &[Value], held: usize| held + more.len() <= limits::OP_CHANNELS;
        if is_put(op) {
            let sinks = list(op, "dst_buff");
            if self.put["name"] != op["name"] || !fits(sinks, list(&self.put, "dst_buff").len()) {
                return false;
            }
            for key in ["src_buff", "dst_buff"] {
                if let Some(held) = self.put[key].as_array_mut() {
                    held.extend_from_slice(list(op, key));
                }
            }
            return true;
        }
        let ends = list(op, "channel_ids");
        let is_signal = op["name"] == "signal" && op["channel_type"] == "memory";
        let is_new = ends.iter().all(|end| !self.signals.contains(end));
        if is_signal && is_new && fits(ends, self.signals.len()) {
            self.signals.extend_from_slice(ends);
            return true;
        }
        false
    }
}

/// The operations of a thread block with puts that follow each other in one.
pub fn fused(ops: Vec<Value>) -> Vec<Value> {
    let (mut out, mut window, mut met) = (Vec::with_capacity(ops.len()), None::<Window>, false);
    for op in ops {
        if op["name"] == "nop" {
            met = true;
            continue;
        }
        if let Some(held) = &mut window
            && held.takes(&op)
        {
            met = false;
            continue;
        }
        close(&mut out, window.take());
        if met {
            out.push(json!({"name": "nop"}));
        }
        met = false;
        if is_put(&op) {
            window = Some(Window { put: op, signals: Vec::new() });
        } else {
            out.push(op);
        }
    }
    close(&mut out, window);
    if met {
        out.push(json!({"name": "nop"}));
    }
    out
}

fn close(out: &mut Vec<Value>, window: Option<Window>) {
    let Some(Window { put, signals }) = window else { return };
    out.push(put);
    if !signals.is_empty() {
        out.push(json!({"name": "nop"}));
        out.push(json!({"name": "signal", "channel_ids": signals, "channel_type": "memory"}));
    }
}

/// Lets a share of several begin with a destination of its own.
pub fn turned(op: &mut Value, share: u32, shares: u32) {
    let count = list(op, "dst_buff").len();
    if !is_put(op) || count < 2 {
        return;
    }
    let by = share as usize * count / shares as usize;
    for key in ["src_buff", "dst_buff"] {
        if let Some(held) = op[key].as_array_mut() {
            held.rotate_left(by);
        }
    }
}
