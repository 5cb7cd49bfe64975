//! An independent judge of the proof: random tiny schedules, right and damaged, whose verdict is computed from their
//! interleavings. The judge shares no code with `verify`.
//!
//! # Right
//! A schedule is right if, in every interleaving of its lanes and at every granularity (elements, whole instructions,
//! any chunks between):
//! 1. no lane waits forever;
//! 2. nothing is read that was not written, even if the value is never used;
//! 3. no two lanes access the same place, at least one writing, in an undefined order;
//! 4. at the end each required output element holds exactly the required contributions, once, of one input element, in
//!    an order that the operator allows. A value that no output needs may be anything.
//!
//! # Rules that refuse more by design
//! * **Form.** A stream has one lane at either end, all its elements are popped at each sink, slices are inside their
//!   buffers, and the input is only read. No instruction writes a place twice or writes a place at which it reads
//!   another element, pops a stream twice, or waits for itself. Otherwise the meaning would depend on the interleaving
//!   or the granularity.
//! * **Deadlock at any granularity.** A schedule that runs element by element and is stuck in whole instructions is
//!   refused: machines choose their chunks.
//! * **Instructions, not elements, are ordered.** Of two instructions that access the same place, one must complete
//!   before the other starts, even if their common elements are ordered one by one: a machine may access the places of
//!   an instruction at any time during the instruction.
//! * **Order passes the starts and the ends of instructions.** The proof does not follow an order through the middle of
//!   a third instruction. It accepts such a schedule if its instructions are cut into elements, and the judge
//!   recognises it by this (2 of 10^7 schedules).
//! * **Capacities order nothing.** A capacity is a lower limit of room, and message passing provides more. So accesses
//!   that only a full stream separates count as unordered: races are judged with unlimited capacities, deadlock with
//!   the declared ones.
//!
//! # How
//! `generate.rs` draws schedules and `damage.rs` changes them; `order.rs` judges all interleavings at once;
//! `explore.rs` walks through the interleavings of schedules with few states, and must agree.
//!
//! `cargo test` judges 40,000 schedules, and a million with `UNISONO_SOAK=1`. `UNISONO_JUDGE_COUNT` and
//! `UNISONO_JUDGE_SEED` set another number and another seed. If judge and proof disagree on a schedule, the failing
//! test prints a smaller one.

mod damage;
mod draft;
mod explore;
mod files;
mod generate;
mod model;
#[allow(dead_code, reason = "the judge of stored programs uses the rest")]
mod order;
mod random;
mod shrink;
mod value;

use std::{collections::BTreeMap, time::Instant};

use draft::Draft;
use explore::{Explorer, Walk};
use model::{Model, Refusal};
use order::Verdict;
use random::Random;
use unisono_base::{InstrId, LaneId};
use unisono_schedule::{
    Builder, Operand, Operands, Schedule,
    verify::{Method, Proof, verify},
};

/// The outcome of one schedule; `words` is the key under which it is counted.
pub struct Outcome {
    pub words: String,
    /// True if the two judges, or the two methods of the proof, contradict each other.
    pub disagree: bool,
}

fn agree(words: &str) -> Outcome {
    Outcome { words: words.to_owned(), disagree: false }
}

fn disagree(words: String) -> Outcome {
    Outcome { words: format!("DISAGREE {words}"), disagree: true }
}

fn codes(proof: &Proof) -> String {
    let mut codes: Vec<&str> = proof.diagnostics.iter().map(|d| d.code).collect();
    codes.sort_unstable();
    codes.dedup();
    codes.join(",")
}

#[derive(Default)]
pub struct Counts {
    outcomes: BTreeMap<String, u64>,
    states: u64,
    walked: u64,
    given_up: u64,
}

/// Compares the proof with the judge.
pub fn compare(
    schedule: &Schedule,
    cuts: model::Set,
    seed: u64,
    most_states: usize,
    explorer: &mut Explorer,
    counts: &mut Counts,
) -> Outcome {
    let proof = verify(schedule, Method::Exact);
    let by_fingerprint = verify(schedule, Method::Fingerprint);
    let model = match Model::new(schedule) {
        Err(Refusal::TooLarge) => return agree("skipped: too large"),
        Err(Refusal::IllFormed(rule)) => {
            let refused = !proof.deadlock_free && !codes(&proof).contains("deadlock");
            return match refused {
                true => agree("refused: form"),
                false => disagree(format!("ill-formed ({rule}), {}", codes(&proof))),
            };
        }
        Ok(model) => model,
    };
    let verdict = order::judge(&model, cuts, seed);
    if let Some(words) = contradiction(&model, &verdict, most_states, explorer, counts) {
        return disagree(words);
    }
    if proof.holds() != by_fingerprint.holds() {
        return disagree(format!("exact says {:?}, fingerprint {:?}", codes(&proof), codes(&by_fingerprint)));
    }
    if proof.holds() && proof.repeatable != by_fingerprint.repeatable {
        return disagree("of exact and fingerprint one says repeatable".into());
    }
    judged(schedule, &proof, &verdict)
}

