//! A graph from a list of cables.
//!
//! A cable is a line `A B` and then, in any order, its kind `dac`, `aoc` or `board`, its rate `gbps=NUMBER`, the rate
//! that programs reached `measured=NUMBER`, its latency `ns=NUMBER`, and the number of equal cables `count=NUMBER`; `#`
//! begins a comment. Nodes below `accelerators` are accelerators, all others switches. A cable without a kind is copper
//! at an accelerator and optical between switches. A cable without a rate or a latency has the machine's `link_gbps`
//! (or `measured_gbps`) or `link_latency_ns`. Accelerators forward packets. `names` has a name for each node, by which
//! messages and failures name it.
//!
//! Routing: `fastest`, the default, prefers fast cables ([`lengths`]); `shortest` uses all paths with the fewest
//! cables, whatever their speeds. In both, the virtual channel is the number of remaining cables, so it falls with
//! every hop (Günther, 1981, reversed). `up-down` directs every cable towards the root of a breadth-first tree and goes
//! up before down, which needs one virtual channel (Autonet: Schroeder et al., 1991); paths may be longer.
//!
//! With `per_host = R`, nodes below `accelerators` are hosts instead, each with R accelerators (ranks). A rank has one
//! cable to its host with the words of `host`, for messages through memory; the ranks of a host share its other cables.
//! Nodes of the plane are then the ranks, the hosts and the switches, in this order; all have names.

mod edges;
mod lengths;
mod routing;

use std::collections::BTreeSet;

use serde::Deserialize;
use unisono_base::{excerpt, narrow};

use super::super::{
    Bill, BoxNumbers, Cable, Family, GridBefore, MOST_SIMULATED_CHANNELS, NodeName, Plane, PlaneBuilder, Routing,
    Speed, Topology, allocate::JobSpace, cut::Cut, topology,
};
use crate::MachineError;
pub use edges::{Edge, nodes_of, parse, parse_named, text_of_edges};
use lengths::{distances, lengths, levels};

pub const FAMILY: Family = Family {
    name: "graph",
    summary: "any cables, from a list or a file",
    reference: "Günther, 1981; Schroeder et al., Autonet, 1991",
    keys: &["accelerators", "edges", "file", "names", "routing", "root", "per_host", "host"],
    jobs: None,
    read,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    accelerators: u32,
    /// The cables: lines of text, or pairs of nodes.
    edges: Option<Listed>,
    /// The name of a file with the lines of `edges`. A caller that may open files replaces this key by `edges`.
    file: Option<String>,
    /// The names of all nodes, in the order of their numbers.
    names: Option<Vec<String>>,
    #[serde(default)]
    routing: Rule,
    root: Option<u32>,
    /// The number of accelerators of each host.
    per_host: Option<u32>,
    /// The kind, rates and latency of the cable between an accelerator and its host.
    host: Option<String>,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "edges must be pairs of nodes, as in [[0, 8], [1, 8]], or text with a line for each cable, as in '0 8 gbps=900'"
)]
enum Listed {
    Text(String),
    Pairs(Vec<[u32; 2]>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    #[default]
    Fastest,
    Shortest,
    UpDown,
}

/// The rule that routes packets, with the root of `up-down`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    Fastest,
    Shortest,
    /// Over a tree with this root. `None` stands for the first switch, or the first accelerator if there are no
    /// switches.
    UpDown(Option<u32>),
}

#[derive(Clone, PartialEq, Debug)]
pub struct Graph {
    plane: Plane,
    /// The speed of links that state no speed of their own.
    own: Speed,
    way: Way,
    /// The number of cables on a shortest path between the two accelerators that are farthest apart.
    diameter: u32,
    name: &'static str,
    bill: Bill,
    extents: Vec<u32>,
    /// The original number of each accelerator, if an accelerator failed.
    kept: Option<Vec<u32>>,
    /// The grid of all accelerators, if one of them failed.
    before: Option<GridBefore>,
    /// The new number of each original node, if something failed; `None` for nodes that failed or that no accelerator
    /// reaches.
    renumbered: Option<Vec<Option<u32>>>,
    /// The numbering of nodes, if the graph consists of equal boxes.
    boxes: Option<BoxNumbers>,
    /// The names of all nodes, if the machine states them.
    names: Option<Vec<String>>,
}

/// The maximum number of entries of a routing table, which has one for each node and destination.
const MOST_ENTRIES: u64 = 1 << 26;

