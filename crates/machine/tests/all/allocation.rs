//! Allocations over random machines, failures and jobs. No board is failed or taken twice, all rows of a job have its
//! columns, a job has the requested boards, and utilization never exceeds the healthy boards.

use unisono_base::mix;
use unisono_machine::network::Network;
use unisono_machine::{
    Machine,
    network::{
        Boards,
        allocate::{Heuristic, Job, Jobs, Outcome, Sizes, Study, study},
    },
};

fn traced() -> Jobs {
    Jobs::Drawn(Sizes::trace())
}

fn outcome(boards: &Boards, jobs: Jobs, heuristic: Heuristic, failures: u64, samples: u32, seed: u64) -> Outcome {
    study(boards, "test", &Study { jobs, heuristic, failed: vec![], failures, samples, seed }).unwrap()
}

fn check(boards: &Boards, outcome: &Outcome) {
    let sample = &outcome.first;
    let mut taken = vec![false; boards.all() as usize];
    for &board in &sample.failed {
        assert!(!std::mem::replace(&mut taken[board as usize], true), "board {board} fails twice");
    }
    let mut used = 0;
    for (job, placed) in &sample.jobs {
        let Some(placed) = placed else { continue };
        for (line, count) in [(&placed.rows, boards.count[0]), (&placed.columns, boards.count[1])] {
            let follows = |a: &u32, b: &u32| if boards.adjacent { (a + 1) % count == *b } else { a < b };
            assert!(line.is_sorted_by(follows), "{placed:?}");
        }
        let size = (placed.rows.len() * placed.columns.len()) as u32;
        assert!(size >= job.boards, "{job:?} on {placed:?}");
        if let Some(shape) = job.shape {
            let mut sides = [placed.rows.len() as u32, placed.columns.len() as u32];
            assert!(
                sides == shape || {
                    sides.reverse();
                    sides == shape
                },
                "{job:?} on {placed:?}"
            );
        }
        used += u64::from(job.boards);
        // Every row has all columns of the job, and no other job has them.
        for &row in &placed.rows {
            for &column in &placed.columns {
                assert!(row < boards.count[0] && column < boards.count[1]);
                let board = (row * boards.count[1] + column) as usize;
                assert!(!std::mem::replace(&mut taken[board], true), "{row},{column} is failed or taken: {placed:?}");
            }
        }
        // Ranks are on the boards of the job, each accelerator once.
        let (mut places, extents) = boards.accelerators(&placed.rows, &placed.columns);
        assert_eq!(places.len() as u32, size * boards.board[0] * boards.board[1]);
        assert_eq!(places.len() as u32, extents[0] * extents[1]);
        let width = boards.count[1] * boards.board[1];
        let on = |p: u32| (p / width / boards.board[0], p % width / boards.board[1]);
        assert!(places.iter().all(|&p| placed.rows.contains(&on(p).0) && placed.columns.contains(&on(p).1)));
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len() as u32, size * boards.board[0] * boards.board[1]);
    }
    assert!(used <= boards.all() - sample.failed.len() as u64);
    assert!(0.0 <= outcome.utilization_p1 && outcome.utilization_p1 <= outcome.utilization_mean);
    assert!(outcome.utilization_mean <= 1.0);
}

