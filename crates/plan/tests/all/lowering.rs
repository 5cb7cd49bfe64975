//! Every algorithm becomes a program of the wafer within its colors and switch positions.

use crate::common;

use std::collections::BTreeMap;

use common::{case, every_case, label};
use unisono_algorithms::{Params, find};
use unisono_collective::{Dtype, Kind, Operator};
use unisono_lower::wafer::{LowerError, Port, prove_and_lower};
use unisono_lower::{GridPlacement, Placed};
use unisono_machine::{Grid, Machine, Wafer};

fn wse2() -> Wafer {
    Machine::preset("wse2").unwrap().get::<Wafer>().unwrap().clone()
}

#[test]
fn programs_stay_within_the_paper_s_colors() {
    let wafer = wse2();
    let mut most: BTreeMap<(bool, &str), usize> = BTreeMap::new();
    every_case(&[0, 1, 5, 40], Operator::Sum, |algorithm, case, params| {
        let name = label(algorithm, case, params);
        let mut case = *case;
        case.collective.dtype = Dtype::F32;
        let placed = algorithm.build(&case, params).unwrap();
        let program = prove_and_lower(&placed, &wafer).unwrap_or_else(|e| panic!("{name}: {e}"));
        let colors = program.colors().len();
        let line = case.grid().is_line();
        // The paper has no code for the ring; greedy coloring needs one more color for its folded mapping.
        let ring = algorithm.name() == "ring" || params.iter().any(|(_, v)| v == "ring");
        let ours = ["kd-tree", "quad-", "slack-tree", "two-way", "x-y-scan", "xy-yx"].iter().any(|n| name.contains(n));
        let limit = if line { 3 } else { 5 } + usize::from(ring) * if line { 1 } else { 4 };
        let limit = if ours { 21 } else { limit };
        assert!(colors <= limit, "{name}: {colors} colors");
        let seen = most.entry((line, algorithm.name())).or_default();
        *seen = (*seen).max(colors);
        for pe in 0..program.pe_count() {
            for route in program.routes(pe) {
                for p in route.positions() {
                    assert_eq!(p.rx.count(), 1, "{name}: one input a position");
                    assert!(!p.tx.is_empty(), "{name}: wavelets go somewhere");
                    let back = p.rx.iter().any(|port| p.tx.has(port) && port != Port::Ramp);
                    assert!(!back, "{name}: no wavelet turns back");
                }
            }
        }
    });
    assert_eq!(most[&(true, "chain")], 2);
    assert_eq!(most[&(true, "star")], 1);
    assert_eq!(most[&(true, "ring")], 4);
    assert_eq!(most[&(false, "x-y")], 4);
}

/// As in the paper's code, only the last child of a PE in a tree sends a control wavelet. Other children advance their
/// own router only.
#[test]
fn only_last_children_send_control_wavelets() {
    let mut case = case(Kind::Reduce, Grid::new(1, 64), 16, 0, Operator::Sum);
    case.collective.dtype = Dtype::F32;
    let placed = find("tree").unwrap().build(&case, &Params::new()).unwrap();
    let program = prove_and_lower(&placed, &wse2()).unwrap();
    for pe in 1..64usize {
        let parent = pe & (pe - 1);
        let last = (pe + 1..64).all(|other| other & (other - 1) != parent);
        let last_op = program.op(program.thread_ops(program.threads(pe).start).end - 1);
        assert!(last_op.control.is_none() || last, "PE {pe} is not the last child of PE {parent}");
        assert!(last_op.advance.is_none() || last_op.control.is_none(), "PE {pe} switches twice");
    }
}

/// A PE of four trees has up to eight children at the ends of groups of several lines; the flood needs one more queue.
#[test]
fn four_two_phase_trees_leave_a_queue_for_the_flood() {
    let wafer = wse2();
    let algorithm = find("reduce-broadcast").unwrap();
    let params = Params::new().with("reduce", "quad-two-phase");
    for (rows, cols) in (2..=20).flat_map(|rows| [3, 6, 8, 16, 17, 25].map(|cols| (rows, cols))).chain([(64, 64)]) {
        let mut case = case(Kind::Allreduce, Grid::new(rows, cols), 16, 0, Operator::Sum);
        case.collective.dtype = Dtype::F32;
        let placed = algorithm.build(&case, &params).unwrap();
        prove_and_lower(&placed, &wafer).unwrap_or_else(|e| panic!("{rows}x{cols}: {e}"));
    }
}

#[test]
fn what_does_not_fit_is_refused_with_the_number() {
    let mut case = case(Kind::Reduce, Grid::new(1, 64), 16, 0, Operator::Sum);
    let placed = find("tree").unwrap().build(&case, &Params::new()).unwrap();
    let e = prove_and_lower(&placed, &wse2()).unwrap_err().to_string();
    assert_eq!(e, "no wavelet carries elements of i64; it carries one element of f32 or i32, or two of i16");

    case.collective.dtype = Dtype::F32;
    let placed = find("tree").unwrap().build(&case, &Params::new()).unwrap();
    let narrow = Wafer { switch_positions: 1, ..wse2() };
    let e = prove_and_lower(&placed, &narrow).unwrap_err();
    assert!(matches!(e, LowerError::TooMany { what: "switch positions", found: 2, most: 1, .. }), "{e}");
    let few = Wafer { colors: 1, reserved_colors: vec![], ..wse2() };
    let e = prove_and_lower(&placed, &few).unwrap_err();
    assert!(matches!(e, LowerError::TooMany { what: "colors", found: 2, most: 1, .. }), "{e}");
}

#[test]
fn one_color_for_a_chain_is_refused() {
    let mut case = case(Kind::Reduce, Grid::new(1, 4), 16, 0, Operator::Sum);
    case.collective.dtype = Dtype::F32;
    let placed = find("chain").unwrap().build(&case, &Params::new()).unwrap();
    let placement = GridPlacement { colors: vec![0; 3], ..placed.grid().unwrap().placement.clone() };
    let e = prove_and_lower(&Placed::on_grid(placed.schedule, placement), &wse2()).unwrap_err();
    assert!(matches!(e, LowerError::Switching(_)), "{e}");
}
