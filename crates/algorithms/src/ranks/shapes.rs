//! The shapes of forests that a plan considers (roots, depths, numbers of chunks and pairs of ranks), and their
//! predicted times.

use unisono_base::{narrow, parallel};
use unisono_collective::Kind;
use unisono_lower::Trees;
use unisono_synthesis::{Fabric, NoForest, Roots, Runs};

use crate::{Case, ranks::Blocks};

/// The numbers of chunks that a plan considers. If all ranks see the same network (`CHUNKS_ALIKE`), few chunks keep all
/// links busy. Otherwise a block divides better among trees with more chunks. The block of a single root
/// (`CHUNKS_OF_ONE`) must be on many links at once.
const CHUNKS: [u32; 5] = [1, 4, 16, 64, 256];
const CHUNKS_ALIKE: [u32; 4] = [1, 2, 4, 8];
const CHUNKS_OF_ONE: [u32; 6] = [1, 4, 16, 64, 256, 1024];
/// The number of first entries of [`CHUNKS_OF_ONE`] that an allreduce through one rank omits. In it, sums go up while
/// results go down, so few chunks leave links idle.
const FEWEST_AT_ONCE: usize = 2;
/// The least bytes of a vector for which a plan considers an allreduce through one rank. The time of shorter vectors is
/// mostly latency. Vectors of this length gain if one host is slow.
const LEAST_BYTES_AT_ONCE: u64 = 1 << 16;
/// The most ranks for which a plan always considers a barrier through one rank. With more ranks, a plan considers it
/// only if some message arrives sooner over another rank.
const MOST_OF_BARRIER: u32 = 16;
/// The least bytes of a chunk if a block has more than [`FEW`] chunks: `LEAST_BYTES` for all roots,
/// `LEAST_BYTES_OF_ONE` for one root. Only long messages gain from many chunks.
const LEAST_BYTES: u64 = 1 << 15;
const LEAST_BYTES_OF_ONE: u64 = 1 << 12;
/// The least bytes of a chunk in a schedule of more than [`MOST_MESSAGES`] messages, if ranks see different networks
/// and a block has several chunks. A plan does not build such a schedule to time it, and its timetable alone ignores
/// costs of short messages.
const LEAST_BYTES_OF_LARGE: u64 = 1 << 13;
const FEW: u32 = 64;
/// The most messages of a forest that a plan considers if ranks see different networks and a block has several chunks:
/// from roots that see different networks (`MOST_MESSAGES`), from all roots (`MOST_SENT`), and from one root
/// (`MOST_MESSAGES_OF_ONE`).
const MOST_MESSAGES: u64 = 1 << 17;
const MOST_SENT: u64 = 1 << 20;
const MOST_MESSAGES_OF_ONE: u64 = 1 << 19;
/// A plan considers a depth if the busiest link of its forest takes at most this multiple of the time of the deepest
/// forest.
const WORTH: f64 = 1.25;

/// The shape of a forest. `depth` is the most messages on a path from a root to a rank, and `chunks` the number of
/// chunks of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    pub roots: Roots,
    pub depth: u32,
    pub chunks: u32,
    pub pairs: Pairs,
}

/// The pairs of ranks that exchange messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pairs {
    /// All pairs of ranks with a path between them that passes no other rank.
    All,
    /// Only near pairs ([`Fabric::near`]).
    Near,
}

impl Pairs {
    /// Returns the network restricted to messages of these pairs; `None` if near pairs are all pairs.
    pub fn of(self, fabric: &Fabric) -> Option<&Fabric> {
        match self {
            Self::All => Some(fabric),
            Self::Near => fabric.near(),
        }
    }
}

/// The properties of a shape that are given; a plan chooses the others.
#[derive(Clone, Copy, Default, Debug)]
pub struct Given {
    pub roots: Option<Roots>,
    pub depth: Option<u32>,
    pub chunks: Option<u32>,
    pub pairs: Option<Pairs>,
}

