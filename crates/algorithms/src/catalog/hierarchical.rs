//! Two levels: one algorithm inside each node, another among nodes.
//!
//! `leaders`: each node reduces to its first rank, these leaders run the collective, and each distributes the result in
//! its node; for an allgather each node gathers to its leader. `lanes`: rank k of every node takes part in a collective
//! of block k among nodes. Before it, each node reduce-scatters, or the root's node scatters for a broadcast; after it,
//! each node allgathers, or the root's node gathers for a reduce. With lanes every rank uses the network, which is
//! faster if each rank of a node has an interface, or if one rank cannot saturate the interface. Source: Traeff,
//! Hunold, "Decomposing MPI collectives for exploiting multi-lane communication", 2020 (lanes); MVAPICH2 and Open MPI's
//! HAN (leaders).

use unisono_base::{NodeId, narrow};
use unisono_collective::{Collective, Kind};
use unisono_schedule::{Builder, Operand, Schedule};

use super::{binomial::Binomial, bruck::Bruck, recursive_exchange::RecursiveExchange};
use crate::{
    Algorithm, AlgorithmError, Case, Info, Param, Params,
    compose::{named, parsed},
    ranks::RankAlgorithm,
    resolve,
};

pub struct Hierarchical;

const INFO: Info = Info {
    name: "hierarchical",
    summary: "one algorithm inside each node and another among nodes, over one leader a node or over all ranks as lanes",
    reference: "Traeff, Hunold: Decomposing MPI collectives for exploiting multi-lane communication, 2020",
    collectives: &[Kind::Allgather, Kind::Allreduce, Kind::Broadcast, Kind::Reduce],
    params: &[
        Param { name: "mode", values: "leaders, lanes (default: leaders)" },
        Param { name: "node", values: "ranks of a node (default: the machine's first level)" },
        Param {
            name: "among",
            values: "an algorithm among nodes, as NAME or NAME:K=V:K=V (default: recursive-doubling, bruck, binomial)",
        },
        Param { name: "reduce", values: "a reduce inside a node (default: binomial)" },
        Param { name: "broadcast", values: "a broadcast inside a node (default: binomial)" },
        Param {
            name: "scatter",
            values: "with lanes: a reduce-scatter inside (default: recursive-halving), for a broadcast a scatter (default: binomial)",
        },
        Param {
            name: "gather",
            values: "with lanes: an allgather inside (default: ring), for a reduce, or an allgather by leaders, a gather (default: binomial)",
        },
    ],
    ..Info::AMONG_RANKS
};

pub const MODES: [&str; 2] = ["leaders", "lanes"];

pub const NAME: &str = INFO.name;
/// The parameter that names the algorithm among nodes.
pub const AMONG: &str = "among";

/// A step: the parameter that names its algorithm, the default algorithm, and the kind of collective.
type Step = (&'static str, &'static str, Kind);

const BROADCAST: Step = ("broadcast", "binomial", Kind::Broadcast);
const GATHER: Step = ("gather", "binomial", Kind::Gather);
const REDUCE: Step = ("reduce", "binomial", Kind::Reduce);

/// The levels of one case, from its parameters and its machine.
struct Levels<'a> {
    case: &'a Case<'a>,
    params: &'a Params,
    /// The most ranks of a node; some nodes may have fewer.
    node: u32,
    /// True if ranks are assigned to nodes round-robin, false if a node's ranks are consecutive.
    dealt: bool,
    lanes: bool,
}

