//! An independent check of stored programs. Random small schedules that `verify` accepts are stored. A model of message
//! passing, which shares no code with the runtime or with `stored`, then runs the programs.
//!
//! A stored program is correct under these conditions, for every number of elements. Every run ends with any message
//! library (messages wait for their receiver, are buffered, or either). No unwritten memory is read, and no memory is
//! accessed while a message reads or writes it. The messages of a tag have equal lengths at both ends. The outputs
//! contain the expressions of the schedule, operand by operand. The same is true with inputs in place, on all ranks
//! that permit it, or on some.
//!
//! `analyse.rs` judges all runs at once; `simulate.rs` executes some random runs, which must agree.
//!
//! `cargo test` draws 25,000 schedules, and half a million with `UNISONO_SOAK=1`. `UNISONO_JUDGE_COUNT` and
//! `UNISONO_JUDGE_SEED` have the same meaning as in the corresponding check of schedules.

mod analyse;
#[path = "../../../../schedule/tests/all/judge/damage.rs"]
mod damage;
#[path = "../../../../schedule/tests/all/judge/draft.rs"]
mod draft;
#[path = "../../../../schedule/tests/all/judge/files.rs"]
mod files;
#[path = "../../../../schedule/tests/all/judge/generate.rs"]
mod generate;
#[path = "../../../../schedule/tests/all/judge/model.rs"]
#[allow(dead_code, reason = "the judge of schedules uses the rest")]
mod model;
#[path = "../../../../schedule/tests/all/judge/order.rs"]
#[allow(dead_code, reason = "the judge of schedules uses the rest")]
mod order;
mod program;
#[path = "../../../../schedule/tests/all/judge/random.rs"]
mod random;
#[path = "../../../../schedule/tests/all/judge/shrink.rs"]
mod shrink;
mod simulate;
#[path = "../../../../schedule/tests/all/judge/value.rs"]
mod value;

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Instant,
};

use draft::Draft;
use model::Model;
use order::{Cell, NOTHING, Verdict};
use program::{Program, Step};
use random::Random;
use simulate::{Semantics, simulate};
use unisono_collective::Kind;
use unisono_schedule::{
    Schedule,
    stored::{self, Blocking, Facts, RankProgram, StoreError},
    verify::{Method, Verified},
};

/// Executes a step; returns whether it read unwritten memory.
pub fn work(step: &Step, memory: &mut [Cell], commutative: bool) -> bool {
    let Some(to) = &step.to else { return false };
    let mut undefined = false;
    for k in 0..to.len() {
        let mut cell = memory[step.a.start + k];
        undefined |= cell.value == value::UNWRITTEN;
        if let Some(b) = &step.b {
            let other = memory[b.start + k];
            undefined |= other.value == value::UNWRITTEN;
            cell = cell.combine(other, commutative);
        }
        memory[to.start + k] = cell;
    }
    undefined
}

/// True while the output of panics is suppressed.
static QUIET: AtomicBool = AtomicBool::new(false);

#[derive(Default)]
struct Counts {
    outcomes: BTreeMap<String, u64>,
    programs: u64,
    runs: u64,
}

