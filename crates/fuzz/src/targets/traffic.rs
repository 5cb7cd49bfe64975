//! Traffic on a small network, packet by packet and as flows.

use unisono_lower::tasks::pattern;
use unisono_machine::{Machine, network::Network};
use unisono_sim::network::{self, Interconnect, Options, flow};

use crate::{Draws, Form, FuzzTarget};

pub const TARGET: FuzzTarget = FuzzTarget::new(
    "traffic",
    "draws a topology, its numbers and a pattern; packets and flows end, or are refused",
    run,
)
.form(Form::Draws);

/// A network of 16 accelerators. Inputs may replace its topology.
pub const SMALL: &str = r#"name = "small"
kind = "network"
planes = 2
link_gbps = 400
link_latency_ns = 40
input_latency_ns = 20
output_latency_ns = 20
packet_bytes = 64
buffer_bytes = 1024
[topology]
name = "hxmesh"
board = [2, 2]
boards = [2, 2]
"#;

const TOPOLOGIES: &[&str] = &[
    "name = \"hxmesh\"\nboard = [2, 2]\nboards = [2, 2]\n",
    "name = \"torus\"\ndims = [4, 4]\n",
    "name = \"mesh\"\ndims = [3, 1, 4]\n",
    "name = \"hypercube\"\ndimensions = 4\n",
    "name = \"hyperx\"\ndims = [3, 4]\nterminals = 2\n",
    "name = \"dragonfly\"\np = 2\na = 4\nh = 2\ng = 3\n",
    "name = \"fattree\"\naccelerators = 16\nlevels = 2\ndown = 4\nup = 4\n",
    "name = \"graph\"\naccelerators = 3\nedges = [[0, 1], [1, 2], [2, 0]]\n",
    "name = \"graph\"\naccelerators = 3\nedges = \"\"\"\n0 3 gbps=1e-9\n1 3 gbps=1e15 ns=0\n2 3 ns=1e300\n0 1 gbps=7 count=3\n\"\"\"\n",
    "name = \"graph\"\naccelerators = 4\nedges = \"\"\"\n0 4 gbps=1600\n1 4 gbps=1600\n2 5 gbps=100 ns=5\n3 5 gbps=33.3\n\
     4 5 count=2\n4 5 gbps=50 ns=700\n\"\"\"\n",
];

fn run(input: &[u8]) -> bool {
    let mut d = Draws::new(input);
    let head = SMALL.split("[topology]").next().unwrap_or_default();
    let packet = d.pick(&[64, 1, 16, 4096, u32::MAX]);
    let buffer = d.pick(&[1024, 64, 1, 1 << 20, u64::MAX >> 1]);
    let gbps = d.pick(&["400", "1e-3", "0.1", "1e9", "1e300"]);
    let latency = d.pick(&["40", "0", "1e6", "1e15", "1e-9"]);
    let text = head
        .replace("packet_bytes = 64", &format!("packet_bytes = {packet}"))
        .replace("buffer_bytes = 1024", &format!("buffer_bytes = {buffer}"))
        .replace("link_gbps = 400", &format!("link_gbps = {gbps}"))
        .replace("link_latency_ns = 40", &format!("link_latency_ns = {latency}"));
    let text = format!("{text}[topology]\n{}", d.pick(TOPOLOGIES));
    let Ok(machine) = Machine::from_toml(&text, "drawn") else { return false };
    let machine: &Network = machine.get().expect("the text is of a network");
    let Ok(interconnect) = Interconnect::new(machine) else { return false };
    let ranks = interconnect.plane.accelerators();
    let bytes = d.pick(&[0, 1, 63, 64, 65, 1000, 10_000, 1 << 31, 1 << 32, 1 << 48, u64::MAX]);
    let seed = u64::from(d.below(1000));
    drop(flow::alltoall(&interconnect, bytes));
    drop(flow::permutation(&interconnect, &pattern::cycle(ranks, seed), bytes));
    // Simulating each packet takes time.
    if bytes / u64::from(packet) > 1 << 12 {
        return true;
    }
    for graph in [
        pattern::linear_alltoall(ranks, bytes),
        pattern::permutation(ranks, bytes, 1 + d.below(3), seed),
        pattern::ring(ranks, bytes),
        pattern::binomial_reduce(ranks, bytes),
    ] {
        let Ok(graph) = graph else { continue };
        let options = Options { send_machines: Some(d.below(3)), ..Options::default() };
        if let Ok(ran) = network::run(&graph, &interconnect, &options) {
            let packets = ran.hosts.sends
                * bytes.div_ceil(u64::from(machine.working_planes())).div_ceil(u64::from(packet)).max(1);
            // A message of a ring carries a part of the bytes, so it has at most as many packets as a message with all
            // bytes.
            let most = packets.max(ran.hosts.sends);
            assert!((ran.hosts.sends..=most).contains(&ran.packets), "packets of {bytes} bytes for each message");
        }
    }
    true
}
