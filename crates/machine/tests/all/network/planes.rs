//! Tests of `network::planes`.

use unisono_machine::{Machine, network::Network};

fn with(planes: u32, failed: &[&str]) -> Result<Network, String> {
    let text = format!(
        "name = 'test'\nkind = 'network'\nplanes = {planes}\nlink_gbps = 400\nlink_latency_ns = 40\n\
         input_latency_ns = 20\noutput_latency_ns = 20\npacket_bytes = 1000\nbuffer_bytes = 100000\n\
         failed = {failed:?}\n[topology]\nname = 'fattree'\naccelerators = 30\nlevels = 2\ndown = 4\nup = 3\ntop = 8\n"
    );
    Machine::from_toml(&text, "test.toml")
        .map(|machine| machine.get::<Network>().unwrap().clone())
        .map_err(|e| e.to_string())
}

fn injection(network: &Network) -> f64 {
    network.injection_gbps(&*network.topology("test").unwrap())[1]
}

#[test]
fn a_plane_takes_its_share_of_the_bandwidth_and_keeps_its_price() {
    let whole = with(4, &[]).unwrap();
    let cost = |network: &Network| network.facts().unwrap().cost_usd;
    for (failed, left) in [(&["plane 2"][..], 3), (&["plane 0", "plane 3"], 2), (&["plane 1", "plane 1"], 3)] {
        let network = with(4, failed).unwrap();
        let facts = network.facts().unwrap();
        assert_eq!((network.working_planes(), facts.planes, facts.working_planes), (left, 4, left));
        assert!((injection(&network) / injection(&whole) - f64::from(left) / 4.0).abs() < 1e-12);
        assert_eq!(cost(&network), cost(&whole));
        // A working plane is complete: its accelerators and cables have the same numbers.
        assert_eq!(network.topology("test").unwrap().kept(), None);
        assert_eq!(facts.failed, failed);
        // The text of the machine is read back.
        let text = Machine::from(network.clone()).to_toml();
        assert_eq!(Machine::from_toml(&text, "again").unwrap().get::<Network>(), Some(&network));
    }
}

/// Failed links are missing in every working plane.
#[test]
fn planes_fail_beside_links_and_parts() {
    let network = with(4, &["leaf 1 to top 0:1", "plane 3"]).unwrap();
    assert_eq!((network.working_planes(), network.failed.len()), (3, 2));
    let notes = Machine::from(network).notes(1, None);
    assert!(notes.iter().any(|note| note.starts_with("failed in every plane: 31-38")), "{notes:?}");
    let share = "failed: plane 3; vectors are split over 3 of 4 planes, 75.0 % of the bandwidth";
    assert!(notes.iter().any(|note| note == share), "{notes:?}");
    let again = Machine::from(with(4, &["plane 3"]).unwrap()).with_failures(&["plane 0".to_owned(), "2".to_owned()]);
    let again = again.unwrap().get::<Network>().unwrap().clone();
    assert_eq!((again.working_planes(), &again.failed[..]), (2, &["plane 3", "plane 0", "2"].map(str::to_owned)[..]));
}

#[test]
fn planes_that_cannot_fail_are_refused() {
    for (planes, failed, why) in [
        (1, &["plane 0"][..], "'plane 0' cannot fail alone, because there is a single plane; fail links or nodes"),
        (4, &["plane 4"], "there is no 'plane 4'; accepted are plane 0 to plane 3"),
        (4, &["plane 04"], "there is no 'plane 04'"),
        (4, &["plane two"], "there is no 'plane two'"),
        (4, &["plane -1"], "accepted are plane 0 to plane 3"),
        (2, &["plane 1", "plane 0"], "all 2 planes failed"),
        (2, &["rail 0"], "and 'plane K' for one of several planes"),
    ] {
        let said = with(planes, failed).unwrap_err();
        assert!(said.contains(why), "{said}");
    }
}
