//! Exchanges by messages. They are proved, run with data, and refused if an element is missing or misplaced. The result
//! is the same if one rank lists the messages or all ranks do.

use proptest::prelude::*;
use unisono_discover::{
    Access, Action, Box3, Buffer, Cell, Command, Direct, DirectExchange, DirectSchedule, Discovery, Geometry,
    MOST_MESSAGES, Mapper, Message, Mode, Options, Pattern, Proofs, RankPart, Ranks, Region, Rules, Task,
    whole_elements,
};
use unisono_schedule::{
    interpret,
    verify::{Expected, Method, Seed, verify, verify_with},
};

/// Draws a length for each pair of ranks, or no message.
fn random(ranks: u32, seed: u64) -> Vec<Message> {
    let mut numbers = unisono_base::Random(seed);
    let pairs = (0..ranks).flat_map(|from| (0..ranks).map(move |to| (from, to))).filter(|(from, to)| from != to);
    pairs.map(|(from, to)| Message { from, to, elements: numbers.below(6) }).filter(|m| m.elements % 3 > 0).collect()
}

fn made(lengths: &Direct, ranks: u32) -> DirectSchedule {
    DirectSchedule::new(lengths, ranks, 8).unwrap()
}

fn prove(made: &DirectSchedule) {
    for method in [Method::Exact, Method::Fingerprint] {
        let proof = verify_with(&made.schedule, method, Seed::random(), &made.expected);
        assert!(proof.holds() && proof.complete && proof.race_free, "{:?}", proof.diagnostics);
    }
}

#[test]
fn messages_are_proved_and_arrive() {
    for (ranks, seed) in [(2, 1), (3, 2), (5, 3), (8, 4), (8, 5)] {
        let messages = random(ranks, seed);
        let made = made(&Direct::Messages(messages.clone()), ranks);
        prove(&made);
        // The exchange is not an alltoall of whole blocks, and the usual proof fails.
        assert!(!verify(&made.schedule, Method::Auto).holds());

        // Every sent element is a different number. The expected outputs follow from the list of messages alone.
        let len = made.schedule.collective().input_len(0) as usize;
        let inputs: Vec<Vec<f64>> =
            (0..ranks).map(|r| (0..len).map(|k| f64::from(1000 * r) + k as f64).collect()).collect();
        let outputs = interpret::run(&made.schedule, &inputs, interpret::Options { chunk: Some(1), seed }).unwrap();
        for to in 0..ranks {
            let mut expected = Vec::new();
            for m in messages.iter().filter(|m| m.to == to) {
                let before = messages.iter().filter(|o| o.from == m.from && o.to < to).map(|o| o.elements).sum::<u64>();
                expected.extend((before..before + m.elements).map(|k| f64::from(1000 * m.from) + k as f64));
            }
            assert_eq!(outputs[to as usize][..expected.len()], expected);
        }
    }
}

#[test]
fn a_proof_notices_what_is_wrong() {
    let messages = [Message { from: 0, to: 1, elements: 4 }, Message { from: 2, to: 1, elements: 3 }];
    let DirectSchedule { schedule, expected } = made(&Direct::Messages(messages.to_vec()), 3);
    let refused = |change: &dyn Fn(&mut Vec<Vec<Expected>>)| {
        let mut other = expected.clone();
        change(&mut other);
        !verify_with(&schedule, Method::Auto, Seed::random(), &other).holds()
    };
    assert!(!refused(&|_| {}));
    assert!(refused(&|e| e[1][0].ranks = vec![(2, 3)]), "from another rank");
    assert!(refused(&|e| e[1][0].input_start += 1), "another element");
    assert!(refused(&|e| e[1][1].span.len += 1), "more than arrives");
    let row = expected[1][0].clone();
    assert!(refused(&|e| e[0].push(row.clone())), "to another rank");
}

fn ranks(list: &[u32]) -> Ranks {
    Ranks::of(list.iter().map(|&k| (k, k + 1)).collect())
}

