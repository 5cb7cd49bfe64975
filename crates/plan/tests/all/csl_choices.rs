//! The planner's choices for CSL: the emitted projects compute the results of plain arithmetic in an interpreter of CSL
//! that shares no code with the emitter.

use crate::csl_interpreter;
use unisono_collective::Kind;
use unisono_csl::Files;
use unisono_lower::VerifiedFile;
use unisono_machine::Machine;
use unisono_plan::{Format, Part, Plan, Problem, Request, TimeSource, Timed, plan_for};
use unisono_schedule::verify::Method;

fn planned(kind: Kind, side: u32, elements: u64) -> Plan {
    planned_on("wse2", kind, side, elements)
}

fn planned_on(machine: &str, kind: Kind, side: u32, elements: u64) -> Plan {
    let machine = Machine::preset(machine).unwrap();
    let request = Request::new(kind, &machine, Part::Shape(format!("{side}x{side}").parse().unwrap()), elements);
    plan_for(Problem::new(&request).unwrap(), None, &Default::default(), Some(Format::named("csl", None).unwrap()))
        .unwrap()
}

fn project(plan: &Plan) -> Files {
    let file = plan.file().unwrap();
    let files = Format::named("csl", None)
        .unwrap()
        .emitter()
        .unwrap()
        .emit(&VerifiedFile::new(&file, Method::Auto).unwrap())
        .unwrap();
    files.into_iter().map(|(name, contents)| (name, contents.text().unwrap().to_owned())).collect()
}

/// Returns a small whole number; sums of these are exact.
fn value(rank: u32, element: u32) -> f32 {
    ((7 * rank + 3 * element) % 11) as f32
}

/// Compares the interpreter's results for the choice in one case with plain arithmetic.
fn check(kind: Kind, side: u32, elements: u32) {
    check_on("wse2", kind, side, elements);
}

fn check_on(machine: &str, kind: Kind, side: u32, elements: u32) {
    let ranks = side * side;
    let inputs: Vec<Vec<f32>> = (0..ranks).map(|r| (0..elements).map(|e| value(r, e)).collect()).collect();
    let outputs = csl_interpreter::run(&project(&planned_on(machine, kind, side, elements.into())), &inputs);
    let holders = if kind == Kind::Reduce { 1 } else { ranks as usize };
    for (rank, output) in outputs.iter().enumerate().take(holders) {
        for (e, &found) in output.iter().enumerate() {
            let wanted: f32 = inputs.iter().map(|input| input[e]).sum();
            assert_eq!(found, wanted, "element {e} at PE {rank} of {kind} of {elements} on {side}x{side}");
        }
    }
}

#[test]
fn choices_on_16x16_make_right_sums() {
    check_lengths(Kind::Reduce);
}

#[test]
fn choices_on_16x16_make_right_sums_everywhere() {
    check_lengths(Kind::Allreduce);
}

fn check_lengths(kind: Kind) {
    let (side, elements) = if crate::soak::is_on() { (16, 256) } else { (8, 64) };
    for (side, elements) in [(16, 1), (16, 16), (side, elements)] {
        check(kind, side, elements);
    }
}

/// Plans for the WSE-3 are emitted for the WSE-3, and state the values that they assume.
#[test]
fn choices_for_the_wse_3_make_right_sums() {
    for (kind, elements) in [(Kind::Reduce, 32), (Kind::Allreduce, 16)] {
        check_on("wse3", kind, 8, elements);
    }
    let plan = planned_on("wse3", Kind::Reduce, 8, 32);
    let commands = project(&plan).into_iter().find(|f| f.0 == "commands.sh").unwrap().1;
    assert!(commands.contains("--arch=wse3 "), "{commands}");
    let notes = plan.report().unwrap().notes;
    let assumed = "ramp_latency_cycles, clock_mhz, queue_depth, hop_cycles of wse3 are assumed";
    assert!(notes.iter().any(|note| note.contains(assumed)), "{notes:?}");
}