/// Returns the shapes with the given properties that a plan considers: shapes of all pairs of ranks, and shapes of near
/// pairs if their forests may end sooner.
///
/// # Errors
/// Returns an error if the network has no forest, or none of the given depth.
pub fn shapes(case: &Case, fabric: &Fabric, given: Given) -> Result<Vec<Shape>, NoForest> {
    let all_roots = |pairs| {
        let on = Pairs::of(pairs, fabric).ok_or(NoForest::Unreachable)?;
        let roots = given.roots.unwrap_or_else(|| roots(case));
        let short = through_short(case, on).filter(|_| given.roots.is_none());
        if case.collective.kind == Kind::Barrier && short.is_some() {
            return Ok(short.map(|(roots, depth)| Shape { roots, depth, chunks: 1, pairs }).into_iter().collect());
        }
        let mut found = shapes_of(case, (fabric, pairs), roots, (given.depth, given.chunks))?;
        if let Some(through) = through(case, on).filter(|_| given.roots.is_none()) {
            found.extend(shapes_of(case, (fabric, pairs), through, (None, None))?);
        }
        found.extend(short.map(|(roots, depth)| Shape { roots, depth, chunks: 1, pairs }));
        Ok(found)
    };
    match given.pairs {
        Some(pairs) => all_roots(pairs),
        None if case.collective.kind != Kind::Barrier && near_is_worth(case, fabric, given) => {
            let mut found = all_roots(Pairs::Near)?;
            found.extend(all_roots(Pairs::All)?);
            Ok(found)
        }
        None => all_roots(Pairs::All),
    }
}

/// Returns true if forests of near pairs may end sooner than forests of all pairs: their busiest link takes at most 1.1
/// times as long, and the search is short. Timetables cannot decide this, because they ignore the delay of messages
/// that meet at switches.
fn near_is_worth(case: &Case, fabric: &Fabric, given: Given) -> bool {
    const HARDLY: f64 = 1.1;
    let roots = given.roots.unwrap_or_else(|| roots(case));
    let time = |on: &Fabric| {
        let least = on.least_depth(roots).ok()?;
        let depth = given.depth.unwrap_or_else(|| on.usual_depth(roots, least));
        on.fluid_ns(roots, depth, case.bytes(1)).ok()
    };
    // For more ranks, trees are grown instead of packed. On boxes of GPUs, grown trees of near pairs were no faster,
    // and planning took three times as long.
    let is_small = fabric.is_cheap(roots) && fabric.is_cheap(Roots::Through(0));
    let near = if is_small { fabric.near() } else { None };
    near.and_then(time).is_some_and(|near| time(fabric).is_none_or(|all| near <= HARDLY * all))
}

/// Returns the shapes that a plan considers with the given roots and pairs.
fn shapes_of(
    case: &Case,
    (whole, pairs): (&Fabric, Pairs),
    roots: Roots,
    (depth, chunks): (Option<u32>, Option<u32>),
) -> Result<Vec<Shape>, NoForest> {
    let fabric = pairs.of(whole).ok_or(NoForest::Unreachable)?;
    let counts = chunks.map_or_else(|| counts(case, fabric, roots), |chunks| vec![chunks]);
    let shape = |depth, chunks| Shape { roots, depth, chunks, pairs };
    // The timetables of the most chunks take longest, so they begin first.
    let longest_first: Vec<u32> = counts.iter().rev().copied().collect();
    let time = |depth| {
        let times = parallel::map(&longest_first, |&chunks: &u32| time_ns(case, whole, shape(depth, chunks)));
        times.into_iter().flatten().fold(f64::INFINITY, f64::min)
    };
    let (mut depths, mut least) = (Vec::new(), f64::INFINITY);
    match depth {
        Some(depth) => depths.push(depth),
        // Each depth needs its own packing and timetables, so several depths are compared only if packing is cheap.
        None if fabric.is_cheap(roots) => {
            depths = fabric.depths(roots, fabric.least_depth(roots)?);
            least = deeper(case, fabric, roots, &mut depths, time);
        }
        None => depths.push(fabric.usual_depth(roots, fabric.least_depth(roots)?)),
    }
    let deepest = depths.last().map_or(0, |&depth| depth);
    // For long blocks, forests with a small depth may load some links too much, so the time of their busiest links is
    // compared.
    let bytes = message_bytes(case, roots, 1);
    let all_bytes = in_sequence(case, roots) * bytes;
    let is_worth = |&depth: &u32| {
        depth == deepest || fabric.fluid_ns(roots, depth, all_bytes).is_ok_and(|fluid| fluid <= WORTH * least)
    };
    let worth = depths.into_iter().filter(is_worth);
    let mut found: Vec<Shape> =
        worth.flat_map(|depth| counts.iter().map(move |&chunks| shape(depth, chunks))).collect();
    // Short blocks may arrive first over paths that pass more ranks.
    let is_open = depth.is_none() && counts.contains(&1) && fabric.relays_sooner() && fabric.is_cheap(roots);
    let soonest = if is_open { fabric.soonest_depth(roots, bytes) } else { None };
    found.extend(soonest.filter(|&depth| depth > deepest).map(|depth| shape(depth, 1)));
    Ok(found)
}

