//! Tests of `fabric`.

use unisono_synthesis::{Arc, Fabric, Forest, Graph, Roots, Runs, TreeEdge, cut};

fn torus(dims: &[u32]) -> Fabric {
    Fabric::new(crate::common::torus(dims), dims, 0.0)
}

/// Checks that every chunk of every root reaches every rank, along links, in an order that can run, and that the time
/// is that of the busiest arc.
fn check(fabric: &Fabric, forest: &Forest, chunks: u32) {
    let graph = fabric.graph();
    let ranks = graph.ranks();
    let mut load = std::collections::BTreeMap::new();
    for root in 0..ranks {
        for chunk in 0..chunks {
            let mut depth = vec![u32::MAX; ranks as usize];
            depth[root as usize] = 0;
            for TreeEdge { from, to, .. } in forest.edges(root, chunk) {
                assert!(depth[from as usize] != u32::MAX && depth[to as usize] == u32::MAX);
                depth[to as usize] = depth[from as usize] + 1;
                *load.entry((from, to)).or_insert(0) += 1;
            }
            assert!(depth.into_iter().all(|d| d <= forest.depth));
        }
    }
    let rate = |from, to| {
        let arc = graph.leaving(from).iter().find(|&&arc| graph.arcs()[arc as usize].to == to);
        graph.arcs()[*arc.expect("a link") as usize].rate as f64
    };
    let busiest = load.into_iter().map(|((from, to), n)| f64::from(n) / rate(from, to)).fold(0.0, f64::max);
    assert!((busiest / f64::from(chunks) - forest.time).abs() < 1e-9, "{busiest} {}", forest.time);
}

/// Checks that every chunk of every root reaches every rank along links, and that the time is that of the busiest link.
fn check_ways(fabric: &Fabric, roots: Roots, forest: &Forest) {
    let graph = fabric.routed();
    let rates: std::collections::BTreeMap<(u32, u32), u64> =
        graph.arcs().iter().map(|arc| ((graph.place(arc.from), graph.place(arc.to)), arc.rate)).collect();
    let mut load = std::collections::BTreeMap::new();
    let mut sends = vec![0; graph.ranks() as usize];
    for root in roots.list(graph.ranks()) {
        for chunk in 0..forest.chunks {
            let mut reached = vec![false; graph.ranks() as usize];
            reached[root as usize] = true;
            let edges = forest.edges(root, chunk);
            for (edge, way) in edges.iter().zip(forest.ways(graph, root, chunk)) {
                assert!(reached[edge.from as usize] && !reached[edge.to as usize]);
                reached[edge.to as usize] = true;
                sends[edge.from as usize] += 1;
                assert_eq!((way.first(), way.last()), (Some(&edge.from), Some(&edge.to)));
                way.windows(2).for_each(|link| *load.entry((link[0], link[1])).or_insert(0_u64) += 1);
            }
            assert!(reached.into_iter().all(|is| is));
        }
    }
    let busiest = load.iter().map(|(link, &n)| n as f64 / rates[link] as f64).fold(0.0, f64::max);
    assert!((busiest / f64::from(forest.chunks) - forest.time).abs() < 1e-9, "{busiest} {}", forest.time);
    assert_eq!(sends.into_iter().max(), Some(forest.most_sends));
}

/// In a torus, the sample of one sender gives the stretch of any sample.
#[test]
fn alike_senders_give_the_stretch_of_all() {
    for dims in [&[16][..], &[4, 8], &[3, 5], &[4, 4, 4]] {
        let of_many = Fabric::new(crate::common::torus(dims), &[], 0.0).stretch_of_pairs();
        assert_eq!(torus(dims).stretch_of_pairs().to_bits(), of_many.to_bits(), "{dims:?}");
    }
    // In a ring of 16, the other ranks are 64 links away together.
    assert!((torus(&[16]).stretch_of_pairs() - 64.0 / 15.0).abs() < 1e-12);
}

#[test]
fn short_blocks_regard_the_latencies_of_links() {
    let graph = crate::common::cluster(2, 16);
    let slow = graph.arcs().iter().map(|arc| arc.rate).min();
    let latency = |arc: &unisono_synthesis::Arc| if Some(arc.rate) == slow { 2600.0 } else { 350.0 };
    let latencies: Vec<_> = graph.arcs().iter().map(|arc| ((arc.from, arc.to), latency(arc))).collect();
    for dims in [&[2, 16][..], &[]] {
        let fabric = Fabric::new(graph.clone(), dims, 800.0).with_latencies(latencies.iter().copied());
        let bound = fabric.cut(Roots::All).time();
        for (roots, block, chunks) in [(Roots::All, 512, 1), (Roots::All, 512, 4), (Roots::One(3), 4096, 16)] {
            let bytes = block / u64::from(chunks);
            let forest = fabric.forest(roots, None, chunks, bytes).unwrap();
            check_ways(&fabric, roots, &forest);
            assert!(roots != Roots::All || forest.time >= bound * (1.0 - 1e-9));
            let long = fabric.forest(roots, None, chunks, 1 << 40).unwrap();
            let end = |forest| fabric.times_of(forest, bytes, true, Runs::Down).end;
            assert!(end(&forest) <= end(&long), "{roots:?} {block} {} {}", end(&forest), end(&long));
        }
    }
}

