//! Proofs of long schedules, which several threads share.

use unisono_base::{NodeId, Random, parallel};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_schedule::{
    Builder, Operand, Schedule,
    verify::{Method, Seed, verify_seeded},
};

const RANKS: u32 = 96;

/// The fault of one rank of a ring.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    /// The rank omits its own part of a sum.
    Missing,
    /// The rank adds its part of another block to a sum.
    Swapped,
    /// The rank writes a result to the place of another result.
    Misplaced,
    /// The rank does not receive a result.
    Lost,
    /// The rank sends its first part after all other instructions, for which all ranks wait.
    Cycle,
}

const FAULTS: [Fault; 5] = [Fault::Missing, Fault::Swapped, Fault::Misplaced, Fault::Lost, Fault::Cycle];

/// Returns an allreduce on a ring: the sum of each block starts at the block's rank in `starts`, goes around once, and
/// its result once more. The fault, if given, is that of one rank in one block.
fn ring(starts: &[u32], fault: Option<(u32, u32, Fault)>) -> Schedule {
    let mut b =
        Builder::new(Collective::new(Kind::Allreduce, RANKS, RANKS.into(), 0, Operator::Sum, Dtype::F32).unwrap());
    let next = |rank: u32| (rank + 1) % RANKS;
    let streams: Vec<Operand> =
        (0..RANKS).map(|rank| Operand::Stream(b.stream(NodeId(rank), &[NodeId(next(rank))]))).collect();
    let mut late = None;
    for (block, &start) in (0..).zip(starts) {
        for step in 0..2 * RANKS - 1 {
            let rank = (start + step) % RANKS;
            let has = |wanted| fault == Some((rank, block, wanted));
            let (from, to) = (streams[((rank + RANKS - 1) % RANKS) as usize], streams[rank as usize]);
            let own = Operand::In(if has(Fault::Swapped) { next(block) } else { block });
            let sources = match step {
                0 => vec![own],
                _ if step >= RANKS || has(Fault::Missing) => vec![from],
                _ => vec![from, own],
            };
            let out = Operand::Out(if has(Fault::Misplaced) { next(block) } else { block });
            let mut sinks = if step + 1 < RANKS { vec![] } else { vec![out] };
            sinks.extend(Some(to).filter(|_| step < 2 * RANKS - 2));
            if step == 0 && matches!(fault, Some((.., Fault::Cycle))) && block == 0 {
                late = Some((rank, sources, sinks));
            } else if !(has(Fault::Lost) && step >= RANKS) {
                b.combine(NodeId(rank), 0, 1, &sources, &sinks);
            }
        }
    }
    if let Some((rank, sources, sinks)) = late {
        b.combine(NodeId(rank), 0, 1, &sources, &sinks);
    }
    b.finish().unwrap()
}

#[test]
fn two_cores_find_what_one_finds() {
    let mut numbers = Random(51);
    for round in 0..18 {
        // Blocks of one start have equal sums. Such blocks are in both halves of the results, in one half, or nowhere.
        let start = |block: u32, any: u32| match round % 3 {
            0 => any % 3,
            1 => any % 5 + if block < RANKS / 2 { 0 } else { RANKS / 2 },
            _ => (7 * block) % RANKS,
        };
        let starts: Vec<u32> = (0..RANKS).map(|block| start(block, numbers.bits() as u32 >> 8)).collect();
        let fault = FAULTS.get(numbers.below(9) as usize).map(|&fault| {
            let block = numbers.below(RANKS.into()) as u32;
            // The first and the last rank in the way of a block have no sum to spoil, or no result to send.
            let behind = 1 + numbers.below(u64::from(RANKS) - 2) as u32;
            ((starts[block as usize] + behind) % RANKS, block, fault)
        });
        for method in [Method::Exact, Method::Fingerprint] {
            let seed = Seed::random();
            let [one, two] = [1, 2].map(|cores| {
                parallel::set_cores(cores);
                let schedule = ring(&starts, fault);
                assert!(schedule.instr_count() > 1 << 14, "the schedule is long for all parts of the proof");
                let proof = verify_seeded(&schedule, method, seed);
                (schedule, proof)
            });
            assert!(one.0 == two.0);
            assert_eq!(one.1, two.1);
            assert_eq!(one.1.holds(), fault.is_none(), "{fault:?}: {:?}", one.1.diagnostics);
            assert_eq!(one.1.expression_class.is_some(), fault.is_none());
            let stuck = matches!(fault, Some((.., Fault::Cycle | Fault::Lost)));
            assert_eq!(one.1.deadlock_free, !stuck);
        }
    }
}
