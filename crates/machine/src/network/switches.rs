//! Reduction and copies in a network's switches: which switches reduce or copy messages, and how fast.
//!
//! A switch without an entry forwards each message to one node. A switch that multicasts copies a message to several
//! nodes. A switch that reduces combines messages of several nodes, for the operators and datatypes of its entry. The
//! machine files state the sources of the numbers.

use serde::{Deserialize, Serialize};

use super::{Network, Topology, description::RATES_GBPS};
use crate::MachineError;

/// The accepted operators. `ordered` is not accepted, because trees of switches do not preserve the order of operands.
const OPERATORS: [&str; 7] = ["sum", "prod", "min", "max", "and", "or", "xor"];

const DTYPES: [&str; 7] = ["f32", "f64", "f16", "bf16", "i16", "i32", "i64"];

/// The maximum number of entries `[[switches]]` of a machine file.
const MOST_CLASSES: usize = 255;

/// The largest latency, 17 minutes, so that times of simulations stay in range.
const MOST_LATENCY_NS: f64 = 1e12;

fn one() -> u8 {
    1
}

/// Switches of a network with the same operations: an entry `[[switches]]` of a machine file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchClass {
    /// The switches, as node numbers of the complete plane. An entry that lists no switch applies to all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<u32>,
    /// For a topology of boxes: node numbers within each box.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inside: Vec<u32>,
    /// For a topology of boxes: indices of shared switches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<u32>,
    /// True if the switches copy a message to several nodes.
    #[serde(default)]
    pub multicast: bool,
    /// The operators with which the switches reduce; empty if they do not reduce.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operators: Vec<String>,
    /// The datatypes that the switches reduce; empty for every datatype.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dtypes: Vec<String>,
    /// The number of reductions that one switch computes concurrently.
    #[serde(default = "one")]
    pub engines: u8,
    /// The rate at which one engine computes results; by default only the rates of links limit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduce_gbps: Option<f64>,
    /// The time from the last operand of a message until its result, or its copies, can leave.
    #[serde(default)]
    pub latency_ns: f64,
    /// True if a node requests a sum from the switch and then stores the sum to all nodes. The sum then crosses that
    /// node's link once more in each direction, and one more signal is needed, which reports that all operands can be
    /// read. Each of n nodes does so with 1/n of the vector (`multimem.ld_reduce` and `multimem.st` of PTX).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pulls: bool,
    /// The fraction of the links' rate that reductions and copies reached; by default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_share: Option<f64>,
}

impl SwitchClass {
    /// Returns whether the switches reduce elements of a datatype with an operator.
    pub fn reduces(&self, operator: &str, dtype: &str) -> bool {
        let listed = |list: &[String], name: &str| list.iter().any(|one| one == name);
        listed(&self.operators, operator) && (self.dtypes.is_empty() || listed(&self.dtypes, dtype))
    }

    fn check(&self, origin: &str) -> Result<(), MachineError> {
        let wrong =
            |key, found: String, accepted| Err(MachineError::Value { origin: origin.to_owned(), key, found, accepted });
        if let Some(found) = self.operators.iter().find(|name| !OPERATORS.contains(&name.as_str())) {
            return wrong("switches.operators", format!("'{found}'"), "sum, prod, min, max, and, or, xor");
        }
        if let Some(found) = self.dtypes.iter().find(|name| !DTYPES.contains(&name.as_str())) {
            return wrong("switches.dtypes", format!("'{found}'"), "f32, f64, f16, bf16, i16, i32, i64");
        }
        if self.engines == 0 {
            return wrong("switches.engines", "0".to_owned(), "1 to 255");
        }
        if let Some(found) = self.reduce_gbps.filter(|rate| !RATES_GBPS.contains(rate)) {
            return wrong("switches.reduce_gbps", format!("{found:?}"), "a number above 0, from 1e-9 to 1e15");
        }
        if let Some(found) = self.measured_share.filter(|share| !(1e-3..=1.0).contains(share)) {
            return wrong("switches.measured_share", format!("{found:?}"), "a number from 0.001 to 1");
        }
        if !(0.0..=MOST_LATENCY_NS).contains(&self.latency_ns) {
            return wrong("switches.latency_ns", format!("{:?}", self.latency_ns), "a number from 0 to 1e12");
        }
        Ok(())
    }

