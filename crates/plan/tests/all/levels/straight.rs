//! Programs simulated by packets, compared with a direct simulation of their definition.
//!
//! The direct simulation repeats two steps until nothing changes. First it computes, from the times at which messages
//! arrive, when each rank posts its messages, by the rules of the program: there are two queues in program order, a
//! node runs after the nodes that it names, and the tasks of a collective run after their node begins. Then it computes
//! when all posted messages arrive, by a literal transcription of the rules of packets. Hosts and sums take no time on
//! these machines, so CPUs never wait.

use crate::common::network;

use std::collections::BTreeMap;

use unisono_base::TaskId;
use unisono_lower::tasks::{Kind, from_schedule};
use unisono_machine::{Machine, network::Network};
use unisono_plan::{
    Part,
    workload::graph::{Level, ProgramPrices, Step},
};
use unisono_sim::network::Interconnect;
use unisono_workload::{Compute, Work, WorkloadGraph};

use super::{
    packets,
    random::{Random, Style, program},
};

/// Returns a connected graph of accelerators and switches in which all links have different latencies.
fn topology(r: &mut Random) -> String {
    const ACCELERATORS: u64 = 9;
    let nodes = ACCELERATORS + r.below(4);
    let tree: Vec<(u64, u64)> = (1..nodes).map(|node| (node, r.below(node))).collect();
    let more: Vec<(u64, u64)> = (0..r.below(12)).map(|_| (r.below(nodes), r.below(nodes))).collect();
    let cables = tree.into_iter().chain(more).filter(|(a, b)| a != b);
    let line = |(a, b): (u64, u64)| {
        let (gbps, ns) = (r.pick(&[100, 200, 400, 800]), 10_000 + r.below(90_000));
        format!("{a} {b} gbps={gbps} ns={}.{:03}\n", ns / 1000, ns % 1000)
    };
    let lines: String = cables.map(line).collect();
    format!("name = 'graph'\naccelerators = {ACCELERATORS}\nedges = \"\"\"\n{lines}\"\"\"")
}

const STYLE: Style = Style { sides: &[1, 2, 3], nodes: 6, bytes: 3..13, microseconds: 3, uneven: true };

/// A task of a rank, which begins when all tasks that it waits for have ended.
struct Task {
    after: Vec<usize>,
    does: Does,
}

enum Does {
    Nothing,
    Compute(u64),
    Send(usize),
    Receive(usize),
}

/// The identity of a message: the index of its node, its sender, receiver and stream, and its number among messages
/// with the same values of these.
type Message = (usize, u32, u32, u32, usize);

#[derive(Default)]
struct Straight {
    tasks: Vec<Task>,
    messages: BTreeMap<Message, (usize, u64)>,
}

impl Straight {
    fn task(&mut self, after: Vec<usize>, does: Does) -> usize {
        self.tasks.push(Task { after, does });
        self.tasks.len() - 1
    }

    fn message(&mut self, key: Message, bytes: u64) -> usize {
        let next = self.messages.len();
        self.messages.entry(key).or_insert((next, bytes)).0
    }

