//! Laws of choice for random problems on every kind of machine. By the machine's simulator, the choice takes at most 5
//! %, or one cycle, longer than the best candidate, and than the same algorithm with other pieces of messages.
//! Otherwise the plan notes that its candidates were not simulated. The simulated time of the choice equals its
//! predicted time.

use unisono_algorithms::Params;
use unisono_lower::{File, Placed, VerifiedFile};
use unisono_plan::{Part, Plan, Problem, Request, RunOptions, TimeSource, Timed, plan, simulate};
use unisono_schedule::verify::Method;

use crate::common::problems::{Drawn, on_endpoints, on_full_buffers, on_networks, on_reducing_switches, on_wafers};

/// The largest quotient of the choice's time and the best candidate's.
const MOST: f64 = 1.05;
/// A candidate is simulated if its prediction is at most this multiple of the simulated time of the choice.
const LOOKED_AT: f64 = 3.0;
/// The powers of two by which the pieces of the choice are shortened and lengthened.
const RECUT: usize = 4;
/// The most instructions of a simulated candidate.
const MOST_INSTRUCTIONS: usize = 1 << 20;

/// Returns the time of a candidate by the machine's simulator, in seconds.
fn simulated(problem: &Problem, one: &Timed) -> Option<f64> {
    let Placed { schedule, placement } = problem.target.build(problem.collective, one).ok()?;
    if schedule.instr_count() > MOST_INSTRUCTIONS {
        return None;
    }
    let file = File { schedule, placement, machine: Some(problem.target.machine().clone()), blocks: None };
    let proven = VerifiedFile::new(&file, Method::Auto).ok()?;
    simulate(&proven, &RunOptions::default()).ok().map(|run| run.seconds)
}

/// Returns the choice with pieces that are shorter or longer by up to [`RECUT`] powers of two.
fn recut(plan: &Plan) -> Vec<Timed> {
    let (best, case) = (plan.best(), plan.problem.target.case(plan.problem.collective));
    let along = |side: usize| {
        let next = move |params: &Params| best.algorithm.recut(&case, params)[side].take();
        std::iter::successors(next(&best.params), next).take(RECUT)
    };
    let supported = along(0).chain(along(1)).filter(|params| best.algorithm.supports(&case, params).is_ok());
    supported.map(|params| Timed { params, ..best.clone() }).collect()
}

/// Returns the time of the fastest candidate by the simulator in seconds, and the candidate.
fn fastest<'a>(plan: &'a Plan, own: f64, recut: &'a [Timed]) -> (f64, &'a Timed) {
    let is_near = |one: &&Timed| plan.problem.target.simulates(one.algorithm) && one.time.seconds <= LOOKED_AT * own;
    let others = plan.candidates.iter().skip(1).filter(is_near);
    let times = others.chain(recut).filter_map(|one| Some((simulated(&plan.problem, one)?, one)));
    times.fold((own, plan.best()), |best, one| if one.0 < best.0 { one } else { best })
}

/// Returns true if the plan notes that its candidates were not simulated.
fn says_why(plan: &Plan) -> bool {
    plan.report().unwrap().notes.iter().any(|note| note.contains("not simulated"))
}

/// The number of checked problems, and the number of problems whose plans note why the choice may be slow.
#[derive(Default)]
struct Looked {
    problems: u32,
    noted: u32,
}