/// Returns the schedule with each instruction cut into single elements.
fn by_elements(schedule: &Schedule) -> Schedule {
    let mut b = Builder::new(*schedule.collective());
    (schedule.collective().ranks as usize..schedule.node_count()).for_each(|_| {
        b.switch();
    });
    for stream in schedule.all_streams() {
        let made = b.stream(schedule.stream(stream).source, schedule.stream_sinks(stream));
        b.capacity(made, schedule.stream(stream).capacity);
    }
    let mut elements = Vec::new();
    for node in schedule.all_nodes() {
        b.scratch(node, schedule.scratch_elements(node));
        for (lane, id) in (0u32..).zip(schedule.lanes(node)) {
            for instr in schedule.lane_instrs(LaneId::new(id)).map(InstrId::new) {
                let at = |operands: Operands<'_>, k: u32| -> Vec<Operand> {
                    let moved = |operand: Operand| match operand {
                        Operand::In(start) => Operand::In(start + k),
                        Operand::Out(start) => Operand::Out(start + k),
                        Operand::Tmp(start) => Operand::Tmp(start + k),
                        stream @ Operand::Stream(_) => stream,
                    };
                    operands.iter().map(moved).collect()
                };
                let made = (0..schedule.instr(instr).len)
                    .map(|k| b.combine(node, lane, 1, &at(schedule.sources(instr), k), &at(schedule.sinks(instr), k)));
                let made: Vec<InstrId> = made.collect();
                elements.push((made[0], made[made.len() - 1]));
            }
        }
    }
    for &(instr, earlier) in schedule.dependencies() {
        b.after(elements[instr.index()].0, elements[earlier.index()].1);
    }
    b.finish().expect("a smaller instruction fits where a larger one did")
}

fn judged(schedule: &Schedule, proof: &Proof, verdict: &Verdict) -> Outcome {
    let codes = codes(proof);
    if proof.holds() && !verdict.is_right() {
        return disagree(format!("UNSOUND: proved, but {verdict:?}"));
    }
    if !proof.holds() && verdict.is_right() && codes == "race" && verify(&by_elements(schedule), Method::Exact).holds()
    {
        return agree("refused: race but for the middle of an instruction");
    }
    if !proof.holds() && verdict.is_right() {
        return disagree(format!("refused though right: {codes}"));
    }
    if verdict.is_right() {
        return match (proof.repeatable, verdict.one_expression, verdict.equal_bits) {
            (true, true, true) => agree("right, repeatable"),
            (false, false, _) => agree("right, not repeatable"),
            (true, ..) => disagree("UNSOUND: repeatable, but bits differ".into()),
            (false, true, _) => disagree("not repeatable, but one expression".into()),
        };
    }
    // Each finding of the proof must have its own reason in the verdict.
    if proof.deadlock_free == verdict.deadlock {
        return disagree(format!("{codes}, but {verdict:?}"));
    }
    if verdict.deadlock {
        return agree("refused: deadlock");
    }
    if proof.race_free == verdict.race {
        return disagree(format!("{codes}, but {verdict:?}"));
    }
    if verdict.race {
        return agree(if verdict.race_of_elements { "refused: race" } else { "refused: race by rule only" });
    }
    if codes.contains("undefined") != verdict.undefined {
        return disagree(format!("{codes}, but {verdict:?}"));
    }
    agree(if verdict.undefined { "refused: undefined" } else { "refused: contents" })
}

/// If there are few interleavings, walks through them and describes a contradiction to the verdict.
fn contradiction(
    model: &Model,
    verdict: &Verdict,
    most_states: usize,
    explorer: &mut Explorer,
    counts: &mut Counts,
) -> Option<String> {
    let mut walk = |whole, bounded| {
        let found = explorer.walk(model, Walk { whole, bounded, most_states });
        counts.states += found.states as u64;
        counts.walked += 1;
        counts.given_up += u64::from(found.given_up);
        found
    };
    let whole = walk(true, true);
    let cut_short = |f: &explore::Found| f.given_up || f.both_next;
    if !cut_short(&whole) && whole.deadlock != verdict.deadlock {
        return Some(format!("walk by instructions: {whole:?}; {verdict:?}"));
    }
    if whole.both_next && !verdict.deadlock && !verdict.race {
        return Some(format!("walk by instructions: {whole:?}; {verdict:?}"));
    }
    if verdict.deadlock {
        return None;
    }
    let is_bounded = model.streams.iter().any(|s| s.capacity < s.len);
    for bounded in [true, false] {
        if !bounded && !is_bounded {
            continue;
        }
        let fine = walk(false, bounded);
        let words = || Some(format!("walk by elements, bounded {bounded}: {fine:?}; {verdict:?}"));
        if fine.deadlock || fine.both_next && !verdict.race || fine.contents_differ && !verdict.race {
            return words();
        }
        if bounded && fine.both_next && !verdict.race_of_elements || fine.overlap && !verdict.race {
            return words();
        }
        if !verdict.race && (fine.undefined && !verdict.undefined || fine.wrong && !verdict.wrong) {
            return words();
        }
        if cut_short(&fine) {
            continue;
        }
        // These comparisons require that the walk was complete.
        let loose = !(bounded && is_bounded);
        if bounded && verdict.race_of_elements || loose && verdict.race && !fine.overlap {
            return words();
        }
        if !verdict.race && (fine.undefined, fine.wrong) != (verdict.undefined, verdict.wrong) {
            return words();
        }
    }
    None
}

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.replace('_', "").parse().unwrap_or_else(|_| panic!("{name} is '{text}'; it must be a number")))
}

