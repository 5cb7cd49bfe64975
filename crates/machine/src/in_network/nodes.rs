//! Dimensions of the HyperX for a number of nodes: none for one node, one for 2 to 16 nodes, at most two for 17 to 256,
//! else at most three.

/// Returns dimensions whose product is `nodes`, as equal as possible, in descending order. Dimensions of extent 1 are
/// omitted, so a prime number of nodes is a line.
pub fn balanced(nodes: u32) -> Vec<u32> {
    let mut dims = match nodes {
        0..=16 => vec![nodes],
        17..=256 => pair(nodes).to_vec(),
        _ => divisors(nodes)
            .map(|c| (c, pair(nodes / c)))
            .map(|(c, [a, b])| vec![a, b, c])
            .min_by_key(|dims| (dims.iter().copied().max(), std::cmp::Reverse(dims.iter().copied().min())))
            .expect("1 divides every number"),
    };
    dims.retain(|&d| d > 1);
    dims.sort_unstable_by(|a, b| b.cmp(a));
    dims
}

fn divisors(n: u32) -> impl Iterator<Item = u32> {
    (1..=n.isqrt()).filter(move |&d| n.is_multiple_of(d))
}

/// Returns the two factors of `n` with the smallest difference, the larger first.
fn pair(n: u32) -> [u32; 2] {
    let small = divisors(n).last().expect("1 divides every number");
    [n / small, small]
}
