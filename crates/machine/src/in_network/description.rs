//! The TOML description of a machine whose switches reduce.

use serde::{Deserialize, Serialize};
use unisono_base::{exact, narrow};

use super::{Layout, LevelOf, Site, balanced};
use crate::{Description, MachineError, MachineText, Shape};

/// The costs of a round of messages for a program on the cores, without the network's latency.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// The software time of a round.
    pub round_ns: f64,
    /// The number of one-way network latencies that a round takes, including those of flags.
    pub traversals: f64,
}

/// The compute rates of a node, which models of applications read.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// The peak rate of a node, in 10^12 operations per second.
    pub tflops: f64,
    /// The fraction of the peak rate that training reaches, from 0 to 1.
    pub efficiency: f64,
}

/// A machine file with `kind = "in-network"`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InNetwork {
    pub name: String,
    pub kind: String,
    #[serde(default)]
    pub summary: String,
    pub cores_per_socket: u32,
    /// Rows and columns of a socket's mesh. Core `k` is at row `k / columns`, column `k % columns`.
    #[serde(deserialize_with = "exact::array")]
    pub mesh: [u32; 2],
    pub sockets_per_node: u32,
    /// The number of nodes in each dimension of the HyperX; empty for a single node.
    pub node_dims: Vec<u32>,
    /// The latency of a link between cores.
    pub core_latency_ns: f64,
    /// The latency of a link between sockets.
    pub socket_latency_ns: f64,
    /// The latency of a link between adjacent nodes.
    pub node_latency_ns: f64,
    /// The additional latency of a link between nodes for each step by which their coordinates differ beyond the first;
    /// 0 if the latency does not depend on the distance.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub node_step_ns: f64,
    /// The rate of a link between cores, one direction.
    pub core_gbps: f64,
    /// The rate of a link between sockets, one direction.
    pub socket_gbps: f64,
    /// The rate of a link between nodes, one direction.
    pub node_gbps: f64,
    /// The rate of a core's memory, reading plus writing. A core that does both has half of the rate for each.
    pub memory_gbps: f64,
    /// The rate of the link between a switch and its core's memory, one direction.
    pub memory_port_gbps: f64,
    pub packet_bytes: u32,
    /// The number of packets that a switch's input buffer holds for each channel, which is also the channel's number of
    /// credits.
    pub buffer_packets: u32,
    /// The latency of one stage of a switch's pipelined tree of operators.
    #[serde(default)]
    pub engine_level_ns: f64,
    /// The rate at which one switch reduces or forwards packets. `None` stands for the rate of its links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_gbps: Option<f64>,
    /// The number of replicas of the registers in each switch.
    pub identifiers: u32,
    /// True if a switch completes each collective before it starts another; otherwise packets of several collectives
    /// alternate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exclusive_switches: bool,
    /// The operators with which switches reduce.
    pub operators: Vec<String>,
    /// The cores that have a socket's links to other sockets. The core of the link to socket `t` is entry `t` modulo
    /// the length of the list.
    pub socket_ports: Vec<u32>,
    /// The cores that have a node's links to other nodes. Links are numbered by the coordinates of the first dimension,
    /// then of the next. Link `k` is in socket `k` modulo the number of sockets; its core is entry `k / sockets` modulo
    /// the length of the list.
    pub node_ports: Vec<u32>,
    pub host: Host,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<Device>,
}

/// The largest number of cores of a machine, and of ranks of a collective.
const MOST_CORES: u64 = 1 << 22;

impl Description for InNetwork {
    const KIND: &'static str = "in-network";

    fn read(source: &MachineText) -> Result<Self, MachineError> {
        let machine: Self = source.parse()?;
        machine.check(source.origin)?;
        Ok(machine)
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn summary(&self) -> &str {
        &self.summary
    }

    fn shape(&self, asked: Option<Shape>) -> Result<Option<Shape>, MachineError> {
        Shape::ranks(asked, &self.name).map(|shape| Some(shape.unwrap_or(Shape::line(self.cores()))))
    }

    fn with_nodes(&self, nodes: u32) -> Result<Self, MachineError> {
        InNetwork::with_nodes(self, nodes)
    }

    fn shape_of(&self, nodes: &[u32]) -> Result<Shape, MachineError> {
        Ok(Shape::line(narrow(Site::on_nodes(self, nodes)?.cores.len())))
    }
}

impl InNetwork {
    pub fn nodes(&self) -> u32 {
        self.node_dims.iter().product()
    }

    pub fn cores(&self) -> u32 {
        self.nodes() * self.cores_per_node()
    }

    pub fn cores_per_node(&self) -> u32 {
        self.sockets_per_node * self.cores_per_socket
    }

    /// Returns the latency of a link between cores, sockets, or nodes whose coordinates differ by a distance.
    pub fn latency_ns(&self, level: LevelOf) -> f64 {
        match level {
            LevelOf::Core => self.core_latency_ns,
            LevelOf::Socket => self.socket_latency_ns,
            LevelOf::Node { distance } => {
                self.node_latency_ns + self.node_step_ns * f64::from(distance.saturating_sub(1))
            }
        }
    }

    /// Returns the number of links between the two most distant cores of a socket.
    pub fn mesh_diameter(&self) -> u32 {
        self.mesh[0] + self.mesh[1] - 2
    }

