//! Compares the model that plans use on networks with packets: the same schedules on the same networks.

use unisono_algorithms::{Case, Params, Profile, Ranks, find, ranks::Extents};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_cost::network::NetworkModel;
use unisono_lower::tasks::draft;
use unisono_machine::{Machine, network::Network};
use unisono_sim::network::{Interconnect, Options, run};

/// Returns a network of one plane; hosts and reductions cost nothing.
fn network(topology: &str) -> Network {
    let text = format!(
        "name = 'test'\nkind = 'network'\nplanes = 1\nlink_gbps = 400\nlink_latency_ns = 40\ninput_latency_ns = 20\n\
         output_latency_ns = 20\npacket_bytes = 8192\nbuffer_bytes = 33554432\n[topology]\n{topology}\n"
    );
    Machine::from_toml(&text, "test").unwrap().get::<Network>().unwrap().clone()
}

/// Returns the time in nanoseconds by the model, and by packets.
fn both(network: &Network, places: &[u32], extents: [u32; 2], name: &str, kind: Kind, elements: u64) -> [f64; 2] {
    let ranks = extents.iter().product();
    let collective = Collective::new(kind, ranks, elements, 0, Operator::Sum, Dtype::F32).unwrap();
    let case = Case::on_ranks(collective, Ranks { extents: Extents::new(&extents), ..Ranks::default() });
    let algorithm = find(name).unwrap();
    let model = NetworkModel::new(network, places.to_vec()).unwrap();
    let schedule = algorithm.build(&case, &Params::new()).unwrap().schedule;
    let modelled = match algorithm.profile(&case, &Params::new()) {
        Some(Profile::Exchanges(exchanges)) => model.exchanges_ns(&exchanges),
        _ => model.schedule_ns(&schedule, model.places()).unwrap(),
    };
    let options = Options { places: places.to_vec(), ..Options::default() };
    let graph = draft(&schedule).unwrap();
    let found = run(&graph, &Interconnect::new(network).unwrap(), &options).unwrap();
    assert_eq!(found.hosts.left_over, 0);
    [modelled, found.hosts.makespan as f64 / 1e3]
}

/// Compares the timetable of a schedule with packets: segments overlap, trees share the links of their roots, and ranks
/// run ahead.
#[test]
fn schedules_take_what_their_timetable_says() {
    let cases = [
        ("binomial", "", Kind::Broadcast),
        ("binomial", "segment=65536", Kind::Broadcast),
        ("binomial", "segment=65536", Kind::Reduce),
        ("pipelined-chain", "segment=65536", Kind::Broadcast),
        ("scatter-allgather", "allgather=ring", Kind::Broadcast),
        ("reduce-scatter-gather", "", Kind::Reduce),
        ("recursive-doubling", "", Kind::Allreduce),
        ("recursive-doubling", "", Kind::Allgather),
        ("dual-rings", "", Kind::Allreduce),
        ("pairwise", "", Kind::Alltoall),
        ("balanced-shift", "", Kind::Alltoall),
    ];
    for topology in ["name = 'torus'\ndims = [4, 4]", "name = 'hxmesh'\nboard = [2, 2]\nboards = [2, 2]"] {
        let network = network(topology);
        let (places, interconnect) = (all(&network), Interconnect::new(&network).unwrap());
        let model = NetworkModel::new(&network, places.clone()).unwrap();
        let options = Options { places, ..Options::default() };
        for (name, params, kind) in cases {
            for elements in [1 << 10, 1 << 20] {
                let collective = Collective::new(kind, 16, elements, 0, Operator::Sum, Dtype::F32).unwrap();
                let case = Case::on_ranks(collective, Ranks { extents: Extents::new(&[4, 4]), ..Ranks::default() });
                let params = params.split_once('=').map_or_else(Params::new, |(k, v)| Params::new().with(k, v));
                let schedule = find(name).unwrap().build(&case, &params).unwrap().schedule;
                let timetable = model.schedule_ns(&schedule, model.places()).unwrap();
                let packets =
                    run(&draft(&schedule).unwrap(), &interconnect, &options).unwrap().hosts.makespan as f64 / 1e3;
                let ratio = timetable / packets;
                // Packets of an alltoall also wait for buffers, which this timetable does not model.
                let within = if kind == Kind::Alltoall { 0.55..=1.3 } else { 0.75..=1.25 };
                assert!(within.contains(&ratio), "{topology} {name} {params} {kind} {elements}: {timetable} {packets}");
            }
        }
    }
}

