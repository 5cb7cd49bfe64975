//! Queues and routes of a network.
//!
//! Each direction of a cable is an output port with a rate, a latency and a drop-tail buffer. Switches forward a packet
//! when its head arrives (cut-through). Times are nanoseconds of the caller's clock.
//!
//! A route has only cables that are up, and as few as possible; among routes of equal length the index of the
//! destination selects one. A host drops a packet that it sends itself only if no route exists, not because a buffer is
//! full. Before a host sends the next packet, it waits until [`Network::free_at`], as if the queue of its network card
//! were full.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use crate::Topology;

/// Greatest size of an IP packet in bytes.
pub const MTU: usize = 9000;
/// Bytes that Ethernet adds to a packet: preamble, header, checksum and gap.
pub const FRAMING: usize = 38;

/// One direction of a cable.
#[derive(Clone, Debug)]
pub struct Port {
    /// Node that sends.
    pub from: usize,
    /// Node that receives.
    pub to: usize,
    /// True if the port transfers packets; false while its cable is down.
    pub up: bool,
    /// Bytes of transferred IP packets.
    pub bytes: u64,
    /// Number of transferred packets.
    pub packets: u64,
    /// Number of packets dropped because the buffer was full; at the first port of a node, also because no path was up.
    pub drops: u64,
    /// Greatest number of bytes, with framing, that were waiting or being sent when a packet arrived at the port.
    /// Arrivals of dropped packets do not count.
    pub peak: u64,
    /// Nanoseconds during which the port sent.
    pub busy: i64,
    ns_per_byte: f64,
    latency: i64,
    buffer: u64,
    next_free: i64,
}

impl Port {
    fn wire(&self, bytes: usize) -> i64 {
        (bytes as f64 * self.ns_per_byte) as i64
    }
}

/// A packet in transit to `node`, on its path to the host `to`. Its head arrives at a switch, or its tail at the host,
/// at `when`.
struct Arrival {
    when: i64,
    /// Time at which the tail arrives at `node`.
    tail: i64,
    order: u64,
    node: usize,
    to: usize,
    data: Vec<u8>,
}

impl Ord for Arrival {
    /// Orders the earliest arrival as the greatest, because a heap returns the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.when, other.order).cmp(&(self.when, self.order))
    }
}

impl PartialOrd for Arrival {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Arrival {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Arrival {}

/// Ports of a network, and the packets in transit.
pub struct Network {
    /// Two ports for each cable of the topology, in the order of cables.
    pub ports: Vec<Port>,
    hosts: usize,
    /// Indices of the ports that leave each node.
    leaving: Vec<Vec<usize>>,
    /// For each node and destination, the port that a packet takes; `None` at the destination, or if no path is up.
    routes: Vec<Vec<Option<usize>>>,
    /// Time in nanoseconds from which each host may send its next packet.
    free: Vec<i64>,
    under_way: BinaryHeap<Arrival>,
    order: u64,
    spare: Vec<Vec<u8>>,
}

impl Network {
    /// Builds the network of a topology, with all cables up.
    #[must_use]
    pub fn new(topology: &Topology) -> Self {
        let mut ports = Vec::new();
        let mut leaving = vec![Vec::new(); topology.names.len()];
        for cable in &topology.cables {
            for [from, to] in [cable.ends, [cable.ends[1], cable.ends[0]]] {
                leaving[from].push(ports.len());
                ports.push(Port {
                    from,
                    to,
                    up: true,
                    bytes: 0,
                    packets: 0,
                    drops: 0,
                    peak: 0,
                    busy: 0,
                    ns_per_byte: 8000.0 / cable.mbit,
                    latency: (cable.latency_us * 1000.0) as i64,
                    buffer: cable.buffer,
                    next_free: 0,
                });
            }
        }
        let mut network = Self {
            ports,
            hosts: topology.hosts,
            leaving,
            routes: Vec::new(),
            free: vec![0; topology.hosts],
            under_way: BinaryHeap::new(),
            order: 0,
            spare: Vec::new(),
        };
        network.find_routes();
        network
    }

    /// Takes all cables between two nodes down or up, in both directions, and finds new routes; returns false if no
    /// cable joins the nodes.
    pub fn set_up(&mut self, a: usize, b: usize, up: bool) -> bool {
        let joins = |port: &&mut Port| [port.from, port.to] == [a, b] || [port.from, port.to] == [b, a];
        let found = self.ports.iter_mut().filter(joins).map(|port| port.up = up).count() > 0;
        self.find_routes();
        found
    }

