//! The shapes that a job may have, in sides along the dimensions of a network, in the order in which they are tried.

use super::{Heuristic, Job};

/// The largest ratio of two sides of a shape that `Heuristic::Aspect` tries.
const MOST_UNEQUAL: u32 = 8;

/// Returns the shapes that a heuristic permits for a job, if the network has `count` boards along each dimension,
/// without duplicates, in the order of attempts.
pub fn shapes(job: &Job, count: &[u32], heuristic: Heuristic) -> Vec<Vec<u32>> {
    let fits = |shape: &[u32]| shape.iter().zip(count).all(|(side, all)| side <= all);
    if let Some(shape) = &job.shape {
        // The user's shape is fixed, but may be transposed.
        let mut given = shape.clone();
        given.resize(count.len(), 1);
        let turned = permutations(&given);
        return distinct([given].into_iter().chain(turned).filter(|s| fits(s)));
    }
    let halves: Vec<u32> = count.iter().map(|all| all.div_ceil(2)).collect();
    let half = |shape: &[u32]| shape.iter().zip(&halves).all(|(side, all)| side <= all);
    let dims = count.len();
    let nearest = |n: u32, within: &dyn Fn(&[u32]) -> bool| {
        factors(n, dims).iter().find_map(|s| permutations(s).into_iter().find(|s| within(s)))
    };
    let rounded = |most: &[u32], within: &dyn Fn(&[u32]) -> bool| {
        (job.boards..=most.iter().product()).find_map(|n| nearest(n, within))
    };
    let first = nearest(job.boards, &half).or_else(|| nearest(job.boards, &fits));
    let Some(first) = first.or_else(|| rounded(&halves, &half)).or_else(|| rounded(count, &fits)) else {
        return Vec::new();
    };
    let mut shapes = vec![first.clone()];
    if heuristic >= Heuristic::Transpose {
        shapes.extend(permutations(&first));
    }
    if heuristic >= Heuristic::Aspect {
        let near = |s: &&Vec<u32>| s[dims - 1] <= MOST_UNEQUAL * s[0];
        let others = factors(first.iter().product(), dims);
        shapes.extend(others.iter().filter(near).flat_map(|s| permutations(s)));
    }
    distinct(shapes.into_iter().filter(|s| fits(s)))
}

/// Returns all ascending lists of `dims` numbers whose product is `n`, in order of their sums, so those nearest to a
/// cube come first.
fn factors(n: u32, dims: usize) -> Vec<Vec<u32>> {
    fn extend(n: u32, dims: usize, before: &mut Vec<u32>, found: &mut Vec<Vec<u32>>) {
        let least = before.last().copied().unwrap_or(1);
        if dims == 1 {
            if n >= least {
                found.push([&before[..], &[n]].concat());
            }
            return;
        }
        let mut side = least;
        // The remaining factors are at least as large as `side`.
        while u64::from(side).pow(u32::try_from(dims).unwrap_or(u32::MAX)) <= u64::from(n) {
            if n.is_multiple_of(side) {
                before.push(side);
                extend(n / side, dims - 1, before, found);
                before.pop();
            }
            side += 1;
        }
    }
    let mut found = Vec::new();
    extend(n, dims, &mut Vec::new(), &mut found);
    found.sort_by_key(|sides| (sides.iter().map(|&side| u64::from(side)).sum::<u64>(), sides.clone()));
    found
}

/// Returns all distinct orders of some sides, in lexicographic order.
fn permutations(sides: &[u32]) -> Vec<Vec<u32>> {
    let mut next = sides.to_vec();
    next.sort_unstable();
    let mut found = vec![next.clone()];
    // The next order in lexicographic order: Knuth, "The Art of Computer Programming", 7.2.1.2, algorithm L.
    while let Some(at) = (1..next.len()).rev().find(|&at| next[at - 1] < next[at]) {
        let with = (at..next.len()).rev().find(|&other| next[other] > next[at - 1]).expect("the next one is larger");
        next.swap(at - 1, with);
        next[at..].reverse();
        found.push(next.clone());
    }
    found
}

fn distinct(shapes: impl Iterator<Item = Vec<u32>>) -> Vec<Vec<u32>> {
    let mut kept: Vec<Vec<u32>> = Vec::new();
    for shape in shapes {
        if !kept.contains(&shape) {
            kept.push(shape);
        }
    }
    kept
}
