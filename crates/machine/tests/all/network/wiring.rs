//! Tests of `network::wiring`.

use unisono_machine::internals::wiring::Wiring;

#[test]
fn ranges_are_what_the_cables_say() {
    for (sources, each, targets) in [(1, 1, 1), (4, 32, 2), (3, 32, 5), (25, 22, 9), (7, 3, 11), (5, 18, 16)] {
        let wiring = Wiring { sources, each, targets };
        for target in 0..targets {
            let mut ports = 0;
            for from in 0..sources {
                let found: Vec<u32> =
                    (0..each).map(|i| wiring.end(from, i)).filter(|e| e.0 == target).map(|e| e.1).collect();
                assert_eq!(found, wiring.towards(target, from..from + 1).collect::<Vec<_>>());
                ports += found.len() as u32;
            }
            assert_eq!(wiring.towards(target, 0..sources), 0..ports);
        }
    }
}