impl<'a> Levels<'a> {
    fn new(case: &'a Case<'a>, params: &'a Params) -> Result<Self, AlgorithmError> {
        let ranks = case.collective.ranks;
        let dealt = case.ranks().dealt_node_ranks;
        let node = params.number(INFO.name, "node", 1..=ranks)?.or(case.ranks().node_ranks).or(dealt);
        let lanes = params.choice(INFO.name, "mode", &MODES)? == "lanes";
        let no = |reason: &str| Err(AlgorithmError::Unsupported { algorithm: INFO.name, reason: reason.to_owned() });
        let Some(node) = node else {
            return no("the machine has no levels; give the number of ranks of a node by node=");
        };
        let node = node.min(ranks);
        if lanes && !ranks.is_multiple_of(node) {
            return no("lanes need nodes that all have as many ranks");
        }
        let c = &case.collective;
        if c.kind == Kind::Allgather && lanes {
            return no("lanes do not allgather");
        }
        if c.kind == Kind::Allgather && padded(c, node) > u64::from(u32::MAX) {
            return no("the blocks of all nodes would have 2^32 elements or more");
        }
        if dealt.is_some() && c.kind.reduces() && !c.operator.commutative() {
            return no("the ranks of a node are not consecutive, and the operator does not commute");
        }
        Ok(Self { case, params, node, dealt: dealt.is_some(), lanes })
    }

    fn nodes(&self) -> Vec<Vec<NodeId>> {
        let ranks = self.case.collective.ranks;
        if self.dealt {
            let nodes = ranks.div_ceil(self.node);
            return (0..nodes).map(|n| (n..ranks).step_by(nodes as usize).map(NodeId).collect()).collect();
        }
        let all: Vec<NodeId> = (0..ranks).map(NodeId).collect();
        all.chunks(self.node as usize).map(<[_]>::to_vec).collect()
    }

    /// Returns the node of a rank, and the index of the rank in the node.
    fn home(&self, rank: u32) -> (u32, u32) {
        if self.dealt {
            let nodes = self.case.collective.ranks.div_ceil(self.node);
            (rank % nodes, rank / nodes)
        } else {
            (rank / self.node, rank % self.node)
        }
    }

    /// Returns the algorithm of a step, with the case and the parameters of the step.
    fn part(
        &self,
        (param, default, kind): Step,
        ranks: u32,
        elements: u32,
        root: u32,
    ) -> Result<(&'static dyn Algorithm, Case<'a>, Params), AlgorithmError> {
        let collective = Collective { kind, ranks, elements, root, ..self.case.collective };
        let case = Case { collective, ..*self.case };
        let text = self.params.get(param).unwrap_or(default);
        let (name, own) = parsed(text).filter(|(name, _)| *name != INFO.name).ok_or_else(|| AlgorithmError::Param {
            algorithm: INFO.name,
            param,
            found: text.to_owned(),
            accepted: format!("an algorithm for {kind} of one level, as NAME or NAME:K=V:K=V"),
        })?;
        let (algorithm, params) = resolve(name, &case, &own)?;
        Ok((algorithm, case, params))
    }

    fn schedule(&self, step: Step, ranks: u32, elements: u32, root: u32) -> Result<Schedule, AlgorithmError> {
        let (algorithm, case, params) = self.part(step, ranks, elements, root)?;
        Ok(algorithm.build(&case, &params)?.schedule)
    }

    /// Checks that the algorithm of each step supports its case.
    fn check(&self) -> Result<(), AlgorithmError> {
        let c = self.case.collective;
        let nodes = c.ranks.div_ceil(self.node);
        let has_root = c.kind.has_root();
        let (home, lead) = if has_root { self.home(c.root) } else { (0, 0) };
        let elements = if c.kind == Kind::Allgather { c.elements * self.node } else { c.elements };
        self.part(among(c.kind), nodes, elements, home)?;
        if self.lanes {
            let block = c.elements / self.node;
            for step in inside(c.kind) {
                self.part(step, self.node, block, if step.2.has_root() { lead } else { 0 })?;
            }
        }
        let steps: &[Step] = match c.kind {
            Kind::Allgather => &[GATHER, BROADCAST],
            Kind::Allreduce => &[REDUCE, BROADCAST],
            Kind::Broadcast => &[BROADCAST],
            _ => &[REDUCE],
        };
        for &step in steps {
            // A check with `node` ranks covers nodes with fewer: an algorithm supports either all numbers of ranks or
            // none.
            self.part(step, self.node, c.elements, 0)?;
            self.part(step, self.node, c.elements, lead)?;
        }
        Ok(())
    }

