//! T = max(C, E/N + L) + (2 T_R + 1) D, with the ramp latency T_R and the terms of [`Terms`]. Source: "Near-Optimal
//! Wafer-Scale Reduce", section 3, Eq. 1.
//!
//! E/N averages the load over the used links, so on a grid T may be too low for the busiest link.

use unisono_lower::Terms;

use super::Model;

pub struct Paper;

impl Model for Paper {
    fn name(&self) -> &'static str {
        "paper"
    }

    fn beside_depth(&self, t: &Terms) -> f64 {
        let spread = if t.links > 0.0 { t.energy / t.links } else { 0.0 };
        t.contention.max(spread + t.distance)
    }
}
