//! Compares estimates of traffic with simulated runs.

use unisono_lower::tasks::pattern;
use unisono_sim::network::{Options, TrafficEstimate, effort, run};

use super::common::{TOPOLOGIES, interconnect};

/// Numbers of packets are exact. Hops are estimated from a sample of pairs, and a small network has few pairs.
#[test]
fn an_alltoall_has_the_packets_and_about_the_hops_of_its_estimate() {
    for topology in TOPOLOGIES {
        let net = interconnect(topology);
        let ranks = u64::from(net.plane.accelerators());
        let found = run(&pattern::linear_alltoall(net.plane.accelerators(), 2500).unwrap(), &net, &Options::default());
        let found = found.unwrap();
        let estimate = TrafficEstimate::new(ranks * (ranks - 1), 2500, 1, &net);
        assert_eq!(estimate.packets, u128::from(found.packets), "{topology}");
        let ratio = estimate.hops / found.hops as f64;
        assert!((0.85..1.15).contains(&ratio), "{topology}: {ratio}");
    }
}

/// The steps of a run are proportional to its hops, on short and on long paths: 80 steps a hop.
#[test]
fn the_steps_of_a_run_are_those_of_its_hops() {
    for topology in TOPOLOGIES.iter().copied().chain(["name = 'mesh'\ndims = [1, 40]", "name = 'torus'\ndims = [8, 8]"])
    {
        let net = interconnect(topology);
        let [few, many] = [10_000, 50_000].map(|bytes| {
            let graph = pattern::linear_alltoall(net.plane.accelerators(), bytes).unwrap();
            let hops = run(&graph, &net, &Options::default()).unwrap().hops;
            let effort = effort(&graph, &net, &[]).unwrap();
            assert_eq!(effort.packets_a_message, (bytes / 1000) as f64);
            (effort.steps as f64, hops as f64)
        });
        let steps = (many.0 - few.0) / (many.1 - few.1);
        assert!((60.0..100.0).contains(&steps), "{topology}: {steps}");
    }
}

#[test]
fn an_estimate_says_packets_memory_and_time() {
    let estimate = TrafficEstimate::new(1 << 28, 1 << 20, 1, &interconnect("name = 'torus'\ndims = [3, 4]"));
    let text = estimate.to_string();
    assert_eq!(estimate.packets, (1 << 28) * 1049);
    assert!(text.starts_with("2.8e11 packets a plane, about "), "{text}");
    assert!(text.contains(" GB of memory and ") && text.ends_with(" h of one core"), "{text}");
}

/// Each thread has its own tables. There are at most as many threads as accelerators.
#[test]
fn an_estimate_counts_the_tables_of_all_threads() {
    let net = interconnect("name = 'torus'\ndims = [3, 4]");
    let bytes = |jobs| TrafficEstimate::new(1 << 20, 1 << 20, jobs, &net).bytes;
    let of_a_thread = bytes(2) - bytes(1);
    // The tables have two tasks of 8 bytes, and a message of 16 bytes at its receiver.
    assert!(of_a_thread >= 32 << 20 && of_a_thread < bytes(1), "{of_a_thread}");
    assert_eq!(bytes(5) - bytes(1), 4 * of_a_thread);
    assert_eq!(bytes(1000), bytes(12));
}
