//! Graphs from lists. Some of them equal a network of another family.

use unisono_machine::{
    Machine,
    network::{Cable, Header, Network, Plane, Speed, cut::bisection},
};

use crate::network::oracle;

fn lines(plane: &Plane) -> String {
    let cable = |id: u32| {
        let link = plane.link(id);
        let kind = match link.cable {
            Cable::Board => "board",
            Cable::Dac => "dac",
            Cable::Aoc => "aoc",
        };
        (link.back > id).then(|| format!("{} {} {kind}\n", link.from, link.to))
    };
    (0..plane.links().len() as u32).filter_map(cable).collect()
}

fn text(accelerators: u32, keys: &str, edges: &str) -> String {
    format!("name = 'graph'\naccelerators = {accelerators}\n{keys}\nedges = '''\n{edges}'''")
}

#[test]
fn any_family_is_a_graph() {
    for other in [
        "name = 'hxmesh'\nboard = [2, 2]\nboards = [3, 2]",
        "name = 'torus'\ndims = [5, 5]",
        "name = 'fattree'\naccelerators = 30\nlevels = 2\ndown = 4\nup = 3\ntop = 8",
        "name = 'dragonfly'\np = 2\na = 4\nh = 2\ng = 9",
        "name = 'mesh'\ndims = [9]",
        "name = 'hypercube'\ndimensions = 4",
    ] {
        let known = oracle::topology(other);
        let plane = known.plane().unwrap();
        let [shortest, up_down] = ["shortest", "up-down"]
            .map(|routing| text(plane.accelerators(), &format!("routing = '{routing}'"), &lines(&plane)));
        oracle::holds(&shortest);
        oracle::is_connected_as_stated(&up_down);
        oracle::is_billed_as_wired(&shortest);
        let graph = oracle::topology(&shortest);
        assert_eq!((graph.diameter(), graph.ports()), (known.diameter(), known.ports()), "{other}");
        assert_eq!(graph.bill().switches, u64::from(plane.switches()), "{other}");
        assert_eq!(graph.bill().aoc, oracle::cables(&plane, Cable::Aoc), "{other}");
    }
}

#[test]
fn every_root_will_do() {
    let edges = lines(&oracle::topology("name = 'torus'\ndims = [3, 4]").plane().unwrap());
    for root in 0..12 {
        oracle::is_connected_as_stated(&text(12, &format!("routing = 'up-down'\nroot = {root}"), &edges));
    }
}

#[test]
fn cables_without_a_kind_are_copper_at_accelerators() {
    let pairs = "name = 'graph'\naccelerators = 2\nedges = [[0, 2], [1, 3], [2, 3], [2, 3]]";
    let text = text(2, "", "0 2 # a comment\n\n1 3\n2 3\n2 3");
    let [pairs, text] = [pairs, &text].map(oracle::topology);
    assert_eq!(pairs.plane().unwrap(), text.plane().unwrap());
    let bill = text.bill();
    assert_eq!((bill.switches, bill.dac, bill.aoc, bill.switch_ports), (2, 2, 2, 3));
    assert_eq!((text.diameter(), bisection(&*text, oracle::OWN).map(|cut| cut.share)), (3, Some(1.0)));
}