    /// Returns the same machine with `nodes` nodes, on the HyperX of [`balanced`].
    ///
    /// # Errors
    /// Returns an error if `nodes` is 0, or too large.
    pub fn with_nodes(&self, nodes: u32) -> Result<Self, MachineError> {
        let most = u32::try_from(MOST_CORES).unwrap_or(u32::MAX) / self.cores_per_node();
        if nodes == 0 || nodes > most {
            return Err(MachineError::Nodes { machine: self.name.clone(), found: nodes, most });
        }
        let made = Self { node_dims: balanced(nodes), ..self.clone() };
        made.check(&self.name)?;
        Ok(made)
    }

    pub fn layout(&self) -> Layout {
        Layout::new(self)
    }

    /// # Errors
    /// Returns an error if a value is out of range.
    pub fn check(&self, origin: &str) -> Result<(), MachineError> {
        let bad =
            |key, found: String, accepted| Err(MachineError::Value { origin: origin.to_owned(), key, found, accepted });
        let [rows, cols] = self.mesh;
        if !(1..=64).contains(&self.cores_per_socket) {
            return bad("cores_per_socket", self.cores_per_socket.to_string(), "1 to 64");
        }
        if rows.checked_mul(cols) != Some(self.cores_per_socket) {
            return bad("mesh", format!("[{rows}, {cols}]"), "[rows, columns] with cores_per_socket places");
        }
        if !(1..=256).contains(&self.sockets_per_node) {
            return bad("sockets_per_node", self.sockets_per_node.to_string(), "1 to 256");
        }
        if self.node_dims.len() > 8 || self.node_dims.contains(&0) {
            return bad("node_dims", format!("{:?}", self.node_dims), "up to 8 dimensions, each at least 1");
        }
        let nodes = self.node_dims.iter().try_fold(1_u64, |n, &d| n.checked_mul(u64::from(d)));
        if nodes.and_then(|n| n.checked_mul(u64::from(self.cores_per_node()))).is_none_or(|n| n > MOST_CORES) {
            return bad("node_dims", format!("{:?}", self.node_dims), "dimensions with at most 4194304 cores in all");
        }
        let positive = [
            ("core_gbps", self.core_gbps),
            ("socket_gbps", self.socket_gbps),
            ("node_gbps", self.node_gbps),
            ("memory_gbps", self.memory_gbps),
            ("memory_port_gbps", self.memory_port_gbps),
            ("engine_gbps", self.engine_gbps.unwrap_or(1.0)),
            ("device.tflops", self.device.map_or(1.0, |d| d.tflops)),
            ("device.efficiency", self.device.map_or(1.0, |d| d.efficiency)),
        ];
        if let Some((key, found)) = positive.into_iter().find(|(_, v)| !(v.is_finite() && *v >= 1e-6 && *v <= 1e9)) {
            return bad(key, found.to_string(), "a number above 0");
        }
        let at_least_zero = [
            ("core_latency_ns", self.core_latency_ns),
            ("socket_latency_ns", self.socket_latency_ns),
            ("node_latency_ns", self.node_latency_ns),
            ("node_step_ns", self.node_step_ns),
            ("engine_level_ns", self.engine_level_ns),
            ("host.round_ns", self.host.round_ns),
        ];
        if let Some((key, found)) = at_least_zero.into_iter().find(|(_, v)| !(v.is_finite() && *v >= 0.0 && *v <= 1e12))
        {
            return bad(key, found.to_string(), "a number of at least 0");
        }
        if !(self.host.traversals >= 1.0 && self.host.traversals <= 1e12) {
            let accepted = "a number of at least 1, since no message is faster than its way";
            return bad("host.traversals", self.host.traversals.to_string(), accepted);
        }
        if self.packet_bytes < 8 || self.packet_bytes > 1 << 20 {
            return bad("packet_bytes", self.packet_bytes.to_string(), "8 to 1048576");
        }
        if !(1..=1024).contains(&self.buffer_packets) {
            return bad("buffer_packets", self.buffer_packets.to_string(), "1 to 1024");
        }
        if let Some(found) = self.operators.iter().find(|name| !OPERATORS.contains(&name.as_str())) {
            let accepted = if found == "nor" { NOR_REFUSED } else { OPERATORS_LISTED };
            return bad("operators", format!("'{found}'"), accepted);
        }
        if !(1..=64).contains(&self.identifiers) {
            return bad("identifiers", self.identifiers.to_string(), "1 to 64");
        }
        for (key, ports) in [("socket_ports", &self.socket_ports), ("node_ports", &self.node_ports)] {
            if ports.is_empty() || ports.iter().any(|&core| core >= self.cores_per_socket) {
                return bad(key, format!("{ports:?}"), "a list of cores of a socket, at least one");
            }
        }
        let layout = self.layout();
        if layout.most_ports() > usize::from(MEMORY_BELOW) {
            let found = format!("{} links at one switch", layout.most_ports());
            return bad("socket_ports and node_ports", found, "at most 60 links a switch");
        }
        Ok(())
    }
}

/// Returns whether a number is 0, the default that serde omits. Serde passes a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

/// The names of all operators with which switches may reduce.
pub const OPERATORS: [&str; 8] = ["sum", "prod", "min", "max", "and", "or", "xor", "ordered"];
const OPERATORS_LISTED: &str = "sum, prod, min, max, and, or, xor, ordered";
/// The accepted operators. PIUMA's NOR is not among them, because its result over more than two inputs depends on the
/// tree.
const NOR_REFUSED: &str =
    "associative operators: sum, prod, min, max, and, or, xor, ordered; take 'or' and invert its result";

/// The maximum number of links of a switch, without the link to its memory.
const MEMORY_BELOW: u8 = 60;