fn read(table: &toml::Table, origin: &str, own: Speed) -> Result<Box<dyn Topology>, MachineError> {
    let Keys { accelerators, edges, file, names, routing, root, per_host, host } = topology::parse(table, origin)?;
    let refused = |message: String| topology::refused(origin, message);
    let all = topology::accelerators(&[accelerators, per_host.unwrap_or(1)], origin)?;
    let edges = match (edges, file) {
        (Some(Listed::Text(text)), None) => parse(&text).map_err(refused)?,
        (Some(Listed::Pairs(pairs)), None) => pairs.into_iter().map(Edge::of).collect(),
        (None, Some(file)) => return Err(refused(format!("the file '{file}' was not read; list its lines as edges"))),
        _ => return Err(refused("a graph has either edges or a file".to_owned())),
    };
    if let Some(names) = &names {
        check_names(names, nodes_of(&edges, accelerators)).map_err(refused)?;
    }
    let (Some(per_host), Some(host)) = (per_host, &host) else {
        if per_host.is_some() || host.is_some() {
            return Err(refused(
                "per_host is the number of ranks of a host, and host the words of a rank's cable to it, as in host = \
                 \"gbps=400 ns=200\"; give both or none"
                    .to_owned(),
            ));
        }
        let wiring = Wiring { accelerators, edges: &edges, names: names.as_deref(), own, rule: routing, root };
        return Ok(Box::new(Graph { names: names.clone(), ..Graph::wired(&wiring, origin)? }));
    };
    let inside =
        parse(&format!("0 1 {host}")).map_err(|message| topology::refused(&format!("{origin}, host"), message))?;
    let &[inside] = inside.as_slice() else {
        return Err(refused("host has the words of one cable, as in \"gbps=400 ns=200\", on one line".to_owned()));
    };
    let numbers = BoxNumbers { boxes: accelerators, accelerators: per_host, nodes: per_host + 1 };
    let nodes = nodes_of(&edges, accelerators);
    if let Some(root) = root.filter(|&root| root >= nodes) {
        return Err(refused(format!("root is {root}; accepted are the nodes 0 to {} of the cables", nodes - 1)));
    }
    // Without stated names, hosts and switches are named by their numbers in the list of cables, as in a lab of
    // `unisono lab`.
    let by_number = |node: u32| format!("{}{node}", if node < accelerators { 'c' } else { 's' });
    let names = names.unwrap_or_else(|| (0..nodes).map(by_number).collect());
    let names = Some(names_on_hosts(&names, numbers));
    let edges = on_hosts(&edges, inside, numbers);
    let root = root.map(|root| host_or_switch(root, numbers));
    let wiring = Wiring { accelerators: all, edges: &edges, names: names.as_deref(), own, rule: routing, root };
    let graph = Graph { names: names.clone(), ..Graph::wired(&wiring, origin)? };
    Ok(Box::new(graph.of_family(FAMILY.name, vec![accelerators, per_host]).of_boxes(numbers)))
}

/// Returns the names of all nodes: rank k of host `a` is `a.k`.
fn names_on_hosts(names: &[String], numbers: BoxNumbers) -> Vec<String> {
    let hosts = &names[..numbers.boxes as usize];
    let ranks = hosts.iter().flat_map(|host| (0..numbers.accelerators).map(move |rank| format!("{host}.{rank}")));
    ranks.chain(names.iter().cloned()).collect()
}

/// Returns the cables between accelerators and their hosts, which are copies of `inside`, followed by the cables of
/// hosts and switches.
fn on_hosts(edges: &[Edge], inside: Edge, numbers: BoxNumbers) -> Vec<Edge> {
    let BoxNumbers { boxes: hosts, accelerators: per_host, .. } = numbers;
    let ranks = (0..hosts).flat_map(|host| (0..per_host).map(move |rank| (host, rank)));
    let inner = ranks.map(|(host, rank)| Edge {
        a: numbers.place(host, rank),
        b: numbers.place(host, per_host),
        cable: inside.cable.or(Some(Cable::Board)),
        ..inside
    });
    let outer = edges.iter().map(|edge| {
        // A cable of a host is copper, like that of an accelerator, unless its line states the kind.
        let of_host = edge.a.min(edge.b) < hosts;
        let cable = edge.cable.or_else(|| of_host.then_some(Cable::Dac));
        Edge { a: host_or_switch(edge.a, numbers), b: host_or_switch(edge.b, numbers), cable, ..*edge }
    });
    inner.chain(outer).collect()
}

