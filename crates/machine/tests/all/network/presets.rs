//! Tests of the presets that are networks: the planes of all, and the routings of small ones.

use std::collections::BTreeSet;

use unisono_machine::{
    Machine, PRESETS,
    network::{Network, Topology, deadlock},
};

use crate::{network::oracle, soak};

fn networks() -> impl Iterator<Item = (&'static str, Box<dyn Topology>)> {
    PRESETS.iter().filter_map(|preset| {
        let machine = Machine::preset(preset.name).unwrap();
        let network = machine.get::<Network>()?;
        Some((preset.name, network.topology(preset.name).unwrap()))
    })
}

/// Presets that differ only in prices, planes or switches have the same topology, which is checked only once. A short
/// run checks only one preset of each family.
#[test]
fn small_ones_are_free_of_deadlock() {
    let mut seen = BTreeSet::new();
    let small = networks().filter(|(name, _)| name.contains("small"));
    let shown = |topology: &dyn Topology| {
        let mut shown = format!("{topology:?}");
        shown.truncate(if soak::is_on() { usize::MAX } else { shown.find(' ').unwrap() });
        shown
    };
    for (name, topology) in small.filter(|(_, topology)| seen.insert(shown(&**topology))) {
        let plane = oracle::sound_plane(&*topology, name);
        deadlock::check(&plane, &*topology.routing()).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

/// The breadth-first search starts at all accelerators of a small network. In a large network it starts only at some
/// accelerators, because many accelerators have equivalent positions.
#[test]
fn no_way_is_longer_than_the_diameter_and_one_is_as_long() {
    for (name, topology) in networks() {
        let plane = topology.plane().unwrap();
        let n = plane.accelerators();
        let farthest = |from| oracle::distances(&plane, from)[..n as usize].iter().copied().max().unwrap();
        let most = (0..n.min(1024)).step_by(if n <= 64 { 1 } else { 37 }).map(farthest).max().unwrap();
        assert_eq!(most, topology.diameter(), "{name}");
    }
}
