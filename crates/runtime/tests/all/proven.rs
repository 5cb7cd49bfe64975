//! Stored programs are proved in their stored form: a changed program is refused, or has the right result.

use unisono_algorithms::{ALGORITHMS, Case, Means, Params, Ranks};
use unisono_collective::{Collective, Dtype, Kind, Operator, OperatorClass};
use unisono_runtime::local;
use unisono_schedule::{
    stored::{Facts, Place, RankProgram, Stored, Wait, store},
    text,
    verify::{Method, Verified},
};

/// Schedules whose order of memory accesses depends on waits that storing must keep.
const ONCE_WRONG: [&str; 3] = [
    include_str!("forged/two-sinks.sched"),
    include_str!("forged/between-nodes.sched"),
    include_str!("forged/waits-for-another-node.sched"),
];

/// Returns inputs for `n` elements, in which every element of every rank differs.
fn inputs(c: &Collective, n: usize) -> Vec<Vec<i64>> {
    let of = |rank: u32| c.input_len(rank) as usize / c.elements as usize * n;
    (0..c.ranks).map(|r| (0..of(r)).map(|k| (i64::from(r) * 7919 + k as i64 * 31 + 1) << 8).collect()).collect()
}

/// Returns the outputs for `seeds` orders of messages, or the first failure.
fn outputs(stored: &Stored, programs: &[RankProgram], n: usize, seeds: u64) -> Result<Vec<Vec<Vec<i64>>>, String> {
    let inputs = inputs(&stored.facts().collective, n);
    let run = |seed| local::run(stored.facts(), programs, n, &inputs, seed).map_err(|e| format!("{e:?}"));
    (0..seeds).map(run).collect()
}

#[test]
fn schedules_that_were_stored_wrong_are_right_under_every_order_of_messages() {
    for text in ONCE_WRONG {
        let (schedule, _) = text::parse(text).unwrap();
        let stored = store(&Verified::new(schedule, Method::Exact).unwrap()).unwrap();
        for n in [1, 5] {
            let sums = inputs(&stored.facts().collective, n);
            let sums: Vec<i64> = (0..n).map(|k| sums.iter().map(|v| v[k]).sum()).collect();
            for got in outputs(&stored, stored.programs(), n, 300).unwrap() {
                assert!(got.iter().all(|output| *output == sums), "{text}");
            }
        }
    }
}

struct Draws(u64);

impl Draws {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n.max(1) as u64) as usize
    }
}

fn change(programs: &mut [RankProgram], d: &mut Draws) {
    let rank = d.below(programs.len());
    let p = &mut programs[rank];
    let other = |place: Place, by: u32| match place {
        Place::In(at) => [Place::In(at ^ by), Place::Out(at), Place::Tmp(at)][by as usize % 3],
        Place::Out(at) => [Place::Out(at ^ by), Place::Tmp(at), Place::In(at)][by as usize % 3],
        Place::Tmp(at) => [Place::Tmp(at ^ by), Place::Out(at), Place::In(at)][by as usize % 3],
    };
    let by = 1 + d.below(3) as u32;
    let (steps, arrivals, departures, waits) = (p.steps.len(), p.arrivals.len(), p.departures.len(), p.waits.len());
    match d.below(12) {
        0 if steps > 0 => p.steps[d.below(steps)].waits = 0..0,
        1 if arrivals > 0 => p.arrivals[d.below(arrivals)].waits = 0..0,
        2 if waits > 0 => {
            let at = d.below(waits);
            p.waits[at] = match p.waits[at] {
                Wait::Step(s) => Wait::Step(s.saturating_sub(by)),
                Wait::Departure(n) => Wait::Departure(n ^ by),
            };
        }
        3 if steps > 0 => {
            let at = d.below(steps);
            p.steps[at].a = other(p.steps[at].a, by);
        }
        4 if steps > 0 => {
            let at = d.below(steps);
            p.steps[at].b = p.steps[at].b.map(|b| other(b, by));
        }
        5 if steps > 0 => {
            let at = d.below(steps);
            p.steps[at].to = p.steps[at].to.map(|to| other(to, by));
        }
        6 if arrivals > 0 => {
            let at = d.below(arrivals);
            p.arrivals[at].place = other(p.arrivals[at].place, by);
        }
        7 if departures > 0 => {
            let at = d.below(departures);
            p.departures[at].place = other(p.departures[at].place, by);
        }
        8 if departures > 1 => {
            let (x, y) = (d.below(departures), d.below(departures));
            p.departures.swap(x, y);
        }
        9 if arrivals > 1 => {
            let (x, y) = (d.below(arrivals), d.below(arrivals));
            p.arrivals.swap(x, y);
        }
        10 if steps > 1 => {
            let at = d.below(steps - 1);
            p.steps.swap(at, at + 1);
        }
        11 if departures > 0 => p.departures[d.below(departures)].tag ^= by,
        _ => p.scratch_blocks = p.scratch_blocks.saturating_sub(by),
    }
}

