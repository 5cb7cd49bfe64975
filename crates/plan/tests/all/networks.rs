//! Plans on networks: the model has the paper's formulas, no time is below a bound, closed forms agree with schedules,
//! and the best algorithm changes with the length.

use crate::common;

use common::settings;
use unisono_algorithms::{ALGORITHMS, Means, Params, Profile};
use unisono_collective::Kind;
use unisono_cost::network::NetworkPart;
use unisono_lower::VerifiedFile;
use unisono_machine::Machine;
use unisono_plan::{
    Part, Plan, PlanError, Problem, Request, RunOptions, TimeSource, bounds, plan as plan_of, plan_best, simulate,
};
use unisono_schedule::verify::Method;

/// Returns a network of one plane whose hosts cost nothing: alpha = 80 ns, beta = 0.02 ns per byte.
fn network(topology: &str) -> Machine {
    common::network(8192, 33_554_432, &format!("[topology]\n{topology}"))
}

fn preset(name: &str) -> Machine {
    Machine::preset(name).unwrap()
}

fn problem(network: &Machine, kind: Kind, bytes: u64) -> Problem {
    Problem::new(&Request::new(kind, network, Part::All, bytes / 4)).unwrap()
}

fn plan(network: &Machine, kind: Kind, bytes: u64, algorithm: Option<&str>, params: &Params) -> Plan {
    plan_of(problem(network, kind, bytes), algorithm, params).unwrap()
}

fn ns(network: &Machine, bytes: u64, algorithm: &str) -> f64 {
    plan(network, Kind::Allreduce, bytes, Some(algorithm), &Params::new()).best().time.nanoseconds()
}

fn part(problem: &Problem) -> &NetworkPart {
    problem.cost().on().unwrap()
}

/// Formulas of "HammingMesh", section 4, and of its artifact (parseAndPlotAllReduce.py), at 400 Gb/s.
#[test]
fn the_formulas_of_the_paper_come_out() {
    let torus = network("name = 'torus'\ndims = [32, 32]");
    let (alpha, beta, p) = (80.0, 8.0 / 400.0, 1024.0);
    for bytes in [1u64 << 17, 1 << 20, 1 << 30] {
        let s = bytes as f64;
        let close = |found: f64, formula: f64| assert!((found / formula - 1.0).abs() < 1e-9, "{found} {formula}");
        // "25D": 2(p-1) alpha + (p-1)/p S/2 beta.
        close(ns(&torus, bytes, "dual-rings"), 2.0 * (p - 1.0) * alpha + (p - 1.0) / p * s / 2.0 * beta);
        // "2DRev": 4(sqrt p - 1) alpha + (p-1)/p S/2 beta.
        close(ns(&torus, bytes, "bucket"), 4.0 * (f64::sqrt(p) - 1.0) * alpha + (p - 1.0) / p * s / 2.0 * beta);
        // "05D": 2(p-1) [alpha + S/p beta]. The last rank of each row except the last is two links from the first rank
        // of the next row, and messages take such a path in 62 to 64 of 2046 steps.
        let rings = [(1.0, "bidirectional-ring", 0.5), (1.0, "ring", 1.0)];
        for (_, name, share) in rings {
            let found = ns(&torus, bytes, name) - 2.0 * (p - 1.0) * (alpha + s / p * share * beta);
            let ends = found / alpha;
            assert!((61.9..=64.0 + 1e-6).contains(&ends), "{name}: {ends} longer ways");
        }
    }
}

/// Two boxes of three accelerators on a fast switch, with slower links between the boxes and within one box.
const UNLIKE: &str = "name = 'graph'\naccelerators = 6\nedges = '''\n0 6 gbps=1600 ns=10\n1 6 gbps=1600 ns=10\n\
    2 6 gbps=1600 ns=10\n3 7 gbps=1600 ns=10\n4 7 gbps=1600 ns=10\n5 7 gbps=800 ns=10\n6 7 gbps=200 ns=250 count=2\n\
    6 7\n0 1 gbps=100\n'''";