#[test]
fn lists_that_do_not_close_are_refused() {
    let line = |found: &str, reason: &str| {
        format!(
            "line 1 of the cables is '{found}': {reason}; accepted is 'A B', two nodes from 0 to 67108863, and then dac, aoc \
             or board, gbps=NUMBER and measured=NUMBER (from 1e-9 to 1e15), ns=NUMBER (0 to 1e12) and count=NUMBER \
             (1 to 4096)"
        )
    };
    let word = |found: &str| line(found, &format!("'{}' is not accepted", found.rsplit(' ').next().unwrap()));
    for (lines, said) in [
        ("edges = [[0, 2]]", "node 1 is not connected with node 0; every node needs a way to every other".to_owned()),
        ("edges = [[0, 0], [0, 1]]", "the cable 0 0 has both ends at one node".to_owned()),
        ("edges = '7'", line("7", "it has one node")),
        ("edges = '0 1 gbps=25Gb/s us=1'", line("0 1 gbps=25Gb/s us=1", "'gbps=25Gb/s' is not accepted")),
        ("edges = '0 1 us=1'", word("0 1 us=1")),
        ("edges = '0 1 25'", word("0 1 25")),
        (
            "edges = '0 leafA'",
            line(
                "0 leafA",
                "'leafA' is not the number of a node ('unisono machines import' numbers nodes that have names)",
            ),
        ),
        ("edges = '0 1 tin'", word("0 1 tin")),
        ("edges = '0 -1'", line("0 -1", "'-1' is not the number of a node")),
        ("edges = '0 1 dac aoc'", line("0 1 dac aoc", "'aoc' states its kind again")),
        ("edges = '0 1 gbps=0'", word("0 1 gbps=0")),
        ("edges = '0 1 gbps=1e16'", word("0 1 gbps=1e16")),
        ("edges = '0 1 gbps=nan'", word("0 1 gbps=nan")),
        ("edges = '0 1 gbps=5 gbps=5'", line("0 1 gbps=5 gbps=5", "'gbps=5' states gbps again")),
        ("edges = '0 1 ns=-1'", word("0 1 ns=-1")),
        ("edges = '0 1 ns=inf'", word("0 1 ns=inf")),
        ("edges = '0 1 count=0'", word("0 1 count=0")),
        ("edges = '0 1 GBPS=5'", word("0 1 GBPS=5")),
        ("edges = '0 1'\nroot = 2", "root is 2; accepted are the nodes 0 to 1".to_owned()),
        ("file = 'a.graph'", "the file 'a.graph' was not read; list its lines as edges".to_owned()),
        ("", "a graph has either edges or a file".to_owned()),
    ] {
        let e = oracle::read(&format!("name = 'graph'\naccelerators = 2\n{lines}")).unwrap_err();
        assert_eq!(e, format!("test, topology: {said}"));
    }
    let many: String = (0..257).map(|n| format!("0 1 ns={n}.5\\n")).collect();
    let e = oracle::read(&format!("name = 'graph'\naccelerators = 2\nedges = \"{many}\"")).unwrap_err();
    assert_eq!(e, "test, topology: the cables have more than 255 speeds beside the machine's own");
    let e = oracle::read("name = 'graph'\naccelerators = 2\nedges = '0 1 count=4000000000'").unwrap_err();
    assert!(e.contains("4000000000"), "{e}");
    let e = oracle::read("name = 'graph'\naccelerators = 2\nedges = [[0, 4000000000]]").unwrap_err();
    assert!(e.contains("4000000001 nodes and 2 accelerators"), "{e}");
}

#[test]
fn long_ways_need_up_and_down() {
    let far: String = (0..300).map(|n| format!("{n} {}\n", n + 1)).collect();
    let e = oracle::read(&text(301, "", &far)).unwrap_err();
    assert!(e.contains("300 cables") && e.contains("up-down"), "{e}");
    oracle::is_connected_as_stated(&text(301, "routing = 'up-down'", &far));
}

#[test]
fn cables_state_their_speed_and_count() {
    let own = "0 2 count=3 # like the machine\n1 2 gbps=400 ns=40\n";
    let topology =
        oracle::topology(&text(2, "", &format!("{own}0 1 ns=7.5 board gbps=25 count=2\n0 2 gbps=25\n1 2 ns=7.5\n")));
    let plane = topology.plane().unwrap();
    oracle::is_sound(&plane);
    let (slow, near) = (Speed { gbps: 25.0, ..oracle::OWN }, Speed { latency_ns: 7.5, ..oracle::OWN });
    let both = Speed { gbps: 25.0, latency_ns: 7.5 };
    assert_eq!(plane.speeds(), [None, Some(both), Some(slow), Some(near)]);
    let speeds = |node| plane.leaving(node).map(|id| plane.link(id).speed).collect::<Vec<_>>();
    assert_eq!([speeds(0), speeds(1), speeds(2)], [vec![0, 0, 0, 1, 1, 2], vec![0, 1, 1, 3], vec![0, 0, 0, 0, 2, 3]]);
    assert_eq!(topology.unlike(), [(both, 2), (slow, 1), (near, 1)]);
    // Node 0 has three links of 400 and three of 25; node 1 two of 400 and two of 25.
    assert_eq!(topology.injection(), [2.125, 3.1875]);
    // The cut into halves crosses all links of the slower accelerator.
    assert_eq!(bisection(&*topology, oracle::OWN).map(|cut| cut.share), Some(2.125 / 3.1875));
    assert_eq!(topology.bill().dac, 6);
}

