//! An alltoall by flows: message k of each accelerator r is a block for accelerator (r + k) mod N.
//!
//! **Order.** Accelerators send their messages in the order of k, so all of them load the links to the same neighbors
//! at the same time, and a link idles before its first messages are sent. The shifts k are cut into windows of
//! consecutive shifts, and the load of each window on each link is summed over all pairs. Buffers are unbounded, so an
//! accelerator sends a window as fast as its own links allow. From the start of a window, a link works without pause on
//! messages of this and later windows. The link ends at the maximum, over windows w, of begin(w) + load(w) + load(w +
//! 1) + ... (Lindley, "The theory of queues with a single server", 1952).
//!
//! **Whole messages.** If accelerators forward messages of others and no switch does, accelerators get out of step. If
//! there are few enough messages, they are simulated one by one (`whole.rs`), and only the busiest link is computed
//! here. The rest of this text is about all other cases.
//!
//! **Own links.** On a grid an accelerator's links also carry messages that it forwards. The queues of a link take
//! turns, so the accelerator's own messages get at least their turn. The time of a window is the smaller of two: the
//! load of its own messages plus the load that already waits for the link, or the load of its own messages times the
//! number of turns in a round. The next window waits for the slowest of its links, because few messages are sent at a
//! time; so a window has not many fewer shifts than an accelerator has sending machines.
//!
//! **Choice.** If a routing offers several hops, packets take the link with the fewest packets ahead of them. Flows are
//! first split evenly, and then by weights that decrease with the load of a link, so that alternative links become
//! evenly loaded, as long as this reduces the load of the busiest link.

use rustc_hash::FxHashMap;
use unisono_base::{
    interrupt::poll,
    limits::{self, OverLimit},
    mix, narrow,
};
use unisono_machine::network::{Header, Hop};

use super::{Fluid, STEPS, bandwidths, ends_ps, link_shares::LinkShares, table_bytes, whole};
use crate::network::Interconnect;

/// Greatest number of accelerators whose finish times are computed one by one; a larger network is sampled.
const MOST_TIMED: u32 = 1024;
/// Number of windows of shifts; [`FEW_WINDOWS`] for networks with more than [`MOST_TIMED`] accelerators.
const WINDOWS: u32 = 64;
const FEW_WINDOWS: u32 = 32;
/// Number of times that flows are split again by the load of links; [`FEW_SPLITS`] for networks with more than
/// [`MOST_TIMED`] accelerators.
const SPLITS: u32 = 6;
const FEW_SPLITS: u32 = 2;
/// Greatest number of sampled accelerators whose own links are examined. [`WALKS`] is the number of random paths from
/// each accelerator of the network.
const MOST_SAMPLED: u32 = 256;
const WALKS: u32 = 64;
/// Stands for an accelerator's own interface among the inputs of its links.
const OWN: u32 = u32::MAX;

/// Returns the times of an alltoall in which every accelerator sends `bytes` to every other one.
///
/// # Errors
/// Returns an error if the computation of the loads exceeds a limit.
pub fn alltoall(net: &Interconnect, bytes: u64) -> Result<Fluid, OverLimit> {
    let all = net.plane.accelerators();
    let is_small = all <= MOST_TIMED;
    // An accelerator sends as many messages at a time as it has send machines.
    let fewest = all.saturating_sub(1).div_ceil(net.send_machines.max(1));
    let windows = if is_small { WINDOWS } else { FEW_WINDOWS }.min(fewest).max(1);
    let splits = if is_small { SPLITS } else { FEW_SPLITS };
    admit(net, windows, splits)?;
    let mut link_shares = LinkShares::new(net);
    let bandwidths = bandwidths(net);
    let latency = weigh(net, &mut link_shares, &bandwidths, splits);
    let whole = whole::alltoall(net, bytes);
    let windows = if whole.is_some() { 1 } else { windows };
    let loads = Loads::new(net, &mut link_shares, &bandwidths, windows);
    let busiest = (0..bandwidths.len()).map(|link| (loads.of(link), link)).max_by(|a, b| a.0.total_cmp(&b.0));
    let of_plane = net.timing.bytes_on_plane(bytes, net.planes.into()) as f64;
    let busiest_bytes = busiest.map_or(0.0, |(load, link)| load * bandwidths[link] * of_plane);
    if let Some(run) = whole {
        let finish_ps = run.hosts.finish.iter().map(|&ps| ps as f64).collect();
        return Ok(Fluid { finish_ps, makespan_ps: run.hosts.makespan as f64, busiest_bytes });
    }
    let begins = begins(net, &link_shares, &loads, &bandwidths);
    let ends: Vec<f64> = (0..bandwidths.len()).map(|link| loads.end(link, &begins)).collect();
    // Unit of time here: a message over a link of the machine's own bandwidth.
    let message_ps = of_plane * net.timing.links[0].ps_per_byte;
    let ps = |end: f64| if end > 0.0 { end * message_ps + ends_ps(net, latency) } else { 0.0 };
    let every = all.div_ceil(MOST_TIMED).max(1) as usize;
    let finish_ps = (0..all).step_by(every).map(|to| {
        let mut own: f64 = 0.0;
        link_shares.add(to, others(to, all), |link, _| own = own.max(ends[link as usize]));
        ps(own)
    });
    Ok(Fluid {
        finish_ps: finish_ps.collect(),
        makespan_ps: ps(ends.iter().copied().fold(0.0, f64::max)),
        busiest_bytes,
    })
}