#[test]
fn no_time_is_below_a_bound() {
    let (mut plans, mut number) = (0, 0);
    for (topology, ranks) in
        [("name = 'torus'\ndims = [4, 4]", 16), ("name = 'hxmesh'\nboard = [1, 2]\nboards = [2, 3]", 12), (UNLIKE, 6)]
    {
        let network = network(topology);
        for &kind in Kind::ALL.iter().filter(|&&k| k != Kind::Message) {
            for bytes in [4, 4096, 1 << 20] {
                number += 1;
                if !crate::soak::runs(number) {
                    continue;
                }
                plans += 1;
                let problem = problem(&network, kind, bytes);
                assert_eq!(problem.collective.ranks, ranks);
                let bounds = bounds(&problem);
                let plan = plan_of(problem, None, &Params::new()).unwrap();
                for c in &plan.candidates {
                    for bound in &bounds {
                        let least = bound.seconds * (1.0 - 1e-9);
                        assert!(
                            c.time.seconds >= least,
                            "{} {} {kind} {bytes}: {}",
                            c.algorithm.name(),
                            c.params,
                            bound.name
                        );
                    }
                }
            }
        }
    }
    assert!(plans > crate::soak::cases(60), "{plans}");
}

/// A candidate has about the same time by its exchanges and by the rounds of its schedule. The times differ if messages
/// share links in only one of the two, because parts have unequal stages or no rank waits.
#[test]
fn closed_forms_agree_with_schedules() {
    let mut units = std::collections::BTreeSet::new();
    for topology in ["name = 'torus'\ndims = [4, 4]", "name = 'hxmesh'\nboard = [2, 2]\nboards = [2, 2]"] {
        let network = network(topology);
        for algorithm in ALGORITHMS.iter().filter(|a| a.info().needs.contains(&Means::Messages)) {
            for &kind in algorithm.info().collectives {
                let whole = problem(&network, kind, 4 * 16 * 960);
                assert_eq!(whole.collective.ranks, 16);
                let (case, model) = (whole.target.case(whole.collective), &part(&whole).model);
                // The root of a circulant schedule does not wait. All its blocks are in the first round of messages, so
                // the rounds of the schedule differ from its exchanges.
                if algorithm.name() == "circulant" && [Kind::Broadcast, Kind::Reduce].contains(&kind) {
                    continue;
                }
                for params in settings(*algorithm, &case) {
                    if algorithm.supports(&case, &params).is_err() {
                        continue;
                    }
                    let Some(Profile::Exchanges(exchanges)) = algorithm.profile(&case, &params) else { continue };
                    let closed = model.exchanges_ns(&exchanges);
                    let built = model.rounds_ns(&algorithm.build(&case, &params).unwrap().schedule).unwrap();
                    let name = format!("{} {params} {kind}: {closed} {built}", algorithm.name());
                    // No rank waits in a balanced shift, so its schedule has one round.
                    let ratio = closed / built;
                    assert!((0.6..=1.2).contains(&ratio), "{name}");
                    units.insert(algorithm.name());
                }
            }
        }
    }
    assert!(units.len() >= 7, "{units:?}");
}