/// Calls `look` with the stored schedule of every algorithm for `ranks` ranks and six elements.
fn each(ranks: u32, mut look: impl FnMut(&Stored, &str)) {
    for &algorithm in ALGORITHMS.iter().filter(|a| a.info().needs.contains(&Means::Messages)) {
        for &kind in algorithm.info().collectives.iter().filter(|k| **k != Kind::Barrier) {
            let c = Collective::new(kind, ranks, 6, 0, Operator::Sum, Dtype::I64).unwrap();
            let case = Case::on_ranks(c, Ranks { latency_ns: 400.0, issue_ns: 100.0, ..Ranks::default() });
            if algorithm.supports(&case, &Params::new()).is_err() {
                continue;
            }
            let schedule = algorithm.build(&case, &Params::new()).unwrap().schedule;
            if let Ok(stored) = store(&Verified::new(schedule, Method::Exact).unwrap()) {
                look(&stored, &format!("{} {kind} on {ranks}", algorithm.name()));
            }
        }
    }
}

#[test]
fn changed_programs_are_refused_or_right() {
    let (mut refused, mut right) = (0, 0);
    let mut draws = Draws(7);
    for ranks in 2..6 {
        each(ranks, |stored, what| {
            let n = stored.facts().collective.elements as usize;
            let expected = outputs(stored, stored.programs(), n, 1).unwrap().remove(0);
            for _ in 0..40 {
                let mut programs = stored.programs().to_vec();
                change(&mut programs, &mut draws);
                if programs == stored.programs() {
                    continue;
                }
                match Stored::check(stored.facts(), programs.clone()) {
                    Err(_) => refused += 1,
                    Ok(_) => {
                        right += 1;
                        for got in outputs(stored, &programs, n, 12).unwrap() {
                            assert_eq!(got, expected, "{what}: {programs:?}");
                        }
                    }
                }
            }
        });
    }
    assert!(refused > 1000 && right > 100, "{refused} refused, {right} right");
}

#[test]
fn facts_beyond_the_proof_are_refused() {
    let (mut repeatable, mut in_place) = ([0; 2], [0; 2]);
    each(5, |stored, what| {
        let facts = stored.facts();
        repeatable[usize::from(facts.repeatable)] += 1;
        in_place[usize::from(facts.in_place)] += 1;
        let holds = |state: &dyn Fn(&mut Facts)| {
            let mut stated = facts.clone();
            state(&mut stated);
            Stored::check(&stated, stored.programs().to_vec()).is_ok()
        };
        assert_eq!(holds(&|f| f.repeatable = true), facts.repeatable, "{what}");
        assert_eq!(holds(&|f| f.in_place = true), facts.in_place, "{what}");
        assert!(!holds(&|f| f.method = "belief".to_owned()), "{what}");
        assert!(!holds(&|f| f.expression.push('x')), "{what}");
        assert!(!holds(&|f| f.class = OperatorClass::Ordered) || facts.class == OperatorClass::Ordered, "{what}");
        assert!(holds(&|f| (f.repeatable, f.in_place, f.expression) = (false, false, String::new())), "{what}");
    });
    assert!(repeatable.iter().chain(&in_place).all(|&n| n > 0), "{repeatable:?} {in_place:?}");
}
