//! Planes without failed links and nodes.

use unisono_machine::{
    Machine,
    network::{Failure, MOST_SIMULATED_CHANNELS, Network, Topology, deadlock},
};

use crate::network::oracle;

pub fn network(topology: &str, failed: &[&str]) -> Result<Network, String> {
    let text = format!(
        "name = 'test'\nkind = 'network'\nplanes = 1\nlink_gbps = 400\nlink_latency_ns = 40\ninput_latency_ns = 20\n\
         output_latency_ns = 20\npacket_bytes = 1000\nbuffer_bytes = 100000\nfailed = {failed:?}\n[topology]\n{topology}\n"
    );
    Machine::from_toml(&text, "test.toml")
        .map(|machine| machine.get::<Network>().unwrap().clone())
        .map_err(|e| e.to_string())
}

fn degraded(topology: &str, failed: &[&str]) -> Box<dyn Topology> {
    network(topology, failed).unwrap_or_else(|e| panic!("{topology}: {e}")).topology("test").unwrap()
}

pub const FAMILIES: [&str; 8] = [
    "name = 'torus'\ndims = [4, 4]",
    "name = 'mesh'\ndims = [3, 4]",
    "name = 'hypercube'\ndimensions = 4",
    "name = 'hyperx'\ndims = [3, 3]",
    "name = 'hxmesh'\nboard = [2, 2]\nboards = [2, 3]",
    "name = 'fattree'\naccelerators = 30\nlevels = 2\ndown = 4\nup = 3\ntop = 8",
    "name = 'dragonfly'\np = 2\na = 4\nh = 2\ng = 5",
    "name = 'graph'\naccelerators = 5\nedges = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 0], [0, 2]]",
];

/// After the failure of each link, the plane lacks only its cables, and packets cannot block each other.
#[test]
fn any_link_of_any_family_fails() {
    for family in FAMILIES {
        let whole = oracle::topology(family);
        let plane = whole.plane().unwrap();
        for link in plane.links().iter().filter(|link| link.from < link.to) {
            let (a, b) = (link.from, link.to);
            let between = plane.leaving(a).filter(|&id| plane.link(id).to == b).count();
            let failed = format!("{b}-{a}");
            let left = match network(family, &[&failed]) {
                Ok(network) => network.topology("test").unwrap(),
                // The link may be the only cable of an accelerator.
                Err(e) => {
                    assert!(
                        e.contains("the accelerator is cut off: ") && between == plane.leaving(a.min(b)).len(),
                        "{e}"
                    );
                    continue;
                }
            };
            let found = left.plane().unwrap();
            oracle::is_sound(&found);
            assert_eq!(
                (found.accelerators(), found.switches()),
                (plane.accelerators(), plane.switches()),
                "{family}, {failed}"
            );
            assert_eq!(found.links().len(), plane.links().len() - 2 * between, "{family}, {failed}");
            assert!(found.links().iter().all(|link| (link.from, link.to) != (a, b)));
            assert_eq!((left.bill(), left.extents(), left.kept()), (whole.bill(), whole.extents(), None));
            oracle::is_minimal(&found, &*left.routing(), left.lengths().as_deref());
            assert_eq!(oracle::diameter(&found), left.diameter());
            deadlock::check(&found, &*left.routing()).unwrap();
        }
    }
}

/// Only one cable connects three switches with the accelerators, and it fails.
#[test]
fn switches_that_no_accelerator_reaches_are_left_out() {
    let tree = "name = 'graph'\naccelerators = 2\nedges = [[0, 2], [1, 2], [2, 3], [3, 4], [4, 5], [5, 6], [6, 4]]";
    for way in ["", "\nrouting = 'up-down'\nroot = 4"] {
        let left = degraded(&format!("{tree}{way}"), &["3-4"]);
        let plane = left.plane().unwrap();
        assert_eq!((plane.accelerators(), plane.switches(), plane.links().len()), (2, 2, 6));
        oracle::is_sound(&plane);
    }
    // Messages use the numbers of the machine file.
    let message = network(tree, &["2-3", "1-2"]).unwrap_err();
    assert!(message.contains("the accelerator is cut off: 1; fail it too"), "{message}");
}

#[test]
fn accelerators_move_up_behind_one_that_failed() {
    let grid = "name = 'mesh'\ndims = [2, 4]";
    let left = degraded(grid, &["2"]);
    assert_eq!((left.accelerators(), left.extents()), (7, vec![7]));
    assert_eq!(left.kept(), Some(&[0, 1, 3, 4, 5, 6, 7][..]));
    let plane = left.plane().unwrap();
    // The cable between the original nodes 3 and 7 joins nodes 2 and 6.
    assert!(plane.leaving(2).any(|id| plane.link(id).to == 6));
    // A failed switch is not an accelerator, and its cables are removed.
    let pair = "name = 'graph'\naccelerators = 2\nedges = [[0, 2], [1, 2], [0, 3], [1, 3]]";
    let left = degraded(pair, &["2"]);
    assert_eq!((left.accelerators(), left.kept(), left.plane().unwrap().switches()), (2, None, 1));
    assert_eq!(left.injection(), [1.0, 1.0]);
}

