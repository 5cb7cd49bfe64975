//! Collectives of every kind on switches: built, proved, lowered to registers and run; times equal closed forms.

use unisono_algorithms::{ALGORITHMS, Case, Params, Profile, switches::Site};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_lower::switches::{Configured, SwitchPlacement, loads, lower, raise};
use unisono_machine::{InNetwork, Machine};
use unisono_schedule::{
    interpret,
    verify::{Method, Verified},
};
use unisono_sim::collective_engine::{Run, digest, input, run, run_beside};

fn preset(name: &str, nodes: u32) -> InNetwork {
    let m = Machine::preset(name).unwrap().get::<InNetwork>().unwrap().clone();
    m.with_nodes(nodes).unwrap()
}

/// Returns a machine small enough for the interpreter: 2x2 meshes, 4 sockets a node.
fn small(nodes: u32) -> InNetwork {
    let m = preset("piuma", 1);
    let m = InNetwork { cores_per_socket: 4, mesh: [2, 2], sockets_per_node: 4, ..m };
    InNetwork { socket_ports: vec![0, 1], node_ports: vec![3, 2], ..m }.with_nodes(nodes).unwrap()
}

fn of(kind: Kind, site: &Site, elements: u64, root: u64) -> Collective {
    Collective::new(kind, site.ranks(), elements, root, Operator::Sum, Dtype::F32).unwrap()
}

fn embed(site: &Site, c: Collective, embeddings: u32) -> Configured {
    let unit = ALGORITHMS.iter().find(|a| a.name() == "in-network").unwrap();
    let params = Params::new().with("embeddings", embeddings);
    let case = Case::on_switches(c, site);
    unit.supports(&case, &params).unwrap();
    let Some(Profile::Registers(made)) = unit.profile(&case, &params) else { panic!("it has registers") };
    made
}

/// Returns the schedule and placement that the algorithm builds, which must equal those raised from its registers.
fn placed(site: &Site, c: Collective, embeddings: u32) -> (Verified<'static>, SwitchPlacement) {
    let unit = ALGORITHMS.iter().find(|a| a.name() == "in-network").unwrap();
    let built = unit.build(&Case::on_switches(c, site), &Params::new().with("embeddings", embeddings)).unwrap();
    let (schedule, placement) = raise(&site.layout, &embed(site, c, embeddings)).unwrap();
    assert_eq!((&built.schedule, built.placement.unwrap().switches()), (&schedule, Some(&placement)));
    let proven = Verified::new(schedule, Method::Auto);
    (proven.unwrap_or_else(|proof| panic!("{:?} {embeddings}: {:?}", c, proof.diagnostics)), placement)
}

fn ran(site: &Site, c: Collective, embeddings: u32) -> Run {
    let (proven, placement) = placed(site, c, embeddings);
    run(&site.machine, &proven, &placement).unwrap()
}

/// Returns the embeddings of a schedule, without those over no elements.
fn carrying(mut made: Configured) -> Configured {
    made.embeddings.retain(|e| e.elements > 0);
    made
}

#[test]
fn every_collective_is_checked_proved_and_right() {
    let mut sites = Vec::new();
    for nodes in [1, 2, 3, 5, 18] {
        let m = small(nodes);
        sites.push(Site::all(&m));
        sites.push(Site::first(&m, m.cores() / 2 - 1).unwrap());
        sites.push(Site::first(&m, 1).unwrap());
        sites.push(Site::on_nodes(&m, &[nodes - 1, nodes / 2]).unwrap());
    }
    for site in &sites {
        let last = u64::from(site.ranks() - 1);
        for (kind, root) in [
            (Kind::Allreduce, 0),
            (Kind::Barrier, 0),
            (Kind::Reduce, 0),
            (Kind::Reduce, last),
            (Kind::Broadcast, 0),
            (Kind::Broadcast, last / 2),
            (Kind::Scan, 0),
        ] {
            for (embeddings, elements) in [(1, 37), (1, 1), (2, 37), (3, 70), (4, 3), (1, 0)] {
                let one = matches!(kind, Kind::Scan | Kind::Barrier);
                // Only some small machines have a chain through all of their cores. One node has such a chain.
                if (one && embeddings > 1) || (kind == Kind::Scan && (site.ranks(), site.layout.nodes()) != (16, 1)) {
                    continue;
                }
                let c = of(kind, site, elements, root);
                let made = embed(site, c, embeddings);
                let what =
                    format!("{kind} to {root} on {} ranks of {:?}, {embeddings}", site.ranks(), site.machine.node_dims);
                let (proved, placement) = placed(site, c, embeddings);
                let lowered = lower(&site.machine, &site.layout, &proved, &placement);
                assert_eq!(lowered, Ok(carrying(made)), "{what}: registers, schedule, registers");
                assert!(proved.proof().repeatable, "{what}");
                let run = run(&site.machine, &proved, &placement).unwrap();
                assert!(run.data.result_correct, "{what}: {:?}", run.data.mismatch);
                // The interpreter does not use registers, so its bits are those of the schedule.
                let inputs: Vec<Vec<f32>> = (0..c.ranks)
                    .map(|rank| (0..c.input_len(rank)).map(|k| input(rank, k, c.operator)).collect())
                    .collect();
                let outputs = interpret::run(proved.schedule(), &inputs, interpret::Options::default()).unwrap();
                let places = outputs.iter().enumerate().flat_map(|(rank, out)| {
                    out.iter()
                        .enumerate()
                        .map(move |(k, x)| digest((rank as u64) << 32 | k as u64, u64::from(x.to_bits())))
                });
                assert_eq!(run.data.digest, places.fold(0, u64::wrapping_add), "{what}");
            }
        }
    }
}

