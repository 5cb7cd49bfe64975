//! On networks, the simulated time of the default model's choice is at most 5 % longer than that of the best candidate.

use unisono_algorithms::Params;
use unisono_collective::Kind;
use unisono_machine::{Machine, Shape};
use unisono_plan::{Part, Plan, Problem, Request, TimeSource, plan as plan_of};

const KINDS: [Kind; 6] =
    [Kind::Allgather, Kind::Allreduce, Kind::Alltoall, Kind::Broadcast, Kind::Reduce, Kind::ReduceScatter];

/// Presets, each with the shape of a part if the preset is large. `benches/networks.py` has more presets, and all
/// lengths.
const MACHINES: [(&str, Option<[u32; 2]>); 10] = [
    ("dgx-a100", None),
    ("dgx-h100", None),
    ("dragonfly-small", Some([1, 16])),
    ("fattree-small", Some([1, 16])),
    ("hx2mesh-small", Some([2, 8])),
    ("hx2mesh-small", Some([4, 4])),
    ("hyperx2d-small", Some([1, 16])),
    ("mi300x", None),
    ("ndv2", None),
    ("torus2d-small", Some([4, 4])),
];

const MOST: f64 = 1.05;

fn plan(machine: &Machine, shape: Option<[u32; 2]>, kind: Kind, bytes: u64, model: Option<&str>) -> Plan {
    let part = shape.map_or(Part::All, |[rows, cols]| {
        Part::Shape(if rows == 1 { Shape::line(cols) } else { Shape::rect(rows, cols) })
    });
    let request = Request { model, ..Request::new(kind, machine, part, bytes / 4) };
    plan_of(Problem::new(&request).unwrap(), None, &Params::new()).unwrap()
}

/// Returns the simulated time of the choice divided by that of the best candidate, and the predicted time of the choice
/// divided by its simulated time.
fn ratios(machine: &Machine, shape: Option<[u32; 2]>, kind: Kind, bytes: u64) -> (f64, f64) {
    let chosen = plan(machine, shape, kind, bytes, None);
    let chosen = chosen.best();
    let packets = plan(machine, shape, kind, bytes, Some("packets"));
    let same = packets
        .candidates
        .iter()
        .find(|one| (one.algorithm.name(), &one.params) == (chosen.algorithm.name(), &chosen.params));
    let same = same.expect("the same candidates");
    assert_eq!(same.source, TimeSource::Simulated);
    (same.time.seconds / packets.best().time.seconds, chosen.time.seconds / same.time.seconds)
}

#[test]
fn choices_are_near_the_best_by_simulation() {
    are_near_the_best(0..5);
}

#[test]
fn choices_on_further_machines_are_near_the_best_by_simulation() {
    are_near_the_best(5..MACHINES.len());
}

fn are_near_the_best(turns: std::ops::Range<usize>) {
    let sizes = [8 << 10, 64 << 10, 1 << 20, 4 << 20];
    for (turn, (name, shape)) in turns.clone().zip(&MACHINES[turns]) {
        let (machine, shape) = (Machine::preset(name).unwrap(), *shape);
        for (at, kind) in KINDS.into_iter().enumerate() {
            if !crate::soak::runs((turn * KINDS.len() + at) as u64) {
                continue;
            }
            let size: u64 = sizes[(turn + at) % sizes.len()];
            let has_blocks = matches!(kind, Kind::Allgather | Kind::Alltoall | Kind::ReduceScatter);
            let bytes = if has_blocks { size / 16 } else { size };
            let (over_best, over_run) = ratios(&machine, shape, kind, bytes);
            assert!(over_best <= MOST, "{name} {shape:?} {kind} of {bytes}: {over_best}");
            assert!((0.8..1.2).contains(&over_run), "{name} {shape:?} {kind} of {bytes}: {over_run}");
        }
    }
}

/// The packets of rings whose messages share two links to a switch do not stay in step, which timetables do not model.
/// Dual rings and buckets have the shortest predictions, but take 1.11 times as long. The simulator refutes both
/// predictions.
#[test]
fn the_best_predictions_are_checked_by_packets() {
    let machine = Machine::preset("hyperx2d-small").unwrap();
    let (shape, bytes) = (Some([1, 16]), 17 << 20);
    let chosen = plan(&machine, shape, Kind::Allreduce, bytes, None);
    let refuted = chosen.candidates.iter().filter(|one| one.source == TimeSource::Simulated);
    let refuted: Vec<&str> = refuted.map(|one| one.algorithm.name()).collect();
    assert_eq!(refuted, ["dual-rings", "bucket"]);
    let (over_best, over_run) = ratios(&machine, shape, Kind::Allreduce, bytes);
    assert!(over_best <= MOST, "{over_best}");
    assert!((over_run - 1.0).abs() < 0.02, "{over_run}");
}

