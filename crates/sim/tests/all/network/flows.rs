//! The flow level, compared with closed forms, and with packets on small networks.

use unisono_lower::tasks::pattern;
use unisono_sim::network::{Interconnect, Options, flow, run};

use crate::network::common::{TOPOLOGIES, UNLIKE, VALIANT, interconnect, traffic};
use crate::soak;

/// Computes the busiest link of an alltoall directly. Every pair is split separately: first evenly, then six more times
/// by weights that fall with the square root of a link's busy time. Returns the best of these splits.
fn busiest(net: &Interconnect) -> f64 {
    let mut weights = vec![1.0; net.plane.links().len()];
    let rate = |link: usize| net.timing.links[0].ps_per_byte / net.timing.of(net.plane.links()[link]).ps_per_byte;
    let mut best = (f64::INFINITY, 0.0);
    for _ in 0..7 {
        let loads = loads(net, &weights);
        let busy = |link: usize| loads[link] / rate(link);
        let busiest = (0..loads.len()).max_by(|&a, &b| busy(a).total_cmp(&busy(b))).unwrap();
        if busy(busiest) < best.0 * (1.0 - 1e-9) {
            best = (busy(busiest), loads[busiest]);
        }
        (0..loads.len()).filter(|&link| loads[link] > 0.0).for_each(|link| weights[link] /= busy(link).sqrt());
    }
    best.1
}

fn loads(net: &Interconnect, weights: &[f64]) -> Vec<f64> {
    let mut loads = vec![0.0; net.plane.links().len()];
    let ranks = net.plane.accelerators();
    for (from, to) in (0..ranks).flat_map(|a| (0..ranks).map(move |b| (a, b))).filter(|(a, b)| a != b) {
        let choices = net.routing.choices(from, to);
        for &way in &*choices {
            let mut open = vec![(from, 0, 1.0 / choices.len() as f64)];
            while let Some((at, vc, share)) = open.pop() {
                if at == to {
                    continue;
                }
                let mut hops = Vec::new();
                net.routing.hops(at, unisono_machine::network::Header { to, vc, way }, &mut hops);
                let all: f64 = hops.iter().map(|hop| weights[hop.link as usize]).sum();
                for hop in &hops {
                    let part = share * weights[hop.link as usize] / all;
                    loads[hop.link as usize] += part;
                    open.push((net.plane.link(hop.link).to, hop.vc, part));
                }
            }
        }
    }
    loads
}

#[test]
fn loads_are_those_of_all_pairs() {
    for topology in TOPOLOGIES.iter().chain([&VALIANT]) {
        let net = interconnect(topology);
        let found = flow::alltoall(&net, 1000).unwrap().busiest_bytes / 1000.0;
        let expected = busiest(&net);
        assert!((found / expected - 1.0).abs() < 1e-9, "{topology}: {found} and {expected}");
    }
}

/// On a ring of 8, an accelerator sends to 3 others in each direction, and half a flow to the opposite accelerator in
/// either direction: (1 + 2 + 3 + 4/2) flows per link.
#[test]
fn a_ring_has_its_load() {
    let mut net = interconnect("name = 'torus'\ndims = [8]");
    // All messages are sent at once.
    net.send_machines = 8;
    let fluid = flow::alltoall(&net, 1000).unwrap();
    assert!((fluid.busiest_bytes - 8000.0).abs() < 1e-6);
    assert!((fluid.makespan_ps - (8.0 * 20_000.0 + 4.0 * 80_000.0)).abs() < 1.0, "{}", fluid.makespan_ps);
}

/// Packets take about the time of flows. They take longer at the ends of messages, and less time if they choose paths
/// better than an even split.
#[test]
fn packets_take_about_the_time_of_flows() {
    for &topology in TOPOLOGIES {
        let mut net = interconnect(topology);
        let ranks = net.plane.accelerators();
        let bytes = 100_000;
        // All messages are sent at once.
        net.send_machines = ranks;
        let packets = run(&pattern::linear_alltoall(ranks, bytes).unwrap(), &net, &Options::default()).unwrap();
        let flows = flow::alltoall(&net, bytes).unwrap().makespan_ps;
        let ratio = packets.hosts.makespan as f64 / flows;
        // Flows count the latency of the longest path. Credits are better than an even split if a board is its own
        // neighbor: both paths are shortest paths, and one of them is crowded. At a link, inputs take turns, not flows,
        // so on a mesh flows from far away end a little later.
        let mut least = if topology.ends_with("boards = [2, 1]") { 0.8 } else { 0.98 };
        if topology == UNLIKE {
            // Equal parts over 200, 200 and 400 Gb/s take as long as over 600 Gb/s. Packets use all 800 Gb/s.
            least = 0.74;
        }
        assert!((least..1.05).contains(&ratio), "{topology}: {ratio}");
    }
}

