//! Networks from files that other programs write; the registry is [`FORMATS`].

mod edges;
mod nccl;
mod nccl_odd;
mod nccl_rates;
mod nccl_server;

use serde::Serialize;

use super::{Gpu, MachinesPer, Network, Prices, SwitchClass};
use crate::{Description, MachineError};

/// The options with which a file is read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImportOptions<'a> {
    /// The name of the machine.
    pub name: &'a str,
    /// Equal boxes of which the file describes one.
    pub boxes: u32,
    /// Nodes below this number are accelerators, if the file does not state it.
    pub accelerators: Option<u32>,
}

/// A format of files.
#[derive(Serialize)]
pub struct Format {
    pub name: &'static str,
    pub summary: &'static str,
    pub reference: &'static str,
    #[serde(skip)]
    read: fn(&str, &ImportOptions) -> Result<Network, Refusal>,
}

/// Sorted by name.
pub const FORMATS: &[Format] = &[edges::FORMAT, nccl::FORMAT];

/// The fault of a file, and its line if one line is at fault.
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
    /// The text has another format, or describes a network that does not close.
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

/// Latency of a cable where a file states none: that of NVLink to a switch in TE-CCL, 0.35 us.
const ASSUMED_NS: f64 = 350.0;

const ASSUMED: &str = "assumed, as the imported file states none of them: latencies, packets, buffers, and gamma_ns_per_byte = \
    0.0025 (sums of 400 GB/s)";

/// A network of one plane, whose packets and buffers are those of the presets of servers.
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
        gamma_ns_per_byte: 0.0025,
        launch_ns: 0.0,
        signal_ns: 0.0,
        copy_ns_per_byte: 0.0,
        cluster: None,
        notes: vec![ASSUMED.to_owned()],
        failed: Vec::new(),
        prices: Prices { switch_usd: 0.0, dac_usd: 0.0, aoc_usd: 0.0 },
        accelerator: None,
        gpu: None,
        nccl: None,
        thread_block: None,
        topology,
        switches: Vec::new(),
    }
}
