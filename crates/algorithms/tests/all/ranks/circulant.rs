//! Tests of `ranks::circulant`: the conditions of arXiv 2407.18004, section 2, for each number of ranks.

use unisono_algorithms::ranks::circulant::{Pipeline, Skips};

use crate::soak;

/// The blocks of 17 ranks in the table of the paper, by round.
const OF_17: [[i32; 17]; 5] = [
    [-4, 0, -5, -4, -3, -5, -2, -5, -4, -3, -1, -5, -4, -3, -5, -2, -5],
    [-5, -4, 1, -5, -4, -3, -3, -2, -5, -4, -3, -1, -5, -4, -3, -3, -2],
    [-2, -2, -2, 2, 0, -4, -4, -3, -2, -2, -4, -3, -1, -1, -4, -4, -3],
    [-1, -3, -3, -2, -2, 3, 0, 1, 2, -5, -2, -2, -2, -2, -1, -1, -1],
    [-3, -1, -1, -1, -1, -1, -1, -1, -1, 4, 0, 1, 2, 0, 3, 0, 1],
];

#[test]
fn the_table_of_17_ranks() {
    let skips = Skips::new(17);
    assert_eq!((0..=skips.rounds()).map(|k| skips.skip(k)).collect::<Vec<_>>(), [1, 2, 3, 5, 9, 17]);
    for rank in 0..17 {
        let table: Vec<i32> = OF_17.iter().map(|row| row[rank as usize]).collect();
        assert_eq!(skips.receives(rank), table, "rank {rank}");
    }
}

/// A rank receives q different blocks: its baseblock takes the place of the block that it lacks. It sends only blocks
/// that it has or received before, and the receiver expects each block.
fn meets_the_conditions(ranks: u32) {
    let skips = Skips::new(ranks);
    let q = skips.rounds().cast_signed();
    let receives: Vec<Vec<i32>> = (0..ranks).map(|rank| skips.receives(rank)).collect();
    for rank in 0..ranks {
        let own = skips.baseblock(rank).cast_signed();
        let mut found = receives[rank as usize].clone();
        found.sort_unstable();
        let mut expected: Vec<i32> = (-q..0).filter(|&block| block != own - q).collect();
        expected.extend((rank > 0).then_some(own));
        assert_eq!(found, expected, "rank {rank} of {ranks}");
        for k in 0..skips.rounds() {
            let to = (rank + skips.skip(k)) % ranks;
            let sent = receives[to as usize][k as usize];
            let has = |block: i32| block == own - q || receives[rank as usize][..k as usize].contains(&block);
            let is_right = if rank == 0 { sent == k.cast_signed() } else { has(sent) };
            assert!(is_right, "rank {rank} of {ranks} sends {sent} in round {k}");
        }
    }
}

#[test]
fn meets_the_conditions_for_each_number_of_ranks() {
    (2..=320).for_each(meets_the_conditions);
    if soak::is_on() {
        (321..=4096).for_each(meets_the_conditions);
    } else {
        [1000, 1023, 1024, 1025, 1152, 4096].into_iter().for_each(meets_the_conditions);
    }
}

/// In n - 1 + q rounds every rank except the root receives each block once, and in each round of `full` it receives one
/// block.
#[test]
fn each_block_comes_once() {
    for ranks in 2..=70 {
        for blocks in [1, 2, 3, 5, 8, 13, 30, 64] {
            let pipeline = Pipeline::new(ranks, blocks);
            assert_eq!(pipeline.rounds(), blocks - 1 + ranks.next_power_of_two().ilog2());
            for rank in 0..ranks {
                let come = (0..pipeline.rounds()).map(|round| pipeline.received(round, rank));
                let mut found: Vec<u32> = come.clone().flatten().collect();
                found.sort_unstable();
                let all: Vec<u32> = if rank == 0 { Vec::new() } else { (0..blocks).collect() };
                assert_eq!(found, all, "rank {rank} of {ranks}, {blocks} blocks");
                let full = come.skip(pipeline.full().start as usize).take(pipeline.full().len());
                assert!(rank == 0 || full.into_iter().all(|block| block.is_some()), "rank {rank} of {ranks}");
            }
        }
    }
}
