//! A check for programs whose ranks wait for each other in a cycle, such as two ranks that perform the same two
//! collectives in different orders.
//!
//! The check executes the program without times. A node ends as soon as its predecessors have ended or, if their start
//! suffices, have begun. The predecessors of a node are the nodes that it names and, by the rule of [`Queues`], earlier
//! nodes of its queue. A collective waits for its nodes on all ranks, and a receive waits for its send. A node that can
//! never end waits for another node that can never end. If all nodes exist, a walk along these waits therefore leads to
//! a cycle.

use std::{collections::VecDeque, fmt::Write, ops::Range};

use rustc_hash::FxHashMap;
use unisono_base::{excerpt, interrupt::poll, narrow};

use crate::{Queues, Unmatched, Work, WorkloadGraph, meetings::shown};

/// The maximum number of ranks of a cycle that a message names.
const MOST_NAMED: usize = 4;

/// The indices of a class and of a node in it.
type At = (usize, u32);

/// A communication of several classes. The fields are: true for a collective, false for a permutation; the index of its
/// set of groups or of receivers; and the number of communications of the class with this set, including this one.
type Meeting = (bool, u32, u32);

/// The messages of a pair with one tag: sender, receiver, tag.
type Channel = (u32, u32, u32);

/// The number of messages of a channel that are sent but not received, and the nodes of waiting receives.
#[derive(Default)]
struct Queued {
    sent: u32,
    receives: VecDeque<u32>,
    /// The node of the latest receive.
    last: Option<u32>,
    /// True if the times of receives decide which message each receive gets.
    is_open: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Waits,
    /// The node has begun, and now waits only for other ranks.
    Came,
    Done,
}

/// The nodes of a class, and the nodes that wait for each node.
struct Order {
    after: Edges,
    /// For each node, the number of nodes for which it waits.
    open: Vec<u32>,
    states: Vec<State>,
    meetings: Vec<Option<Meeting>>,
}

/// The neighbors of each node. A neighbor has the flag true if it suffices that the earlier node has started.
struct Edges {
    /// For each node, the end of its neighbors in `nodes`.
    ends: Vec<u32>,
    nodes: Vec<(u32, bool)>,
}

struct Run<'a> {
    graph: &'a WorkloadGraph,
    class_of: Vec<Option<usize>>,
    orders: Vec<Order>,
    /// For each set of groups or receivers, the classes that take part.
    taking_part: FxHashMap<(bool, u32), Vec<usize>>,
    /// The nodes that have reached each meeting and wait there for other classes.
    came: FxHashMap<Meeting, Vec<At>>,
    channels: FxHashMap<Channel, Queued>,
    ready: VecDeque<At>,
    /// For each class, the predecessors of each node, computed on demand.
    before: FxHashMap<usize, Edges>,
}

impl WorkloadGraph {
    /// Checks that no ranks of different classes wait for each other in a cycle. If it depends on times whether ranks
    /// wait for each other, the program is accepted. `file_and_node` returns the file of a rank's node, and the id of
    /// the node in that file.
    ///
    /// # Errors
    /// Returns an error that names ranks of a cycle of waits, the lowest first.
    pub fn check_circles<'f>(&self, file_and_node: impl Fn(u32, usize) -> (&'f str, u64)) -> Result<(), Unmatched> {
        if self.classes.len() < 2 {
            return Ok(());
        }
        let mut run = Run::new(self);
        run.run();
        match run.circle() {
            Some(circle) => Err(run.message(&circle, file_and_node)),
            None => Ok(()),
        }
    }
}

impl Edges {
    /// Makes edges from triples: a node, its neighbor, and true if the neighbor waits only for a start.
    fn new(nodes: usize, mut all: Vec<(u32, u32, bool)>) -> Self {
        all.sort_unstable();
        let mut ends = vec![0; nodes];
        for &(node, ..) in &all {
            ends[node as usize] += 1;
        }
        let mut end = 0;
        for count in &mut ends {
            end += *count;
            *count = end;
        }
        Self { ends, nodes: all.into_iter().map(|(_, other, begun)| (other, begun)).collect() }
    }