/// Checks 16 problems from the seed `first`, or 2,000 in the long run. `off` is the largest relative difference of a
/// predicted time from the simulated time.
fn check_all(drawn: fn(u64) -> Drawn, first: u64, off: f64) {
    let seeds = if crate::soak::is_on() { 0..2000 } else { first..first + 16 };
    let many = seeds.end - seeds.start;
    let (mut looked, mut found) = (Looked::default(), Vec::new());
    for seed in seeds {
        let one = drawn(seed);
        let case = format!(
            "{seed}: {} of {} to {} on {} of {}",
            one.kind,
            one.elements,
            one.root,
            one.part,
            one.machine.name()
        );
        let chosen = plan(one.problem().unwrap(), None, &Params::new()).unwrap();
        let best = chosen.best();
        let Some(own) = simulated(&chosen.problem, best) else { continue };
        looked.problems += 1;
        let name = |one: &Timed| format!("{} {}", one.algorithm.name(), one.params);
        let recut = recut(&chosen);
        let (least, other) = fastest(&chosen, own, &recut);
        // One cycle is a tenth of the shortest times, so a difference of one cycle is accepted.
        let cycle = best.time.cycles.map_or(0.0, |cycles| best.time.seconds / cycles);
        let (is_slow, error) = (own > MOST * least + cycle, (best.time.seconds / own - 1.0).abs());
        let most = if best.source == TimeSource::Simulated { 1e-9 } else { off };
        if (is_slow || error > most) && says_why(&chosen) {
            looked.noted += 1;
        } else if is_slow {
            found.push(format!("{case}: {} takes {}, {} {least}", name(best), own, name(other)));
        } else if error > most {
            found.push(format!("{case}: {} is predicted at {}, takes {own}", name(best), best.time.seconds));
        }
    }
    assert!(found.is_empty(), "{} of {} problems: {found:#?}", found.len(), looked.problems);
    assert!(looked.problems >= many as u32 * 9 / 10 && looked.noted <= looked.problems / 10 + 1);
}

#[test]
fn choices_on_endpoints_are_near_the_best() {
    check_all(on_endpoints, 0, 1e-9);
}

#[test]
fn choices_on_networks_are_near_the_best() {
    check_all(on_networks, 140, 0.025);
}

#[test]
fn alltoalls_that_fill_buffers_are_near_the_best() {
    check_all(on_full_buffers, 0, 0.025);
}

/// The model `packets` chooses the best of the candidates that the default model lists first, and a named algorithm has
/// the parameters of its best listed candidate or better ones.
#[test]
fn named_models_and_algorithms_are_no_worse_than_listed_ones() {
    for seed in if crate::soak::is_on() { 0..200 } else { 20..24 } {
        let drawn = on_full_buffers(seed);
        let listed = plan(drawn.problem().unwrap(), None, &Params::new()).unwrap();
        let request =
            Request { model: Some("packets"), ..Request::new(drawn.kind, &drawn.machine, Part::All, drawn.elements) };
        let packets = plan(Problem::new(&request).unwrap(), None, &Params::new()).unwrap();
        let of_packets = simulated(&packets.problem, packets.best()).unwrap();
        let mut names = std::collections::BTreeSet::new();
        for one in &listed.candidates[..listed.candidates.len().min(6)] {
            let own = simulated(&listed.problem, one).unwrap();
            assert!(of_packets <= own * 1.01, "{seed}: {of_packets}, {} {} {own}", one.algorithm.name(), one.params);
            if names.insert(one.algorithm.name()) {
                let named = plan(drawn.problem().unwrap(), Some(one.algorithm.name()), &Params::new()).unwrap();
                let found = simulated(&named.problem, named.best()).unwrap();
                assert!(
                    found <= own * MOST,
                    "{seed}: {} {} {found}, {} {own}",
                    one.algorithm.name(),
                    named.best().params,
                    one.params
                );
            }
        }
    }
}

/// A simulation that takes too many steps has coarse packets: the time of the plan is that of packets all the same.
#[test]
fn coarse_packets_give_the_time_of_packets() {
    let mut drawn = on_full_buffers(0);
    for topology in ["mesh", "torus"] {
        let machine = drawn.machine.with_value("topology.name", &format!("'{topology}'")).unwrap();
        drawn.machine =
            machine.with_value("topology.dims", "[3, 4]").unwrap().with_value("packet_bytes", "512").unwrap();
        drawn.elements = 1 << 21;
        let linear = plan(drawn.problem().unwrap(), Some("linear"), &Params::new()).unwrap();
        let own = simulated(&linear.problem, linear.best()).unwrap();
        assert_eq!(linear.best().source, TimeSource::Estimated);
        assert!((linear.best().time.seconds / own - 1.0).abs() < 0.07, "{} {own}", linear.best().time.seconds);
    }
}

#[test]
fn choices_on_wafers_are_near_the_best() {
    check_all(on_wafers, 0, 0.02);
}

#[test]
fn choices_in_reducing_switches_are_near_the_best() {
    check_all(on_reducing_switches, 0, 0.02);
}
