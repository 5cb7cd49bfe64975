//! Times of collectives on a network with shared links: of closed forms and of schedules, whose messages are routed
//! over a plane. Also lower bounds.

pub mod bounds;
mod gpu_boxes;
mod group_loads;
pub(crate) mod loads;
mod model;
pub mod nccl;
pub mod rccl;
mod routed;
mod schedule;
mod speeds;
pub(crate) mod timetable;
mod together;
mod used_links;
mod ways;

use std::sync::OnceLock;

use unisono_machine::{
    MachineError,
    network::{MachinesPer, Network, Topology},
};

pub use bounds::{cut_roots, least_cut};
pub use group_loads::GroupLoad;
pub use model::NetworkModel;
pub use schedule::{MessageRound, message_rounds};
pub use speeds::Speeds;
pub use together::{groups_together, messages_together};
use unisono_synthesis::{Fabric, Graph};
pub use used_links::{UsedLinks, message_pairs};

/// The part of a network that runs a collective: its accelerators, and the model of their messages.
pub struct NetworkPart {
    pub network: Network,
    pub topology: Box<dyn Topology>,
    pub model: NetworkModel,
    /// The links between the ranks.
    pub fabric: Fabric,
    extents: Vec<u32>,
    /// The same part with the rates of the data sheet, if the network's own rates are measured.
    sheet: OnceLock<Box<NetworkPart>>,
}

impl NetworkPart {
    /// Places rank k on accelerator `nodes[k]`; ranks are numbered row-major over `extents`.
    ///
    /// # Errors
    /// Returns an error if an accelerator does not exist or has two ranks, or if the topology is invalid or too large.
    pub fn new(network: &Network, nodes: Vec<u32>, extents: &[u32]) -> Result<Self, MachineError> {
        let topology = network.topology(&network.name)?;
        network.check_nodes(&*topology, &nodes)?;
        let model = NetworkModel::on(network, &*topology, nodes)?;
        let graph = Graph::of_plane(model.plane(), model.places(), network.working_planes(), |link| {
            network.link_speed(model.plane(), link).gbps
        });
        let graph = match topology.lengths() {
            Some(lengths) => graph.with_lengths(model.plane(), &lengths),
            None => graph,
        };
        let by_link = network.send_machines_per == MachinesPer::Link;
        let fabric = Fabric::new(graph, extents, model.speeds().mean_ns())
            .sending_by_link(by_link)
            .with_hosts(model.reduce_ns_per_byte, network.host_overhead_ns)
            .with_headers(u64::from(network.header_bytes) * u64::from(network.working_planes()))
            .with_places((network.buffer_bytes / u64::from(network.packet_bytes)).max(1))
            .computing(model.computing().clone());
        let packet_bytes = u64::from(network.packet_bytes) * u64::from(network.working_planes());
        let fabric = if by_link { fabric } else { fabric.with_machines(network.send_machines, packet_bytes) };
        let fabric = match model.speeds().same_ns() {
            Some(_) => fabric,
            None => {
                let links = model.plane().links().iter();
                fabric.with_latencies(links.map(|link| ((link.from, link.to), model.speeds().alpha_ns(link.speed))))
            }
        };
        let is_all = model.places().len() as u64 == u64::from(topology.accelerators());
        let fabric = match topology.renumbered().filter(|_| is_all) {
            Some(nodes) => {
                let before = network.before_failures();
                fabric.after_failures(move || Self::whole(&before).fabric, nodes.to_vec())
            }
            None => fabric,
        };
        let (network, extents, sheet) = (network.clone(), extents.to_vec(), OnceLock::new());
        Ok(Self { network, topology, model, fabric, extents, sheet })
    }

    /// Returns a part with all accelerators of a network. The caller has already built a part of this network, so the
    /// topology is valid.
    fn whole(network: &Network) -> Self {
        let topology = network.topology(&network.name).expect("the topology of which parts failed");
        let all = (0..topology.accelerators()).collect();
        Self::new(network, all, &topology.extents()).expect("a network of which parts failed")
    }

    /// Returns the part with the rates of the data sheet, which lower bounds read.
    pub fn of_data_sheet(&self) -> &Self {
        if !self.network.is_measured() {
            return self;
        }
        self.sheet.get_or_init(|| {
            let part = Self::new(&self.network.data_sheet(), self.model.places().to_vec(), &self.extents);
            Box::new(part.expect("rates do not change whether a topology closes"))
        })
    }
}
