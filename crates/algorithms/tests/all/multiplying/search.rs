use std::convert::Infallible;

use unisono_algorithms::{
    Case, Params, Ranks,
    multiplying::{Best, Search, StagePrices, Stages, Wrap, best_factored, best_fan_out, best_of, list, orders},
};
use unisono_base::limits::{counted, last_counted};

const RATIO_4: StagePrices = StagePrices { latency_ns: 4.0, send_ns: 1.0, reduce_ns: 0.0 };

fn cost(text: &str, ranks: u32) -> f64 {
    RATIO_4.total_ns(&Stages::parse(text, ranks).unwrap())
}

/// Compares costs with the optimal costs at ratio 4 that another program found by enumeration.
#[test]
fn optimal_costs_at_ratio_4() {
    let known = [
        (7, 10.0, Some("a7")),
        (8, 11.0, Some("a8")),
        (13, 15.0, Some("m1g4a3,n1g3a4")),
        (16, 14.0, None),
        (31, 19.0, Some("m1g6a5,n1g5a6")),
        (64, 21.0, None),
        (97, 24.0, Some("m17g20a4,a5,n17g20a4")),
        (127, 26.0, Some("m2g25a5,a5,n2g25a5")),
        (128, 25.0, None),
        (256, 28.0, None),
    ];
    for (ranks, optimum, schedule) in known {
        assert_eq!(Search::new(ranks, RATIO_4).best().cost_ns, optimum, "{ranks}");
        if let Some(text) = schedule {
            assert_eq!(cost(text, ranks), optimum, "{text}");
        }
    }
}

#[test]
fn a_split_is_never_strictly_best_at_ratio_4() {
    for ranks in 2..=256 {
        let search = Search::new(ranks, RATIO_4);
        let split = search.split().unwrap().cost_ns;
        let others = search.merge().map_or(f64::INFINITY, |m| m.cost_ns).min(search.factored().cost_ns);
        assert!(split >= others, "{ranks}: {split} {others}");
    }
}

/// Compares the search with all schedules, for several [`StagePrices`].
#[test]
fn nothing_is_cheaper_than_what_the_search_finds() {
    let prices = [
        RATIO_4,
        StagePrices { latency_ns: 1340.0, send_ns: 340.0, reduce_ns: 0.0 },
        StagePrices { latency_ns: 500.0, send_ns: 103.2, reduce_ns: 8.0 },
        StagePrices { latency_ns: 100.0, send_ns: 1.0, reduce_ns: 50.0 },
        StagePrices { latency_ns: 0.0, send_ns: 1.0, reduce_ns: 0.0 },
        StagePrices { latency_ns: 1.0, send_ns: 0.0, reduce_ns: 0.0 },
        StagePrices { latency_ns: 0.0, send_ns: 0.0, reduce_ns: 0.0 },
    ];
    for prices in prices {
        for ranks in (1..=40).chain([61, 97, 128]) {
            let least = |keep: &dyn Fn(&Stages) -> bool| {
                let all = list(ranks).into_iter().filter(keep);
                best_of(all, |s| Ok::<_, Infallible>(prices.total_ns(s))).unwrap().map(|(_, cost)| cost)
            };
            let near = |found: Option<f64>, wanted: Option<f64>, what: &str| match (found, wanted) {
                (Some(a), Some(b)) => assert!((a - b).abs() <= 1e-9 * b.abs(), "{what} of {ranks} {prices:?}: {a} {b}"),
                (a, b) => assert_eq!(a, b, "{what} of {ranks} {prices:?}"),
            };
            let search = Search::new(ranks, prices);
            let cost = |best: Option<Best>| best.map(|b| b.cost_ns);
            near(Some(search.factored().cost_ns), least(&|s| s.wrap() == Wrap::Plain), "factored");
            near(cost(search.split()), least(&|s| matches!(s.wrap(), Wrap::Split { .. })), "split");
            near(cost(search.merge()), least(&|s| matches!(s.wrap(), Wrap::Merge { .. })), "merge");
            near(Some(search.best().cost_ns), least(&|_| true), "best");
            let ordered = search.in_order(true);
            let of_one = |s: &Stages| matches!(s.wrap(), Wrap::Merge { rest: 1, .. });
            near(cost(ordered.merge()), least(&of_one), "merge in order");
            near(Some(ordered.best().cost_ns), least(&|s| s.keeps_order()), "best in order");
            assert!(ordered.best().stages.keeps_order());
        }
    }
}

