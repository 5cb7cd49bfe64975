//! Tests of the fabric's network, with times that the tests choose.

use proptest::prelude::*;
use unisono_fabric::network::FRAMING;
use unisono_fabric::{Network, Topology};

/// Connected graphs of hosts and switches: a random tree of all nodes, and some additional cables.
fn graphs() -> impl Strategy<Value = Topology> {
    (2usize..7, 1usize..7).prop_flat_map(|(hosts, switches)| {
        let nodes = hosts + switches;
        let pair = (0..nodes, 0..nodes);
        (prop::collection::vec(any::<prop::sample::Index>(), nodes - 1), prop::collection::vec(pair, 0..6)).prop_map(
            move |(tree, more)| {
                let mut text: String = (0..hosts).map(|node| format!("host {node}\n")).collect();
                text.extend((hosts..nodes).map(|node| format!("switch {node}\n")));
                let joined = tree.iter().enumerate().map(|(node, to)| (to.index(node + 1), node + 1));
                let mut known = Vec::new();
                for (a, b) in joined.chain(more) {
                    let ends = (a.min(b), a.max(b));
                    if a != b && !known.contains(&ends) {
                        known.push(ends);
                        text += &format!("cable {a} {b} 8 10 100000\n");
                    }
                }
                Topology::parse(&text).unwrap()
            },
        )
    })
}

/// Returns the number of cables from each node to `to`, by the Bellman-Ford algorithm.
fn distances(network: &Network, nodes: usize, to: usize) -> Vec<usize> {
    let mut distance = vec![usize::MAX; nodes];
    distance[to] = 0;
    for _ in 0..nodes {
        for port in network.ports.iter().filter(|port| port.up) {
            distance[port.from] = distance[port.from].min(distance[port.to].saturating_add(1));
        }
    }
    distance
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Routes are shortest paths over cables that are up, and packets count only on the ports of their route.
    #[test]
    fn packets_take_shortest_routes(topology in graphs(), failed in any::<prop::sample::Index>()) {
        let mut network = Network::new(&topology);
        let nodes = topology.names.len();
        for fails in [false, true] {
            if fails {
                let [a, b] = topology.cables[failed.index(topology.cables.len())].ends;
                prop_assert!(network.set_up(a, b, false));
            }
            for to in 0..topology.hosts {
                let distance = distances(&network, nodes, to);
                for from in (0..topology.hosts).filter(|&from| from != to) {
                    let route = network.route(from, to);
                    let before: Vec<u64> = network.ports.iter().map(|port| port.bytes).collect();
                    network.send(from, to, vec![7; 500], 0);
                    let mut received = Vec::new();
                    network.advance(i64::MAX, |host, data| received.push((host, data.len())));
                    if distance[from] == usize::MAX {
                        prop_assert!(route.is_empty() && received.is_empty());
                        continue;
                    }
                    prop_assert_eq!(route.len(), distance[from]);
                    prop_assert_eq!(received, vec![(to, 500)]);
                    for (at, port) in network.ports.iter().enumerate() {
                        prop_assert_eq!(port.bytes - before[at], if route.contains(&at) { 500 } else { 0 });
                    }
                }
            }
        }
    }
}

const STAR: &str = "host a\nhost b\nhost c\nswitch s\ncable a s 8 10 5000\ncable b s 8 10 5000\ncable c s 8 10 5000\n";

/// A packet of 962 bytes has 1000 bytes with framing, which take 1 ms at 8 Mbit/s. A cable adds 10 us. The switch
/// forwards immediately, so the tail of packet k arrives at (k + 1) ms + 20 us.
#[test]
fn a_stream_has_the_rate_of_its_cables() {
    let mut network = Network::new(&Topology::parse(STAR).unwrap());
    for _ in 0..5 {
        network.send(0, 1, vec![0; 1000 - FRAMING], 0);
    }
    // Two packets of the largest size, which take 18 ms, may wait at a host; these five take 5 ms.
    assert_eq!(network.free_at(0), 0);
    let mut times = Vec::new();
    while let Some(now) = network.next() {
        network.advance(now, |_, _| times.push(now));
    }
    assert_eq!(times, [1_020_000, 2_020_000, 3_020_000, 4_020_000, 5_020_000]);
    assert_eq!(network.ports.iter().map(|port| port.drops).sum::<u64>(), 0);
}

/// Two hosts each send 20 packets of 1 ms to a third host. The switch buffers 5000 bytes, so it drops some; hosts drop
/// none of their own packets, and report when they may send again.
#[test]
fn a_full_buffer_drops_and_a_host_waits() {
    let mut network = Network::new(&Topology::parse(STAR).unwrap());
    for _ in 0..20 {
        network.send(0, 2, vec![0; 1000 - FRAMING], 0);
        network.send(1, 2, vec![0; 1000 - FRAMING], 0);
    }
    assert!(network.free_at(0) > 0);
    let mut received = 0;
    network.advance(i64::MAX, |_, _| received += 1);
    let drops: Vec<u64> = network.ports.iter().map(|port| port.drops).collect();
    let full = network.ports.iter().position(|port| (port.from, port.to) == (3, 2)).unwrap();
    assert!(drops[full] > 0);
    assert_eq!(drops[full], drops.iter().sum::<u64>());
    assert_eq!(received + drops[full], 40);
    assert!(network.ports[full].peak <= 5000);
}

#[test]
fn a_wrong_line_is_named() {
    for (text, said) in [
        ("host a\nswitch s\nhost b\n", "line 3: host b follows a switch; hosts come first"),
        ("host a\nhost a\n", "line 2: a second node has the name 'a'"),
        ("host a\nswitch a\n", "line 2: a second node has the name 'a'"),
        ("host a\nswitch s\nswitch s\n", "line 3: a second node has the name 's'"),
        ("host a\ncable a a 1 1 1\n", "line 2: the cable a-a has both ends at one node"),
        ("router a\n", "line 1: 'router a' is no host, switch or cable"),
        ("host a\ncable a b 1 1 1\n", "line 2: there is no node 'b'"),
        ("host a\nhost b\ncable a b nan 1 1\n", "line 3: 'nan' is no number from 0 on"),
        ("host a\nhost b\ncable a b 0 1 1\n", "line 3: the cable a-b has no rate"),
    ] {
        assert_eq!(Topology::parse(text).unwrap_err(), said);
    }
    for second in ["a b", "b a"] {
        let text = format!("host a\nhost b\ncable a b 1 1 1\ncable {second} 2 2 2\n");
        let ends = second.replace(' ', " and ");
        let said = format!("line 4: a second cable joins {ends}; state one with the rate of both");
        assert_eq!(Topology::parse(&text).unwrap_err(), said);
    }
}

#[test]
fn hosts_end_where_addresses_end() {
    let hosts = |count: usize| (0..count).map(|at| format!("host h{at}\n")).collect::<String>();
    assert_eq!(Topology::parse(&hosts(254)).unwrap().hosts, 254);
    let said = "line 255: host h254 is one more than the 254 that have an address";
    assert_eq!(Topology::parse(&hosts(255)).unwrap_err(), said);
}
