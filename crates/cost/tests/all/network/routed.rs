//! Patterns whose destinations are exchanged among alike blocks, compared with the same patterns routed by a new model.

use unisono_base::mix;
use unisono_cost::network::NetworkModel;
use unisono_lower::{Exchange, Flow};
use unisono_machine::{Machine, network::Network};

const HEAD: &str = "name = \"drawn\"\nkind = \"network\"\nplanes = 1\nlink_gbps = 400\nlink_latency_ns = 40\n\
    input_latency_ns = 20\noutput_latency_ns = 20\npacket_bytes = 8192\nbuffer_bytes = 33554432\n\
    host_overhead_ns = 1\ngamma_ns_per_byte = 0.0025\n[topology]\nname = \"fattree\"\n";

/// A model that has routed other patterns gives the same times as a new one, bit for bit.
#[test]
fn alike_patterns_take_equally_long() {
    for (seed, topology) in [
        "accelerators = 192\nlevels = 3\ndown = 2\nup = 32",
        "accelerators = 128\nlevels = 3\ndown = 1\nup = 32\ntop = 32",
        "accelerators = 96\nlevels = 3\ndown = 1\nup = 16\ntop = 48",
        "accelerators = 24\nlevels = 2\ndown = 4\nup = 4\ntop = 6",
        "accelerators = 23\nlevels = 2\ndown = 4\nup = 3\ntop = 8",
        "accelerators = 100\nlevels = 3\ndown = 1\nup = 8",
    ]
    .into_iter()
    .enumerate()
    {
        let network = Machine::from_toml(&format!("{HEAD}{topology}"), "drawn").unwrap();
        let network = network.get::<Network>().unwrap().clone();
        let n = network.topology("drawn").unwrap().accelerators();
        let model = || NetworkModel::new(&network, (0..n).collect()).unwrap();
        let shift = |by: u32| move |rank: u32| (rank + by) % n;
        let random = |draw: u64| {
            let mut to: Vec<u32> = (0..n).collect();
            to.sort_by_key(|&rank| mix(draw ^ mix(rank.into())));
            move |rank: u32| to[rank as usize]
        };
        let mut exchanges: Vec<Exchange> =
            (1..n).map(|by| Exchange { flows: vec![Flow::new(1 << 20, 1, shift(by))], reduced: 0 }).collect();
        for at in 0..10 {
            let flow = |k: u64| Flow::new(1 << 20, 1, random(seed as u64 * 100 + at * 3 + k));
            exchanges.push(Exchange { flows: vec![flow(0)], reduced: 0 });
            let mixed = vec![flow(1), Flow::new(1 << 19, 1, shift(1 + at as u32)), flow(2)];
            exchanges.push(Exchange { flows: mixed, reduced: 0 });
            exchanges.push(Exchange { flows: vec![Flow::new(1 << 20, 3, shift(at as u32 * 5 + 1))], reduced: 0 });
        }
        let shared = model();
        for (at, exchange) in exchanges.into_iter().enumerate() {
            let one = [exchange];
            assert_eq!(shared.exchanges_ns(&one), model().exchanges_ns(&one), "{topology}: exchange {at}");
        }
    }
}
