//! Every registered algorithm among 1 to 17 ranks and two larger numbers, with lengths that do not divide evenly or are
//! shorter than the number of ranks, every distinct root and all candidate parameters: it is proved, it computes the
//! right result at every granularity, it is repeatable if it promises so, and its rounds are those of its schedule.

use crate::{common, soak};

use common::{among, every_rank_case, expected, inputs, label};
use unisono_algorithms::{ALGORITHMS, Algorithm, Case, Means, Params, Profile, Ranks, find, ranks::Extents, resolve};
use unisono_base::NodeId;
use unisono_collective::{Kind, Operator};
use unisono_lower::{Exchange, Round, Waits};
use unisono_schedule::{
    Operand, Schedule,
    interpret::{Options, run},
    verify::{Method, verify},
};

/// Returns true if the algorithm promises equal bits on all ranks.
fn promises_equal_bits(algorithm: &dyn Algorithm, case: &Case, params: &Params) -> bool {
    let c = &case.collective;
    // Results differ only if each rank starts a sum with its own operand.
    let own_first = algorithm.name() == "dissemination";
    let ways: u32 = params.get("ways").map_or(1, |w| w.parse().unwrap());
    !own_first || c.elements == 0 || c.ranks <= ways + 1
}

fn proves_and_computes(elements: u64) {
    let mut cases = 0;
    every_rank_case(&[elements], Operator::Sum, |algorithm, case, params| {
        let name = label(algorithm, case, params);
        let schedule = algorithm.build(case, params).unwrap().schedule;
        let proof = verify(&schedule, Method::Exact);
        assert!(proof.holds() && proof.complete && proof.deadlock_free && proof.race_free, "{name}: {proof:?}");
        let c = schedule.collective();
        // A barrier has no result whose bits could differ.
        let is_repeatable = c.kind == Kind::Barrier || promises_equal_bits(algorithm, case, params);
        assert_eq!(proof.repeatable, is_repeatable, "{name}");
        // Fingerprints cannot prove that a contribution occurs "at least once".
        if c.kind != Kind::Barrier {
            let by_fingerprint = verify(&schedule, Method::Fingerprint);
            assert!(
                by_fingerprint.holds() && by_fingerprint.repeatable == proof.repeatable,
                "{name}: {by_fingerprint:?}"
            );
            assert_eq!(by_fingerprint.expression_class, proof.expression_class, "{name}");
        }
        let data = inputs(c);
        let want = expected(c, &data);
        for (chunk, seed) in [(None, 1), (Some(1), 2), (Some(3), 3)] {
            let out = run(&schedule, &data, Options { chunk, seed }).unwrap();
            assert_eq!(out, want, "{name} in chunks of {chunk:?}");
        }
        cases += 1;
    });
    assert!(cases > soak::cases(1620), "the sweep covers {cases} cases only");
}

#[test]
fn proves_and_computes_nothing() {
    proves_and_computes(0);
}

#[test]
fn proves_and_computes_one_element() {
    proves_and_computes(1);
}

#[test]
fn proves_and_computes_two_elements() {
    proves_and_computes(2);
}

#[test]
fn proves_and_computes_5_elements() {
    proves_and_computes(5);
}

#[test]
fn proves_and_computes_19_elements() {
    proves_and_computes(19);
}

#[test]
fn keeps_the_order_where_the_operator_does_not_commute() {
    let mut units = std::collections::BTreeSet::new();
    every_rank_case(&[3], Operator::Ordered, |algorithm, case, params| {
        if !case.collective.kind.reduces() {
            return;
        }
        let name = label(algorithm, case, params);
        let schedule = algorithm.build(case, params).unwrap().schedule;
        if case.collective.kind != Kind::Barrier {
            for method in [Method::Exact, Method::Fingerprint] {
                let proof = verify(&schedule, method);
                assert!(proof.holds(), "{name}: {proof:?}");
            }
            units.insert((algorithm.name(), case.collective.kind.name()));
        }
        let data = inputs(schedule.collective());
        let out = run(&schedule, &data, Options::default()).unwrap();
        assert_eq!(out, expected(schedule.collective(), &data), "{name}");
    });
    let keep: Vec<String> = units.iter().map(|(name, kind)| format!("{name} {kind}")).collect();
    for unit in ["rabenseifner allreduce", "elimination allreduce", "reduce-scatter-gather reduce", "linear scan"] {
        assert!(keep.iter().any(|k| k == unit), "{unit} is not among {keep:?}");
    }
    assert!(!keep.iter().any(|k| k.starts_with("ring") || k.starts_with("pairwise")), "{keep:?}");
}

