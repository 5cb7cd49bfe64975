//! Tests of the rules in `network::allocate`, compared with a search of all sets of boards on small networks.

use unisono_base::mix;
use unisono_machine::{
    internals::shapes::shapes,
    network::allocate::{Free, Heuristic, Job, JobSpace, Placed, Rule, UpperShare},
};

fn space(count: &[u32], rule: Rule) -> JobSpace {
    JobSpace { count: count.to_vec(), board: vec![2; count.len()], leaf: count.to_vec(), rule }
}

fn of(boards: u32) -> Job {
    Job { boards, shape: None }
}

fn shaped(shape: &[u32]) -> Job {
    Job { boards: shape.iter().product(), shape: Some(shape.to_vec()) }
}

fn placed(positions: &[&[u32]]) -> Placed {
    Placed { positions: positions.iter().map(|line| line.to_vec()).collect() }
}

#[test]
fn shapes_in_their_order() {
    let small = |boards, heuristic| shapes(&of(boards), &[16, 16], heuristic);
    assert_eq!(small(12, Heuristic::Greedy), [[3, 4]]);
    assert_eq!(small(12, Heuristic::Transpose), [[3, 4], [4, 3]]);
    assert_eq!(small(12, Heuristic::Sort), [[3, 4], [4, 3], [2, 6], [6, 2]]);
    // 8 x 8 is half of each side. Larger jobs use more of a side, and primes are rounded up.
    assert_eq!(small(64, Heuristic::Greedy), [[8, 8]]);
    assert_eq!(small(11, Heuristic::Greedy), [[1, 11]]);
    assert_eq!(small(37, Heuristic::Greedy), [[5, 8]]);
    assert_eq!(small(256, Heuristic::Greedy), [[16, 16]]);
    assert_eq!(small(13, Heuristic::Greedy), [[1, 13]]);
    assert_eq!(small(251, Heuristic::Greedy), [[16, 16]]);
}

#[test]
fn shapes_of_three_dimensions() {
    let cube = |boards, heuristic| shapes(&of(boards), &[4, 4, 8], heuristic);
    assert_eq!(cube(8, Heuristic::Greedy), [[2, 2, 2]]);
    // Halves of the sides are 2, 2 and 4.
    assert_eq!(cube(16, Heuristic::Greedy), [[2, 2, 4]]);
    assert_eq!(cube(16, Heuristic::Transpose), [[2, 2, 4], [2, 4, 2], [4, 2, 2]]);
    // The sum 2 + 2 + 4 is smaller than 1 + 4 + 4, which is smaller than 1 + 2 + 8.
    let aspect = cube(16, Heuristic::Aspect);
    assert_eq!(aspect[3..6], [[1, 4, 4], [4, 1, 4], [4, 4, 1]]);
    assert_eq!(aspect[6..], [[1, 2, 8], [2, 1, 8]]);
    // No box has 127 boards. 128 boards are the whole machine.
    assert_eq!(cube(127, Heuristic::Sort), [[4, 4, 8]]);
    assert_eq!(shapes(&shaped(&[3, 2]), &[2, 2, 3], Heuristic::Greedy), [[1, 2, 3], [2, 1, 3]]);
}

#[test]
fn rows_with_the_same_free_columns() {
    // "HammingMesh", Fig. 3: despite failed boards, the chosen rows have the same remaining columns.
    let mesh = space(&[4, 4], Rule::Crossings);
    let mut free = Free::new(&mesh.count);
    [0, 6, 8].into_iter().for_each(|board| free.take(board));
    assert_eq!(free.count(), 13);
    let job = shaped(&[3, 3]);
    // Row 1 would leave two columns in common with row 0.
    let found = mesh.place(&mut free, &job, Heuristic::Greedy).unwrap();
    assert_eq!(found, placed(&[&[0, 2, 3], &[1, 2, 3]]));
    free.give(&found);
    assert_eq!(mesh.place(&mut free, &job, Heuristic::Locality), None);
}

