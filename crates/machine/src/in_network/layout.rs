//! Switches, their ports, and the other ends of their links.
//!
//! Switches are numbered as cores: node by node, socket by socket, row-major on the mesh. All nodes have the same
//! ports. In each dimension, the port of a node's own coordinate has no link.

use super::InNetwork;

/// A port of a switch. Links are numbered from 0: those of the mesh first, then sockets, then nodes.
pub type Port = u8;

/// The port to the core's memory. Its number is the largest, so that a chain of switches first reduces the data from
/// earlier switches.
pub const MEMORY: Port = 63;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LevelOf {
    Core,
    Socket,
    /// A link between nodes whose coordinates in the link's dimension differ by `distance`.
    Node {
        distance: u32,
    },
}

/// The switch and the port at the other end of a link, and the link's level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    pub switch: u32,
    pub port: Port,
    pub level: LevelOf,
}

#[derive(Clone, Copy, Debug)]
enum End {
    /// A link to a switch of the same node.
    Local { switch: u32, port: Port, level: LevelOf },
    /// A link to the node that has `coordinate` in dimension `dim`, and the same other coordinates.
    Node { dim: usize, coordinate: u32 },
}

#[derive(Clone, Debug)]
pub struct Layout {
    locals: u32,
    dims: Vec<u32>,
    strides: Vec<u32>,
    /// For each switch of a node, the other end of each of its ports.
    ends: Vec<Vec<End>>,
    /// For each dimension and each coordinate in it, the switch within a node that has the link to that coordinate, and
    /// its port.
    homes: Vec<Vec<(u32, Port)>>,
}

impl Layout {
    pub fn new(machine: &InNetwork) -> Self {
        let (cores, sockets) = (machine.cores_per_socket, machine.sockets_per_node);
        let [rows, cols] = machine.mesh;
        let locals = cores * sockets;
        let mut ends: Vec<Vec<End>> = vec![Vec::new(); locals as usize];
        let mut join = |a: u32, b: u32, level: LevelOf| {
            let (pa, pb) = (port(&ends[a as usize]), port(&ends[b as usize]));
            ends[a as usize].push(End::Local { switch: b, port: pb, level });
            ends[b as usize].push(End::Local { switch: a, port: pa, level });
        };
        for socket in 0..sockets {
            for row in 0..rows {
                for col in 0..cols {
                    let at = socket * cores + row * cols + col;
                    if col + 1 < cols {
                        join(at, at + 1, LevelOf::Core);
                    }
                    if row + 1 < rows {
                        join(at, at + cols, LevelOf::Core);
                    }
                }
            }
        }
        let socket_port = |of: u32, to: u32| of * cores + pick(&machine.socket_ports, to);
        for a in 0..sockets {
            for b in a + 1..sockets {
                join(socket_port(a, b), socket_port(b, a), LevelOf::Socket);
            }
        }
        let mut homes = Vec::new();
        let mut link = 0;
        for (dim, &size) in machine.node_dims.iter().enumerate() {
            let mut of_dim = Vec::with_capacity(size as usize);
            for coordinate in 0..size {
                let at = (link % sockets) * cores + pick(&machine.node_ports, link / sockets);
                of_dim.push((at, port(&ends[at as usize])));
                ends[at as usize].push(End::Node { dim, coordinate });
                link += 1;
            }
            homes.push(of_dim);
        }
        let mut strides = vec![1; machine.node_dims.len()];
        for d in (1..strides.len()).rev() {
            strides[d - 1] = strides[d] * machine.node_dims[d];
        }
        Self { locals, dims: machine.node_dims.clone(), strides, ends, homes }
    }

    /// Returns the number of switches of all nodes, which is the number of cores.
    pub fn switches(&self) -> u32 {
        self.nodes() * self.locals
    }

    pub fn nodes(&self) -> u32 {
        self.dims.iter().product()
    }

    pub fn locals(&self) -> u32 {
        self.locals
    }