/// Adds depths to `depths`, each one message larger, as long as the forests end sooner. Returns the time of the last
/// depth in ns; infinity if only one depth is possible.
///
/// [`Fabric::depths`] ends at the depth beyond which the busiest link hardly gains. Messages of a deeper forest may
/// still share links less, which only timetables show. So depths are added if the timetable takes longer than the
/// busiest link, and if bytes rather than latencies decide the time. If all ranks are roots, no depths are added: no
/// network gained, and a timetable takes long.
fn deeper(case: &Case, fabric: &Fabric, roots: Roots, depths: &mut Vec<u32>, time: impl Fn(u32) -> f64) -> f64 {
    const FAR: std::ops::Range<f64> = 1.05..2.0;
    const SOONER: f64 = 0.98;
    let mut deepest = *depths.last().expect("the least depth");
    let most = if roots == Roots::All { deepest } else { case.collective.ranks - 1 };
    if depths.len() == 1 && deepest >= most {
        return f64::INFINITY;
    }
    let bytes = in_sequence(case, roots) * message_bytes(case, roots, 1);
    let is_far = |depth, ns: f64| fabric.fluid_ns(roots, depth, bytes).is_ok_and(|fluid| FAR.contains(&(ns / fluid)));
    let mut least = time(deepest);
    while deepest < most && is_far(deepest, least) {
        let next = time(deepest + 1);
        if next > least * SOONER {
            break;
        }
        (deepest, least) = (deepest + 1, next);
        depths.push(deepest);
    }
    least
}

/// Returns the rank through which a barrier or an allreduce of a short vector ends first, with the depth of its tree.
/// `None` for other collectives, for fewer than 3 ranks, and if the search takes long. For an allreduce, and for a
/// barrier of more than [`MOST_OF_BARRIER`] ranks, also `None` if no message arrives sooner over another rank.
fn through_short(case: &Case, fabric: &Fabric) -> Option<(Roots, u32)> {
    let c = &case.collective;
    let (is_barrier, bytes) = (c.kind == Kind::Barrier, case.bytes(c.elements));
    let is_short = c.kind == Kind::Allreduce && bytes < LEAST_BYTES_AT_ONCE && fabric.relays_sooner();
    let is_tried = is_barrier && (c.ranks <= MOST_OF_BARRIER || fabric.relays_sooner()) || is_short;
    if c.ranks < 3 || !is_tried {
        return None;
    }
    let middle = fabric.middle(bytes)?;
    Some((middle, fabric.soonest_depth(middle, bytes)?))
}