/// With the model `packets`, the best candidates have simulated times, and all others are ranked after them.
#[test]
fn the_model_of_packets_simulates_the_best_candidates() {
    let network = network("name = 'torus'\ndims = [4, 4]");
    let by = |model, kind, elements| {
        let request = Request { model, ..Request::new(kind, &network, Part::All, elements) };
        Problem::new(&request).unwrap()
    };
    for (kind, elements) in [(Kind::Broadcast, 1 << 20), (Kind::Allreduce, 1 << 12), (Kind::Alltoall, 1 << 12)] {
        let planned = plan_of(by(Some("packets"), kind, elements), None, &Params::new()).unwrap();
        let first = planned.candidates.iter().take_while(|c| c.source == TimeSource::Simulated).count();
        assert!(first > 1, "{kind}: {first}");
        let rest = &planned.candidates[first..];
        assert!(rest.iter().all(|c| c.source != TimeSource::Simulated), "{kind}");
        let least = planned.candidates.iter().map(|c| c.time.seconds).fold(f64::INFINITY, f64::min);
        assert!(rest.iter().all(|c| c.time.seconds > 3.0 * least), "{kind}");
        let file = planned.file().unwrap();
        let proven = VerifiedFile::new(&file, Method::Auto).unwrap();
        let run = simulate(&proven, &RunOptions::default()).unwrap();
        let (best, seconds) = (planned.best(), run.seconds);
        assert!((best.time.seconds / seconds - 1.0).abs() < 1e-12, "{kind}: {} {seconds}", best.time.seconds);
        // A named algorithm is simulated too.
        let last = rest.last().or(planned.candidates.last()).unwrap();
        let alone = by(Some("packets"), kind, elements);
        let alone = plan_of(alone, Some(last.algorithm.name()), &last.params).unwrap();
        assert_eq!(alone.best().source, TimeSource::Simulated);
        // The default is the model `links`, which simulates no candidate.
        let links = plan_of(by(None, kind, elements), None, &Params::new()).unwrap();
        assert!(links.candidates.iter().all(|c| c.source != TimeSource::Simulated));
        assert_eq!(links.problem.target.model(), "links");
    }
    let wrong = Request { model: Some("hockney"), ..Request::new(Kind::Barrier, &network, Part::All, 0) };
    let refused = Problem::new(&wrong).err().unwrap().to_string();
    assert_eq!(refused, "'hockney' is not a model; accepted are links, packets and data-sheet on a network");
}

#[test]
fn the_best_algorithm_changes_with_the_length() {
    // On a square, bucket has the bandwidth of dual rings and fewer steps, so dual rings are never faster.
    let square = network("name = 'torus'\ndims = [16, 16]");
    for bytes in [1 << 16, 1 << 20, 1 << 30] {
        assert!(ns(&square, bytes, "bucket") < ns(&square, bytes, "dual-rings"));
    }
    // On a long torus the stages of bucket leave links idle.
    let long = network("name = 'torus'\ndims = [4, 24]");
    let best = |bytes: u64| {
        let plan = plan(&long, Kind::Allreduce, bytes, None, &Params::new());
        assert_eq!(plan.best().algorithm.name(), "forest");
        // This is the best of the algorithms that do not use the links of the network.
        plan.candidates.iter().map(|c| c.algorithm.name()).find(|&name| name != "forest").unwrap()
    };
    assert_eq!(best(1 << 30), "dual-rings");
    assert!(ns(&long, 1 << 18, "bucket") < ns(&long, 1 << 18, "dual-rings"));
    let small = best(1 << 18);
    assert!(["bucket", "swing"].contains(&small), "{small}");
}

/// Returns a switch with four ranks. Rank 0 has a link of 800 Gb/s, ranks 1 and 2 of 100 Gb/s, each with 100 ns to the
/// switch and 40 ns more per hop. Rank 3 has a link of 400 Gb/s with 10 ns.
fn star() -> Machine {
    network(
        "name = 'graph'\naccelerators = 4\nedges = '''\n0 4 gbps=800 ns=100\n1 4 gbps=100 ns=100\n2 4 gbps=100 ns=100\n\
             3 4 ns=10\n'''",
    )
}

#[test]
fn unlike_links_have_their_closed_forms() {
    let star = star();
    // One message from accelerator 3 to 0: 50 + 140 ns of latency, and its bytes on the link of 400 Gb/s.
    let pair = Request::new(Kind::Broadcast, &star, Part::Places(vec![3, 0]), 1 << 18);
    let message = plan_of(Problem::new(&pair).unwrap(), Some("binomial"), &Params::new()).unwrap();
    let close = |found: f64, formula: f64| assert!((found / formula - 1.0).abs() < 1e-9, "{found} {formula}");
    close(message.best().time.nanoseconds(), 190.0 + f64::from(1 << 20) * 8.0 / 400.0);
    // The ring: 3 rounds of S bytes a rank at the rate of the links of 100 Gb/s, and the latency of the slowest chain.
    // Of the four hops, 0 to 1 and 1 to 2 take 280 ns, 2 to 3 and 3 to 0 take 190 ns.
    let s = f64::from(1 << 20);
    let ring = plan(&star, Kind::Allgather, 1 << 20, Some("ring"), &Params::new()).best().time.nanoseconds();
    close(ring, (280.0 + 280.0 + 190.0) + 3.0 * s * 8.0 / 100.0);
}