    /// Adds all nodes of a rank. Ranks communicate at nodes with the same index.
    fn rank(&mut self, graph: &WorkloadGraph, prices: &ProgramPrices, rows: &[Option<usize>], rank: u32) {
        let class = graph.classes.iter().find(|class| class.ranks.contains(&rank)).unwrap();
        let (mut ends, mut queues): (Vec<usize>, [Vec<usize>; 2]) = (Vec::new(), Default::default());
        for (number, node) in class.nodes.iter().enumerate() {
            let queue = &mut queues[usize::from(node.work.is_compute())];
            let before = node.after.iter().map(|&n| ends[n as usize]).chain(queue.last().copied()).collect();
            let end = match node.work {
                Work::Compute(Compute::Measured { seconds }) => {
                    self.task(before, Does::Compute((seconds * 1e12).round() as u64))
                }
                Work::Permute { bytes, receivers } => {
                    let (begin, tables) = (self.task(before, Does::Nothing), &graph.receivers[receivers as usize]);
                    let mut all = vec![begin];
                    let of_table = |(n, table)| (0_u32..).zip(table).map(move |(from, &to): (u32, &u32)| (n, from, to));
                    for (n, from, to) in tables.iter().enumerate().flat_map(of_table).filter(|(_, from, to)| from != to)
                    {
                        let message = || (number, from, to, 0, n);
                        if from == rank {
                            let message = self.message(message(), bytes);
                            all.push(self.task(vec![begin], Does::Send(message)));
                        }
                        if to == rank {
                            let message = self.message(message(), bytes);
                            all.push(self.task(vec![begin], Does::Receive(message)));
                        }
                    }
                    self.task(all, Does::Nothing)
                }
                Work::Collective(_) => {
                    let begin = self.task(before, Does::Nothing);
                    self.collective(prices, rows[number].unwrap(), (number, rank), begin)
                }
                _ => unreachable!("random programs have no messages between pairs"),
            };
            queues[usize::from(node.work.is_compute())].push(end);
            ends.push(end);
        }
    }

    fn collective(&mut self, prices: &ProgramPrices, row: usize, (number, rank): (usize, u32), begin: usize) -> usize {
        let mut all = vec![begin];
        for chosen in &prices.chosen()[row] {
            let Some((group, place)) = chosen.groups.of(rank) else { continue };
            let (proven, switches) = chosen.schedule().unwrap();
            assert!(switches.is_empty());
            let part = from_schedule(&proven).unwrap();
            let first = self.tasks.len();
            let of_part = part.tasks(place);
            let mut counts = BTreeMap::<(u32, u32, u32), usize>::new();
            for id in of_part.clone() {
                let task = part.task(TaskId(id));
                let mut key = |from: u32, to: u32| {
                    let count = counts.entry((from, to, task.tag)).or_default();
                    *count += 1;
                    (number, from, to, task.tag, *count)
                };
                let does = match task.kind {
                    Kind::Send => Does::Send(self.message(key(rank, group[task.peer as usize]), task.amount)),
                    Kind::Receive => Does::Receive(self.message(key(group[task.peer as usize], rank), task.amount)),
                    Kind::Calc | Kind::Reduce => Does::Nothing,
                };
                all.push(self.task(vec![begin], does));
            }
            for id in of_part.clone() {
                for (later, _) in part.waiting(TaskId(id)) {
                    let at = |id: u32| first + (id - of_part.start) as usize;
                    self.tasks[at(later.0)].after.push(at(id));
                }
            }
        }
        self.task(all, Does::Nothing)
    }

    /// Returns the time at which each task ends; `None` for tasks that wait for messages. With each time comes the
    /// number of tasks that end in sequence at it, because a rank posts messages of equal time in that order.
    fn times(&self, arrived: &[Option<u64>]) -> Vec<Option<(u64, u32)>> {
        let mut done: Vec<Option<(u64, u32)>> = vec![None; self.tasks.len()];
        loop {
            let mut changed = false;
            for (at, task) in self.tasks.iter().enumerate() {
                if done[at].is_some() {
                    continue;
                }
                let ready = task.after.iter().map(|&before| done[before]).try_fold((0, 0), |a, b| Some(a.max(b?)));
                let end = ready.and_then(|(ready, before)| match task.does {
                    Does::Nothing | Does::Send(_) => Some((ready, before + 1)),
                    Does::Compute(ps) => Some((ready + ps, 0)),
                    Does::Receive(message) => {
                        let arrived = arrived[message]?;
                        Some(if arrived > ready { (arrived, 0) } else { (ready, before + 1) })
                    }
                });
                changed |= end.is_some();
                done[at] = end;
            }
            if !changed {
                return done;
            }
        }
    }

    fn streams(&self) -> Vec<Vec<usize>> {
        let mut streams = BTreeMap::<_, Vec<usize>>::new();
        for (&(number, from, to, tag, _), &(message, _)) in &self.messages {
            streams.entry((number, from, to, tag)).or_default().push(message);
        }
        streams.into_values().collect()
    }

