//! Random programs: a mesh of ranks with collectives of the groups along its axes, of all ranks and of random groups,
//! messages to neighbors, and compute that differs between classes.

pub use unisono_base::Random;
use unisono_collective::Kind;
use unisono_workload::{Collected, Compute, Groups, RankClass, Work, WorkNode, WorkloadGraph};

pub struct Style {
    /// The sizes from which both sides of the mesh are drawn.
    pub sides: &'static [u32],
    pub nodes: u64,
    /// The exponents of 2 from which the bytes of communications are drawn.
    pub bytes: std::ops::Range<u64>,
    pub microseconds: u64,
    /// True if each rank is a class and no two nodes compute equally long.
    pub uneven: bool,
}

const KINDS: [Kind; 5] = [Kind::Allreduce, Kind::Allgather, Kind::ReduceScatter, Kind::Alltoall, Kind::Broadcast];

pub fn program(r: &mut Random, style: &Style) -> WorkloadGraph {
    let (a, b) = (r.pick(style.sides), r.pick(style.sides));
    let ranks = a * b;
    let mut shuffled: Vec<u32> = (0..ranks).collect();
    for at in (1..shuffled.len()).rev() {
        shuffled.swap(at, r.below(at as u64 + 1) as usize);
    }
    let lists: [Vec<Vec<u32>>; 4] = [
        (0..a).map(|row| (0..b).map(|col| row * b + col).collect()).collect(),
        (0..b).map(|col| (0..a).map(|row| row * b + col).collect()).collect(),
        vec![(0..ranks).collect()],
        shuffled.chunks(b as usize).map(<[u32]>::to_vec).collect(),
    ];
    let groups = lists.map(|lists| Groups::new(ranks, lists).unwrap());
    // The next rank along an axis; the last sends to the first only if `around`.
    let shifted = |step: u32, around: bool| -> Vec<u32> {
        let to = |rank: u32| {
            if rank + step < ranks {
                rank + step
            } else if around {
                rank + step - ranks
            } else {
                rank
            }
        };
        (0..ranks).map(to).collect()
    };
    // The last set has messages along both axes at once.
    let receivers = vec![
        vec![shifted(1, true)],
        vec![shifted(b, true)],
        vec![shifted(b, false)],
        vec![shifted(1, true), shifted(b, false)],
    ];
    let count = 1 + r.below(style.nodes);
    let mut works: Vec<Work> = (0..count).map(|_| work(r, style)).collect();
    let mut after: Vec<Vec<u32>> = (0..count).map(|n| (0..n.min(2)).map(|_| r.below(n) as u32).collect()).collect();
    if style.uneven {
        // Ranks start at different times.
        works[0] = Work::Compute(Compute::Measured { seconds: 1e-6 });
        after.iter_mut().skip(1).for_each(|after| after.push(0));
    }
    let of_ranks = if style.uneven { ranks } else { 1 + r.below(2) as u32 };
    let classes = (0..of_ranks).map(|class| {
        let node = |(n, (work, after)): (usize, (&Work, &Vec<u32>))| {
            let work = match work {
                Work::Compute(Compute::Measured { seconds }) => {
                    // An addend in picoseconds that no other node of any class has.
                    let own = f64::from(class) * 1.009e-9 + n as f64 * 1.013e-12;
                    let own = if style.uneven { own } else { 0.2 * f64::from(class) * seconds };
                    Work::Compute(Compute::Measured { seconds: seconds + own })
                }
                work => *work,
            };
            WorkNode::new(format!("node {n}"), work, after.clone())
        };
        // The ranks of a class: half of all ranks, or one rank.
        let ranks = (0..ranks).filter(|rank| rank * of_ranks / ranks == class).collect();
        RankClass { ranks, nodes: works.iter().zip(&after).enumerate().map(node).collect() }
    });
    WorkloadGraph {
        name: "random".to_owned(),
        format: "test",
        ranks,
        groups: groups.to_vec(),
        receivers,
        classes: classes.collect(),
        ..WorkloadGraph::default()
    }
}

fn work(r: &mut Random, style: &Style) -> Work {
    let power = style.bytes.start + r.below(style.bytes.end - style.bytes.start);
    let bytes = (1 << power) + 4 * r.below(1 << power.saturating_sub(3));
    match r.below(10) {
        0..4 => Work::Compute(Compute::Measured { seconds: (1 + r.below(style.microseconds)) as f64 * 1e-6 }),
        4 => Work::Permute { bytes, receivers: r.below(4) as u32 },
        _ => {
            let (kind, groups) = (r.pick(&KINDS), r.below(4) as u32);
            Work::Collective(Collected { kind, bytes, element_bytes: 4, root: 0, groups })
        }
    }
}
