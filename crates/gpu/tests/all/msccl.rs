//! Tests of MSCCL XML: every algorithm is run by a second executor and read back, files are read or refused, and
//! damaged files never panic.

mod executor;
mod ops;

use std::collections::BTreeMap;

use unisono_algorithms::{ALGORITHMS, Case, Means, Params, Ranks};
use unisono_collective::{Collective, Dtype, Kind, Operator, Source};
use unisono_formats::{Emitter, Facts, ImportError, Importer};
use unisono_gpu::msccl::MscclXml;
use unisono_lower::{File, VerifiedFile};
use unisono_schedule::{
    Builder, Operand, Schedule,
    verify::{Method, verify},
};

fn import(text: &str, facts: &Facts) -> Result<Schedule, ImportError> {
    MscclXml.import(text, facts).map(|file| file.schedule)
}

fn emit(schedule: &Schedule) -> Result<String, String> {
    let file = File { schedule: schedule.clone(), placement: None, machine: None, blocks: None };
    let proven = VerifiedFile::new(&file, Method::Auto).map_err(|proof| format!("{:?}", proof.diagnostics))?;
    let mut files = MscclXml.emit(&proven).map_err(|e| e.to_string())?;
    assert_eq!(files.len(), 1);
    Ok(files.remove(0).1.text().unwrap().to_owned())
}

fn attribute<'a>(xml: &'a str, key: &str) -> &'a str {
    let at = xml.find(&format!(" {key}=\"")).unwrap() + key.len() + 3;
    &xml[at..at + xml[at..].find('"').unwrap()]
}

/// Returns the input of a rank's chunk. Sums of different ranks and chunks differ.
fn value(rank: u32, chunk: u32) -> i64 {
    (1 << (4 * (rank % 13))) + i64::from(chunk) * 1_000_000_007 + i64::from(rank) * 31
}

/// The offsets of a GPU's input and output in one buffer, from the GPU and the length of its input.
type Windows<'a> = &'a dyn Fn(usize, usize) -> (usize, usize);