/// Messages are sent in the order of shifts, on every family of networks, at sizes for which the order matters: 64 to
/// 256 accelerators with four send machines. A message has 33 packets. If accelerators forward messages, these do not
/// stay in step.
#[test]
fn packets_in_order_take_the_time_of_flows() {
    let mut beyond = Vec::new();
    let topologies = [
        "name = 'boxes'\nboxes = 8\naccelerators = 8\ninside = \"0 8\\n1 8\\n2 8\\n3 8\\n4 8\\n5 8\\n6 8\\n7 8\"\nuplinks = \"8 0\\n8 1\\n8 2\\n8 3\"",
        "name = 'dragonfly'\np = 4\na = 8\nh = 4\ng = 4",
        "name = 'dragonfly'\np = 4\na = 8\nh = 4\ng = 8\nrouting = 'valiant'",
        "name = 'fattree'\naccelerators = 128\nlevels = 2\ndown = 16\nup = 16",
        "name = 'fattree'\naccelerators = 128\nlevels = 2\ndown = 16\nup = 8",
        "name = 'hxmesh'\nboard = [1, 1]\nboards = [12, 12]",
        "name = 'hxmesh'\nboard = [2, 2]\nboards = [6, 6]",
        "name = 'hxmesh'\nboard = [4, 4]\nboards = [4, 4]",
        "name = 'hypercube'\ndimensions = 7",
        "name = 'hyperx'\ndims = [8, 8]\nterminals = 2",
        "name = 'mesh'\ndims = [12, 12]",
        "name = 'torus'\ndims = [16, 16]",
    ];
    // Except in the long run, every second topology is tested.
    for topology in topologies.into_iter().step_by(if soak::is_on() { 1 } else { 2 }) {
        let mut net = interconnect(topology);
        let ranks = net.plane.accelerators();
        let bytes = if soak::is_on() { 32_768 } else { 8192 };
        // Flows have unbounded buffers, so the buffers here can hold everything that a link transfers.
        net.timing.places = 1 << 20;
        let packets = run(&pattern::linear_alltoall(ranks, bytes).unwrap(), &net, &Options::default()).unwrap();
        let ratio = packets.hosts.makespan as f64 / flow::alltoall(&net, bytes).unwrap().makespan_ps;
        if !(0.9..1.1).contains(&ratio) {
            beyond.push((topology, ratio));
        }
    }
    assert_eq!(beyond, []);
}

#[test]
fn a_permutation_by_packets_and_by_flows() {
    for topology in TOPOLOGIES {
        let net = interconnect(topology);
        let ranks = net.plane.accelerators();
        let to = pattern::cycle(ranks, 5);
        let bytes = 300_000;
        let flows = flow::permutation(&net, &to, bytes).unwrap();
        let messages: Vec<_> = to.iter().zip(0..).map(|(&to, from)| (from, to, bytes)).collect();
        let packets = run(&traffic(ranks, &messages), &net, &Options::default()).unwrap();
        let mean = |times: Vec<f64>| times.iter().map(|t| 1.0 / t).sum::<f64>() / times.len() as f64;
        let packets = mean(packets.hosts.finish.iter().map(|&t| t as f64).collect());
        let flows = mean(flows.finish_ps);
        assert!((0.85..1.3).contains(&(packets / flows)), "{topology}: {packets} and {flows}");
    }
}

/// Three links in a row have 100, 400 and 400 Gb/s. In an alltoall among four accelerators in a row, each end link
/// carries 3 flows per direction and the middle link 4. The first link takes longest. A flow to the other end takes 3
/// hops of 80 ns.
#[test]
fn unlike_links_are_busy_by_their_rate() {
    let net = interconnect("name = 'graph'\naccelerators = 4\nedges = \"\"\"\n0 1 gbps=100\n1 2\n2 3\n\"\"\"");
    let fluid = flow::alltoall(&net, 1000).unwrap();
    assert_eq!(fluid.busiest_bytes, 3000.0);
    assert!((fluid.makespan_ps - (3.0 * 80_000.0 + 3.0 * 80_000.0)).abs() < 1.0, "{}", fluid.makespan_ps);
    // In this cycle, 0 to 1 uses its link alone at 100 Gb/s, 1 to 2 and 2 to 3 use theirs alone, and 3 to 0 goes back
    // over all links at the rate of the slowest link.
    let fluid = flow::permutation(&net, &[1, 2, 3, 0], 1000).unwrap();
    assert_eq!(fluid.finish_ps, [80_000.0 + 240_000.0, 80_000.0 + 80_000.0, 20_000.0 + 80_000.0, 20_000.0 + 80_000.0]);
}

/// A message over a fast link waits for messages over a slow link, unless each link has its own send machines.
#[test]
fn links_send_for_themselves_where_the_machine_says_so() {
    let end = |per: &str| {
        let text = format!(
            "name = 'test'\nkind = 'network'\nplanes = 1\nlink_gbps = 400\nlink_latency_ns = 0\ninput_latency_ns = 0\n\
             output_latency_ns = 0\npacket_bytes = 1000\nbuffer_bytes = 1000000\nsend_machines = 1\n{per}\n[topology]\n\
             name = 'graph'\naccelerators = 3\nedges = \"0 1 gbps=4\\n0 2\"\n"
        );
        let machine = unisono_machine::Machine::from_toml(&text, "test").unwrap();
        let net = Interconnect::new(machine.get::<unisono_machine::network::Network>().unwrap()).unwrap();
        let run = run(&traffic(3, &[(0, 1, 1000), (0, 1, 1000), (0, 2, 50_000)]), &net, &Options::default()).unwrap();
        run.hosts.finish[2]
    };
    // Each message over the slow link takes 2,000 ns, and a packet over the fast link 20 ns.
    assert_eq!(end("send_machines_per = 'link'"), 1_000_000);
    assert!(end("send_machines_per = 'accelerator'") > 2_000_000);
}