/// Converts the number of a host or switch in the list of cables to its number in the plane, in which accelerators come
/// first.
fn host_or_switch(node: u32, numbers: BoxNumbers) -> u32 {
    match node.checked_sub(numbers.boxes) {
        None => numbers.place(node, numbers.accelerators),
        Some(switch) => numbers.shared(switch),
    }
}

/// # Errors
/// Returns a sentence unless each node has a unique name that begins with a letter.
fn check_names(names: &[String], nodes: u32) -> Result<(), String> {
    if names.len() as u64 != u64::from(nodes) {
        return Err(format!("there are {} names for {nodes} nodes; accepted is one for each node", names.len()));
    }
    let mut known = BTreeSet::new();
    for name in names {
        let is_word = name.starts_with(char::is_alphabetic) && !name.contains(|c: char| c.is_whitespace() || c == '#');
        if !is_word {
            let name = excerpt(name);
            return Err(format!(
                "'{name}' is not a node's name; accepted are words that begin with a letter, without '#'"
            ));
        }
        if !known.insert(name) {
            return Err(format!("two nodes have the name '{}'", excerpt(name)));
        }
    }
    Ok(())
}

/// The cables between numbered nodes. The first nodes are accelerators.
pub struct Wiring<'a> {
    pub accelerators: u32,
    pub edges: &'a [Edge],
    /// The names of nodes in messages; `None` if messages contain their numbers.
    pub names: Option<&'a [String]>,
    /// The speed of cables that state no speed of their own.
    pub own: Speed,
    pub rule: Rule,
    /// The root of the tree of `up-down`.
    pub root: Option<u32>,
}

/// # Errors
/// Returns an error if the routing table would be too large.
pub fn check_size(nodes: u64, accelerators: u32) -> Result<(), String> {
    let entries = nodes * u64::from(accelerators);
    if entries > MOST_ENTRIES {
        return Err(format!(
            "{nodes} nodes and {accelerators} accelerators need {entries} entries of a table; accepted are at most {MOST_ENTRIES}"
        ));
    }
    Ok(())
}

impl Graph {
    /// # Errors
    /// Returns an error if the routing table would be too large, or a node cannot be reached.
    pub fn new(plane: Plane, own: Speed, way: Way) -> Result<Self, String> {
        Self::reaching(plane, own, way, &|node| node.to_string())
    }

    /// Builds a graph as [`Graph::new`] does; errors name nodes by `name`.
    fn reaching(plane: Plane, own: Speed, way: Way, name: &dyn Fn(u32) -> String) -> Result<Self, String> {
        check_size(u64::from(plane.nodes()), plane.accelerators())?;
        let diameter = measure(&plane, name)?;
        let (bill, extents) = (bill(&plane), vec![plane.accelerators()]);
        Ok(Self {
            plane,
            own,
            way,
            diameter,
            name: FAMILY.name,
            bill,
            extents,
            kept: None,
            before: None,
            renumbered: None,
            boxes: None,
            names: None,
        })
    }

    /// Returns the graph as a topology of family `name`, whose accelerators have these extents.
    pub fn of_family(self, name: &'static str, extents: Vec<u32>) -> Self {
        Self { name, extents, ..self }
    }

    /// Returns the graph as equal boxes with this numbering.
    pub fn of_boxes(self, numbers: BoxNumbers) -> Self {
        Self { boxes: Some(numbers), ..self }
    }

    /// Returns the graph as the remainder of `whole` after failures. `kept` has the old numbers of remaining
    /// accelerators, `renumbered` the new numbers of old nodes. The bill includes failed parts. Accelerators keep their
    /// grid if none failed.
    pub fn left_of(self, whole: &dyn Topology, kept: Vec<u32>, renumbered: Vec<Option<u32>>) -> Self {
        let all = kept.len() as u64 == u64::from(whole.accelerators());
        let extents = if all { whole.extents() } else { self.extents };
        let before = (!all).then(|| GridBefore {
            extents: whole.extents(),
            board: whole.boards().map_or([1, 1], |boards| boards.board),
        });
        let (kept, renumbered) = ((!all).then_some(kept), Some(renumbered));
        Self { bill: whole.bill(), extents, kept, before, renumbered, ..self }
    }

