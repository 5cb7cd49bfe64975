//! Graphs from lists, some of them known as another family.

use unisono_machine::network::{Cable, Plane};

use crate::network::oracle;

/// The cables of a plane as lines.
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
    assert_eq!((text.diameter(), text.bisection_share()), (3, Some(1.0)));
}

#[test]
fn lists_that_do_not_close_are_refused() {
    let line =
        |found| format!("line 1 of the cables is '{found}'; accepted is 'A B', two nodes, and then dac, aoc or board");
    for (lines, said) in [
        ("edges = [[0, 2]]", "node 1 is not connected with node 0; every node needs a way to every other".to_owned()),
        ("edges = [[0, 0], [0, 1]]", "the cable 0 0 has both ends at one node".to_owned()),
        ("edges = '0 1 tin'", line("0 1 tin")),
        ("edges = '0 -1'", line("0 -1")),
        ("edges = '0 1'\nroot = 2", "root is 2; accepted are the nodes 0 to 1".to_owned()),
        ("file = 'a.graph'", "the file 'a.graph' was not read; list its lines as edges".to_owned()),
        ("", "a graph has either edges or a file".to_owned()),
    ] {
        let e = oracle::read(&format!("name = 'graph'\naccelerators = 2\n{lines}")).unwrap_err();
        assert_eq!(e, format!("test, topology: {said}"));
    }
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
