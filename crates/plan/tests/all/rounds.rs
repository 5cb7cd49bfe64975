//! The rounds by which large cases among ranks are timed, compared with simulations of smaller cases.

use std::collections::BTreeSet;

use unisono_algorithms::{ALGORITHMS, Means, Params, Profile};
use unisono_collective::{Dtype, Kind, Operator};
use unisono_cost::endpoint::{LevelPrices, rounds_ns};
use unisono_machine::{Machine, Shape};
use unisono_plan::{Part, Problem, Request, Root, TimeSource, plan};

/// Algorithms without rounds. The parts of `hierarchical` have different prices, and its schedule has P log P
/// instructions, so large cases are built. The ranks of `all-pairs` send and receive at once, and plans list it only
/// for few ranks.
const WITHOUT: [&str; 2] = ["all-pairs", "hierarchical"];

/// The accepted quotients of the time by rounds and the simulated time. If ranks do different work, more of it overlaps
/// than rounds assume.
const RATIOS: std::ops::RangeInclusive<f64> = 0.85..=1.25;

#[test]
fn rounds_take_the_time_of_the_simulation() {
    let (mut compared, mut number, mut far) = (0, 0, Vec::new());
    let (mut with, mut without) = (BTreeSet::new(), BTreeSet::new());
    let among_ranks = || ALGORITHMS.iter().filter(|a| a.info().needs.contains(&Means::Messages));
    let [archer, paper] = ["archer", "paper-sim"].map(|name| Machine::preset(name).unwrap());
    let text = paper.to_toml() + "\n[[protocols]]\nfrom_bytes = 2048\nalpha_r_ns = 900\nbeta_ns_per_byte = 0.2\n";
    let with_protocols = Machine::from_toml(&text, "with protocols").unwrap();
    for machine in [archer, paper, with_protocols] {
        // On eight ranks, one round more or less makes a large difference, so all of these cases run.
        let few = [(8, 4096), (8, 1 << 20)];
        let many = [16, 60, 64, 100].into_iter().flat_map(|p| [8_u64, 4096, 1 << 20].map(|b| (p, b)));
        for (ranks, bytes) in few.into_iter().chain(many) {
            for (algorithm, kind) in among_ranks().flat_map(|a| a.info().collectives.iter().map(move |&kind| (a, kind)))
            {
                let elements = if kind == Kind::Barrier { 0 } else { bytes / 4 };
                let part = Part::Shape(Shape::line(ranks));
                let request = Request { dtype: Dtype::F32, ..Request::new(kind, &machine, part, elements) };
                let Ok(problem) = Problem::new(&request) else { continue };
                let (target, collective) = (&problem.target, problem.collective);
                let case = target.case(collective);
                let prices: &LevelPrices = target.part().downcast_ref().unwrap();
                for params in algorithm.candidates(&case) {
                    let Ok((_, params)) = target.resolve(collective, algorithm.name(), &params) else { continue };
                    let Some(Profile::Rounds(rounds)) = algorithm.profile(&case, &params) else {
                        without.insert(algorithm.name());
                        continue;
                    };
                    with.insert(algorithm.name());
                    number += 1;
                    if ranks > 8 && !crate::soak::runs(number) {
                        continue;
                    }
                    let planned = plan(Problem::new(&request).unwrap(), Some(algorithm.name()), &params).unwrap();
                    // Without parameters, all values of the parameters are ranked.
                    let best = planned.candidates.iter().find(|one| one.params == params).unwrap();
                    if best.source == TimeSource::Simulated {
                        compared += 1;
                        let ratio = rounds_ns(&rounds, prices) / 1e9 / best.time.seconds;
                        let name = format!("{} {params} {kind} of {bytes} bytes among {ranks}", algorithm.name());
                        if !RATIOS.contains(&ratio) {
                            far.push(format!("{name} on {}: {ratio:.3}", target.machine().name()));
                        }
                    }
                }
            }
        }
    }
    assert!(far.is_empty(), "{far:#?}");
    assert!(compared > crate::soak::cases(800), "{compared}");
    let never: Vec<_> = without.difference(&with).collect();
    assert!(never.iter().all(|name| WITHOUT.contains(name)), "without rounds: {never:?}");
}

/// On 96 ranks, three groups of 32 meet at the end, when a rank has 1/32 of the vector: 2 n beta. A fold takes 4 n
/// beta.
#[test]
fn halving_elimination_takes_half_the_time_of_a_fold() {
    let machine = Machine::preset("paper-sim").unwrap();
    let request = Request::new(Kind::Allreduce, &machine, Part::Shape(Shape::line(96)), 1 << 18);
    let simulated = |name: &str, params: &Params| {
        let planned = plan(Problem::new(&request).unwrap(), Some(name), params).unwrap();
        assert_eq!(planned.best().source, TimeSource::Simulated);
        planned.best().time.seconds
    };
    let halving = Params::new().with("protocol", "halving");
    let found = simulated("elimination", &halving);
    let gain = simulated("rabenseifner", &Params::new()) / found;
    assert!((1.9..2.0).contains(&gain), "{gain}");
    let problem = Problem::new(&request).unwrap();
    let prices: &LevelPrices = problem.target.part().downcast_ref().unwrap();
    let algorithm = ALGORITHMS.iter().find(|a| a.name() == "elimination").unwrap();
    let Some(Profile::Rounds(rounds)) = algorithm.profile(&problem.target.case(problem.collective), &halving) else {
        panic!("it has no rounds")
    };
    let ratio = rounds_ns(&rounds, prices) / 1e9 / found;
    assert!((0.99..1.01).contains(&ratio), "{ratio}");
}

/// If operands keep their order, rank 0 has the sum and sends it to the root, segment by segment. A root inside the
/// tree then receives one message more for each segment than other ranks.
#[test]
fn roots_inside_a_tree_receive_the_result_too() {
    let text = "name = 'ports'\nkind = 'endpoint'\nmodel = 'hockney'\nalpha_ns = 2400\nbeta_ns_per_byte = 0.3\n";
    let machine = Machine::from_toml(text, "ports").unwrap();
    for name in ["binary-tree", "pipelined-chain"] {
        for root in [0, 1, 3, 12, 30] {
            let request = Request {
                dtype: Dtype::I64,
                operator: Operator::Ordered,
                root: Root::Rank(root),
                ..Request::new(Kind::Reduce, &machine, Part::Shape(Shape::line(31)), 1 << 15)
            };
            let params = Params::new().with("segment", 1024);
            let planned = plan(Problem::new(&request).unwrap(), Some(name), &params).unwrap();
            let (problem, best) = (&planned.problem, planned.best());
            assert_eq!(best.source, TimeSource::Simulated);
            let prices: &LevelPrices = problem.target.part().downcast_ref().unwrap();
            let profile = best.algorithm.profile(&problem.target.case(problem.collective), &best.params);
            let Some(Profile::Rounds(rounds)) = profile else { panic!("it has no rounds") };
            let ratio = rounds_ns(&rounds, prices) / 1e9 / best.time.seconds;
            assert!(RATIOS.contains(&ratio), "{name} to {root}: {ratio}");
        }
    }
}
