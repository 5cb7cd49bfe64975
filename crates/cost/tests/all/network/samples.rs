//! Times of exchanges of which only a sample is routed, compared with the times when all are routed.

use unisono_cost::network::NetworkModel;
use unisono_lower::{Exchange, Flow};
use unisono_machine::{Machine, network::Network};

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
