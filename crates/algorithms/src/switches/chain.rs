//! A chain through every switch, for a scan. A switch reduces the vector from the switch before with the vector of its
//! own core, and sends the result to its memory and to the next switch. Ranks are numbered along the chain, so a scan
//! chooses its own placement.
//!
//! The chain passes through each socket once, over all of its cores, and through each node once, over all of its
//! sockets. A search finds both kinds of paths. On a mesh of 2 x 4 cores, the colors of a checkerboard decide for which
//! ports a path exists:
//!
//! * A path over all cores of a socket has ends of different colors. So the links by which a chain enters and leaves a
//!   socket start at cores of different colors.
//! * Let c(t) be the color of the cores with links to socket t. A chain through sockets s0 to s15 of a node enters
//!   socket sk by a core of color c(s(k-1)), and leaves it by a core of color c(s(k+1)), and these two colors differ.
//!   So c alternates over the even positions of the chain, and over the odd positions. If both links to other nodes are
//!   at cores of color n, then c(s1) and c(s14) differ from n, so that c(s0) = c(s15) = n, and eight of the 16 sockets
//!   have color n.
//! * The link to the node at coordinate y of the first dimension is at socket y. So a line has a chain if c(y) = n for
//!   all its coordinates, which is possible for at most eight coordinates. Each end of the chain allows one exception.
//!
//! A chain that passes a node several times does not help on a line of the presets, where c(t) is 1 for even t, and n
//! is 0. A chain cannot pass a socket twice, because the cores without links to other sockets form a single path.
//! Consider one pass through m sockets of a node. Its first and last sockets have the links to other nodes. Both are
//! even if m modulo 4 is 2, one is even and one odd if it is 3, both are odd if it is 0, and 1 is impossible. So a pass
//! has 2, 1 or 0 even sockets more than odd sockets. A node has as many even sockets as odd sockets, so all its passes
//! begin and end at odd sockets. The link to the node at coordinate y is at socket y. So a node with even y that does
//! not contain an end of the chain can only be joined to nodes that contain an end. A node with an end has few links to
//! nodes with even y, because each link adds to its excess of even sockets. Long lines therefore have no chain.
//!
//! The presets, whose c alternates from socket to socket, have a chain on one node and on two. Machines with c = n for
//! the first eight sockets have a chain on all HyperXs whose dimensions have at most eight coordinates together.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use unisono_collective::Collective;
use unisono_lower::switches::{Configured, ENGINE, Embedding, NONE, Registers};
use unisono_machine::in_network::{Layout, LevelOf, MEMORY, Port};

use super::{Site, grow::TreeSlice};
use crate::{AlgorithmError, ranks::hamilton::gcd};

/// The most sockets that the search for a path over the sockets of a node enters from one start.
const MOST_STEPS: u32 = 10_000;

/// The exclusive limit of the sizes of steps between nodes that are tried.
const MOST_STEP_SIZES: u32 = 5;

/// Returns the registers of a chain over all switches of the machine.
///
/// # Errors
/// Returns an error if some core has no rank, if sockets have more than 16 cores, or if no chain was found.
pub fn chain(site: &Site, c: &Collective, part: TreeSlice) -> Result<Configured, AlgorithmError> {
    let no = |reason: String| AlgorithmError::Unsupported { algorithm: "in-network", reason };
    let layout = &*site.layout;
    if c.ranks != layout.switches() {
        let reason =
            format!("a scan goes through all {} cores, and {} ranks were asked for", layout.switches(), c.ranks);
        return Err(no(reason));
    }
    if site.machine.cores_per_socket > 16 {
        return Err(no("a scan's chain is searched in sockets of up to 16 cores".to_owned()));
    }
    let order = Search::new(site).machine().ok_or_else(|| {
        let reason = "no chain that passes every switch once was found between these ports; the presets have one on \
                a node and on two";
        no(reason.to_owned())
    })?;
    let mut registers = Vec::with_capacity(order.len());
    for (at, &switch) in order.iter().enumerate() {
        let before = at.checked_sub(1).map_or(0, |before| 1_u64 << link(layout, switch, order[before]));
        registers.push((
            switch,
            Registers {
                request_inputs: before | 1 << MEMORY,
                request_output: order.get(at + 1).map_or(NONE, |&next| link(layout, switch, next)),
                response_input: ENGINE,
                response_outputs: 1 << MEMORY,
                operator: Some(c.operator),
                ..Registers::idle(part.identifier)
            },
        ));
    }
    registers.sort_unstable_by_key(|&(switch, _)| switch);
    let embedding = Embedding { identifier: part.identifier, first: part.first, elements: part.elements, registers };
    Ok(Configured { collective: *c, ranks: Arc::new(order), embeddings: vec![embedding] })
}

