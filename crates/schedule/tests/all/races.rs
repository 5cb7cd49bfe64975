//! Many accesses of two lanes to the same memory. The cost of the check must grow with the accesses, not with their
//! pairs.

use unisono_base::{Diagnostics, InstrId, NodeId};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_schedule::{
    Builder, Operand, Schedule,
    internals::{
        allowance::Allowance,
        order::{Runs, depth_first},
        race,
    },
    verify::{Method, verify},
};

const WRITES: u32 = 20_000;

/// Returns the number of steps that the search for races takes.
fn steps(schedule: &Schedule) -> u64 {
    let mut found = Diagnostics::default();
    let order = Runs::default();
    depth_first(schedule, &order, &mut found);
    let mut allowance = Allowance::new(schedule.instr_count());
    let before = allowance.steps();
    assert!(race::check(schedule, &order, &mut allowance, &mut found).is_ok());
    before - allowance.steps()
}

/// Returns two lanes of one rank that write the same slice alternately. `after` adds the waits of each write.
fn by_turns(mut after: impl FnMut(&mut Builder, InstrId, Option<InstrId>)) -> Schedule {
    let mut b = Builder::new(Collective::new(Kind::Allreduce, 1, 8, 0, Operator::Sum, Dtype::F32).unwrap());
    let mut before = None;
    for n in 0..2 * WRITES {
        let id = b.combine(NodeId(0), n % 2, 8, &[Operand::In(0)], &[Operand::Out(0)]);
        after(&mut b, id, before);
        before = Some(id);
    }
    b.finish().unwrap()
}

#[test]
fn without_any_order_there_is_a_race() {
    let schedule = by_turns(|_, _, _| {});
    let proof = verify(&schedule, Method::Auto);
    assert!(!proof.race_free);
    assert!(proof.diagnostics.iter().any(|d| d.code == "race"));
}

/// Returns lanes of one rank with one write each to the same slice. Each except lane `unordered` waits for the previous
/// one.
fn lanes(count: u32, unordered: Option<u32>) -> Schedule {
    let mut b = Builder::new(Collective::new(Kind::Allreduce, 1, 8, 0, Operator::Sum, Dtype::F32).unwrap());
    let mut before = None;
    for lane in 0..count {
        let id = b.combine(NodeId(0), lane, 8, &[Operand::In(0)], &[Operand::Out(0)]);
        before.into_iter().filter(|_| Some(lane) != unordered).for_each(|before| b.after(id, before));
        before = Some(id);
    }
    b.finish().unwrap()
}

#[test]
fn many_lanes_at_one_slice_take_few_comparisons() {
    assert!(verify(&lanes(20_000, None), Method::Auto).holds());
    let proof = verify(&lanes(20_000, Some(12_345)), Method::Auto);
    assert!(!proof.race_free && proof.diagnostics.iter().all(|d| d.code == "race"), "{:?}", proof.diagnostics);
}

#[test]
fn a_write_waits_for_all_reads() {
    for missing in [None, Some(3)] {
        let mut b = Builder::new(Collective::new(Kind::Allreduce, 1, 8, 0, Operator::Sum, Dtype::F32).unwrap());
        let tmp = [Operand::Tmp(b.scratch(NodeId(0), 88))];
        let first = b.combine(NodeId(0), 0, 8, &[Operand::In(0)], &tmp);
        let reads: Vec<InstrId> = (1..10)
            .map(|n| {
                let read = b.combine(NodeId(0), n, 8, &tmp, &[Operand::Tmp(8 * n)]);
                b.after(read, first);
                read
            })
            .collect();
        let last = b.combine(NodeId(0), 10, 8, &[Operand::In(0)], &tmp);
        for (n, &read) in reads.iter().enumerate().filter(|&(n, _)| Some(n) != missing) {
            assert!(n < 9);
            b.after(last, read);
        }
        b.combine(NodeId(0), 10, 8, &[Operand::In(0)], &[Operand::Out(0)]);
        let proof = verify(&b.finish().unwrap(), Method::Auto);
        assert_eq!(proof.race_free, missing.is_none(), "{:?}", proof.diagnostics);
    }
}

#[test]
fn in_order_there_is_no_race() {
    let schedule = by_turns(|b, id, before| before.into_iter().for_each(|before| b.after(id, before)));
    let proof = verify(&schedule, Method::Auto);
    assert!(proof.holds(), "{:?}", proof.diagnostics);
    // There are 8e8 pairs of accesses.
    let steps = steps(&schedule);
    assert!(steps < 200 * u64::from(WRITES), "{steps}");
}

#[test]
fn one_missing_order_among_many_is_found() {
    let mut count = 0;
    let schedule = by_turns(|b, id, before| {
        count += 1;
        if count != 20_001 {
            before.into_iter().for_each(|before| b.after(id, before));
        }
    });
    let proof = verify(&schedule, Method::Auto);
    assert!(!proof.race_free);
    let races: Vec<_> = proof.diagnostics.iter().filter(|d| d.code == "race").collect();
    // The race is between writes 20000 (lane 0) and 19999 (lane 1); ids count the first lane, then the second.
    assert_eq!(races.len(), 1, "{races:?}");
    assert!(races[0].message.contains("i10000 ") && races[0].message.contains("i29999 "), "{races:?}");
}

/// Returns a ring in two lanes. One lane receives a slice for each rank, adds to it and stores it; the other lane sends
/// it. Then the slices pass around the ring once more. Only the path around the whole ring orders the second write of a
/// slice after its first send.
fn ring(ranks: u32) -> Schedule {
    let elements = u64::from(ranks);
    let mut b = Builder::new(Collective::new(Kind::Allreduce, ranks, elements, 0, Operator::Sum, Dtype::F32).unwrap());
    let edges: Vec<_> = (0..ranks).map(|q| b.stream(NodeId(q), &[NodeId((q + 1) % ranks)])).collect();
    for q in 0..ranks {
        let [to, from] = [q, q + ranks - 1].map(|edge| Operand::Stream(edges[(edge % ranks) as usize]));
        for step in 0..2 * (ranks - 1) {
            let [sent, received] = [0, 1].map(|back| (q + 2 * ranks - step - back) % ranks);
            let reduce = [from, Operand::In(received)];
            let sources = if step < ranks - 1 { &reduce[..] } else { &reduce[..1] };
            if step == 0 {
                b.combine(NodeId(q), 1, 1, &[Operand::In(sent)], &[to]);
            }
            let receive = b.combine(NodeId(q), 0, 1, sources, &[Operand::Out(received)]);
            if step + 1 < 2 * (ranks - 1) {
                let send = b.combine(NodeId(q), 1, 1, &[Operand::Out(received)], &[to]);
                b.after(send, receive);
            }
        }
    }
    b.finish().unwrap()
}

#[test]
fn an_order_around_a_long_ring_is_found() {
    let schedule = ring(160);
    let proof = verify(&schedule, Method::Auto);
    assert!(proof.holds(), "{:?}", proof.diagnostics);
    let steps = steps(&schedule);
    assert!(steps < 1000 * schedule.instr_count() as u64, "{steps} steps of {} instructions", schedule.instr_count());
}