/// An operation that stores and sends data is timed as it is emitted: 8 elements are stored, and then sent.
#[test]
fn a_scan_is_timed_as_it_is_emitted() {
    let plan = planned(Kind::Scan, 4, 16);
    assert_eq!((plan.best().algorithm.name(), plan.best().source), ("x-y-scan", TimeSource::Simulated));
    let file = plan.file().unwrap();
    let proven = VerifiedFile::new(&file, Method::Auto).unwrap();
    let run = unisono_plan::simulate(&proven, &Default::default()).unwrap();
    assert_eq!(run.cycles.map(|c| c as f64), plan.best().time.cycles);
    let machine = Machine::preset("wse2").unwrap();
    let request = Request::new(Kind::Scan, &machine, Part::Shape("4x4".parse().unwrap()), 16);
    let ideal = plan_for(Problem::new(&request).unwrap(), None, &Default::default(), None).unwrap();
    assert!(plan.best().time.cycles > ideal.best().time.cycles, "two operations an element take longer than one");
}

/// Four k-d trees are predicted to take 2 % longer than the best X-Y reduce, but take 2 % less. The chosen four slack
/// trees take still less.
#[test]
fn what_is_predicted_too_slow_is_simulated_too() {
    let plan = planned(Kind::Reduce, 16, 16);
    assert_eq!((plan.best().algorithm.name(), plan.best().params.get("trees")), ("slack-tree", Some("4")));
    let is_of_four = |one: &&Timed| one.algorithm.name() == "kd-tree" && one.params.get("trees") == Some("4");
    let trees = plan.candidates.iter().find(is_of_four).unwrap();
    assert_eq!(trees.source, TimeSource::Simulated);
    assert!(trees.time.cycles > plan.best().time.cycles);
    let by_axes = plan.candidates.iter().filter(|one| one.algorithm.name() == "x-y");
    assert!(by_axes.min_by(|a, b| a.time.total_cmp(&b.time)).unwrap().time.cycles > trees.time.cycles);
}

#[test]
#[ignore = "minutes: the interpreter runs 4,096 PEs word by word; choices_on_16x16_make_right_sums runs smaller cases"]
fn choices_up_to_64x64_make_right_sums() {
    for kind in [Kind::Reduce, Kind::Allreduce] {
        check(kind, 16, 4096);
        for elements in [1, 16, 256, 4096] {
            check(kind, 64, elements);
        }
    }
}

#[test]
#[ignore = "half an hour: 262,144 PEs word by word; choices_on_16x16_make_right_sums runs smaller cases"]
fn short_choices_on_512x512_make_right_sums() {
    for (kind, elements) in [(Kind::Reduce, 1), (Kind::Reduce, 16), (Kind::Allreduce, 1)] {
        check(kind, 512, elements);
    }
}

/// Predictions alone would choose two trees, which take 730 simulated cycles when emitted; four trees take 663.
#[test]
fn the_best_candidates_are_simulated_in_the_form_of_the_format() {
    let plan = planned(Kind::Reduce, 32, 256);
    assert_eq!((plan.best().algorithm.name(), plan.best().params.get("trees")), ("kd-tree", Some("4")));
    assert_eq!(plan.best().source, TimeSource::Simulated);
    let simulated: Vec<_> = plan.candidates.iter().take_while(|c| c.source == TimeSource::Simulated).collect();
    assert!(simulated.len() > 1);
    assert!(
        simulated.iter().any(|c| c.params.get("trees") == Some("2")),
        "the other number of trees was not simulated"
    );
    // No candidate without a simulation has a shorter prediction.
    let best = plan.best().time.cycles.unwrap();
    assert!(plan.candidates.iter().all(|c| c.time.cycles.unwrap() >= best));
    let file = plan.file().unwrap();
    let proven = VerifiedFile::new(&file, Method::Auto).unwrap();
    let run = unisono_plan::simulate(&proven, &Default::default()).unwrap();
    assert_eq!(run.cycles.map(|c| c as f64), Some(best));
}
