//! RCCL's cost model compared with values computed by hand, and its laws.
//!
//! Latencies and shares are those of `baseLat`, `tuning_model_4` and `tuning_model_5` of RCCL's src/graph/tuning.cc.

use unisono_collective::Kind;
use unisono_cost::network::{
    nccl::{Algorithm, Protocol},
    rccl::{Rccl, Time},
};
use unisono_machine::{Machine, network::Network};

const KINDS: [Kind; 5] = [Kind::Allgather, Kind::Allreduce, Kind::Broadcast, Kind::Reduce, Kind::ReduceScatter];

fn read(machine: &Machine, ranks: Option<u32>) -> Result<Rccl, String> {
    let network = machine.get::<Network>().unwrap();
    let topology = network.topology(&network.name).unwrap();
    let nodes: Vec<u32> = (0..ranks.unwrap_or_else(|| topology.accelerators())).collect();
    Rccl::new(network, &*topology, &nodes)
}

fn of(rccl: &Rccl, kind: Kind, bytes: u64, algorithm: Algorithm, protocol: Protocol) -> Option<Time> {
    rccl.times(kind, bytes).unwrap().into_iter().find(|t| (t.algorithm, t.protocol) == (algorithm, protocol))
}

#[track_caller]
fn near_us(found: Option<Time>, expected: f64) {
    let found = found.expect("enabled").seconds * 1e6;
    assert!((found - expected).abs() <= 1e-6 * expected, "{found} us is not {expected} us");
}

#[test]
fn times_of_8_mi300x_are_those_by_hand() {
    let rccl = read(&Machine::preset("mi300x").unwrap(), None).unwrap();
    let (ring, tree) = (Algorithm::Ring, Algorithm::Tree);
    // 336 GB/s on the bus are 192 GB/s of an allreduce on 8 ranks.
    near_us(of(&rccl, Kind::Allreduce, 1 << 30, ring, Protocol::Simple), 17.0 + 14.0 * 2.1 + 1_073_741.824 / 192.0);
    near_us(of(&rccl, Kind::Allreduce, 8, ring, Protocol::Ll), 12.0 + 14.0 * 0.8 + 8e-3 / (0.08 * 192.0));
    // A tree has the factor 1.0 at 4 KiB, and 0.1 at 64 MiB.
    near_us(of(&rccl, Kind::Allreduce, 1 << 12, tree, Protocol::Ll), 12.0 + 14.0 * 0.9 + 4.096 / (0.06 * 168.0));
    near_us(of(&rccl, Kind::Allreduce, 1 << 26, tree, Protocol::Ll), 12.0 + 14.0 * 0.9 + 67_108.864 / (0.006 * 168.0));
    assert_eq!(of(&rccl, Kind::Allreduce, 1 << 20, tree, Protocol::Simple), None);
    assert_eq!(of(&rccl, Kind::Allreduce, 1 << 20, ring, Protocol::Ll128), None);
    // A broadcast takes 1.65 times the rate of LL, and with Simple the steps of a tree.
    near_us(of(&rccl, Kind::Broadcast, 1 << 20, ring, Protocol::Ll), 12.0 + 6.4 + 1048.576 / (0.08 * 1.65 * 336.0));
    near_us(of(&rccl, Kind::Broadcast, 1 << 20, ring, Protocol::Simple), 17.0 + 8.0 * 2.3 + 1048.576 / 336.0);
    let first = rccl.times(Kind::Allreduce, 1 << 30).unwrap()[0];
    assert_eq!((first.channels, first.channel), (Some(28), Some(12.0)));
}

#[test]
fn the_least_time_comes_first_and_rings_of_one_box_grow_with_the_bytes() {
    for name in ["mi300x", "mi250"] {
        let rccl = read(&Machine::preset(name).unwrap(), None).unwrap();
        for kind in KINDS {
            let mut before: Option<f64> = None;
            for power in 0..36 {
                let times = rccl.times(kind, 1 << power).unwrap();
                assert!(times.is_sorted_by_key(|time| time.seconds));
                assert!(times.iter().all(|time| time.seconds.is_finite() && time.bandwidth > 0.0));
                let ring = times.iter().find(|t| (t.algorithm, t.protocol) == (Algorithm::Ring, Protocol::Simple));
                let seconds = ring.unwrap().seconds;
                assert!(before.is_none_or(|before| before < seconds));
                before = Some(seconds);
            }
        }
        assert!(rccl.times(Kind::Alltoall, 1 << 20).unwrap_err().contains("alltoall"));
    }
}

#[test]
fn boxes_that_are_not_recognised_are_refused() {
    let part = read(&Machine::preset("mi300x").unwrap(), Some(4)).err().unwrap();
    assert!(part.contains("4 of 8 GPUs"), "{part}");
    let other = read(&Machine::preset("dgx-h100").unwrap(), None).err().unwrap();
    assert!(other.contains("hopper"), "{other}");
    let boxes = read(&Machine::preset("mi250").unwrap().with_nodes(2).unwrap(), None).unwrap();
    let small = boxes.times(Kind::Allreduce, 8).unwrap()[0];
    // 2 x 15 steps inside the boxes and two between them, in a tree with LL.
    assert_eq!((small.algorithm, small.protocol), (Algorithm::Tree, Protocol::Ll));
    assert!((small.latency_us - (12.0 + 30.0 * 0.8 + 2.0 * 32.2)).abs() < 1e-9);
}
