//! Small networks and traffic for the tests.

use unisono_lower::tasks::{Builder, Task, TaskGraph};
use unisono_machine::{Machine, network::Network};
use unisono_sim::network::{Interconnect, Options, Run, run};

/// Small instances of every family of topologies, as tables of a machine file.
pub const TOPOLOGIES: &[&str] = &[
    "name = 'torus'\ndims = [5]",
    "name = 'torus'\ndims = [3, 4]",
    "name = 'torus'\ndims = [3, 3, 3]",
    "name = 'hxmesh'\nboard = [2, 2]\nboards = [2, 3]",
    "name = 'hxmesh'\nboard = [1, 1]\nboards = [4, 4]",
    "name = 'hxmesh'\nboard = [3, 4]\nboards = [2, 1]",
    "name = 'hxmesh'\nboard = [1, 2]\nboards = [1, 34]",
    "name = 'dragonfly'\np = 2\na = 4\nh = 2\ng = 5",
    "name = 'fattree'\naccelerators = 30\nlevels = 2\ndown = 4\nup = 3\ntop = 8",
    "name = 'graph'\naccelerators = 5\nedges = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]]",
    UNLIKE,
    "name = 'boxes'\nboxes = 2\naccelerators = 3\ninside = '''\n0 3\n1 3\n2 3\n'''\nuplinks = '3 0 count=3'",
    "name = 'hypercube'\ndimensions = 4",
    "name = 'hyperx'\ndims = [3, 3]",
    "name = 'mesh'\ndims = [3, 4]",
];

/// Two boxes of three accelerators on a fast switch, and links of other speeds between the boxes.
pub const UNLIKE: &str = "name = 'graph'\naccelerators = 6\nedges = '''\n0 6 gbps=1600 ns=10\n1 6 gbps=1600 ns=10\n\
    2 6 gbps=1600 ns=10\n3 7 gbps=1600 ns=10\n4 7 gbps=1600 ns=10\n5 7 gbps=1600 ns=10\n6 7 gbps=200 ns=250 count=2\n\
    6 7\n0 1 gbps=100\n'''";

/// A network whose sources choose routes at random.
pub const VALIANT: &str = "name = 'dragonfly'\np = 2\na = 4\nh = 2\ng = 5\nrouting = 'valiant'";

/// A network whose packets choose between the direct path and a random one.
pub const ADAPTIVE: &str = "name = 'dragonfly'\np = 2\na = 4\nh = 2\ng = 5\nrouting = 'adaptive'";

/// Returns a network of one plane of 400 Gb/s links, 80 ns a hop, packets of 1000 bytes (20 ns); no host overhead.
pub fn network(topology: &str) -> Network {
    let text = format!(
        "name = 'test'\nkind = 'network'\nplanes = 1\nlink_gbps = 400\nlink_latency_ns = 40\ninput_latency_ns = 20\n\
         output_latency_ns = 20\npacket_bytes = 1000\nbuffer_bytes = 100000\n[topology]\n{topology}\n"
    );
    let machine = Machine::from_toml(&text, "test").unwrap_or_else(|e| panic!("{topology}: {e}"));
    machine.get::<Network>().unwrap().clone()
}

pub fn interconnect(topology: &str) -> Interconnect {
    Interconnect::new(&network(topology)).unwrap()
}

/// Returns a graph in which all messages `(from, to, bytes)` are sent at once, in this order.
pub fn traffic(ranks: u32, messages: &[(u32, u32, u64)]) -> TaskGraph {
    let mut b = Builder::new();
    for rank in 0..ranks {
        b.rank();
        for (tag, &(from, to, bytes)) in messages.iter().enumerate() {
            if from == rank {
                b.task(Task::send(to, bytes, tag as u32));
            }
            if to == rank {
                b.task(Task::receive(from, bytes, tag as u32));
            }
        }
    }
    b.finish().unwrap()
}

pub fn simulate(interconnect: &Interconnect, messages: &[(u32, u32, u64)]) -> Run {
    let graph = traffic(interconnect.plane.accelerators(), messages);
    run(&graph, interconnect, &Options::default()).unwrap()
}
