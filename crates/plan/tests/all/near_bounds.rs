//! The planner's choice on networks with different cables: near its bound if any candidate is, and near the best
//! candidate by the packet simulator.

use unisono_algorithms::Params;
use unisono_collective::Kind;
use unisono_lower::VerifiedFile;
use unisono_machine::Machine;
use unisono_plan::{Part, Plan, Problem, Request, RunOptions, bounds, plan, simulate};
use unisono_schedule::verify::Method;

use crate::common::problems::{graph, of_two_classes};

/// The bytes of a rank's vector. Packets are long, so that a block consists of few packets.
const BYTES: u64 = 64 << 20;
const COPIED: [Kind; 3] = [Kind::Broadcast, Kind::Allgather, Kind::Alltoall];
const SUMMED: [Kind; 3] = [Kind::Allreduce, Kind::Reduce, Kind::ReduceScatter];
/// A candidate is near the bound if its time divided by the bound is at most this.
const NEAR: f64 = 1.1;
/// The largest quotient of a choice's time and the best candidate's time.
const MOST: f64 = 1.05;

/// The number of networks in the long run.
const SOAKED: u64 = 50;

fn network(accelerators: u32, edges: &str) -> Machine {
    routed("fastest", accelerators, edges)
}

fn routed(routing: &str, accelerators: u32, edges: &str) -> Machine {
    let text = format!(
        "name = 'drawn'\nkind = 'network'\nplanes = 1\nlink_gbps = 400\nlink_latency_ns = 350\ninput_latency_ns = 0\n\
         output_latency_ns = 0\npacket_bytes = 65536\nbuffer_bytes = 4194304\nsend_machines = 1\nsend_machines_per = 'link'\n\
         gamma_ns_per_byte = 0.0025\n[topology]\nname = 'graph'\naccelerators = {accelerators}\nrouting = '{routing}'\nedges = '''\n{edges}'''\n"
    );
    Machine::from_toml(&text, "drawn").unwrap()
}

fn planned(machine: &Machine, kind: Kind, model: &'static str, (name, params): (Option<&str>, &Params)) -> Plan {
    let request = Request { model: Some(model), ..Request::new(kind, machine, Part::All, BYTES / 4) };
    plan(Problem::new(&request).unwrap(), name, params).unwrap()
}

fn bound(machine: &Machine, kind: Kind) -> f64 {
    let problem = Problem::new(&Request::new(kind, machine, Part::All, BYTES / 4)).unwrap();
    bounds(&problem).iter().map(|bound| bound.seconds).fold(0.0, f64::max)
}

/// Compares the choice with all candidates, each of which is simulated.
fn check(seed: u64, kind: Kind, most: u64) {
    let (accelerators, edges) = graph(seed, most);
    let machine = network(accelerators, &edges);
    let chosen = planned(&machine, kind, "links", (None, &Params::new()));
    let (best, simulated) = (chosen.best(), planned(&machine, kind, "packets", (None, &Params::new())));
    let alike = simulated
        .candidates
        .iter()
        .find(|one| one.algorithm.name() == best.algorithm.name() && one.params.to_string() == best.params.to_string());
    let (found, least) = (alike.expect("the choice is simulated").time.seconds, simulated.best().time.seconds);
    let what = format!(
        "{kind} on network {seed} ({accelerators} accelerators):\n{edges}{} {} takes {found}, {} {} {least}",
        best.algorithm.name(),
        best.params,
        simulated.best().algorithm.name(),
        simulated.best().params
    );
    assert!(found <= MOST * least, "{what}");
    let bound = bound(&machine, kind);
    assert!(found <= NEAR * bound || least > NEAR * bound, "{what}; the bound is {bound}");
}

/// Checks one small network for each kind, starting from a seed, and larger networks in the long run. An alltoall of
/// more ranks has too many packets to simulate all of its best candidates.
fn check_all(kinds: [Kind; 3], first: u64) {
    if !crate::soak::is_on() {
        return kinds.into_iter().zip(first..).for_each(|(kind, seed)| check(seed, kind, 5));
    }
    for seed in 0..SOAKED {
        kinds.into_iter().for_each(|kind| check(seed, kind, if kind == Kind::Alltoall { 6 } else { 10 }));
    }
}

#[test]
fn the_choice_is_near_the_best_simulated_candidate() {
    check_all(COPIED, 1);
}

#[test]
fn the_choice_of_sums_is_near_the_best_simulated_candidate() {
    check_all(SUMMED, 4);
}