#[test]
fn a_machine_file_says_the_speed_of_each_cable() {
    let file = "name = 'box'\nkind = 'network'\nplanes = 2\nlink_gbps = 200\nlink_latency_ns = 30\ninput_latency_ns = 0\n\
                output_latency_ns = 0\npacket_bytes = 4096\nbuffer_bytes = 65536\n[topology]\nname = 'graph'\naccelerators = 2\n\
                edges = '''\n0 2\n1 2 gbps=50 ns=200 count=2\n'''";
    let machine = Machine::from_toml(file, "box.toml").unwrap();
    assert_eq!(Machine::from_toml(&machine.to_toml(), "printed").unwrap(), machine);
    let network: &Network = machine.get().unwrap();
    let plane = network.topology("box").unwrap().plane().unwrap();
    let speeds: Vec<Speed> = (0..6).map(|link| network.link_speed(&plane, link)).collect();
    let (own, slow) = (Speed { gbps: 200.0, latency_ns: 30.0 }, Speed { gbps: 50.0, latency_ns: 200.0 });
    assert_eq!(speeds, [own, slow, slow, own, slow, slow]);
    assert_eq!(network.speeds(&plane), [own, slow]);
    assert_eq!((own.bytes_per_ns(), slow.bytes_per_ns()), (25.0, 6.25));
    let facts = network.facts().unwrap();
    assert_eq!((facts.injection_gbps, facts.injection_gbps_least), (400.0, 200.0));
    let unlike: Vec<_> = facts.plane.unlike_links.iter().map(|l| (l.gbps, l.latency_ns, l.cables)).collect();
    assert_eq!(unlike, [(50.0, 200.0, 2)]);
}

/// Returns the nodes to which accelerator 0 may send packets for accelerator 1.
fn first_hops(accelerators: u32, keys: &str, edges: &str) -> Vec<u32> {
    let topology = oracle::topology(&text(accelerators, keys, edges));
    let (plane, mut hops) = (topology.plane().unwrap(), Vec::new());
    topology.routing().hops(0, Header { to: 1, vc: 0, way: 0 }, &mut hops);
    hops.iter().map(|hop| plane.link(hop.link).to).collect()
}

#[test]
fn packets_take_fast_cables_first() {
    let beside = |own: u32, other: u32| format!("0 1 gbps={own}\n0 2 gbps={other}\n1 2 gbps={other}\n");
    let two = |one: u32, other: u32| format!("0 2 gbps={one}\n1 2 gbps={one}\n0 3 gbps={other}\n1 3 gbps={other}\n");
    assert_eq!(first_hops(2, "", &beside(50, 800)), [2]);
    assert_eq!(first_hops(2, "routing = 'shortest'", &beside(50, 800)), [1]);
    // Cables of similar rates count equally.
    assert_eq!(first_hops(2, "", &beside(400, 800)), [1]);
    assert_eq!(first_hops(2, "", &two(400, 800)), [2, 3]);
    assert_eq!(first_hops(2, "", &two(50, 800)), [3]);
    // Sixteen cables of 50 Gb/s are as fast as one cable of 800 Gb/s.
    assert_eq!(first_hops(2, "", &beside(50, 800).replacen("gbps=50", "gbps=50 count=16", 1)), [1; 16]);
    // The cables through accelerator 2 are faster than those through switch 3.
    assert_eq!(first_hops(3, "", &two(800, 50)), [3]);
    assert_eq!(first_hops(3, "routing = 'shortest'", &two(800, 50)), [2, 3]);
}

