//! Phases of arbitrary instructions: no predicted time is shorter than the machine allows.

use crate::common;

use common::{DEPTH_CYCLES, case, every_case, label};
use unisono_algorithms::{Case, Params, find};
use unisono_collective::{Kind, Operator};
use unisono_cost::{
    CostProblem, all_bounds,
    wafer::{Model, WaferPart, find_model, measure},
};
use unisono_lower::{File, Placed, parse, print};
use unisono_machine::{Grid, Machine, Shape};
use unisono_plan::{Part, Plan, Problem, Request, plan, predict};

/// Returns the schedule with a new phase for each instruction; `phases` is the number of phases.
fn relabelled(placed: &Placed, phases: u32, phase_of: impl Fn(u32) -> u32) -> Placed {
    let file =
        File { schedule: placed.schedule.clone(), placement: placed.placement.clone(), machine: None, blocks: None };
    let mut text = String::new();
    print(&file, &mut text).unwrap();
    let relabel = |line: &str| {
        if line.starts_with("phases") {
            return format!("phases{}", (0..phases).map(|p| format!(" p{p}")).collect::<String>());
        }
        let Some((id, rest)) = line.trim_start().strip_prefix('i').and_then(|l| l.split_once(':')) else {
            return line.to_owned();
        };
        let id: u32 = id.split(' ').next().unwrap().parse().unwrap();
        format!("i{id} p{}:{rest}", phase_of(id))
    };
    let text: Vec<String> = text.lines().map(relabel).collect();
    let file = parse(&text.join("\n"), "relabelled").unwrap();
    Placed { schedule: file.schedule, placement: file.placement }
}

fn cycles(placed: &Placed, model: &'static dyn Model) -> f64 {
    let estimate = model.slowest(measure(placed.grid().unwrap()).unwrap(), DEPTH_CYCLES);
    model.cycles(&estimate, DEPTH_CYCLES).0
}

/// Returns the least time of any schedule, in cycles: the physical bound of a reduction, or a message's time for
/// collectives that only move data.
fn least(case: &Case) -> f64 {
    let part = WaferPart { grid: case.grid(), depth_cycles: 5.0, clock_mhz: 850.0 };
    let problem = CostProblem { collective: case.collective, part: &part };
    let bounds = all_bounds().filter(|b| b.name.starts_with("physical") || b.name == "message");
    bounds.filter_map(|b| (b.time)(&problem)?.cycles).fold(0.0, f64::max)
}

#[test]
fn a_message_from_phase_to_phase_counts() {
    let case = case(Kind::Reduce, Grid::new(1, 8), 256, 0, Operator::Sum);
    let placed = find("chain").unwrap().build(&case, &Params::new()).unwrap();
    // B = 512 wavelets: a chain takes B, 7 hops, and 5 cycles for each of 7 messages.
    let paper = find_model("paper").unwrap();
    assert_eq!(cycles(&placed, paper), 512.0 + 7.0 + 35.0);
    // If instructions alternate between two phases, each phase takes B, and both share the hops and messages.
    let odd = relabelled(&placed, 2, |i| i % 2);
    assert_eq!(cycles(&odd, paper), 2.0 * 512.0 + 7.0 + 35.0);
    // If data is sent in one phase and read in another, the sender's phase is empty.
    let message = common::case(Kind::Message, Grid::new(1, 2), 50, 0, Operator::Sum);
    let placed = find("message").unwrap().build(&message, &Params::new()).unwrap();
    let split = relabelled(&placed, 2, |i| 1 - i);
    let phases = measure(split.grid().unwrap()).unwrap();
    assert_eq!(phases.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(), ["p1"]);
    assert_eq!(phases[0].lines, measure(placed.grid().unwrap()).unwrap()[0].lines);
}

fn reduce_by(algorithm: &str, pes: u32, elements: u64) -> Plan {
    let wafer = Machine::preset("wse2").unwrap();
    let request = Request::new(Kind::Reduce, &wafer, Part::Shape(Shape::line(pes)), elements);
    plan(Problem::new(&request).unwrap(), Some(algorithm), &Params::new()).unwrap()
}

#[test]
fn an_empty_schedule_takes_no_time() {
    let plan = reduce_by("chain", 1, 4);
    let predicted = predict(&plan.file().unwrap(), None).unwrap();
    for cycles in [plan.report().unwrap().predicted.cycles, predicted.cycles] {
        let cycles = cycles.unwrap();
        assert!(cycles == 0.0 && cycles.is_sign_positive(), "{cycles}");
    }
}

#[test]
fn no_labels_go_under_what_the_machine_allows() {
    every_case(&[1, 5, 64], Operator::Sum, |algorithm, case, params| {
        let placed = algorithm.build(case, params).unwrap();
        let least = least(case);
        let scattered = |i: u32| (i.wrapping_mul(0x9e37_79b9) >> 16) % 3;
        for labels in [placed.clone(), relabelled(&placed, 2, |i| i % 2), relabelled(&placed, 3, scattered)] {
            // Eq. 1 averages over links, which is a bound only on a line.
            for model in if case.grid().is_line() { &["paper", "links"][..] } else { &["links"][..] } {
                let cycles = cycles(&labels, find_model(model).unwrap());
                let name = label(algorithm, case, params);
                assert!(cycles >= least - 1e-9, "{name}, {model}: {cycles} {least}");
            }
        }
    });
}

#[test]
fn a_report_says_what_was_searched_and_what_is_not_eq_1() {
    let report = |pes, elements, algorithm| reduce_by(algorithm, pes, elements).report().unwrap();
    let searched = report(512, 256, "two-phase-searched");
    let phases = searched.predicted.phases.as_ref().unwrap();
    assert!(phases[0].note.as_ref().unwrap().starts_with("groups of "), "{searched:?}");
    // B(P-1) + 5 is the paper's formula. For P = 2 it is one cycle below the least time of Eq. 1, B + P-1 + 5.
    let star = report(2, 100, "star");
    assert_eq!(star.predicted.cycles, Some(105.0));
    assert_eq!(star.model_optimum, None);
    assert!(star.notes.concat().contains("leaves out the first hop"));
}