/// Returns the port of switch `from` that leads to its neighbor `to` on the chain.
fn link(layout: &Layout, from: u32, to: u32) -> Port {
    layout.port_to(from, to).unwrap_or(MEMORY)
}

/// The first and last switch of a path over all switches of a node, as indices in the node; `None` for an end that may
/// be any switch.
type SocketEnds = (Option<u32>, Option<u32>);

struct Search<'a> {
    layout: &'a Layout,
    cores: u32,
    sockets: u32,
    /// The neighbors of each core on the mesh of its socket.
    mesh: Vec<Vec<u32>>,
    /// The core of socket `a` with the link to socket `b`, and the core at the other end.
    joins: FxHashMap<(u32, u32), (u32, u32)>,
    /// The results of searches for a path over all cores of a socket, by its first and last core. `None` if there is no
    /// path.
    over_socket: FxHashMap<(u32, u32), Option<Vec<u32>>>,
    over_node: FxHashMap<SocketEnds, Option<Vec<u32>>>,
    steps: u32,
}

impl<'a> Search<'a> {
    fn new(site: &'a Site) -> Self {
        let layout = &*site.layout;
        let cores = site.machine.cores_per_socket;
        let neighbors = |core: u32, level| {
            layout.peers(core).filter(move |(_, p)| p.level == level).map(|(_, p)| p.switch).collect::<Vec<_>>()
        };
        let mesh = (0..cores).map(|core| neighbors(core, LevelOf::Core)).collect();
        let mut joins = FxHashMap::default();
        for local in 0..layout.locals() {
            for there in neighbors(local, LevelOf::Socket) {
                joins.insert((local / cores, there / cores), (local % cores, there % cores));
            }
        }
        Self {
            layout,
            cores,
            sockets: site.machine.sockets_per_node,
            mesh,
            joins,
            over_socket: FxHashMap::default(),
            over_node: FxHashMap::default(),
            steps: 0,
        }
    }

    /// Returns the switches of the whole machine in the order of the chain. The chain goes back and forth through the
    /// coordinates of a dimension, in steps of one size. Sizes below [`MOST_STEP_SIZES`] are tried until every node has
    /// a path; `None` if no size succeeds.
    fn machine(&mut self) -> Option<Vec<u32>> {
        let most = self.layout.dims().iter().copied().max().unwrap_or(1).clamp(2, MOST_STEP_SIZES);
        (1..most).find_map(|step| self.in_steps(step))
    }

    fn in_steps(&mut self, step: u32) -> Option<Vec<u32>> {
        let layout = self.layout;
        let dims = layout.dims();
        let step = |size: u32| if gcd(step % size.max(1), size) == 1 { step } else { 1 };
        let nodes: Vec<u32> = there_and_back(dims)
            .into_iter()
            .map(|place| {
                let at: Vec<u32> = place.iter().zip(dims).map(|(&p, &size)| p * step(size) % size).collect();
                layout.node_at(&at)
            })
            .collect();
        let between = |a: u32, b: u32| {
            let dim = (0..dims.len()).find(|&d| layout.coordinate(a, d) != layout.coordinate(b, d))?;
            Some(layout.home(dim, layout.coordinate(b, dim)).0)
        };
        let mut order = Vec::with_capacity(layout.switches() as usize);
        for (at, &node) in nodes.iter().enumerate() {
            let entered = at.checked_sub(1).and_then(|before| between(node, nodes[before]));
            let left = nodes.get(at + 1).and_then(|&next| between(node, next));
            let inside = self.node(entered, left)?;
            order.extend(inside.iter().map(|local| node * layout.locals() + local));
        }
        Some(order)
    }