#[test]
fn forests_of_alike_boxes_come_near_the_cut() {
    for (boxes, each) in [(3, 4), (4, 8), (9, 4), (16, 8)] {
        let graph = crate::common::cluster(boxes, each);
        let fabric = Fabric::new(graph.clone(), &[boxes, each], 0.0);
        assert_eq!(fabric.unlike_roots(Roots::All), 1);
        let all: Vec<u32> = (0..graph.ranks()).collect();
        let cut = fabric.cut(Roots::All);
        assert_eq!(cut.time(), if boxes < 10 { cut::largest(&graph, &all, &all).time() } else { cut.time() });
        for chunks in [1, 16] {
            let forest = fabric.forest(Roots::All, None, chunks, 1 << 20).unwrap();
            check_ways(&fabric, Roots::All, &forest);
            assert!(forest.time >= cut.time() * (1.0 - 1e-9));
            assert!(forest.time <= cut.time() * 1.15, "{boxes} {each} {chunks} {} {}", forest.time, cut.time());
        }
        if graph.ranks() <= 16 {
            check_ways(&fabric, Roots::One(1), &fabric.forest(Roots::One(1), None, 4, 1 << 20).unwrap());
        }
    }
}

#[test]
fn chunks_of_one_root_are_spread_over_the_trees_of_all() {
    for (boxes, each) in [(20, 4), (16, 8)] {
        let fabric = Fabric::new(crate::common::cluster(boxes, each), &[boxes, each], 0.0);
        for root in [0, 7] {
            let roots = Roots::One(root);
            let forest = fabric.forest(roots, Some(4), 512, 1 << 20).unwrap();
            check_ways(&fabric, roots, &forest);
            let cut = fabric.cut(roots).time();
            assert!(forest.depth <= 4 && forest.time >= cut * (1.0 - 1e-9));
            assert!(forest.time <= cut * 2.0, "{boxes} {each} {} {cut}", forest.time);
            // A smaller depth than the spread needs.
            let shallow = fabric.forest(roots, Some(2), 4, 1 << 20).unwrap();
            check_ways(&fabric, roots, &shallow);
            assert!(shallow.depth <= 2);
        }
    }
}

fn ranks(fabric: &Fabric) -> u32 {
    fabric.graph().ranks()
}

#[test]
fn tori_reach_their_cut_at_their_diameter() {
    for (dims, chunks) in
        [(&[4_u32, 4][..], 4), (&[4, 8], 4), (&[5, 7], 4), (&[3, 3, 3], 6), (&[2, 4, 8], 8), (&[9], 2)]
    {
        let fabric = torus(dims);
        let forest = fabric.forest(Roots::All, None, chunks, 1 << 20).unwrap();
        let bound = fabric.cut(Roots::All).time();
        assert!(forest.time >= bound * (1.0 - 1e-12));
        assert!(forest.time <= bound * 1.05, "{dims:?} {} {bound}", forest.time);
        assert_eq!(Ok(forest.depth), fabric.least_depth(Roots::All));
        check(&fabric, &forest, chunks);
        // The same forest is found without the symmetry.
        if ranks(&fabric) > 16 {
            continue;
        }
        let plain = Fabric::new(fabric.graph().clone(), &[], 0.0);
        let bound = plain.cut(Roots::All).time();
        let listed = plain.forest(Roots::All, Some(forest.depth), chunks, 1 << 20).unwrap();
        check(&plain, &listed, chunks);
        assert!(listed.time >= bound * (1.0 - 1e-9));
    }
}

/// A torus with one cable at a fraction of its rate does not look alike from every rank: its bound and its forest are
/// those of the same network without given dimensions.
#[test]
fn one_slow_cable_counts_on_a_torus() {
    for (dims, slow) in [(&[4_u32, 4][..], (0, 1)), (&[3, 5], (6, 7)), (&[8], (0, 7))] {
        let of_slow = |arc: &Arc| (arc.from.min(arc.to), arc.from.max(arc.to)) == slow;
        let arcs = crate::common::torus(dims).arcs().to_vec();
        let arcs = arcs.into_iter().map(|arc| Arc { rate: if of_slow(&arc) { arc.rate } else { 4 * arc.rate }, ..arc });
        let graph = Graph::new(dims.iter().product(), dims.iter().product(), arcs);
        let [told, plain] = [dims, &[]].map(|dims| Fabric::new(graph.clone(), dims, 0.0));
        let times = [&told, &plain].map(|fabric| fabric.concurrent_flow().unwrap().time());
        assert!((times[0] / times[1] - 1.0).abs() < 1e-9, "{dims:?} {times:?}");
        let forests = [&told, &plain].map(|fabric| fabric.forest(Roots::All, None, 4, 1 << 20).unwrap());
        assert!((forests[0].time / forests[1].time - 1.0).abs() < 1e-9, "{dims:?}");
        check(&told, &forests[0], 4);
    }
}

