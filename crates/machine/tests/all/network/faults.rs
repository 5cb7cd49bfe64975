//! A routing with a fault is refused, and the message names the fault.

use std::borrow::Cow;

use unisono_machine::network::{
    Header, Hop, Routing,
    deadlock::{Fault, check},
};

use crate::network::oracle;

/// A routing that never leaves the first virtual channel.
struct Flat(Box<dyn Routing>);

impl Routing for Flat {
    fn name(&self) -> &'static str {
        "flat"
    }

    fn virtual_channels(&self) -> u8 {
        1
    }

    fn choose(&self, from: u32, to: u32, random: u64) -> u32 {
        self.0.choose(from, to, random)
    }

    fn choices(&self, from: u32, to: u32) -> Cow<'static, [u32]> {
        self.0.choices(from, to)
    }

    fn hops(&self, at: u32, header: Header, hops: &mut Vec<Hop>) {
        self.0.hops(at, Header { vc: 0, ..header }, hops);
        hops.iter_mut().for_each(|hop| hop.vc = 0);
    }
}

#[test]
fn without_rising_channels_there_is_a_circle() {
    for text in [
        "name = 'dragonfly'\np = 2\na = 4\nh = 2\ng = 9",
        "name = 'dragonfly'\np = 2\na = 4\nh = 2\ng = 9\nrouting = 'valiant'",
        "name = 'graph'\naccelerators = 5\nedges = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]]",
        "name = 'hxmesh'\nboard = [2, 2]\nboards = [2, 2]",
        "name = 'hyperx'\ndims = [3, 3]",
        "name = 'torus'\ndims = [5, 5]",
    ] {
        let topology = oracle::topology(text);
        let plane = topology.plane().unwrap();
        let fault = check(&plane, &Flat(topology.routing())).unwrap_err();
        let Fault::Cycle(cycle) = &fault else { panic!("{fault}") };
        for (n, channel) in cycle.iter().enumerate() {
            assert_eq!(channel.to, cycle[(n + 1) % cycle.len()].from, "{fault}");
            let link = plane.link(channel.hop.link);
            assert_eq!((link.from, link.to), (channel.from, channel.to));
        }
        assert!(fault.to_string().starts_with("packets may wait for each other in a circle: "), "{fault}");
    }
}

/// A routing without a hop at one node.
struct Gap(Box<dyn Routing>, u32);

impl Routing for Gap {
    fn name(&self) -> &'static str {
        "gap"
    }

    fn virtual_channels(&self) -> u8 {
        self.0.virtual_channels()
    }

    fn hops(&self, at: u32, header: Header, hops: &mut Vec<Hop>) {
        if at != self.1 {
            self.0.hops(at, header, hops);
        }
    }
}

#[test]
fn packets_without_a_way_are_named() {
    let topology = oracle::topology("name = 'torus'\ndims = [5, 5]");
    let plane = topology.plane().unwrap();
    let fault = check(&plane, &Gap(topology.routing(), 7)).unwrap_err();
    assert!(matches!(fault, Fault::Stuck { at: 7, .. }), "{fault}");
}
