//! Limits on the depth of forests that a plan tries.

use unisono_base::interrupt::poll;

use super::{Fabric, NoForest, Roots, kept, sizes::MOST_QUICK};
use crate::relaying::relay_depth;

impl Fabric {
    /// Returns the least depth that any forest can have.
    ///
    /// # Errors
    /// Returns an error if a rank cannot be reached, or the network is too large.
    pub fn least_depth(&self, roots: Roots) -> Result<u32, NoForest> {
        if let Some(steps) = self.alike(roots) {
            return Ok(steps.depth());
        }
        kept(&self.depths, roots, || self.depth_of_ways(roots))
    }

    /// Returns the least depth of a forest in which messages pass relays only.
    fn depth_of_ways(&self, roots: Roots) -> Result<u32, NoForest> {
        let graph = self.packed(roots)?;
        let pairs: Vec<Vec<bool>> = (0..graph.ranks()).map(|rank| graph.reached(rank)).collect();
        let mut most = 0;
        for root in self.representatives(roots) {
            let mut depth = vec![u32::MAX; pairs.len()];
            depth[root as usize] = 0;
            let (mut queue, mut k) = (vec![root as usize], 0);
            while let Some(&at) = queue.get(k) {
                poll();
                k += 1;
                for to in 0..depth.len() {
                    if pairs[at][to] && depth[to] == u32::MAX {
                        depth[to] = depth[at] + 1;
                        queue.push(to);
                    }
                }
            }
            most = most.max(depth.into_iter().max().unwrap_or(0));
        }
        if most == u32::MAX { Err(NoForest::Unreachable) } else { Ok(most) }
    }

    /// Returns the default limit on the depth: the largest of those in [`Fabric::ladder`].
    pub fn usual_depth(&self, roots: Roots, least: u32) -> u32 {
        *self.ladder(roots, least).last().expect("the least depth")
    }

    /// Returns the limits on the depth that a plan tries: the least, and larger limits with times nearer to the cut.
    /// For many ranks (more than `MOST_QUICK`) only the least and the largest limit are tried.
    pub fn depths(&self, roots: Roots, least: u32) -> Vec<u32> {
        let mut depths = self.ladder(roots, least);
        if self.graph.ranks() > MOST_QUICK && depths.len() > 2 {
            depths.drain(1..depths.len() - 1);
        }
        depths
    }

    /// Returns the least depth, and depths larger by 1, 2, 3, 4, 6, ... until the time is near the bound of the cut, or
    /// near the time of unlimited depth. Depths that hardly reduce the time are omitted. Two cases have fewer depths:
    /// if the network looks alike from all roots, only the least depth; if the chunks of one root are spread along the
    /// trees of all ranks, the least depth and the depth of these trees.
    fn ladder(&self, roots: Roots, least: u32) -> Vec<u32> {
        const NEAR: f64 = 1.02;
        let mut depths = vec![least];
        if self.alike(roots).is_some() {
            return depths;
        }
        if let Some(over) = self.spread_over(roots) {
            depths.extend(Some(relay_depth(&over)).filter(|&depth| depth > least));
            return depths;
        }
        let mut enough = self.cut(roots).time() * NEAR;
        let time = |depth| self.packing(roots, Some(depth)).map(|packing| packing.time);
        let Ok(mut best) = time(least) else { return depths };
        // A tree is at most a chain of all other ranks.
        let deepest = self.graph.ranks() - 1;
        let is_cheap = self.is_cheap(roots);
        if best > enough && least < deepest && is_cheap {
            enough = enough.max(time(deepest).unwrap_or(best) * NEAR);
        }
        let mut more = 1;
        while best > enough {
            let depth = least.saturating_add(more).min(deepest);
            let Ok(time) = time(depth) else { break };
            if time <= best / NEAR || time <= enough {
                depths.push(depth);
                best = time;
            } else if !is_cheap {
                break;
            }
            if depth == deepest {
                break;
            }
            more += (more / 2).max(1);
        }
        depths
    }
}
