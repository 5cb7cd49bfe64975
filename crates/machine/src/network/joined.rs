//! Joins several boxes like the one that a machine file describes.
//!
//! The key `cluster` of a box names a preset that joins boxes like it. The cluster has the cables, the switches, the
//! rates and all other values of the box. The network interfaces, the uplinks and the switches outside of the boxes are
//! those of the preset.

use std::fmt::Write;

use unisono_base::narrow;

use super::{
    BoxNumbers, Network, SwitchClass,
    catalog::{Edge, nodes_of, parse, text_of_edges},
};
use crate::{Machine, MachineError, PRESETS};

/// The cables of one box as text, and its numbers of accelerators and of nodes.
struct Parts {
    accelerators: u32,
    inside: String,
    /// The number of nodes that the cables name, including the accelerators.
    nodes: u32,
}

impl Network {
    /// Returns a network of `boxes` boxes, each equal to a box of this network, which may be a single box.
    ///
    /// # Errors
    /// Returns an error if `boxes` is 0, if the machine does not state how boxes are joined, or if it states failures
    /// and has another number of boxes, because nodes would have other numbers.
    pub(super) fn of_boxes(&self, boxes: u32) -> Result<Self, MachineError> {
        if boxes == 0 {
            return Err(MachineError::Nodes { machine: self.name.clone(), found: boxes, most: u32::MAX });
        }
        let present = self.topology.get("boxes").and_then(toml::Value::as_integer);
        if present.is_none() && self.cluster.is_none() {
            return Err(MachineError::NoBoxes { machine: self.name.clone() });
        }
        if present.unwrap_or(1) == i64::from(boxes) {
            return Ok(self.clone());
        }
        if !self.failed.is_empty() {
            let message = format!(
                "it states failures ({}) by the numbers of its nodes, and nodes of {boxes} boxes have other numbers; state \
                 what failed in the machine with {boxes} boxes instead",
                self.failed.join(", ")
            );
            return Err(MachineError::Failed { machine: self.name.clone(), message });
        }
        let made = if present.is_some() {
            let mut made = self.clone();
            made.topology.insert("boxes".to_owned(), toml::Value::Integer(boxes.into()));
            made
        } else {
            self.joined(boxes)?
        };
        made.check(&self.name)?;
        Ok(made)
    }

    fn joined(&self, boxes: u32) -> Result<Self, MachineError> {
        let none = || MachineError::NoBoxes { machine: self.name.clone() };
        let cluster = self.cluster.as_deref().ok_or_else(none)?;
        let preset = Machine::preset(cluster)?;
        let of = preset.get::<Self>().filter(|of| of.topology.contains_key("boxes")).ok_or_else(none)?;
        // The preset of a single box, compared with the cluster, shows which nodes inside a box of the cluster belong
        // to a single box too.
        let joins = |preset: &crate::Preset| {
            Machine::preset(preset.name)
                .ok()?
                .get::<Self>()
                .filter(|one| one.cluster.as_deref() == Some(cluster))
                .cloned()
        };
        let first = PRESETS.iter().filter(|preset| preset.toml.contains(cluster)).find_map(joins).ok_or_else(none)?;
        let (own, first) = (self.alone()?, first.alone()?);
        if own.accelerators != first.accelerators {
            let message = format!(
                "{cluster} joins boxes of {} accelerators, and this one has {}; describe all boxes by a topology of name \
                 boxes",
                first.accelerators, own.accelerators
            );
            return Err(MachineError::Toml { origin: self.name.clone(), message });
        }
        let edges = |key: &str| parse(of.topology.get(key).and_then(toml::Value::as_str).unwrap_or_default());
        let refused = |message| MachineError::Toml { origin: cluster.to_owned(), message };
        let place = |node: u32| if node < first.nodes { node } else { node - first.nodes + own.nodes };
        let mut inside = own.inside;
        for edge in edges("inside").map_err(refused)?.iter().filter(|edge| edge.a.max(edge.b) >= first.nodes) {
            let _ = writeln!(inside, "{}", Edge { a: place(edge.a), b: place(edge.b), ..*edge });
        }
        let mut uplinks = String::new();
        for edge in edges("uplinks").map_err(refused)? {
            let _ = writeln!(uplinks, "{}", Edge { a: place(edge.a), ..edge });
        }
        let mut topology = toml::Table::new();
        topology.insert("name".to_owned(), "boxes".into());
        topology.insert("boxes".to_owned(), i64::from(boxes).into());
        topology.insert("accelerators".to_owned(), i64::from(own.accelerators).into());
        topology.insert("inside".to_owned(), inside.into());
        topology.insert("uplinks".to_owned(), uplinks.into());
        topology.extend(of.topology.get("outside").map(|outside| ("outside".to_owned(), outside.clone())));
        topology.extend(self.topology.get("routing").map(|routing| ("routing".to_owned(), routing.clone())));
        if let Some(root) = self.topology.get("root").and_then(toml::Value::as_integer) {
            // The node numbers inside box 0 do not depend on the network interfaces, which have the last numbers of a
            // box.
            let numbers = BoxNumbers { boxes, accelerators: own.accelerators, nodes: own.nodes };
            topology.insert("root".to_owned(), i64::from(numbers.place(0, narrow(root))).into());
        }
        let inside = |class: &SwitchClass| SwitchClass {
            inside: if class.nodes.is_empty() { (own.accelerators..own.nodes).collect() } else { class.nodes.clone() },
            nodes: Vec::new(),
            ..class.clone()
        };
        // A class of switches is empty if the box has no switches.
        let of_box = self.switches.iter().map(inside).filter(|class| !class.inside.is_empty());
        let outside = of.switches.iter().filter(|class| !class.outside.is_empty());
        let outside = outside.map(|class| SwitchClass { inside: Vec::new(), ..class.clone() });
        let switches = of_box.chain(outside).collect();
        Ok(Self { cluster: None, topology, switches, ..self.clone() })
    }

    /// Returns the cables of this box, whose topology must be a graph.
    fn alone(&self) -> Result<Parts, MachineError> {
        let family = self.topology.get("name").and_then(toml::Value::as_str).unwrap_or_default();
        let refused = |message| MachineError::Toml { origin: self.name.clone(), message };
        let Some(inside) = text_of_edges(&self.topology).filter(|_| family == "graph") else {
            return Err(refused(format!(
                "boxes are joined where one is a graph, and the topology is {family}; describe all boxes by a topology of \
                 name boxes"
            )));
        };
        let accelerators = self.whole_topology(&self.name)?.accelerators();
        let nodes = nodes_of(&parse(&inside).map_err(refused)?, accelerators);
        Ok(Parts { accelerators, inside, nodes })
    }
}
