//! Compares a simulation on several threads with the same simulation on one.

use proptest::prelude::*;
use unisono_lower::tasks::{TaskGraph, pattern};
use unisono_sim::{
    endpoint::{self, Noise, TraceRequest},
    network::{Interconnect, Options, run, run_in_regions},
};

use crate::network::common::{ADAPTIVE, TOPOLOGIES, VALIANT, interconnect, traffic};

/// Compares all results, with the same options for both.
fn are_equal(graph: &TaskGraph, net: &Interconnect, options: &Options, jobs: u32) -> Result<(), TestCaseError> {
    let one = run(graph, net, options).unwrap();
    let several = run_in_regions(graph, net, &Options { jobs, ..options.clone() });
    prop_assert_eq!(several.as_ref(), Some(&one));
    Ok(())
}

fn topologies() -> Vec<&'static str> {
    TOPOLOGIES.iter().copied().chain([VALIANT, ADAPTIVE]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::soak::cases(60)))]

    /// Random messages, many of which are posted at the same time.
    #[test]
    fn results_do_not_depend_on_the_threads(
        topology in prop::sample::select(topologies()),
        (jobs, places, machines) in (2u32..5, 1u32..5, 1u32..5),
        hop_ns in 1u64..100,
        pairs in prop::collection::vec((any::<u16>(), any::<u16>(), 0u64..12_000), 1..200),
        starts in prop::collection::vec(0u64..4, 128),
        noise in any::<bool>(),
    ) {
        let mut net = interconnect(topology);
        net.timing.places = 8 * places;
        net.timing.links.iter_mut().for_each(|link| link.hop_ps = 1000 * hop_ns);
        let ranks = net.plane.accelerators();
        let rank = |drawn: u16| u32::from(drawn) % ranks;
        let messages: Vec<_> = pairs.iter().map(|&(a, b, bytes)| (rank(a), rank(b), bytes / 100 * 100)).collect();
        let start = (0..ranks).map(|r| 20_000 * starts[r as usize % 128]).collect();
        let noise = noise.then_some(Noise::Uniform { most: 30_000.0 });
        let hosts = endpoint::Options { start, noise, seed: hop_ns, ..Default::default() };
        let options = Options { hosts, send_machines: Some(machines), ..Options::default() };
        are_equal(&traffic(ranks, &messages), &net, &options, jobs)?;
    }

    /// Patterns in which all ranks act at the same time, and wait for each other.
    #[test]
    fn ties_between_regions_are_kept(
        topology in prop::sample::select(topologies()),
        jobs in 2u32..5,
        bytes in prop::sample::select(vec![0, 8, 1000, 3500]),
        of in 0u8..3,
        overhead_ps in prop::sample::select(vec![0, 1000]),
    ) {
        let mut net = interconnect(topology);
        net.timing.host_overhead_ps = overhead_ps;
        let ranks = net.plane.accelerators();
        let graph = match of {
            0 => pattern::linear_alltoall(ranks, bytes),
            1 => pattern::dissemination(ranks, bytes),
            _ => pattern::ring(ranks, bytes),
        };
        are_equal(&graph.unwrap(), &net, &Options::default(), jobs)?;
    }
}

/// Ranks on accelerators with other numbers, and different numbers of ranks and accelerators.
#[test]
fn placed_ranks_run_in_regions() {
    let net = interconnect("name = 'torus'\ndims = [3, 4]");
    let options = Options { places: vec![11, 2, 7, 0, 5, 9, 4], ..Options::default() };
    are_equal(&pattern::linear_alltoall(7, 2500).unwrap(), &net, &options, 3).unwrap();
}

/// A run that cannot be divided has the results, or the error, of a run on one thread.
#[test]
fn other_runs_have_one_thread() {
    let net = interconnect("name = 'torus'\ndims = [5]");
    let graph = pattern::linear_alltoall(5, 1000).unwrap();
    let traced = endpoint::Options { trace: TraceRequest { ranks: vec![1] }, ..Default::default() };
    let traced = Options { hosts: traced, jobs: 2, ..Options::default() };
    assert_eq!(run_in_regions(&graph, &net, &traced), None);
    assert_eq!(run(&graph, &net, &traced), run(&graph, &net, &Options { jobs: 1, ..traced }));

    let mut without = interconnect("name = 'torus'\ndims = [5]");
    without.timing.links[0].hop_ps = 0;
    let two = Options { jobs: 2, ..Options::default() };
    assert_eq!(run_in_regions(&graph, &without, &two), None);
    assert_eq!(run(&graph, &without, &two), run(&graph, &without, &Options::default()));

    // No rank sends, so all ranks are stuck.
    let mut stuck = unisono_lower::tasks::Builder::new();
    for rank in 0..5 {
        stuck.rank();
        stuck.task(unisono_lower::tasks::Task::receive((rank + 1) % 5, 8, 0));
    }
    let stuck = stuck.finish().unwrap();
    assert_eq!(run_in_regions(&stuck, &net, &two), None);
    let error = run(&stuck, &net, &two).unwrap_err().to_string();
    assert_eq!(error, run(&stuck, &net, &Options::default()).unwrap_err().to_string());
}
