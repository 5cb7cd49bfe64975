//! RCCL's cost model compared with values computed by hand, and properties of its times.
//!
//! Latencies and shares are those of `baseLat`, `tuning_model_4` and `tuning_model_5` of RCCL's src/graph/tuning.cc.

use unisono_collective::{Kind, Operator};
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
    // A bus bandwidth of 336 GB/s is 192 GB/s of an allreduce on 8 ranks.
    near_us(of(&rccl, Kind::Allreduce, 1 << 30, ring, Protocol::Simple), 17.0 + 14.0 * 2.1 + 1_073_741.824 / 192.0);
    near_us(of(&rccl, Kind::Allreduce, 8, ring, Protocol::Ll), 12.0 + 14.0 * 0.8 + 8e-3 / (0.08 * 192.0));
    // A tree has the factor 1.0 at 4 KiB, and 0.1 at 64 MiB.
    near_us(of(&rccl, Kind::Allreduce, 1 << 12, tree, Protocol::Ll), 12.0 + 14.0 * 0.9 + 4.096 / (0.06 * 168.0));
    near_us(of(&rccl, Kind::Allreduce, 1 << 26, tree, Protocol::Ll), 12.0 + 14.0 * 0.9 + 67_108.864 / (0.006 * 168.0));
    assert_eq!(of(&rccl, Kind::Allreduce, 1 << 20, tree, Protocol::Simple), None);
    assert_eq!(of(&rccl, Kind::Allreduce, 1 << 20, ring, Protocol::Ll128), None);
    // With LL, a broadcast has 1.65 times the usual rate. With Simple, its steps take the times of tree steps.
    near_us(of(&rccl, Kind::Broadcast, 1 << 20, ring, Protocol::Ll), 12.0 + 6.4 + 1048.576 / (0.08 * 1.65 * 336.0));
    near_us(of(&rccl, Kind::Broadcast, 1 << 20, ring, Protocol::Simple), 17.0 + 8.0 * 2.3 + 1048.576 / 336.0);
    let first = rccl.times(Kind::Allreduce, 1 << 30).unwrap()[0];
    assert_eq!((first.channels, first.channel), (Some(28), Some(12.0)));
}

#[test]
fn files_of_msccl_run_allreduces_of_some_sizes_on_8_mi300x() {
    let rccl = read(&Machine::preset("mi300x").unwrap(), None).unwrap();
    let file = |bytes: u64| rccl.file(Kind::Allreduce, Operator::Sum, bytes / 4, bytes);
    // 256 chunks of 4 bytes, on 4 channels up to 64 KiB; on 8 channels with 512 chunks up to 16 MiB.
    let first: Vec<_> = (1..28).map(|power| file(1 << power).map(|f| (f.protocol, f.channels))).collect();
    let of = |from: u32, to: u32, what| (from..to).map(move |_| what);
    let (ll, simple) = (Protocol::Ll, Protocol::Simple);
    let expected = of(1, 10, None).chain(of(10, 17, Some((ll, 4)))).chain(of(17, 19, Some((ll, 8))));
    let expected = expected.chain(of(19, 25, Some((simple, 8)))).chain(of(25, 28, None));
    assert_eq!(first, expected.collect::<Vec<_>>());
    // Calls with other counts of elements, operators or collectives use RCCL's own choice.
    assert_eq!(file(4 * 300), None);
    assert_eq!(rccl.file(Kind::Allreduce, Operator::Xor, 256, 1024), None);
    assert_eq!(rccl.file(Kind::Allgather, Operator::Sum, 256, 1024), None);
    // Two steps of LL: a block sends and receives an eighth of the vector on each of 4 channels at 1.5 GB/s, twice, and
    // adds an eighth of that for 7 other GPUs at twice the rate.
    let part = 8192.0 / 4.0 / 1.5;
    let us = 12.0 + 2.0 * 0.8 + (2.0 * part + 7.0 * part / 16.0) / 1000.0;
    assert!((file(1 << 16).unwrap().seconds * 1e6 - us).abs() < 1e-6);
    // The links of 48 GB/s limit Simple.
    let us = 17.0 + 2.0 * 2.1 + (2.0 * 131_072.0 / 48.0 + 7.0 * 131_072.0 / 8.0 / 16.0 / 10.5) / 1000.0;
    assert!((file(1 << 20).unwrap().seconds * 1e6 - us).abs() < 1e-6);
    let boxes = read(&Machine::preset("mi250").unwrap(), None).unwrap();
    assert_eq!(boxes.file(Kind::Allreduce, Operator::Sum, 256, 1024), None);
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
