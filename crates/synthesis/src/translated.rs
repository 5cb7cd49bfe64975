//! Forests on networks that look alike from every rank, such as tori: one set of trees, moved to every root.
//!
//! On such a network (a Cayley graph of a product of cyclic groups) the arcs that leave a node differ by their *step*,
//! the difference of the ranks at their ends. If a tree is moved to all roots, the images load each arc of a step with
//! as many blocks as the tree has arcs of this step. The busiest arc is therefore found by counting, and the program of
//! [`crate::packing`] becomes small: every rank receives each chunk by one of the steps from ranks nearer to the root,
//! and a flow assigns ranks to steps. All trees have the least depth.

use rustc_hash::FxHashMap;
use unisono_base::{interrupt::poll, narrow};

use crate::{
    Forest, Graph,
    flow::Flow,
    forest::{TreeEdge, Trees},
    jobs::{Jobs, Sending, Work},
    sums::{Hosts, Sum},
};

/// The steps of a network that looks alike from every rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Steps {
    /// The extent of each coordinate of ranks, row-major.
    dims: Vec<u32>,
    /// The coordinates of each step, with the rate of its arcs.
    of: Vec<(Vec<u32>, u64)>,
    /// The minimum number of arcs from rank 0 to each rank.
    distance: Vec<u32>,
}

/// The maximum number of steps of a network whose forests are found by counting; a mask of steps has 64 bits.
const MOST_STEPS: usize = 64;

impl Steps {
    /// Finds the steps. Ranks are numbered row-major in the extents `dims`. Returns `None` if there are relays, fewer
    /// than two ranks or more than [`MOST_STEPS`] steps, if `dims` have another number of ranks, or if ranks have
    /// different steps or are not all reached.
    pub(crate) fn find(graph: &Graph, dims: &[u32]) -> Option<Self> {
        let ranks = graph.ranks();
        let product: u64 = dims.iter().map(|&d| u64::from(d)).product();
        if graph.nodes() != ranks || product != u64::from(ranks) || ranks < 2 {
            return None;
        }
        let known: FxHashMap<u32, u64> = graph
            .leaving(0)
            .iter()
            .map(|&arc| (graph.arcs()[arc as usize].to, graph.arcs()[arc as usize].rate))
            .collect();
        if known.len() > MOST_STEPS {
            return None;
        }
        for rank in 0..ranks {
            poll();
            let here = coordinates(rank, dims);
            let same = |&arc: &u32| {
                let arc = graph.arcs()[arc as usize];
                known.get(&minus(arc.to, &here, dims)) == Some(&arc.rate)
            };
            if graph.leaving(rank).len() != known.len() || !graph.leaving(rank).iter().all(same) {
                return None;
            }
        }
        let mut of: Vec<(u32, u64)> = known.into_iter().collect();
        of.sort_unstable();
        let of = of.into_iter().map(|(to, rate)| (coordinates(to, dims), rate)).collect();
        let mut steps = Self { dims: dims.to_vec(), of, distance: Vec::new() };
        steps.distance = steps.distances(ranks);
        (!steps.distance.contains(&u32::MAX)).then_some(steps)
    }

    fn distances(&self, ranks: u32) -> Vec<u32> {
        let mut distance = vec![u32::MAX; ranks as usize];
        distance[0] = 0;
        let (mut queue, mut k) = (vec![0], 0);
        while let Some(&at) = queue.get(k) {
            k += 1;
            let here = coordinates(at, &self.dims);
            for (step, _) in &self.of {
                let to = plus(&here, step, &self.dims);
                if distance[to as usize] == u32::MAX {
                    distance[to as usize] = distance[at as usize] + 1;
                    queue.push(to);
                }
            }
        }
        distance
    }

    pub(crate) fn count(&self) -> usize {
        self.of.len()
    }

    pub(crate) fn rates(&self) -> Vec<f64> {
        self.of.iter().map(|&(_, rate)| rate as f64).collect()
    }

    /// Returns the image of `rank` under the shift that moves rank 0 to `by`.
    pub(crate) fn moved(&self, rank: u32, by: u32) -> u32 {
        plus(&coordinates(rank, &self.dims), &coordinates(by, &self.dims), &self.dims)
    }

    /// Returns the step of the arc from one rank to another.
    ///
    /// # Panics
    /// Panics if there is no such arc.
    pub(crate) fn step(&self, from: u32, to: u32) -> u32 {
        let step = coordinates(minus(to, &coordinates(from, &self.dims), &self.dims), &self.dims);
        narrow(self.of.iter().position(|(of, _)| *of == step).expect("an arc of the network"))
    }

    pub(crate) fn depth(&self) -> u32 {
        self.distance.iter().copied().max().unwrap_or(0)
    }