fn draw(r: &mut Random) -> Draft {
    loop {
        if let Some(mut draft) = generate::draft(r) {
            for _ in 0..r.pick(&[0, 0, 1, 1, 2]) {
                damage::damage(r, &mut draft);
            }
            return draft;
        }
    }
}

// Two tests check half of the schedules each, so that two cores share the work.
#[test]
fn verify_agrees_with_all_interleavings() {
    agrees_with_all_interleavings(0);
}

#[test]
fn verify_agrees_with_all_interleavings_of_the_second_half() {
    agrees_with_all_interleavings(1);
}

fn agrees_with_all_interleavings(half: u64) {
    let seed = setting("UNISONO_JUDGE_SEED").unwrap_or(1);
    let usual = if crate::soak::is_on() { 1_000_000 } else { 20_000 };
    let all = setting("UNISONO_JUDGE_COUNT").unwrap_or(usual);
    let (mut next, end, begin) = (half * all / 2, (half + 1) * all / 2, Instant::now());
    let count = end - next;
    let mut counts = Counts::default();
    let mut explorer = Explorer::default();
    let mut failures: BTreeMap<String, (usize, String)> = BTreeMap::new();
    while next < end {
        // The seed and the number together determine a schedule.
        let number = seed.wrapping_mul(0x1_0000_0000).wrapping_add(next);
        next += 1;
        let mut r = Random::new(random::mix(number));
        let draft = draw(&mut r);
        let cuts = model::Set::from(r.next()) << 64 | model::Set::from(r.next());
        let Some(schedule) = draft.build() else {
            *counts.outcomes.entry("not built".into()).or_default() += 1;
            continue;
        };
        let outcome = compare(&schedule, cuts, number, 600, &mut explorer, &mut counts);
        if outcome.disagree {
            let seen = counts.outcomes.get(&outcome.words).copied().unwrap_or(0);
            let best = failures.entry(outcome.words.clone()).or_insert((usize::MAX, String::new()));
            if seen < 8 {
                let mut unused = Counts::default();
                let smaller = shrink::shrink(&draft, &mut |d| {
                    let mut said = |s| compare(&s, cuts, number, 2000, &mut explorer, &mut unused).words;
                    d.build().is_some_and(|s| said(s) == outcome.words)
                });
                if smaller.rows.len() < best.0 {
                    let text = shrink::text(&smaller);
                    *best = (smaller.rows.len(), format!("; number {number}: {}\n{text}", outcome.words));
                }
            }
        }
        *counts.outcomes.entry(outcome.words).or_default() += 1;
        if next.is_multiple_of(1_000_000) {
            report(&counts, count - (end - next), begin);
        }
    }
    report(&counts, count, begin);
    assert_eq!(counts.outcomes.values().sum::<u64>(), count, "every schedule has an outcome");
    let right: u64 = counts.outcomes.iter().filter(|(words, _)| words.starts_with("right")).map(|(_, n)| n).sum();
    assert!(right * 20 > count && counts.walked > count, "{right} right ones, {} walks", counts.walked);
    let texts: Vec<String> = failures.into_values().map(|f| f.1).collect();
    assert!(texts.is_empty(), "{} kinds of disagreement:\n{}", texts.len(), texts.join("\n"));
}

#[test]
fn files_have_the_outcome_of_their_first_line() {
    let mut explorer = Explorer::default();
    let mut other = Vec::new();
    for (name, expected, schedule) in files::all() {
        let outcome = compare(&schedule, model::Set::MAX / 3, 1, 100_000, &mut explorer, &mut Counts::default());
        if outcome.words != expected {
            other.push(format!("{name}: {}", outcome.words));
        }
    }
    assert!(other.is_empty(), "{} files have another outcome:\n{}", other.len(), other.join("\n"));
}

#[expect(clippy::print_stdout, reason = "the summary of a long run by hand")]
fn report(counts: &Counts, done: u64, begin: Instant) {
    let seconds = begin.elapsed().as_secs_f64();
    println!("{done} schedules in {seconds:.1} s, {:.0} a second", done as f64 / seconds.max(1e-9));
    println!("{} walks, {} states, {} given up", counts.walked, counts.states, counts.given_up);
    for (words, count) in &counts.outcomes {
        println!("{count:10}  {words}");
    }
}