/// Asserts that a file's GPUs compute the collective, out of place and, if the file permits it, in place.
fn check_run(schedule: &Schedule, xml: &str, what: &str) {
    let c = schedule.collective();
    let parts = if matches!(c.kind, Kind::Allgather | Kind::Alltoall | Kind::ReduceScatter) { c.ranks } else { 1 };
    let chunks: u32 = attribute(xml, "nchunksperloop").parse().unwrap();
    let in_chunks = Collective { elements: chunks / parts, ..*c };
    let inputs: Vec<Vec<i64>> =
        (0..c.ranks).map(|r| (0..in_chunks.input_len(r)).map(|k| value(r, k)).collect()).collect();
    let n = in_chunks.elements as usize;
    let window = |g: usize, _: usize| match c.kind {
        Kind::Allgather => (g * n, 0),
        Kind::ReduceScatter => (0, g * n),
        _ => (0, 0),
    };
    let ways: &[Option<Windows<'_>>] = if attribute(xml, "inplace") == "1" { &[None, Some(&window)] } else { &[None] };
    for way in ways {
        let outputs = executor::run(xml, &inputs, *way).unwrap_or_else(|stuck| panic!("{what}: {stuck}\n{xml}"));
        for (rank, output) in outputs.iter().enumerate() {
            for required in in_chunks.required(rank as u32) {
                for k in 0..required.span.len {
                    let at = required.input_start + k;
                    let expected = match required.source {
                        Source::Copy { rank } => value(rank, at),
                        Source::Reduction { ranks } => (0..ranks).map(|r| value(r, at)).sum(),
                        Source::AtLeastOnce { .. } => unreachable!(),
                    };
                    let found = output[(required.span.start + k) as usize];
                    assert_eq!(
                        found,
                        expected,
                        "{what}: rank {rank}, {required:?}, {k}, in place {}\n{xml}",
                        way.is_some()
                    );
                }
            }
            if c.kind == Kind::Broadcast && rank as u32 == c.root {
                assert_eq!(*output, inputs[rank], "{what}: the root's own output");
            }
        }
    }
}

#[test]
fn every_algorithm_runs_and_reads_back() {
    let mut refused: BTreeMap<String, u32> = BTreeMap::new();
    let mut written = BTreeMap::<&str, u32>::new();
    let mut types = std::collections::BTreeSet::new();
    let mut number = 0;
    for algorithm in ALGORITHMS.iter().filter(|a| a.info().needs.contains(&Means::Messages)) {
        for &kind in algorithm.info().collectives {
            for ranks in 1..=9 {
                for elements in [u64::from(ranks) * 4, 12, 7] {
                    number += 1;
                    // Cases with many ranks run only in the long run.
                    if ranks > 5 && ranks != 8 && !crate::soak::runs(number) {
                        continue;
                    }
                    let root = if kind.has_root() { u64::from(ranks / 2) } else { 0 };
                    let c = Collective::new(kind, ranks, elements, root, Operator::Sum, Dtype::I64).unwrap();
                    let case = Case::on_ranks(c, Ranks { latency_ns: 400.0, issue_ns: 100.0, ..Ranks::default() });
                    let mut settings = algorithm.candidates(&case);
                    settings.push(Params::new());
                    settings.dedup();
                    for params in settings.iter().take(4).filter(|p| algorithm.supports(&case, p).is_ok()) {
                        let schedule = algorithm.build(&case, params).unwrap().schedule;
                        let what = format!("{} {kind} {ranks} ranks {elements} elements {params:?}", algorithm.name());
                        match emit(&schedule) {
                            Err(reason) => {
                                assert!(!reason.contains("please report"), "{what}: {reason}");
                                // On 3x3 ranks, two parts of the vector share each connection, and their messages need
                                // more than two chunks in flight.
                                if algorithm.name() == "bucket" && reason.contains("more than 2 chunks in flight") {
                                    assert_eq!((ranks, elements), (9, 36), "{what}");
                                    continue;
                                }
                                *refused.entry(reason).or_default() += 1;
                            }
                            Ok(xml) => {
                                *written.entry(algorithm.name()).or_default() += 1;
                                for line in xml.lines().filter(|l| l.contains("<step")) {
                                    types.insert(attribute(line, "type").to_owned());
                                }
                                check_run(&schedule, &xml, &what);
                                let again = import(&xml, &Facts::default()).unwrap();
                                let (a, b) = (verify(&schedule, Method::Auto), verify(&again, Method::Auto));
                                assert!(b.holds(), "{what}: {:?}", b.diagnostics);
                                assert_eq!(a.expression_class, b.expression_class, "{what}");
                                assert_eq!(a.repeatable, b.repeatable, "{what}");
                                assert_eq!(again.collective(), schedule.collective(), "{what}");
                                // The imported schedule is written again. Only its results are compared, because its
                                // scratch memory may differ.
                                check_run(&again, &emit(&again).unwrap_or_else(|e| panic!("{what}: {e}")), &what);
                            }
                        }
                    }
                }
            }
        }
    }
    let kinds = refused.keys().filter(|r| !r.contains("is no collective of the format")).collect::<Vec<_>>();
    assert!(kinds.is_empty(), "{kinds:?}");
    let least = if crate::soak::is_on() { 20 } else { 15 };
    for name in ["binomial", "bruck", "linear", "pairwise", "rabenseifner", "recursive-doubling", "ring"] {
        assert!(written.get(name).is_some_and(|n| *n > least), "{name}: {written:?}");
    }
    let all = ["cpy", "nop", "r", "rcs", "re", "rrc", "rrcs", "rrs", "s"];
    assert_eq!(types.iter().map(String::as_str).collect::<Vec<_>>(), all, "every step type comes about");
}

/// Returns the ring that msccl-tools makes from `allreduce_a100_ring.py 2 1 1`. The ring is in place, so steps read and
/// write `i`.
fn ring_of_two(inplace: u32) -> String {
    let step = |s: u32, kind: &str, at: u32| {
        format!(
            "<step s=\"{s}\" type=\"{kind}\" srcbuf=\"i\" srcoff=\"{at}\" dstbuf=\"i\" dstoff=\"{at}\" cnt=\"1\" depid=\"-1\" \
             deps=\"-1\" hasdep=\"0\"/>\n"
        )
    };
    let gpu = |id: u32| {
        let (a, b) = (id, 1 - id);
        format!(
            "<gpu id=\"{id}\" i_chunks=\"2\" o_chunks=\"0\" s_chunks=\"0\">\n<tb id=\"0\" send=\"{b}\" recv=\"{b}\" chan=\"0\">\n\
             {}{}{}</tb>\n</gpu>\n",
            step(0, "s", a),
            step(1, "rrcs", b),
            step(2, "r", a)
        )
    };
    format!(
        "<algo name=\"ar2\" proto=\"LL128\" nchannels=\"1\" nchunksperloop=\"2\" ngpus=\"2\" coll=\"allreduce\" inplace=\"{inplace}\">\n\
         <!-- two GPUs -->\n{}{}</algo>",
        gpu(0),
        gpu(1)
    )
}

#[test]
fn a_file_of_msccl_tools_is_read_and_proved() {
    let facts = Facts { elements: Some(64), dtype: Some(Dtype::F64), operator: Some(Operator::Max), root: None };
    let schedule = import(&ring_of_two(1), &facts).unwrap();
    let c = schedule.collective();
    assert_eq!((c.kind, c.ranks, c.elements, c.dtype, c.operator), (Kind::Allreduce, 2, 64, Dtype::F64, Operator::Max));
    let proof = verify(&schedule, Method::Exact);
    assert!(proof.holds() && proof.repeatable, "{:?}", proof.diagnostics);
    check_run(&schedule, &emit(&schedule).unwrap(), "ring of two");
}

fn refusal(xml: &str) -> String {
    import(xml, &Facts::default()).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn wrong_files_are_named_by_line() {
    let good = ring_of_two(1);
    let with = |from: &str, to: &str| refusal(&good.replacen(from, to, 1));
    assert_eq!(refusal(&ring_of_two(0)), "line 6: the step writes the input, and the file has inplace=\"0\"");
    assert_eq!(
        with("cnt=\"1\"", "cnt=\"99\""),
        "line 5: cnt=\"99\" of <step>; accepted are whole numbers from 0 to 71"
    );
    assert_eq!(with("srcoff=\"0\"", "srcoff=\"2\""), "line 5: chunks 2 to 3 of buffer i of gpu 0, which has 2");
    assert_eq!(
        with("type=\"s\"", "type=\"x\""),
        "line 5: type=\"x\" is not a step; accepted are cpy, nop, r, rcs, re, rrc, rrcs, rrs, s"
    );
    assert_eq!(with("send=\"1\"", "send=\"0\""), "line 4: send=\"0\" is the GPU itself");
    assert_eq!(with("send=\"1\"", "send=\"-1\""), "line 5: the step sends, and its thread block has send=\"-1\"");
    assert_eq!(
        with("type=\"rrcs\"", "type=\"rrc\""),
        "line 14: message 1 from gpu 0 to gpu 1 on channel 0: nothing sent, cnt=\"1\" received"
    );
    assert_eq!(
        with("depid=\"-1\" deps=\"-1\"", "depid=\"0\" deps=\"7\""),
        "line 5: the step waits for step 7 of thread block 0, which is not there"
    );
    assert_eq!(
        with("depid=\"-1\" deps=\"-1\"", "depid=\"0\" deps=\"1\""),
        "line 5: the step waits for step 1 of thread block 0, which has hasdep=\"0\""
    );
    assert_eq!(with("ngpus=\"2\"", "ngpus=\"3\""), "line 1: ngpus=\"3\", and there are 2 <gpu>");
    assert_eq!(
        with("ngpus=\"2\"", "ngpus=\"4000000000\""),
        "line 1: ngpus=\"4000000000\" of <algo>; accepted are whole numbers from 1 to 1024"
    );
    assert_eq!(with("</tb>", ""), "line 9: </gpu> closes nothing that is open");
    assert_eq!(
        with("coll=\"allreduce\"", "coll=\"alltoallv\""),
        "line 1: coll=\"alltoallv\" is not read; accepted are allgather, allreduce, alltoall, broadcast, gather, reduce, reducescatter, scatter"
    );
    assert_eq!(refusal(""), "line 1: there is no <algo> element");
    assert_eq!(refusal("<algo ngpus='1"), "line 1: an attribute's value is never closed; the file may be cut");
    assert_eq!(refusal(&"<a>".repeat(100_000)), "line 1: elements are nested more than 16 deep");
    assert_eq!(refusal("hello"), "line 1: 'hello' stands where an element is expected");
    let facts = Facts { elements: Some(3), ..Facts::default() };
    let odd = import(&good, &facts).unwrap_err().to_string();
    assert_eq!(odd, "3 elements do not divide into the 2 chunks of the file; accepted are multiples");
}

#[test]
fn waits_in_a_circle_are_a_deadlock() {
    // The two thread blocks of GPU 0 wait for each other.
    let step = |waits: u32, dst: u32| {
        format!(
            "<step s=\"0\" type=\"cpy\" srcbuf=\"i\" srcoff=\"{dst}\" dstbuf=\"o\" dstoff=\"{dst}\" cnt=\"1\" depid=\"{waits}\" \
             deps=\"0\" hasdep=\"1\"/>"
        )
    };
    let xml = format!(
        "<algo nchannels=\"1\" nchunksperloop=\"2\" ngpus=\"1\" coll=\"allreduce\"><gpu id=\"0\" i_chunks=\"2\" o_chunks=\"2\" \
         s_chunks=\"0\"><tb id=\"0\" send=\"-1\" recv=\"-1\" chan=\"0\">{}</tb><tb id=\"1\" send=\"-1\" recv=\"-1\" \
         chan=\"0\">{}</tb></gpu></algo>",
        step(1, 0),
        step(0, 1)
    );
    let schedule = import(&xml, &Facts::default()).unwrap();
    let proof = verify(&schedule, Method::Auto);
    assert!(!proof.deadlock_free && proof.diagnostics.iter().any(|d| d.code == "deadlock"), "{:?}", proof.diagnostics);
}

#[test]
fn damaged_files_never_panic() {
    let good = ring_of_two(1);
    let c = Collective::new(Kind::Allreduce, 4, 16, 0, Operator::Sum, Dtype::F32).unwrap();
    let case = Case::on_ranks(c, Ranks::default());
    let doubling = ALGORITHMS.iter().find(|a| a.name() == "recursive-doubling").unwrap();
    let other = emit(&doubling.build(&case, &Params::new()).unwrap().schedule).unwrap();
    let mut numbers = unisono_base::Random(1);
    let mut random = |below: usize| numbers.below(below as u64) as usize;
    let spare = [
        "\"",
        "<",
        ">",
        "/",
        "-1",
        "99999999999999999999",
        "0",
        "7",
        "=",
        "-",
        "tb",
        "i",
        "o",
        "s",
        "\u{e9}",
        "2147483647",
    ];
    let mut proved = 0;
    let rounds = crate::soak::cases(6000);
    for round in 0..rounds {
        let mut text = if round % 2 == 0 { good.clone() } else { other.clone() };
        for _ in 0..=random(3) {
            let (mut from, mut to) = (random(text.len()), random(text.len()));
            (from, to) = (from.min(to), (from.max(to)).min(from + 12));
            while !text.is_char_boundary(from) {
                from -= 1;
            }
            while !text.is_char_boundary(to) {
                to += 1;
            }
            text.replace_range(from..to, spare[random(spare.len())]);
        }
        if let Ok(schedule) = import(&text, &Facts::default()) {
            proved += u32::from(verify(&schedule, Method::Auto).holds());
        }
    }
    assert!(2 * proved < rounds, "{proved}: most damage is seen");
}

#[test]
fn what_the_format_cannot_hold_is_refused_with_the_reason() {
    let schedule = |kind, ranks, elements, operator, algorithm: &str| {
        let c = Collective::new(kind, ranks, elements, 0, operator, Dtype::I64).unwrap();
        let unit = ALGORITHMS.iter().find(|a| a.name() == algorithm).unwrap();
        unit.build(&Case::on_ranks(c, Ranks::default()), &Params::new()).unwrap().schedule
    };
    let refused = |s: &Schedule| emit(s).unwrap_err();
    let s = schedule(Kind::Allreduce, 4, 8, Operator::Ordered, "recursive-doubling");
    assert!(refused(&s).ends_with("NCCL has no operator ordered; it has sum, prod, min and max"));
    let s = schedule(Kind::Allreduce, 64, 64, Operator::Sum, "ring");
    assert!(refused(&s).contains("at most 64 are held"), "{}", refused(&s));
    let s = schedule(Kind::Allreduce, 4, 0, Operator::Sum, "recursive-doubling");
    assert!(refused(&s).ends_with("it moves no elements"));
}

/// Both ends of a stream are divided into the same lengths.
#[test]
fn streams_read_in_other_lengths_than_written_are_cut() {
    let c = Collective::new(Kind::Message, 2, 1, 0, Operator::Sum, Dtype::I64).unwrap();
    let c = Collective { kind: Kind::Allreduce, elements: 12, ..c };
    let mut b = Builder::new(c);
    let ends = [0, 1].map(unisono_base::NodeId);
    let streams = [b.stream(ends[0], &[ends[1]]), b.stream(ends[1], &[ends[0]])];
    for (n, &node) in ends.iter().enumerate() {
        let (to, from) = (Operand::Stream(streams[n]), Operand::Stream(streams[1 - n]));
        for (start, len) in [(0, 4), (4, 8)] {
            b.combine(node, 0, len, &[Operand::In(start)], &[to]);
        }
        for (start, len) in [(0, 6), (6, 2), (8, 4)] {
            b.combine(node, 1, len, &[from, Operand::In(start)], &[Operand::Out(start)]);
        }
    }
    let schedule = b.finish().unwrap();
    let xml = emit(&schedule).unwrap();
    check_run(&schedule, &xml, "cut");
    assert_eq!(attribute(&xml, "nchunksperloop"), "6");
}