/// Returns the number of messages, the bytes sent and the bytes reduced of a rank.
fn work(schedule: &Schedule, node: NodeId) -> [u64; 3] {
    let bytes = schedule.collective().dtype.bytes();
    let mut work = [0; 3];
    for id in schedule.node_instrs(node).map(unisono_base::InstrId::new) {
        let streams = schedule.sinks(id).iter().filter(|o| matches!(o, Operand::Stream(_))).count() as u64;
        let len = u64::from(schedule.instr(id).len) * bytes;
        work[0] += streams;
        work[1] += streams * len;
        work[2] += (schedule.sources(id).len() as u64 - 1) * len;
    }
    work
}

/// Compares the lower bound of the messages of the busiest rank, by which plans skip schedules of very many messages,
/// with the schedule.
#[test]
fn the_busiest_rank_sends_at_least_as_many_messages_as_stated() {
    let mut most = 0;
    every_rank_case(&[1, 19], Operator::Sum, |algorithm, case, params| {
        let cuts = params.clone().with("segment", 8);
        let params = if algorithm.supports(case, &cuts).is_ok() { &cuts } else { params };
        let schedule = algorithm.build(case, params).unwrap().schedule;
        let sends = (0..case.collective.ranks).map(|rank| work(&schedule, NodeId(rank))[0]).max().unwrap();
        let stated = algorithm.size(case, params).sends;
        assert!(stated <= sends, "{}: {stated} of {sends}", label(algorithm, case, params));
        most = most.max(stated);
    });
    assert!(most > 1);
}

#[test]
fn rounds_are_those_of_the_schedule() {
    let mut units = std::collections::BTreeSet::new();
    // The lengths are multiples of the numbers of ranks, so that blocks are equal; only the second is a multiple of 17.
    every_rank_case(&[720_720, 12_240], Operator::Sum, |algorithm, case, params| {
        let c = case.collective;
        if u64::from(c.ranks) * u64::from(c.elements) * 2 > u64::from(u32::MAX) || c.elements % c.ranks > 0 {
            return;
        }
        let Some(Profile::Rounds(rounds)) = algorithm.profile(case, params) else { return };
        units.insert((algorithm.name(), c.kind.name()));
        // If data goes to or from a single rank, the ranks do different work.
        if c.kind.has_root() || c.kind == Kind::Scan || algorithm.name() == "reduce-broadcast" {
            return;
        }
        // The ranks also do different work if they fold in pairs. Lanes have equal lengths only if their number divides
        // the blocks.
        let folds =
            ["elimination", "rabenseifner", "recursive-doubling", "recursive-halving"].contains(&algorithm.name());
        let lanes = rounds.iter().any(|round| round.waits == Waits::Lanes);
        if folds && !c.ranks.is_power_of_two() || lanes && c.elements % (12 * c.ranks) > 0 {
            return;
        }
        let name = label(algorithm, case, params);
        let schedule = algorithm.build(case, params).unwrap().schedule;
        let all = |f: &dyn Fn(&Round) -> u64| rounds.iter().map(|r| f(r) * u64::from(r.repeat)).sum::<u64>();
        let messages = all(&|r| u64::from(r.messages));
        let bytes = all(&|r| u64::from(r.messages) * r.bytes);
        let reduced = all(&|r| r.reduced);
        for rank in 0..c.ranks {
            let found = work(&schedule, NodeId(rank));
            assert_eq!(found[..2], [messages, bytes], "{name}: rank {rank}");
            // A dissemination among any number of ranks adds the rank's own operand at every send.
            let more = found[2].checked_sub(reduced).unwrap();
            assert!(more == 0 || algorithm.name() == "dissemination", "{name}: rank {rank} reduces {more} bytes more");
        }
    });
    assert!(units.len() >= 14, "{units:?}");
}