/// Returns the rank with the least depth if an allreduce through this rank ends at least 2 % sooner than an allreduce
/// in which every rank sums a block. Both are compared by their busiest links only. `None` also for other collectives,
/// for a short vector, for fewer than 3 ranks, and if the search takes long.
fn through(case: &Case, fabric: &Fabric) -> Option<Roots> {
    const SOONER: f64 = 0.98;
    let c = &case.collective;
    let ends = (0..c.ranks).map(Roots::Through);
    let is_long = case.bytes(c.elements) >= LEAST_BYTES_AT_ONCE;
    if c.kind != Kind::Allreduce || c.ranks < 3 || !is_long || !fabric.is_cheap(Roots::Through(0)) {
        return None;
    }
    // The trees to each rank load links equally, so the rank with the least depth is best.
    let middle = ends.min_by_key(|&roots| fabric.least_depth(roots).unwrap_or(u32::MAX))?;
    let fluid_ns = |roots, block: u32| {
        let least = fabric.least_depth(roots).ok()?;
        fabric.fluid_ns(roots, fabric.usual_depth(roots, least), case.bytes(block)).ok()
    };
    let apart = 2.0 * fluid_ns(Roots::All, blocks(case, Roots::All).block(0).len).unwrap_or(f64::INFINITY);
    fluid_ns(middle, c.elements).filter(|&at_once| at_once < SOONER * apart).map(|_| middle)
}

/// Returns the shape whose forest is predicted to end first; of nearly equal times the first shape.
///
/// # Errors
/// Returns an error if a forest is not found.
pub fn quickest(case: &Case, fabric: &Fabric, shapes: &[Shape]) -> Result<Shape, NoForest> {
    const EQUAL: f64 = 1e-3;
    let [first, others @ ..] = shapes else { return Err(NoForest::Unreachable) };
    if others.is_empty() {
        return Ok(*first);
    }
    let (mut best, mut least) = (*first, time_ns(case, fabric, *first)?);
    for shape in others {
        let ns = time_ns(case, fabric, *shape)?;
        if ns < least * (1.0 - EQUAL) {
            (best, least) = (*shape, ns);
        }
    }
    Ok(best)
}

/// Returns the predicted time of a forest in ns, including the work and the reductions of hosts.
fn time_ns(case: &Case, fabric: &Fabric, shape: Shape) -> Result<f64, NoForest> {
    let ranks = case.ranks();
    Ok(trees(case, fabric, shape)?.time_ns(ranks.issue_ns, ranks.signal_ns, ranks.reduce_ns_per_byte))
}

/// Returns the data from which the time of a forest is computed.
///
/// # Errors
/// Returns an error if the forest is not found.
pub fn trees(case: &Case, fabric: &Fabric, shape: Shape) -> Result<Trees, NoForest> {
    let Shape { roots, depth, chunks, pairs } = shape;
    let fabric = pairs.of(fabric).ok_or(NoForest::Unreachable)?;
    let (c, bytes) = (&case.collective, message_bytes(case, roots, chunks));
    let forest = fabric.forest(roots, Some(depth), chunks, bytes)?;
    let runs = runs(c.kind);
    let ways = narrow::<u32>(runs.len());
    let end_ns = match roots {
        Roots::Through(root) => fabric.through_ns(root, Some(depth), chunks, bytes)?,
        _ => {
            let ends = runs.iter().map(|&runs| fabric.end_ns(roots, Some(depth), chunks, bytes, runs));
            ends.sum::<Result<f64, NoForest>>()?
        }
    };
    let received = u64::from(forest.chunks) * roots.list(c.ranks).len() as u64;
    let reduces = u64::from(c.kind.reduces());
    Ok(Trees {
        end_ns,
        messages: ways * forest.depth,
        messages_of_rank: u64::from(ways) * (received + forest.most_sends),
        reduced: reduces * forest.most_sends * bytes,
    })
}

/// Returns true if every rank gets the sum of the vectors of all ranks. A barrier is an allreduce of one element.
pub fn sums_for_all(kind: Kind) -> bool {
    matches!(kind, Kind::Allreduce | Kind::Barrier)
}