    /// # Errors
    /// Returns an error if the cables do not form a graph that can be routed.
    pub fn wired(wiring: &Wiring, origin: &str) -> Result<Self, MachineError> {
        let &Wiring { accelerators, edges, names, own, rule, root } = wiring;
        let name = |node: u32| names.map_or_else(|| node.to_string(), |names| names[node as usize].clone());
        let refused = |message: String| topology::refused(origin, message);
        let highest = edges.iter().map(|e| e.a.max(e.b)).max().unwrap_or(0);
        let nodes = u64::from(highest.max(accelerators - 1)) + 1;
        check_size(nodes, accelerators).map_err(refused)?;
        if let Some(root) = root.filter(|&root| u64::from(root) >= nodes) {
            return Err(refused(format!("root is {root}; accepted are the nodes 0 to {}", nodes - 1)));
        }
        let cables = edges.iter().map(|edge| u64::from(edge.count)).sum();
        let mut plane = PlaneBuilder::new(accelerators, narrow::<u32>(nodes) - accelerators, cables)?;
        for edge in edges {
            if edge.a == edge.b {
                let [a, b] = [edge.a, edge.b].map(name);
                return Err(refused(format!("the cable {a} {b} has both ends at one node")));
            }
            let usual = if edge.a.min(edge.b) < accelerators { Cable::Dac } else { Cable::Aoc };
            let stated = edge.speed(own);
            // A cable that states the machine's own speed is stored like a cable that states no speed.
            let speed = if stated == own { Some(0) } else { plane.speed(stated) };
            let Some(speed) = speed else {
                return Err(refused("the cables have more than 255 speeds beside the machine's own".to_owned()));
            };
            let cable = edge.cable.unwrap_or(usual);
            (0..edge.count).for_each(|_| plane.cable_at(edge.a, edge.b, cable, speed));
        }
        let way = match rule {
            Rule::Fastest => Way::Fastest,
            Rule::Shortest => Way::Shortest,
            Rule::UpDown => Way::UpDown(root),
        };
        let graph = Graph::reaching(plane.finish()?, own, way, &name).map_err(refused)?;
        let longest = graph.longest();
        if longest > u32::from(u8::MAX) {
            return Err(refused(format!(
                "the longest of the ways that packets take has {longest} cables, each with a virtual channel of its own; \
                 accepted are at most {}: use routing = \"up-down\"",
                u8::MAX
            )));
        }
        Ok(graph)
    }

    /// Returns the number of cables of the longest path that packets take; 0 for routing with one virtual channel. If
    /// the rule is `fastest` and there are at most [`MOST_SIMULATED_CHANNELS`] nodes, returns the diameter, although
    /// paths may be longer.
    pub fn longest(&self) -> u32 {
        // A path does not visit a node twice.
        let is_short = self.plane.nodes() <= u32::from(MOST_SIMULATED_CHANNELS);
        match self.way {
            Way::UpDown(_) => 0,
            Way::Fastest if !is_short => {
                let lengths = self.lengths();
                let farthest =
                    |to| distances(&self.plane, lengths.as_deref(), to).into_iter().map(|(_, links)| links).max();
                (0..self.plane.accelerators()).filter_map(farthest).max().unwrap_or(0)
            }
            Way::Fastest | Way::Shortest => self.diameter,
        }
    }

    pub fn routed(self, way: Way) -> Self {
        Self { way, ..self }
    }

    /// Returns the total rate of a node's links, relative to the machine's own rate of one link.
    fn rate(&self, node: u32) -> f64 {
        let mut links = vec![0_u32; self.plane.speeds().len()];
        self.plane.leaving(node).for_each(|id| links[usize::from(self.plane.link(id).speed)] += 1);
        let rate = |speed: &Option<Speed>| speed.map_or(1.0, |speed| speed.gbps / self.own.gbps);
        links.iter().zip(self.plane.speeds()).map(|(&links, speed)| f64::from(links) * rate(speed)).sum()
    }

    fn root(&self, root: Option<u32>) -> u32 {
        root.unwrap_or(if self.plane.switches() > 0 { self.plane.accelerators() } else { 0 })
    }
}

/// Returns the diameter, in cables between accelerators.
///
/// # Errors
/// Returns an error if a node cannot be reached.
fn measure(plane: &Plane, name: &dyn Fn(u32) -> String) -> Result<u32, String> {
    let mut most = 0;
    for to in 0..plane.accelerators() {
        let levels = levels(plane, to);
        if let Some(node) = levels.iter().position(|&d| d == u32::MAX) {
            let (node, to) = (name(narrow(node)), name(to));
            return Err(format!("node {node} is not connected with node {to}; every node needs a way to every other"));
        }
        most = levels[..plane.accelerators() as usize].iter().copied().fold(most, u32::max);
    }
    Ok(most)
}

