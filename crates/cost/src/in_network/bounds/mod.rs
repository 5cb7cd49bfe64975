//! Lower bounds on machines whose switches reduce.

mod eq2;
mod memory;
mod path;

use unisono_collective::Collective;
use unisono_machine::{InNetwork, in_network::Site};

use crate::{Bound, CostProblem};

/// The bounds on switches that reduce, sorted by file.
pub(crate) const BOUNDS: &[&Bound] = &[&eq2::EQ2, &memory::MEMORY, &path::PATH];

pub struct InNetworkCase<'a> {
    pub collective: Collective,
    pub machine: &'a InNetwork,
    pub site: &'a Site,
}

impl<'a> InNetworkCase<'a> {
    fn of(problem: &CostProblem<'a>) -> Option<Self> {
        let site: &Site = problem.on()?;
        Some(Self { collective: problem.collective, machine: &site.machine, site })
    }
}
