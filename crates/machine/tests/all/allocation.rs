//! Allocations on random machines, failures and jobs. No failed board is used, no board is used twice, a job has the
//! requested boards in a set that its rule allows, and utilization never exceeds the healthy boards.

use unisono_base::mix;
use unisono_machine::{
    Machine,
    network::{
        Boards, Network,
        allocate::{Heuristic, Job, JobSpace, Jobs, Outcome, Rule, Sizes, Study, study},
    },
};

fn traced() -> Jobs {
    Jobs::Drawn(Sizes::trace())
}

fn mesh(rows: u32, columns: u32) -> JobSpace {
    let count = vec![rows, columns];
    JobSpace { board: vec![2, 2], leaf: count.clone(), count, rule: Rule::Crossings }
}

fn outcome(space: &JobSpace, jobs: Jobs, heuristic: Heuristic, failures: u64, samples: u32, seed: u64) -> Outcome {
    study(space, "test", &Study { jobs, heuristic, failed: vec![], failures, seed }, samples).unwrap()
}

fn check(space: &JobSpace, outcome: &Outcome) {
    let sample = &outcome.first;
    let mut taken = vec![false; space.all() as usize];
    for &board in &sample.failed {
        assert!(!std::mem::replace(&mut taken[board as usize], true), "board {board} fails twice");
    }
    let mut used = 0;
    for (job, placed) in &sample.jobs {
        let Some(placed) = placed else { continue };
        for (line, &count) in placed.positions.iter().zip(&space.count) {
            let follows = |a: &u32, b: &u32| match space.rule {
                Rule::SubBox { wraps: true } => (a + 1) % count == *b,
                Rule::SubBox { wraps: false } => a + 1 == *b,
                Rule::Crossings | Rule::Blocks { .. } => a < b,
            };
            assert!(line.is_sorted_by(follows), "{placed:?}");
        }
        let size = placed.size();
        let is_exact = matches!(space.rule, Rule::Blocks { .. });
        assert!(size >= job.boards.into() && (!is_exact || size == u64::from(job.boards)), "{job:?} on {placed:?}");
        if let Some(shape) = job.shape.clone().filter(|_| !is_exact) {
            let sorted = |mut sides: Vec<u32>| {
                sides.resize(space.count.len(), 1);
                sides.sort_unstable();
                sides
            };
            let sides = placed.positions.iter().map(|line| line.len() as u32).collect();
            assert_eq!(sorted(sides), sorted(shape), "{job:?} on {placed:?}");
        }
        used += u64::from(job.boards);
        // No two jobs share a board, and no job has a failed board.
        for board in placed.boards(&space.count) {
            assert!(!std::mem::replace(&mut taken[board as usize], true), "{board} is failed or taken: {placed:?}");
        }
        if let ([rows, columns], Rule::Crossings) = (&placed.positions[..], &space.rule) {
            on_their_boards(space, rows, columns);
        }
    }
    assert!(used <= space.all() - sample.failed.len() as u64);
    assert!(0.0 <= outcome.utilization_p1 && outcome.utilization_p1 <= outcome.utilization_mean);
    assert!(outcome.utilization_mean <= 1.0);
}

/// Checks that ranks are on the boards of the job, one on each accelerator.
fn on_their_boards(space: &JobSpace, rows: &[u32], columns: &[u32]) {
    let pair = |sides: &[u32]| [sides[0], sides[1]];
    let boards = Boards { count: pair(&space.count), board: pair(&space.board) };
    let (mut places, extents) = boards.accelerators(rows, columns);
    let size = rows.len() as u32 * columns.len() as u32 * boards.board[0] * boards.board[1];
    assert_eq!([places.len() as u32, extents[0] * extents[1]], [size; 2]);
    for &place in &places {
        let [row, column] = space.position(space.board_of(place))[..] else { panic!("two dimensions") };
        assert!(rows.contains(&row) && columns.contains(&column));
    }
    places.sort_unstable();
    places.dedup();
    assert_eq!(places.len() as u32, size);
}

/// Draws a space of any rule, with sides of at most 70 boards.
fn drawn(draw: &dyn Fn(u64, u64) -> u64) -> JobSpace {
    let side = |what, below| 1 + draw(what, below) as u32;
    let plane = |rule| JobSpace {
        count: vec![side(0, 70), side(1, 70)],
        board: vec![2, side(2, 3)],
        leaf: vec![side(3, 16); 2],
        rule,
    };
    let wraps = draw(7, 2) == 0;
    match draw(8, 5) {
        0 | 1 => plane(Rule::Crossings),
        2 => plane(Rule::SubBox { wraps }),
        3 => {
            let count: Vec<u32> = (0..1 + draw(9, 4)).map(|dim| side(10 + dim, 8)).collect();
            JobSpace { board: vec![2; count.len()], leaf: count.clone(), count, rule: Rule::SubBox { wraps } }
        }
        _ => {
            let (leaf, all) = (side(3, 16), side(1, 1000));
            let space = JobSpace::of_blocks(all, vec![leaf, leaf * side(4, 10)], leaf);
            if wraps { space.aligned("test").unwrap() } else { space }
        }
    }
}