#[test]
fn never_on_a_failed_or_taken_board() {
    for case in 0..400_u64 {
        let draw = |what: u64, below: u64| mix(case * 64 + what) % below;
        let side = |what| 1 + draw(what, 70) as u32;
        let boards = Boards {
            count: [side(0), side(1)],
            board: [2, 1 + draw(2, 3) as u32],
            leaf: [1 + draw(3, 16) as u32; 2],
            adjacent: draw(7, 2) == 0,
        };
        let failures = draw(4, boards.all());
        let job = |k: u64| {
            let at = 100 + 4 * k;
            let [r, c] = [1 + draw(at, boards.count[0].into()) as u32, 1 + draw(at + 1, boards.count[1].into()) as u32];
            let shaped = draw(at + 2, 2) == 0;
            let boards = if shaped { r * c } else { 1 + draw(at + 3, boards.all()) as u32 };
            Job { boards, shape: shaped.then_some([r, c]) }
        };
        let list = Jobs::List((0..1 + draw(5, 12)).map(job).collect());
        let heuristic = Heuristic::ALL[draw(6, 5) as usize];
        for jobs in [traced(), list] {
            check(&boards, &outcome(&boards, jobs, heuristic, failures, 1, case));
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_samples() {
    let boards = Boards { count: [16, 16], board: [2, 2], leaf: [16, 16], adjacent: false };
    let run = |seed| outcome(&boards, traced(), Heuristic::Sort, 20, 50, seed);
    assert_eq!(run(7), run(7));
    assert_ne!(run(7).first, run(8).first);
}

#[test]
fn failures_are_spread_over_all_boards() {
    let boards = Boards { count: [4, 4], board: [2, 2], leaf: [4, 4], adjacent: false };
    let mut failed = [0; 16];
    for seed in 0..1600 {
        for board in outcome(&boards, traced(), Heuristic::Greedy, 4, 1, seed).first.failed {
            failed[board as usize] += 1;
        }
    }
    // 400 expected of each, with a deviation of 17.
    assert!(failed.iter().all(|n| (320..480).contains(n)), "{failed:?}");
}

#[test]
fn heuristics_help() {
    let network = Machine::preset("hx2mesh-large").unwrap().get::<Network>().unwrap().clone();
    let boards = network.topology("test").unwrap().boards().unwrap();
    assert_eq!((boards.count, boards.leaf), ([64, 64], [16, 16]));
    let mean = |heuristic| outcome(&boards, traced(), heuristic, 0, 40, 1).utilization_mean;
    let all: Vec<f64> = Heuristic::ALL.iter().map(|&h| mean(h)).collect();
    assert!(all[0] <= all[1] && all[1] <= all[2] && all[2] < all[3], "{all:?}");
    assert!(all[3] > 0.97, "{all:?}");
    // Locality loses little utilization for less traffic above the leaves.
    let upper = |heuristic| outcome(&boards, traced(), heuristic, 0, 20, 1).upper_level.alltoall;
    assert!(upper(Heuristic::Locality) < upper(Heuristic::Sort));
}

#[test]
fn named_boards_fail_in_every_sample_beside_those_that_are_drawn() {
    let boards = Boards { count: [4, 4], board: [2, 2], leaf: [4, 4], adjacent: false };
    let failed = |seed, failures| {
        let failed = vec![5, 10];
        let asked = Study { jobs: traced(), heuristic: Heuristic::Sort, failed, failures, samples: 1, seed };
        study(&boards, "test", &asked).unwrap().first.failed
    };
    assert_eq!(failed(0, 0), [5, 10]);
    for seed in 0..20 {
        let all = failed(seed, 13);
        assert_eq!(all.len(), 15);
        assert!(all.is_sorted_by(|a, b| a < b) && all.contains(&5) && all.contains(&10), "{all:?}");
    }
    let asked =
        Study { jobs: traced(), heuristic: Heuristic::Sort, failed: vec![5, 10], failures: 14, samples: 1, seed: 0 };
    let refused = study(&boards, "test", &asked).unwrap_err();
    assert_eq!(refused.to_string(), "16 of test's 16 boards fail; accepted are 0 to 15");
}

#[test]
fn what_cannot_be_is_refused() {
    let boards = Boards { count: [2, 2], board: [2, 2], leaf: [2, 2], adjacent: false };
    let failing = |failures, samples| {
        let failed = vec![];
        let asked = Study { jobs: traced(), heuristic: Heuristic::Greedy, failed, failures, samples, seed: 0 };
        study(&boards, "tiny", &asked).map(|_| ()).map_err(|e| e.to_string())
    };
    assert_eq!(failing(3, 1), Ok(()));
    assert_eq!(failing(4, 1), Err("4 of tiny's 4 boards fail; accepted are 0 to 3".to_owned()));
    assert_eq!(failing(0, 0), Err("samples is 0; accepted is at least 1".to_owned()));
    let tree = Machine::preset("fattree-small").unwrap().get::<Network>().unwrap().clone();
    assert_eq!(tree.topology("test").unwrap().boards(), None);
    assert!("best".parse::<Heuristic>().unwrap_err().to_string().contains("greedy, transpose, aspect, sort, locality"));
}