/// With random rates, packets reach their destinations and cannot block each other. If all rates are ten times as high,
/// no path changes.
#[test]
fn ways_by_rates_have_no_deadlock() {
    for seed in 0..40_u64 {
        let draw = |at: u64, end: u64| unisono_base::mix(seed << 32 | at) % end;
        let (accelerators, nodes) = (2 + draw(0, 6), 8 + draw(1, 6));
        let cable = |node: u64, times: u64| {
            let rates = [10, 37, 50, 100, 400, 800];
            let to_tree = format!("{node} {} gbps={}\n", draw(node, node), times * rates[draw(node + 100, 6) as usize]);
            let other = (node + 1 + draw(node + 200, nodes - 1)) % nodes;
            to_tree + &format!("{node} {other} gbps={}\n", times * rates[draw(node + 300, 6) as usize])
        };
        let edges = |times| (1..nodes).map(|node| cable(node, times)).collect::<String>();
        let [plain, faster] = [1, 10].map(|times| text(accelerators as u32, "", &edges(times)));
        oracle::is_connected_as_stated(&plain);
        let hops = |text: &str| {
            let routing = oracle::topology(text).routing();
            let mut hops = Vec::new();
            let pairs = (0..accelerators as u32).flat_map(|to| (0..nodes as u32).map(move |at| (at, to)));
            for (at, to) in pairs.filter(|(at, to)| at != to) {
                routing.hops(at, Header { to, vc: 0, way: 0 }, &mut hops);
            }
            hops
        };
        assert_eq!(hops(&plain), hops(&faster), "{plain}");
    }
}

/// A graph with `per_host` has the same cables as a network of boxes in which the host is the box's only switch and has
/// the uplinks.
#[test]
fn ranks_share_the_cables_of_their_host() {
    let links = |topology: &str| {
        let plane = oracle::topology(topology).plane().unwrap();
        oracle::is_sound(&plane);
        let speeds = plane.speeds();
        let mut all: Vec<_> =
            plane.links().iter().map(|l| (l.from, l.to, l.cable, speeds[usize::from(l.speed)])).collect();
        all.sort_by_key(|link| (link.0, link.1));
        (plane.accelerators(), all)
    };
    for (hosts, ranks) in [(2, 1), (3, 2), (5, 4)] {
        let star: String = (0..hosts).map(|host| format!("{host} {hosts} gbps=25\n")).collect();
        let keys = format!("per_host = {ranks}\nhost = 'gbps=50 ns=5'");
        let inside: String = (0..ranks).map(|rank| format!("{rank} {ranks} board gbps=50 ns=5\n")).collect();
        let boxes = format!(
            "name = 'boxes'\nboxes = {hosts}\naccelerators = {ranks}\ninside = '''\n{inside}'''\n\
             uplinks = '{ranks} 0 dac gbps=25'"
        );
        let graph = text(hosts, &keys, &star);
        assert_eq!(links(&graph), links(&boxes));
        assert_eq!(oracle::topology(&graph).extents(), [hosts, ranks]);
        oracle::holds(&graph);
        oracle::is_billed_as_wired(&graph);
        oracle::is_connected_as_stated(&text(hosts, &format!("{keys}\nrouting = 'up-down'\nroot = {hosts}"), &star));
    }
    // Two hosts without a switch.
    oracle::holds(&text(2, "per_host = 3\nhost = ''", "0 1"));
    // Hosts and switches have the numbers of the cables in their names, and a rank is a part of its host.
    let named = oracle::topology(&text(2, "per_host = 2\nhost = ''", "0 2\n1 2"));
    let names: Vec<_> = (0..7).map(|node| named.node_name(node)).collect();
    assert_eq!(
        names.iter().map(|name| name.own.as_str()).collect::<Vec<_>>(),
        ["c0.0", "c0.1", "c1.0", "c1.1", "c0", "c1", "s2"]
    );
    assert_eq!((0..7).filter(|&node| names[node].is("c1")).collect::<Vec<_>>(), [2, 3, 5]);
    for (keys, said) in [
        ("per_host = 2", "give both or none"),
        ("host = 'gbps=4'", "give both or none"),
        ("per_host = 0\nhost = ''", "0"),
        (
            "per_host = -1\nhost = ''",
            "per_host: found the integer `-1`; accepted is a whole number from 0 to 4294967295",
        ),
        ("per_host = 2\nhost = 'fast'", "host"),
        ("per_host = 2\nhost = \"gbps=4\\n0 1\"", "one line"),
        ("per_host = 4000000000\nhost = ''", "4000000000"),
        ("per_host = 2\nhost = ''\nrouting = 'up-down'\nroot = 3", "root is 3; accepted are the nodes 0 to 2"),
    ] {
        let refused = oracle::read(&text(2, keys, "0 2\n1 2")).unwrap_err();
        assert!(refused.contains(said), "{keys}: {refused}");
    }
}