    /// Emits an allgather: each node gathers to its leader, the leaders allgather, and each broadcasts in its node.
    fn allgather_leaders(&self, b: &mut Builder) -> Result<(), AlgorithmError> {
        let (nodes, len) = (self.nodes(), self.case.collective.elements);
        let leaders: Vec<NodeId> = nodes.iter().map(|ranks| ranks[0]).collect();
        let (block, all) = (self.node * len, self.case.collective.ranks * len);
        let (mut own, mut gathered) = (Vec::new(), Vec::new());
        for ranks in &nodes {
            let [at, place] = [block, narrow(padded(&self.case.collective, self.node))].map(|n| b.scratch(ranks[0], n));
            let count = narrow::<u32>(ranks.len());
            let part = self.schedule(GATHER, count, len, 0)?;
            b.embed(&part, ranks, |_| Operand::In(0), |_| Operand::Tmp(at));
            // The block of a node with fewer ranks ends with padding.
            for missing in count..self.node {
                b.combine(ranks[0], 0, len, &[Operand::In(0)], &[Operand::Tmp(at + missing * len)]);
            }
            own.push(Operand::Tmp(at));
            gathered.push(place);
        }
        let part = self.schedule(among(Kind::Allgather), narrow::<u32>(leaders.len()), block, 0)?;
        b.embed(&part, &leaders, |n| own[n as usize], |n| Operand::Tmp(gathered[n as usize]));
        for (ranks, place) in nodes.iter().zip(gathered) {
            let ends = b.lane_ends(ranks[0]);
            // Blocks lie in the order of nodes, which differs from that of ranks if ranks are dealt.
            let moved: Vec<(u32, u32, u32)> = if self.dealt {
                let of = |rank: u32| (self.home(rank).0 * block + self.home(rank).1 * len, rank * len, len);
                (0..self.case.collective.ranks).map(of).collect()
            } else {
                vec![(0, 0, all)]
            };
            for (from, to, len) in moved {
                let copied = b.combine(ranks[0], 0, len, &[Operand::Tmp(place + from)], &[Operand::Out(to)]);
                ends.iter().for_each(|&end| b.after(copied, end));
            }
            let part = self.schedule(BROADCAST, narrow::<u32>(ranks.len()), all, 0)?;
            b.embed(&part, ranks, |_| Operand::Out(0), |_| Operand::Out(0));
        }
        Ok(())
    }

    /// Emits an allreduce of `len` elements from `start` through the leaders of the nodes.
    fn allreduce_leaders(&self, b: &mut Builder, start: u32, len: u32) -> Result<(), AlgorithmError> {
        let nodes = self.nodes();
        let mut leaders = Vec::new();
        let mut sums = Vec::new();
        for ranks in &nodes {
            let sum = if nodes.len() > 1 { Operand::Tmp(b.scratch(ranks[0], len)) } else { Operand::Out(start) };
            let part = self.schedule(REDUCE, narrow::<u32>(ranks.len()), len, 0)?;
            b.embed(&part, ranks, |_| Operand::In(start), |_| sum);
            leaders.push(ranks[0]);
            sums.push(sum);
        }
        if nodes.len() > 1 {
            let part = self.schedule(among(Kind::Allreduce), narrow::<u32>(leaders.len()), len, 0)?;
            b.embed(&part, &leaders, |k| sums[k as usize], |_| Operand::Out(start));
        }
        for ranks in &nodes {
            let part = self.schedule(BROADCAST, narrow::<u32>(ranks.len()), len, 0)?;
            b.embed(&part, ranks, |_| Operand::Out(start), |_| Operand::Out(start));
        }
        Ok(())
    }

