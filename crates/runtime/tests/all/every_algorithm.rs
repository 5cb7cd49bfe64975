//! Runs of every algorithm for ranks, stored in blocks, on the local transport, with numbers of elements that blocks do
//! and do not divide and with messages in many orders. Results are compared with plain arithmetic, and bit by bit with
//! the interpreter.

use crate::soak;
use unisono_algorithms::{ALGORITHMS, Algorithm, Case, Means, Params, Ranks};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_runtime::local;
use unisono_schedule::{
    interpret,
    plan_file::{Plan, PlanFile, write},
    stored::{Blocking, RankProgram, Stored, in_place, offset, store},
    verify::{Method, Verified},
};

const KINDS: [Kind; 10] = [
    Kind::Allgather,
    Kind::Allreduce,
    Kind::Alltoall,
    Kind::Barrier,
    Kind::Broadcast,
    Kind::Gather,
    Kind::Reduce,
    Kind::ReduceScatter,
    Kind::Scan,
    Kind::Scatter,
];

fn case(kind: Kind, ranks: u32, elements: u32, root: u32, operator: Operator) -> Case<'static> {
    let c = Collective::new(kind, ranks, u64::from(elements), u64::from(root), operator, Dtype::I64).unwrap();
    Case::on_ranks(c, Ranks { latency_ns: 400.0, issue_ns: 100.0, ..Ranks::default() })
}

fn stored(algorithm: &dyn Algorithm, case: &Case, params: &Params) -> Option<(Verified<'static>, Stored)> {
    algorithm.supports(case, params).ok()?;
    let schedule = algorithm.build(case, params).unwrap().schedule;
    let proven = Verified::new(schedule, Method::Exact).unwrap();
    let stored = store(&proven).unwrap();
    Some((proven, stored))
}

/// Returns the lengths of the input and output of a rank in a call with `n` elements.
fn sizes(c: &Collective, n: usize, rank: u32) -> (usize, usize) {
    let c = Collective { elements: n.max(1) as u32, ..*c };
    let of = |len: u32| if n == 0 { 0 } else { len as usize };
    (of(c.input_len(rank)), of(c.output_len(rank)))
}

fn value(rank: usize, k: usize) -> i64 {
    (rank * 7919 + k * 31 + 1) as i64
}

fn expected(c: &Collective, n: usize, rank: usize) -> Vec<i64> {
    let ranks = c.ranks as usize;
    let sum_of = |ranks: usize, k: usize| (0..ranks).map(|r| value(r, k)).reduce(|a, b| a.wrapping_add(b)).unwrap();
    let sum = |k: usize| sum_of(ranks, k);
    match c.kind {
        Kind::Broadcast => (0..n).map(|k| value(c.root as usize, k)).collect(),
        Kind::Allreduce | Kind::Reduce => (0..n).map(sum).collect(),
        Kind::ReduceScatter => (0..n).map(|k| sum(rank * n + k)).collect(),
        Kind::Scan => (0..n).map(|k| sum_of(rank + 1, k)).collect(),
        Kind::Scatter => (0..n).map(|k| value(c.root as usize, rank * n + k)).collect(),
        Kind::Allgather | Kind::Gather => (0..ranks).flat_map(|r| (0..n).map(move |k| value(r, k))).collect(),
        Kind::Alltoall => (0..ranks).flat_map(|r| (0..n).map(move |k| value(r, rank * n + k))).collect(),
        _ => unreachable!("of {KINDS:?} only a barrier has no values"),
    }
}

fn run_and_compare(stored: &Stored, n: usize, seed: u64, what: &str) {
    let c = stored.facts().collective;
    let inputs: Vec<Vec<i64>> =
        (0..c.ranks as usize).map(|r| (0..sizes(&c, n, r as u32).0).map(|k| value(r, k)).collect()).collect();
    let outputs =
        local::run(stored.facts(), stored.programs(), n, &inputs, seed).unwrap_or_else(|e| panic!("{what}: {e:?}"));
    if c.kind == Kind::Barrier {
        return;
    }
    for (rank, output) in outputs.iter().enumerate() {
        assert_eq!(output.len(), sizes(&c, n, rank as u32).1);
        if !output.is_empty() {
            assert_eq!(*output, expected(&c, n, rank), "{what}, rank {rank}");
        }
    }
}