#[test]
fn unlike_accelerators_bound_what_they_must_send() {
    let star = star();
    let bound = |kind, name: &str| {
        let found = bounds(&problem(&star, kind, 1 << 20));
        found.iter().find(|b| b.name == name).unwrap().seconds * 1e9
    };
    let close = |found: f64, formula: f64| assert!((found / formula - 1.0).abs() < 1e-9, "{found} {formula}");
    let s = f64::from(1 << 20);
    // Every rank receives the blocks of all others, and the slowest rank takes longest. In a gather, rank 0 receives
    // three blocks, or the slowest rank sends one block.
    close(bound(Kind::Allgather, "injection"), 3.0 * s * 0.08);
    close(bound(Kind::Gather, "injection"), (3.0 * s * 0.01).max(s * 0.08));
    close(bound(Kind::Broadcast, "injection"), s * 0.08);
    // All ranks together send 6 vectors at 1400 Gb/s, and the slowest rank sends its own at 100 Gb/s.
    close(bound(Kind::Allreduce, "injection"), s * 0.08);
    // The farthest ranks have a latency of 140 ns to the switch and 140 ns from it.
    close(bound(Kind::Allgather, "latency"), 280.0);
    close(bound(Kind::Message, "latency"), 190.0);
    // Rank 1 receives three blocks on its link of 100 Gb/s. A graph states no cut into halves.
    close(bound(Kind::Alltoall, "flow"), 3.0 * s * 8.0 / 100.0);
    assert!(bounds(&problem(&star, Kind::Alltoall, 1 << 20)).iter().all(|b| b.name != "bisection"));
}

/// The two ranks that are farthest apart bound a collective in which all ranks have data; the rank farthest from the
/// root bounds a collective with a root.
#[test]
fn the_latency_is_that_of_the_farthest_ranks() {
    let latency = |network: &Machine, places: Vec<u32>, kind| {
        let problem = Problem::new(&Request::new(kind, network, Part::Places(places), 1)).unwrap();
        bounds(&problem).into_iter().find(|bound| bound.name == "latency").unwrap().seconds * 1e9
    };
    // A line of five accelerators, numbered from its middle outwards.
    let line = network("name = 'graph'\naccelerators = 5\nedges = '''\n4 1\n1 0\n0 2\n2 3\n'''");
    for (kind, links) in [
        (Kind::Allgather, 4.0),
        (Kind::ReduceScatter, 4.0),
        (Kind::Allreduce, 4.0),
        (Kind::Alltoall, 4.0),
        (Kind::Barrier, 4.0),
        (Kind::Scan, 4.0),
        (Kind::Broadcast, 2.0),
        (Kind::Gather, 2.0),
    ] {
        assert!((latency(&line, (0..5).collect(), kind) - links * 80.0).abs() < 1e-6, "{kind}");
    }
    // Any two ranks are considered, whichever of them comes first.
    assert!((latency(&line, vec![0, 4, 3], Kind::Scan) - 320.0).abs() < 1e-6);
    assert!((latency(&line, vec![1, 4, 2], Kind::Scan) - 240.0).abs() < 1e-6);
    // For many ranks, each search continues from the farthest rank found. So a search from the middle of a mesh finds
    // its corners.
    let mesh = network("name = 'mesh'\ndims = [40, 40]");
    let places = (0..1600).map(|rank| (rank + 820) % 1600).collect();
    assert!((latency(&mesh, places, Kind::Allgather) - 78.0 * 80.0).abs() < 1e-6);
}