    /// Emits a collective with lanes: rank k of each node takes part in the collective of block k among nodes. The
    /// leaders run the collective of the remaining elements.
    fn with_lanes(&self, b: &mut Builder) -> Result<(), AlgorithmError> {
        let c = self.case.collective;
        let (nodes, block) = (self.nodes(), c.elements / self.node);
        let (home, place) = if c.kind.has_root() { self.home(c.root) } else { (0, 0) };
        if block > 0 {
            let [before, after] = inside(c.kind)
                .map(|step| self.schedule(step, self.node, block, if step.2.has_root() { place } else { 0 }));
            let (before, after) = (before?, after?);
            let lane = self.schedule(among(c.kind), narrow::<u32>(nodes.len()), block, home)?;
            // For each rank: the operand of its block before and after the collective among nodes, and its result.
            let mut held = Vec::new();
            for rank in 0..c.ranks {
                let own = Operand::Out(self.home(rank).1 * block);
                held.push(match c.kind {
                    Kind::Broadcast if rank == c.root => {
                        let vector = Operand::Tmp(b.scratch(NodeId(rank), block * self.node));
                        [vector, Operand::In(place * block), vector]
                    }
                    Kind::Broadcast => [own, own, Operand::Out(0)],
                    _ => {
                        let [sum, total] = [0; 2].map(|_| Operand::Tmp(b.scratch(NodeId(rank), block)));
                        [sum, total, Operand::Out(0)]
                    }
                });
            }
            let has_root = |n: usize| narrow::<u32>(n) == home;
            for (_, ranks) in nodes.iter().enumerate().filter(|(n, _)| c.kind != Kind::Broadcast || has_root(*n)) {
                b.embed(&before, ranks, |_| Operand::In(0), |k| held[ranks[k as usize].index()][0]);
            }
            for k in 0..self.node as usize {
                let lane_ranks: Vec<NodeId> = nodes.iter().map(|ranks| ranks[k]).collect();
                let at = |n: u32| held[lane_ranks[n as usize].index()];
                let from = if c.kind == Kind::Broadcast { 1 } else { 0 };
                b.embed(&lane, &lane_ranks, |n| at(n)[from], |n| at(n)[1]);
            }
            for (_, ranks) in nodes.iter().enumerate().filter(|(n, _)| c.kind != Kind::Reduce || has_root(*n)) {
                let at = |k: u32| held[ranks[k as usize].index()];
                b.embed(&after, ranks, |k| at(k)[1], |k| at(k)[2]);
            }
        }
        let done = block * self.node;
        let left = c.elements - done;
        if left > 0 { self.with_leaders(b, done, left) } else { Ok(()) }
    }

    /// Emits a collective of `len` elements from `start` through the leaders of the nodes.
    fn with_leaders(&self, b: &mut Builder, start: u32, len: u32) -> Result<(), AlgorithmError> {
        match self.case.collective.kind {
            Kind::Allgather => self.allgather_leaders(b),
            Kind::Allreduce => self.allreduce_leaders(b, start, len),
            kind => self.rooted(b, kind, start, len),
        }
    }

