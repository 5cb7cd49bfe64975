//! Random traffic at saturation with tiny buffers: packets are conserved, no routing deadlocks, and deadlocks are
//! reported.

use std::sync::Arc;

use unisono_base::mix;
use unisono_machine::network::{
    Cable, FAMILIES, Header, Hop, Link, MachinesPer, Plane, PlaneBuilder, Routing, Switches,
};
use unisono_sim::network::{Interconnect, Options, SimError, run};

use crate::network::common::{ADAPTIVE, TOPOLOGIES, VALIANT, interconnect, traffic};

#[test]
fn every_family_is_stressed() {
    for family in FAMILIES {
        let named = format!("name = '{}'", family.name);
        assert!(TOPOLOGIES.iter().any(|t| t.starts_with(&named)), "no instance of {}", family.name);
    }
}

fn random_traffic(ranks: u32, each: u32, seed: u64) -> Vec<(u32, u32, u64)> {
    let draw = |n: u32, what: u64| mix(seed ^ mix(4 * u64::from(n) + what));
    (0..ranks * each).map(|n| (n % ranks, (draw(n, 0) % u64::from(ranks)) as u32, draw(n, 1) % 20_000)).collect()
}

#[test]
fn no_routing_deadlocks_with_tiny_buffers() {
    for topology in TOPOLOGIES.iter().chain([&VALIANT, &ADAPTIVE]) {
        for places in [1, 2] {
            let mut net = interconnect(topology);
            net.timing.places = places;
            let ranks = net.plane.accelerators();
            let messages = random_traffic(ranks, 40, u64::from(places));
            let graph = traffic(ranks, &messages);
            let one = run(&graph, &net, &Options::default()).unwrap_or_else(|e| panic!("{topology}: {e}"));
            let packets: u64 = messages.iter().filter(|m| m.0 != m.1).map(|m| m.2.div_ceil(1000).max(1)).sum();
            assert_eq!(one.packets, packets, "{topology}");
            assert_eq!(one.link_packets.iter().sum::<u64>(), one.hops, "{topology}");
            assert_eq!(one.hosts.receives, messages.len() as u64);
            // The same input gives the same results.
            assert_eq!(run(&graph, &net, &Options::default()).unwrap(), one);
        }
    }
}

/// No link carries more than its bandwidth. Packets that enter a node leave it or end there.
#[test]
fn links_carry_what_they_can() {
    for topology in TOPOLOGIES.iter().chain([&VALIANT, &ADAPTIVE]) {
        let net = interconnect(topology);
        let ranks = net.plane.accelerators();
        let messages: Vec<_> =
            random_traffic(ranks, 30, 7).iter().map(|m| (m.0, m.1, m.2 / 1000 * 1000 + 1000)).collect();
        let run = run(&traffic(ranks, &messages), &net, &Options::default()).unwrap();
        let busy_ps = |(link, sent): (&Link, &u64)| sent * net.timing.of(*link).serialization_ps(1000);
        let busiest_ps = net.plane.links().iter().zip(&run.link_packets).map(busy_ps).max().unwrap();
        assert!(busiest_ps <= run.hosts.makespan, "{topology}");
        let mut into = vec![0_u64; net.plane.nodes() as usize];
        for (link, sent) in net.plane.links().iter().zip(&run.link_packets) {
            into[link.to as usize] = into[link.to as usize].wrapping_add(*sent);
            into[link.from as usize] = into[link.from as usize].wrapping_sub(*sent);
        }
        for node in 0..ranks {
            let packets = |m: &&(u32, u32, u64)| if m.0 == m.1 { 0 } else { m.2 / 1000 };
            let got: u64 = messages.iter().filter(|m| m.1 == node).map(|m| packets(&m)).sum();
            let gave: u64 = messages.iter().filter(|m| m.0 == node).map(|m| packets(&m)).sum();
            assert_eq!(into[node as usize], got.wrapping_sub(gave), "{topology}, node {node}");
        }
        assert!(into[ranks as usize..].iter().all(|&n| n == 0), "{topology}: packets stay in switches");
    }
}

/// A routing that always follows a ring, on one channel: a textbook deadlock.
struct Onward(Plane);

