//! Tests of equal boxes that are joined by shared switches.

use unisono_machine::network::{Speed, cut::bisection};

use crate::network::oracle;

const PAIR: &str = "name = 'boxes'\nboxes = 2\naccelerators = 2\ninside = '''\n0 2\n1 2\n0 3 gbps=25\n1 4 gbps=25\n'''\n\
                    uplinks = '''\n3 0 gbps=25\n4 1 gbps=25\n'''\noutside = '0 1 count=2 ns=5'";

/// Nodes are the accelerators 0 to 3, a switch and two interfaces of each box (4 to 6, 7 to 9), and shared switches 10,
/// 11.
#[test]
fn nodes_are_numbered_box_by_box() {
    let topology = oracle::topology(PAIR);
    let plane = topology.plane().unwrap();
    oracle::is_sound(&plane);
    let cables: Vec<_> =
        plane.links().iter().zip(0..).filter(|(l, id)| l.back > *id).map(|(l, _)| (l.from, l.to, l.speed)).collect();
    assert_eq!(
        cables,
        [
            (0, 4, 0),
            (0, 5, 1),
            (1, 4, 0),
            (1, 6, 1),
            (2, 7, 0),
            (2, 8, 1),
            (3, 7, 0),
            (3, 9, 1),
            (5, 10, 1),
            (6, 11, 1),
            (8, 10, 1),
            (9, 11, 1),
            (10, 11, 2),
            (10, 11, 2),
        ]
    );
    let slow = Speed { gbps: 25.0, ..oracle::OWN };
    assert_eq!(plane.speeds(), [None, Some(slow), Some(Speed { latency_ns: 5.0, ..oracle::OWN })]);
    assert_eq!((topology.extents(), topology.accelerators(), topology.diameter()), (vec![2, 2], 4, 5));
    assert_eq!(topology.injection(), [1.0625, 1.0625]);
    // Each box has two interfaces to the other box.
    assert_eq!(bisection(&*topology, oracle::OWN).map(|cut| cut.share), Some(2.0 * 25.0 / 400.0 / (2.0 * 1.0625)));
    oracle::holds(PAIR);
    oracle::is_billed_as_wired(PAIR);
    oracle::is_connected_as_stated(&format!("{PAIR}\nrouting = 'up-down'\nroot = 10"));
}

#[test]
fn boxes_that_do_not_close_are_refused() {
    let e = |text: &str| oracle::read(&format!("name = 'boxes'\n{text}")).unwrap_err();
    assert_eq!(
        e("boxes = 2\naccelerators = 2\ninside = '0 1'"),
        "test, topology: node 2 is not connected with node 0; every node needs a way to every other"
    );
    assert_eq!(
        e("boxes = 2\naccelerators = 2\ninside = '0 1'\nuplinks = '2 0'"),
        "test, topology: an uplink begins at node 2; the nodes of a box are 0 to 1"
    );
    assert!(
        e("boxes = 2\naccelerators = 2\ninside = '0 1'\nuplinks = '0'")
            .starts_with("test, uplinks, topology: line 1 of")
    );
    // The uplinks state node numbers of the plane instead of indices of shared switches.
    assert_eq!(
        e("boxes = 2\naccelerators = 2\ninside = '0 1'\nuplinks = '0 4'"),
        "test, topology: uplinks and outside name shared switch 4 and not 0; shared switches are numbered from 0 there, \
         without gaps"
    );
    assert!(e("boxes = 'four'\naccelerators = 2\ninside = '0 1'").contains("boxes: found the string \"four\""));
    assert!(e("boxes = 0\naccelerators = 2\ninside = '0 1'").contains("0 x 2 accelerators"));
    assert!(e("boxes = 8000000\naccelerators = 2\ninside = '0 1'\nuplinks = '0 0'").contains("entries of a table"));
    assert!(
        e("boxes = 2\naccelerators = 2\ninside = '0 1 count=5000'\nuplinks = '0 0'")
            .contains("'count=5000' is not accepted")
    );
}
