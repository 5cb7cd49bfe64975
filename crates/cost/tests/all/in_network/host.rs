//! Tests of `in_network::host`.

use unisono_cost::in_network::{Host, host_ns};
use unisono_machine::{InNetwork, Machine};

#[test]
fn as_the_papers_parameters_give() {
    let m = Machine::preset("piuma").unwrap().get::<InNetwork>().unwrap().clone();
    // 7 rounds on 128 cores: 5 + 10 + 5 in a socket, 4 times 45 between sockets.
    let one = host_ns(&m, 128, 0, 4, Host::RecursiveDoubling);
    assert!((one - (7.0 * 1130.0 + 5.2 * 200.0)).abs() < 1e-6);
    // The nodes add 14 rounds with a latency of 160 each.
    let all = host_ns(&m, 128 << 14, 0, 4, Host::RecursiveDoubling);
    assert!((all - (21.0 * 1130.0 + 5.2 * 2440.0)).abs() < 1e-6);
    let vector = host_ns(&m, 128, 1000, 4, Host::Rabenseifner);
    assert!((vector - (2.0 * one + 7.0 * 0.625 * 1000.0 * 127.0 / 128.0)).abs() < 1e-6);
}

/// On 4 x 8 nodes the distances of the five rounds between nodes are 1, 2 and 4 in the second dimension, and 1 and 2 in
/// the first. In all these are five steps more than neighbors need.
#[test]
fn latency_between_nodes_grows_with_their_distance() {
    let m = Machine::preset("piuma").unwrap().get::<InNetwork>().unwrap().clone();
    let m = InNetwork { node_dims: vec![4, 8], ..m };
    let far = InNetwork { node_step_ns: 10.0, ..m.clone() };
    let time = |m| host_ns(m, 128 * 32, 0, 4, Host::RecursiveDoubling);
    assert!((time(&far) - time(&m) - 5.2 * 50.0).abs() < 1e-6);
}
