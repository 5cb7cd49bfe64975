//! NCCL's cost model compared with values computed by hand, and properties of its times on random machines.
//!
//! Latencies, rates and limits are those of `ncclTunerConstantsDefaults` in NVIDIA/nccl, src/graph/tuning.cc.

use unisono_collective::{Dtype, Kind, Operator};
use unisono_cost::network::nccl::{Algorithm, Call, Facts, Generation, Nccl, Protocol, Time};
use unisono_machine::{
    Machine,
    network::{Cpu, NcclFit, NcclTimes, Network},
};

const KINDS: [Kind; 5] = [Kind::Allgather, Kind::Allreduce, Kind::Broadcast, Kind::Reduce, Kind::ReduceScatter];

fn call(kind: Kind) -> Call {
    Call { kind, operator: Operator::Sum, dtype: Dtype::F32 }
}

/// Returns boxes of GPUs that NVSwitches join, with one network interface per GPU.
fn switched(architecture: Generation, boxes: u32, gpus: u32, nvlink: f64, nic: f64) -> Facts {
    Facts {
        architecture,
        cpu: Cpu::Intel,
        boxes,
        gpus,
        nvlink,
        has_nvswitch: true,
        has_equal_nvlinks: true,
        pairs: vec![0.0; (gpus * gpus) as usize],
        pcie: 24.0,
        pcie_ring: 24.0,
        nics: gpus,
        nic,
        late_us: 0.0,
        process_gpus: 1,
        network_reduces: false,
    }
}

/// Returns A100 GPUs with four NVLinks between each two GPUs.
fn mesh(gpus: u32) -> Facts {
    let count = gpus as usize;
    let pairs = (0..count * count).map(|at| if at / count == at % count { 0.0 } else { 80.0 }).collect();
    let nvlink = 80.0 * f64::from(gpus - 1);
    let facts = switched(Generation::Ampere, 1, gpus, nvlink, 0.0);
    Facts { cpu: Cpu::Amd, has_nvswitch: false, pairs, ..facts }
}

fn of(nccl: &Nccl, kind: Kind, bytes: u64, algorithm: Algorithm, protocol: Protocol) -> Time {
    let times = nccl.times(call(kind), bytes).unwrap();
    *times.iter().find(|t| (t.algorithm, t.protocol) == (algorithm, protocol)).expect("enabled")
}

fn chosen(nccl: &Nccl, kind: Kind, bytes: u64) -> (Algorithm, Protocol) {
    let best = nccl.times(call(kind), bytes).unwrap()[0];
    (best.algorithm, best.protocol)
}

#[track_caller]
fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-6 * expected.abs().max(1.0), "{found} is not {expected}");
}

#[test]
fn six_rings_of_a_mesh_of_four_are_split_into_twelve_channels() {
    let nccl = Nccl::new(mesh(4), None).unwrap();
    // Each of the 6 directed cycles has 40 GB/s, because every link of 80 GB/s is in two cycles.
    assert_eq!((nccl.graphs.ring.channels, nccl.graphs.ring.intra, nccl.graphs.ring.same), (12, 20.0, false));
    let two = Nccl::new(mesh(2), None).unwrap();
    assert_eq!((two.graphs.ring.channels, two.graphs.ring.intra, two.graphs.ring.same), (4, 20.0, true));
}

