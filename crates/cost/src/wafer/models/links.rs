//! The model `links`, which replaces the average load of Eq. 1 by the load of the busiest link or PE, and adds the
//! distance L in hops: T = max(c, l) + L + (2 T_R + 1) D. l is the most wavelets on a directed link, c the most
//! operations of a PE on wavelets (a combine of n sources costs max(1, n - 1) for each wavelet, a send costs 1), D the
//! depth in messages and T_R the ramp latency.
//!
//! If an algorithm states the cycles t for PEs that receive from their children in sequence ([`Phase::in_turn`]), but
//! no sharper cycles ([`Phase::sharper`]), T = max(t, l + 2 T_R + 1).

use unisono_base::Cycles;
use unisono_lower::{Phase, Terms};

use super::Model;

pub struct Links;

impl Model for Links {
    fn name(&self) -> &'static str {
        "links"
    }

    fn beside_depth(&self, t: &Terms) -> f64 {
        // A phase without messages only copies in memory, which Eq. 1 ignores too.
        if t.depth == 0.0 { 0.0 } else { t.datapath.max(t.max_link_load) + t.distance }
    }

    fn phase(&self, phase: &Phase, depth_cycles: f64) -> Cycles {
        match (phase.sharper, phase.in_turn) {
            (None, Some(in_turn)) => Cycles(in_turn.max(phase.terms.max_link_load + depth_cycles)),
            (sharper, _) => {
                let beside = sharper.map_or_else(|| self.beside_depth(&phase.terms), |s| s.cycles_beside_depth);
                Cycles(beside + depth_cycles * phase.terms.depth)
            }
        }
    }
}
