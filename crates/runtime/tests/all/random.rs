//! Random allreduces: the vector is divided into random chunks, each of which is summed up a random tree and sent down
//! it again, by random lanes, with multicasts, accumulation in place and scratch memory that several chunks share. For
//! any order of messages, the bits are those of the interpreter, and any number of elements is supported.

use proptest::prelude::*;
use unisono_base::NodeId;
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_runtime::local;
use unisono_schedule::{
    Builder, Operand, Schedule, interpret,
    stored::{Blocking, store},
    verify::{Method, Verified},
};

struct Draws<'a>(std::iter::Cycle<std::slice::Iter<'a, u32>>);

impl Draws<'_> {
    fn below(&mut self, n: u32) -> u32 {
        self.0.next().copied().unwrap_or(0) % n.max(1)
    }
}

/// Adds one chunk: every rank sends its sum to its parent in a random tree, and receives the result from the parent.
fn chunk(b: &mut Builder, d: &mut Draws<'_>, ranks: u32, lanes: u32, start: u32, len: u32) {
    // The ranks are in a random order, in which each rank's parent precedes it.
    let mut order: Vec<u32> = (0..ranks).collect();
    for n in (1..ranks).rev() {
        order.swap(n as usize, d.below(n + 1) as usize);
    }
    let parent: Vec<u32> = (0..ranks).map(|n| if n == 0 { 0 } else { d.below(n) }).collect();
    let lane = d.below(lanes);
    let node = |n: u32| NodeId(order[n as usize]);
    let up: Vec<_> = (1..ranks).map(|n| b.stream(node(n), &[node(parent[n as usize])])).collect();
    let (in_steps, shared) = (d.below(2) == 0, d.below(2) == 0);
    for n in (0..ranks).rev() {
        let children: Vec<u32> = (n + 1..ranks).filter(|&m| parent[m as usize] == n).collect();
        let streams = children.iter().map(|&m| Operand::Stream(up[m as usize - 1]));
        let sink = if n == 0 { Operand::Out(start) } else { Operand::Stream(up[n as usize - 1]) };
        if in_steps && !children.is_empty() {
            // Sums are in scratch memory, one child after the other; all chunks of a lane may use the same part of it.
            let place = if shared { start } else { b.scratch(node(n), len) };
            let mut left = Operand::In(start);
            for stream in streams {
                b.combine(node(n), lane, len, &[stream, left], &[Operand::Tmp(place)]);
                left = Operand::Tmp(place);
            }
            b.combine(node(n), lane, len, &[left], &[sink]);
        } else {
            let sources: Vec<_> = std::iter::once(Operand::In(start)).chain(streams).collect();
            b.combine(node(n), lane, len, &sources, &[sink]);
        }
    }
    let down_lane = if d.below(2) == 0 { lane } else { lanes + d.below(lanes) };
    // The root's second lane must wait for the sum.
    let last = b.lane_ends(node(0));
    for n in 0..ranks {
        let children: Vec<NodeId> = (n + 1..ranks).filter(|&m| parent[m as usize] == n).map(node).collect();
        if children.is_empty() {
            continue;
        }
        let down = b.stream(node(n), &children);
        let id = b.combine(node(n), down_lane, len, &[Operand::Out(start)], &[Operand::Stream(down)]);
        if n == 0 {
            last.iter().for_each(|&l| b.after(id, l));
        }
        for child in children {
            b.combine(child, down_lane, len, &[Operand::Stream(down)], &[Operand::Out(start)]);
        }
    }
}

fn schedule(ranks: u32, lanes: u32, chunks: &[u32], draws: &[u32]) -> Schedule {
    let elements: u32 = chunks.iter().sum();
    let c = Collective::new(Kind::Allreduce, ranks, u64::from(elements), 0, Operator::Sum, Dtype::F32).unwrap();
    let mut b = Builder::new(c);
    for n in 0..ranks {
        b.scratch(NodeId(n), elements);
    }
    let mut draws = Draws(draws.iter().cycle());
    let mut start = 0;
    for &len in chunks {
        chunk(&mut b, &mut draws, ranks, lanes, start, len);
        start += len;
    }
    b.finish().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::soak::cases(1500), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bits_are_the_interpreters(
        ranks in 1u32..8,
        lanes in 1u32..4,
        chunks in prop::collection::vec(1u32..4, 1..7),
        draws in prop::collection::vec(any::<u32>(), 1..60),
        factor in 1usize..4,
        short in 0usize..8,
        seed: u64,
    ) {
        let proven = Verified::new(schedule(ranks, lanes, &chunks, &draws), Method::Exact).unwrap();
        let stored = store(&proven).unwrap();
        prop_assert_eq!(stored.facts().blocking, Blocking::Any);
        let blocks = proven.schedule().collective().elements as usize;
        let value = |r: usize, k: usize| 1.0 / (1 + r * 131 + k * 17) as f32;
        let n = (blocks * factor).saturating_sub(short);
        let inputs: Vec<Vec<f32>> = (0..ranks as usize).map(|r| (0..n).map(|k| value(r, k)).collect()).collect();
        let got = local::run(stored.facts(), stored.programs(), n, &inputs, seed).unwrap();
        // Element k of the vector is element j of a run of the interpreter, for the same element of each block.
        let pitch = n.div_ceil(blocks);
        for offset in 0..pitch {
            let at = |b: usize| (b * pitch + offset).min(n - 1);
            let picked: Vec<Vec<f32>> = inputs.iter().map(|v| (0..blocks).map(|b| v[at(b)]).collect()).collect();
            let expected = interpret::run(proven.schedule(), &picked, interpret::Options::default()).unwrap();
            for (rank, output) in expected.iter().enumerate() {
                for (b, x) in output.iter().enumerate().filter(|(b, _)| b * pitch + offset < n) {
                    prop_assert_eq!(got[rank][b * pitch + offset].to_bits(), x.to_bits());
                }
            }
        }
    }
}
