//! What a user asks for on a network, checked.

use unisono_algorithms::{Case, Ranks, ranks::Extents};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_cost::network::{NetworkCase, NetworkModel};
use unisono_machine::{
    Shape,
    network::{Network, Topology},
};

use crate::PlanError;

/// The one model of networks.
pub const MODEL: &str = "links";

/// One collective on some accelerators of a network.
pub struct NetworkRequest {
    pub collective: Collective,
    pub machine: Network,
    pub topology: Box<dyn Topology>,
    pub model: NetworkModel,
    /// How the ranks lie.
    pub extents: Extents,
}

impl NetworkRequest {
    /// On all accelerators, on the first of a number, or on the first rows and columns of a shape.
    ///
    /// # Errors
    /// More ranks than accelerators, a root outside them, counts that do not fit, another model.
    #[expect(clippy::too_many_arguments, reason = "what a user says of a collective")]
    pub fn new(
        kind: Kind,
        machine: &Network,
        shape: Option<Shape>,
        elements: u64,
        root: u64,
        operator: Operator,
        dtype: Dtype,
        model: Option<&str>,
    ) -> Result<Self, PlanError> {
        if let Some(found) = model.filter(|&m| m != MODEL) {
            return Err(PlanError::Model { found: found.to_owned(), accepted: format!("{MODEL} on a network") });
        }
        let all = machine.topology(&machine.name)?.extents();
        let (places, extents) = part(machine, &all, shape)?;
        let collective = Collective::new(kind, extents.ranks(), elements, root, operator, dtype)?;
        Self::placed(collective, machine, places, extents)
    }

    /// The same with rank k on the accelerator `places[k]`: a virtual sub-mesh, for one.
    ///
    /// # Errors
    /// As many places as ranks there must be, all of them on the machine.
    pub fn placed(
        collective: Collective,
        machine: &Network,
        places: Vec<u32>,
        extents: Extents,
    ) -> Result<Self, PlanError> {
        let topology = machine.topology(&machine.name)?;
        let accelerators = topology.accelerators();
        let beyond = places.iter().any(|&p| p >= accelerators);
        if beyond || places.len() != collective.ranks as usize || extents.ranks() != collective.ranks {
            let ranks = collective.ranks;
            return Err(PlanError::TooManyRanks { ranks, machine: machine.name.clone(), accelerators });
        }
        let model = NetworkModel::new(machine, places)?;
        Ok(Self { collective, machine: machine.clone(), topology, model, extents })
    }

    /// The same collective on other accelerators, in a row: ranks that are only some of a part.
    ///
    /// # Errors
    /// As [`Self::placed`].
    pub fn on_places(&self, places: Vec<u32>) -> Result<Self, PlanError> {
        let ranks = self.collective.ranks;
        let extents = Extents::new(&[ranks]).ok_or_else(|| PlanError::TooManyRanks {
            ranks,
            machine: self.machine.name.clone(),
            accelerators: self.topology.accelerators(),
        })?;
        Self::placed(self.collective, &self.machine, places, extents)
    }

    pub fn case(&self) -> Case {
        let injection =
            8.0 / self.machine.link_gbps / (f64::from(self.topology.ports()) * f64::from(self.machine.planes));
        // A message between any two ranks goes half of the longest way.
        let hops = f64::from(self.topology.diameter().max(2)) / 2.0;
        Case::on_ranks(
            self.collective,
            Ranks {
                latency_ns: hops * self.model.alpha_ns + self.model.overhead_ns / 2.0,
                issue_ns: self.model.overhead_ns / 2.0,
                ns_per_byte: injection,
                reduce_ns_per_byte: self.model.reduce_ns_per_byte,
                node_ranks: None,
                dealt_node_ranks: None,
                extents: Some(self.extents),
            },
        )
    }

    pub fn bound_case(&self) -> NetworkCase<'_> {
        NetworkCase {
            collective: self.collective,
            network: &self.machine,
            topology: &*self.topology,
            model: &self.model,
        }
    }
}

/// The accelerators of a part of the machine in the order of their ranks, and how they lie.
fn part(machine: &Network, all: &[u32], shape: Option<Shape>) -> Result<(Vec<u32>, Extents), PlanError> {
    let accelerators: u32 = all.iter().product();
    let line = |ranks: u32| Extents::new(&[ranks]);
    let whole = || Extents::new(all).or_else(|| line(accelerators));
    let fits = |extents: Option<Extents>| {
        extents.ok_or_else(|| PlanError::NoSuchPart {
            shape: shape.map_or_else(String::new, |s| s.to_string()),
            machine: machine.name.clone(),
            extents: all.iter().map(ToString::to_string).collect::<Vec<_>>().join("x"),
        })
    };
    let Some(asked) = shape else {
        return Ok(((0..accelerators).collect(), fits(whole())?));
    };
    let dims = asked.dims();
    if let [ranks] = dims[..] {
        if ranks > accelerators {
            return Err(PlanError::TooManyRanks { ranks, machine: machine.name.clone(), accelerators });
        }
        // Whole rows keep the network's dimensions.
        let row: u32 = all[1..].iter().product();
        let rows = || {
            let mut rows = all.to_vec();
            rows[0] = ranks / row;
            Extents::new(&rows)
        };
        let extents = if ranks.is_multiple_of(row) { rows() } else { line(ranks) };
        return Ok(((0..ranks).collect(), fits(extents)?));
    }
    let inside = dims.len() == all.len() && dims.iter().zip(all).all(|(part, all)| part <= all);
    let (part, all) = (fits(Extents::new(&dims).filter(|_| inside))?, fits(Extents::new(all))?);
    let place = |rank: u32| (0..dims.len()).map(|d| part.coordinate(rank, d) * all.stride(d)).sum();
    Ok(((0..part.ranks()).map(place).collect(), part))
}