    /// Returns the forest of `chunks` chunks of each root's block. Among all forests of least depth, it is a forest
    /// whose busiest step ends earliest.
    pub(crate) fn forest(&self, chunks: u32) -> Forest {
        let groups = self.groups();
        let (quotas, time) = self.quotas(&groups, chunks);
        let ranks = self.distance.len();
        let mut taken = vec![0_u8; ranks * chunks as usize];
        for (group, quota) in groups.iter().zip(quotas) {
            let slots: u64 = quota.iter().sum();
            let mut used = vec![0_u64; quota.len()];
            let mut at = 0_u64;
            // Nearer ranks come first. Steps are used in proportion to their quotas, so that every level of the tree
            // uses all steps.
            for &rank in &group.ranks {
                poll();
                for chunk in 0..chunks {
                    at += 1;
                    let behind = |k: &usize| i128::from(quota[*k]) * i128::from(at) - i128::from(used[*k] * slots);
                    let open = (0..quota.len()).filter(|&k| used[k] < quota[k]);
                    let step = open.max_by_key(behind).expect("as many slots as chunks");
                    used[step] += 1;
                    taken[(rank * chunks + chunk) as usize] = narrow(step);
                }
            }
        }
        let mut order: Vec<u32> = (0..narrow(ranks)).collect();
        order.sort_by_key(|&rank| self.distance[rank as usize]);
        let depth = self.depth();
        let trees = Translated { steps: self.clone(), chunks, taken, order };
        let most_sends = (ranks as u64 - 1) * u64::from(chunks);
        Forest { chunks, depth, time, most_sends, trees: Trees::Translated(trees) }
    }

    /// Groups all ranks except rank 0 by the steps on which ranks nearer to rank 0 send to them. The ranks of a group
    /// are sorted by their distance from rank 0.
    fn groups(&self) -> Vec<Group> {
        let mut groups: FxHashMap<u64, Vec<u32>> = FxHashMap::default();
        for rank in 1..narrow::<u32>(self.distance.len()) {
            poll();
            let here = coordinates(rank, &self.dims);
            let nearer = |(step, _): &(Vec<u32>, u64)| {
                let from = less(&here, step, &self.dims);
                self.distance[from as usize] + 1 == self.distance[rank as usize]
            };
            let mask = self.of.iter().enumerate().filter(|(_, step)| nearer(step)).fold(0, |m, (k, _)| m | 1 << k);
            groups.entry(mask).or_default().push(rank);
        }
        let mut groups: Vec<Group> = groups.into_iter().map(|(steps, ranks)| Group { steps, ranks }).collect();
        groups.sort_by_key(|group| group.steps);
        for group in &mut groups {
            group.ranks.sort_by_key(|&rank| self.distance[rank as usize]);
        }
        groups
    }

    /// Returns, for each group, how many of its chunks arrive by each step so that the busiest step ends earliest, and
    /// the time of that step for blocks of one unit.
    fn quotas(&self, groups: &[Group], chunks: u32) -> (Vec<Vec<u64>>, f64) {
        let steps = self.of.len();
        let (source, sink) = (groups.len() + steps, groups.len() + steps + 1);
        let all: u64 = groups.iter().map(|g| g.ranks.len() as u64 * u64::from(chunks)).sum();
        let rates: u64 = self.of.iter().map(|(_, rate)| rate).sum();
        // `most` is the number of chunks that each step carries in the time `top / bottom`, rounded down. The loop
        // finds the least time that carries all chunks.
        let (mut top, mut bottom) = (u128::from(all), u128::from(rates));
        loop {
            poll();
            let most: Vec<u128> = self.of.iter().map(|&(_, rate)| u128::from(rate) * top / bottom).collect();
            let mut flow = Flow::new(sink + 1);
            for (at, group) in groups.iter().enumerate() {
                let slots = group.ranks.len() as u128 * u128::from(chunks);
                flow.arc(source, at, slots);
                for step in (0..steps).filter(|step| group.steps >> step & 1 == 1) {
                    flow.arc(at, groups.len() + step, slots);
                }
            }
            for (step, &most) in most.iter().enumerate() {
                flow.arc(groups.len() + step, sink, most);
            }
            if flow.largest(source, sink) == u128::from(all) {
                let mut arc = 0;
                let mut quotas = vec![vec![0; steps]; groups.len()];
                for (group, quota) in groups.iter().zip(&mut quotas) {
                    arc += 1;
                    for step in (0..steps).filter(|step| group.steps >> step & 1 == 1) {
                        quota[step] = narrow(flow.carried(arc));
                        arc += 1;
                    }
                }
                let time = (0..steps).map(|step| {
                    let carried: u64 = quotas.iter().map(|quota| quota[step]).sum();
                    carried as f64 / self.of[step].1 as f64
                });
                let time = time.fold(0.0, f64::max) / f64::from(chunks);
                return (quotas, time);
            }
            // The steps on the source's side of the cut carry as many chunks as they can, so they need more time. The
            // next time tried is the earliest time at which one of these steps carries one more chunk.
            let side = flow.side(source);
            let full = (0..steps).filter(|step| side[groups.len() + step]);
            let next = full.map(|step| (most[step] + 1, u128::from(self.of[step].1)));
            let least = next.reduce(|a, b| if b.0 * a.1 < a.0 * b.1 { b } else { a });
            (top, bottom) = least.expect("a step that limits the flow");
        }
    }
}