#[test]
fn latencies_and_bandwidths_of_four_a100_are_those_by_hand() {
    let nccl = Nccl::new(mesh(4), None).unwrap();
    let rows = [
        // 6.6 + 6 x 0.6; min(87.7, 120) x 4/6.
        (Algorithm::Ring, Protocol::Ll, 10.2, 87.7 * 4.0 / 6.0),
        // 14 + 6 x 1.9; min(0.92 x 240, 12 x 20) x 4/6.
        (Algorithm::Ring, Protocol::Ll128, 25.4, 220.8 * 4.0 / 6.0),
        (Algorithm::Ring, Protocol::Simple, 28.8, 160.0),
        // 6.8 + 2 x 3 x 0.6; min(0.92 x 240, 12 x 24) / 3.8 / 2.
        (Algorithm::Tree, Protocol::Ll, 10.4, 220.8 / 3.8 / 2.0),
        (Algorithm::Tree, Protocol::Ll128, 21.5, 220.8 * 7.0 / 9.0 / 2.0),
        (Algorithm::Tree, Protocol::Simple, 32.4, 110.4),
    ];
    for (algorithm, protocol, latency, bandwidth) in rows {
        let time = of(&nccl, Kind::Allreduce, 1 << 30, algorithm, protocol);
        near(time.latency_us, latency);
        near(time.bandwidth, bandwidth);
    }
    // The rings differ, so a broadcast counts every step. With Simple, a step has the latency of a tree step.
    near(of(&nccl, Kind::Broadcast, 8, Algorithm::Ring, Protocol::Simple).latency_us, 8.4 + 4.0 * 4.0);
}

#[test]
fn protocols_of_four_a100_change_at_the_sizes_at_which_measured_times_jump() {
    let nccl = Nccl::new(mesh(4), None).unwrap();
    let mib = 1 << 20;
    let rows = [
        (Kind::Allreduce, [(1, Protocol::Ll), (2, Protocol::Ll128), (4, Protocol::Ll128), (8, Protocol::Simple)]),
        (Kind::Broadcast, [(1, Protocol::Ll), (2, Protocol::Ll128), (4, Protocol::Ll128), (8, Protocol::Simple)]),
        (Kind::Allgather, [(1, Protocol::Ll), (2, Protocol::Simple), (4, Protocol::Simple), (8, Protocol::Simple)]),
    ];
    for (kind, steps) in rows {
        for (size, protocol) in steps {
            assert_eq!(chosen(&nccl, kind, size * mib), (Algorithm::Ring, protocol), "{kind} {size}");
        }
    }
}

#[test]
fn eight_hoppers_reduce_in_their_switches_at_the_rate_that_is_measured() {
    let one = Nccl::new(switched(Generation::Hopper, 1, 8, 370.8, 0.0), None).unwrap();
    assert_eq!((one.graphs.ring.channels, one.graphs.ring.intra), (12, 30.0));
    // 370.8 / 9 = 41.2, so 40 GB/s per head: 40 x 0.85 x 7/8 x 2 = 59.5. Posted busbw: 478 (NVIDIA/nccl-tests#290).
    let nvls = of(&one, Kind::Allreduce, 1 << 33, Algorithm::Nvls, Protocol::Simple);
    near(nvls.channel, 59.5);
    near(nvls.latency_us, 25.0);
    near(nvls.bandwidth * 14.0 / 8.0, 476.0);
    assert_eq!(chosen(&one, Kind::Allreduce, 1 << 33), (Algorithm::Nvls, Protocol::Simple));
    // Two and four boxes: the limit of a channel. Posted: 470 and 365.8 (NVIDIA/nccl-tests#309).
    for (boxes, channel) in [(2, 57.7), (4, 45.5)] {
        let nccl = Nccl::new(switched(Generation::Hopper, boxes, 8, 370.8, 50.0), None).unwrap();
        assert_eq!((nccl.graphs.ring.channels, nccl.graphs.ring.intra), (8, 45.0));
        near(of(&nccl, Kind::Allreduce, 1 << 33, Algorithm::NvlsTree, Protocol::Simple).channel, channel);
        assert_eq!(chosen(&nccl, Kind::Allreduce, 1 << 33), (Algorithm::NvlsTree, Protocol::Simple));
    }
}

