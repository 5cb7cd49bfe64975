//! The least cut into halves, for planes whose least cut is known.

use unisono_machine::network::{Cable, Plane, PlaneBuilder, Speed, cut};

use crate::network::oracle;

const OWN: Speed = Speed { gbps: 100.0, latency_ns: 10.0 };

fn bisection_share(plane: &Plane, injection: u32) -> Option<f64> {
    let half = plane.accelerators() / 2;
    Some(cut::least(plane, OWN, half)? / f64::from(injection * half))
}

#[test]
fn rings_cliques_and_stars_are_cut_as_known() {
    for n in [2_u32, 4, 8, 12] {
        let mut ring = PlaneBuilder::new(n, 0, 0).unwrap();
        (0..n).for_each(|node| ring.cable(node, (node + 1) % n, Cable::Aoc));
        let mut clique = PlaneBuilder::new(n, 0, 0).unwrap();
        (0..n).for_each(|a| (a + 1..n).for_each(|b| clique.cable(a, b, Cable::Aoc)));
        let mut star = PlaneBuilder::new(n, 1, 0).unwrap();
        (0..n).for_each(|node| star.cable(node, n, Cable::Dac));
        // The cut crosses two links of a ring, `half * half` links of a clique, and the links of one half of a star.
        let half = f64::from(n / 2);
        assert_eq!(bisection_share(&ring.finish().unwrap(), 1), Some(2.0 / half));
        assert_eq!(bisection_share(&clique.finish().unwrap(), 1), Some(half));
        assert_eq!(bisection_share(&star.finish().unwrap(), 1), Some(1.0));
    }
}

#[test]
fn what_has_no_halves_or_too_many_is_not_cut() {
    assert_eq!(bisection_share(&PlaneBuilder::new(1, 0, 0).unwrap().finish().unwrap(), 1), None);
    assert_eq!(bisection_share(&PlaneBuilder::new(18, 0, 0).unwrap().finish().unwrap(), 1), None);
}

/// Two stars of two accelerators with links of 100 Gb/s are joined by links of 50 and 25. If the halves are the stars,
/// the cut is 75; if each half has accelerators of both stars, it is 200. The injection of a half is 200.
#[test]
fn a_cut_adds_up_the_rates_of_its_links() {
    let mut stars = PlaneBuilder::new(4, 2, 0).unwrap();
    (0..4).for_each(|node| stars.cable(node, 4 + node / 2, Cable::Dac));
    for gbps in [50.0, 25.0] {
        let speed = stars.speed(Speed { gbps, ..OWN }).unwrap();
        stars.cable_at(4, 5, Cable::Aoc, speed);
    }
    assert_eq!(bisection_share(&stars.finish().unwrap(), 1), Some(0.375));
}

/// Rates may differ by 24 orders of magnitude. The slow link must not be lost by rounding.
#[test]
fn the_slowest_link_counts() {
    let mut pair = PlaneBuilder::new(2, 1, 0).unwrap();
    let [fast, slow] = [1e15, 1e-9].map(|gbps| pair.speed(Speed { gbps, ..OWN }).unwrap());
    pair.cable_at(0, 2, Cable::Dac, fast);
    pair.cable_at(1, 2, Cable::Dac, slow);
    let found = bisection_share(&pair.finish().unwrap(), 1).unwrap();
    assert!((found / 1e-11 - 1.0).abs() < 1e-12, "{found}");
}

