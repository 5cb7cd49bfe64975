//! The TOML description of a network.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use unisono_base::excerpt;

use super::{
    DATA_SHEET, FAMILIES, Failure, Gpu, NcclTimes, Plane, Speed, SwitchClass, ThreadBlock, Topology,
    failures::degraded, part_names::numbered, planes::is_plane,
};
use crate::{Description, MachineError, MachineText, Shape};

pub(super) const RATES_GBPS: RangeInclusive<f64> = 1e-9..=1e15;

/// Prices in dollars.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Prices {
    pub switch_usd: f64,
    pub dac_usd: f64,
    pub aoc_usd: f64,
    /// True if the price includes cables at ports that the topology leaves free, as Table 2 of "HammingMesh" does.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub spare_ports: bool,
}

/// The compute and memory rates of an accelerator.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rates {
    /// 10^12 arithmetic operations per second.
    pub tflops: f64,
    /// 10^9 bytes per second.
    pub memory_gb_per_second: f64,
}

/// Returns the prices of "HammingMesh", section 5 (64-port switches of 400 Gb/s).
impl Default for Prices {
    fn default() -> Self {
        Self { switch_usd: 14_280.0, dac_usd: 272.0, aoc_usd: 603.0, spare_ports: false }
    }
}

/// Returns 4 send machines, as in "HammingMesh" (artifact, defaultParams.py).
fn four() -> u32 {
    4
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

fn is_no_bytes(value: &u16) -> bool {
    *value == 0
}

/// The largest accepted time in nanoseconds of one part of a message or of a byte: 17 minutes.
pub(super) const MOST_NS: f64 = 1e12;

/// The part of a machine that sends up to `send_machines` messages concurrently.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MachinesPer {
    #[default]
    Accelerator,
    /// Each link of an accelerator: messages on different links do not wait for each other.
    Link,
}

impl MachinesPer {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
    fn is_accelerator(&self) -> bool {
        *self == MachinesPer::Accelerator
    }
}

/// A machine file with `kind = "network"`: a topology in equal planes, and the times and sizes of links and packets.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    pub name: String,
    pub kind: String,
    #[serde(default)]
    pub summary: String,
    /// The number of equal, independent planes, over which a vector is split. It includes failed planes, unlike
    /// [`Network::working_planes`].
    pub planes: u32,
    /// The rate of one direction of one cable by its data sheet.
    pub link_gbps: f64,
    /// The rate that programs reached on a cable; by default `link_gbps`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_gbps: Option<f64>,
    pub link_latency_ns: f64,
    /// The latency of a packet's entry into a switch.
    pub input_latency_ns: f64,
    /// The latency of a packet's exit from a switch.
    pub output_latency_ns: f64,
    pub packet_bytes: u32,
    /// The size of each switch input's buffer for one virtual channel.
    pub buffer_bytes: u64,
    /// The number of messages that an accelerator, or each of its links, sends concurrently. Each of these messages has
    /// one packet ready to be sent.
    #[serde(default = "four")]
    pub send_machines: u32,
    #[serde(default, skip_serializing_if = "MachinesPer::is_accelerator")]
    pub send_machines_per: MachinesPer,
    /// The time that a host takes to begin a message, and also to end a message.
    #[serde(default)]
    pub host_overhead_ns: f64,
    /// The bytes that each message has on links besides its data: its headers, in every plane.
    #[serde(default, skip_serializing_if = "is_no_bytes")]
    pub header_bytes: u16,
    /// The time to reduce one byte of one operand.
    #[serde(default)]
    pub gamma_ns_per_byte: f64,
    /// The time from the call of a collective until each rank begins; on GPUs, the launch of a kernel.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub launch_ns: f64,
    /// The time from the end of a message until its receiver detects the message, by a fence, a signal and a wait. This
    /// time occupies no link and no host.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub signal_ns: f64,
    /// The time to copy one byte in the memory of a rank.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub copy_ns_per_byte: f64,
    /// The name of the preset that states how boxes like this one are joined. A machine of several nodes consists of
    /// boxes with the values of this file, joined as in that preset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Sentences about times and bounds on this machine: values that an imported file did not state, and optional
    /// hardware that the file does not describe.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Failed links and nodes, in every plane ([`Failure`]), and failed planes ([`super::planes`]). A file may also use
    /// names of parts ([`super::part_names`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
    #[serde(default)]
    pub prices: Prices,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accelerator: Option<Rates>,
    /// The type of the GPUs, for the models of their libraries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Gpu>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nccl: Option<NcclTimes>,
    /// The rates of the thread blocks that execute plans for GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_block: Option<ThreadBlock>,
    /// The `name` of a family of topologies, and the family's keys.
    pub topology: toml::Table,
    /// The switches that copy or reduce; all other switches only forward.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub switches: Vec<SwitchClass>,
}