#[test]
fn rings_between_boxes_pay_for_posts_and_for_the_network() {
    let nccl = Nccl::new(switched(Generation::Hopper, 2, 8, 370.8, 50.0), None).unwrap();
    // 30 steps, of which 2 pass the network: 6.6 + 28 x max(0.6, 1) + 2 x 2.7.
    near(of(&nccl, Kind::Allreduce, 8, Algorithm::Ring, Protocol::Ll).latency_us, 40.0);
    // Simple posts three messages: 8.4 + 28 x max(3.4, 3) + 2 x 14.
    near(of(&nccl, Kind::Allreduce, 8, Algorithm::Ring, Protocol::Simple).latency_us, 131.6);
    // Four interfaces of 25 GB/s: one ring each of 24 GB/s. Posted: 86 to 95.7 (NVIDIA/nccl-tests#175, #119).
    let four = Facts { nics: 4, ..switched(Generation::Ampere, 2, 8, 240.0, 25.0) };
    let ring = Nccl::new(four, None).unwrap().graphs.ring;
    assert_eq!((ring.channels, ring.inter), (4, 24.0));
}

#[test]
fn a_slower_network_an_amd_and_one_process_are_in_predictions_and_not_in_the_choice() {
    let facts = switched(Generation::Hopper, 2, 8, 370.8, 48.0);
    let predicted = |facts: &Facts, bytes| {
        let time = of(&Nccl::new(facts.clone(), None).unwrap(), Kind::Allreduce, bytes, Algorithm::Tree, Protocol::Ll);
        (time.seconds * 1e6, time.cost_seconds * 1e6)
    };
    let (plain, cost) = predicted(&facts, 8);
    // Each of the 14 steps inside the boxes and the 2 between boxes forwards 8 bytes at half of LL128's 36.7 GB/s.
    near(plain, cost + 16.0 * 8.0 / (36.7 * 16.0 / 15.0 / 2.0 * 1000.0));
    let slower = Facts { late_us: 10.0, cpu: Cpu::Amd, ..facts.clone() };
    let (late, same) = predicted(&slower, 8);
    // NCCL counts a slower tree between boxes of AMD CPUs, but the difference is below a nanosecond for 8 bytes.
    assert!((0.0..1e-3).contains(&(same - cost)));
    near(late - plain, 2.0 * (10.0 + 1.0) + (same - cost));
    // An iteration of 512 threads forwards 4 KiB. More bytes start more thread blocks, so the time does not grow.
    let passing = |bytes| predicted(&facts, bytes).0 - predicted(&facts, bytes).1;
    near(passing(1 << 13), passing(1 << 12));
    assert!(passing(1 << 12) > 500.0 * passing(8));
    // A process of 8 GPUs takes 44 us to start kernels. Long calls take longer than this.
    let one = Facts { process_gpus: 8, ..facts.clone() };
    near(predicted(&one, 8).0, 8.0 * 5.5);
    near(predicted(&one, 1 << 22).0, predicted(&facts, 1 << 22).0);
}

#[test]
fn nvls_trees_fill_with_the_chunks_of_the_call() {
    let mib = 1 << 20;
    let at = |nccl: &Nccl, bytes| of(nccl, Kind::Allreduce, bytes, Algorithm::NvlsTree, Protocol::Simple);
    let nccl = Nccl::new(switched(Generation::Hopper, 2, 8, 370.8, 48.0), None).unwrap();
    // 16 thread blocks send chunks of 32 KiB below 8 MiB, of 64 KiB below 64 MiB, and of 128 KiB to each of 8 heads.
    // The bytes of a round beyond those of the shortest chunks pass the tree at its rate, and two steps at 48 GB/s.
    for (bytes, longer) in [(4 * mib, 0), (8 * mib, 32), (32 * mib, 32), (64 * mib, 96), (1024 * mib, 96)] {
        let time = at(&nccl, bytes);
        let share = 1024.0 * f64::from(16 * longer);
        let fill = (8.0 * share / time.bandwidth + 2.0 * share / 48.0) / 1000.0;
        near(time.seconds, time.cost_seconds + fill / 1e6);
    }
    // Four boxes: chunks of at most 64 KiB, and four steps.
    let nccl = Nccl::new(switched(Generation::Hopper, 4, 8, 370.8, 48.0), None).unwrap();
    let time = at(&nccl, 1024 * mib);
    let share = 1024.0 * 16.0 * 32.0;
    near(1e6 * (time.seconds - time.cost_seconds), (8.0 * share / time.bandwidth + 4.0 * share / 48.0) / 1000.0);
}