/// Ranks to which ranks nearer to rank 0 send by the same steps.
struct Group {
    /// The steps as a mask: bit k stands for step k.
    steps: u64,
    ranks: Vec<u32>,
}

/// The trees of rank 0, whose images are the trees of every root.
#[derive(Clone, Debug)]
pub(crate) struct Translated {
    steps: Steps,
    chunks: u32,
    /// The step by which rank r receives chunk c of rank 0, at index `r * chunks + c`.
    taken: Vec<u8>,
    /// The ranks, sorted by their distance from rank 0.
    order: Vec<u32>,
}

impl Translated {
    pub(crate) fn links(&self) -> usize {
        self.steps.of.len()
    }

    /// Returns the messages of rank 0's block, and the rates of the steps. The images of a message load all links of a
    /// step equally, so one link stands for each step. With `hosts`, each message follows its sum.
    pub(crate) fn jobs(&self, sending: Option<Sending>, mut hosts: Option<&mut Hosts>) -> (Jobs, Vec<f64>) {
        let dims = &self.steps.dims;
        let mut jobs = Jobs::default();
        let steps = narrow::<u32>(self.steps.of.len());
        let classes: Vec<u32> = (0..steps).map(|step| jobs.class(&[step])).collect();
        classes.iter().for_each(|&class| jobs.worked_on(class, Work::Message([0, 0])));
        if let Some(Sending { machines, held }) = sending.filter(|sending| sending.machines < steps) {
            let sender = jobs.sender(machines);
            classes.iter().for_each(|&class| jobs.sent_by(class, sender, held));
        }
        for chunk in 0..self.chunks {
            let mut brings = vec![None; self.order.len()];
            let way = |rank: u32| {
                let step = self.taken[(rank * self.chunks + chunk) as usize];
                (step, less(&coordinates(rank, dims), &self.steps.of[usize::from(step)].0, dims))
            };
            if let Some(hosts) = &mut hosts {
                hosts.tree(self.order[1..].iter().map(|&rank| way(rank).1));
            }
            for &rank in &self.order[1..] {
                let (step, from) = way(rank);
                let (mut after, class) = (brings[from as usize], classes[usize::from(step)]);
                if let Some(hosts) = &mut hosts {
                    let sum = Sum { rank: from, host: 0, at_root: from == 0, class, after, turn: 0.0 };
                    after = Some(hosts.sum(&mut jobs, &sum));
                }
                let job = jobs.add(after, class);
                brings[rank as usize] = Some(job);
                if let Some(hosts) = &mut hosts {
                    hosts.messages.push(job);
                }
            }
        }
        (jobs, self.steps.of.iter().map(|&(_, rate)| rate as f64).collect())
    }

    pub(crate) fn edges(&self, root: u32, chunk: u32) -> Vec<TreeEdge> {
        let dims = &self.steps.dims;
        let root = coordinates(root, dims);
        let edge = |&rank: &u32| {
            let step = self.taken[(rank * self.chunks + chunk) as usize];
            let ends = [u32::from(step); 2];
            let step = &self.steps.of[usize::from(step)].0;
            let here = coordinates(rank, dims);
            let from = coordinates(less(&here, step, dims), dims);
            TreeEdge { from: plus(&from, &root, dims), to: plus(&here, &root, dims), ends }
        };
        self.order[1..].iter().map(edge).collect()
    }
}

/// Returns the coordinates of a rank; the last coordinate varies fastest.
fn coordinates(rank: u32, dims: &[u32]) -> Vec<u32> {
    let mut left = rank;
    let mut at: Vec<u32> = dims
        .iter()
        .rev()
        .map(|&dim| {
            let here = left % dim;
            left /= dim;
            here
        })
        .collect();
    at.reverse();
    at
}

fn number(at: impl Iterator<Item = u32>, dims: &[u32]) -> u32 {
    at.zip(dims).fold(0, |rank, (c, &dim)| rank * dim + c)
}

fn plus(a: &[u32], b: &[u32], dims: &[u32]) -> u32 {
    number(a.iter().zip(b).zip(dims).map(|((&a, &b), &dim)| (a + b) % dim), dims)
}

fn less(a: &[u32], b: &[u32], dims: &[u32]) -> u32 {
    number(a.iter().zip(b).zip(dims).map(|((&a, &b), &dim)| (a + dim - b) % dim), dims)
}

/// Returns the rank whose coordinates are those of `rank` minus `from`, modulo the extents.
fn minus(rank: u32, from: &[u32], dims: &[u32]) -> u32 {
    less(&coordinates(rank, dims), from, dims)
}
