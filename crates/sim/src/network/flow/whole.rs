//! An alltoall simulated by packets, with one packet for each message.
//!
//! If accelerators forward the messages of others, as on a mesh or a torus, accelerators in the middle forward more
//! than those at the edge and fall behind with their own messages. Each accelerator then sends at its own pace, which
//! windows common to all accelerators cannot represent. A packet's head continues before its tail arrives, so a message
//! takes as long in one packet as in many.

use std::sync::Arc;

use unisono_base::narrow;
use unisono_lower::tasks::pattern;

use crate::network::{Interconnect, Options, Run, Timing, TrafficEstimate, run};

/// Greatest number of packet-hops simulated, about ten seconds on one core.
const MOST_HOPS: f64 = 33_554_432.0;

/// Simulates the messages one by one. Returns `None` if every accelerator sends all of its messages at the same time,
/// if the network has switches, if there are too many messages, or if the simulation fails.
pub(super) fn alltoall(net: &Interconnect, bytes: u64) -> Option<Run> {
    let all = net.plane.accelerators();
    let others = all.saturating_sub(1);
    let has_switches = net.plane.nodes() > all;
    if has_switches || net.send_machines >= others {
        return None;
    }
    let packet_bytes = net.timing.bytes_on_plane(bytes, net.planes.into()).clamp(1, u64::from(u32::MAX));
    let whole = Interconnect {
        plane: net.plane.clone(),
        routing: Arc::clone(&net.routing),
        // Buffers are unbounded, as in the model of flows, whose times this simulation replaces.
        timing: Timing { packet_bytes: narrow(packet_bytes), places: u32::MAX, ..net.timing.clone() },
        computing: net.computing.clone(),
        ..*net
    };
    let estimate = TrafficEstimate::new(u64::from(all) * u64::from(others), bytes, 1, &whole);
    if estimate.hops > MOST_HOPS || estimate.check().is_err() {
        return None;
    }
    // If the simulator refuses the network or the messages, the result is `None`, and windows are used.
    run(&pattern::linear_alltoall(all, bytes).ok()?, &whole, &Options::default()).ok()
}
