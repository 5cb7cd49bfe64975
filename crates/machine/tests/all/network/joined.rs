//! Clusters of boxes: the values of the file apply in each box, and the preset only states how boxes are joined.

use unisono_machine::{
    Machine, MachineError, PRESETS,
    network::{Network, Plane, Speed},
};

/// Returns the box of every preset that names a cluster, with that cluster.
fn boxes() -> Vec<(Network, Network)> {
    let network = |name: &str| Machine::preset(name).unwrap().get::<Network>().cloned();
    let boxes = PRESETS.iter().filter_map(|preset| network(preset.name));
    let found: Vec<_> = boxes.filter_map(|one| Some((one.clone(), network(one.cluster.as_deref()?)?))).collect();
    assert!(found.len() >= 3, "presets of boxes: {}", found.len());
    found
}

fn nodes(network: &Network, count: u32) -> Result<Network, MachineError> {
    Machine::from(network.clone()).with_nodes(count).map(|made| made.get::<Network>().unwrap().clone())
}

fn count(of: &Network) -> u32 {
    u32::try_from(of.topology["boxes"].as_integer().unwrap()).unwrap()
}

/// Returns the cables of a plane, with their speeds, between nodes for which `place` returns a number. The nodes have
/// these numbers in the result.
fn cables(network: &Network, plane: &Plane, place: impl Fn(u32) -> Option<u32>) -> Vec<(u32, u32, Speed)> {
    let ids = 0..u32::try_from(plane.links().len()).unwrap();
    let mut found: Vec<_> = ids
        .filter_map(|id| {
            let link = plane.link(id);
            Some((place(link.from)?, place(link.to)?, network.link_speed(plane, id)))
        })
        .collect();
    found.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.gbps.total_cmp(&b.2.gbps)));
    found
}

#[test]
fn so_many_boxes_of_a_preset_are_its_cluster() {
    for (one, many) in boxes() {
        let found = nodes(&one, count(&many)).unwrap();
        assert_eq!(nodes(&one, 1).unwrap(), one);
        let [a, b] = [&found, &many].map(|network| network.topology("boxes").unwrap());
        assert_eq!((a.extents(), a.plane().unwrap()), (b.extents(), b.plane().unwrap()), "{}", one.name);
        let [of_a, of_b] =
            [(&found, &a), (&many, &b)].map(|(network, topology)| network.computing(&**topology).unwrap());
        assert_eq!(of_a, of_b, "{}", one.name);
        let topology = found.topology.clone();
        assert_eq!(found, Network { cluster: None, topology, switches: found.switches.clone(), ..one.clone() });
        // Cables of interfaces state their speeds, so the rates of a box do not change them. The entries of switches in
        // a cluster list switches inside and outside of boxes.
        let lines = many.topology["inside"]
            .as_str()
            .unwrap()
            .lines()
            .skip(one.topology["edges"].as_str().unwrap().lines().count());
        assert!(lines.clone().count() >= 8, "{}", one.name);
        assert!(lines.clone().all(|line| line.contains("gbps=") && line.contains("ns=")), "{}", one.name);
        assert!(many.switches.iter().all(|class| class.nodes.is_empty()), "{}", one.name);
    }
}

/// Draws a number from 0 to `most - 1` by a linear congruential generator.
fn draw(seed: &mut u64, most: u64) -> u32 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    u32::try_from((*seed >> 33) % most).unwrap()
}

