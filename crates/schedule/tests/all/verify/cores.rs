//! Proofs of long schedules, whose contents are computed concurrently with the order.

use unisono_base::{NodeId, parallel};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_schedule::{
    Builder, Operand, Schedule,
    verify::{Method, Seed, verify_seeded},
};

const RANKS: u32 = 48;

/// The fault of one rank of a ring.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    /// The rank omits its own part of a sum.
    Missing,
    /// The rank writes a result to the place of another result.
    Misplaced,
    /// All ranks receive before they send.
    Cycle,
}

/// Returns an allreduce on a ring, with a fault if given: sums go around once, then results once.
fn ring(fault: Option<(u32, Fault)>) -> Schedule {
    let mut b =
        Builder::new(Collective::new(Kind::Allreduce, RANKS, RANKS.into(), 0, Operator::Sum, Dtype::F32).unwrap());
    let next = |rank: u32| (rank + 1) % RANKS;
    let streams: Vec<Operand> =
        (0..RANKS).map(|rank| Operand::Stream(b.stream(NodeId(rank), &[NodeId(next(rank))]))).collect();
    for rank in 0..RANKS {
        let of_rank = |wanted| fault == Some((rank, wanted));
        let (from, to) = (streams[((rank + RANKS - 1) % RANKS) as usize], streams[rank as usize]);
        let part = |step: u32| (rank + 2 * RANKS - step) % RANKS;
        let first = |b: &mut Builder| b.combine(NodeId(rank), 0, 1, &[Operand::In(part(0))], &[to]);
        let cycle = matches!(fault, Some((_, Fault::Cycle)));
        if !cycle {
            first(&mut b);
        }
        for step in 1..2 * RANKS - 1 {
            let (own, mut out) = (Operand::In(part(step)), Operand::Out(part(step)));
            if step == 2 * RANKS - 2 && of_rank(Fault::Misplaced) {
                out = Operand::Out(part(step + 1));
            }
            let sources =
                if step >= RANKS || step == 2 && of_rank(Fault::Missing) { vec![from] } else { vec![from, own] };
            let mut sinks = if step + 1 < RANKS { vec![] } else { vec![out] };
            sinks.extend(Some(to).filter(|_| step < 2 * RANKS - 2));
            b.combine(NodeId(rank), 0, 1, &sources, &sinks);
        }
        if cycle {
            first(&mut b);
        }
    }
    b.finish().unwrap()
}

#[test]
fn two_cores_find_what_one_finds() {
    let mut cases = vec![None, Some((0, Fault::Cycle))];
    cases
        .extend([0, 1, 17, RANKS - 1].iter().flat_map(|&at| [Fault::Missing, Fault::Misplaced].map(|f| Some((at, f)))));
    for fault in cases {
        let schedule = ring(fault);
        assert!(schedule.instr_count() >= 1 << 12, "contents are computed on a thread of their own");
        for method in [Method::Exact, Method::Fingerprint] {
            let seed = Seed::random();
            let proofs = [1, 2].map(|cores| {
                parallel::set_cores(cores);
                verify_seeded(&schedule, method, seed)
            });
            assert_eq!(proofs[0], proofs[1]);
            assert_eq!(proofs[0].holds(), fault.is_none(), "{:?}", proofs[0].diagnostics);
            assert_eq!(proofs[0].deadlock_free, !matches!(fault, Some((_, Fault::Cycle))));
        }
    }
}