#[test]
fn rectangles_go_around_the_ends() {
    let torus = space(&[4, 4], Rule::SubBox { wraps: true });
    let mut free = Free::new(&torus.count);
    [6, 9].into_iter().for_each(|board| free.take(board));
    // Rows 0 to 2 and 1 to 3 lack columns 1 and 2; rows 2, 3 and 0 lack column 1 only.
    let found = torus.place(&mut free, &shaped(&[3, 3]), Heuristic::Sort).unwrap();
    assert_eq!(found, placed(&[&[2, 3, 0], &[2, 3, 0]]));
    free.give(&found);
    assert_eq!(torus.place(&mut free, &shaped(&[2, 2]), Heuristic::Sort), None);
    assert_eq!(torus.place(&mut free, &shaped(&[1, 2]), Heuristic::Sort), Some(placed(&[&[1], &[0, 1]])));
    // On a HammingMesh, a job may have rows and columns that are not adjacent.
    let mut free = Free::new(&torus.count);
    for row in 0..4 {
        free.take(4 * row + (row + 2) % 4);
    }
    let mesh = space(&[4, 4], Rule::Crossings);
    assert!(mesh.place(&mut free, &shaped(&[2, 2]), Heuristic::Sort).is_some());
    assert_eq!(torus.place(&mut free, &shaped(&[2, 3]), Heuristic::Sort), None);
}

/// Returns a random set of free boards.
fn some_free(space: &JobSpace, case: u64) -> Free {
    let mut free = Free::new(&space.count);
    let share = mix(case) % 5;
    for board in 0..space.all() as u32 {
        if mix(case * 7919 + u64::from(board)) % 8 < share {
            free.take(board);
        }
    }
    free
}

/// Returns all orders of some sides, with repetitions.
fn orders(sides: &[u32]) -> Vec<Vec<u32>> {
    let mut found = vec![Vec::<u32>::new()];
    for &side in sides {
        let insert = |order: &Vec<u32>| {
            let order = order.clone();
            (0..=order.len()).map(move |at| [&order[..at], &[side], &order[at..]].concat())
        };
        found = found.iter().flat_map(insert).collect();
    }
    found
}

/// Returns whether some box of free boards has these sides, by trying all corners.
fn has_box(space: &JobSpace, free: &Free, sides: &[u32], wraps: bool) -> bool {
    let fits = sides.iter().zip(&space.count).all(|(side, all)| side <= all);
    fits && (0..space.all() as u32).any(|corner| {
        let lines = space.position(corner).into_iter().zip(sides).map(|(at, side)| (at..at + side).collect());
        let lines: Vec<Vec<u32>> = lines.collect();
        let is_inside = lines.iter().zip(&space.count).all(|(line, all)| line.iter().all(|at| at < all));
        let positions = lines.iter().zip(&space.count).map(|(line, all)| line.iter().map(|at| at % all).collect());
        let boards = Placed { positions: positions.collect() }.boards(&space.count);
        (wraps || is_inside) && boards.into_iter().all(|board| free.is_free(board))
    })
}

#[test]
fn a_box_is_refused_only_if_no_free_box_has_its_sides() {
    let mut found = [0; 2];
    for case in 0..300_u64 {
        let draw = |what: u64, below: u64| (mix(case * 97 + what) % below) as u32;
        let count: Vec<u32> = (0..1 + u64::from(draw(0, 4))).map(|d| 1 + draw(1 + d, 3 + d % 2)).collect();
        let wraps = draw(9, 2) == 0;
        let torus = space(&count, Rule::SubBox { wraps });
        let mut free = some_free(&torus, case);
        let shape: Vec<u32> = count.iter().zip(10..).map(|(&all, d)| 1 + draw(d, all.into())).collect();
        let place = torus.place(&mut free, &shaped(&shape), Heuristic::Greedy);
        let is_free = orders(&shape).iter().any(|sides| has_box(&torus, &free, sides, wraps));
        assert_eq!(place.is_some(), is_free, "{count:?} {shape:?} {wraps} {case}");
        found[usize::from(place.is_some())] += 1;
        // A job without a shape gets one of the shapes of its size, and is refused only if no such box is free.
        let job = of(1 + draw(30, torus.all()));
        for heuristic in Heuristic::ALL {
            let mut tried = shapes(&job, &count, heuristic).into_iter();
            let is_free = tried.any(|sides| has_box(&torus, &free, &sides, wraps));
            assert_eq!(torus.place(&mut free, &job, heuristic).is_some(), is_free, "{count:?} {job:?} {case}");
        }
    }
    assert!(found.iter().all(|&n| n > 40), "{found:?}");
}

/// Returns all sets of `n` of the free boards.
fn sets(free: &Free, all: u32, n: u32) -> Vec<Vec<u32>> {
    let boards: Vec<u32> = (0..all).filter(|&board| free.is_free(board)).collect();
    let masks = (0_u32..1 << boards.len()).filter(|mask| mask.count_ones() == n);
    masks.map(|mask| (0..boards.len()).filter(|at| mask >> at & 1 == 1).map(|at| boards[at]).collect()).collect()
}