    /// Emits a reduce to the root or a broadcast from the root, which is the leader of its node, of `len` elements from
    /// `start`.
    fn rooted(&self, b: &mut Builder, kind: Kind, start: u32, len: u32) -> Result<(), AlgorithmError> {
        let c = self.case.collective;
        let nodes = self.nodes();
        let (home, place) = self.home(c.root);
        let lead = |n: usize| if narrow::<u32>(n) == home { place } else { 0 };
        let leaders: Vec<NodeId> = nodes.iter().enumerate().map(|(n, ranks)| ranks[lead(n) as usize]).collect();
        let among = self.schedule(among(kind), narrow::<u32>(leaders.len()), len, home)?;
        if kind == Kind::Broadcast {
            b.embed(&among, &leaders, |_| Operand::In(start), |_| Operand::Out(start));
            for (n, ranks) in nodes.iter().enumerate() {
                let part = self.schedule(BROADCAST, narrow::<u32>(ranks.len()), len, lead(n))?;
                let held = if narrow::<u32>(n) == home { Operand::In(start) } else { Operand::Out(start) };
                b.embed(&part, ranks, |_| held, |_| Operand::Out(start));
            }
            return Ok(());
        }
        let mut sums = Vec::new();
        for (n, ranks) in nodes.iter().enumerate() {
            let sum = Operand::Tmp(b.scratch(leaders[n], len));
            let part = self.schedule(REDUCE, narrow::<u32>(ranks.len()), len, lead(n))?;
            b.embed(&part, ranks, |_| Operand::In(start), |_| sum);
            sums.push(sum);
        }
        b.embed(&among, &leaders, |n| sums[n as usize], |_| Operand::Out(start));
        Ok(())
    }
}

/// Returns the elements of an allgather's blocks, with padding so that each node has `node` of them.
fn padded(c: &Collective, node: u32) -> u64 {
    u64::from(c.ranks.next_multiple_of(node)) * u64::from(c.elements)
}

/// Returns the step among nodes.
fn among(kind: Kind) -> Step {
    let default = match kind {
        Kind::Allgather => "bruck",
        Kind::Allreduce => "recursive-doubling",
        _ => "binomial",
    };
    (AMONG, default, kind)
}

/// Returns the steps of a collective in nodes of `node` ranks: for each, the parameter that names its algorithm, and
/// its collective with root 0. Empty if the mode, one of [`MODES`], does not support the collective.
pub fn steps(c: &Collective, node: u32, mode: &str) -> Vec<(&'static str, Collective)> {
    let (lanes, nodes) = (mode == MODES[1], c.ranks.div_ceil(node));
    let block = if lanes { c.elements / node } else { c.elements };
    if lanes && (c.kind == Kind::Allgather || block == 0) || !INFO.collectives.contains(&c.kind) {
        return Vec::new();
    }
    let [before, after] = if lanes { inside(c.kind) } else { [REDUCE, BROADCAST] };
    let part = |(param, _, kind): Step, ranks, elements| (param, Collective { kind, ranks, elements, root: 0, ..*c });
    let middle = part(among(c.kind), nodes, block);
    match c.kind {
        Kind::Allgather => {
            let Some(all) = c.elements.checked_mul(c.ranks) else { return Vec::new() };
            vec![part(GATHER, node, block), part(among(c.kind), nodes, block * node), part(BROADCAST, node, all)]
        }
        Kind::Broadcast if !lanes => vec![middle, part(after, node, block)],
        Kind::Reduce if !lanes => vec![part(before, node, block), middle],
        _ => vec![part(before, node, block), middle, part(after, node, block)],
    }
}

/// Returns the steps inside nodes, before and after the step among nodes, if ranks are lanes.
fn inside(kind: Kind) -> [Step; 2] {
    let before = match kind {
        Kind::Broadcast => ("scatter", "binomial", Kind::Scatter),
        _ => ("scatter", "recursive-halving", Kind::ReduceScatter),
    };
    let after = match kind {
        Kind::Reduce => ("gather", "binomial", Kind::Gather),
        _ => ("gather", "ring", Kind::Allgather),
    };
    [before, after]
}

impl RankAlgorithm for Hierarchical {
    const INFO: Info = INFO;

    // [`Self::check`] refuses nodes whose ranks are not consecutive, and checks the order for the algorithm of each
    // step.
    const KEEPS_ORDER: bool = true;

    fn check(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        Levels::new(case, params)?.check()
    }

