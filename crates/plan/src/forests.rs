//! The forest of a plan as trees of nodes of its network, and the times of forests by depth.

use serde::Serialize;
use unisono_algorithms::{AlgorithmError, Params};
use unisono_base::interrupt;
use unisono_collective::Kind;
use unisono_cost::network::NetworkPart;
use unisono_synthesis::{Fabric, NoForest, Roots};

use crate::{Plan, PlanError, Problem, Timed, candidates::time_and_spare};

const NAME: &str = "forest";
/// The depths in a [`Front`], as differences from the least depth.
const MORE: [u32; 8] = [0, 1, 2, 3, 4, 6, 10, 18];
/// The numbers of chunks in a [`Front`].
const CHUNKS: [u32; 5] = [1, 4, 16, 64, 256];
/// The most messages of a forest in a [`Front`].
const MOST_MESSAGES: u64 = 1 << 18;
/// More depth is not tried if the time of a packing is at most this multiple of its time at unlimited depth.
const NEAR: f64 = 1.001;

/// The trees of one root. Nodes are numbered as in the plane.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ForestTrees {
    /// The rank from which the trees lead to all other ranks. Reductions run in the opposite direction.
    pub root: u32,
    /// The most messages on a path from a root to a rank, over the trees of all roots.
    pub depth: u32,
    /// The number of chunks of the root's block.
    pub chunks: u32,
    /// The node of each rank.
    pub places: Vec<u32>,
    /// Each link: its two nodes, and its rate in Gbit/s summed over all planes.
    pub links: Vec<(u32, u32, f64)>,
    /// The distinct trees. The tree that most chunks use comes first.
    pub trees: Vec<ChunkTree>,
}

/// A tree with the number of chunks that use it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ChunkTree {
    pub chunks: u32,
    /// The nodes on the path of each message, from one rank to another. A message comes after the message that reaches
    /// its first node.
    pub messages: Vec<Vec<u32>>,
}

/// Times of forests by their depth.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Front {
    /// The time in seconds at unlimited depth, with chunks of any size and links without latency. `None` if the network
    /// looks alike from all ranks, because then no forest needs more than the least depth.
    pub fluid_seconds: Option<f64>,
    pub points: Vec<FrontPoint>,
}

/// The forests of one limit on the depth.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FrontPoint {
    pub depth: u32,
    /// The time of [`Front::fluid_seconds`] for trees of at most this depth.
    pub fluid_seconds: Option<f64>,
    /// The number of chunks and the predicted time in seconds of each forest.
    pub forests: Vec<(u32, f64)>,
}

fn unsupported(reason: impl ToString) -> PlanError {
    AlgorithmError::Unsupported { algorithm: NAME, reason: reason.to_string() }.into()
}

/// Returns the problem's part of a network, and the roots of the collective's forests.
fn part_of(problem: &Problem) -> Result<(&NetworkPart, Roots), PlanError> {
    let c = &problem.collective;
    let part = problem.target.part().downcast_ref::<NetworkPart>();
    let part = part.ok_or_else(|| unsupported("it needs the links of a network"))?;
    if c.is_local() {
        return Err(unsupported("no rank sends anything"));
    }
    Ok((part, if c.kind.has_root() { Roots::One(c.root) } else { Roots::All }))
}

/// Returns the network in which only near ranks exchange messages if the best candidate is a forest for it, otherwise
/// the whole network.
fn fabric_of<'a>(part: &'a NetworkPart, best: &Timed) -> &'a Fabric {
    let is_near = best.algorithm.name() == NAME && best.params.get("pairs") == Some("near");
    part.fabric.near().filter(|_| is_near).unwrap_or(&part.fabric)
}