    fn lists_none(&self) -> bool {
        self.nodes.is_empty() && self.inside.is_empty() && self.outside.is_empty()
    }
}

/// A class whose switches only forward.
impl Default for SwitchClass {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            inside: Vec::new(),
            outside: Vec::new(),
            multicast: false,
            operators: Vec::new(),
            dtypes: Vec::new(),
            engines: one(),
            reduce_gbps: None,
            latency_ns: 0.0,
            pulls: false,
            measured_share: None,
        }
    }
}

/// The classes of all switches of a plane.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Switches {
    classes: Vec<SwitchClass>,
    /// For each switch, the index of its class plus one, or 0 if it only forwards.
    of: Vec<u8>,
    accelerators: u32,
}

impl Switches {
    /// Returns whether no switch has a class, so that all switches only forward.
    pub fn are_plain(&self) -> bool {
        self.of.iter().all(|&class| class == 0)
    }

    /// Returns the number of accelerators, which come before the switches; 0 if the machine has no entries
    /// `[[switches]]`.
    pub fn accelerators(&self) -> u32 {
        self.accelerators
    }

    /// Returns the class of a node of the plane; `None` for accelerators and for switches without a class, which only
    /// forward.
    pub fn class(&self, node: u32) -> Option<&SwitchClass> {
        let at = *self.of.get(node.checked_sub(self.accelerators)? as usize)?;
        Some(&self.classes[usize::from(at.checked_sub(1)?)])
    }

    /// Returns the time from the last operand of a message at a switch until its result can leave; 0 if it only
    /// forwards.
    pub fn latency_ns(&self, node: u32) -> f64 {
        self.class(node).map_or(0.0, |class| class.latency_ns)
    }

    /// Returns whether an accelerator requests the sum of `operands` messages from the switch `node` and then stores it
    /// to `sinks` nodes. A sum that only one node needs is not stored.
    pub fn is_stored(&self, node: u32, operands: usize, sinks: usize) -> bool {
        operands > 1 && sinks > 1 && self.class(node).is_some_and(|class| class.pulls)
    }

    /// Returns the time of one engine of a switch for each byte of a result in its plane; 0 if `reduce_gbps` is not
    /// stated.
    pub fn reduce_ns_per_byte(&self, node: u32) -> f64 {
        self.class(node).and_then(|class| class.reduce_gbps).map_or(0.0, |gbps| 8.0 / gbps)
    }

    /// Returns the bytes that cross a link to a node, and a link from it, for a byte of a message that the node reduces
    /// from `operands` nodes and sends to `sinks` nodes, divided by the `measured_share` of its class; 1 if it only
    /// forwards.
    ///
    /// If accelerators pull, the switch also reads from the accelerator that requests a sum, and also stores to the
    /// accelerator that stores a value. So this accelerator sends its operand and receives its value over its link,
    /// too, even if the schedule has no message for it (`is_apart`). Accelerators take turns, so each link has an equal
    /// part of these bytes.
    pub fn crossings(&self, node: u32, operands: usize, sinks: usize, is_apart: bool) -> [f64; 2] {
        let Some(class) = self.class(node) else { return [1.0; 2] };
        let own = match (operands, sinks) {
            _ if self.is_stored(node, operands, sinks) => [1.0 / operands as f64; 2],
            (2.., 1) if class.pulls && is_apart => [1.0 / operands as f64, 0.0],
            (1, 2..) if class.pulls && is_apart => [0.0, 1.0 / sinks as f64],
            _ => [0.0; 2],
        };
        own.map(|own| (1.0 + own) / class.measured_share.unwrap_or(1.0))
    }

