//! Max-min fair rates of flows over links, by progressive filling.
//!
//! All rates rise together until a link is full; the flows over this link keep their rate, and the other rates continue
//! to rise (Bertsekas, Gallager, "Data networks", section 6.5.2). A flow with rate r loads each of its links with r
//! times its share on that link.

use std::{cmp::Reverse, collections::BinaryHeap};

use unisono_base::{interrupt::poll, narrow};

/// Flows with their shares on links.
pub struct Flows {
    /// Bandwidth of each link, in the unit of rates.
    bandwidths: Vec<f64>,
    /// Indices of the flows over each link.
    over: Vec<Vec<u32>>,
    /// Start of the shares of each flow, and the end of the last flow's.
    first: Vec<usize>,
    shares: Vec<(u32, f64)>,
}

/// A weight below this is a rounding error of zero.
const NOTHING: f64 = 1e-9;

impl Flows {
    pub fn new(bandwidths: Vec<f64>) -> Self {
        Self { over: vec![Vec::new(); bandwidths.len()], bandwidths, first: vec![0], shares: Vec::new() }
    }

    /// Adds a flow with its `(link, share)` pairs; a link may occur several times.
    pub fn push(&mut self, shares: &[(u32, f64)]) {
        let flow = narrow::<u32>(self.first.len()) - 1;
        shares.iter().for_each(|&(link, _)| self.over[link as usize].push(flow));
        self.shares.extend(shares);
        self.first.push(self.shares.len());
    }

    fn shares_of(&self, flow: usize) -> &[(u32, f64)] {
        &self.shares[self.first[flow]..self.first[flow + 1]]
    }

    /// Returns the load of each link if all flows have rate 1.
    pub fn loads(&self) -> impl Iterator<Item = f64> {
        let mut loads = vec![0.0; self.over.len()];
        self.shares.iter().for_each(|&(link, share)| loads[link as usize] += share);
        loads.into_iter()
    }

    /// Returns the rate of each active flow; 0 for inactive flows, infinite for flows without a link.
    pub fn rates(&self, is_active: impl Fn(usize) -> bool) -> Vec<f64> {
        let count = self.first.len() - 1;
        let mut rates: Vec<f64> = (0..count).map(|flow| if is_active(flow) { f64::INFINITY } else { 0.0 }).collect();
        let mut weight = vec![0.0; self.over.len()];
        for flow in (0..count).filter(|&flow| is_active(flow)) {
            for &(link, share) in self.shares_of(flow) {
                weight[link as usize] += share;
            }
        }
        let mut left = self.bandwidths.clone();
        // Non-negative floating-point numbers are ordered like their bits.
        let level = |left: f64, weight: f64| (left.max(0.0) / weight).to_bits();
        let mut heap: BinaryHeap<_> = (0..self.over.len())
            .filter(|&link| weight[link] > 0.0)
            .map(|link| Reverse((level(left[link], weight[link]), link)))
            .collect();
        while let Some(Reverse((bits, link))) = heap.pop() {
            poll();
            if weight[link] <= NOTHING {
                continue;
            }
            // Levels never decrease, so the level of a link in the heap may be too low, but not too high.
            let now = level(left[link], weight[link]);
            if now != bits {
                heap.push(Reverse((now, link)));
                continue;
            }
            let rate = f64::from_bits(bits);
            for &flow in &self.over[link] {
                if rates[flow as usize] == f64::INFINITY {
                    rates[flow as usize] = rate;
                    for &(link, share) in self.shares_of(flow as usize) {
                        left[link as usize] -= share * rate;
                        weight[link as usize] -= share;
                    }
                }
            }
        }
        rates
    }
}