impl Description for Network {
    const KIND: &'static str = "network";

    fn read(source: &MachineText) -> Result<Self, MachineError> {
        let mut network: Self = source.parse()?;
        network.take_in(source.files);
        network.failed = network.numbered(source.origin, &network.failed)?;
        network.check(source.origin)?;
        Ok(network)
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn summary(&self) -> &str {
        &self.summary
    }

    /// Returns the requested shape, or a line of all accelerators if no shape was requested. The shape is checked
    /// later, together with the dimensions of the network.
    fn shape(&self, asked: Option<Shape>) -> Result<Option<Shape>, MachineError> {
        match asked {
            Some(shape) => Ok(Some(shape)),
            None => Ok(Some(Shape::line(self.topology(&self.name)?.accelerators()))),
        }
    }

    fn notes(&self, _bytes: u64, model: Option<&str>) -> Vec<String> {
        if model == Some(DATA_SHEET) && self.is_measured() { self.data_sheet().sentences() } else { self.sentences() }
    }

    /// Returns a network of `nodes` boxes, if the topology consists of boxes or a preset joins boxes like this one.
    fn with_nodes(&self, nodes: u32) -> Result<Self, MachineError> {
        self.of_boxes(nodes)
    }

    fn shape_of(&self, _nodes: &[u32]) -> Result<Shape, MachineError> {
        Err(MachineError::NoSubsets { machine: self.name.clone() })
    }

    fn with_failures(&self, failed: &[String]) -> Result<Self, MachineError> {
        let failed = self.numbered(&self.name, failed)?;
        let network = Self { failed: [self.failed.clone(), failed].concat(), ..self.clone() };
        network.topology(&network.name)?;
        Ok(network)
    }
}

const CALIBRATED: &str = "the logs changed the times of NCCL's own algorithms alone (--as nccl); plans of Unisono keep \
    the rates and latencies of the machine, which logs of links change";

impl Network {
    /// Returns whether a buffer is smaller than the data that a link of the machine's own speed sends between the start
    /// of a packet and the return of its credit. Long messages then wait for credits.
    pub fn has_short_buffers(&self) -> bool {
        let way_ns = self.output_latency_ns + self.input_latency_ns + 2.0 * self.link_latency_ns;
        (self.buffer_bytes as f64) < self.own_speed().gbps / 8.0 * way_ns + f64::from(self.packet_bytes)
    }

    /// Returns the number of boxes with at least `ranks` accelerators, if the topology consists of boxes or a preset
    /// joins boxes like this one.
    pub fn boxes_for(&self, ranks: u32) -> Option<u32> {
        let topology = self.whole_topology(&self.name).ok().filter(|_| self.failed.is_empty())?;
        let each = match topology.numbers_of_boxes() {
            Some(numbers) => numbers.accelerators,
            None => self.cluster.as_ref().map(|_| topology.accelerators())?,
        };
        let boxes = ranks.div_ceil(each.max(1));
        self.of_boxes(boxes).is_ok().then_some(boxes)
    }

    /// Adds the number of boxes to an error on too many ranks ([`Self::boxes_for`]).
    #[must_use]
    pub fn with_boxes_named(&self, error: MachineError) -> MachineError {
        match error {
            MachineError::TooManyRanks { ranks, machine, accelerators, .. } => {
                let or = self.boxes_for(ranks).map_or_else(String::new, |n| format!(", or for {n} boxes: --nodes {n}"));
                MachineError::TooManyRanks { ranks, machine, accelerators, or }
            }
            other => other,
        }
    }

    /// Returns sentences on costs that predicted times on this machine omit or assume.
    fn sentences(&self) -> Vec<String> {
        let is_bare = (self.launch_ns, self.signal_ns, self.host_overhead_ns) == (0.0, 0.0, 0.0);
        let bare = is_bare.then(|| {
            format!(
                "short vectors take longer than these times: launch_ns, signal_ns and host_overhead_ns of {} are 0",
                self.name
            )
        });
        let parts: Vec<&str> = self.failed_parts().collect();
        let failed = (!parts.is_empty()).then(|| {
            let names = excerpt(&parts.join(", "));
            format!("failed in every plane: {names}; packets take the shortest ways that are left")
        });
        let calibrated = self.nccl.is_some().then(|| CALIBRATED.to_owned());
        failed
            .into_iter()
            .chain(self.note_on_planes())
            .chain(self.rates_note())
            .chain(calibrated)
            .chain(bare)
            .chain(self.notes.iter().cloned())
            .collect()
    }

