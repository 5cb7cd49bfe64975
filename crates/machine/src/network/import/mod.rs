//! Networks from files that other programs write; the registry is [`FORMATS`].

mod edges;
mod nccl;
mod nccl_odd;
mod nccl_rates;
mod nccl_server;

use super::{Gpu, MachinesPer, Network, Prices, SwitchClass};
use crate::{Description, MachineError};

/// The options of an import.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImportOptions<'a> {
    /// The name of the machine.
    pub name: &'a str,
    /// The number of equal boxes; the file describes one box.
    pub boxes: u32,
    /// The number of accelerators, which are the first nodes, if the file does not state it.
    pub accelerators: Option<u32>,
    /// The names of all nodes of a list of cables, in the order of their numbers, if it has names.
    pub names: Option<&'a [String]>,
}

/// A file format.
pub struct Format {
    pub name: &'static str,
    read: fn(&str, &ImportOptions) -> Result<Network, Refusal>,
}

/// All formats, sorted by name.
pub const FORMATS: &[Format] = &[edges::FORMAT, nccl::FORMAT];

/// The fault of a file, and the number of the line with the fault, if there is one.
struct Refusal {
    line: Option<u32>,
    message: String,
}

impl From<String> for Refusal {
    fn from(message: String) -> Self {
        Self { line: None, message }
    }
}

impl Format {
    /// Returns the network that a text describes; `origin` opens the message of an error.
    ///
    /// # Errors
    /// Returns an error if the text has another format, or the described network is invalid.
    pub fn read(&self, text: &str, origin: &str, options: &ImportOptions) -> Result<Network, MachineError> {
        let network = (self.read)(text, options).map_err(|refusal| {
            let place = refusal.line.map_or(String::new(), |line| format!(", line {line}"));
            MachineError::Toml { origin: format!("{origin}{place}"), message: refusal.message }
        })?;
        match network.check(origin) {
            Ok(()) => Ok(network),
            Err(error @ MachineError::TooManyCables { .. }) => {
                Err(MachineError::Toml { origin: origin.to_owned(), message: error.to_string() })
            }
            Err(error) => Err(error),
        }
    }
}

/// The assumed latency of a cable: that of NVLink to a switch in TE-CCL, 0.35 us.
const ASSUMED_NS: f64 = 350.0;

/// The assumed latency of a message between GPUs of two boxes: that of InfiniBand in TE-CCL, 2.6 us, as in the presets.
const ASSUMED_NETWORK_NS: f64 = 2600.0;

const ASSUMED: &str = "assumed where the imported file states none: latencies, packets, buffers, and gamma_ns_per_byte = \
    0.0025 (sums of 400 GB/s)";

/// Returns a network of one plane with the packets and buffers of the presets of servers.
fn network(options: &ImportOptions, summary: String, link_gbps: f64, topology: toml::Table) -> Network {
    Network {
        name: options.name.to_owned(),
        kind: Network::KIND.to_owned(),
        summary,
        planes: 1,
        link_gbps,
        measured_gbps: None,
        link_latency_ns: ASSUMED_NS,
        input_latency_ns: 0.0,
        output_latency_ns: 0.0,
        packet_bytes: 4096,
        buffer_bytes: 1 << 22,
        send_machines: 1,
        send_machines_per: MachinesPer::Link,
        host_overhead_ns: 0.0,
        header_bytes: 0,
        gamma_ns_per_byte: 0.0025,
        launch_ns: 0.0,
        signal_ns: 0.0,
        copy_ns_per_byte: 0.0,
        cluster: None,
        notes: vec![ASSUMED.to_owned()],
        failed: Vec::new(),
        prices: Prices { switch_usd: 0.0, dac_usd: 0.0, aoc_usd: 0.0, spare_ports: false },
        accelerator: None,
        gpu: None,
        nccl: None,
        thread_block: None,
        topology,
        switches: Vec::new(),
    }
}
