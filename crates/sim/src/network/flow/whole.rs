//! An alltoall whose messages move whole: the simulation of packets, each of which is a message.
//!
//! If accelerators pass on the messages of others, as on a mesh or a torus, those in the middle pass on more than those
//! at the edge and fall behind with messages of their own. Each accelerator then has its own order in time, which
//! windows for all of them do not have. A packet's head continues before its tail arrives, so a message of one packet
//! takes as long as one of many.

use std::sync::Arc;

use unisono_base::narrow;
use unisono_lower::tasks::pattern;

use crate::network::{Interconnect, Options, Run, Timing, TrafficEstimate, run};

/// The most hops of messages that are simulated, about ten seconds of one core.
const MOST_HOPS: f64 = 33_554_432.0;

/// Simulates the messages one by one; `None` if all are under way at once, if the network has switches, or if they are
/// too many.
pub(super) fn alltoall(net: &Interconnect, bytes: u64) -> Option<Run> {
    let all = net.plane.accelerators();
    let others = all.saturating_sub(1);
    let has_switches = net.plane.nodes() > all;
    if has_switches || net.send_machines >= others {
        return None;
    }
    let packet_bytes = bytes.div_ceil(u64::from(net.planes.max(1))).clamp(1, u64::from(u32::MAX));
    let whole = Interconnect {
        plane: net.plane.clone(),
        routing: Arc::clone(&net.routing),
        // Flows have unbounded buffers.
        timing: Timing { packet_bytes: narrow(packet_bytes), places: u32::MAX, ..net.timing.clone() },
        computing: net.computing.clone(),
        ..*net
    };
    let estimate = TrafficEstimate::new(u64::from(all) * u64::from(others), bytes, 1, &whole);
    if estimate.hops > MOST_HOPS || estimate.check().is_err() {
        return None;
    }
    // For networks and messages that the simulator refuses, windows are used.
    run(&pattern::linear_alltoall(all, bytes).ok()?, &whole, &Options::default()).ok()
}