fn every(
    ranks: impl Iterator<Item = u32>,
    blocks: &[u32],
    operator: Operator,
    mut f: impl FnMut(&Verified, &Stored, &str),
) {
    let mut number = 0;
    for ranks in ranks {
        for &algorithm in ALGORITHMS.iter().filter(|a| a.info().needs.contains(&Means::Messages)) {
            for &kind in algorithm.info().collectives.iter().filter(|k| KINDS.contains(k)) {
                for &blocks in blocks {
                    let root = if kind.has_root() { ranks / 2 } else { 0 };
                    let case = case(kind, ranks, blocks, root, operator);
                    let mut settings = algorithm.candidates(&case);
                    settings.push(Params::new());
                    settings.dedup();
                    for params in settings {
                        number += 1;
                        if !soak::runs(number) {
                            continue;
                        }
                        if let Some((proven, stored)) = stored(algorithm, &case, &params) {
                            let what = format!("{} {params} {kind} on {ranks} in {blocks} blocks", algorithm.name());
                            f(&proven, &stored, &what);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn every_count_gives_what_arithmetic_gives() {
    let mut runs = 0;
    every(1..10, &[1, 4, 9], Operator::Sum, |_, stored, what| {
        let k = stored.facts().collective.elements as usize;
        for n in [0, 1, k - 1, k, k + 1, 2 * k, 3 * k + 2] {
            if stored.facts().serves(n as u64) {
                for seed in 0..3 {
                    run_and_compare(stored, n, seed, &format!("{what}, {n} elements, seed {seed}"));
                    runs += 1;
                }
            }
        }
    });
    assert!(runs > soak::cases(5000), "{runs}");
}

/// All schedules that support it run with inputs in outputs, on all ranks and on every second rank. A rank's output may
/// be longer than its input.
#[test]
fn inputs_may_lie_in_outputs() {
    let (mut runs, mut copied) = (0, std::collections::BTreeSet::new());
    every(2..9, &[1, 4, 9], Operator::Sum, |_, stored, what| {
        let c = stored.facts().collective;
        if offset(&c, 0).is_none() {
            return;
        }
        if !stored.facts().in_place {
            copied.insert(what.split(' ').next().unwrap_or_default().to_owned());
            return;
        }
        let n = c.elements as usize * 2;
        let inputs: Vec<Vec<i64>> =
            (0..c.ranks as usize).map(|r| (0..sizes(&c, n, r as u32).0).map(|k| value(r, k)).collect()).collect();
        for (seed, every) in [(0, 1), (1, 1), (2, 2), (3, 2)] {
            // A rank without an output has a separate input.
            let aliased = |r: u32| r.is_multiple_of(every) && sizes(&c, n, r).1 > 0;
            let choice: Vec<bool> = (0..c.ranks).map(aliased).collect();
            let programs: Vec<RankProgram> = (0..c.ranks)
                .zip(stored.programs())
                .map(|(r, p)| if aliased(r) { in_place(p, &c, r).unwrap() } else { p.clone() })
                .collect();
            let outputs = local::run_in_place(stored.facts(), &programs, n, &inputs, &choice, seed)
                .unwrap_or_else(|e| panic!("{what}: {e:?}"));
            for (rank, output) in outputs.iter().enumerate().filter(|(_, output)| !output.is_empty()) {
                assert_eq!(*output, expected(&c, n, rank), "{what}, rank {rank}");
            }
            runs += 1;
        }
    });
    assert!(runs > soak::cases(2000), "{runs}");
    for name in ["rabenseifner", "recursive-doubling", "ring"] {
        assert!(!copied.contains(name), "{name} needs a copy of its input");
    }
}

#[test]
fn whole_vectors_take_any_count() {
    every(2..7, &[5], Operator::Sum, |proven, stored, what| {
        if matches!(proven.schedule().collective().kind, Kind::Allreduce | Kind::Reduce | Kind::Broadcast | Kind::Scan)
        {
            assert_eq!(stored.facts().blocking, Blocking::Any, "{what}");
        }
    });
}

/// The ranks of an allreduce get the same bits with every operator of the plan, even for minima of zeros of either
/// sign.
#[test]
fn repeatable_schedules_stay_repeatable() {
    let mut kept = 0;
    every(2..10, &[1, 4], Operator::Sum, |proven, stored, what| {
        assert_eq!(stored.facts().repeatable, proven.proof().repeatable, "{what}");
        kept += u32::from(proven.proof().repeatable);
    });
    assert!(kept > soak::cases(500), "{kept}");
}

#[test]
fn floats_have_the_bits_of_the_interpreter() {
    every([3, 4, 6, 8].into_iter(), &[1, 8], Operator::Sum, |proven, stored, what| {
        let c = stored.facts().collective;
        if !c.kind.reduces() || c.kind == Kind::Barrier {
            return;
        }
        // The rounding of these sums depends on their order.
        let value = |r: u32, k: u32| 1.0 / (1.0 + f64::from(r * 131 + k * 17)) as f32;
        let inputs: Vec<Vec<f32>> = (0..c.ranks).map(|r| (0..c.input_len(r)).map(|k| value(r, k)).collect()).collect();
        let expected = interpret::run(proven.schedule(), &inputs, interpret::Options::default()).unwrap();
        let got = local::run(stored.facts(), stored.programs(), c.elements as usize, &inputs, 5).unwrap();
        let bits =
            |all: &[Vec<f32>]| all.iter().map(|v| v.iter().map(|x| x.to_bits()).collect()).collect::<Vec<Vec<_>>>();
        assert_eq!(bits(&got), bits(&expected), "{what}");
    });
}

#[test]
fn operators_that_do_not_commute_keep_their_order() {
    let mut seen = 0;
    every(2..8, &[1, 3], Operator::Ordered, |proven, stored, what| {
        let c = stored.facts().collective;
        if !c.kind.reduces() || c.kind == Kind::Barrier {
            return;
        }
        let value = |r: u32, k: u32| i64::from(r + 2) << 32 | i64::from(3 * r + k + 1);
        let inputs: Vec<Vec<i64>> = (0..c.ranks).map(|r| (0..c.input_len(r)).map(|k| value(r, k)).collect()).collect();
        let expected = interpret::run(proven.schedule(), &inputs, interpret::Options::default()).unwrap();
        assert_eq!(
            local::run(stored.facts(), stored.programs(), c.elements as usize, &inputs, 1).unwrap(),
            expected,
            "{what}"
        );
        seen += 1;
    });
    assert!(seen > 10, "{seen}");
}

#[test]
fn files_give_back_what_was_stored() {
    use unisono_collective::{Choice, DecisionTable, Row};
    every([4, 5].into_iter(), &[1, 4], Operator::Sum, |_, stored, what| {
        let (c, class) = (stored.facts().collective, stored.facts().class);
        let row = |first_bytes, last_bytes, choice| Row {
            kind: c.kind,
            ranks: c.ranks,
            per_node: (c.ranks > 4).then_some(2),
            class,
            first_bytes,
            last_bytes,
            choice,
        };
        let params = vec![("a".to_owned(), "b".to_owned())];
        let named = Choice::Algorithm { name: what.to_owned(), params };
        let table = DecisionTable::new(vec![row(64, 1 << 20, named), row(0, 63, Choice::Library)]).unwrap();
        let plan = Plan { table: table.clone(), schedules: vec![stored.clone()], uses: vec![None, Some(0)] };
        let mut bytes = Vec::new();
        write(&plan, &mut bytes).unwrap();
        let read = PlanFile::read(bytes).unwrap();
        assert_eq!(*read.table(), table);
        assert_eq!((read.schedule(0), read.schedule(1)), (None, Some(0)));
        assert_eq!(read.facts(0), stored.facts());
        for (rank, program) in stored.programs().iter().enumerate() {
            assert_eq!(read.program(0, rank as u32).unwrap(), *program, "{what}");
        }
    });
}