fn others(to: u32, all: u32) -> impl Iterator<Item = u32> {
    (0..all).filter(move |&from| from != to)
}

fn admit(net: &Interconnect, windows: u32, splits: u32) -> Result<(), OverLimit> {
    const WHAT: &str = "an alltoall by flows";
    let accelerators = net.plane.accelerators();
    let (all, passes) = (u128::from(accelerators), u128::from(splits) + 2);
    let tables = table_bytes(net) + 8 * u128::from(windows) * net.plane.links().len() as u128;
    limits::admit(WHAT, tables, STEPS * passes * all * all)?;
    if accelerators > 1 {
        // One destination is representative of all.
        let ways = net.routing.choices(accelerators - 1, 0).len() as u128;
        let (mut shares, mut link_shares) = (0, LinkShares::new(net));
        link_shares.add(0, 1..accelerators, |_, _| shares += 1);
        // One window is representative of all.
        let mut of_window = 0;
        link_shares
            .add(0, (0..accelerators.div_ceil(windows)).map(|k| 1 + k % (accelerators - 1)), |_, _| of_window += 1);
        let steps = passes * (ways * all + shares) + u128::from(windows) * of_window + ways * all;
        limits::admit(WHAT, tables + 24 * ways * all, STEPS * all * steps)?;
    }
    Ok(())
}

/// Sets the weights that load alternative links most evenly: those of the split with the least load on the busiest
/// link. Returns the latency of the longest path in picoseconds.
fn weigh(net: &Interconnect, link_shares: &mut LinkShares, bandwidths: &[f64], splits: u32) -> u64 {
    let all = net.plane.accelerators();
    let (mut latency, mut least, mut best) = (0, f64::INFINITY, Vec::new());
    for _ in 0..=splits {
        let mut busy = vec![0.0; bandwidths.len()];
        for to in 0..all {
            latency = latency.max(link_shares.add(to, others(to, all), |link, share| busy[link as usize] += share));
        }
        busy.iter_mut().zip(bandwidths).for_each(|(load, bandwidth)| *load /= bandwidth);
        let most = busy.iter().copied().fold(0.0, f64::max);
        // A difference within rounding errors is not an improvement.
        if most < least * (1.0 - 1e-9) {
            least = most;
            best.clone_from(&link_shares.weights);
        }
        let weights = link_shares.weights.iter_mut().zip(busy);
        weights.filter(|(_, busy)| *busy > 0.0).for_each(|(weight, busy)| *weight /= busy.sqrt());
    }
    if !best.is_empty() {
        link_shares.weights = best;
    }
    latency
}

/// Time that each window occupies each link; the unit is the time of a message on a link of the machine's own
/// bandwidth.
struct Loads {
    /// First shift of each window, and the end of the last window.
    first: Vec<u32>,
    of_window: Vec<Vec<f64>>,
}

impl Loads {
    fn new(net: &Interconnect, link_shares: &mut LinkShares, bandwidths: &[f64], windows: u32) -> Self {
        let all = net.plane.accelerators();
        let shifts = u64::from(all.saturating_sub(1));
        let first: Vec<u32> =
            (0..=windows).map(|w| 1 + narrow::<u32>(shifts * u64::from(w) / u64::from(windows))).collect();
        let mut of_window = vec![vec![0.0; bandwidths.len()]; windows as usize];
        for to in 0..all {
            for (loads, shifts) in of_window.iter_mut().zip(first.windows(2)) {
                let from = (shifts[0]..shifts[1]).map(|k| if to >= k { to - k } else { to + all - k });
                link_shares.add(to, from, |link, share| loads[link as usize] += share);
            }
        }
        let each = of_window.iter_mut().flat_map(|loads| loads.iter_mut().zip(bandwidths));
        each.for_each(|(load, bandwidth)| *load /= bandwidth);
        Self { first, of_window }
    }

    /// Returns the time that all windows together occupy a link.
    fn of(&self, link: usize) -> f64 {
        self.of_window.iter().map(|loads| loads[link]).sum()
    }

