//! Stored programs with changed numbers, written and read back. Programs that can be proved give the right results.

use unisono_collective::{Choice, Collective, DecisionTable, Kind, Row};
use unisono_runtime::local;
use unisono_schedule::{
    plan_file::{self, Plan, PlanFile},
    stored::{Facts, Place, RankProgram, Stored, Wait, store},
    verify::{Method, Verified},
};

use crate::{Draws, Form, FuzzTarget, targets::small_schedule};

pub const TARGET: FuzzTarget = FuzzTarget::new(
    "stored-program",
    "changes numbers of a stored schedule; what its proof accepts is written, read and run, with the same results",
    run,
)
.form(Form::Draws)
.quick_runs(3000);

/// Programs with more elements in all buffers together are not run.
const MOST_RUN: u64 = 1 << 14;

fn run(input: &[u8]) -> bool {
    let mut d = Draws::new(input);
    let Ok(schedule) = small_schedule::draw(&mut d) else { return false };
    let Ok(proven) = Verified::new(schedule, Method::Exact) else { return false };
    let Ok(stored) = store(&proven) else { return false };
    let expected = outputs(stored.facts(), stored.programs());
    let (mut facts, mut programs) = (stored.facts().clone(), stored.programs().to_vec());
    for _ in 0..d.below(4) {
        change(&mut facts, &mut programs, &mut d);
    }
    let same = facts.collective == stored.facts().collective;
    let Ok(changed) = Stored::check(&facts, programs) else { return false };
    let file = PlanFile::read(written(changed)).expect("a proven plan is read");
    file.prove(0).expect("a plan is proven as it was when it was written");
    let got = run_file(&file, 0);
    assert!(!same || got == expected, "programs that were proven give other results: {got:?} instead of {expected:?}");
    true
}

/// Writes a plan with one row, which serves all sizes.
fn written(stored: Stored) -> Vec<u8> {
    let c = stored.facts().collective;
    let row = Row {
        kind: c.kind,
        ranks: c.ranks,
        per_node: None,
        class: stored.facts().class,
        first_bytes: 0,
        last_bytes: u64::MAX,
        choice: Choice::Algorithm { name: "drawn".to_owned(), params: Vec::new() },
    };
    let table = DecisionTable::new(vec![row]).expect("one row overlaps nothing");
    let mut bytes = Vec::new();
    plan_file::write(&Plan { table, schedules: vec![stored], uses: vec![Some(0)] }, &mut bytes)
        .expect("memory takes all");
    bytes
}

/// Runs a schedule of a plan and returns its [`outputs`]; `None` if it cannot be proved.
pub fn run_file(file: &PlanFile, schedule: usize) -> Option<Vec<Vec<i64>>> {
    file.prove(schedule).ok()?;
    let facts = file.facts(schedule);
    let programs: Result<Vec<RankProgram>, _> =
        (0..facts.collective.ranks).map(|rank| file.program(schedule, rank)).collect();
    outputs(facts, &programs.expect("the proof decoded them"))
}

/// Returns the outputs of proved programs; `None` for a barrier or more than [`MOST_RUN`] elements. Asserts that four
/// orders of messages give the same outputs.
fn outputs(facts: &Facts, programs: &[RankProgram]) -> Option<Vec<Vec<i64>>> {
    let c = facts.collective;
    let sizes = (0..c.ranks)
        .zip(programs)
        .map(|(rank, p)| u64::from(c.input_len(rank)) + u64::from(c.output_len(rank)) + u64::from(p.scratch_blocks));
    if sizes.sum::<u64>() > MOST_RUN || c.kind == Kind::Barrier {
        return None;
    }
    let value = |rank: u32, k: u32| i64::from(rank + 1) << 20 | i64::from(k);
    let inputs: Vec<Vec<i64>> =
        (0..c.ranks).map(|rank| (0..c.input_len(rank)).map(|k| value(rank, k)).collect()).collect();
    let run = |seed| local::run(facts, programs, c.elements as usize, &inputs, seed).expect("proven programs end");
    let first = run(1);
    assert!((2..5).all(|seed| run(seed) == first), "the order of messages changes the results");
    Some(first)
}

