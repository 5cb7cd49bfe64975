//! What a network is made of and what follows from it, for reports.

use serde::Serialize;

use super::{Network, Topology};
use crate::MachineError;

/// Of all planes where nothing else is said.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Facts {
    pub name: String,
    pub family: &'static str,
    pub accelerators: u32,
    pub extents: Vec<u32>,
    pub planes: u32,
    /// Of an accelerator in one plane.
    pub ports: u32,
    /// Of an accelerator.
    pub injection_gbps: f64,
    pub switches: u64,
    pub cables: Cables,
    /// Nothing where a switch is larger than any that is sold.
    pub cost_usd: Option<f64>,
    pub diameter: u32,
    /// Nothing where no form gives it and the plane is too large to try all halves.
    pub bisection_share: Option<f64>,
    /// One of them.
    pub plane: PlaneFacts,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Cables {
    pub dac: u64,
    pub aoc: u64,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PlaneFacts {
    pub switches: u64,
    pub cables: Cables,
    pub cost_usd: Option<f64>,
    /// Of the largest switch.
    pub switch_ports: u32,
}

impl Network {
    /// # Errors
    /// Sizes that do not close.
    pub fn facts(&self) -> Result<Facts, MachineError> {
        let topology: &dyn Topology = &*self.topology(&self.name)?;
        let (bill, planes) = (topology.bill(), u64::from(self.planes));
        let cost_usd = self.cost_usd(topology);
        let cables = |planes| Cables { dac: planes * bill.dac, aoc: planes * bill.aoc };
        Ok(Facts {
            name: self.name.clone(),
            family: topology.name(),
            accelerators: topology.accelerators(),
            extents: topology.extents(),
            planes: self.planes,
            ports: topology.ports(),
            injection_gbps: self.link_gbps * f64::from(topology.ports()) * f64::from(self.planes),
            switches: planes * bill.switches,
            cables: cables(planes),
            cost_usd,
            diameter: topology.diameter(),
            bisection_share: topology.bisection_share(),
            plane: PlaneFacts {
                switches: bill.switches,
                cables: cables(1),
                cost_usd: cost_usd.map(|all| all / f64::from(self.planes)),
                switch_ports: bill.switch_ports,
            },
        })
    }
}
