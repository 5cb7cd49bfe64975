//! Tests of the reader with damaged files, whose checksums are wrong or adjusted.

use proptest::prelude::*;
use unisono_base::NodeId;
use unisono_collective::{Choice, Collective, DecisionTable, Dtype, Kind, Operator, Row};
use unisono_schedule::{
    Builder, Operand,
    internals::plan_file::{MAGIC, Out, PREAMBLE_BYTES, checksum, read_program, write_program},
    plan_file::{Plan, PlanFile, PlanFileError, program_bytes, write},
    stored::{RankProgram, Stored, store},
    verify::{Method, Verified},
};

/// Returns programs in which two ranks exchange halves, with a slot for a message, a copy and a wait.
fn stored() -> Stored {
    let c = Collective::new(Kind::Allreduce, 2, 2, 0, Operator::Sum, Dtype::F32).unwrap();
    let mut b = Builder::new(c);
    for (me, other) in [(0, 1), (1, 0)] {
        let (node, to) = (NodeId(me), NodeId(other));
        let (up, down) = (b.stream(node, &[to]), b.stream(to, &[node]));
        b.combine(node, 0, 1, &[Operand::In(other)], &[Operand::Stream(up)]);
        b.combine(to, 0, 1, &[Operand::In(other), Operand::Stream(up)], &[Operand::Out(other), Operand::Stream(down)]);
        b.combine(node, 1, 1, &[Operand::Stream(down)], &[Operand::Out(other)]);
    }
    store(&Verified::new(b.finish().unwrap(), Method::Exact).unwrap()).unwrap()
}

fn file() -> Vec<u8> {
    let stored = stored();
    let row = |first_bytes, last_bytes, choice| Row {
        kind: Kind::Allreduce,
        ranks: 2,
        per_node: (first_bytes > 0).then_some(2),
        class: stored.facts().class,
        first_bytes,
        last_bytes,
        choice,
    };
    let named = Choice::Algorithm { name: "halves".to_owned(), params: vec![("k".to_owned(), "2".to_owned())] };
    let table = DecisionTable::new(vec![row(0, 63, Choice::Library), row(64, u64::MAX, named)]).unwrap();
    let mut bytes = Vec::new();
    write(&Plan { table, schedules: vec![stored], uses: vec![None, Some(0)] }, &mut bytes).unwrap();
    bytes
}

#[test]
fn what_is_written_is_read() {
    let read = PlanFile::read(file()).unwrap();
    let stored = stored();
    assert_eq!(read.facts(0), stored.facts());
    assert_eq!((read.program(0, 0).unwrap(), read.program(0, 1).unwrap()), {
        let p = stored.programs();
        (p[0].clone(), p[1].clone())
    });
    assert_eq!(read.table().rows()[1].choice.to_string(), "halves k=2");
    assert_eq!(read.table().rows()[1].per_node, Some(2));
    assert_eq!(read.digest(), PlanFile::read(file()).unwrap().digest());
}

/// A file of version 1 with two rows: the library's own algorithm, and recursive doubling from 64 bytes on.
#[test]
fn the_version_before_is_read() {
    let read = PlanFile::read(include_bytes!("plan_file/version_1.plan").to_vec()).unwrap();
    let rows: Vec<String> = read.table().rows().iter().map(|row| format!("{row}: {}", row.choice)).collect();
    let expected =
        ["allreduce on 2 ranks, 0 to 63 bytes: library", "allreduce on 2 ranks, 64 to any bytes: recursive-doubling"];
    assert_eq!(rows, expected);
    assert!(read.table().rows().iter().all(|row| row.per_node.is_none()));
    assert!(!read.facts(0).in_place);
    assert_eq!(read.program(0, 1).unwrap().departures.len(), 1);
}

#[test]
fn each_fault_has_its_sentence() {
    let good = file();
    assert_eq!(PlanFile::read(Vec::new()).unwrap_err(), PlanFileError::Magic);
    assert_eq!(PlanFile::read(b"schedule 1".to_vec()).unwrap_err(), PlanFileError::Magic);
    let mut newer = good.clone();
    newer[MAGIC.len()] = 3;
    let said = PlanFile::read(newer).unwrap_err().to_string();
    assert_eq!(said, "the plan has version 3; this program reads versions up to 2: update it, or plan again with it");
    let short = good[..good.len() - 1].to_vec();
    let expected = good.len() as u64;
    assert_eq!(PlanFile::read(short).unwrap_err(), PlanFileError::Truncated { found: expected - 1, expected });
    let said = PlanFile::read(good.repeat(2)).unwrap_err().to_string();
    assert_eq!(said, format!("the plan is damaged: {expected} bytes follow its last program; write it again"));
    // The file gets one more byte between the table and the programs, and the offset of the first program becomes 1.
    let mut apart = good.clone();
    let programs = PREAMBLE_BYTES + u64::from_le_bytes(good[16..24].try_into().unwrap()) as usize;
    apart.insert(programs, 0);
    let len = program_bytes(&stored().programs()[0]);
    let row = good.windows(16).position(|w| w[..8] == [0; 8] && w[8..] == len.to_le_bytes()).unwrap();
    apart[row] = 1;
    let said = PlanFile::read(forged(apart)).unwrap_err().to_string();
    assert_eq!(said, "the plan is damaged: its programs do not follow one another; write it again");
}