/// Changes one number or row of one program.
fn change(facts: &mut Facts, programs: &mut [RankProgram], d: &mut Draws<'_>) {
    let rank = d.below(programs.len() as u32) as usize;
    let p = &mut programs[rank];
    let number = |d: &mut Draws<'_>, old: u32| match d.below(6) {
        0 => old.wrapping_add(1),
        1 => old.wrapping_sub(1),
        2 => 0,
        3 => d.below(8),
        4 => u32::MAX - d.below(4),
        _ => d.u32(),
    };
    let place = |d: &mut Draws<'_>, old: Place| {
        let (Place::In(start) | Place::Out(start) | Place::Tmp(start)) = old;
        let start = if d.below(2) == 0 { start } else { number(d, start) };
        [Place::In(start), Place::Out(start), Place::Tmp(start)][d.below(3) as usize]
    };
    let range = |d: &mut Draws<'_>, old: &mut std::ops::Range<u32>| match d.below(2) {
        0 => old.start = number(d, old.start),
        _ => old.end = number(d, old.end),
    };
    let message = |d: &mut Draws<'_>, field, [peer, tag, len, align]: [&mut u32; 4], at: &mut Place| match field {
        0 => *peer = number(d, *peer),
        1 => *tag = number(d, *tag),
        2 => *at = place(d, *at),
        3 => *len = number(d, *len),
        _ => *align = number(d, *align),
    };
    let row = |d: &mut Draws<'_>, len: usize| d.below(len as u32) as usize;
    match d.below(16) {
        0 => p.scratch_blocks = number(d, p.scratch_blocks),
        1 if !p.lanes.is_empty() => {
            let at = row(d, p.lanes.len());
            let lane = &mut p.lanes[at];
            let steps = d.below(2) == 0;
            range(d, if steps { &mut lane.steps } else { &mut lane.arrivals });
        }
        2..=6 if !p.steps.is_empty() => {
            let at = row(d, p.steps.len());
            let other = row(d, p.steps.len());
            let s = &mut p.steps[at];
            match d.below(10) {
                0 => s.len = number(d, s.len),
                1 => s.align = number(d, s.align),
                2 => s.a = place(d, s.a),
                3 => s.b = s.b.map(|b| place(d, b)),
                4 => s.to = s.to.map(|to| place(d, to)),
                5 => range(d, &mut s.arrivals),
                6 => range(d, &mut s.departures),
                7 => range(d, &mut s.waits),
                8 => s.b = None,
                _ => p.steps.swap(at, other),
            }
        }
        7..=9 if !p.arrivals.is_empty() => {
            let at = row(d, p.arrivals.len());
            let other = row(d, p.arrivals.len());
            let a = &mut p.arrivals[at];
            match d.below(7) {
                field @ 0..5 => message(d, field, [&mut a.peer, &mut a.tag, &mut a.len, &mut a.align], &mut a.place),
                5 => range(d, &mut a.waits),
                _ => p.arrivals.swap(at, other),
            }
        }
        10..=12 if !p.departures.is_empty() => {
            let at = row(d, p.departures.len());
            let other = row(d, p.departures.len());
            let m = &mut p.departures[at];
            match d.below(6) {
                field @ 0..5 => message(d, field, [&mut m.peer, &mut m.tag, &mut m.len, &mut m.align], &mut m.place),
                _ => p.departures.swap(at, other),
            }
        }
        13..=14 if !p.waits.is_empty() => {
            let at = row(d, p.waits.len());
            let n = match p.waits[at] {
                Wait::Step(n) | Wait::Departure(n) => number(d, n),
            };
            p.waits[at] = if d.below(2) == 0 { Wait::Step(n) } else { Wait::Departure(n) };
        }
        _ => {
            let elements = number(d, facts.collective.elements);
            let c = facts.collective;
            // A file with more elements than buffers can have is refused before its programs are read.
            let (elements, root) = (u64::from(elements.max(1)), u64::from(c.root));
            facts.collective = Collective::new(c.kind, c.ranks, elements, root, c.operator, c.dtype).unwrap_or(c);
        }
    }
}