/// Returns the outcome of one schedule in words; failures begin with `FAILS`.
fn judge(schedule: Schedule, r: &mut Random, counts: &mut Counts) -> String {
    let Ok(proven) = Verified::new(schedule, Method::Exact) else { return "not proved".into() };
    QUIET.store(true, Relaxed);
    let stored = catch_unwind(AssertUnwindSafe(|| stored::store(&proven)));
    QUIET.store(false, Relaxed);
    let stored = match stored {
        Err(_) => return "FAILS: panic while storing".into(),
        Ok(Err(error)) => return format!("refused: {}", reason(&error)),
        Ok(Ok(stored)) => stored,
    };
    let (facts, programs) = (stored.facts(), stored.programs());
    let expected = match expressions(proven.schedule()) {
        Some(expected) => expected,
        None => return "too large".into(),
    };
    let c = facts.collective;
    let aliased: Vec<Option<RankProgram>> = (0u32..).zip(programs).map(|(q, p)| stored::in_place(p, &c, q)).collect();
    let may = (0..c.ranks).filter(|&q| aliased[q as usize].is_some() && c.output_len(q) > 0 && c.input_len(q) > 0);
    let may: u8 = if facts.in_place { may.fold(0, |all, q| all | 1 << q) } else { 0 };
    let masks = if may == 0 { vec![0] } else { vec![0, may, may & r.next() as u8] };
    let blocks = c.elements as usize;
    let mut sizes = vec![blocks];
    match facts.blocking {
        _ if c.kind == Kind::Barrier => {}
        Blocking::Any => sizes.extend([1 + r.below(blocks), 1 + r.below(3 * blocks)]),
        Blocking::Equal => sizes.push(blocks * 2),
    }
    for &mask in &masks {
        let ranks: Vec<&RankProgram> = programs
            .iter()
            .zip(&aliased)
            .enumerate()
            .map(|(q, (plain, aliased))| if mask >> q & 1 == 1 { aliased.as_ref().unwrap_or(plain) } else { plain })
            .collect();
        for &elements in &sizes {
            let said = run(facts, &ranks, elements, mask, &expected, r, counts);
            if let Err(why) = said {
                if why == "too large" {
                    return why;
                }
                let in_place = if mask == 0 { "" } else { " in place" };
                let count = if elements == blocks { "" } else { ", other count" };
                return format!("FAILS{in_place}: {why}{count}");
            }
        }
    }
    match (facts.repeatable, facts.in_place) {
        (true, true) => "right, repeatable, in place".into(),
        (true, false) => "right, repeatable".into(),
        (false, true) => "right, in place".into(),
        (false, false) => "right".into(),
    }
}

fn reason(error: &StoreError) -> String {
    let text = error.to_string();
    let plain: String = text.chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).collect();
    plain.chars().take(70).collect()
}

/// Returns the expression of each output block of each rank.
fn expressions(schedule: &Schedule) -> Option<Vec<Vec<u64>>> {
    let model = Model::new(schedule).ok()?;
    let order = order::an_order(&model)?;
    let cells = order::cells(&model, &order, 0, &mut Verdict::default());
    let c = schedule.collective();
    let of = |rank: u32| {
        let first = model.first[rank as usize][1];
        cells[first..first + c.output_len(rank) as usize].iter().map(|c| c.expression).collect()
    };
    Some((0..c.ranks).map(of).collect())
}

fn run(
    facts: &Facts,
    ranks: &[&RankProgram],
    elements: usize,
    mask: u8,
    expected: &[Vec<u64>],
    r: &mut Random,
    counts: &mut Counts,
) -> Result<(), String> {
    let p = Program::new(facts, ranks, elements, mask)?;
    counts.programs += 1;
    let c = p.collective;
    let mut inputs = vec![NOTHING; p.memory];
    for rank in 0..c.ranks {
        for k in 0..c.input_len(rank) as usize {
            inputs[p.first[rank as usize][0] + k] = Cell::input(rank as usize, k, 7);
        }
    }
    let whole = analyse::analyse(&p, &inputs);
    for semantics in [Semantics::Rendezvous, Semantics::Eager, Semantics::Mixed] {
        counts.runs += 1;
        let one = simulate(&p, &inputs, semantics, r).and_then(|memory| check(&p, &memory, expected));
        // The analysis covers every run, so a failing run contradicts it.
        if let (Ok(_), Err(why)) = (&whole, one) {
            return Err(format!("{why}, {semantics:?}, though the analysis finds nothing"));
        }
    }
    check(&p, &whole?, expected)
}

fn check(p: &Program, memory: &[Cell], expected: &[Vec<u64>]) -> Result<(), String> {
    let c = p.collective;
    for rank in 0..c.ranks {
        for required in c.required(rank) {
            for k in 0..required.span.len as usize {
                let at = required.span.start as usize + k;
                let cell = &memory[p.first[rank as usize][1] + at];
                let input = required.input_start as usize + k;
                if !value::is_right(cell.value, input, required.source, c.operator) {
                    return Err("wrong output".into());
                }
                if expected[rank as usize][at / p.pitch] != cell.expression {
                    return Err("another expression".into());
                }
            }
        }
    }
    Ok(())
}

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.replace('_', "").parse().unwrap_or_else(|_| panic!("{name} is '{text}'; it must be a number")))
}

/// Draws a schedule of a form that `.plan` files mostly accept.
fn draw(r: &mut Random) -> Draft {
    loop {
        let Some(mut draft) = generate::draft(r) else { continue };
        let kind = draft.collective.kind;
        if (kind == Kind::Message || draft.scratch.len() > draft.collective.ranks as usize) && !r.chance(2) {
            continue;
        }
        if r.chance(30) {
            damage::damage(r, &mut draft);
        }
        return draft;
    }
}