impl Routing for Onward {
    fn name(&self) -> &'static str {
        "onward"
    }

    fn virtual_channels(&self) -> u8 {
        1
    }

    fn hops(&self, at: u32, header: Header, hops: &mut Vec<Hop>) {
        let next = (at + 1) % self.0.accelerators();
        let is_next = |link: &Link| link.from == at && link.to == next;
        if header.to < 100 {
            hops.extend(self.0.links().iter().position(is_next).map(|link| Hop { link: link as u32, vc: 0 }));
        }
    }
}

fn onward() -> Interconnect {
    let mut ring = PlaneBuilder::new(5, 0, 5).unwrap();
    (0..5).for_each(|node| ring.cable(node, (node + 1) % 5, Cable::Board));
    let plane = ring.finish().unwrap();
    let timing = interconnect("name = 'torus'\ndims = [5]").timing;
    Interconnect {
        routing: Arc::new(Onward(plane.clone())),
        plane,
        timing,
        planes: 1,
        send_machines: 4,
        send_machines_per: MachinesPer::default(),
        computing: Switches::default(),
    }
}

#[test]
fn a_deadlock_names_the_packets() {
    let mut net = onward();
    net.timing.places = 1;
    let messages: Vec<_> = (0..5).map(|r| (r, (r + 3) % 5, 10_000)).collect();
    let error = run(&traffic(5, &messages), &net, &Options::default()).unwrap_err();
    let SimError::Jammed { packets, stuck } = &error else { panic!("{error}") };
    assert!(*packets >= 5 && stuck.len() as u64 <= *packets, "{error}");
    let expected = "a packet from 4 to 2 waits at node 0 for the link to node 1 on channel 0";
    assert!(stuck.iter().any(|s| s == expected), "{error}");
    // With enough room in buffers, the same traffic flows.
    net.timing.places = 100;
    assert!(run(&traffic(5, &messages), &net, &Options::default()).is_ok());
}

struct Nowhere;

impl Routing for Nowhere {
    fn name(&self) -> &'static str {
        "nowhere"
    }

    fn virtual_channels(&self) -> u8 {
        1
    }

    fn hops(&self, _at: u32, _header: Header, _hops: &mut Vec<Hop>) {}
}

/// Every accelerator of a group sends to the next group, over two cables for eight accelerators. Detours go over three
/// other groups. An alltoall loads all cables equally, so little of it takes detours.
#[test]
fn adaptive_routing_goes_around_where_ways_are_crowded() {
    let end = |routing: &str, messages: &[(u32, u32, u64)]| {
        let net = interconnect(&ADAPTIVE.replace("adaptive", routing));
        run(&traffic(40, messages), &net, &Options::default()).unwrap().hosts.makespan as f64
    };
    let next: Vec<_> = (0..40).map(|from| (from, (from + 8) % 40, 200_000)).collect();
    assert!(end("minimal", &next) > 1.5 * end("adaptive", &next));
    let all: Vec<_> = (1..40).flat_map(|k| (0..40).map(move |from| (from, (from + k) % 40, 10_000))).collect();
    assert!(end("adaptive", &all) < 1.2 * end("minimal", &all));
    assert!(end("adaptive", &all) < end("valiant", &all));
}

#[test]
fn a_routing_at_fault_is_named() {
    let net = Interconnect { routing: Arc::new(Nowhere), ..onward() };
    let error = run(&traffic(5, &[(0, 3, 10)]), &net, &Options::default()).unwrap_err().to_string();
    assert_eq!(error, "the routing 'nowhere' is at fault: at node 0 it names no link for a packet to 3 on channel 0");
}

#[test]
fn wrong_options_are_refused() {
    let net = onward();
    let graph = traffic(6, &[]);
    let error = run(&graph, &net, &Options::default()).unwrap_err().to_string();
    assert_eq!(error, "the number of ranks is 6; the simulator takes at most the 5 accelerators");
    for (options, named) in [
        (Options { places: vec![0; 3], ..Options::default() }, "the number of accelerators given is 3"),
        (Options { places: vec![0, 1, 2, 3, 4, 5], ..Options::default() }, "the place of a node is 5"),
        (
            Options { send_machines: Some(0), places: vec![0; 6], ..Options::default() },
            "the number of send machines is 0",
        ),
    ] {
        let error = run(&graph, &net, &options).unwrap_err().to_string();
        assert!(error.starts_with(named), "{error}");
    }
}