/// The cuts that families state exist in the plane, for all sizes, so the bound `bisection` is valid.
#[test]
fn stated_cuts_are_cuts_of_the_plane() {
    let mut texts = Vec::new();
    for (accelerators, down, up) in [(5, 8, 2), (8, 8, 2), (9, 4, 2), (10, 4, 1), (11, 3, 2), (7, 4, 6)] {
        let sizes = format!("accelerators = {accelerators}\ndown = {down}\nup = {up}");
        texts.extend([2, 3].map(|levels| format!("name = 'fattree'\nlevels = {levels}\n{sizes}")));
    }
    for (p, a, h, g) in
        [(1, 1, 1, 2), (2, 1, 1, 1), (1, 3, 1, 3), (2, 3, 1, 1), (2, 2, 1, 3), (1, 2, 2, 5), (3, 2, 1, 2)]
    {
        texts.push(format!("name = 'dragonfly'\np = {p}\na = {a}\nh = {h}\ng = {g}"));
    }
    for (dims, terminals, gbps) in
        [("[3]", 2, 400), ("[2, 3]", 1, 50), ("[5]", 2, 800), ("[3, 3]", 1, 400), ("[2]", 3, 10)]
    {
        texts.push(format!("name = 'hyperx'\ndims = {dims}\nterminals = {terminals}\nterminal_gbps = {gbps}"));
    }
    for (board, boards) in
        [("[1, 1]", "[1, 3]"), ("[1, 3]", "[1, 3]"), ("[2, 1]", "[1, 3]"), ("[3, 3]", "[1, 1]"), ("[1, 2]", "[3, 1]")]
    {
        texts.push(format!("name = 'hxmesh'\nboard = {board}\nboards = {boards}"));
    }
    texts.iter().for_each(|text| _ = oracle::is_cut_as_stated(text));
}

/// A sequence of numbers that looks random: Marsaglia, "Xorshift RNGs", 2003.
struct Random(u64);

impl Random {
    /// Returns a number from `from` to `to`.
    fn between(&mut self, from: u32, to: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        from + (self.0 >> 16) as u32 % (to - from + 1)
    }
}

/// Returns a network of each family with switches, or of a grid, with random sizes.
fn random_networks(random: &mut Random) -> Vec<String> {
    let mut r = |from, to| random.between(from, to);
    vec![
        format!(
            "name = 'fattree'\nlevels = 2\naccelerators = {}\ndown = {}\nup = {}\ntop = {}",
            r(4, 12),
            r(2, 4),
            r(1, 5),
            r(6, 9)
        ),
        format!("name = 'fattree'\nlevels = 3\naccelerators = {}\ndown = {}\nup = {}", r(4, 12), r(1, 4), r(1, 3)),
        format!("name = 'dragonfly'\np = {}\na = {}\nh = {}\ng = {}", r(1, 2), r(2, 3), r(1, 3), r(1, 3)),
        format!("name = 'dragonfly'\np = 1\na = 4\nh = {}\ng = {}", r(1, 2), r(2, 3)),
        format!("name = 'hxmesh'\nboard = [{}, {}]\nboards = [{}, {}]", r(1, 2), r(1, 3), r(1, 2), r(1, 2)),
        format!("name = 'hxmesh'\nboard = [1, {}]\nboards = [{}, 2]", r(1, 2), r(1, 3)),
        format!(
            "name = 'hyperx'\ndims = [{}, {}]\nterminals = {}\ncables = [{}, {}]",
            r(2, 3),
            r(2, 3),
            r(1, 2),
            r(1, 3),
            r(1, 2)
        ),
        format!("name = 'torus'\ndims = [{}, {}]", r(2, 4), r(2, 3)),
        format!("name = 'mesh'\ndims = [{}, 2, {}]", r(2, 3), r(1, 2)),
    ]
}

/// For small networks, the cuts that families state and the cuts that the search finds are compared with the least
/// maximum flow over all halves.
#[test]
fn random_networks_are_cut_as_stated_and_as_found() {
    let mut random = Random(0x005e_ed0f_c0ff_ee01);
    let mut proved = 0;
    for text in (0..12).flat_map(|_| random_networks(&mut random)) {
        let Ok(network) = oracle::read(&text) else { continue };
        let (plane, all) = (network.plane().unwrap(), network.accelerators());
        if !(2..=12).contains(&all) {
            continue;
        }
        let least = cut::least(&plane, oracle::OWN, all / 2).unwrap();
        let is_least = |rate: f64| (rate / least - 1.0).abs() < 1e-9;
        let found = cut::searched(&plane, oracle::OWN, &network.extents()).unwrap();
        assert!(is_least(found), "{text}: found {found}, the least is {least}");
        let stated = network.halves().filter(|cut| cut.is_halves(all)).map(|cut| cut.rate);
        assert!(stated.is_none_or(|rate| rate > least * (1.0 - 1e-9)), "{text}: {stated:?}, the least is {least}");
        if network.halves_are() == cut::Halves::Least {
            assert!(is_least(stated.unwrap()), "{text}: {stated:?}, the least is {least}");
            proved += 1;
        }
    }
    assert!(proved > 20, "{proved}");
}