fn bill(plane: &Plane) -> Bill {
    let cables = |kind| plane.links().iter().filter(|link| link.cable == kind).count() as u64 / 2;
    let switches = plane.accelerators()..plane.nodes();
    Bill {
        switches: u64::from(plane.switches()),
        dac: cables(Cable::Dac),
        aoc: cables(Cable::Aoc),
        switch_ports: switches.map(|node| narrow(plane.leaving(node).len())).max().unwrap_or(0),
        ..Bill::default()
    }
}

impl Topology for Graph {
    fn name(&self) -> &'static str {
        self.name
    }

    fn accelerators(&self) -> u32 {
        self.plane.accelerators()
    }

    fn ports(&self) -> u32 {
        (0..self.plane.accelerators()).map(|node| narrow(self.plane.leaving(node).len())).max().unwrap_or(0)
    }

    fn injection(&self) -> [f64; 2] {
        let rates = || (0..self.plane.accelerators()).map(|node| self.rate(node));
        [rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max)]
    }

    fn unlike(&self) -> Vec<(Speed, u64)> {
        let mut links = vec![0_u64; self.plane.speeds().len()];
        self.plane.links().iter().for_each(|link| links[usize::from(link.speed)] += 1);
        let speeds = self.plane.speeds().iter().zip(links);
        speeds.filter_map(|(speed, links)| Some(((*speed)?, links / 2))).collect()
    }

    fn bill(&self) -> Bill {
        self.bill
    }

    fn diameter(&self) -> u32 {
        self.diameter
    }

    fn halves(&self) -> Option<Cut> {
        None
    }

    fn extents(&self) -> Vec<u32> {
        self.extents.clone()
    }

    fn kept(&self) -> Option<&[u32]> {
        self.kept.as_deref()
    }

    fn grid_before(&self) -> Option<&GridBefore> {
        self.before.as_ref()
    }

    fn renumbered(&self) -> Option<&[Option<u32>]> {
        self.renumbered.as_deref()
    }

    fn numbers_of_boxes(&self) -> Option<BoxNumbers> {
        self.boxes
    }

    /// Returns a job space with boxes as blocks; `None` without boxes.
    fn jobs(&self) -> Option<JobSpace> {
        self.boxes.map(|of| JobSpace::of_blocks(self.accelerators(), vec![of.accelerators], of.accelerators))
    }

    /// Returns the stated name, if there are names. In a box, nodes with a cable to a shared switch are named rails,
    /// and all other nodes switches.
    fn node_name(&self, node: u32) -> NodeName {
        let role = if node < self.accelerators() { "accelerator" } else { "switch" };
        if let Some(names) = &self.names {
            let name = NodeName { own: names[node as usize].clone(), ..NodeName::new(role, &[node]) };
            // The larger part of a rank, and of a host, is the host.
            let host = self.boxes.and_then(|of| Some(of.place(of.place_of(node).0?, of.accelerators)));
            return match host {
                Some(host) => name.within(names[host as usize].clone()),
                None => name,
            };
        }
        let Some(boxes) = self.boxes else { return NodeName::new(role, &[node]) };
        let (Some(of), at) = boxes.place_of(node) else {
            return NodeName::new("shared switch", &[boxes.place_of(node).1]);
        };
        let name = |role, at: u32| NodeName::new(role, &[at]).of(format!("box {of}"));
        if node < self.accelerators() {
            return name(role, at);
        }
        let leads_out = |node: u32| self.plane.leaving(node).any(|id| self.plane.link(id).to >= boxes.shared(0));
        let before = (node - at..node).filter(|&other| leads_out(other)).count();
        if leads_out(node) { name("rail", narrow(before)) } else { name("switch", at - narrow::<u32>(before)) }
    }

    fn stated_names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }

    fn tree_root(&self) -> Option<u32> {
        match self.way {
            Way::Fastest | Way::Shortest => None,
            Way::UpDown(root) => Some(self.root(root)),
        }
    }

    fn lengths(&self) -> Option<Vec<u64>> {
        (self.way == Way::Fastest).then(|| lengths(&self.plane, self.own))
    }

    fn plane(&self) -> Result<Plane, MachineError> {
        Ok(self.plane.clone())
    }

    fn routing(&self) -> Box<dyn Routing> {
        let table = |name| Box::new(routing::Table::shortest(name, &self.plane, self.lengths().as_deref()));
        match self.way {
            Way::Fastest => table("fastest ways"),
            Way::Shortest => table("shortest ways"),
            Way::UpDown(root) => Box::new(routing::Table::up_down(&self.plane, self.root(root))),
        }
    }
}
