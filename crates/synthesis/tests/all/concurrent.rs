//! Tests of `concurrent`.

use crate::common::torus;

use microlp::{ComparisonOp, OptimizationDirection, Problem};
use proptest::prelude::*;
use unisono_synthesis::{
    Arc, Certificate, ConcurrentFlow, Fabric, Graph, NoForest, Roots,
    concurrent::{multiplied, of_graph, proved},
    internals::router::Router,
};

/// Returns the least time of the flow, from a linear program with a variable for every arc and source.
fn by_program(graph: &Graph) -> f64 {
    let mut problem = Problem::new(OptimizationDirection::Minimize);
    let time = problem.add_var(1.0, (0.0, f64::INFINITY));
    let mut of_arc = vec![Vec::new(); graph.arcs().len()];
    for source in 0..graph.ranks() {
        let flows: Vec<_> = graph.arcs().iter().map(|_| problem.add_var(0.0, (0.0, f64::INFINITY))).collect();
        for (row, &flow) in of_arc.iter_mut().zip(&flows) {
            row.push((flow, 1.0));
        }
        for node in (0..graph.nodes()).filter(|&node| node != source) {
            let sign = |arc: &Arc| f64::from(u8::from(arc.to == node)) - f64::from(u8::from(arc.from == node));
            let row: Vec<_> = graph.arcs().iter().zip(&flows).map(|(arc, &flow)| (flow, sign(arc))).collect();
            problem.add_constraint(&row[..], ComparisonOp::Eq, f64::from(u8::from(node < graph.ranks())));
        }
    }
    for (mut row, arc) in of_arc.into_iter().zip(graph.arcs()) {
        row.push((time, -(arc.rate as f64)));
        problem.add_constraint(&row[..], ComparisonOp::Le, 0.0);
    }
    problem.solve().unwrap().into_solution().unwrap().objective()
}

#[test]
fn tori_are_bound_by_their_longest_dimension() {
    for dims in [&[4_u32, 4][..], &[8, 4], &[5, 7], &[2, 4, 8], &[8, 8, 8], &[16, 16]] {
        let graph = torus(dims);
        // The units on an arc of a ring of k ranks among n ranks: n times the mean distance, divided by two directions.
        let of = |&k: &u32| {
            let mean = (0..k).map(|d| f64::from(d.min(k - d))).sum::<f64>() / f64::from(k);
            // A ring of two ranks has one arc of twice the rate in each direction.
            f64::from(graph.ranks()) * mean / 2.0
        };
        let least = dims.iter().map(of).fold(0.0, f64::max);
        let unit = graph.arcs().iter().map(|arc| arc.rate).min().unwrap() as f64;
        let known = Fabric::new(graph.clone(), dims, 0.0).concurrent_flow().unwrap();
        let found = of_graph(&graph).unwrap();
        assert!((known.time() * unit - least).abs() < 1e-9 * least, "{dims:?} {} {least}", known.time());
        assert!((found.time() * unit - least).abs() < 1e-5 * least, "{dims:?} {} {least}", found.time());
        let certificate = Certificate::of_flow(&graph, &known);
        assert_eq!(certificate.flow_bound(&graph), Ok(known.time));
    }
}

#[test]
fn multiplied_weights_come_near() {
    let graph = torus(&[8, 8]);
    let less: Vec<Arc> = graph.arcs().iter().copied().filter(|arc| (arc.from, arc.to) != (0, 1)).collect();
    let graph = Graph::new(64, 64, less);
    let exact = of_graph(&graph).unwrap().time();
    // The row with the missing link is the bottleneck, not the whole torus.
    assert!((exact - 1024.0 / 15.0).abs() < 1e-4, "{exact}");
    let prices = vec![1; graph.arcs().len()];
    let time = proved(&graph, &prices, 0..64).unwrap();
    let near = multiplied(&mut Router::new(&graph), ConcurrentFlow { prices, time }).unwrap();
    assert!((0.9 * exact..exact * (1.0 + 1e-9)).contains(&near.time()), "{} {exact}", near.time());
}

#[test]
fn a_network_that_is_too_large_is_not_said_to_be_unreachable() {
    let ring = (0..3000).map(|n| Arc { from: n, to: (n + 1) % 3000, rate: 1 });
    let fabric = Fabric::new(Graph::new(3000, 3000, ring), &[], 0.0);
    let reason = fabric.concurrent_flow().unwrap_err();
    assert_eq!(reason.to_string(), "ranks times links are 9000000; accepted are at most 8388608");
    assert_eq!(fabric.scatter(Roots::All, 1).unwrap_err(), reason);
    let most = fabric.scatter(Roots::One(0), 1 << 15).unwrap_err().to_string();
    assert_eq!(most, "roots times nodes times chunks are 98304000; accepted are at most 67108864");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::soak::cases(200)))]
    #[test]
    fn a_flow_is_refused_where_a_rank_does_not_reach_another(
        ranks in 2_u32..5,
        relays in 0_u32..3,
        arcs in prop::collection::vec((0_u32..7, 0_u32..7, 1_u64..9), 1..20),
    ) {
        let nodes = ranks + relays;
        let arcs = arcs.into_iter().map(|(a, b, rate)| Arc { from: a % nodes, to: b % nodes, rate });
        let graph = Graph::new(ranks, nodes, arcs.filter(|arc| arc.from != arc.to));
        let mut reaches = vec![vec![false; nodes as usize]; nodes as usize];
        (0..nodes as usize).for_each(|node| reaches[node][node] = true);
        graph.arcs().iter().for_each(|arc| reaches[arc.from as usize][arc.to as usize] = true);
        for by in 0..nodes as usize {
            for from in 0..nodes as usize {
                for to in 0..nodes as usize {
                    reaches[from][to] |= reaches[from][by] && reaches[by][to];
                }
            }
        }
        let ranks = ranks as usize;
        let all = (0..ranks).all(|from| (0..ranks).all(|to| reaches[from][to]));
        prop_assert_eq!(of_graph(&graph).err(), (!all).then_some(NoForest::Unreachable));
    }

    #[test]
    fn the_bound_is_the_optimum(
        ranks in 2_u32..7,
        relays in 0_u32..4,
        arcs in prop::collection::vec((0_u32..10, 0_u32..10, 1_u64..30), 1..40),
        symmetric in any::<bool>(),
    ) {
        let nodes = ranks + relays;
        // A ring of all nodes, so that every rank is reached.
        let ring = (0..nodes).map(|n| Arc { from: n, to: (n + 1) % nodes, rate: 1 + u64::from(n % 3) });
        let more = arcs.into_iter().flat_map(|(a, b, rate)| {
            let (a, b) = (a % nodes, b % nodes);
            let back = symmetric.then_some(Arc { from: b, to: a, rate });
            [Some(Arc { from: a, to: b, rate }), back].into_iter().flatten()
        });
        let graph = Graph::new(ranks, nodes, ring.chain(more));
        let (found, expected) = (of_graph(&graph).unwrap(), by_program(&graph));
        prop_assert!((found.time() - expected).abs() < 1e-5 * expected, "{} {expected}", found.time());
        let certificate = Certificate::of_flow(&graph, &found);
        prop_assert_eq!(certificate.flow_bound(&graph), Ok(found.time));
    }
}