#[test]
fn sums_are_proved_for_the_ranks_that_contribute_and_for_no_others() {
    let cell =
        |elements, givers: &[u32], takers: &[u32]| Cell { elements, givers: ranks(givers), takers: ranks(takers) };
    let cells = vec![cell(3, &[0, 2, 3], &[1, 3]), cell(2, &[1], &[0, 1, 2]), cell(4, &[0, 1, 2, 3], &[3])];
    let made = made(&Direct::Cells(cells), 4);
    prove(&made);
    for method in [Method::Exact, Method::Fingerprint] {
        let refused = |wrong: Vec<(u32, u32)>| {
            let mut other = made.expected.clone();
            other[1][0].ranks = wrong;
            !verify_with(&made.schedule, method, Seed::random(), &other).holds()
        };
        assert!(!refused(vec![(0, 1), (2, 4)]));
        for wrong in
            [vec![(0, 1), (2, 3)], vec![(0, 4)], vec![(1, 4)], vec![(0, 3)], vec![(2, 4)], vec![(0, 1), (3, 5)], vec![]]
        {
            assert!(refused(wrong.clone()), "{wrong:?} by {method:?}");
        }
    }
    // Each rank's value is 10 to the power of the rank, so each digit of a sum counts the contributions of one rank.
    let len = made.schedule.collective().input_len(0) as usize;
    let inputs: Vec<Vec<f64>> = (0..4).map(|r| vec![f64::from(10_i32.pow(r)); len]).collect();
    let doubled = made.schedule.with_operator(unisono_collective::Operator::Sum);
    let outputs = interpret::run(&doubled, &inputs, interpret::Options { chunk: Some(1), seed: 1 }).unwrap();
    assert_eq!(outputs[1][..5], [1101.0, 1101.0, 1101.0, 10.0, 10.0]);
    assert_eq!(outputs[3][..7], [1101.0, 1101.0, 1101.0, 1111.0, 1111.0, 1111.0, 1111.0]);
}

#[test]
fn elements_of_any_size_are_whole_ones() {
    use unisono_collective::Dtype;
    assert_eq!(whole_elements(8, 5), (Dtype::F64, 5));
    assert_eq!(whole_elements(24, 5), (Dtype::F64, 15));
    assert_eq!(whole_elements(4, 5), (Dtype::F32, 5));
    assert_eq!(whole_elements(2, 5), (Dtype::F16, 5));
    assert_eq!(whole_elements(1, 5), (Dtype::F16, 3));
    let huge = Direct::Messages(vec![Message { from: 0, to: 1, elements: 1 << 33 }]);
    assert!(DirectSchedule::new(&huge, 2, 8).unwrap_err().to_string().contains("elements"));
}

/// Returns the discovery of one rank for a reduction with the mapper `reduced` that is read with the mapper `read`.
fn reduction(nodes: u32, rank: u32, size: i64, reduced: &Mapper, read: &Mapper) -> Discovery {
    let mut discovery = Discovery::new(Options::commands(nodes, rank, Rules::Off)).unwrap();
    let a = discovery.buffer(Buffer::new("a", &[size], 8, true).unwrap());
    let b = discovery.buffer(Buffer::new("b", &[size], 8, true).unwrap());
    let geometry = Geometry::of(&[size]);
    let accesses = [Access::new(a, Mode::Reduce, reduced.clone())];
    discovery.submit(&Task { name: "add", geometry, accesses: &accesses }).unwrap();
    let accesses = [Access::new(a, Mode::Read, read.clone()), Access::new(b, Mode::Write, Mapper::OneToOne)];
    discovery.submit(&Task { name: "use", geometry, accesses: &accesses }).unwrap();
    discovery.flush();
    discovery
}

/// Returns the part of each rank in its exchange, which lists all messages or only the rank's own.
fn parts(exchanges: &[DirectExchange], nodes: u32) -> Vec<RankPart> {
    let mut proofs = Proofs::default();
    let part = |(rank, exchange)| proofs.part(exchange, nodes, 8, rank).unwrap();
    (0..).zip(exchanges).map(part).collect()
}

/// The messages that a rank sends or receives, each with the other rank.
type Rows = Vec<(u32, Vec<Box3>)>;

/// Checks that both ends of every message have the same boxes, and returns the number of messages.
fn agree(parts: &[RankPart]) -> usize {
    let rows = |ends: fn(&RankPart) -> &Rows, turned: bool| {
        let mut rows = Vec::new();
        for (rank, part) in (0..).zip(parts) {
            rows.extend(ends(part).iter().map(|(k, boxes)| {
                let pair = if turned { (*k, rank) } else { (rank, *k) };
                (pair, boxes.clone())
            }));
        }
        rows.sort();
        rows
    };
    let (sent, got) = (rows(|part| &part.sends, false), rows(|part| &part.receives, true));
    assert_eq!(sent, got);
    sent.len()
}

#[test]
fn a_rank_does_the_same_whether_it_lists_all_messages_or_its_own() {
    // The number of ranks is too large for the library to list all pairs, and small enough for the test to do so.
    let few = 300;
    assert!(u64::from(few) * u64::from(few - 1) > MOST_MESSAGES);
    let halo = Mapper::Neighborhood([2, 0, 0]);
    for (reduced, read) in [(&halo, &Mapper::OneToOne), (&halo, &Mapper::All), (&Mapper::All, &halo)] {
        for rank in [0, 1, 150, 299] {
            let discovery = reduction(few, rank, 700, reduced, read);
            let found = discovery.commands().iter().find_map(|command| match &command.action {
                Action::Collective { operation, .. } => Some(operation.clone()),
                _ => None,
            });
            let operation = found.unwrap();
            let all = DirectExchange::of_operation(&operation, discovery.sides(), None);
            let own = DirectExchange::of_operation(&operation, discovery.sides(), Some(rank));
            assert!(all.complete && !own.complete);
            let mut proofs = Proofs::default();
            let (whole, part) = (proofs.part(&all, few, 8, rank).unwrap(), proofs.part(&own, few, 8, rank).unwrap());
            assert_eq!((&whole.sends, &whole.receives), (&part.sends, &part.receives));
            assert_eq!((&whole.pieces, &whole.own), (&part.pieces, &part.own));
        }
    }
}

