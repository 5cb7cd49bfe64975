//! Names of parts, and the failures that they name.

use std::collections::BTreeSet;

use unisono_machine::network::Topology;

use crate::network::{
    failures::{FAMILIES, network},
    oracle,
};

/// Two boxes of three accelerators, each with a switch and two rails.
const BOXES: &str = "name = 'boxes'\nboxes = 2\naccelerators = 3\ninside = \"0 4\\n1 4\\n2 4\\n0 3\\n1 5\\n\"\n\
                     uplinks = \"3 0\\n5 1\\n\"\noutside = '0 1'";
/// A HammingMesh whose row of 40 boards is a tree.
const TREES: &str = "name = 'hxmesh'\nboard = [1, 1]\nboards = [1, 40]";

fn failed(topology: &str, failed: &[&str]) -> Result<Vec<String>, String> {
    network(topology, failed).map(|network| network.failed)
}

fn names(topology: &dyn Topology) -> Vec<String> {
    (0..topology.plane().unwrap().nodes()).map(|node| topology.node_name(node).own).collect()
}

/// A node or cable that fails by name fails in the same way as by number.
#[test]
fn names_and_numbers_agree() {
    for family in FAMILIES.into_iter().chain([BOXES]) {
        let whole = oracle::topology(family);
        let (plane, names) = (whole.plane().unwrap(), names(&*whole));
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{family}");
        for (node, name) in names.iter().enumerate() {
            assert_eq!(failed(family, &[name]), failed(family, &[&node.to_string()]), "{name}");
        }
        for link in plane.links() {
            let [a, b] = [link.from, link.to].map(|node| &names[node as usize]);
            let numbered = format!("{}-{}", link.from.min(link.to), link.from.max(link.to));
            assert_eq!(failed(family, &[&format!("{a} to {b}")]), failed(family, &[&numbered]), "{a} to {b}");
        }
    }
}

#[test]
fn parts_have_the_names_of_their_families() {
    let of = |family: &str, node: u32| {
        let name = oracle::topology(family).node_name(node);
        (name.own, name.within)
    };
    let is = |own: &str, within: Option<&str>| (own.to_owned(), within.map(str::to_owned));
    let hxmesh = FAMILIES[4];
    // 4 x 6 accelerators on boards of 2x2, then 6 columns, then 4 rows.
    assert_eq!(of(hxmesh, 15), is("accelerator 2,3", Some("board 1,1")));
    assert_eq!(of(hxmesh, 29), is("column switch 5", None));
    assert_eq!(of(hxmesh, 32), is("row switch 2", None));
    // 40 accelerators and 40 columns of one switch; the row has 80 ports, so 3 leaves.
    assert_eq!(of(TREES, 82), is("row leaf 2 of row 0", Some("row 0")));
    assert_eq!(of(TREES, 83), is("row top 0 of row 0", Some("row 0")));
    let tree = FAMILIES[5];
    for (node, name) in [(29, "accelerator 29"), (37, "leaf 7"), (38, "top 0")] {
        assert_eq!(of(tree, node), is(name, None));
    }
    assert_eq!(of(FAMILIES[6], 45), is("router 1 of group 1", Some("group 1")));
    assert_eq!(of(FAMILIES[3], 13), is("switch 1,1", None));
    let boxes: Vec<String> = (0..14).map(|node| of(BOXES, node).0).collect();
    assert_eq!(boxes[4], "accelerator 1 of box 1");
    let of_box = ["rail 0 of box 1", "switch 0 of box 1", "rail 1 of box 1", "shared switch 0", "shared switch 1"];
    assert_eq!(boxes[9..], of_box);
}

#[test]
fn a_part_stands_for_all_its_nodes() {
    let hxmesh = FAMILIES[4];
    assert_eq!(failed(hxmesh, &["board 1,2"]).unwrap(), ["16", "17", "22", "23"]);
    // The row switch has cables to both edges of the board.
    assert_eq!(failed(hxmesh, &["board 0,1 to row switch 0"]).unwrap(), ["2-30", "3-30"]);
    assert_eq!(failed(hxmesh, &["row switch 0 to board 0,1:1"]).unwrap(), ["2-30:1"]);
    assert_eq!(failed(hxmesh, &["board 0,0 to board 0,0"]).unwrap(), ["0-1", "0-6", "1-7", "6-7"]);
    let e = |text: &str| failed(hxmesh, &[text]).unwrap_err();
    assert_eq!(e("board 0,1 to row switch 3"), "test.toml: no cable joins board 0,1 and row switch 3");
    assert_eq!(
        e("board 0,1 to row switch 0:3"),
        "test.toml: 3 cables of board 0,1 to row switch 0 failed, and there are 2 cables"
    );
    assert!(e("board 7,7").contains("'board 7,7' is not a failure; accepted are A-B"));
}

/// Every class of cables loses one cable, and no accelerator is cut off.
#[test]
fn one_link_of_each_class_fails() {
    let of = |family: &str| failed(family, &["one-link"]).unwrap();
    // Tori, meshes and hypercubes have one class. In HyperX and fat trees, an accelerator's only cable remains.
    for (at, accelerators) in [(0, 0), (1, 0), (2, 0), (3, 9), (5, 30)] {
        let cables = of(FAMILIES[at]);
        assert_eq!(cables.len(), 1, "{cables:?}");
        let ends: Vec<u32> = cables[0].split(['-', ':']).take(2).map(|end| end.parse().unwrap()).collect();
        assert!(ends.iter().all(|&end| end >= accelerators), "{cables:?}");
    }
    // Traces of boards, copper cables of rows and optical cables of columns fail at different accelerators.
    let hxmesh = of(FAMILIES[4]);
    let ends: BTreeSet<&str> = hxmesh.iter().flat_map(|cable| cable.split('-')).collect();
    assert_eq!((hxmesh.len(), ends.len()), (3, 6), "{hxmesh:?}");
    // One class is inside groups, the other between groups.
    assert_eq!(of(FAMILIES[6]).len(), 2);
    assert_eq!(of("name = 'torus'\ndims = [4, 4]\nboard = [2, 2]").len(), 2);
    let star = "name = 'graph'\naccelerators = 3\nedges = [[0, 3], [1, 3], [2, 3]]";
    assert_eq!(
        failed(star, &["one-link"]).unwrap_err(),
        "test.toml: one-link fails nothing: every cable is the only one of an accelerator"
    );
    for family in FAMILIES.into_iter().chain([BOXES, TREES]) {
        let network = network(family, &["one-link"]).unwrap_or_else(|e| panic!("{family}: {e}"));
        let (left, whole) = (network.topology("test").unwrap(), oracle::topology(family));
        assert_eq!(left.accelerators(), whole.accelerators(), "{family}");
        let links = whole.plane().unwrap().links().len() - left.plane().unwrap().links().len();
        assert_eq!(links, 2 * network.failed.len(), "{family}");
    }
}