    /// Returns the time at which a link ends, given the start of each window.
    fn end(&self, link: usize, begins: &[f64]) -> f64 {
        let (mut end, mut later): (f64, f64) = (0.0, 0.0);
        for (loads, begin) in self.of_window.iter().zip(begins).rev() {
            later += loads[link];
            if loads[link] > 0.0 {
                end = end.max(begin + later);
            }
        }
        end
    }
}

/// Returns the mean start of each window, in the unit of [`Loads`], over the slower half of a sample of accelerators.
fn begins(net: &Interconnect, link_shares: &LinkShares, loads: &Loads, bandwidths: &[f64]) -> Vec<f64> {
    let all = net.plane.accelerators();
    let sampled: Vec<u32> = (0..all).step_by(all.div_ceil(MOST_SAMPLED).max(1) as usize).collect();
    let turns = turns(net, &sampled);
    let mut own: FxHashMap<u32, f64> = FxHashMap::default();
    // Load that waits for each link of the sampled accelerators at the start of a window.
    let mut queued: FxHashMap<u32, f64> = FxHashMap::default();
    let (mut hops, mut taken, mut begin) = (Vec::new(), Vec::new(), 0.0);
    let mut begins = Vec::with_capacity(loads.of_window.len());
    for (window, shifts) in loads.of_window.iter().zip(loads.first.windows(2)) {
        begins.push(begin);
        taken.clear();
        for &from in &sampled {
            own.clear();
            for k in shifts[0]..shifts[1] {
                poll();
                let to = narrow((u64::from(from) + u64::from(k)) % u64::from(all));
                let choices = net.routing.choices(from, to);
                let part = 1.0 / choices.len() as f64;
                for &way in &*choices {
                    hops.clear();
                    net.routing.hops(from, Header { to, vc: 0, way }, &mut hops);
                    let weight = |hop: &Hop| link_shares.weights[hop.link as usize];
                    let weights: f64 = hops.iter().map(weight).sum();
                    hops.iter().for_each(|hop| *own.entry(hop.link).or_default() += part * weight(hop) / weights);
                }
            }
            let slowest = own.iter().map(|(link, &messages)| {
                let alone = messages / bandwidths[*link as usize];
                let turns = turns.get(link).copied().unwrap_or(1.0);
                (alone + queued.get(link).copied().unwrap_or(0.0)).min(alone * turns)
            });
            let slowest = slowest.fold(0.0, f64::max);
            for link in net.plane.leaving(from) {
                let work = queued.entry(link).or_default();
                *work = (*work + window[link as usize] - slowest).max(0.0);
            }
            taken.push(slowest);
        }
        // Only the slower half counts, because links wait for it.
        taken.sort_unstable_by(|a: &f64, b| b.total_cmp(a));
        let half = &taken[..taken.len().div_ceil(2)];
        begin += half.iter().sum::<f64>() / half.len() as f64;
    }
    begins
}

/// Returns, for the links of sampled accelerators, the number of turns in a round until a message of the accelerator's
/// own is next: virtual channels take turns, and so do the inputs of a channel. Random paths show which channels and
/// inputs are in use.
fn turns(net: &Interconnect, sampled: &[u32]) -> FxHashMap<u32, f64> {
    let all = net.plane.accelerators();
    // Inputs of the first virtual channel of each link, and a mask of all its virtual channels.
    let mut met: FxHashMap<u32, (Vec<u32>, u64)> = FxHashMap::default();
    let mut hops = Vec::new();
    for walk in 0..u64::from(WALKS) * u64::from(all) {
        poll();
        let random = mix(walk);
        let from = narrow::<u32>(walk % u64::from(all));
        let to = narrow::<u32>((random >> 32) % u64::from(all));
        let (mut at, mut vc, mut input) = (from, 0, OWN);
        let way = if from == to { 0 } else { net.routing.choose(from, to, mix(random)) };
        while at != to {
            hops.clear();
            net.routing.hops(at, Header { to, vc, way }, &mut hops);
            let Some(&hop) = hops.get(narrow::<usize>(mix(random ^ u64::from(at)) % hops.len().max(1) as u64)) else {
                break;
            };
            if at < all && sampled.binary_search(&at).is_ok() {
                let (inputs, vcs) = met.entry(hop.link).or_default();
                *vcs |= 1 << (hop.vc & 63);
                if hop.vc == 0 && !inputs.contains(&input) {
                    inputs.push(input);
                }
            }
            (at, vc, input) = (net.plane.link(hop.link).to, hop.vc, hop.link);
        }
    }
    let turns = |(link, (inputs, vcs)): (u32, (Vec<u32>, u64))| {
        (link, f64::from(vcs.count_ones().max(1)) * inputs.len().max(1) as f64)
    };
    met.into_iter().map(turns).collect()
}