/// On the paper's machine, the latency is at most the latency of Eq. 1, and at least 85 % of it.
#[test]
fn latency_keeps_eq_1_and_comes_near() {
    // 2 (50 D + 25 (D + 1) + 5 * 4 (2 D + 1)) ns
    for (nodes, eq1) in [(1, 90_000), (16, 320_000), (256, 550_000)] {
        let site = Site::all(&preset("piuma", nodes));
        let ran = ran(&site, of(Kind::Allreduce, &site, 1, 0), 1);
        assert!((eq1 * 85 / 100..=eq1).contains(&ran.latency), "{nodes} nodes: {}", ran.latency);
        // Eq. 2: the element itself takes 1.25 ns.
        assert_eq!(ran.picoseconds, ran.latency + 1250);
    }
}

/// Skipped repetitions do not change results: a vector takes alpha plus 1.25 ns for each element, exact to the
/// picosecond.
#[test]
fn long_vectors_are_alpha_and_beta() {
    let site = Site::all(&preset("piuma", 16));
    for elements in [16, 17, 1000, 32_768] {
        let ran = ran(&site, of(Kind::Allreduce, &site, elements, 0), 1);
        assert_eq!(ran.picoseconds, ran.latency + 1250 * elements, "{elements}");
        assert!(ran.computed <= 100_000);
    }
}

/// With memory and port 8 times as fast, three trees on links that carry two of them are faster than one tree. On the
/// machine with wide memories, so are two trees that share no link.
#[test]
fn several_embeddings_are_faster_where_links_are_the_limit() {
    let fast = InNetwork { memory_gbps: 409.6, memory_port_gbps: 409.6, ..preset("piuma", 16) };
    for (machine, embeddings, load, gain) in [(fast, 3, 2, 1.45), (preset("piuma-wide", 16), 2, 1, 1.9)] {
        let site = Site::all(&machine);
        let c = of(Kind::Allreduce, &site, 1 << 18, 0);
        let made = embed(&site, c, embeddings);
        assert_eq!(loads(&site.layout, [&made]).most(), load);
        let times = [1, embeddings].map(|embeddings| ran(&site, c, embeddings).picoseconds as f64);
        assert!(times[0] / times[1] > gain, "{}", times[0] / times[1]);
    }
}

/// An exclusive switch begins the next collective when the first one has ended at this switch, so on the same nodes the
/// times add up. If packets alternate, two short collectives take as long as one.
#[test]
fn an_exclusive_switch_ends_one_collective_before_the_next() {
    let sets: [[&[u32]; 2]; 3] = [[&[0, 1], &[0, 1]], [&[0, 1], &[1, 2]], [&[0, 1], &[2, 3]]];
    for exclusive_switches in [true, false] {
        let machine = InNetwork { exclusive_switches, ..small(4) };
        for (nodes, elements) in sets.iter().flat_map(|nodes| [1, 200, 5000].map(|elements| (nodes, elements))) {
            let sites = nodes.map(|nodes| Site::on_nodes(&machine, nodes).unwrap());
            let made = sites.each_ref().map(|site| placed(site, of(Kind::Allreduce, site, elements, 0), 1));
            let beside = run_beside(&machine, &made.each_ref().map(|(proven, placement)| (proven, placement))).unwrap();
            let alone = made.each_ref().map(|(proven, placement)| run(&machine, proven, placement).unwrap());
            let what = format!("{nodes:?}, {elements} elements, exclusive: {exclusive_switches}");
            assert!(beside.iter().all(|run| run.data.result_correct), "{what}");
            let (last, sum) = (beside[1].picoseconds, alone[0].picoseconds + alone[1].picoseconds);
            let shared: Vec<(usize, usize)> = (0..sites[0].cores.len())
                .filter_map(|rank| Some((rank, sites[1].cores.iter().position(|core| *core == sites[0].cores[rank])?)))
                .collect();
            if shared.is_empty() {
                assert_eq!(beside[1].finish, alone[1].finish, "{what}");
            } else if exclusive_switches {
                assert_eq!(beside[0].finish, alone[0].finish, "{what}");
                let serial = elements * 1250;
                assert!(shared.iter().all(|&(a, b)| beside[1].finish[b] >= beside[0].finish[a] + serial), "{what}");
                assert!(if nodes[0] == nodes[1] { last == sum } else { last <= sum }, "{what}: {last} of {sum}");
            } else if elements == 1 {
                assert!(last < alone[1].picoseconds + 10_000, "{what}: {last} of {sum}");
            }
        }
    }
}