/// Paths with equally many cables are compared by their latencies, and the path of the least latency may have more
/// cables than others.
#[test]
fn the_latency_bound_is_that_of_the_fastest_way() {
    let ring = network("name = 'graph'\naccelerators = 4\nedges = '''\n0 1 ns=1\n1 2 ns=2\n2 3 ns=3\n3 0 ns=400\n'''");
    let found = bounds(&problem(&ring, Kind::Message, 1 << 10));
    let latency = found.iter().find(|b| b.name == "latency").unwrap().seconds * 1e9;
    assert!((latency - (1.0 + 2.0 + 3.0 + 3.0 * 40.0)).abs() < 1e-6, "{latency}");
}

/// The shares in "HammingMesh": for an alltoall, small Hx2 has 26.6 % and Hx4 has 14.3 % of the injection.
#[test]
fn the_edges_of_boards_bound_an_alltoall() {
    for (name, share) in [("hx2mesh-small", 0.266), ("hx4mesh-small", 0.143), ("hyperx2d-small", 0.516)] {
        let bounds = bounds(&problem(&preset(name), Kind::Alltoall, 1 << 16));
        let seconds = |name: &str| bounds.iter().find(|b| b.name == name).unwrap().seconds;
        let found = seconds("injection") / seconds("board-edges");
        assert!((found - share).abs() < 5e-4, "{name}: {found}");
    }
}

#[test]
fn parts_of_a_network() {
    let network = preset("torus2d-small");
    let request = |text: &str| {
        let shape = Part::Shape(text.parse().unwrap());
        Problem::new(&Request::new(Kind::Allreduce, &network, shape, 64))
    };
    let grid = request("3x4").unwrap();
    assert_eq!(part(&grid).model.places(), [0, 1, 2, 3, 32, 33, 34, 35, 64, 65, 66, 67]);
    assert_eq!(grid.target.shape(), [3, 4]);
    assert_eq!(request("64").unwrap().target.shape(), [2, 32]);
    assert_eq!(request("65").unwrap().target.shape(), [65]);
    let refused = |text: &str| request(text).err().unwrap().to_string();
    assert!(refused("33x4").contains("does not fit on the 32x32 accelerators of torus2d-small"), "{}", refused("33x4"));
    assert!(refused("1025").contains("has 1024 accelerators"));
    let by_model = Request { model: Some("logp"), ..Request::new(Kind::Allreduce, &network, Part::All, 64) };
    let e: PlanError = Problem::new(&by_model).err().unwrap();
    assert_eq!(e.to_string(), "'logp' is not a model; accepted are links, packets and data-sheet on a network");
    let nowhere = Part::Places(vec![0, 1024]);
    let e = Problem::new(&Request::new(Kind::Allreduce, &network, nowhere, 64)).err().unwrap();
    assert_eq!(e.to_string(), "the place of a rank is 1024; torus2d-small has accelerators 0 to 1023");
}

/// No schedule of 4,096 ranks is built for an algorithm with exchanges in closed form, and the best candidate is found
/// without timing the messages of each candidate.
#[test]
fn large_networks_are_planned_by_closed_forms() {
    // On 128 x 128 accelerators, the same takes eight times as long.
    let dims = if crate::soak::is_on() { [128, 128] } else { [64, 64] };
    let network = network(&format!("name = 'torus'\ndims = {dims:?}"));
    let closed = ["bucket", "dual-rings", "swing", "ring", "bidirectional-ring"];
    let mut seconds = Vec::new();
    for name in closed {
        let plan = plan(&network, Kind::Allreduce, 1 << 30, Some(name), &Params::new());
        assert_eq!(plan.best().source, TimeSource::Exchanges, "{name}");
        seconds.push(plan.best().time.seconds);
    }
    let found = plan_best(problem(&network, Kind::Allreduce, 1 << 30), None, &Params::new()).unwrap();
    assert!(seconds.iter().all(|&seconds| found.best().time.seconds <= seconds), "{seconds:?}");
    if crate::soak::is_on() {
        let plan = plan(&network, Kind::Allreduce, 1 << 30, None, &Params::new());
        let names: Vec<&str> = plan.candidates.iter().map(|c| c.algorithm.name()).collect();
        assert!(closed.iter().all(|name| names.contains(name)), "{names:?}");
    }
}