/// A user's own values apply in every box, and each box has the cables of the original box.
#[test]
fn every_value_of_a_box_holds_in_each_of_several() {
    let presets = boxes();
    for case in 0..24 {
        let mut seed = case;
        let count = 2 + draw(&mut seed, 3);
        let link_gbps = f64::from(1 + draw(&mut seed, 5000));
        let mut one = Network {
            link_gbps,
            measured_gbps: Some(0.75 * link_gbps),
            link_latency_ns: f64::from(draw(&mut seed, 900)),
            launch_ns: f64::from(draw(&mut seed, 3000)),
            planes: 1 + draw(&mut seed, 2),
            ..presets[usize::try_from(case).unwrap() % presets.len()].0.clone()
        };
        if draw(&mut seed, 2) == 0 {
            // The user adds a switch between two accelerators, with the next node number.
            let last = one.topology("one").unwrap().plane().unwrap().nodes();
            let edges = format!("{}0 {last} gbps=7 board\n1 {last} board\n", one.topology["edges"].as_str().unwrap());
            one.topology.insert("edges".into(), edges.into());
        }
        let many = nodes(&one, count).unwrap();
        let same = Network {
            topology: one.topology.clone(),
            switches: one.switches.clone(),
            cluster: one.cluster.clone(),
            ..many.clone()
        };
        assert_eq!(same, one);
        let (alone, joined) = (one.topology("one").unwrap(), many.topology("many").unwrap());
        let (plane, all) = (alone.plane().unwrap(), joined.plane().unwrap());
        let numbers = joined.numbers_of_boxes().unwrap();
        assert_eq!((numbers.boxes, numbers.accelerators), (count, alone.accelerators()));
        let own = cables(&one, &plane, Some);
        for of in 0..count {
            let place = |node: u32| (0..plane.nodes()).find(|&at| numbers.place(of, at) == node);
            assert_eq!(cables(&many, &all, place), own, "case {case}, box {of}");
        }
        let (of_one, of_many) = (one.computing(&*alone).unwrap(), many.computing(&*joined).unwrap());
        for (of, at) in (0..count).flat_map(|of| (alone.accelerators()..plane.nodes()).map(move |at| (of, at))) {
            assert_eq!(of_one.class(at).is_some(), of_many.class(numbers.place(of, at)).is_some());
        }
        // Only the number of boxes requested last matters. The machine's text can be read back.
        assert_eq!(nodes(&nodes(&one, count + 1).unwrap(), count).unwrap(), many);
        let text = Machine::from(many.clone()).to_toml();
        assert_eq!(Machine::from_toml(&text, "printed").unwrap(), Machine::from(many));
    }
}

/// In a machine with more boxes, nodes have other numbers, so stated failures would refer to other nodes.
#[test]
fn failures_are_those_of_the_machine_of_that_size() {
    for (one, _) in boxes() {
        let cluster = nodes(&one, 2).unwrap();
        let uplink = cluster.topology("two").unwrap().numbers_of_boxes().unwrap().place(1, 0);
        let failed = Network { failed: vec![uplink.to_string()], ..cluster.clone() };
        assert_eq!(failed.topology("two").unwrap().accelerators(), cluster.topology("two").unwrap().accelerators() - 1);
        assert_eq!(nodes(&failed, 2).unwrap(), failed);
        for (machine, count) in [(&failed, 3), (&Network { failed: vec!["3".into()], ..one.clone() }, 2)] {
            let e = nodes(machine, count).unwrap_err();
            assert!(matches!(e, MachineError::Failed { .. }), "{e}");
        }
    }
}

#[test]
fn what_does_not_say_how_boxes_are_joined_is_refused() {
    let e = |name: &str, count| Machine::preset(name).unwrap().with_nodes(count).unwrap_err();
    assert!(matches!(e("dgx-h100", 0), MachineError::Nodes { .. }));
    assert!(matches!(e("mi300x", 2), MachineError::NoBoxes { .. }));
    let (one, _) = boxes().remove(0);
    let smaller = "name = 'graph'\naccelerators = 2\nedges = [[0, 1]]".parse::<toml::Table>().unwrap();
    let e = nodes(&Network { topology: smaller, switches: Vec::new(), ..one.clone() }, 2).unwrap_err().to_string();
    assert!(e.contains("joins boxes of 8 accelerators, and this one has 2"), "{e}");
    let torus = "name = 'torus'\ndims = [4]".parse::<toml::Table>().unwrap();
    let e = nodes(&Network { topology: torus, switches: Vec::new(), ..one }, 2).unwrap_err().to_string();
    assert!(e.contains("the topology is torus"), "{e}");
}
