//! Times of exchanges of which only a sample is routed, compared with the times when all are routed.

use unisono_cost::network::NetworkModel;
use unisono_lower::{Exchange, Flow};
use unisono_machine::{Machine, network::Network};

const HEAD: &str = r#"
name = "torus"
kind = "network"
link_gbps = 400
link_latency_ns = 40
packet_bytes = 8192
"#;

/// On these networks all flows of an all-to-all load links alike, so every n-th flow represents all.
#[test]
fn a_sample_takes_the_time_of_the_whole() {
    for (name, ranks) in [("torus2d-small", 256_u32), ("fattree-small", 256), ("hx2mesh-small", 256)] {
        let network = Machine::preset(name).unwrap().get::<Network>().unwrap().clone();
        let model = NetworkModel::new(&network, (0..ranks).collect()).unwrap();
        let flows = (1..ranks).map(|by| Flow::new(1 << 16, 1, move |rank| (rank + by) % ranks)).collect();
        let exchange = [Exchange { flows, reduced: 0 }];
        let whole = model.exchanges_within_ns(&exchange, u64::MAX);
        for parts in [2, 5] {
            let sampled = model.exchanges_within_ns(&exchange, u64::from(ranks) * u64::from(ranks - 1) / parts);
            assert!((0.8..1.25).contains(&(sampled / whole)), "{name}, a part of {parts}: {sampled} of {whole}");
        }
    }
}

/// On a torus of rows of n, a message to the d-th accelerator along a row has one path, whose d links are followed once
/// for its latency and once for the loads. So the steps beyond those of messages are 2 d for each message.
#[test]
fn the_steps_of_exchanges_count_the_links_that_messages_cross() {
    let text = |side: u32| format!("{HEAD}[topology]\nname = \"torus\"\ndims = [{side}, {side}]\n");
    for side in [512_u32, 1024] {
        let machine = Machine::from_toml(&text(side), "torus").unwrap();
        let network = machine.get::<Network>().unwrap().clone();
        let model = NetworkModel::new(&network, (0..side * side).collect()).unwrap();
        let steps = |by: u32| {
            let along = move |rank: u32| rank / side * side + (rank + by) % side;
            let exchange = Exchange { flows: vec![Flow::new(1 << 16, 1, along)], reduced: 0 };
            model.steps_of_exchanges(&[exchange])
        };
        let messages = u128::from(side * side);
        for by in [2, 3, side / 4] {
            assert_eq!(steps(by) - steps(1), 2 * u128::from(by - 1) * messages, "{side}, {by}");
        }
    }
}