#[test]
fn one_of_several_cables_fails() {
    let trunk = "name = 'graph'\naccelerators = 2\nedges = '0 1 count=3 gbps=100'";
    let links = |failed: &[&str]| degraded(trunk, failed).plane().unwrap().leaving(0).len();
    assert_eq!([links(&["0-1:1"]), links(&["1-0:2"]), links(&["0-1:1", "1-0:1"])], [2, 1, 1]);
    assert_eq!(degraded(trunk, &["0-1:1"]).injection(), [0.5, 0.5]);
    let e = |failed: &[&str]| network(trunk, failed).unwrap_err();
    assert_eq!(e(&["0-1:4"]), "test.toml: 4 cables between accelerator 0 and accelerator 1 failed, and there are 3");
    assert_eq!(
        e(&["0-1:2", "0-1:2"]),
        "test.toml: 4 cables between accelerator 0 and accelerator 1 failed, and there are 3"
    );
}

#[test]
fn what_is_cut_off_is_refused() {
    let row = "name = 'mesh'\ndims = [6]";
    let e = |failed: &[&str]| network(row, failed).unwrap_err();
    assert_eq!(
        e(&["1-2"]),
        "test.toml: without what failed (1-2) the accelerators are cut off: 0, 1; fail them too to plan for the others"
    );
    assert_eq!(
        e(&["3", "0"]),
        "test.toml: without what failed (3, 0) the accelerators are cut off: 4, 5; fail them too to plan for the others"
    );
    assert_eq!(
        e(&["4"]),
        "test.toml: without what failed (4) the accelerator is cut off: 5; fail it too to plan for the others"
    );
    assert_eq!(degraded(row, &["4", "5"]).accelerators(), 4);
    assert_eq!(e(&["0", "1", "2", "3", "4", "5"]), "test.toml: all accelerators failed");
    assert_eq!(e(&["2-4"]), "test.toml: no cable joins accelerator 2 and accelerator 4");
    assert_eq!(e(&["6"]), "test.toml: the failure 6 names node 6; the nodes are 0 to 5");
    for text in ["", "a", "1-", "-1", "1-1", "1-2:0", "1-2:x", "1-2-3", "+1", "1 - 2", "4294967296"] {
        assert_eq!(
            e(&[text]),
            format!(
                "test.toml: '{text}' is not a failure; accepted are A-B for all cables between two nodes, A-B:N for N of them, \
                 and N for a node, also one-link for one cable of every class, the name of a part such as 'accelerator 0' or \
                 'accelerator 5', NAME to NAME for the cables between two parts, and 'plane K' for one of several planes"
            )
        );
    }
}

#[test]
fn failures_are_printed_as_they_are_read() {
    for text in ["3-17", "3-17:2", "5"] {
        assert_eq!(text.parse::<Failure>().unwrap().to_string(), text);
    }
    assert_eq!("17-3:2".parse::<Failure>().unwrap().to_string(), "3-17:2");
}

/// Packets are routed up and down a tree if shortest paths would need too many virtual channels. A graph that already
/// has this routing keeps it.
#[test]
fn long_ways_go_over_a_tree() {
    let long = degraded("name = 'torus'\ndims = [140]", &["0-139"]);
    assert!(long.diameter() > u32::from(MOST_SIMULATED_CHANNELS));
    assert_eq!(long.routing().name(), "up and down");
    deadlock::check(&long.plane().unwrap(), &*long.routing()).unwrap();
    assert_eq!(degraded("name = 'torus'\ndims = [32, 32]", &["0-1"]).routing().name(), "shortest ways");
    let tree =
        "name = 'graph'\naccelerators = 4\nrouting = 'up-down'\nroot = 3\nedges = [[0, 1], [1, 2], [2, 3], [3, 0]]";
    for failed in ["0-1", "3", "2"] {
        let left = degraded(tree, &[failed]);
        assert_eq!(left.routing().name(), "up and down");
        deadlock::check(&left.plane().unwrap(), &*left.routing()).unwrap();
    }
}

#[test]
fn a_machine_loses_more_and_more() {
    let machine = Machine::preset("hx2mesh-small").unwrap();
    let failed = |failed: &[&str]| failed.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    let one = machine.with_failures(&failed(&["0-1"])).unwrap();
    let two = one.with_failures(&failed(&["7"])).unwrap();
    assert_eq!(Machine::from_toml(&two.to_toml(), "printed").unwrap(), two);
    let facts = two.get::<Network>().unwrap().facts().unwrap();
    assert_eq!((facts.accelerators, facts.family), (1023, "graph"));
    assert_eq!(facts.failed, ["0-1", "7"]);
    assert_eq!(facts.kept.unwrap()[6..8], [6, 8]);
    let e = Machine::preset("archer").unwrap().with_failures(&failed(&["3"])).unwrap_err().to_string();
    assert_eq!(e, "archer is of kind endpoint; links and nodes fail on machines of kind network");
}