/// Returns a line of accelerators whose buffers hold `places` packets of 4 KiB, behind links of 50 GB/s and 2 µs.
fn line_of_small_buffers(accelerators: u32, places: u32) -> Network {
    let edges: String = (1..accelerators).map(|node| format!("{} {node}\n", node - 1)).collect();
    let text = format!(
        "name = 'test'\nkind = 'network'\nplanes = 1\nlink_gbps = 400\nlink_latency_ns = 2000\ninput_latency_ns = 0\n\
         output_latency_ns = 0\npacket_bytes = 4096\nbuffer_bytes = {}\n[topology]\nname = 'graph'\n\
         accelerators = {accelerators}\nedges = '''\n{edges}'''\n",
        4096 * places
    );
    Machine::from_toml(&text, "test").unwrap().get::<Network>().unwrap().clone()
}

/// Each of the B places of a buffer is used once in D (two latencies and the time s of a packet), so the last of n
/// packets starts (n / B - 1) D + (B - 1) s after the first. Packets that wait behind a link occupy their places
/// longer.
#[test]
fn small_buffers_hold_links_up() {
    let times = |network: &Network, name: &str, kind: Kind, segment: u32, elements: u64| {
        let places = all(network);
        let ranks = u32::try_from(places.len()).unwrap();
        let collective = Collective::new(kind, ranks, elements, 0, Operator::Sum, Dtype::F32).unwrap();
        let case = Case::on_ranks(collective, Ranks::default());
        let params = if segment > 0 { Params::new().with("segment", segment) } else { Params::new() };
        let schedule = find(name).unwrap().build(&case, &params).unwrap().schedule;
        let model = NetworkModel::new(network, places.clone()).unwrap();
        let timetable = model.schedule_ns(&schedule, &places).unwrap();
        let options = Options { places, ..Options::default() };
        let packets = run(&draft(&schedule).unwrap(), &Interconnect::new(network).unwrap(), &options).unwrap();
        [timetable, packets.hosts.makespan as f64 / 1e3]
    };
    let packet = 4096.0 / 50.0;
    for (places, packets) in [(4, 64), (4, 4096), (16, 4096)] {
        let [timetable, simulated] =
            times(&line_of_small_buffers(2, places), "binomial", Kind::Broadcast, 0, 1024 * packets);
        let (places, packets) = (f64::from(places), packets as f64);
        let alone = (packets / places - 1.0) * (4000.0 + packet) + places * packet + 2000.0;
        assert!((simulated / alone - 1.0).abs() < 1e-3, "{places} {packets}: {simulated} {alone}");
        assert!((timetable / alone - 1.0).abs() < 0.01, "{places} {packets}: {timetable} {alone}");
    }
    // A segment of 1 KiB takes one place, as a full packet does. In an alltoall, messages share the links in the
    // middle.
    let cases = [
        ("pipelined-chain", Kind::Broadcast, 1024),
        ("pipelined-chain", Kind::Broadcast, 65_536),
        ("binomial", Kind::Broadcast, 1024),
        ("balanced-shift", Kind::Alltoall, 0),
        ("ring", Kind::Allgather, 0),
    ];
    for (name, kind, segment) in cases {
        let [timetable, simulated] = times(&line_of_small_buffers(3, 16), name, kind, segment, 1 << 20);
        let most = if name == "ring" { 0.15 } else { 0.05 };
        assert!((timetable / simulated - 1.0).abs() < most, "{name} {segment}: {timetable} {simulated}");
    }
}

fn all(network: &Network) -> Vec<u32> {
    (0..network.topology("test").unwrap().accelerators()).collect()
}

