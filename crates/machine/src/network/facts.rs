//! Facts of a network for reports.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use serde::Serialize;

use super::{
    Bill, Network, SWITCH_PORTS, Speed, Topology,
    cut::{Bisection, bisection},
};
use crate::MachineError;

/// The facts of a network, in all planes unless stated otherwise.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Facts {
    pub name: String,
    pub family: &'static str,
    pub accelerators: u32,
    pub extents: Vec<u32>,
    /// The number of planes, including failed planes.
    pub planes: u32,
    pub working_planes: u32,
    /// The number of ports of an accelerator in one plane.
    pub ports: u32,
    /// The rate of all links of an accelerator in the working planes, the largest if accelerators differ.
    pub injection_gbps: f64,
    /// The rate of all links of an accelerator in the working planes, the smallest if accelerators differ.
    pub injection_gbps_least: f64,
    /// The same as `injection_gbps` by measured rates; `None` without measured rates.
    pub measured_injection_gbps: Option<f64>,
    pub switches: u64,
    pub cables: Cables,
    /// The price of all planes; `None` if a switch is not on the price list, or all prices are 0.
    pub cost_usd: Option<f64>,
    pub diameter: u32,
    /// The bisection (`Bisection` of `cut`); `None` for one accelerator, and if no cut is known and the plane is large.
    pub bisection_share: Option<f64>,
    /// True if no cut into halves is narrower.
    pub bisection_is_least: Option<bool>,
    /// The share of the narrowest cut into halves that was found. This share is less than `bisection_share` only if the
    /// publication that describes the family compares networks by a wider cut.
    pub narrowest_cut_share: Option<f64>,
    /// The failed links, nodes and planes.
    pub failed: Vec<String>,
    /// The original numbers of the remaining accelerators, if one failed.
    pub kept: Option<Vec<u32>>,
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
    pub switch_ports: u32,
    /// The cables that full use of all ports would add.
    pub spare_cables: Cables,
    /// True if counts and price include these cables.
    pub spare_is_bought: bool,
    /// The links whose speed is not the machine's own.
    pub unlike_links: Vec<UnlikeLinks>,
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct UnlikeLinks {
    pub gbps: f64,
    pub latency_ns: f64,
    pub cables: u64,
}

impl Network {
    /// Returns the facts by the rates of the data sheet, with the measured injection.
    ///
    /// # Errors
    /// Returns an error if the topology cannot be built.
    pub fn facts(&self) -> Result<Facts, MachineError> {
        if self.is_measured() {
            let measured = self.injection_gbps(&*self.topology(&self.name)?)[1];
            return Ok(Facts { measured_injection_gbps: Some(measured), ..self.data_sheet().facts()? });
        }
        let topology: &dyn Topology = &*self.topology(&self.name)?;
        let (bill, planes) = (self.bill(topology), u64::from(self.planes));
        let bisection = self.bisection(topology);
        let cost_usd = self.cost_usd(topology);
        let [injection_gbps_least, injection_gbps] = self.injection_gbps(topology);
        let unlike = topology.unlike().into_iter();
        let cables = |planes| Cables { dac: planes * bill.dac, aoc: planes * bill.aoc };
        Ok(Facts {
            name: self.name.clone(),
            family: topology.name(),
            accelerators: topology.accelerators(),
            extents: topology.extents(),
            planes: self.planes,
            working_planes: self.working_planes(),
            ports: topology.ports(),
            injection_gbps,
            injection_gbps_least,
            measured_injection_gbps: None,
            switches: planes * bill.switches,
            cables: cables(planes),
            cost_usd,
            diameter: topology.diameter(),
            bisection_share: bisection.map(|of| of.share),
            bisection_is_least: bisection.map(|of| of.is_least),
            narrowest_cut_share: bisection.map(|of| of.narrowest),
            failed: self.failed.clone(),
            kept: topology.kept().map(<[u32]>::to_vec),
            plane: PlaneFacts {
                switches: bill.switches,
                cables: cables(1),
                cost_usd: cost_usd.map(|all| all / f64::from(self.planes)),
                switch_ports: bill.switch_ports,
                spare_cables: Cables { dac: bill.spare_dac, aoc: bill.spare_aoc },
                spare_is_bought: self.prices.spare_ports,
                unlike_links: unlike
                    .map(|(Speed { gbps, latency_ns }, cables)| UnlikeLinks { gbps, latency_ns, cables })
                    .collect(),
            },
        })
    }

    /// Returns the bisection. The result is cached, so that equal topologies are searched once.
    fn bisection(&self, topology: &dyn Topology) -> Option<Bisection> {
        static FOUND: Mutex<BTreeMap<String, Option<Bisection>>> = Mutex::new(BTreeMap::new());
        const MOST_KEPT: usize = 64;
        let key = format!("{:?} {:?} {}", self.failed, self.own_speed(), self.topology);
        let lock = || FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&found) = lock().get(&key) {
            return found;
        }
        let found = bisection(topology, self.own_speed());
        let mut kept = lock();
        if kept.len() >= MOST_KEPT {
            kept.clear();
        }
        kept.insert(key, found);
        found
    }

    /// Returns the parts of a plane that are bought.
    pub fn bill(&self, topology: &dyn Topology) -> Bill {
        let bill = topology.bill();
        if !self.prices.spare_ports {
            return bill;
        }
        Bill { dac: bill.dac + bill.spare_dac, aoc: bill.aoc + bill.spare_aoc, ..bill }
    }

    /// Returns the price of all planes in dollars; `None` if a switch is not on the price list, or all prices are 0.
    pub fn cost_usd(&self, topology: &dyn Topology) -> Option<f64> {
        let (bill, p) = (self.bill(topology), self.prices);
        let plane = bill.switches as f64 * p.switch_usd + bill.dac as f64 * p.dac_usd + bill.aoc as f64 * p.aoc_usd;
        let is_known = bill.switch_ports <= SWITCH_PORTS && (p.switch_usd, p.dac_usd, p.aoc_usd) != (0.0, 0.0, 0.0);
        is_known.then_some(f64::from(self.planes) * plane)
    }
}