    fn of(&self, node: u32) -> Range<usize> {
        let begin = node.checked_sub(1).map_or(0, |before| self.ends[before as usize]);
        begin as usize..self.ends[node as usize] as usize
    }
}

/// Returns the waits of a class: the earlier node, the later node, and true if it suffices that the earlier node has
/// started.
fn waits(graph: &WorkloadGraph, class: usize) -> Vec<(u32, u32, bool)> {
    let mut waits = Vec::new();
    let in_order = graph.queues == Queues::InOrder;
    // The last node of each queue or, if queues run nodes as they become ready, the last collective.
    let mut last: [Option<u32>; 2] = [None, None];
    for (number, node) in (0_u32..).zip(&graph.classes[class].nodes) {
        waits.extend(node.after.iter().map(|&before| (before, number, false)));
        waits.extend(node.begun.iter().map(|&before| (before, number, true)));
        if in_order || table(&node.work).is_some() {
            let earlier = last[usize::from(node.work.is_compute())].replace(number);
            waits.extend(earlier.map(|earlier| (earlier, number, !in_order)));
        }
    }
    waits
}

impl Order {
    fn new(graph: &WorkloadGraph, class: usize) -> Self {
        let nodes = &graph.classes[class].nodes;
        let mut counts: FxHashMap<(bool, u32), u32> = FxHashMap::default();
        let mut meeting = |(is_group, table): (bool, u32)| {
            let count = counts.entry((is_group, table)).or_default();
            *count += 1;
            (is_group, table, *count)
        };
        let meetings = nodes.iter().map(|node| table(&node.work).map(&mut meeting)).collect();
        let waits = waits(graph, class);
        let mut open = vec![0; nodes.len()];
        waits.iter().for_each(|&(_, later, _)| open[later as usize] += 1);
        Self { after: Edges::new(nodes.len(), waits), open, states: vec![State::Waits; nodes.len()], meetings }
    }
}

/// Returns true and the groups of a collective, or false and the receivers of a permutation, as indices of their sets.
fn table(work: &Work) -> Option<(bool, u32)> {
    match *work {
        Work::Collective(collected) => Some((true, collected.groups)),
        Work::Permute { receivers, .. } => Some((false, receivers)),
        _ => None,
    }
}

impl<'a> Run<'a> {
    fn new(graph: &'a WorkloadGraph) -> Self {
        let orders: Vec<Order> = (0..graph.classes.len()).map(|class| Order::new(graph, class)).collect();
        let mut ready = VecDeque::new();
        for (class, of) in orders.iter().enumerate() {
            let first = (0_u32..).zip(&of.open).filter(|&(_, &open)| open == 0);
            ready.extend(first.map(|(node, _)| (class, node)));
        }
        let class_of = graph.class_of();
        let (taking_part, came, channels, before) = Default::default();
        Self { graph, class_of, orders, taking_part, came, channels, ready, before }
    }

    fn rank(&self, class: usize) -> u32 {
        self.graph.classes[class].ranks.first().copied().unwrap_or(0)
    }

    fn work(&self, (class, node): At) -> Work {
        self.graph.classes[class].nodes[node as usize].work
    }

    fn run(&mut self) {
        while let Some(at) = self.ready.pop_front() {
            poll();
            self.orders[at.0].states[at.1 as usize] = State::Came;
            match self.work(at) {
                Work::Compute(_) => self.done(at),
                Work::Send { to, tag, .. } => {
                    self.done(at);
                    let channel = (self.rank(at.0), to, tag);
                    self.channels.entry(channel).or_default().sent += 1;
                    self.receive(channel);
                }
                Work::Receive { from, tag, .. } => {
                    self.release(at, true);
                    let channel = (from, self.rank(at.0), tag);
                    let queued = self.channels.entry(channel).or_default();
                    let is_later = queued.last.replace(at.1).is_none_or(|last| last < at.1);
                    queued.is_open |= !is_later || !queued.receives.is_empty();
                    queued.receives.push_back(at.1);
                    self.receive(channel);
                }
                Work::Collective(_) | Work::Permute { .. } => self.meet(at),
            }
        }
    }