/// A forest along the fastest paths is no slower than a forest along paths with the fewest cables.
#[test]
fn fast_ways_cost_no_more_than_those_of_the_fewest_cables() {
    for seed in 0..u64::from(crate::soak::cases(150) / 25) {
        let (accelerators, edges) = of_two_classes(seed, 6);
        for kind in [Kind::Allgather, Kind::Broadcast, Kind::ReduceScatter] {
            let time = |routing| {
                let machine = routed(routing, accelerators, &edges);
                planned(&machine, kind, "links", (None, &Params::new())).best().time.seconds
            };
            let (fastest, fewest) = (time("fastest"), time("shortest"));
            assert!(
                fastest <= 1.02 * fewest,
                "{kind} on network {seed}:\n{edges}takes {fastest}, by fewest cables {fewest}"
            );
        }
    }
}

/// The server of six GPUs in the documentation: three pairs that are two NVLinks apart share a PCIe switch.
#[test]
fn forests_leave_slow_cables_to_ranks_that_are_far_apart() {
    let nvlinks = "0 1 gbps=800\n0 2 gbps=400\n1 3 gbps=400\n2 3 gbps=800\n2 5 gbps=400\n3 4 gbps=400\n4 5 gbps=800\n";
    let pcie: String = (0..6).map(|gpu| format!("{gpu} 6 gbps=200\n")).collect();
    let machine = network(6, &format!("{nvlinks}{pcie}"));
    let chosen = planned(&machine, Kind::Allgather, "links", (None, &Params::new()));
    let over = chosen.best().time.seconds / bound(&machine, Kind::Allgather);
    assert!(over < 1.02, "{} takes {over} times its bound", chosen.best().params);
}

/// A plan lists every depth that shortens the time, up to the number of other ranks.
#[test]
fn no_deeper_forest_is_much_faster() {
    for seed in 0..crate::soak::cases(100) / 25 {
        let (accelerators, edges) = graph(u64::from(seed) + 1000, 6);
        let machine = network(accelerators, &edges);
        let chosen = planned(&machine, Kind::Broadcast, "links", (None, &Params::new())).best().time.seconds;
        for depth in 1..accelerators {
            let params = Params::new().with("depth", depth).with("chunks", 256);
            let request = Request::new(Kind::Broadcast, &machine, Part::All, BYTES / 4);
            let Ok(deep) = plan(Problem::new(&request).unwrap(), Some("forest"), &params) else { continue };
            let deep = deep.best().time.seconds;
            assert!(chosen <= 1.05 * deep, "network {seed}:\n{edges}depth {depth} takes {deep}, the choice {chosen}");
        }
    }
}

/// One accelerator has cables of 450 Gb/s in all, the others have more. Its cables limit both directions, which an
/// allreduce uses at the same time.
#[test]
fn an_allreduce_runs_both_ways_where_a_leaf_limits() {
    let machine = network(5, "0 2 gbps=400\n0 4 gbps=50\n1 3 gbps=800\n1 4 gbps=800\n2 3 gbps=800\n");
    let chosen = planned(&machine, Kind::Allreduce, "links", (None, &Params::new()));
    let (best, bound) = (chosen.best(), bound(&machine, Kind::Allreduce));
    assert!(best.params.get("through").is_some(), "{} {}", best.algorithm.name(), best.params);
    assert!(best.time.seconds < 1.2 * bound, "{} over {bound}", best.time.seconds);
    let file = chosen.file().unwrap();
    let proven = VerifiedFile::new(&file, Method::Auto).unwrap();
    let run = simulate(&proven, &RunOptions::default()).unwrap();
    assert!((run.seconds / best.time.seconds - 1.0).abs() < 0.05, "{} {}", run.seconds, best.time.seconds);
}

/// Packets use the two cables of 800 Gb/s through the switch, and in a box the paths through its fast switch.
#[test]
fn slow_cables_beside_fast_ones_hold_nobody_up() {
    let boxes = "0 4 gbps=2966\n1 4 gbps=2966\n2 4 gbps=2966\n3 4 gbps=2966\n0 5 gbps=384\n1 5 gbps=384\n2 5 gbps=384\n\
                 3 5 gbps=384\n";
    for (accelerators, edges, slow) in [(2, "0 1 gbps=50\n0 2 gbps=800\n1 2 gbps=800\n", 1.1), (4, boxes, 1.2)] {
        let machine = network(accelerators, edges);
        for kind in [Kind::Broadcast, Kind::Allgather, Kind::Alltoall] {
            let time = planned(&machine, kind, "links", (None, &Params::new())).best().time.seconds;
            let over = time / bound(&machine, kind);
            assert!(over < slow, "{kind} on\n{edges}takes {over} times its bound");
        }
    }
}
