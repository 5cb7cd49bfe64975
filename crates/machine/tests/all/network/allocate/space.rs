//! Tests of `network::allocate::space`, and of the spaces that families state.

use unisono_machine::network::{
    FAMILIES,
    allocate::{JobSpace, Rule},
};

use crate::network::{failures, oracle};

fn grid(count: [u32; 2], board: [u32; 2]) -> JobSpace {
    JobSpace { count: count.to_vec(), board: board.to_vec(), leaf: count.to_vec(), rule: Rule::Crossings }
}

/// The smallest blocks are the accelerators of one switch, and the largest blocks those of a named part, if there is
/// one.
#[test]
fn every_family_states_its_boards() {
    let others = [
        "name = 'torus'\ndims = [4, 6, 4]\nboard = [2, 3, 1]",
        "name = 'fattree'\naccelerators = 1088\nlevels = 3\ndown = 16\nup = 16",
        "name = 'boxes'\nboxes = 2\naccelerators = 3\ninside = \"0 3\\n1 3\\n2 3\"\nuplinks = '3 0'",
    ];
    for topology in failures::FAMILIES.into_iter().chain(others) {
        let whole = oracle::topology(topology);
        let family = FAMILIES.iter().find(|family| family.name == whole.name()).expect("a family");
        assert_eq!(whole.jobs().is_some(), family.jobs.is_some(), "{topology}");
        let Some(space) = whole.jobs() else { continue };
        let of_board: u32 = space.board.iter().product();
        assert_eq!(u64::from(of_board) * space.all(), u64::from(whole.accelerators()), "{topology}");
        let Rule::Blocks { sizes, .. } = &space.rule else { continue };
        let plane = whole.plane().unwrap();
        let above = |node| plane.link(plane.leaving(node).next().unwrap()).to;
        let part = |node| whole.node_name(node).within;
        assert!(sizes.is_sorted_by(|a, b| a < b) && u64::from(sizes[sizes.len() - 1]) < space.all(), "{topology}");
        for node in 1..whole.accelerators() {
            let joins = |size: u32| (node - 1) / size == node / size;
            assert_eq!(above(node - 1) == above(node), joins(sizes[0]), "{topology}: {node}");
            if part(0).is_some() {
                assert_eq!(part(node - 1) == part(node), joins(sizes[sizes.len() - 1]), "{topology}: {node}");
            }
        }
    }
}

#[test]
fn boards_of_several_accelerators() {
    let of = |board| JobSpace::of_blocks(240, vec![10, 60], 60).in_boards_of("fly", board).map_err(|e| e.to_string());
    // Routers of ten accelerators have no whole boards of four.
    let fours = of(4).unwrap();
    assert_eq!((&fours.count[..], &fours.leaf[..]), (&[60][..], &[15][..]));
    assert_eq!(fours.rule, Rule::Blocks { sizes: vec![15], aligned: false });
    assert_eq!([0, 3, 4, 239].map(|accelerator| fours.board_of(accelerator)), [0, 0, 1, 59]);
    assert_eq!(of(5).unwrap().rule, Rule::Blocks { sizes: vec![2, 12], aligned: false });
    assert_eq!(of(120).unwrap().leaf, [1]);
    for board in [0, 7, 16, 480] {
        let said = of(board).unwrap_err();
        assert!(said.contains("boards divide its 240 accelerators, and each is inside one block of 60"), "{said}");
        assert!(said.ends_with("accepted are 1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60, 120, 240"), "{said}");
    }
    let said = grid([4, 4], [2, 2]).in_boards_of("mesh", 4).unwrap_err().to_string();
    assert!(said.contains("mesh has boards of 2x2 accelerators"), "{said}");
    let said = grid([4, 4], [2, 2]).aligned("mesh").unwrap_err().to_string();
    assert!(said.contains("no leaves, groups or boxes"), "{said}");
}

/// Three rows and two columns of boards of 2 x 3 accelerators: six rows and six columns of accelerators.
#[test]
fn boards_of_accelerators_and_their_positions() {
    let torus = grid([3, 2], [2, 3]);
    assert_eq!([0, 2, 3, 6, 12, 35].map(|accelerator| torus.board_of(accelerator)), [0, 0, 1, 0, 2, 5]);
    assert_eq!([0, 1, 2, 5].map(|board| torus.position(board)), [[0, 0], [0, 1], [1, 0], [2, 1]]);
}
