//! Groups that perform a collective by forests or in switches, compared with single groups.

use crate::common::step;

use unisono_collective::Kind;
use unisono_machine::Machine;
use unisono_plan::workload::graph::Level;
use unisono_workload::{Collected, Groups, RankClass, Work, WorkNode, WorkloadGraph};

/// Returns a program with one collective of all groups.
fn program(ranks: u32, groups: &[Vec<u32>], kind: Kind, bytes: u64) -> WorkloadGraph {
    let work = Work::Collective(Collected { kind, bytes, element_bytes: 4, root: 0, groups: 0 });
    WorkloadGraph {
        name: "apart".to_owned(),
        format: "test",
        ranks,
        groups: vec![Groups::new(ranks, groups.to_vec()).unwrap()],
        classes: vec![RankClass { ranks: (0..ranks).collect(), nodes: vec![WorkNode::new("all", work, Vec::new())] }],
        ..WorkloadGraph::default()
    }
}

fn timed(machine: &Machine, program: &WorkloadGraph, level: Level) -> (String, f64) {
    let report = step(machine, program, level, true);
    (report.collectives[0].algorithm.clone(), report.iteration.seconds)
}

fn every(first: u32, step: u32, count: u32) -> Vec<u32> {
    (0..count).map(|k| first + step * k).collect()
}

/// All groups together take as long as a single group, by the model and by packets.
#[test]
fn groups_apart_take_as_long_as_one() {
    let boxes: Vec<Vec<u32>> = (0..8).map(|n| every(8 * n, 1, 8)).collect();
    let machine = Machine::preset("dgx-h100-x8").unwrap();
    let bytes = 16 << 20;
    let (all, one) = (program(64, &boxes, Kind::Allreduce, bytes), program(64, &boxes[..1], Kind::Allreduce, bytes));
    for level in [Level::Model, Level::Packet] {
        let [(by, together), (by_one, alone)] = [&all, &one].map(|program| timed(&machine, program, level));
        assert_eq!((by.as_str(), by_one.as_str()), ("in-network", "in-network"));
        assert!((together / alone - 1.0).abs() < 1e-3, "{}: {together} s, one alone {alone} s", level.name());
    }
}

/// Every group uses the forest of the first group. Boxes do not share links, halves of a box do. The model agrees with
/// packets for both.
#[test]
fn groups_take_the_forest_of_the_first_one() {
    let machine = Machine::preset("mi250-x2").unwrap();
    let boxes: Vec<Vec<u32>> = (0..2).map(|n| every(16 * n, 1, 16)).collect();
    let halves: Vec<Vec<u32>> = (0..4).map(|n| every(8 * n, 1, 8)).collect();
    for (groups, is_apart) in [(&boxes, true), (&halves, false)] {
        let (all, one) =
            (program(32, groups, Kind::Allgather, 1 << 18), program(32, &groups[..1], Kind::Allgather, 1 << 18));
        let (by, model) = timed(&machine, &all, Level::Model);
        let packets = timed(&machine, &all, Level::Packet).1;
        let alone = timed(&machine, &one, Level::Model).1;
        assert_eq!(by, "forest");
        assert!((model / packets - 1.0).abs() < 0.15, "{model} s by the model, {packets} s by packets");
        assert!(!is_apart || (model / alone - 1.0).abs() < 0.02, "{model} s together, {alone} s alone");
    }
}

/// Groups whose messages share links are timed by exchanges of all groups.
#[test]
fn groups_that_meet_share_links() {
    let machine = Machine::preset("dgx-h100-x8").unwrap();
    // Only at their full rate, switches are faster than trees among 4 GPUs.
    let text = machine.to_toml().replace("measured_share = 0.85\n", "");
    let machine = Machine::from_toml(&text, "whole").unwrap();
    // Two groups meet in the switch of each box. A switch with a limited reduction rate serves one group at a time.
    let text = text.replace("pulls = true", "pulls = true\nreduce_gbps = 3600");
    let slow = Machine::from_toml(&text, "slow").unwrap();
    let halves: Vec<Vec<u32>> = (0..16).map(|n| every(n / 2 * 8 + n % 2, 2, 4)).collect();
    let program_of = |groups: &[Vec<u32>]| program(64, groups, Kind::Allreduce, 8 << 20);
    assert_ne!(timed(&slow, &program_of(&halves), Level::Model).0, "in-network");
    // NVSwitches sum as fast as messages arrive, so they serve both groups at once.
    for level in [Level::Model, Level::Packet] {
        let [(by, together), (_, alone)] =
            [&halves[..], &halves[..1]].map(|groups| timed(&machine, &program_of(groups), level));
        assert_eq!(by, "in-network");
        assert!((together / alone - 1.0).abs() < 1e-3, "{}: {together} s, one alone {alone} s", level.name());
    }
    // Two groups whose ranks alternate in a row of a torus.
    let torus = Machine::preset("torus2d-small").unwrap();
    let groups = [every(0, 2, 8), every(1, 2, 8)];
    let level = Level::Model;
    let [together, alone] = [&groups[..], &groups[..1]]
        .map(|groups| timed(&torus, &program(16, groups, Kind::Allreduce, 1 << 20), level).1);
    assert!(together > 1.3 * alone, "{together} s together, {alone} s alone");
}