    /// Releases the nodes that wait for the start of a node (`at_begin`), or for its end.
    fn release(&mut self, (class, node): At, at_begin: bool) {
        let of = &mut self.orders[class];
        for at in of.after.of(node) {
            let (later, begun) = of.after.nodes[at];
            if begun == at_begin {
                of.open[later as usize] -= 1;
                if of.open[later as usize] == 0 {
                    self.ready.push_back((class, later));
                }
            }
        }
    }

    fn done(&mut self, at: At) {
        self.orders[at.0].states[at.1 as usize] = State::Done;
        if !matches!(self.work(at), Work::Receive { .. }) {
            self.release(at, true);
        }
        self.release(at, false);
    }

    fn receive(&mut self, channel: Channel) {
        let Some(class) = self.class_of.get(channel.1 as usize).copied().flatten() else { return };
        let queued = self.channels.entry(channel).or_default();
        if queued.sent > 0
            && let Some(node) = queued.receives.pop_front()
        {
            queued.sent -= 1;
            self.done((class, node));
        }
    }

    fn meet(&mut self, at: At) {
        let meeting = self.meeting(at);
        let together = self.together((meeting.0, meeting.1)).len();
        let here = self.came.entry(meeting).or_default();
        here.push(at);
        if here.len() >= together {
            let all = self.came.remove(&meeting).unwrap_or_default();
            all.into_iter().for_each(|at| self.done(at));
        }
    }

    fn meeting(&self, (class, node): At) -> Meeting {
        self.orders[class].meetings[node as usize].expect("a communication of several ranks is a meeting")
    }

    /// Returns the classes that have a rank in the groups, or in a pair of a sender and a receiver.
    fn together(&mut self, table: (bool, u32)) -> &[usize] {
        let (graph, class_of) = (self.graph, &self.class_of);
        self.taking_part.entry(table).or_insert_with(|| {
            let ranks: Vec<u32> = if table.0 {
                graph.groups[table.1 as usize].iter().flatten().copied().collect()
            } else {
                graph.pairs(table.1).flat_map(|(from, to)| [from, to]).collect()
            };
            let mut classes: Vec<usize> = ranks.into_iter().filter_map(|rank| class_of[rank as usize]).collect();
            classes.sort_unstable();
            classes.dedup();
            classes
        })
    }

    /// Returns the nodes of a cycle at which ranks wait for each other. Returns `None` if every node has ended, a rank
    /// waits for a node that does not exist, or times decide whether ranks wait forever.
    fn circle(&mut self) -> Option<Vec<At>> {
        let is_open = |of: &Order| of.states.iter().position(|&state| state != State::Done);
        let (class, node) = self.orders.iter().enumerate().find_map(|(class, of)| Some((class, is_open(of)?)))?;
        let mut walked: Vec<At> = Vec::new();
        let mut known: FxHashMap<At, usize> = FxHashMap::default();
        let mut at = (class, narrow::<u32>(node));
        loop {
            if let Some(&begin) = known.get(&at) {
                let came = |&(class, node): &At| self.orders[class].states[node as usize] == State::Came;
                return Some(walked[begin..].iter().copied().filter(came).collect());
            }
            known.insert(at, walked.len());
            walked.push(at);
            at = self.next(at)?;
        }
    }

