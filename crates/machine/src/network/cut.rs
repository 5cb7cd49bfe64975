//! The least cut of a small plane into halves, by trying all.

use std::collections::VecDeque;

use unisono_base::interrupt::poll;

use super::{Plane, Speed};

/// Parts into halves grow by a factor of four with two more accelerators: with 16 there are 6,435.
pub const MOST_ACCELERATORS: u32 = 16;

/// Returns the least rate from one half of the accelerators to the other over all ways to part them, divided by the
/// injection of one half, whose accelerators send `injection` times the machine's `own` rate of a link each. Returns
/// `None` for an odd number, or for more than [`MOST_ACCELERATORS`].
pub fn bisection_share(plane: &Plane, own: Speed, injection: f64) -> Option<f64> {
    let n = plane.accelerators();
    if n == 0 || n % 2 == 1 || n > MOST_ACCELERATORS {
        return None;
    }
    // The last accelerator is always in the other half.
    let halves = (0_u32..1 << (n - 1)).filter(|half| half.count_ones() == n / 2);
    let rate = |speed: &Option<Speed>| speed.map_or(1.0, |speed| speed.gbps / own.gbps);
    let rates: Vec<f64> = plane.speeds().iter().map(rate).collect();
    let capacities: Vec<f64> = plane.links().iter().map(|link| rates[usize::from(link.speed)]).collect();
    let cut = halves.map(|half| least_cut(plane, &capacities, half)).min_by(f64::total_cmp)?;
    Some(cut / (injection * f64::from(n / 2)))
}

/// Returns the most flow from the accelerators whose bits are set to the others, which is the capacity of the least cut
/// between them (Ford, Fulkerson, 1956). Flow is added along ways of the fewest links (Edmonds, Karp, 1972), so the
/// number of ways does not depend on the capacities. A way fills its narrowest link exactly, as nothing but its own
/// capacity is taken from it.
fn least_cut(plane: &Plane, capacities: &[f64], half: u32) -> f64 {
    let accelerator = |node: u32| node < plane.accelerators();
    let inside = |node: u32| accelerator(node) && half >> node & 1 == 1;
    let mut left = capacities.to_vec();
    let mut found = 0.0;
    loop {
        let mut by = vec![None; plane.nodes() as usize];
        let mut seen: Vec<bool> = (0..plane.nodes()).map(inside).collect();
        let mut open: VecDeque<u32> = (0..plane.nodes()).filter(|&node| inside(node)).collect();
        let mut end = None;
        while let Some(node) = open.pop_front() {
            poll();
            if accelerator(node) && !inside(node) {
                end = Some(node);
                break;
            }
            for id in plane.leaving(node) {
                let next = plane.link(id).to;
                if left[id as usize] > 0.0 && !seen[next as usize] {
                    seen[next as usize] = true;
                    by[next as usize] = Some(id);
                    open.push_back(next);
                }
            }
        }
        let Some(end) = end else { return found };
        let last = by[end as usize];
        let way = || std::iter::successors(last, |&id| by[plane.link(id).from as usize]);
        let more = way().map(|id| left[id as usize]).fold(f64::INFINITY, f64::min);
        for id in way() {
            left[id as usize] -= more;
            left[plane.link(id).back as usize] += more;
        }
        found += more;
    }
}
