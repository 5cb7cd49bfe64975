//! The presets that are networks: their planes, and their routings where they are small.

use unisono_machine::{
    Machine, MachineError, PRESETS,
    network::{Network, Topology, deadlock},
};

use crate::network::oracle;

fn networks() -> impl Iterator<Item = (&'static str, Box<dyn Topology>)> {
    PRESETS.iter().filter_map(|preset| {
        let machine = Machine::preset(preset.name).unwrap();
        let network = machine.get::<Network>()?;
        Some((preset.name, network.topology(preset.name).unwrap()))
    })
}

#[test]
fn small_ones_are_free_of_deadlock() {
    for (name, topology) in networks().filter(|(name, _)| name.contains("small")) {
        let plane = oracle::sound_plane(&*topology, name);
        deadlock::check(&plane, &*topology.routing()).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

/// From some accelerators of large networks, whose kinds of place repeat; from all of a small one.
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

#[test]
fn several_nodes_of_a_box_are_a_cluster_of_it() {
    for (one, many, boxes) in [("dgx-h100", "dgx-h100-x8", 8), ("dgx-a100", "dgx-a100-x4", 4), ("mi250", "mi250-x2", 2)]
    {
        let (one, many) = (Machine::preset(one).unwrap(), Machine::preset(many).unwrap());
        assert_eq!(one.with_nodes(1).unwrap().to_toml(), one.to_toml());
        let (own, found) = (one.get::<Network>().unwrap(), one.with_nodes(boxes).unwrap());
        let found = found.get::<Network>().unwrap();
        let same = Network { name: own.name.clone(), ..many.get::<Network>().unwrap().clone() };
        assert_eq!(*found, same);
        // A box alone has what each box of the cluster has.
        let alone = own.topology("one").unwrap().accelerators();
        assert_eq!(found.topology("many").unwrap().accelerators(), boxes * alone);
        assert_eq!((own.link_gbps, own.accelerator), (found.link_gbps, found.accelerator));
    }
    assert!(Machine::preset("dgx-h100").unwrap().with_nodes(0).is_err());
    let e = Machine::preset("mi300x").unwrap().with_nodes(2).unwrap_err();
    assert!(matches!(e, MachineError::NoNodes { .. }), "{e}");
}