    /// Returns a path over all switches of a node, between the given ends; an end that is `None` may be any switch.
    fn node(&mut self, entered: Option<u32>, left: Option<u32>) -> Option<Vec<u32>> {
        if let Some(known) = self.over_node.get(&(entered, left)) {
            return known.clone();
        }
        let starts: Vec<u32> = entered.map_or_else(|| (0..self.layout.locals()).collect(), |switch| vec![switch]);
        let found = starts.into_iter().find_map(|start| {
            self.steps = 0;
            let mut way = Vec::new();
            let mut seen = vec![false; self.sockets as usize];
            self.sockets_from(start, left, &mut seen, &mut way).then_some(way)
        });
        self.over_node.insert((entered, left), found.clone());
        found
    }

    /// Extends a path from the switch `start` of a socket over all sockets not in `seen`. Returns true if a path was
    /// found.
    fn sockets_from(&mut self, start: u32, left: Option<u32>, seen: &mut Vec<bool>, way: &mut Vec<u32>) -> bool {
        self.steps += 1;
        if self.steps > MOST_STEPS {
            return false;
        }
        let (socket, core) = (start / self.cores, start % self.cores);
        seen[socket as usize] = true;
        let before = way.len();
        let ahead: Vec<u32> = (0..self.sockets).filter(|&s| !seen[s as usize]).collect();
        let last_socket = left.map(|switch| switch / self.cores);
        if ahead.is_empty() {
            let ends: Vec<u32> = left.map_or_else(|| (0..self.cores).collect(), |switch| vec![switch % self.cores]);
            if last_socket.is_none_or(|s| s == socket)
                && let Some(over) = ends.into_iter().find_map(|end| self.socket(core, end))
            {
                way.extend(over.iter().map(|c| socket * self.cores + c));
                return true;
            }
        }
        for &next in &ahead {
            // The socket with the link to the next node must be the last.
            if last_socket == Some(next) && ahead.len() > 1 {
                continue;
            }
            let (exit, entry) = self.joins[&(socket, next)];
            if let Some(over) = self.socket(core, exit) {
                way.extend(over.iter().map(|c| socket * self.cores + c));
                if self.sockets_from(next * self.cores + entry, left, seen, way) {
                    return true;
                }
                way.truncate(before);
            }
        }
        seen[socket as usize] = false;
        false
    }

    fn socket(&mut self, from: u32, to: u32) -> Option<Vec<u32>> {
        if let Some(known) = self.over_socket.get(&(from, to)) {
            return known.clone();
        }
        let mut way = vec![from];
        let found = self.cores_from(to, 1 << from, &mut way).then_some(way);
        self.over_socket.insert((from, to), found.clone());
        found
    }

    fn cores_from(&self, to: u32, seen: u32, way: &mut Vec<u32>) -> bool {
        let at = way[way.len() - 1];
        if way.len() == self.cores as usize {
            return at == to;
        }
        for &next in self.mesh[at as usize].iter().filter(|&&next| seen & 1 << next == 0) {
            way.push(next);
            if self.cores_from(to, seen | 1 << next, way) {
                return true;
            }
            way.pop();
        }
        false
    }
}

/// Returns all coordinates of a grid in an order in which successive ones are neighbors.
fn there_and_back(dims: &[u32]) -> Vec<Vec<u32>> {
    let Some((&size, rest)) = dims.split_first() else { return vec![Vec::new()] };
    let inner = there_and_back(rest);
    let mut all = Vec::with_capacity(inner.len() * size as usize);
    for at in 0..size {
        let mut row: Vec<Vec<u32>> = inner.iter().map(|place| [&[at][..], place].concat()).collect();
        if at % 2 == 1 {
            row.reverse();
        }
        all.append(&mut row);
    }
    all
}