#[test]
fn no_byte_can_change_unseen() {
    let good = file();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        assert!(PlanFile::read(bad).is_err(), "byte {at}");
        assert!(PlanFile::read(good[..at].to_vec()).is_err(), "cut at {at}");
        assert!(PlanFile::read([&good[..], &good[..=at]].concat()).is_err(), "{} more bytes", at + 1);
    }
}

/// Returns the file with its header's checksum recomputed.
fn forged(mut bytes: Vec<u8>) -> Vec<u8> {
    let len = u64::from_le_bytes(bytes[16..24].try_into().unwrap()) as usize;
    if let Some(header) = bytes.get(PREAMBLE_BYTES..PREAMBLE_BYTES.saturating_add(len)) {
        let sum = checksum(header).to_le_bytes();
        bytes[24..32].copy_from_slice(&sum);
    }
    bytes
}

/// Returns a file with all checksums recomputed, whose rank 0 runs another program of the same length.
fn with_program(change: impl Fn(&mut RankProgram)) -> Vec<u8> {
    let (mut bytes, read) = (file(), PlanFile::read(file()).unwrap());
    let mut program = read.program(0, 0).unwrap();
    let written = |program: &RankProgram| {
        let mut out = Out::default();
        write_program(program, &mut out);
        out.0
    };
    let old = written(&program);
    change(&mut program);
    let new = written(&program);
    assert_eq!(old.len(), new.len());
    let sums = [&old, &new].map(|program| checksum(program).to_le_bytes().to_vec());
    for (old, new) in [(&old, &new), (&sums[0], &sums[1])] {
        let at = bytes.windows(old.len()).position(|w| w == &old[..]).unwrap();
        bytes[at..at + new.len()].copy_from_slice(new);
    }
    forged(bytes)
}

/// Programs are proven before they run, because right checksums do not prove anything about programs.
#[test]
fn forged_programs_fail_their_proof() {
    let good = PlanFile::read(with_program(|_| {})).unwrap();
    assert!(good.prove(0).is_ok());
    assert_eq!((good.prove_rows(Some(2)), good.prove_rows(None)), (Ok(()), Ok(())));
    let why = |change: &dyn Fn(&mut RankProgram)| {
        let read = PlanFile::read(with_program(change)).unwrap();
        assert_eq!(read.prove_rows(Some(3)), Ok(()), "no row is for 3 ranks");
        assert_eq!(read.prove_rows(Some(2)), read.prove(0).map(|_| ()));
        read.prove(0).unwrap_err().to_string()
    };
    let said = why(&|p| p.departures.iter_mut().for_each(|d| d.tag += 7));
    assert_eq!(
        said,
        "schedule 0 of the plan fails its proof: a message with tag 0 from rank 0 to rank 1 has only one end; plan again"
    );
    let swapped = |p: &mut RankProgram| {
        for step in p.steps.iter_mut().filter(|step| step.b.is_some()) {
            step.b = Some(step.a);
        }
    };
    assert!(why(&swapped).contains("fails its proof"), "{}", why(&swapped));
}

fn repeated<T: Clone>(rows: &[T], times: usize) -> Vec<T> {
    std::iter::repeat_n(rows, times).flatten().cloned().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::soak::cases(4000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_bytes_of_a_program_are_those_that_are_written(times in prop::array::uniform5(0usize..9)) {
        let mut p = stored().programs()[0].clone();
        let [lanes, steps, arrivals, departures, waits] = times;
        p.lanes = repeated(&p.lanes, lanes);
        p.steps = repeated(&p.steps, steps);
        p.arrivals = repeated(&p.arrivals, arrivals);
        p.departures = repeated(&p.departures, departures);
        p.waits = repeated(&p.waits, waits);
        let mut written = Out::default();
        write_program(&p, &mut written);
        prop_assert_eq!(program_bytes(&p), written.0.len() as u64);
    }

    #[test]
    fn forged_programs_stay_inside(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5), cut in any::<prop::sample::Index>(), shortens: bool) {
        let stored = stored();
        let mut out = Out::default();
        write_program(&stored.programs()[0], &mut out);
        let mut bytes = out.0;
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if shortens {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(program) = read_program(&bytes, stored.facts(), 0) {
            for s in &program.steps {
                prop_assert!(s.len > 0 && s.align + s.len <= 2);
                prop_assert!(s.waits.end as usize <= program.waits.len());
            }
            for d in &program.departures {
                prop_assert_eq!(d.peer, 1);
            }
        }
    }

    #[test]
    fn forged_tables_are_read_or_refused(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5)) {
        let mut bytes = file();
        for (at, value) in changes {
            let at = at.index(bytes.len() - MAGIC.len()) + MAGIC.len();
            bytes[at] = value;
        }
        if let Ok(plan) = PlanFile::read(forged(bytes)) {
            for schedule in 0..plan.schedule_count() {
                for rank in 0..plan.facts(schedule).collective.ranks {
                    let _ = plan.program(schedule, rank);
                }
            }
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(version in 1u8..=2, tail in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([version, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend((tail.len() as u64).to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend(tail);
        let _ = PlanFile::read(forged(bytes));
    }
}