#[test]
fn large_numbers_of_ranks_are_searched_at_once() {
    for ranks in [999_983, 1_000_000, 1 << 20, 720_720] {
        let best = counted(|| best_factored(ranks, &RATIO_4));
        assert_eq!(best.stages.ranks(), ranks);
        assert!(last_counted() < 100_000, "{ranks}: {} steps", last_counted());
    }
    // Wrapped schedules are searched too, up to the largest number of ranks of a collective.
    for (ranks, latency_ns, least) in [(999_983, 4.0, 70.0), (999_983, 4000.0, 9999.0), (1 << 22, 4.0, 77.0)] {
        let best = counted(|| Search::new(ranks, StagePrices { latency_ns, ..RATIO_4 }).best());
        assert_eq!((best.stages.ranks(), best.cost_ns), (ranks, least));
        // A naive search would try every pair of stages.
        assert!(last_counted() < 500 * u64::from(ranks), "{ranks}: {} steps", last_counted());
    }
}

/// (alpha_p + b alpha_r) log_{b+1} N is least at the returned b for every N: its neighbors give no smaller value.
#[test]
fn the_best_fan_out_is_the_minimum_of_eq_4() {
    for (ratio, known) in [(1.0, 1.718), (2.0, 2.591), (4.0, 3.971), (8.0, 6.193), (16.0, 9.842)] {
        assert!((best_fan_out(ratio) - known).abs() < 5e-4, "{ratio}: {}", best_fan_out(ratio));
    }
    for ratio in [0.0, 0.5, 1.0, 4.0, 100.0, 1e6] {
        let eq_4 = |b: f64| (ratio + b) / (b + 1.0).ln();
        let b = best_fan_out(ratio);
        if ratio == 0.0 {
            assert!(b.abs() < 1e-6, "{b}");
            continue;
        }
        assert!(eq_4(b) <= eq_4(b * 1.001) && eq_4(b) <= eq_4(b * 0.999), "{ratio}: {b}");
    }
    assert!(best_fan_out(-1.0).is_nan() && best_fan_out(f64::NAN).is_nan());
}

/// The times of the caller choose the order. In this test they penalize a large last stage.
#[test]
fn orders_are_chosen_by_whoever_can_time_them() {
    let stages = Stages::parse("a5,a3,a2", 30).unwrap();
    let last = |s: &Stages| Ok::<_, Infallible>(f64::from(*s.factors().last().unwrap()));
    let (best, cost) = best_of(orders(&stages), last).unwrap().unwrap();
    assert_eq!((best.to_string().as_str(), cost), ("a3,a5,a2", 2.0));
    assert_eq!(best_of(orders(&stages), |_| Err::<f64, _>("no clock")), Err("no clock"));
}

#[test]
fn the_candidates_of_a_machine_with_nodes() {
    let named = |ranks: u32, node_ranks| {
        let c = super::case(ranks, 1, unisono_collective::Operator::Sum).collective;
        let place = Ranks { latency_ns: 4.0, issue_ns: 1.0, node_ranks, ..Ranks::default() };
        let params: Vec<Params> = super::algorithm().candidates(&Case::on_ranks(c, place));
        params.iter().map(|p| p.get("schedule").unwrap_or("").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(named(1, None), [""]);
    assert_eq!(named(2, None), ["a2", "c2m2,e2m2"]);
    assert_eq!(named(60, Some(12))[0], "a4,a3,a5");
    assert!(named(96, Some(24)).len() >= 3);
}