/// The closed form of exchanges distributes packets over paths that real packets do not take. If it ranks a candidate
/// first, the candidate is timed by its messages.
#[test]
fn the_best_closed_forms_are_checked_by_messages() {
    let machine = Machine::preset("hx2mesh-small").unwrap();
    let request = Request::new(Kind::Allreduce, &machine, Part::All, (8 << 20) / 4);
    let plan = plan_of(Problem::new(&request).unwrap(), None, &Params::new()).unwrap();
    let swing = plan.candidates.iter().find(|one| one.algorithm.name() == "swing").unwrap();
    assert_eq!(swing.source, TimeSource::Messages);
    assert_ne!(plan.best().algorithm.name(), "swing");
}

/// A named candidate is checked like the best candidate of a plan: by packets, also if it has a closed form.
#[test]
fn named_candidates_are_checked_like_the_best() {
    let mesh = Machine::preset("hyperx2d-small").unwrap();
    let named = |machine: &Machine, part: Part, bytes: u64, name: &str, model: Option<&str>| {
        let request = Request { model, ..Request::new(Kind::Allreduce, machine, part, bytes / 4) };
        let plan = plan_of(Problem::new(&request).unwrap(), Some(name), &Params::new()).unwrap();
        assert_eq!(plan.candidates.len(), 1);
        (plan.best().source, plan.best().time.seconds)
    };
    for name in ["dual-rings", "bucket", "bidirectional-ring", "swing"] {
        let [(source, predicted), (_, simulated)] =
            [None, Some("packets")].map(|model| named(&mesh, Part::Shape(Shape::line(16)), 17 << 20, name, model));
        assert!((predicted / simulated - 1.0).abs() < 0.02, "{name}: {predicted} {simulated}");
        // Only the packet simulator shows that the packets of these rings do not stay in step.
        if ["dual-rings", "bucket"].contains(&name) {
            assert_eq!((source, predicted), (TimeSource::Simulated, simulated), "{name}");
        }
    }
    let large = Machine::preset("hx2mesh-small").unwrap();
    assert_eq!(named(&large, Part::All, 16 << 20, "swing", None).0, TimeSource::Simulated);
}

/// A received message occupies its host when it arrives, not when it is summed. Predictions for hosts with many waiting
/// messages are up to 5 % too short.
#[test]
fn hosts_receive_messages_as_they_come() {
    let machine = Machine::preset("hx2mesh-small").unwrap();
    for overhead in ["0", "4", "16"] {
        let machine = machine.with_value("host_overhead_ns", overhead).unwrap();
        for chunks in [1, 4, 16] {
            let [predicted, simulated] = [None, Some("packets")].map(|model| {
                let part = Part::Shape(Shape::rect(4, 4));
                let request = Request { model, ..Request::new(Kind::Reduce, &machine, part, 2048) };
                let params = Params::new().with("depth", 2).with("chunks", chunks);
                plan_of(Problem::new(&request).unwrap(), Some("forest"), &params).unwrap().best().time.seconds
            });
            let most = if chunks == 16 { 0.06 } else { 0.01 };
            assert!((predicted / simulated - 1.0).abs() < most, "{overhead} {chunks}: {predicted} {simulated}");
        }
    }
}

/// Forests of many short messages keep hosts as busy as links, so messages wait for hosts: reduce-scatters take 1.35
/// times as long as by links alone. The timetable includes the work of hosts. Packets do not check it here, because the
/// schedules are large.
#[test]
fn large_forests_regard_the_work_of_hosts() {
    regards_hosts(Kind::Allreduce, [16, 24], 384 << 10);
}

#[test]
fn large_forests_of_blocks_regard_the_work_of_hosts() {
    regards_hosts(Kind::ReduceScatter, [24, 24], 1 << 10);
}

fn regards_hosts(kind: Kind, [rows, cols]: [u32; 2], bytes: u64) {
    let machine = Machine::preset("hx2mesh-small").unwrap();
    let forest = Params::new().with("chunks", 1).with("depth", 3);
    let [predicted, simulated] = [None, Some("packets")].map(|model| {
        let shape = Part::Shape(Shape::rect(rows, cols));
        let request = Request { model, ..Request::new(kind, &machine, shape, bytes / 4) };
        plan_of(Problem::new(&request).unwrap(), Some("forest"), &forest).unwrap().best().clone()
    });
    assert_eq!((predicted.source, simulated.source), (TimeSource::Trees, TimeSource::Simulated), "{kind}");
    let ratio = predicted.time.seconds / simulated.time.seconds;
    assert!((0.95..1.05).contains(&ratio), "{kind}: {ratio}");
}
