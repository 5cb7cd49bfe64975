//! Models traffic as flows that share links, for networks that are too large for packets, and for comparison.
//!
//! A message is a flow. It is split over the hops that the routing offers at each node, and evenly over the choices of
//! its source (ECMP). Buffers are unbounded and packets have no length. The latency of the longest path and the
//! overheads of both hosts are added to the transfer time.
//!
//! * [`alltoall`]: messages in the order in which they are posted.
//! * [`permutation`]: all flows at once. Hops share a flow evenly, links are shared max-min fairly, and rates are found
//!   by progressive filling, which is repeated whenever flows have ended.

mod alltoall;
mod link_shares;
pub mod max_min;
mod whole;

pub use alltoall::alltoall;

use std::collections::BTreeMap;

use link_shares::LinkShares;
use unisono_base::{
    interrupt,
    limits::{self, OverLimit},
    narrow,
};

use super::Interconnect;

/// Flows whose remaining time is at most this factor times the shortest one end in the same step, each at its own time.
const TOGETHER: f64 = 1.25;

/// Times at which accelerators have received their messages.
#[derive(Clone, PartialEq, Debug)]
pub struct Fluid {
    pub makespan_ps: f64,
    /// Finish time of each accelerator, or of an evenly spaced sample of them.
    pub finish_ps: Vec<f64>,
    /// Bytes over the busiest link of one plane.
    pub busiest_bytes: f64,
}

/// Estimated elementary steps of one pass for each source of a flow, or for each share of a flow on a link.
const STEPS: u128 = 8;
/// Approximate number of times that rates of a permutation are computed.
const ROUNDS: u128 = 40;
/// Number of a permutation's flows followed for an estimate.
const SAMPLED: usize = 64;

/// Returns the bytes of the tables of states and loads.
fn table_bytes(net: &Interconnect) -> u128 {
    let states = u128::from(net.plane.nodes()) * u128::from(net.routing.virtual_channels().max(1));
    64 * states + 8 * net.plane.links().len() as u128
}

/// Returns the times of a permutation: accelerator k sends `bytes` to accelerator `to[k]`, or nothing if `to[k]` is k;
/// all `to[k]` differ.
///
/// # Errors
/// Returns an error if the flows exceed a limit.
pub fn permutation(net: &Interconnect, to: &[u32], bytes: u64) -> Result<Fluid, OverLimit> {
    const WHAT: &str = "a permutation by flows";
    limits::admit(WHAT, table_bytes(net), 0)?;
    {
        let (mut sample, mut shares, mut sampled) = (LinkShares::new(net), 0_u128, 0_u128);
        for (from, &to) in (0..).zip(to).step_by(to.len().div_ceil(SAMPLED).max(1)).filter(|&(from, &to)| from != to) {
            sample.add(to, [from].into_iter(), |_, _| shares += 1);
            sampled += 1;
        }
        let shares = shares * to.len() as u128 / sampled.max(1);
        // A share is stored with its flow, whose table grows by doubling, and the flow's index with the link.
        let bytes = table_bytes(net) + 48 * shares + 64 * (to.len() + net.plane.links().len()) as u128;
        limits::admit(WHAT, bytes, STEPS * (ROUNDS + 4) * shares)?;
    }
    let mut link_shares = LinkShares::new(net);
    let bandwidths = bandwidths(net);
    let mut flows = max_min::Flows::new(bandwidths.clone());
    let mut latencies = Vec::with_capacity(to.len());
    let mut way = Vec::new();
    for (from, &to) in (0..).zip(to) {
        way.clear();
        latencies.push(if from == to {
            0
        } else {
            link_shares.add(to, [from].into_iter(), |link, share| way.push((link, share)))
        });
        flows.push(&way);
    }
    let bytes = net.timing.bytes_on_plane(bytes, net.planes.into()) as f64;
    let all_ps = bytes * net.timing.links[0].ps_per_byte;
    // Remaining fraction of each flow. Times are in units of `all_ps`: the time of a whole flow on a link of the
    // machine's own bandwidth.
    let mut left: Vec<f64> = to.iter().zip(0..).map(|(&to, from)| if to == from { 0.0 } else { 1.0 }).collect();
    let mut ended = vec![0.0; to.len()];
    let mut now = 0.0;
    while left.iter().any(|&share| share > 0.0) {
        interrupt::check();
        let rates = flows.rates(|flow| left[flow] > 0.0);
        let until: Vec<(usize, f64)> =
            (0..left.len()).filter(|&flow| left[flow] > 0.0).map(|flow| (flow, left[flow] / rates[flow])).collect();
        let together = TOGETHER * until.iter().map(|u| u.1).fold(f64::INFINITY, f64::min);
        let step = until.iter().map(|u| u.1).filter(|&time| time <= together).fold(0.0, f64::max);
        for (flow, time) in until {
            if time <= together {
                (ended[flow], left[flow]) = (now + time, 0.0);
            } else {
                left[flow] -= rates[flow] * step;
            }
        }
        now += step;
    }
    let mut finish_ps = vec![0.0; to.len()];
    for (from, &to) in to.iter().enumerate() {
        if narrow::<u32>(from) != to {
            finish_ps[to as usize] = ended[from] * all_ps + ends_ps(net, latencies[from]);
        }
    }
    let longest = flows.loads().zip(&bandwidths).max_by(|(a, of_a), (b, of_b)| (a / *of_a).total_cmp(&(b / *of_b)));
    let busiest_bytes = longest.map_or(0.0, |(load, _)| load * bytes);
    Ok(Fluid { makespan_ps: finish_ps.iter().copied().fold(0.0, f64::max), finish_ps, busiest_bytes })
}

/// Returns, for each message `(from, to)` between two accelerators, its links with the fraction of the message on each,
/// if every node splits it evenly over the hops that the routing offers.
pub fn routes(net: &Interconnect, pairs: &[(u32, u32)]) -> Vec<Vec<(u32, f64)>> {
    let mut link_shares = LinkShares::new(net);
    let mut found = Vec::with_capacity(pairs.len());
    for &(from, to) in pairs {
        let mut way = BTreeMap::<u32, f64>::new();
        if from != to {
            link_shares.add(to, [from].into_iter(), |link, share| *way.entry(link).or_default() += share);
        }
        found.push(way.into_iter().collect());
    }
    found
}

/// Returns the ratio of each link's bandwidth to the machine's own link bandwidth.
fn bandwidths(net: &Interconnect) -> Vec<f64> {
    let own = net.timing.links[0].ps_per_byte;
    net.plane.links().iter().map(|&link| own / net.timing.of(link).ps_per_byte).collect()
}

/// Returns the latency of a path plus the overheads of both hosts and the signal.
fn ends_ps(net: &Interconnect, latency_ps: u64) -> f64 {
    (latency_ps + net.timing.signal_ps) as f64 + 2.0 * net.timing.host_overhead_ps as f64
}