/// Returns a fabric without some nodes and the links between some pairs of nodes, with or without the forests of the
/// fabric before.
pub fn failed(whole: &Graph, dims: &[u32], nodes: &[u32], links: &[(u32, u32)], repairs: bool) -> Fabric {
    let mut next = 0..;
    let now: Vec<Option<u32>> =
        (0..whole.nodes()).map(|node| (!nodes.contains(&node)).then(|| next.next()).flatten()).collect();
    let left = |arc: &&Arc| !links.contains(&(arc.from.min(arc.to), arc.from.max(arc.to)));
    let moved = |arc: &Arc| Some(Arc { from: now[arc.from as usize]?, to: now[arc.to as usize]?, ..*arc });
    let arcs = whole.arcs().iter().filter(left).filter_map(moved);
    let ranks = (0..whole.ranks()).filter(|rank| !nodes.contains(rank)).count().try_into().unwrap();
    let fabric = Fabric::new(Graph::new(ranks, now.iter().flatten().count().try_into().unwrap(), arcs), &[], 0.0);
    let (whole, dims) = (whole.clone(), dims.to_vec());
    if repairs { fabric.after_failures(move || Fabric::new(whole, &dims, 0.0), now) } else { fabric }
}

#[test]
fn forests_are_repaired_after_failures() {
    let networks = [
        (crate::common::cluster(4, 8), vec![4, 8]),
        (crate::common::cluster(5, 4), vec![5, 4]),
        (crate::common::torus(&[4, 6]), vec![4, 6]),
        (crate::common::torus(&[3, 3, 3]), vec![3, 3, 3]),
    ];
    let mut draws = unisono_base::mix(1);
    let mut below = |most: u32| {
        draws = unisono_base::mix(draws);
        u32::try_from(draws % u64::from(most)).unwrap()
    };
    for (whole, dims) in networks {
        for _ in 0..4 {
            let node = below(whole.ranks());
            let arc = whole.arcs()[below(u32::try_from(whole.arcs().len()).unwrap()) as usize];
            let link = (arc.from.min(arc.to), arc.from.max(arc.to));
            for (nodes, links) in [(vec![node], vec![]), (vec![], vec![link]), (vec![node], vec![link])] {
                let of = |repairs| failed(&whole, &dims, &nodes, &links, repairs);
                let (repaired, anew) = (of(true), of(false));
                let Ok(expected) = anew.forest(Roots::All, None, 4, 1 << 20) else { continue };
                let found = repaired.forest(Roots::All, None, 4, 1 << 20).unwrap();
                check_ways(&repaired, Roots::All, &found);
                assert!(
                    found.time <= expected.time * 1.1,
                    "{dims:?} {nodes:?} {links:?} {} {}",
                    found.time,
                    expected.time
                );
            }
        }
    }
}

/// If no link is busy for long, every rank receives a short block after the latency of its shortest path. The path may
/// pass over other ranks.
#[test]
fn short_blocks_arrive_after_the_least_latency() {
    let mut relayed = 0;
    for number in 0..40_u64 {
        let at = |place: u64, most: u64| unisono_base::mix(100 * number + place) % most;
        let ranks = 3 + at(0, 6) as u32;
        let mut cables = std::collections::BTreeMap::new();
        for place in 1..u64::from(2 * ranks) {
            // The first cables join all ranks.
            let a = if place < u64::from(ranks) { place } else { at(3 * place, u64::from(ranks)) };
            let b = at(3 * place + 1, if place < u64::from(ranks) { place } else { u64::from(ranks) });
            if a != b {
                let ns = [20.0, 350.0, 2000.0][at(3 * place + 2, 3) as usize];
                cables.insert((a.min(b) as u32, a.max(b) as u32), ns);
            }
        }
        let both: Vec<((u32, u32), f64)> =
            cables.into_iter().flat_map(|((a, b), ns)| [((a, b), ns), ((b, a), ns)]).collect();
        let arcs = both.iter().map(|&((from, to), _)| Arc { from, to, rate: 1 << 40 });
        let fabric = Fabric::new(Graph::new(ranks, ranks, arcs), &[ranks], 350.0).with_latencies(both.iter().copied());
        let mut least = vec![f64::INFINITY; ranks as usize];
        least[0] = 0.0;
        for _ in 0..ranks {
            for &((from, to), ns) in &both {
                least[to as usize] = least[to as usize].min(least[from as usize] + ns);
            }
        }
        let (root, bytes) = (Roots::One(0), 16);
        let expected = least.into_iter().fold(0.0, f64::max);
        // Otherwise, no message arrives sooner over another rank, or all latencies are equal.
        let Some(depth) = fabric.soonest_depth(root, bytes) else { continue };
        relayed += 1;
        for runs in [Runs::Down, Runs::Up] {
            let end = fabric.end_ns(root, Some(depth), 1, bytes, runs).unwrap();
            assert!((end - expected).abs() < 1e-3 * expected, "network {number}: {end} and {expected}");
        }
    }
    assert!(relayed > 10, "{relayed} networks");
}