/// Compares the exchanges with the messages of the schedule.
fn exchanges_match(algorithm: &dyn Algorithm, case: &Case, params: &Params, exchanges: &[Exchange]) {
    let c = case.collective;
    let name = label(algorithm, case, params);
    let schedule = algorithm.build(case, params).unwrap().schedule;
    let mut stated = std::collections::BTreeMap::<(u32, u32), [u64; 2]>::new();
    for flow in exchanges.iter().flat_map(|e| &e.flows) {
        for from in (0..c.ranks).filter(|&r| flow.to(r) != r) {
            let pair = stated.entry((from, flow.to(from))).or_default();
            pair[0] += u64::from(flow.repeat);
            pair[1] += u64::from(flow.repeat) * flow.bytes;
        }
    }
    let mut found = std::collections::BTreeMap::<(u32, u32), [u64; 2]>::new();
    for node in (0..c.ranks).map(NodeId) {
        for id in schedule.node_instrs(node).map(unisono_base::InstrId::new) {
            for sink in schedule.sinks(id).iter() {
                let Operand::Stream(stream) = sink else { continue };
                for to in schedule.stream_sinks(stream) {
                    let pair = found.entry((node.0, to.0)).or_default();
                    pair[0] += 1;
                    pair[1] += u64::from(schedule.instr(id).len) * c.dtype.bytes();
                }
            }
        }
    }
    // The messages of many ranks are too long to print, so only the first difference is printed.
    let differ = stated.iter().zip(&found).find(|(stated, found)| stated != found);
    assert!(differ.is_none() && stated.len() == found.len(), "{name}: {differ:?}");
    let reduced: u64 = exchanges.iter().map(|e| e.reduced).sum();
    // If data goes to a single rank, the ranks do different work.
    let is_stated = |r: u32| {
        let found = work(&schedule, NodeId(r))[2];
        let is_rooted = c.kind.has_root() || algorithm.name() == "reduce-broadcast";
        if is_rooted { found <= reduced } else { found == reduced }
    };
    assert!((0..c.ranks).all(is_stated), "{name} reduces {reduced} bytes");
}

/// The exchanges of large schedules by halving equal those of the schedules, which are built here.
#[test]
fn exchanges_of_large_schedules_are_those_of_the_schedule() {
    let ranks = 1 << 14;
    for (name, kind, params) in [
        ("rabenseifner", Kind::Allreduce, ""),
        ("reduce-scatter-gather", Kind::Reduce, ""),
        ("scatter-allgather", Kind::Broadcast, "distance-halving"),
        ("scatter-allgather", Kind::Broadcast, "recursive-doubling"),
    ] {
        let params = if params.is_empty() { Params::new() } else { Params::new().with("allgather", params) };
        let case = among(kind, ranks, 2 * u64::from(ranks), if kind.has_root() { 1357 } else { 0 }, Operator::Sum);
        // Exchanges exist on networks only. The ranks form one dimension.
        let on_line = Ranks { extents: Extents::new(&[ranks]), ..case.ranks() };
        let case = Case::on_ranks(case.collective, on_line);
        let algorithm = find(name).unwrap();
        let Some(Profile::Exchanges(exchanges)) = algorithm.profile(&case, &params) else { panic!("{name}") };
        exchanges_match(algorithm, &case, &params, &exchanges);
    }
}

/// Exchanges state the receivers, bytes and numbers of messages of the schedule.
#[test]
fn exchanges_are_those_of_the_schedule() {
    let mut units = std::collections::BTreeSet::new();
    // The length is a multiple of all numbers by which algorithms divide vectors.
    every_rank_case(&[11_531_520], Operator::Sum, |algorithm, case, params| {
        let c = case.collective;
        let pieces = c.ranks * 2 * 2 * 3;
        let whole = u64::from(c.elements) * if c.kind == Kind::Allreduce { 1 } else { u64::from(c.ranks) };
        if c.elements % pieces > 0 || whole > u64::from(u32::MAX) {
            return;
        }
        // Exchanges exist on networks only. The ranks form one dimension.
        let ranks = Ranks { extents: Extents::new(&[c.ranks]), ..case.ranks() };
        let case = &Case::on_ranks(c, ranks);
        if algorithm.supports(case, params).is_err() {
            return;
        }
        let Some(Profile::Exchanges(exchanges)) = algorithm.profile(case, params) else { return };
        units.insert((algorithm.name(), c.kind.name()));
        exchanges_match(algorithm, case, params, &exchanges);
    });
    for unit in
        ["dual-rings", "bucket", "swing", "balanced-shift", "ring", "bidirectional-ring", "pairwise", "circulant"]
    {
        assert!(units.iter().any(|(name, _)| *name == unit), "{unit} is not among {units:?}");
    }
}