    /// Returns a node that has not ended and for which the given node waits; `None` if there is none, or if times
    /// decide which message a receive gets.
    fn next(&mut self, at: At) -> Option<At> {
        let (class, node) = at;
        let graph = self.graph;
        if self.orders[class].states[node as usize] == State::Waits {
            let edges = self.before.entry(class).or_insert_with(|| {
                let back = |(before, later, begun): (u32, u32, bool)| (later, before, begun);
                Edges::new(graph.classes[class].nodes.len(), waits(graph, class).into_iter().map(back).collect())
            });
            let is_open = |&&(before, begun): &&(u32, bool)| match self.orders[class].states[before as usize] {
                State::Waits => true,
                State::Came => {
                    !begun || !matches!(graph.classes[class].nodes[before as usize].work, Work::Receive { .. })
                }
                State::Done => false,
            };
            return edges.nodes[edges.of(node)].iter().find(is_open).map(|&(before, _)| (class, before));
        }
        if let Work::Receive { from, tag, .. } = self.work(at) {
            let (to, class) = (self.rank(class), self.class_of.get(from as usize).copied().flatten()?);
            if self.channels.get(&(from, to, tag)).is_some_and(|queued| queued.is_open) {
                return None;
            }
            let is_it = |node: &u32| {
                let is_open = self.orders[class].states[*node as usize] != State::Done;
                is_open && matches!(self.work((class, *node)), Work::Send { to: t, tag: g, .. } if (t, g) == (to, tag))
            };
            return (0..narrow(self.orders[class].states.len())).find(is_it).map(|node| (class, node));
        }
        let meeting = self.meeting(at);
        let here: Vec<usize> = self.came.get(&meeting)?.iter().map(|&(class, _)| class).collect();
        let missing = self.together((meeting.0, meeting.1)).iter().copied().find(|class| !here.contains(class))?;
        let node = self.orders[missing].meetings.iter().position(|&other| other == Some(meeting))?;
        Some((missing, narrow(node)))
    }

    fn message<'f>(&self, circle: &[At], file_and_node: impl Fn(u32, usize) -> (&'f str, u64)) -> Unmatched {
        // The cycle is reported from its lowest rank.
        let begin = (0..circle.len()).min_by_key(|&n| self.rank(circle[n].0)).unwrap_or(0);
        let at = |n: usize| circle[(begin + n) % circle.len()];
        let (rank, node) = (self.rank(at(0).0), at(0).1 as usize);
        let mut message = format!("it is {}, and waits for rank {}", self.described(at(0)), self.rank(at(1).0));
        let named = circle.len().min(MOST_NAMED);
        for n in 1..named {
            let (other, next) = (self.rank(at(n).0), self.rank(at(n + 1).0));
            let (file, id) = file_and_node(other, at(n).1 as usize);
            let does = self.described(at(n));
            write!(message, ", which waits in node {id} of '{}', {does}, for rank {next}", excerpt(file))
                .expect("a string takes everything");
        }
        if circle.len() > named {
            write!(message, ", and so on along {} ranks", circle.len()).expect("a string takes everything");
        }
        message.push_str(
            "; accepted are programs in which no ranks wait for each other in a circle, so ranks that share several groups \
             make the collectives of all of them in one order",
        );
        Unmatched { rank, node, message }
    }

    fn described(&self, (class, node): At) -> String {
        let name = excerpt(&self.graph.classes[class].nodes[node as usize].name);
        let work = match self.work((class, node)) {
            Work::Collective(collected) => {
                let group = self.graph.groups[collected.groups as usize].of(self.rank(class));
                let ranks = group.map_or(0, |(group, _)| group.len());
                format!("{} among {ranks} ranks", shown(&collected))
            }
            Work::Permute { bytes, .. } => format!("messages of {bytes} bytes"),
            Work::Receive { from, bytes, .. } => format!("a receive of {bytes} bytes from rank {from}"),
            Work::Send { to, bytes, .. } => format!("a send of {bytes} bytes to rank {to}"),
            Work::Compute(_) => "compute".to_owned(),
        };
        format!("{work} ('{name}')")
    }
}