    /// Returns the number of reductions that a switch computes concurrently.
    pub fn engines(&self, node: u32) -> u8 {
        self.class(node).map_or(1, |class| class.engines)
    }
}

impl Network {
    /// Checks the properties of entries `[[switches]]` that do not depend on the topology.
    pub(super) fn check_switches(&self, origin: &str) -> Result<(), MachineError> {
        if self.switches.len() > MOST_CLASSES {
            let (origin, found) = (origin.to_owned(), format!("a list of {} entries", self.switches.len()));
            return Err(MachineError::Value { origin, key: "switches", found, accepted: "at most 255 entries" });
        }
        self.switches.iter().try_for_each(|class| class.check(origin))
    }

    /// Returns the classes of the switches of a topology of this network. If several entries list a switch, the last
    /// entry applies.
    ///
    /// # Errors
    /// Returns an error if an entry lists a node that is not a switch.
    pub fn computing(&self, topology: &dyn Topology) -> Result<Switches, MachineError> {
        if self.switches.is_empty() {
            return Ok(Switches::default());
        }
        let whole = self.whole_topology(&self.name)?;
        let (accelerators, nodes) = (whole.accelerators(), whole.plane()?.nodes());
        let mut of = vec![0_u8; (nodes - accelerators) as usize];
        for (class, number) in self.switches.iter().zip(1..) {
            if class.lists_none() {
                of.fill(number);
            }
            for node in self.listed(class, &*whole, nodes)? {
                let at = node.checked_sub(accelerators).map(|at| at as usize);
                let Some(of) = at.and_then(|at| of.get_mut(at)) else {
                    let message = format!(
                        "an entry of switches lists node {node}; accepted are the switches {accelerators} to {}, by \
                         their numbers in the plane, where the {accelerators} accelerators come first",
                        nodes.saturating_sub(1)
                    );
                    return Err(MachineError::Toml { origin: self.name.clone(), message });
                };
                *of = number;
            }
        }
        let of = match topology.renumbered() {
            None => of,
            Some(renumbered) => {
                let left = renumbered[accelerators as usize..].iter().zip(of);
                left.filter(|(new, _)| new.is_some()).map(|(_, of)| of).collect()
            }
        };
        Ok(Switches { classes: self.switches.clone(), of, accelerators: topology.accelerators() })
    }

    /// Returns the nodes of the plane that an entry lists.
    fn listed(&self, class: &SwitchClass, whole: &dyn Topology, count: u32) -> Result<Vec<u32>, MachineError> {
        let mut nodes = class.nodes.clone();
        if class.inside.is_empty() && class.outside.is_empty() {
            return Ok(nodes);
        }
        let Some(boxes) = whole.numbers_of_boxes() else {
            let message =
                format!("switches inside and outside are those of boxes; the topology is {}: list nodes", whole.name());
            return Err(MachineError::Toml { origin: self.name.clone(), message });
        };
        let wrong = |at: &&u32| **at < boxes.accelerators || **at >= boxes.nodes;
        if let Some(found) = class.inside.iter().find(wrong) {
            let (first, last) = (boxes.accelerators, boxes.nodes - 1);
            let message = format!(
                "an entry of switches lists node {found} inside a box; accepted are its switches {first} to {last}"
            );
            return Err(MachineError::Toml { origin: self.name.clone(), message });
        }
        let shared = count.saturating_sub(boxes.shared(0));
        if let Some(found) = class.outside.iter().find(|at| **at >= shared) {
            let message = match shared.checked_sub(1) {
                Some(last) => format!(
                    "an entry of switches lists shared switch {found} outside the boxes; accepted are 0 to {last}"
                ),
                None => format!("an entry of switches lists shared switch {found}; the boxes share no switch"),
            };
            return Err(MachineError::Toml { origin: self.name.clone(), message });
        }
        nodes.extend((0..boxes.boxes).flat_map(|of| class.inside.iter().map(move |&at| boxes.place(of, at))));
        nodes.extend(class.outside.iter().map(|&at| boxes.shared(at)));
        Ok(nodes)
    }
}