#[test]
fn nvls_is_as_fast_as_the_slowest_links_of_its_boxes() {
    let gib = f64::from(1 << 30);
    let slope = |facts: &Facts| {
        let nccl = Nccl::new(facts.clone(), None).unwrap();
        let [one, two] = [1 << 33, 1 << 34].map(|bytes| {
            let time = of(&nccl, Kind::Allreduce, bytes, Algorithm::NvlsTree, Protocol::Simple);
            (time.seconds, time.cost_seconds)
        });
        (8.0 * gib / (two.0 - one.0) / 1e9, 8.0 * gib / (two.1 - one.1) / 1e9)
    };
    // NCCL counts 48 GB/s for the NVLinks of B200, too: 8 x 48 x 0.74 x 7/8 x 2 x 16/30. The links allow 8 x 48 GB/s of
    // the interfaces. Posted: 364 (8 B200 with interfaces of 400 Gb/s).
    let blackwell = switched(Generation::Blackwell, 2, 8, 721.8, 48.0);
    let (predicted, own) = slope(&blackwell);
    near(predicted, 384.0);
    near(own, 8.0 * 48.0 * 0.74 * 1.75 * 16.0 / 30.0);
    // On H100 the limit of a channel decides both times.
    let hopper = switched(Generation::Hopper, 2, 8, 370.8, 48.0);
    near(slope(&hopper).0, 8.0 * 57.7 * 16.0 / 30.0);
    near(slope(&hopper).1, slope(&hopper).0);
    // One box: 721.8 / 9 GB/s per head, 8 x 80.2 x 0.74 x 7/8 x 2 x 8/14; NCCL counts 80 and limits all to 8 x 90.
    // Posted: 484 (8 GB200).
    let one = Nccl::new(switched(Generation::Blackwell, 1, 8, 721.8, 0.0), None).unwrap();
    let nvls = of(&one, Kind::Allreduce, 1 << 33, Algorithm::Nvls, Protocol::Simple);
    near(nvls.bandwidth, 720.0 * 8.0 / 14.0);
    near(1e6 * nvls.seconds, 25.0 + 8.0 * gib / 1e3 / (8.0 * 721.8 / 9.0 * 0.74 * 1.75 * 8.0 / 14.0));
    // NCCL corrects single sizes of Blackwell on CPUs of Intel and AMD only.
    let arm = Facts { cpu: Cpu::Arm, ..blackwell.clone() };
    let own = |facts: &Facts| {
        let nccl = Nccl::new(facts.clone(), None).unwrap();
        of(&nccl, Kind::Allreduce, 1 << 29, Algorithm::NvlsTree, Protocol::Simple).cost_seconds
    };
    assert!(own(&arm) < 0.95 * own(&blackwell));
}

#[test]
fn every_algorithm_is_enabled_only_where_nccl_enables_it() {
    let all = |facts: &Facts, kind| {
        let times = Nccl::new(facts.clone(), None).unwrap().times(call(kind), 1 << 20).unwrap();
        times.into_iter().map(|t| t.algorithm).collect::<Vec<_>>()
    };
    for facts in machines() {
        for kind in KINDS {
            let found = all(&facts, kind);
            let has = |algorithm| found.contains(&algorithm);
            assert!(has(Algorithm::Ring));
            assert_eq!(has(Algorithm::Tree), kind == Kind::Allreduce);
            assert!(!has(Algorithm::Nvls) || (facts.boxes == 1 || facts.network_reduces) && facts.has_nvswitch);
            assert!(!has(Algorithm::NvlsTree) || facts.boxes > 1 && kind == Kind::Allreduce);
            assert!(!(has(Algorithm::CollnetChain) || has(Algorithm::CollnetDirect)) || facts.network_reduces);
            assert!(!has(Algorithm::Pat) || facts.gpus == 1 && facts.boxes > 1);
        }
    }
    let sums = Call { operator: Operator::Prod, ..call(Kind::Allreduce) };
    let one = Nccl::new(switched(Generation::Hopper, 1, 8, 370.8, 0.0), None).unwrap();
    assert!(one.times(sums, 1 << 30).unwrap().iter().all(|t| t.algorithm != Algorithm::Nvls));
    assert!(one.times(call(Kind::Alltoall), 8).unwrap_err().contains("alltoall"));
}

