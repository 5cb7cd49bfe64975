//! "HammingMesh", Table 2: the counts and costs of its 16 cells, from the presets.
//!
//! The counts are derived independently of the paper. The costs are those of the paper as remembered, and agree with
//! the counts. The Dragonfly's diameters are this project's own.

use unisono_machine::{Machine, network::Network};

/// The preset, the numbers of switches, copper and optical cables of all planes, the cost as printed in M$, the
/// diameter.
type Cell = (&'static str, u64, u64, u64, &'static str, u32);

const CELLS: [Cell; 16] = [
    ("fattree-small", 768, 16_384, 16_384, "25.3", 4),
    ("fattree-tapered50-small", 544, 16_800, 8_800, "17.6", 4),
    ("fattree-tapered75-small", 416, 17_136, 4_368, "13.2", 4),
    ("dragonfly-small", 1_024, 30_720, 8_192, "27.9", 4),
    ("hyperx2d-small", 256, 8_192, 8_192, "10.8", 4),
    ("hx2mesh-small", 128, 4_096, 4_096, "5.4", 4),
    ("hx4mesh-small", 64, 2_048, 2_048, "2.7", 8),
    ("torus2d-small", 0, 0, 4_096, "2.5", 32),
    ("fattree-large", 20_480, 262_144, 524_288, "680", 6),
    ("fattree-tapered50-large", 12_720, 262_752, 275_360, "419", 6),
    ("fattree-tapered75-large", 8_304, 262_752, 134_048, "271", 6),
    ("dragonfly-large", 15_360, 499_200, 122_880, "429", 5),
    ("hyperx2d-large", 12_288, 131_072, 393_216, "448", 8),
    ("hx2mesh-large", 6_144, 65_536, 196_608, "224", 8),
    ("hx4mesh-large", 1_024, 32_768, 32_768, "43.3", 8),
    ("torus2d-large", 0, 0, 65_536, "39.5", 128),
];

fn network(preset: &str) -> Network {
    Machine::preset(preset).unwrap().get::<Network>().unwrap().clone()
}

#[test]
fn counts_costs_and_diameters_are_those_of_the_table() {
    for (preset, switches, dac, aoc, cost, diameter) in CELLS {
        let network = network(preset);
        let topology = network.topology(preset).unwrap();
        let (bill, planes) = (network.bill(&*topology), u64::from(network.planes));
        assert_eq!((planes * bill.switches, planes * bill.dac, planes * bill.aoc), (switches, dac, aoc), "{preset}");
        let millions = network.cost_usd(&*topology).unwrap() / 1e6;
        let digits = cost.split('.').nth(1).map_or(0, str::len);
        assert_eq!(format!("{millions:.digits$}"), cost, "{preset}: {millions}");
        assert_eq!(topology.diameter(), diameter, "{preset}");
    }
}

#[test]
fn bisections_are_those_of_the_text() {
    for (preset, share) in [
        ("hx2mesh-small", 1.0 / 4.0),
        ("hx2mesh-large", 1.0 / 4.0),
        ("hx4mesh-small", 1.0 / 8.0),
        ("hx4mesh-large", 1.0 / 8.0),
        ("hyperx2d-small", 1.0 / 2.0),
        ("fattree-small", 1.0),
        ("torus2d-small", 1.0 / 32.0),
        ("torus2d-large", 1.0 / 128.0),
    ] {
        assert_eq!(network(preset).facts().unwrap().bisection_share, Some(share), "{preset}");
    }
    // One half has 195 whole leaves of 42 accelerators and 22 cables up, and two more accelerators. Another cut into
    // halves crosses fewer cables, because the last pod has few middle switches.
    let tapered = network("fattree-tapered50-large").facts().unwrap().bisection_share.unwrap();
    let of_leaves = (195.0 * 22.0 + 2.0) / 8192.0;
    assert!((0.98 * of_leaves..of_leaves).contains(&tapered), "{tapered}");
}

#[test]
fn switches_that_no_one_sells_have_no_price() {
    let network = network("fattree-tapered50-large-artifact");
    assert_eq!(network.cost_usd(&*network.topology("test").unwrap()), None);
}