    /// Returns the ports of a packet's path between two hosts, in order; empty if no path is up.
    #[must_use]
    pub fn route(&self, from: usize, to: usize) -> Vec<usize> {
        let mut path = Vec::new();
        let mut node = from;
        while let Some(port) = self.routes[node][to] {
            path.push(port);
            node = self.ports[port].to;
        }
        path
    }

    /// Returns an empty buffer for a packet.
    pub fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Takes back a buffer from [`Network::buffer`].
    pub fn give_back(&mut self, mut data: Vec<u8>) {
        data.clear();
        self.spare.push(data);
    }

    /// Sends an IP packet from one host to another at the time `now`.
    pub fn send(&mut self, from: usize, to: usize, data: Vec<u8>, now: i64) {
        let packet = Arrival { when: now, tail: now, order: 0, node: from, to, data };
        if let Some(port) = self.forward(packet, true) {
            // The send queue of a host with one cable holds two packets. A host with several cables also forwards
            // packets, so its own packets may fill only half of the buffer.
            let port = &self.ports[port];
            let held = if self.leaving[from].len() == 1 { 2 * MTU } else { port.buffer as usize / 2 };
            self.free[from] = self.free[from].max(port.next_free - port.wire(held));
        }
    }

    #[must_use]
    pub fn hosts(&self) -> usize {
        self.hosts
    }

    /// Returns the time from which a host may send its next packet.
    #[must_use]
    pub fn free_at(&self, host: usize) -> i64 {
        self.free[host]
    }

    /// Returns the time of the next arrival; `None` if no packet is in transit.
    #[must_use]
    pub fn next(&self) -> Option<i64> {
        self.under_way.peek().map(|arrival| arrival.when)
    }

    /// Transfers packets up to the time `now`, and calls `receive` for each packet that reaches its host.
    pub fn advance(&mut self, now: i64, mut receive: impl FnMut(usize, &[u8])) {
        while self.next().is_some_and(|when| when <= now) {
            let Some(arrival) = self.under_way.pop() else { break };
            if arrival.node == arrival.to {
                receive(arrival.to, &arrival.data);
                self.give_back(arrival.data);
            } else {
                self.forward(arrival, false);
            }
        }
    }

    /// Puts a packet on the next port to its destination, and returns the port; `None` if the packet is dropped. If
    /// `own` is true, this node sends the packet itself, and the packet is not dropped if the buffer is full.
    fn forward(&mut self, mut packet: Arrival, own: bool) -> Option<usize> {
        let Some(at) = self.routes[packet.node][packet.to] else {
            // No path is up: the drop is counted at the first cable of the node.
            if let Some(&first) = self.leaving[packet.node].first() {
                self.ports[first].drops += 1;
            }
            self.give_back(packet.data);
            return None;
        };
        let port = &mut self.ports[at];
        let start = packet.when.max(port.next_free);
        let waiting = ((start - packet.when) as f64 / port.ns_per_byte) as u64;
        if !own && waiting + packet.data.len() as u64 > port.buffer {
            port.drops += 1;
            self.give_back(packet.data);
            return None;
        }
        let wire = port.wire(packet.data.len() + FRAMING);
        port.peak = port.peak.max(waiting);
        port.next_free = start + wire;
        port.bytes += packet.data.len() as u64;
        port.packets += 1;
        port.busy += wire;
        packet.tail = (start + wire).max(packet.tail) + port.latency;
        packet.when = if port.to == packet.to { packet.tail } else { start + port.latency };
        packet.node = port.to;
        packet.order = self.order;
        self.order += 1;
        self.under_way.push(packet);
        Some(at)
    }

    fn find_routes(&mut self) {
        let nodes = self.leaving.len();
        self.routes = vec![vec![None; self.hosts]; nodes];
        for to in 0..self.hosts {
            let mut distance = vec![usize::MAX; nodes];
            distance[to] = 0;
            let mut reached = VecDeque::from([to]);
            while let Some(node) = reached.pop_front() {
                // Both directions of a cable are up or down together.
                for &port in &self.leaving[node] {
                    let next = self.ports[port].to;
                    if self.ports[port].up && distance[next] == usize::MAX {
                        distance[next] = distance[node] + 1;
                        reached.push_back(next);
                    }
                }
            }
            for node in (0..nodes).filter(|&node| node != to && distance[node] != usize::MAX) {
                let nearer = |&port: &usize| self.ports[port].up && distance[self.ports[port].to] < distance[node];
                let ways: Vec<usize> = self.leaving[node].iter().copied().filter(nearer).collect();
                self.routes[node][to] = Some(ways[to % ways.len()]);
            }
        }
    }
}
