//! Bounds of groups and messages that communicate at the same time, compared with packets.

use crate::common::step;

use unisono_collective::Kind;
use unisono_machine::{Machine, network::Network};
use unisono_plan::workload::graph::Level;
use unisono_workload::{Collected, Groups, Queues, RankClass, Work, WorkNode, WorkloadGraph};

use super::random::{Random, Style};

/// Returns the program `of` with a single node on each rank, which performs `work`.
fn program(of: WorkloadGraph, work: Work) -> WorkloadGraph {
    let node = WorkNode::new("all", work, Vec::new());
    let classes = vec![RankClass { ranks: (0..of.ranks).collect(), nodes: vec![node] }];
    WorkloadGraph { classes, queues: Queues::InOrder, ..of }
}

/// No collective or permutation of any groups is faster by packets than its bound.
#[test]
fn packets_take_at_least_the_bound() {
    const KINDS: [Kind; 8] = [
        Kind::Allgather,
        Kind::Allreduce,
        Kind::Alltoall,
        Kind::Broadcast,
        Kind::Gather,
        Kind::Reduce,
        Kind::ReduceScatter,
        Kind::Scatter,
    ];
    let style = Style { sides: &[2, 3, 4, 8], nodes: 1, bytes: 0..1, microseconds: 1, uneven: false };
    for name in ["dgx-h100-x8", "mi250-x2", "fattree-tapered75-small", "hx2mesh-small"] {
        // Bounds use the data sheet, so the times must use it too.
        let machine: Machine = Machine::preset(name).unwrap().get::<Network>().unwrap().data_sheet().into();
        let mut r = Random(7);
        let mut tight = 0;
        let draws = if crate::soak::is_on() { 40 } else { 16 };
        for _ in 0..draws {
            let of = super::random::program(&mut r, &style);
            if of.ranks > machine.get::<Network>().unwrap().topology("").unwrap().accelerators() {
                continue;
            }
            let bytes = 1 << (8 + r.below(13));
            let root = r.below(2) as u32;
            let work = if r.below(4) == 0 {
                Work::Permute { bytes, receivers: r.below(4) as u32 }
            } else {
                let (kind, groups) = (r.pick(&KINDS), r.below(4) as u32);
                Work::Collective(Collected { kind, bytes, element_bytes: 4, root, groups })
            };
            let program = program(of, work);
            let report = step(&machine, &program, Level::Packet, true);
            let Some(row) = report.collectives.first() else { continue };
            let (Some(bound), seconds) = (row.bound, report.iteration.seconds) else { continue };
            assert!(bound <= seconds * (1.0 + 1e-9), "{name}, {work:?}: bound {bound} s, packets {seconds} s");
            tight += u32::from(bound > seconds / 1.2);
        }
        // The check above would also pass for bounds far below all times, so some bounds must be near their times.
        assert!(tight * 13 > draws, "{name}: {tight} of {draws} collectives are within 20 % of their bounds");
    }
}

/// Eight groups, each with one GPU in every box, use one interface per box each. The bound of all groups is eight times
/// the bound of one group, which alone could use all interfaces.
#[test]
fn groups_across_boxes_share_their_interfaces() {
    let machine = Machine::preset("dgx-h100-x8").unwrap();
    let rails: Vec<Vec<u32>> = (0..8).map(|gpu| (0..8).map(|node| 8 * node + gpu).collect()).collect();
    let mut r = Random(1);
    let style = Style { sides: &[8], nodes: 1, bytes: 0..1, microseconds: 1, uneven: false };
    let bytes = 8 << 20;
    for (kind, crossing) in [(Kind::Allgather, 7.0), (Kind::ReduceScatter, 7.0), (Kind::Allreduce, 1.75)] {
        let work = Work::Collective(Collected { kind, bytes, element_bytes: 4, root: 0, groups: 0 });
        let [all, one] = [8, 1].map(|count| {
            let groups = vec![Groups::new(64, rails[..count].to_vec()).unwrap()];
            let of = WorkloadGraph { groups, ..super::random::program(&mut r, &style) };
            step(&machine, &program(of, work), Level::Model, true).collectives[0].bound.unwrap()
        });
        // An interface has 50 GB/s; an allreduce sends 2 (8 - 1) vectors between 8 boxes.
        let expected = crossing * bytes as f64 / 50e9;
        assert!((all / expected - 1.0).abs() < 1e-9, "{kind}: {all} s, expected {expected} s");
        assert!(one < all / 7.0, "{kind}: {one} s for one group, {all} s for eight");
    }
}