#[test]
fn blocks_have_the_least_traffic_of_all_sets_of_free_boards() {
    let mut crossed = 0;
    for case in 0..300_u64 {
        let draw = |what: u64, below: u64| (mix(case * 101 + what) % below) as u32;
        let (all, size) = (4 + draw(0, 10), 2 + draw(1, 4));
        let any = JobSpace { leaf: vec![size], ..space(&[all], Rule::Blocks { sizes: vec![size], aligned: false }) };
        let mut free = some_free(&any, case);
        let job = of(1 + draw(2, all.into()));
        let choices = sets(&free, all, job.boards);
        for heuristic in Heuristic::ALL {
            let found = any.place(&mut free, &job, heuristic);
            // A job is refused only if there are too few free boards.
            assert_eq!(found.is_some(), !choices.is_empty(), "{case}");
            let Some(found) = found else { continue };
            assert!(choices.contains(&found.positions[0]), "{case}: {found:?}");
            let share = |positions: &Vec<u32>| {
                UpperShare::of(&Placed { positions: vec![positions.clone()] }, &any.leaf).alltoall
            };
            let least = choices.iter().map(share).fold(f64::INFINITY, f64::min);
            if heuristic == Heuristic::Locality {
                assert!((share(&found.positions[0]) - least).abs() < 1e-12, "{case}: {found:?}");
                crossed += u32::from(least > 0.0);
            }
        }
    }
    assert!(crossed > 50, "{crossed}");
}

#[test]
fn aligned_jobs_stay_inside_the_smallest_block_that_holds_them() {
    let mut refused = 0;
    for case in 0..600_u64 {
        let draw = |what: u64, below: u64| (mix(case * 103 + what) % below) as u32;
        let (leaf, leaves) = (1 + draw(0, 4), 1 + draw(1, 3));
        let (group, all) = (leaf * leaves, 1 + draw(2, 30));
        let aligned = space(&[all], Rule::Blocks { sizes: vec![leaf, group], aligned: true });
        let mut free = some_free(&aligned, case);
        let job = of(1 + draw(3, all.into()));
        let size = [leaf, group, all].into_iter().find(|&size| size >= job.boards).unwrap_or(all);
        let free_in = |block: u32| (block * size..all.min((block + 1) * size)).filter(|&b| free.is_free(b)).count();
        let has_room = (0..all.div_ceil(size)).any(|block| free_in(block) >= job.boards as usize);
        for heuristic in Heuristic::ALL {
            let found = aligned.place(&mut free, &job, heuristic);
            assert_eq!(found.is_some(), has_room, "{case}");
            let Some(found) = found else { continue };
            let boards = &found.positions[0];
            assert!(boards.is_sorted_by(|a, b| a < b) && boards.len() == job.boards as usize, "{case}: {boards:?}");
            assert!(boards.iter().all(|&board| free.is_free(board) && board / size == boards[0] / size), "{boards:?}");
        }
        refused += u32::from(!has_room && free.count() >= job.boards.into());
    }
    assert!(refused > 20, "{refused}");
}

/// There are two groups of three leaves of four boards. Leaf 1 has two free boards, leaf 4 three and all others four.
#[test]
fn the_smallest_block_with_room_is_filled_first() {
    let any = space(&[24], Rule::Blocks { sizes: vec![4, 12], aligned: false });
    let mut free = Free::new(&[24]);
    [4, 5, 16].into_iter().for_each(|board| free.take(board));
    let mut near = |n| any.place(&mut free, &of(n), Heuristic::Locality).unwrap().positions[0].clone();
    assert_eq!(near(2), [6, 7]);
    assert_eq!(near(3), [17, 18, 19]);
    assert_eq!(near(4), [0, 1, 2, 3]);
    // Group 0 has ten free boards and group 1 eleven: the job gets two whole leaves of group 0.
    assert_eq!(near(8), [0, 1, 2, 3, 8, 9, 10, 11]);
    // The job gets all of group 1, and the leaf of group 0 with the fewest free boards that suffice.
    assert_eq!(near(13), [&[6, 7][..], &[12, 13, 14, 15], &(17..24).collect::<Vec<u32>>()[..]].concat());
    assert_eq!(any.place(&mut free, &of(3), Heuristic::Sort).unwrap().positions[0], [0, 1, 2]);
}