    /// Returns the end of the last task in picoseconds, and true if several ranks post messages at the same time.
    fn run(&self, net: &Interconnect, messages: &[(u32, u32, u64)]) -> (u64, bool) {
        let mut arrived = vec![None; messages.len()];
        let mut posted_before = Vec::new();
        loop {
            let done = self.times(&arrived);
            // Of the messages that a rank posts at one time, the messages of its earlier tasks leave first.
            let mut posted: Vec<(u64, u32, u32, usize, usize)> = Vec::new();
            for (at, task) in self.tasks.iter().enumerate() {
                if let (Does::Send(message), Some((time, before))) = (&task.does, done[at]) {
                    posted.push((time, messages[*message].0, before, at, *message));
                }
            }
            posted.sort_unstable();
            if posted == posted_before {
                let ties = posted.windows(2).any(|two| two[0].0 == two[1].0 && two[0].1 != two[1].1);
                return (done.into_iter().map(|end| end.expect("every task is done").0).max().unwrap_or(0), ties);
            }
            let under_way: Vec<_> = posted.iter().map(|&(.., message)| messages[message]).collect();
            let times: Vec<u64> = posted.iter().map(|post| post.0).collect();
            let found = packets::simulate(net, net.send_machines as usize, &under_way, &times);
            for (&(.., message), time) in posted.iter().zip(found) {
                arrived[message] = time;
            }
            // Messages of a stream may overtake each other. A receive gets the first message that has arrived.
            for stream in self.streams() {
                let mut times: Vec<Option<u64>> = stream.iter().map(|&message| arrived[message]).collect();
                times.sort_by_key(|time| time.unwrap_or(u64::MAX));
                stream.iter().zip(times).for_each(|(&message, time)| arrived[message] = time);
            }
            posted_before = posted;
        }
    }
}

struct Case {
    machine: Machine,
    program: WorkloadGraph,
}

impl Case {
    fn new(seed: u64) -> Self {
        let mut r = Random(seed);
        let machine = network(1000, 10_000, &format!("[topology]\n{}", topology(&mut r)));
        Self { machine, program: program(&mut r, &STYLE) }
    }

    fn prices(&self) -> ProgramPrices<'_> {
        ProgramPrices::new(&self.program, &self.machine, &Part::All).unwrap()
    }

    fn by_packets(&self) -> f64 {
        let step = Step { prices: self.prices(), accelerator: None, overlap: true, level: Level::Packet };
        step.report().unwrap().iteration.seconds
    }

    /// Returns the time of the step in seconds, and true if several ranks post messages at the same time.
    fn straight(&self) -> (f64, bool) {
        let mut prices = self.prices();
        let nodes = &self.program.classes[0].nodes;
        let rows: Vec<Option<usize>> = nodes.iter().map(|node| prices.row(0, node).unwrap()).collect();
        let mut straight = Straight::default();
        (0..self.program.ranks).for_each(|rank| straight.rank(&self.program, &prices, &rows, rank));
        let mut messages = vec![(0, 0, 0); straight.messages.len()];
        for (&(_, from, to, ..), &(at, bytes)) in &straight.messages {
            messages[at] = (from, to, bytes);
        }
        let net = Interconnect::new(self.machine.get::<Network>().unwrap()).unwrap();
        let (ps, ties) = straight.run(&net, &messages);
        (ps as f64 * 1e-12, ties)
    }
}

#[test]
fn programs_take_what_their_messages_take() {
    let (mut compared, count) = (0, crate::soak::cases(1000));
    for seed in 0..u64::from(count) {
        let case = Case::new(seed);
        let (found, (expected, ties)) = (case.by_packets(), case.straight());
        // If several ranks post messages in the same picosecond, the order of the messages is undefined.
        assert!(found == expected || ties, "seed {seed}: {found} s by packets, {expected} s straight");
        compared += u32::from(found == expected);
    }
    assert!(compared >= count - count / 200, "{compared} of {count} programs are equal");
}
