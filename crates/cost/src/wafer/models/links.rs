//! T = max(c, l) + L + (2 T_R + 1) D, with l the largest load of a directed link and c the most element operations of
//! a PE (an n-source combine costs max(1, n - 1) an element; a PE that only sends works too).
//!
//! It replaces the averages of Eq. 1 by the places that are in fact the slowest, and counts the distance beside both.

use unisono_lower::Terms;

use super::Model;

pub struct Links;

impl Model for Links {
    fn name(&self) -> &'static str {
        "links"
    }

    fn summary(&self) -> &'static str {
        "max(datapath work, largest link load) + L + (2 T_R + 1) D, phase by phase"
    }

    fn reference(&self) -> &'static str {
        "Eq. 1 of Near-Optimal Wafer-Scale Reduce with largest loads for averages"
    }

    fn beside_depth(&self, t: &Terms) -> f64 {
        // Work without a message is a copy in memory, which no term of the paper counts either.
        if t.depth == 0.0 { 0.0 } else { t.datapath.max(t.max_link_load) + t.distance }
    }
}