/// Returns machines of all architectures, with and without NVSwitches, on one and several boxes.
fn machines() -> Vec<Facts> {
    let mut numbers = unisono_base::Random(7);
    let mut random = move |most: u64| numbers.below(most);
    let architectures = [Generation::Volta, Generation::Ampere, Generation::Hopper, Generation::Blackwell];
    (0..60)
        .map(|_| {
            let (boxes, gpus) = (1 + random(5) as u32, 1 + random(8) as u32);
            let boxes = if boxes * gpus < 2 { 2 } else { boxes };
            let architecture = architectures[random(4) as usize];
            let facts = switched(architecture, boxes, gpus, 60.0 + random(700) as f64, 6.0 + random(94) as f64);
            let nics = 1 + random(8) as u32;
            let cpu = if random(2) == 0 { Cpu::Intel } else { Cpu::Amd };
            match random(3) {
                0 if gpus > 1 && gpus < 5 => Facts { boxes, nics, cpu, ..mesh(gpus) },
                1 => Facts { nics, cpu, has_nvswitch: false, nvlink: 0.0, ..facts },
                _ => Facts { nics, cpu, network_reduces: boxes > 1 && random(2) == 0, ..facts },
            }
        })
        .map(|facts| if facts.boxes > 1 && facts.nic == 0.0 { Facts { nic: 12.0, ..facts } } else { facts })
        .collect()
}

#[test]
fn the_choice_is_the_least_and_times_grow_with_bytes() {
    for facts in machines() {
        let nccl = Nccl::new(facts, None).unwrap();
        for kind in KINDS {
            let mut before: Vec<Time> = Vec::new();
            for power in 3..34 {
                let times = nccl.times(call(kind), 1 << power).unwrap();
                assert!(times.iter().all(|t| t.cost_seconds >= times[0].cost_seconds && t.seconds > 0.0));
                for time in &times {
                    let last = before.iter().find(|t| (t.algorithm, t.protocol) == (time.algorithm, time.protocol));
                    // The times of trees may fall with the size, because their corrections are factors of single sizes.
                    // The prediction of an NVLS tree has no such correction.
                    let is_corrected = matches!(time.algorithm, Algorithm::Tree | Algorithm::NvlsTree);
                    let grows = last.is_none_or(|last| {
                        (is_corrected || time.cost_seconds > last.cost_seconds)
                            && (time.algorithm == Algorithm::Tree || time.seconds >= 0.999 * last.seconds)
                    });
                    assert!(grows, "{kind} {time:?} after {last:?}");
                }
                before = times;
            }
        }
    }
}

#[test]
fn fitted_prices_change_times_and_not_the_choice() {
    let fit = NcclFit {
        algorithm: "ring".to_owned(),
        protocol: "ll".to_owned(),
        across_boxes: false,
        start_us: 10.0,
        hop_us: 2.0,
        network_hop_us: 0.0,
        sent_ns_per_byte: 0.2,
        worked_ns_per_byte: 0.1,
        points: 6,
    };
    let fitted = NcclTimes { measured: String::new(), fits: vec![fit] };
    let (own, other) = (Nccl::new(mesh(4), None).unwrap(), Nccl::new(mesh(4), Some(fitted)).unwrap());
    // 16 KiB keep one channel busy: 512 threads x 8 bytes x 4 ranks. The channel sends 1.5 times the bytes and works on
    // 1.75 times the bytes.
    let time = of(&other, Kind::Allreduce, 16384, Algorithm::Ring, Protocol::Ll);
    near(time.seconds * 1e6, 10.0 + 6.0 * 2.0 + (1.5 * 0.2 + 1.75 * 0.1) * 16.384);
    assert!(time.is_fitted);
    for power in 3..30 {
        assert_eq!(chosen(&own, Kind::Allreduce, 1 << power), chosen(&other, Kind::Allreduce, 1 << power));
    }
}