#[test]
fn never_on_a_failed_or_taken_board() {
    for case in 0..400_u64 {
        let draw = |what: u64, below: u64| mix(case * 64 + what) % below;
        let space = drawn(&draw);
        let failures = draw(20, space.all());
        let job = |k: u64| {
            let at = 100 + 8 * k;
            if draw(at, 2) == 0 {
                let side = |(&all, what): (&u32, u64)| 1 + draw(what, all.into()) as u32;
                let shape: Vec<u32> = space.count.iter().zip(at + 1..).map(side).collect();
                Job { boards: shape.iter().product(), shape: Some(shape) }
            } else {
                Job { boards: 1 + draw(at + 1, space.all()) as u32, shape: None }
            }
        };
        let list = Jobs::List((0..1 + draw(21, 12)).map(job).collect());
        let heuristic = Heuristic::ALL[draw(22, 5) as usize];
        for jobs in [traced(), list] {
            check(&space, &outcome(&space, jobs, heuristic, failures, 1, case));
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_samples() {
    let run = |seed| outcome(&mesh(16, 16), traced(), Heuristic::Sort, 20, 50, seed);
    assert_eq!(run(7), run(7));
    assert_ne!(run(7).first, run(8).first);
}

/// In networks with equal numbers of boards, the same boards fail and the same jobs are drawn. If jobs may use any free
/// boards, all of them fit.
#[test]
fn networks_of_the_same_number_of_boards_have_the_same_jobs() {
    let spaces = [
        mesh(16, 16),
        JobSpace { rule: Rule::SubBox { wraps: true }, ..mesh(16, 16) },
        JobSpace::of_blocks(256, vec![8, 32], 8),
        JobSpace::of_blocks(1024, vec![32], 32).in_boards_of("test", 4).unwrap(),
        JobSpace::of_blocks(256, vec![8, 32], 8).aligned("test").unwrap(),
    ];
    let found = spaces.map(|space| outcome(&space, traced(), Heuristic::Sort, 20, 8, 3));
    let asked = |of: &Outcome| of.first.jobs.iter().map(|(job, _)| job.boards).collect::<Vec<u32>>();
    for other in &found[1..] {
        assert_eq!(asked(other), asked(&found[0]));
        assert_eq!(other.first.failed, found[0].first.failed);
    }
    let used = found.each_ref().map(|of| of.utilization_mean);
    assert_eq!((used[2], used[3]), (1.0, 1.0));
    assert!(used[0] > used[1] && used[4] > used[1], "{used:?}");
}

#[test]
fn failures_are_spread_over_all_boards() {
    let mut failed = [0; 16];
    for seed in 0..1600 {
        for board in outcome(&mesh(4, 4), traced(), Heuristic::Greedy, 4, 1, seed).first.failed {
            failed[board as usize] += 1;
        }
    }
    // Each board is expected to fail 400 times, with a standard deviation of 17.
    assert!(failed.iter().all(|n| (320..480).contains(n)), "{failed:?}");
}

#[test]
fn heuristics_help() {
    let network = Machine::preset("hx2mesh-large").unwrap().get::<Network>().unwrap().clone();
    let space = network.topology("test").unwrap().jobs().unwrap();
    assert_eq!((&space.count[..], &space.leaf[..]), (&[64, 64][..], &[16, 16][..]));
    let mean = |heuristic| outcome(&space, traced(), heuristic, 0, 40, 1).utilization_mean;
    let all: Vec<f64> = Heuristic::ALL.iter().map(|&h| mean(h)).collect();
    assert!(all[0] <= all[1] && all[1] <= all[2] && all[2] < all[3], "{all:?}");
    assert!(all[3] > 0.97, "{all:?}");
    // `Locality` reduces traffic above the leaves, and loses little utilization.
    let upper = |heuristic| outcome(&space, traced(), heuristic, 0, 20, 1).upper_level.alltoall;
    assert!(upper(Heuristic::Locality) < upper(Heuristic::Sort));
}

#[test]
fn named_boards_fail_in_every_sample_beside_those_that_are_drawn() {
    let boards = mesh(4, 4);
    let failed = |seed, failures| {
        let failed = vec![5, 10];
        let asked = Study { jobs: traced(), heuristic: Heuristic::Sort, failed, failures, seed };
        study(&boards, "test", &asked, 1).unwrap().first.failed
    };
    assert_eq!(failed(0, 0), [5, 10]);
    for seed in 0..20 {
        let all = failed(seed, 13);
        assert_eq!(all.len(), 15);
        assert!(all.is_sorted_by(|a, b| a < b) && all.contains(&5) && all.contains(&10), "{all:?}");
    }
    let asked = Study { jobs: traced(), heuristic: Heuristic::Sort, failed: vec![5, 10], failures: 14, seed: 0 };
    let refused = study(&boards, "test", &asked, 1).unwrap_err();
    assert_eq!(refused.to_string(), "16 of test's 16 boards fail; accepted are 0 to 15");
}

#[test]
fn what_cannot_be_is_refused() {
    let failing = |failures, samples| {
        let failed = vec![];
        let asked = Study { jobs: traced(), heuristic: Heuristic::Greedy, failed, failures, seed: 0 };
        study(&mesh(2, 2), "tiny", &asked, samples).map(|_| ()).map_err(|e| e.to_string())
    };
    assert_eq!(failing(3, 1), Ok(()));
    assert_eq!(failing(4, 1), Err("4 of tiny's 4 boards fail; accepted are 0 to 3".to_owned()));
    assert_eq!(failing(0, 0), Err("samples is 0; accepted is at least 1".to_owned()));
    let tree = Machine::preset("fattree-small").unwrap().get::<Network>().unwrap().clone();
    assert_eq!(tree.topology("test").unwrap().boards(), None);
    assert!("best".parse::<Heuristic>().unwrap_err().to_string().contains("greedy, transpose, aspect, sort, locality"));
}
