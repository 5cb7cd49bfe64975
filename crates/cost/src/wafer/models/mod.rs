//! Models, which compute cycles from cost terms. Each has one file and an entry in [`MODELS`], sorted by name.

mod links;
mod paper;

use unisono_base::Cycles;
use unisono_lower::{Estimate, Phase, Terms};

use super::PhaseLines;

pub const MODELS: &[&dyn Model] = &[&links::Links, &paper::Paper];

/// A model: a closed form for the cycles of one phase from its terms.
pub trait Model: Sync {
    fn name(&self) -> &'static str;
    /// Returns the cycles of a phase without the cycles of its depth. [`Phase::sharper`] replaces them if it has a
    /// value.
    fn beside_depth(&self, terms: &Terms) -> f64;

    /// Returns the cycles of one phase. `depth_cycles` are the cycles of each message in a chain of dependent messages.
    fn phase(&self, phase: &Phase, depth_cycles: f64) -> Cycles {
        let beside = phase.sharper.map_or_else(|| self.beside_depth(&phase.terms), |s| s.cycles_beside_depth);
        Cycles(beside + depth_cycles * phase.terms.depth)
    }

    /// Returns the sum of the cycles of all phases, which run in sequence.
    fn cycles(&self, estimate: &Estimate, depth_cycles: f64) -> Cycles {
        estimate.phases.iter().map(|p| self.phase(p, depth_cycles)).sum()
    }

    /// Returns the estimate that has, for each phase, the terms of its slowest line.
    fn slowest(&self, phases: Vec<PhaseLines>, depth_cycles: f64) -> Estimate {
        let slowest = |p: PhaseLines| {
            let lines = p.lines.into_iter().map(|terms| Phase::new(&p.name, terms));
            lines.max_by(|a, b| self.phase(a, depth_cycles).0.total_cmp(&self.phase(b, depth_cycles).0))
        };
        Estimate { phases: phases.into_iter().filter_map(slowest).collect() }
    }
}

pub fn find_model(name: &str) -> Option<&'static dyn Model> {
    MODELS.iter().copied().find(|m| m.name() == name)
}