#[test]
fn random_graphs_are_cut_as_found() {
    let mut random = Random(0x1234_5678_9abc_def1);
    for case in 0..40 {
        let (all, switches) = (random.between(2, 11), random.between(0, 6));
        let mut plane = PlaneBuilder::new(all, switches, 0).unwrap();
        let slow = plane.speed(Speed { gbps: 30.0, ..OWN }).unwrap();
        for node in 1..all + switches {
            plane.cable(node, random.between(0, node - 1), Cable::Aoc);
        }
        for _ in 0..random.between(0, 2 * (all + switches)) {
            let a = random.between(0, all + switches - 1);
            let b = random.between(0, all + switches - 1);
            if a != b {
                plane.cable_at(a, b, Cable::Aoc, if random.between(0, 1) == 0 { 0 } else { slow });
            }
        }
        let plane = plane.finish().unwrap();
        let [found, least] = [cut::searched(&plane, OWN, &[all]), cut::least(&plane, OWN, all / 2)].map(Option::unwrap);
        assert!((found / least - 1.0).abs() < 1e-9, "case {case}: found {found}, the least is {least}");
    }
}

/// There are 18 leaves, each with 32 cables to 9 top switches. Only 268 cables join leaves 0, 1, 3, 5, 7, 9, 12, 14 and
/// 16 with the other leaves.
#[test]
fn cables_that_do_not_divide_evenly_narrow_a_tree() {
    let of = |down: u32, top: u32| {
        let sizes = format!("accelerators = 576\ndown = {down}\nup = {down}\ntop = {top}");
        let text = format!("name = 'fattree'\nlevels = 2\n{sizes}");
        cut::bisection(&*oracle::topology(&text), oracle::OWN).unwrap()
    };
    let uneven = of(32, 64);
    assert!(!uneven.is_least && uneven.share <= 268.0 / 288.0, "{uneven:?}");
    // Each of 24 leaves has two cables to each of 12 top switches.
    assert_eq!(of(24, 48), cut::Bisection { share: 1.0, is_least: true, narrowest: 1.0 });
}

/// Lines of 1x1 boards are switches. In the first mesh, 3 of 4 rows and 4 of 6 columns have 12 + 8 cables to the other
/// half; a cut that halves all lines has 24. For the other mesh, an exact solver found 14.
#[test]
fn a_rectangle_of_boards_is_joined_by_less_than_halves_of_lines() {
    for (board, boards, published, least) in [("[1, 1]", "[4, 6]", 24.0, 20.0), ("[3, 2]", "[3, 2]", 18.0, 14.0)] {
        let network = oracle::topology(&format!("name = 'hxmesh'\nboard = {board}\nboards = {boards}"));
        let found = cut::bisection(&*network, oracle::OWN).unwrap();
        let injection = f64::from(4 * (network.accelerators() / 2));
        let stated = cut::Bisection { share: published / injection, is_least: false, narrowest: least / injection };
        assert_eq!(found, stated, "{board} {boards}");
    }
}

#[test]
fn random_networks_are_billed_as_wired() {
    let mut random = Random(0x0dd_b1a5_ed00_0001);
    for text in (0..30).flat_map(|_| random_networks(&mut random)).filter(|text| oracle::read(text).is_ok()) {
        oracle::is_billed_as_wired(&text);
    }
}