    fn instructions(&self, case: &Case, params: &Params) -> u64 {
        let ranks = u64::from(case.collective.ranks);
        let nodes = Levels::new(case, params).map_or(1, |levels| ranks.div_ceil(levels.node.into()));
        // Leaders copy the blocks of dealt ranks one by one, and a ring among them has twice as many messages as nodes.
        let copies = if case.collective.kind == Kind::Allgather { nodes * (ranks + 2 * nodes) } else { 0 };
        ranks * (4 * u64::from(ranks.ilog2()) + 4) + copies
    }

    fn emit(&self, b: &mut Builder, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        let levels = Levels::new(case, params)?;
        if levels.lanes { levels.with_lanes(b) } else { levels.with_leaders(b, 0, case.collective.elements) }
    }

    /// Returns candidates if the machine states the ranks of a node and the case has several nodes; otherwise none.
    fn candidates(&self, case: &Case) -> Vec<Params> {
        let of = |pairs: &[(&str, &str)]| pairs.iter().fold(Params::new(), |params, (k, v)| params.with(k, v));
        match (case.ranks().node_ranks.or(case.ranks().dealt_node_ranks), case.collective.kind) {
            (Some(node), _) if node >= case.collective.ranks => Vec::new(),
            (None, _) => Vec::new(),
            (_, Kind::Allreduce) => vec![
                of(&[("among", "recursive-doubling")]),
                of(&[("among", "recursive-multiplying")]),
                of(&[("among", "rabenseifner")]),
                of(&[("mode", "lanes"), ("among", "recursive-doubling")]),
                of(&[("mode", "lanes"), ("among", "recursive-multiplying")]),
                of(&[("mode", "lanes"), ("among", "ring"), ("scatter", "ring")]),
            ],
            (_, Kind::Allgather) if case.fabric().is_some() => Vec::new(),
            (Some(_), _) if case.fabric().is_some() => vec![Params::new()],
            (Some(node), Kind::Allgather) => {
                let c = Collective {
                    ranks: case.collective.ranks.div_ceil(node),
                    elements: case.collective.elements * node,
                    ..case.collective
                };
                let case = Case { collective: c, ..*case };
                let bruck = Bruck.candidates(&case).into_iter().map(|params| named("bruck", &params));
                let exchange = RecursiveExchange.candidates(&case).into_iter();
                let exchange = exchange.map(|params| named("recursive-exchange", &params));
                bruck.chain(exchange).map(|among| Params::new().with("among", among)).collect()
            }
            (Some(node), kind) => {
                let lanes = of(&[("mode", "lanes")]);
                let mut all = vec![of(&[("among", "circulant")]), lanes.clone().with("among", "circulant"), lanes];
                let collective = Collective { ranks: case.collective.ranks.div_ceil(node), root: 0, ..case.collective };
                let inside = if kind == Kind::Reduce { "reduce" } else { "broadcast" };
                for trees in Binomial.candidates(&Case { collective, ..*case }) {
                    let among = Params::new().with("among", named("binomial", &trees));
                    // Inside a node the tree is binomial, or the leader sends to all other ranks directly.
                    all.push(among.clone().with(inside, named("binomial", &Params::new().with("radix", node.max(2)))));
                    all.push(among);
                }
                all
            }
        }
    }

    /// Returns the parameters with shorter and with longer pieces for the step among nodes.
    fn recut(&self, case: &Case, params: &Params) -> [Option<Params>; 2] {
        let part = || {
            let levels = Levels::new(case, params)?;
            let c = &case.collective;
            let home = if c.kind.has_root() { levels.home(c.root).0 } else { 0 };
            let elements = if levels.lanes { c.elements / levels.node } else { c.elements };
            levels.part(among(c.kind), c.ranks.div_ceil(levels.node), elements, home)
        };
        let Ok((algorithm, inner, own)) = part() else { return [None, None] };
        let with = |own: Params| params.clone().with("among", named(algorithm.name(), &own));
        algorithm.recut(&inner, &own).map(|own| own.map(with))
    }
}