    pub fn dims(&self) -> &[u32] {
        &self.dims
    }

    pub fn node_of(&self, switch: u32) -> u32 {
        switch / self.locals
    }

    pub fn local_of(&self, switch: u32) -> u32 {
        switch % self.locals
    }

    pub fn coordinate(&self, node: u32, dim: usize) -> u32 {
        node / self.strides[dim] % self.dims[dim]
    }

    /// Returns the node with the coordinates of `node`, except `coordinate` in dimension `dim`.
    pub fn moved(&self, node: u32, dim: usize, coordinate: u32) -> u32 {
        node - self.coordinate(node, dim) * self.strides[dim] + coordinate * self.strides[dim]
    }

    pub fn node_at(&self, coordinates: &[u32]) -> u32 {
        coordinates.iter().zip(&self.strides).map(|(c, s)| c * s).sum()
    }

    /// Returns the switch within a node that has the link to `coordinate` in dimension `dim`, and the port of that
    /// link.
    pub fn home(&self, dim: usize, coordinate: u32) -> (u32, Port) {
        self.homes[dim][coordinate as usize]
    }

    /// Returns the number of ports of a switch, without the port to the memory. Some ports may have no link.
    pub fn ports(&self, switch: u32) -> Port {
        port(&self.ends[self.local_of(switch) as usize])
    }

    pub fn most_ports(&self) -> usize {
        self.ends.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Returns the other end of a port; `None` for the memory, for a node's own coordinate, and for ports that do not
    /// exist.
    pub fn peer(&self, switch: u32, port: Port) -> Option<Peer> {
        let (node, local) = (self.node_of(switch), self.local_of(switch));
        match *self.ends[local as usize].get(usize::from(port))? {
            End::Local { switch, port, level } => Some(Peer { switch: node * self.locals + switch, port, level }),
            End::Node { dim, coordinate } => {
                let own = self.coordinate(node, dim);
                let (back, port) = self.home(dim, own);
                let there = self.moved(node, dim, coordinate);
                let level = LevelOf::Node { distance: own.abs_diff(coordinate) };
                (own != coordinate).then_some(Peer { switch: there * self.locals + back, port, level })
            }
        }
    }

    /// Returns the level of the link at a port; `None` for the memory and for ports that do not exist. The port of a
    /// node's own coordinate has level `Node` with distance 0, although it has no link.
    pub fn level(&self, switch: u32, port: Port) -> Option<LevelOf> {
        let end = self.ends[self.local_of(switch) as usize].get(usize::from(port))?;
        Some(match *end {
            End::Local { level, .. } => level,
            End::Node { dim, coordinate } => {
                LevelOf::Node { distance: self.coordinate(self.node_of(switch), dim).abs_diff(coordinate) }
            }
        })
    }

    /// Returns the port of a switch that leads to another switch; `None` if no link joins them. Two switches share at
    /// most one link.
    pub fn port_to(&self, from: u32, to: u32) -> Option<Port> {
        self.peers(from).find(|(_, peer)| peer.switch == to).map(|(port, _)| port)
    }

    /// Returns the ports of a switch that have a link, with the other ends.
    pub fn peers(&self, switch: u32) -> impl Iterator<Item = (Port, Peer)> + '_ {
        (0..self.ports(switch)).filter_map(move |port| Some((port, self.peer(switch, port)?)))
    }
}

/// Returns the number of the next port of a switch. Numbers saturate at 255; `InNetwork::check` refuses a machine with
/// more than 60 links at a switch.
fn port(ends: &[End]) -> Port {
    Port::try_from(ends.len()).unwrap_or(Port::MAX)
}

/// Returns entry `at`, modulo the number of entries, of a list of cores. [`InNetwork::check`] ensures that the list is
/// not empty.
fn pick(cores: &[u32], at: u32) -> u32 {
    cores.get(at as usize % cores.len().max(1)).copied().unwrap_or(0)
}