/// On a ring, on dual rings and on a square in stages, no rank waits for another, and the model is exact. In other
/// cases, ranks that end early continue before the others, which rounds do not model.
#[test]
fn allreduces_take_what_the_model_says() {
    for (topology, extents) in [
        ("name = 'torus'\ndims = [8, 8]", [8, 8]),
        ("name = 'torus'\ndims = [4, 16]", [4, 16]),
        ("name = 'hxmesh'\nboard = [2, 2]\nboards = [4, 4]", [8, 8]),
    ] {
        let network = network(topology);
        let (square, adaptive) = (extents[0] == extents[1], topology.contains("hxmesh"));
        for (name, within) in [
            ("ring", if adaptive { 0.05 } else { 0.001 }),
            // The messages from row to row have several paths. Credits choose worse paths than the model.
            ("bidirectional-ring", if adaptive { 0.5 } else { 0.001 }),
            ("dual-rings", 0.001),
            ("bucket", if square { 0.05 } else { 0.25 }),
            ("swing", 0.25),
            ("rabenseifner", 0.06),
            ("recursive-doubling", 0.3),
        ] {
            // The longest messages take most of the time, so except in the long run only one algorithm sends them.
            let is_long = name == "dual-rings" || crate::soak::is_on();
            for &bytes in if is_long { &[1u64 << 12, 1 << 20, 1 << 25][..] } else { &[1 << 12, 1 << 20] } {
                let [modelled, packets] = both(&network, &all(&network), extents, name, Kind::Allreduce, bytes / 4);
                let ratio = packets / modelled;
                assert!((ratio - 1.0).abs() <= within, "{topology} {name} {bytes}: {modelled} {packets}");
            }
        }
    }
}

/// A sub-mesh around failed boards: rows 0, 1 and 3 of boards, columns 0 and 2; 6 x 4 ranks.
#[test]
fn collectives_run_on_a_virtual_sub_mesh() {
    let network = network("name = 'hxmesh'\nboard = [2, 2]\nboards = [4, 4]");
    let boards = network.topology("test").unwrap().boards().unwrap();
    let (places, extents) = boards.accelerators(&[0, 1, 3], &[0, 2]);
    assert_eq!((extents, places[1], places[2], places[23]), ([6, 4], 1, 4, 61));
    for (name, bytes) in [("dual-rings", 1u64 << 22), ("bucket", 1 << 22), ("bucket", 1 << 10)] {
        let [modelled, packets] = both(&network, &places, extents, name, Kind::Allreduce, bytes / 4);
        assert!((packets / modelled - 1.0).abs() < 0.1, "{name} {bytes}: {modelled} {packets}");
        // If rank k is on accelerator k, the ranks do not form a mesh, and the collective takes longer.
        let line: Vec<u32> = (0..24).collect();
        let [_, elsewhere] = both(&network, &line, extents, name, Kind::Allreduce, bytes / 4);
        assert!(elsewhere > 1.3 * packets, "{name} {bytes}: {elsewhere} {packets}");
    }
}

#[test]
fn an_alltoall_by_balanced_shift() {
    for (topology, extents) in
        [("name = 'torus'\ndims = [8, 8]", [8, 8]), ("name = 'hxmesh'\nboard = [2, 2]\nboards = [4, 4]", [8, 8])]
    {
        let network = network(topology);
        let times = |name| both(&network, &all(&network), extents, name, Kind::Alltoall, 1 << 16);
        let ([modelled, packets], [_, in_rounds]) = (times("balanced-shift"), times("pairwise"));
        // The model is the time of the busiest link. Packets are also delayed when they meet on their paths.
        assert!((1.0..1.6).contains(&(packets / modelled)), "{topology}: {modelled} {packets}");
        assert!(in_rounds > 1.5 * packets, "{topology}: {in_rounds} {packets}");
    }
}

/// Few cables join any two groups of a dragonfly. So messages between all pairs take the time of the sum of loads only
/// if the ranks of a group send to all groups at any time.
#[test]
fn messages_between_all_pairs_load_all_groups_at_once() {
    for shape in ["p = 4\na = 4\nh = 4\ng = 8", "p = 4\na = 8\nh = 4\ng = 4"] {
        let network = network(&format!("name = 'dragonfly'\n{shape}"));
        for (name, kind, elements) in [
            ("balanced-shift", Kind::Alltoall, 1 << 14),
            ("balanced-shift", Kind::Allgather, 1 << 14),
            ("all-pairs", Kind::Allreduce, 1 << 21),
        ] {
            let [modelled, packets] = both(&network, &all(&network), [8, 16], name, kind, elements);
            assert!((0.9..1.15).contains(&(packets / modelled)), "{shape} {name} {kind}: {modelled} {packets}");
        }
    }
}