#[test]
fn stored_programs_do_what_was_proved() {
    let seed = setting("UNISONO_JUDGE_SEED").unwrap_or(1);
    let usual = if crate::soak::is_on() { 500_000 } else { 10_000 };
    let (count, begin) = (setting("UNISONO_JUDGE_COUNT").unwrap_or(usual), Instant::now());
    let mut counts = Counts::default();
    let mut failures: BTreeMap<String, (usize, String)> = BTreeMap::new();
    // Panics are caught and counted, without their messages.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !QUIET.load(Relaxed) {
            hook(info);
        }
    }));
    let mut done = 0;
    while done < count {
        let number = seed.wrapping_mul(0x1_0000_0000).wrapping_add(done);
        let draft = draw(&mut Random::new(random::mix(number)));
        done += 1;
        let Some(schedule) = draft.build() else { continue };
        let words = judge(schedule, &mut Random::new(number), &mut counts);
        if words.starts_with("FAILS") {
            let seen = counts.outcomes.get(&words).copied().unwrap_or(0);
            let best = failures.entry(words.clone()).or_insert((usize::MAX, String::new()));
            if seen < 8 {
                let mut unused = Counts::default();
                let smaller = shrink::shrink(&draft, &mut |d| {
                    let mut said = |s| judge(s, &mut Random::new(number), &mut unused);
                    d.build().is_some_and(|s| said(s) == words)
                });
                if smaller.rows.len() < best.0 {
                    *best = (smaller.rows.len(), format!("; number {number}: {words}\n{}", shrink::text(&smaller)));
                }
            }
        }
        *counts.outcomes.entry(words).or_default() += 1;
        if done.is_multiple_of(100_000) {
            report(&counts, done, begin);
        }
    }
    report(&counts, done, begin);
    assert!(counts.programs * 20 > count, "{} programs of {count} schedules", counts.programs);
    let texts: Vec<String> = failures.into_values().map(|f| f.1).collect();
    assert!(texts.is_empty(), "{} kinds of failure:\n{}", texts.len(), texts.join("\n"));
}

#[test]
fn files_are_right_as_messages_or_refused() {
    for (name, _, schedule) in files::all() {
        let words = judge(schedule, &mut Random::new(1), &mut Counts::default());
        assert!(!words.starts_with("FAILS"), "{name}: {words}");
    }
}

/// The check finds every removed wait that other waits do not imply.
#[test]
fn lost_waits_are_found() {
    let mut r = Random::new(5);
    let (mut found, mut lost) = (0, 0);
    while lost < 400 {
        let Some(proven) = draw(&mut r).build().and_then(|s| Verified::new(s, Method::Exact).ok()) else { continue };
        let Ok(stored) = stored::store(&proven) else { continue };
        let Some(expected) = expressions(proven.schedule()) else { continue };
        let mut programs = stored.programs().to_vec();
        let with: Vec<usize> = (0..programs.len()).filter(|&q| !programs[q].waits.is_empty()).collect();
        if with.is_empty() {
            continue;
        }
        let program = &mut programs[r.pick(&with)];
        let ranges = program.steps.iter_mut().map(|s| &mut s.waits);
        let ranges = ranges.chain(program.arrivals.iter_mut().map(|a| &mut a.waits));
        let mut ranges: Vec<_> = ranges.filter(|w| w.start < w.end).collect();
        if ranges.is_empty() {
            continue;
        }
        let at = r.below(ranges.len());
        ranges[at].end -= 1;
        let ranks: Vec<&RankProgram> = programs.iter().collect();
        let blocks = stored.facts().collective.elements as usize;
        let said = run(stored.facts(), &ranks, blocks, 0, &expected, &mut r, &mut Counts::default());
        lost += 1;
        found += usize::from(said.is_err());
    }
    assert!(found * 2 > lost, "{found} of {lost} lost waits were found");
}

#[expect(clippy::print_stdout, reason = "the summary of a long run by hand")]
fn report(counts: &Counts, done: u64, begin: Instant) {
    let seconds = begin.elapsed().as_secs_f64();
    println!("{done} schedules in {seconds:.1} s, {:.0} a second", done as f64 / seconds.max(1e-9));
    println!("{} programs analysed, {} runs", counts.programs, counts.runs);
    for (words, count) in &counts.outcomes {
        println!("{count:10}  {words}");
    }
}