#[test]
fn the_same_bits_as_recursive_doubling() {
    // As measured in MPI libraries, Rabenseifner's allreduce adds operands in the order of recursive doubling.
    for ranks in [2, 3, 6, 8, 13, 16] {
        let case = among(Kind::Allreduce, ranks, 64, 0, Operator::Sum);
        let class = |name: &str| {
            let schedule = find(name).unwrap().build(&case, &Params::new()).unwrap().schedule;
            verify(&schedule, Method::Exact).expression_class
        };
        assert_eq!(class("rabenseifner"), class("recursive-doubling"), "{ranks}");
        assert_eq!(class("ring") == class("recursive-doubling"), ranks == 2, "{ranks}");
    }
}

#[test]
fn each_collective_is_made_among_ranks() {
    for &kind in Kind::ALL.iter().filter(|&&k| k != Kind::Message) {
        let among_ranks = |a: &&&dyn Algorithm| a.info().needs.contains(&Means::Messages);
        let count = ALGORITHMS.iter().filter(among_ranks).filter(|a| a.info().collectives.contains(&kind)).count();
        assert!(count >= if kind == Kind::Barrier { 1 } else { 2 }, "{kind}");
    }
}

/// Returns the algorithm for a name with parameters among `ranks` ranks, or the error.
fn said(name: &str, kind: Kind, ranks: u32, given: &[(&str, &str)]) -> String {
    let case = among(kind, ranks, 8, 0, Operator::Sum);
    let params = given.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
    // Some cases that are too large to build can be timed by their rounds, so only their build is refused.
    let built = resolve(name, &case, &params)
        .and_then(|(algorithm, params)| algorithm.build(&case, &params).map(|_| (algorithm, params)));
    match built {
        Ok((algorithm, params)) => format!("{} {params}", algorithm.name()),
        Err(e) => e.to_string(),
    }
}

#[test]
fn names_and_refusals() {
    assert_eq!(said("binomial", Kind::Allreduce, 4, &[]), "reduce-broadcast reduce=binomial");
    assert_eq!(
        said("pipelined-chain", Kind::Allreduce, 4, &[("segment", "8"), ("broadcast", "pipelined-chain")]),
        "reduce-broadcast broadcast=pipelined-chain reduce=pipelined-chain segment=8"
    );
    for (name, kind, ranks, given, why) in [
        ("ring", Kind::Allreduce, 4, ("mapping", "fold"), "mapping"),
        ("ring", Kind::Allreduce, 100_000, ("", ""), "20000000000 instructions"),
        ("linear", Kind::Alltoall, 20_000, ("", ""), "at most 67108864"),
        ("pipelined-chain", Kind::Reduce, 4, ("segment", "0"), "segment"),
        ("binomial", Kind::Gather, 4, ("segment", "8"), "none in a gather"),
        ("neighbor", Kind::Allgather, 5, ("", ""), "5 is odd"),
        ("scatter-allgather", Kind::Broadcast, 6, ("allgather", "recursive-doubling"), "power of two"),
        ("dissemination", Kind::Barrier, 6, ("ways", "0"), "from 1 to 1024"),
        ("elimination", Kind::Allreduce, 6, ("protocol", "both"), "overlapping, non-overlapping, halving"),
        (
            "chain",
            Kind::Reduce,
            4,
            ("", ""),
            "it needs a grid of PEs (a wafer); the machine offers messages between ranks",
        ),
        ("dual-rings", Kind::Allreduce, 10, ("", ""), "2x5 ranks have no two such cycles"),
        ("dual-rings", Kind::Allreduce, 27, ("dims", "3x3x3"), "'3x3x3'; accepted is RxC with R C = 27"),
        ("bucket", Kind::Allreduce, 12, ("dims", "3x5"), "whose product is 12"),
        ("bucket", Kind::Allreduce, 12, ("dims", "axb"), "such as 3x4"),
        ("swing", Kind::Allreduce, 12, ("", ""), "the extent 3 is odd"),
        ("reduce-broadcast", Kind::Allreduce, 4, ("reduce", "star"), "accepted is all-pairs, binary-tree, binomial"),
        ("reduce-broadcast", Kind::Allreduce, 4, ("broadcast", "flood"), "accepted is all-pairs"),
    ] {
        let given: &[(&str, &str)] = if given.0.is_empty() { &[] } else { &[given] };
        let said = said(name, kind, ranks, given);
        assert!(said.contains(why), "{name}: {said}");
    }
    let on_wafer = common::case(Kind::Reduce, unisono_machine::Grid::new(1, 4), 8, 0, Operator::Sum);
    let refused = find("binomial").unwrap().supports(&on_wafer, &Params::new()).unwrap_err().to_string();
    assert!(
        refused.contains("it needs messages between ranks; the machine offers a grid of PEs (a wafer)"),
        "{refused}"
    );
}