#[test]
fn fitted_bytes_of_trees_take_as_much_longer_on_more_boxes_as_by_the_own_model() {
    for (algorithm, name) in [(Algorithm::Tree, "tree"), (Algorithm::NvlsTree, "nvls_tree")] {
        let fit = NcclFit {
            algorithm: name.to_owned(),
            protocol: "simple".to_owned(),
            across_boxes: true,
            start_us: 5.0,
            hop_us: 1.0,
            network_hop_us: 3.0,
            sent_ns_per_byte: 0.03,
            worked_ns_per_byte: 0.03,
            points: 2,
        };
        let fitted = NcclTimes { measured: String::new(), fits: vec![fit] };
        // The time of further bytes by fitted prices, divided by their time by NCCL's own model.
        let quotient = |boxes| {
            let facts = switched(Generation::Hopper, boxes, 8, 370.8, 50.0);
            let [fitted, own] = [Some(fitted.clone()), None].map(|fitted| {
                let nccl = Nccl::new(facts.clone(), fitted).unwrap();
                let seconds = |bytes| of(&nccl, Kind::Allreduce, bytes, algorithm, Protocol::Simple).seconds;
                seconds(1 << 33) - seconds(1 << 32)
            });
            fitted / own
        };
        for boxes in [3, 4, 8] {
            near(quotient(boxes), quotient(2));
        }
    }
}

#[test]
fn facts_are_read_from_presets_by_links_and_interfaces() {
    let read = |machine: Machine| {
        let network = machine.get::<Network>().unwrap().data_sheet();
        let topology = network.topology(&network.name).unwrap();
        let nodes: Vec<u32> = (0..topology.accelerators()).collect();
        Facts::new(&network, &*topology, &nodes, false)
    };
    let box_of = |name: &str| read(Machine::preset(name).unwrap()).unwrap();
    let hopper = box_of("dgx-h100");
    assert!(hopper.has_nvswitch);
    near(hopper.nvlink, 18.0 * 20.6);
    let two = read(Machine::preset("dgx-h100").unwrap().with_nodes(2).unwrap()).unwrap();
    assert_eq!((two.boxes, two.gpus, two.nics, two.nic), (2, 8, 8, 50.0));
    let mesh = box_of("ndv2");
    assert!(!mesh.has_nvswitch);
    near(mesh.nvlink, 120.0);
    // GPUs 0 and 1 have a double link.
    near(mesh.pairs[1], 40.0);
    // GPUs with PCIe cables to their only CPU, and NVLinks between the first two GPUs. The CPU must not be read as an
    // NVSwitch.
    for gpus in [2, 3, 4] {
        let mut edges: String = (0..gpus).map(|gpu| format!("{gpu} {gpus} gbps=252 measured=192\n")).collect();
        edges += "0 1 gbps=2400\n";
        let text = format!(
            "name = 'pairs'\nkind = 'network'\nplanes = 1\nlink_gbps = 2400\nlink_latency_ns = 1\ninput_latency_ns = 0\n\
             output_latency_ns = 0\npacket_bytes = 4096\nbuffer_bytes = 65536\n[gpu]\narchitecture = 'ampere'\nnvlinks = \
             12\n[topology]\nname = 'graph'\naccelerators = {gpus}\nedges = '''\n{edges}'''\n"
        );
        let pairs = read(Machine::from_toml(&text, "pairs").unwrap()).unwrap();
        assert!(!pairs.has_nvswitch);
        near(pairs.pcie, 31.5);
        let counted = Facts { pcie: 24.0, ..pairs.clone() };
        let nccl = Nccl::new(pairs.with_pcie_of(&counted), None).unwrap();
        // A ring of all GPUs uses PCIe, unless the job has only the two GPUs with NVLinks.
        assert_eq!((nccl.graphs.over_nvlink, nccl.facts.pcie), (gpus == 2, 24.0));
    }
    let refused = read(Machine::preset("mi300x").unwrap()).unwrap_err();
    assert!(refused.contains("cdna3") && refused.contains("--as rccl"), "{refused}");
    let refused = read(Machine::preset("fattree-small").unwrap()).unwrap_err();
    assert!(refused.contains("[gpu]") && refused.contains("architecture"), "{refused}");
}