#[test]
fn long_lists_of_pushes_are_of_one_rank() {
    let nodes = 300;
    for rank in [0, 7] {
        let mut discovery = Discovery::new(Options::commands(nodes, rank, Rules::Off)).unwrap();
        let a = discovery.buffer(Buffer::new("a", &[600], 8, false).unwrap());
        let geometry = Geometry::of(&[600]);
        for (mode, mapper) in [(Mode::Write, Mapper::OneToOne), (Mode::Read, Mapper::All)] {
            discovery.submit(&Task { name: "t", geometry, accesses: &[Access::new(a, mode, mapper)] }).unwrap();
        }
        discovery.flush();
        let plan = discovery.take_reads().remove(0);
        let own = DirectExchange::of_pushed(&plan.pushed, discovery.sides(), Some(rank));
        let all = DirectExchange::of_pushed(&plan.pushed, discovery.sides(), None);
        assert!(!own.complete && all.complete);
        assert_eq!((own.regions.len(), all.regions.len()), (2 * 299, 300 * 299));
        let part = Proofs::default().part(&own, nodes, 8, rank).unwrap();
        let rows = |rows: &[(u32, std::sync::Arc<Region>)]| {
            rows.iter().map(|(k, region)| (*k, region.boxes().to_vec())).collect::<Vec<_>>()
        };
        assert_eq!((part.sends, part.receives), (rows(&plan.pushes), rows(&plan.awaits)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::soak::cases(60)))]

    #[test]
    fn ranks_agree_on_reductions_and_each_element_is_made_of_all_that_contribute(
        nodes in 2_u32..7, size in 1_i64..20, (low, high) in (0_i64..3, 0_i64..3), which in 0..4_usize,
    ) {
        let mappers = [Mapper::OneToOne, Mapper::All, Mapper::Neighborhood([low, 0, 0]),
            Mapper::Neighborhood([high, 0, 0])];
        for reduced in &mappers {
            let read = &mappers[which];
            let found: Vec<_> = (0..nodes).map(|rank| reduction(nodes, rank, size, reduced, read)).collect();
            let operations: Vec<_> = found[0].commands().iter().filter_map(operation_of).collect();
            for operation in operations {
                prop_assert!(operation.pattern.reduces());
                prop_assert!(operation.pattern != Pattern::Halo);
                let sides = found[0].sides();
                let exchange = DirectExchange::of_operation(&operation, sides, Some(0));
                let exchanges = vec![exchange.clone(); nodes as usize];
                let parts = parts(&exchanges, nodes);
                prop_assert_eq!(agree(&parts), exchange.lengths.messages().len());
                for (rank, part) in (0..).zip(&parts) {
                    // The regions are those of the operation.
                    let sends = operation.sends(sides, rank);
                    let same = |rows: &[(u32, Vec<Box3>)], given: &[(u32, Region)]| {
                        rows.iter().map(|(k, boxes)| (*k, Region::of(boxes.iter().copied()))).eq(given.iter().cloned())
                    };
                    prop_assert!(same(&part.sends, &sends));
                    prop_assert!(same(&part.receives, &operation.receives(sides, rank)));
                    for element in 0..size {
                        let point = Box3::new([element, 0, 0], [element + 1, 1, 1]);
                        let has = |boxes: &[Box3]| boxes.iter().any(|b| b.contains(&point));
                        let order: Vec<(u32, bool)> =
                            part.pieces.iter().filter(|p| has(&p.boxes)).map(|p| (p.from, p.first)).collect();
                        let givers: Vec<u32> =
                            (0..nodes).filter(|&k| has(operation.given(sides, k).boxes())).collect();
                        let taken = has(operation.received(sides, rank).boxes());
                        let expected: Vec<(u32, bool)> =
                            givers.iter().enumerate().filter(|_| taken).map(|(n, &k)| (k, n == 0)).collect();
                        prop_assert_eq!(order, expected);
                    }
                }
            }
        }
    }
}

fn operation_of(command: &Command) -> Option<std::sync::Arc<unisono_discover::Operation>> {
    match &command.action {
        Action::Collective { operation, .. } => Some(operation.clone()),
        _ => None,
    }
}
