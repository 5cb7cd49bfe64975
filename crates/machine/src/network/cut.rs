//! The least cut of a small plane into halves, by trying all.

use unisono_base::interrupt::poll;

use super::Plane;

/// Parts into halves grow by a factor of four with two more accelerators: with 16 there are 6,435.
pub const MOST_ACCELERATORS: u32 = 16;

/// Of all ways to part the accelerators in halves the fewest links from one to the other half, over the injection of one,
/// whose accelerators have `ports` links each. Nothing for an odd number, or for more than [`MOST_ACCELERATORS`].
pub fn bisection_share(plane: &Plane, ports: u32) -> Option<f64> {
    let n = plane.accelerators();
    if n == 0 || n % 2 == 1 || n > MOST_ACCELERATORS {
        return None;
    }
    // The last accelerator is always in the other half.
    let halves = (0_u32..1 << (n - 1)).filter(|half| half.count_ones() == n / 2);
    let cut = halves.map(|half| least_cut(plane, half)).min()?;
    Some(f64::from(cut) / f64::from(ports * n / 2))
}

/// The most flow, one unit a link, from the accelerators whose bits are set to the others: so many links are cut at least
/// (Ford, Fulkerson, 1956).
fn least_cut(plane: &Plane, half: u32) -> u32 {
    let accelerator = |node: u32| node < plane.accelerators();
    let inside = |node: u32| accelerator(node) && half >> node & 1 == 1;
    let mut flow = vec![0_i32; plane.links().len()];
    let mut found = 0;
    loop {
        let mut by = vec![None; plane.nodes() as usize];
        let mut seen: Vec<bool> = (0..plane.nodes()).map(inside).collect();
        let mut open: Vec<u32> = (0..plane.nodes()).filter(|&node| inside(node)).collect();
        let mut end = None;
        while let Some(node) = open.pop() {
            poll();
            if accelerator(node) && !inside(node) {
                end = Some(node);
                break;
            }
            for id in plane.leaving(node) {
                let next = plane.link(id).to;
                if flow[id as usize] < 1 && !seen[next as usize] {
                    seen[next as usize] = true;
                    by[next as usize] = Some(id);
                    open.push(next);
                }
            }
        }
        let Some(mut node) = end else { return found };
        while let Some(id) = by[node as usize] {
            flow[id as usize] += 1;
            flow[plane.link(id).back as usize] -= 1;
            node = plane.link(id).from;
        }
        found += 1;
    }
}