#[test]
fn rings_over_pcie_take_the_least_link_between_the_cpus() {
    let facts = |cpu: &str, gpus: u32, between: f64| {
        // Nodes `gpus` and `gpus + 1` are the CPUs. Each has cables to every second GPU.
        let of_second = u32::from(between > 0.0);
        let mut edges: String =
            (0..gpus).map(|gpu| format!("{gpu} {} gbps=384\n", gpus + of_second * (gpu % 2))).collect();
        if between > 0.0 {
            edges += &format!("{gpus} {} gbps={}\n", gpus + 1, 8.0 * between);
        }
        let text = format!(
            "name = 'pcie'\nkind = 'network'\nplanes = 1\nlink_gbps = 384\nlink_latency_ns = 1\ninput_latency_ns = 0\n\
             output_latency_ns = 0\npacket_bytes = 4096\nbuffer_bytes = 65536\n[gpu]\narchitecture = 'ampere'\nnvlinks = \
             0\ncpu = '{cpu}'\n[topology]\nname = 'graph'\naccelerators = {gpus}\nedges = '''\n{edges}'''\n"
        );
        let machine = Machine::from_toml(&text, "pcie").unwrap();
        let network = machine.get::<Network>().unwrap();
        let topology = network.topology("pcie").unwrap();
        Facts::new(network, &*topology, &(0..gpus).collect::<Vec<_>>(), false).unwrap()
    };
    for gpus in 2..=8 {
        // A single CPU has cables to GPUs only. It must not be read as an NVSwitch if GPUs have no NVLinks.
        let one = facts("amd", gpus, 0.0);
        assert!(!one.has_nvswitch);
        near(one.pcie, 48.0);
        near(one.pcie_ring, 48.0);
        for between in [10.0, 22.0, 64.0] {
            near(facts("amd", gpus, between).pcie_ring, 48.0_f64.min(between));
            // Through an Intel CPU, messages between GPUs have 5/6 of the rate of PCIe.
            let intel = facts("intel", gpus, between);
            near(intel.pcie_ring, 40.0_f64.min(between));
            let ring = Nccl::new(intel, None).unwrap().graphs.ring;
            assert!(f64::from(ring.channels) * ring.intra <= 40.0_f64.min(between));
        }
    }
}

/// Sums in NVSwitches require equally many NVLinks of all GPUs; rings have the rate of the GPU with the fewest.
#[test]
fn the_gpu_with_the_fewest_nvlinks_decides() {
    for boxes in [1, 2] {
        let whole = switched(Generation::Hopper, boxes, 8, 370.8, 50.0);
        let half = Facts { nvlink: 185.4, has_equal_nvlinks: false, ..whole.clone() };
        let [whole, half] = [whole, half].map(|facts| Nccl::new(facts, None).unwrap());
        let is_nvls = |time: &Time| matches!(time.algorithm, Algorithm::Nvls | Algorithm::NvlsTree);
        let all = half.times(call(Kind::Allreduce), 1 << 30).unwrap();
        assert!(whole.times(call(Kind::Allreduce), 1 << 30).unwrap().iter().any(is_nvls) && !all.iter().any(is_nvls));
        let ring = |nccl: &Nccl| of(nccl, Kind::Allreduce, 1 << 30, Algorithm::Ring, Protocol::Simple).bandwidth;
        assert!(ring(&half) <= 185.4 * 8.0 / 14.0 && ring(&half) < ring(&whole) || boxes > 1);
    }
}
