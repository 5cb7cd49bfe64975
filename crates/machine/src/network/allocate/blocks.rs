//! Places a job on any free boards, in as few blocks as possible. Blocks are the leaves and pods of a fat tree, the
//! routers and groups of a dragonfly, and the boxes of a cluster.
//!
//! Switches connect all boards, so a job is refused only if too few boards are free. Without `locality` the job gets
//! the first free boards. With `locality`, the job gets boards of the smallest block that has enough free boards; among
//! blocks of equal size, the block with the fewest free boards is chosen (best fit). If no block has enough, whole
//! blocks are assigned in descending order of their free boards, and the remaining boards are selected by the same
//! rule. This leaves the fewest pairs of boards in different blocks of a level, because this choice concentrates the
//! job in as few blocks as possible: its numbers of boards by block majorize those of any other choice. Source: Slurm's
//! plugin topology/tree, which selects the lowest switch that satisfies a job, and its leaves by best fit.
//!
//! Aligned jobs stay inside one block if they fit into one: a job no larger than a leaf inside one leaf, a larger job
//! no larger than a group inside one group. They are refused if no such block has enough free boards. Their traffic
//! does not leave the block ("Jigsaw", Smith and Lowenthal, HPDC 2021, isolates jobs further).

use std::{cmp::Reverse, ops::Range, slice};

use unisono_base::interrupt::poll;

use super::{Free, Heuristic, Placed};

/// Finds `n` of `all` boards for a job; `None` if the job is refused. `sizes` are the numbers of boards in a block of
/// each level, ascending.
pub fn place((n, all): (u32, u32), sizes: &[u32], aligned: bool, heuristic: Heuristic, free: &Free) -> Option<Placed> {
    let boards = 0..all;
    let whole = slice::from_ref(&boards);
    if free.count() < n.into() {
        return None;
    }
    let is_near = heuristic >= Heuristic::Locality;
    let level = sizes.iter().position(|&size| size >= n).filter(|_| aligned);
    let mut taken = match level {
        Some(level) => {
            let inside = if is_near {
                best_fit(whole, sizes[level], n, free)
            } else {
                parts(whole, sizes[level]).find(|block| free.count_in(block) >= n)
            };
            let block = inside?;
            if is_near { nearest(&[block], &sizes[..level], n, free) } else { free.first_in(block, n) }
        }
        None if is_near => nearest(whole, sizes, n, free),
        None => free.first_in(0..all, n),
    };
    taken.sort_unstable();
    Some(Placed { positions: vec![taken] })
}

/// Divides blocks into smaller blocks of `size` boards. The last block of each may be smaller.
fn parts(blocks: &[Range<u32>], size: u32) -> impl Iterator<Item = Range<u32>> {
    blocks.iter().flat_map(move |block| {
        (block.start..block.end).step_by(size as usize).map(move |first| first..(first + size).min(block.end))
    })
}

/// Returns the block of `size` boards that has the fewest free boards, but at least `n`; of several such blocks, the
/// first; `None` if no block has `n`.
fn best_fit(blocks: &[Range<u32>], size: u32, n: u32, free: &Free) -> Option<Range<u32>> {
    poll();
    let counted = parts(blocks, size).map(|block| (free.count_in(&block), block));
    counted.filter(|&(found, _)| found >= n).min_by_key(|&(found, _)| found).map(|(_, block)| block)
}

/// Returns `n` free boards of `blocks`, which together have at least `n`, selected by best fit in successively smaller
/// blocks of `sizes` boards.
fn nearest(blocks: &[Range<u32>], sizes: &[u32], n: u32, free: &Free) -> Vec<u32> {
    for (level, &size) in sizes.iter().enumerate() {
        if let Some(block) = best_fit(blocks, size, n, free) {
            return if level == 0 { free.first_in(block, n) } else { spread(&[block], &sizes[..level], n, free) };
        }
    }
    if sizes.is_empty() {
        let boards = blocks.iter().flat_map(|block| free.first_in(block.clone(), n));
        return boards.take(n as usize).collect();
    }
    spread(blocks, sizes, n, free)
}

/// Returns `n` free boards of blocks of the largest size in `sizes`, none of which has `n`: whole blocks in descending
/// order of their free boards, and the last boards by [`nearest`].
fn spread(blocks: &[Range<u32>], sizes: &[u32], n: u32, free: &Free) -> Vec<u32> {
    let size = sizes[sizes.len() - 1];
    let mut found: Vec<(u32, Range<u32>)> = parts(blocks, size).map(|block| (free.count_in(&block), block)).collect();
    found.sort_by_key(|&(free, _)| Reverse(free));
    let (mut left, mut taken) = (n, Vec::new());
    let mut rest = found.into_iter().peekable();
    while let Some((_, block)) = rest.next_if(|&(found, _)| found < left) {
        let boards = free.first_in(block, left);
        left -= u32::try_from(boards.len()).unwrap_or(left);
        taken.extend(boards);
    }
    if left > 0 {
        let others: Vec<Range<u32>> = rest.map(|(_, block)| block).collect();
        taken.extend(nearest(&others, sizes, left, free));
    }
    taken
}