impl Plan {
    /// Returns the trees of one root of the best candidate; without `root`, those of the first root.
    ///
    /// # Errors
    /// Returns an error if the best candidate is not a forest, or has no such root.
    pub fn forest(&self, root: Option<u32>) -> Result<ForestTrees, PlanError> {
        let (problem, best) = (&self.problem, self.best());
        if best.algorithm.name() != NAME {
            return Err(unsupported(format!("the plan is {}, which has no trees of it", best.algorithm.name())));
        }
        let (part, roots) = part_of(problem)?;
        let through = best.params.get("through").is_some_and(|value| value != "none");
        let through = if through { best.params.number(NAME, "through", 0..=u32::MAX)? } else { None };
        let roots = through.map_or(roots, Roots::Through);
        let list = roots.list(problem.collective.ranks);
        let root = root.unwrap_or(list[0]);
        if !list.contains(&root) {
            return Err(unsupported(format!("rank {root} is no root of {}", problem.collective.kind)));
        }
        let number = |name| best.params.number(NAME, name, 1..=u32::MAX);
        let chunks = number("chunks")?.unwrap_or(1);
        let (fabric, depth) = (fabric_of(part, best), number("depth")?);
        let c = problem.collective;
        let is_share = matches!(c.kind, Kind::Allreduce | Kind::Barrier) && roots == Roots::All;
        let block = if is_share { c.elements.div_ceil(c.ranks) } else { c.elements };
        let bytes = u64::from(block.div_ceil(chunks)) * c.element_bytes();
        let forest = fabric.forest(roots, depth, chunks, bytes).map_err(unsupported)?;
        let graph = fabric.graph();
        let mut trees: Vec<ChunkTree> = Vec::new();
        for chunk in 0..forest.chunks {
            let messages = forest.ways(fabric.routed(), root, chunk);
            match trees.iter_mut().find(|tree| tree.messages == messages) {
                Some(tree) => tree.chunks += 1,
                None => trees.push(ChunkTree { chunks: 1, messages }),
            }
        }
        trees.sort_by_key(|tree| std::cmp::Reverse(tree.chunks));
        let gbps = |rate: u64| rate as f64 * graph.bytes_per_ns() * 8.0;
        let links = graph.arcs().iter().map(|arc| (graph.place(arc.from), graph.place(arc.to), gbps(arc.rate)));
        let (depth, chunks, places) = (forest.depth, forest.chunks, part.model.places().to_vec());
        Ok(ForestTrees { root, depth, chunks, places, links: links.collect(), trees })
    }

    /// Returns the times of forests by depth, from the least depth to the depth beyond which the time hardly falls. The
    /// best candidate need not be a forest. If it is a forest, only the pairs of ranks of this forest exchange
    /// messages.
    ///
    /// # Errors
    ///
    /// Returns an error if the machine is not a network, the collective has no forests, or no forest is found.
    pub fn front(&self) -> Result<Front, PlanError> {
        let problem = &self.problem;
        let c = problem.collective;
        let (part, roots) = part_of(problem)?;
        let fabric = fabric_of(part, self.best());
        let (block, ways) = match c.kind {
            Kind::Allreduce | Kind::Barrier => (c.elements.div_ceil(c.ranks), 2),
            _ => (c.elements, 1),
        };
        let bytes = f64::from(block) * c.element_bytes() as f64;
        let seconds = |time: f64| f64::from(ways) * time * bytes / fabric.graph().bytes_per_ns() * 1e-9;
        let refused = |reason: NoForest| match reason {
            NoForest::OverLimit(over) => PlanError::OverLimit(over),
            reason => unsupported(reason),
        };
        let least = fabric.least_depth(roots).map_err(refused)?;
        let alike = fabric.is_alike(roots);
        let fluid = |depth| if alike { Ok(None) } else { fabric.packing(roots, depth).map(|found| Some(found.time)) };
        let free = fluid(None).map_err(refused)?;
        let is_near = !std::ptr::eq(fabric, &raw const part.fabric);
        let pairs = if is_near { Params::new().with("pairs", "near") } else { Params::new() };
        let mut points = Vec::new();
        for depth in MORE.map(|more| least + more).into_iter().filter(|&depth| depth < c.ranks) {
            interrupt::check();
            let time = fluid(Some(depth)).map_err(refused)?;
            // If the network looks alike from all ranks, the messages of one root represent the messages of all roots.
            let roots = if alike { 1 } else { roots.list(c.ranks).len() as u64 };
            let sent = roots * u64::from(c.ranks - 1);
            let mut forests = Vec::new();
            for chunks in CHUNKS.into_iter().filter(|&n| n <= block && u64::from(n) * sent <= MOST_MESSAGES) {
                let params = pairs.clone().with("depth", depth).with("chunks", chunks);
                let (algorithm, params) = problem.target.resolve(c, NAME, &params)?;
                forests.push((chunks, time_and_spare(problem, algorithm, &params)?.time.seconds));
            }
            points.push(FrontPoint { depth, fluid_seconds: time.map(seconds), forests });
            if time.zip(free).is_none_or(|(time, free)| time <= free * NEAR) {
                break;
            }
        }
        Ok(Front { fluid_seconds: free.map(seconds), points })
    }
}
