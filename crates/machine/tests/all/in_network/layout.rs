//! Tests of `in_network::layout`.

use unisono_machine::{InNetwork, Machine, in_network::LevelOf};

fn machine(nodes: u32) -> InNetwork {
    let m = Machine::preset("piuma").unwrap().get::<InNetwork>().unwrap().clone();
    m.with_nodes(nodes).unwrap()
}

#[test]
fn links_lead_back() {
    for nodes in [1, 2, 16, 30, 60] {
        let layout = machine(nodes).layout();
        let mut links = [0; 3];
        for switch in 0..layout.switches() {
            for (port, peer) in layout.peers(switch) {
                let back = layout.peer(peer.switch, peer.port).unwrap();
                assert_eq!((back.switch, back.port, back.level), (switch, port, peer.level));
                assert_eq!(layout.port_to(switch, peer.switch), Some(port), "one link between two switches");
                let level = match peer.level {
                    LevelOf::Core => 0,
                    LevelOf::Socket => 1,
                    LevelOf::Node { distance } => {
                        let apart = |dim| {
                            let of = |switch| layout.coordinate(layout.node_of(switch), dim);
                            of(switch).abs_diff(of(peer.switch))
                        };
                        assert_eq!(distance, (0..layout.dims().len()).map(apart).sum::<u32>());
                        2
                    }
                };
                assert_eq!(layout.level(switch, port), Some(peer.level));
                links[level] += 1;
            }
        }
        // The 2x4 mesh of a socket has 10 links, 16 fully connected sockets have 120 links, and each line of d nodes
        // has d (d - 1) / 2 links, all in both directions.
        let dims = layout.dims();
        let between: u32 = dims.iter().map(|d| nodes * (d - 1)).sum();
        assert_eq!(links, [nodes * 16 * 20, nodes * 240, between]);
    }
}

#[test]
fn numbers_that_no_machine_has_are_refused() {
    assert!(machine(1).with_nodes(0).unwrap_err().to_string().contains("nodes is 0"));
    assert!(machine(1).with_nodes(32_769).unwrap_err().to_string().contains("1 to 32768"));
    assert_eq!(machine(32_768).cores(), 1 << 22);
    let crowded = InNetwork { node_ports: vec![0], node_dims: vec![1000], socket_ports: vec![0], ..machine(1) };
    assert!(crowded.check("here").unwrap_err().to_string().contains("at most 60 links"));
}