    /// # Errors
    /// Returns an error if a value is out of range, or the topology cannot be built.
    pub fn check(&self, origin: &str) -> Result<(), MachineError> {
        let wrong =
            |key, found: String, accepted| Err(MachineError::Value { origin: origin.to_owned(), key, found, accepted });
        if !RATES_GBPS.contains(&self.link_gbps) {
            let accepted = "a number above 0, from 1e-9 to 1e15";
            return wrong("link_gbps", format!("{:?}", self.link_gbps), accepted);
        }
        self.check_measured(origin)?;
        let at_least_zero = [
            ("prices.switch_usd", self.prices.switch_usd),
            ("prices.dac_usd", self.prices.dac_usd),
            ("prices.aoc_usd", self.prices.aoc_usd),
        ];
        if let Some((key, found)) = at_least_zero.into_iter().find(|(_, v)| !(v.is_finite() && *v >= 0.0)) {
            return wrong(key, format!("{found:?}"), "a number of at least 0");
        }
        let times = [
            ("link_latency_ns", self.link_latency_ns),
            ("input_latency_ns", self.input_latency_ns),
            ("output_latency_ns", self.output_latency_ns),
            ("host_overhead_ns", self.host_overhead_ns),
            ("gamma_ns_per_byte", self.gamma_ns_per_byte),
            ("launch_ns", self.launch_ns),
            ("signal_ns", self.signal_ns),
            ("copy_ns_per_byte", self.copy_ns_per_byte),
        ];
        if let Some((key, found)) = times.into_iter().find(|(_, v)| !(0.0..=MOST_NS).contains(v)) {
            return wrong(key, format!("{found:?}"), "a number from 0 to 1e12");
        }
        if let Some(rates) = self.accelerator {
            let above_zero = [
                ("accelerator.tflops", rates.tflops),
                ("accelerator.memory_gb_per_second", rates.memory_gb_per_second),
            ];
            if let Some((key, found)) = above_zero.into_iter().find(|(_, v)| !(v.is_finite() && *v > 0.0)) {
                return wrong(key, format!("{found:?}"), "a number above 0");
            }
        }
        if let Some((key, found, accepted)) = self.thread_block.and_then(|block| block.wrong()) {
            return wrong(key, format!("{found:?}"), accepted);
        }
        if !(1..=1 << 16).contains(&self.planes) {
            return wrong("planes", self.planes.to_string(), "at least 1 and at most 65536");
        }
        if !(1..=1 << 16).contains(&self.send_machines) {
            return wrong("send_machines", self.send_machines.to_string(), "at least 1 and at most 65536");
        }
        if self.packet_bytes == 0 {
            return wrong("packet_bytes", "0".to_owned(), "at least 1");
        }
        if self.buffer_bytes < u64::from(self.packet_bytes) {
            return wrong("buffer_bytes", self.buffer_bytes.to_string(), "at least packet_bytes");
        }
        self.gpu.as_ref().map_or(Ok(()), |gpu| gpu.check(origin))?;
        self.nccl.as_ref().map_or(Ok(()), |times| times.check(origin))?;
        self.check_switches(origin)?;
        let topology = self.topology(origin)?;
        self.computing(&*topology).map(|_| ())
    }

    /// Replaces the key `file` of a graph by the lines of that file, if the file is available.
    fn take_in(&mut self, files: &dyn Fn(&str) -> Option<String>) {
        let named = self.topology.get("file").and_then(toml::Value::as_str);
        if let Some(text) = named.and_then(files) {
            self.topology.remove("file");
            self.topology.insert("edges".to_owned(), toml::Value::String(text));
        }
    }

    /// Returns the rate at which one accelerator can send on all links of all working planes, in bytes per nanosecond;
    /// the largest rate if accelerators differ.
    pub fn injection_bytes_per_ns(&self, topology: &dyn Topology) -> f64 {
        self.injection_gbps(topology)[1] / 8.0
    }