/// Returns the number of directions in which a collective uses the trees of `roots`, one after the other.
fn in_sequence(case: &Case, roots: Roots) -> u64 {
    if matches!(roots, Roots::Through(_)) { 1 } else { runs(case.collective.kind).len() as u64 }
}

/// Returns the directions in which a collective uses its trees, in sequence.
fn runs(kind: Kind) -> &'static [Runs] {
    match kind {
        _ if sums_for_all(kind) => &[Runs::Up, Runs::Down],
        _ if kind.reduces() => &[Runs::Up],
        _ => &[Runs::Down],
    }
}

/// Returns the numbers of chunks that a plan considers, ascending; empty if the links of the machine are not known, or
/// if the search for a forest takes long.
pub fn chunk_counts(case: &Case) -> Vec<u32> {
    let Some(fabric) = case.fabric() else { return Vec::new() };
    let roots = roots(case);
    if fabric.is_cheap(roots) || fabric.is_affordable(roots) { counts(case, fabric, roots) } else { Vec::new() }
}

/// Returns the numbers of chunks that a plan considers for the given roots.
fn counts(case: &Case, fabric: &Fabric, roots: Roots) -> Vec<u32> {
    let is_one = roots != Roots::All;
    if !is_one && !fabric.is_cheap(roots) {
        // A forest with more chunks takes long to find, so a plan considers more chunks only if the user states their
        // number.
        return vec![1];
    }
    let counts: &[u32] = match (is_one, fabric.is_alike(roots)) {
        (true, _) if matches!(roots, Roots::Through(_)) => &CHUNKS_OF_ONE[FEWEST_AT_ONCE..],
        (true, _) => &CHUNKS_OF_ONE,
        (false, true) => &CHUNKS_ALIKE,
        (false, false) => &CHUNKS,
    };
    let most = blocks(case, roots).block(0).len.max(1);
    let least = if is_one { LEAST_BYTES_OF_ONE } else { LEAST_BYTES };
    let bytes = |chunks: u32| message_bytes(case, roots, chunks);
    let long = |chunks: u32| chunks <= FEW || bytes(chunks) >= least;
    let others = u64::from(case.collective.ranks - 1);
    let timed = u64::from(fabric.unlike_roots(roots)) * others;
    let sent = roots.list(case.collective.ranks).len() as u64 * others;
    let messages = if is_one { MOST_MESSAGES_OF_ONE } else { MOST_MESSAGES };
    let few = |chunks: u32| {
        let is_known = u64::from(chunks) * sent <= MOST_MESSAGES || bytes(chunks) >= LEAST_BYTES_OF_LARGE;
        let chunks = u64::from(chunks);
        chunks == 1 || fabric.is_alike(roots) || is_known && chunks * timed <= messages && chunks * sent <= MOST_SENT
    };
    let list = roots.list(case.collective.ranks).len() as u64;
    let crowded = |chunks: u32| chunks > 1 && fabric.is_crowded(u64::from(chunks) * list, bytes(chunks));
    let is_listed = |chunks: u32| chunks <= most && long(chunks) && few(chunks) && !crowded(chunks);
    counts.iter().copied().filter(|&chunks| is_listed(chunks)).collect()
}

/// Returns the bytes of the longest message of a forest with `chunks` chunks.
pub fn message_bytes(case: &Case, roots: Roots, chunks: u32) -> u64 {
    case.bytes(blocks(case, roots).block(0).len.div_ceil(chunks))
}

/// Returns the blocks of the vector that roots own: one block per rank in an allreduce with all roots, otherwise one
/// block.
pub fn blocks(case: &Case, roots: Roots) -> Blocks {
    let c = &case.collective;
    match c.kind {
        _ if sums_for_all(c.kind) && roots == Roots::All => Blocks::new(c.elements, c.ranks),
        _ => Blocks::new(c.elements, 1),
    }
}

pub fn roots(case: &Case) -> Roots {
    if case.collective.kind.has_root() { Roots::One(case.collective.root) } else { Roots::All }
}
