//! Forests of whole chunks: the block of every root is cut into equal chunks, each of which travels on one tree.

use unisono_base::interrupt::poll;

use crate::{Graph, Runs, jobs::Sending, replay::HostWork, root_trees::RootTrees, sums::Hosts, translated::Translated};

/// One tree for each chunk of each root.
#[derive(Clone, Debug)]
pub struct Forest {
    /// The number of chunks of each root's block.
    pub chunks: u32,
    /// The maximum number of edges on a path from a root to a rank.
    pub depth: u32,
    /// The busy time of the busiest arc, for blocks of one unit.
    pub time: f64,
    /// The maximum number of chunks that a rank sends; a chunk counts once for each receiver.
    pub most_sends: u64,
    pub(crate) trees: Trees,
}

#[derive(Clone, Debug)]
pub(crate) enum Trees {
    RootTrees(RootTrees),
    /// The trees of rank 0; every root has their images.
    Translated(Translated),
}

/// One message of a forest: a chunk of a root's block, sent from one rank to another.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Message {
    /// The start, as a multiple of the time of a chunk on an arc of rate 1; in a reduction ([`Runs::Up`]) counted back
    /// from the end.
    pub begin: f64,
    pub root: u32,
    pub chunk: u32,
    pub edge: TreeEdge,
}

/// One edge of a tree, from one rank to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TreeEdge {
    pub from: u32,
    pub to: u32,
    /// The first and the last link of its path, as numbers that differ for different links of a rank.
    pub ends: [u32; 2],
}

/// The start of each message of a forest, in the order of roots, chunks and edges, and the last arrival, as multiples
/// of the time of a chunk on an arc of rate 1. Equivalent roots are listed once.
#[derive(Debug)]
pub struct Times {
    begins: Vec<f64>,
    pub end: f64,
}

impl Forest {
    /// Returns a forest of listed trees. `time` is the busy time of the busiest arc.
    pub(crate) fn listed(ranks: u32, chunks: u32, listed: RootTrees, time: f64) -> Self {
        let trees = || listed.of.iter().flatten();
        let depth = trees().map(|tree| tree.depth).max().unwrap_or(0);
        // Shifts map the listed trees to all roots, so each rank sends as much as its class does in listed trees.
        let mut sends = vec![0_u64; ranks as usize];
        let home = |rank| listed.symmetry.home(rank).0;
        trees().flat_map(|tree| &tree.edges).for_each(|edge| sends[home(edge.from) as usize] += 1);
        let most_sends = sends.into_iter().max().unwrap_or(0);
        Self { chunks, depth, time, most_sends, trees: Trees::RootTrees(listed) }
    }

    /// Returns the edges of a chunk's tree. Each edge comes after the edge that reaches its start.
    pub fn edges(&self, root: u32, chunk: u32) -> Vec<TreeEdge> {
        match &self.trees {
            Trees::RootTrees(trees) => trees.edges(root, chunk),
            Trees::Translated(trees) => trees.edges(root, chunk),
        }
    }

    /// Returns the nodes on the path of each of a chunk's messages, ends included, in the order of [`Forest::edges`].
    /// `graph` is [`crate::Fabric::routed`]; nodes are numbered as in the plane.
    pub fn ways(&self, graph: &Graph, root: u32, chunk: u32) -> Vec<Vec<u32>> {
        match &self.trees {
            Trees::RootTrees(trees) => trees.ways(graph, root, chunk),
            Trees::Translated(trees) => {
                let way = |edge: &TreeEdge| [edge.from, edge.to].map(|rank| graph.place(rank)).to_vec();
                trees.edges(root, chunk).iter().map(way).collect()
            }
        }
    }

    /// Returns the times of all messages. A chunk is one unit. The latency of an arc is the largest latency in `hops`
    /// among the arcs of its symmetry class; it is `hop` if `hops` is `None` or the trees are [`Trees::Translated`].
    /// `sums` is the rate at which a host adds received data, if this takes time, and `work` its work on each message.
    /// With [`Runs::Up`], begins count back from the end. `down` is the timetable of [`Runs::Down`] without `sums`, if
    /// it is known.
    pub(crate) fn times(
        &self,
        graph: &Graph,
        (hop, hops): (f64, Option<&[f64]>),
        sending: Option<Sending>,
        (runs, down): (Runs, Option<&Times>),
        (sums, work): (Option<f64>, Option<HostWork>),
    ) -> Times {
        let links = match &self.trees {
            Trees::RootTrees(trees) => trees.symmetry.classes(),
            Trees::Translated(trees) => trees.links(),
        };
        let mut hosts = sums.map(|_| Hosts::new(links));
        let (jobs, mut rates) = match &self.trees {
            Trees::RootTrees(trees) => trees.jobs(graph, sending, hosts.as_mut()),
            Trees::Translated(trees) => trees.jobs(sending, hosts.as_mut()),
        };
        let mut hops = match (&self.trees, hops) {
            (Trees::RootTrees(trees), Some(hops)) => trees.symmetry.largest(hops),
            _ => vec![hop; links],
        };
        rates.resize(links + hosts.as_ref().map_or(0, Hosts::count), sums.unwrap_or(1.0));
        hops.resize(rates.len(), 0.0);
        let mut begins = down.map_or_else(|| jobs.begins(&rates, &hops), |down| down.begins.clone());
        if runs == Runs::Up {
            begins = jobs.begins_backwards(&begins, &rates, &hops);
        }
        let end = jobs.end(&begins, (&rates, &hops), runs, work);
        if runs == Runs::Up {
            // Begins are converted here, so that they count back from the end. A begin may be later than `end`, because
            // the timetable expects data later than it arrives.
            let latest = begins.iter().copied().fold(end, f64::max);
            begins.iter_mut().for_each(|begin| *begin = latest - *begin);
        }
        if let Some(hosts) = &hosts {
            begins = hosts.messages.iter().map(|&job| begins[job as usize]).collect();
        }
        Times { begins, end }
    }

    pub(crate) fn messages(&self, ranks: u32, times: &Times) -> Vec<Message> {
        let roots: Vec<u32> = match &self.trees {
            Trees::RootTrees(trees) => trees.all(ranks),
            Trees::Translated(_) => (0..ranks).collect(),
        };
        let of_root = self.chunks as usize * (ranks as usize - 1);
        let mut messages = Vec::with_capacity(roots.len() * of_root);
        for root in roots {
            let own = match &self.trees {
                Trees::RootTrees(trees) => trees.place(root).map_or(0, |(at, _)| at),
                Trees::Translated(_) => 0,
            };
            let mut begins = times.begins[own * of_root..].iter();
            for chunk in 0..self.chunks {
                for (edge, &begin) in self.edges(root, chunk).into_iter().zip(&mut begins) {
                    poll();
                    messages.push(Message { begin, root, chunk, edge });
                }
            }
        }
        messages.sort_by(|a, b| a.begin.total_cmp(&b.begin));
        messages
    }
}