    /// Returns the rate of all links of an accelerator on all working planes in Gb/s: the smallest and the largest of
    /// all accelerators.
    pub fn injection_gbps(&self, topology: &dyn Topology) -> [f64; 2] {
        topology.injection().map(|links| self.own_speed().gbps * links * f64::from(self.working_planes()))
    }

    /// Returns the speed of links that state no speed of their own, with the measured rate if the machine has one.
    pub fn own_speed(&self) -> Speed {
        Speed { gbps: self.measured_gbps.unwrap_or(self.link_gbps), latency_ns: self.link_latency_ns }
    }

    /// Returns the speeds to which the indices [`super::Link::speed`] refer, with the machine's own speed instead of
    /// `None`.
    pub fn speeds(&self, plane: &Plane) -> Vec<Speed> {
        plane.speeds().iter().map(|speed| speed.unwrap_or(self.own_speed())).collect()
    }

    /// Returns the rate and the latency of one link of a plane.
    pub fn link_speed(&self, plane: &Plane, link: u32) -> Speed {
        plane.speeds()[usize::from(plane.link(link).speed)].unwrap_or(self.own_speed())
    }

    /// Checks that `nodes`, one for each rank, are distinct accelerators.
    ///
    /// # Errors
    /// Returns an error if an accelerator does not exist, or has two ranks.
    pub fn check_nodes(&self, topology: &dyn Topology, nodes: &[u32]) -> Result<(), MachineError> {
        let mut taken = vec![false; topology.accelerators() as usize];
        for &node in nodes {
            match taken.get_mut(node as usize) {
                None => {
                    let (machine, last) = (self.name.clone(), topology.accelerators() - 1);
                    return Err(MachineError::NoSuchNode { node, machine, last });
                }
                Some(taken) if *taken => return Err(MachineError::SameNode { node, machine: self.name.clone() }),
                Some(taken) => *taken = true,
            }
        }
        Ok(())
    }

    /// Returns the topology of one plane, without failed parts.
    ///
    /// # Errors
    /// Returns an error if the family is unknown, sizes do not fit together, or failures do not exist or cut off
    /// accelerators.
    pub fn topology(&self, origin: &str) -> Result<Box<dyn Topology>, MachineError> {
        let refused = |message: String| MachineError::Failed { machine: origin.to_owned(), message };
        let whole = self.whole_topology(origin)?;
        self.check_planes().map_err(refused)?;
        if self.failed_parts().next().is_none() {
            return Ok(whole);
        }
        let parsed = self.failed_parts().map(|text| {
            text.parse::<Failure>().map_err(|e| refused(format!("'{}' is not a failure; {e}", excerpt(text))))
        });
        let failures = parsed.collect::<Result<Vec<_>, _>>()?;
        Ok(Box::new(degraded(&*whole, &failures, self.own_speed()).map_err(refused)?))
    }

    /// Returns the network as if no part of a plane had failed; failed planes remain.
    #[must_use]
    pub fn before_failures(&self) -> Self {
        let planes = self.failed.iter().filter(|text| is_plane(text));
        Self { failed: planes.cloned().collect(), ..self.clone() }
    }

    /// Returns failures with the numbers of nodes, in place of the names of parts. Names of planes are not changed.
    fn numbered(&self, origin: &str, failed: &[String]) -> Result<Vec<String>, MachineError> {
        let (planes, parts): (Vec<String>, Vec<String>) = failed.iter().cloned().partition(|text| is_plane(text));
        if parts.iter().all(|text| text.parse::<Failure>().is_ok()) {
            return Ok(failed.to_vec());
        }
        let refused = |message| MachineError::Failed { machine: origin.to_owned(), message };
        Ok([planes, numbered(&*self.whole_topology(origin)?, &parts).map_err(refused)?].concat())
    }

    /// Returns the topology of one plane as if nothing had failed.
    ///
    /// # Errors
    /// Returns an error if the family is unknown, or sizes do not fit together.
    pub fn whole_topology(&self, origin: &str) -> Result<Box<dyn Topology>, MachineError> {
        let mut table = self.topology.clone();
        let name = table.remove("name").and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default();
        let Some(family) = FAMILIES.iter().find(|f| f.name == name) else {
            return Err(MachineError::UnknownTopology {
                origin: origin.to_owned(),
                found: name,
                families: FAMILIES.iter().map(|f| f.name).collect::<Vec<_>>().join(", "),
            });
        };
        (family.read)(&table, origin, self.own_speed())
    }
}
