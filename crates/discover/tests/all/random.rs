//! Execution of random programs: every rank's commands move versions of points, and every kernel must find the versions
//! that the program defines. The model is in `points.rs`, and handles every chunk and every point separately.

use crate::{points, soak::cases};

use std::collections::{BTreeMap, VecDeque};

use points::{OwnedTask, Random, buffer_box, chunks, points_of, random, touched_by};
use unisono_discover::{Action, Buffer, Command, Discovery, Mode, Options, Pattern, Region, Rules, Task};

/// The content of a point on a rank.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Value {
    Nothing,
    /// The version that this task wrote; 0 is the initial version, tasks count from 1.
    Version(u32),
    /// This rank's contribution to the reduction of this task.
    Partial(u32),
}

/// Returns the valid tasks, and a discovery of them for each rank.
fn discover(program: &Random, nodes: u32, rules: Rules, window: usize) -> (Vec<OwnedTask>, Vec<Discovery>) {
    let mut kept = Vec::new();
    let mut all = Vec::new();
    for rank in 0..nodes {
        let options = Options { window, report: true, ..Options::commands(nodes, rank, rules) };
        let mut discovery = Discovery::new(options).expect("the options are sound");
        for (k, buffer) in program.buffers.iter().enumerate() {
            let made = Buffer::new(&format!("B{k}"), &buffer.sizes, 8, buffer.initialized);
            discovery.buffer(made.expect("the shape is sound"));
        }
        let mut accepted = Vec::new();
        for task in &program.tasks {
            let submitted = Task { name: &task.name, geometry: task.geometry, accesses: &task.accesses };
            if discovery.submit(&submitted).is_ok() {
                accepted.push(task.clone());
            }
        }
        discovery.flush();
        if rank == 0 {
            kept = accepted;
        } else {
            assert_eq!(kept.len(), accepted.len(), "ranks must refuse the same tasks");
        }
        all.push(discovery);
    }
    (kept, all)
}

/// Returns the minimum number of elements that must come from another rank: one for each version of a point and each
/// rank that reads the version without having it. Partial results are not counted.
fn least_elements(program: &Random, tasks: &[OwnedTask], nodes: u32) -> u64 {
    let mut moved = 0;
    for (b, about) in program.buffers.iter().enumerate() {
        let n = buffer_box(about).volume() as usize;
        // For each point, whether each rank has the present contents of the point; `None` if the contents are partial.
        let mut has: Vec<Option<Vec<bool>>> = vec![Some(vec![true; nodes as usize]); n];
        for task in tasks {
            let chunks = chunks(&task.geometry, nodes);
            for (rank, chunk) in chunks.iter().enumerate() {
                for x in touched_by(task, chunk, b, about, Mode::reads) {
                    if let Some(has) = &mut has[x] {
                        moved += u64::from(!has[rank]);
                        has[rank] = true;
                    }
                }
            }
            for (rank, chunk) in chunks.iter().enumerate() {
                for x in touched_by(task, chunk, b, about, Mode::writes) {
                    has[x] = Some((0..nodes as usize).map(|k| k == rank).collect());
                }
                for x in touched_by(task, chunk, b, about, |m| m == Mode::Reduce) {
                    has[x] = None;
                }
            }
        }
    }
    moved
}

/// The index of a buffer, a region, and the region's contents.
type Message = (usize, Region, Vec<Value>);

struct Machine<'a> {
    program: &'a Random,
    tasks: &'a [OwnedTask],
    nodes: u32,
    /// The values by rank, buffer and point.
    memory: Vec<Vec<Vec<Value>>>,
    /// The version that each task must find, by task, buffer and point.
    expected: Vec<Vec<Vec<u32>>>,
    mail: BTreeMap<(u32, u32), VecDeque<Message>>,
    delivered: u64,
    /// True if a point may be received only once.
    once: bool,
}

impl<'a> Machine<'a> {
    fn new(program: &'a Random, tasks: &'a [OwnedTask], nodes: u32, once: bool) -> Self {
        let sizes: Vec<usize> = program.buffers.iter().map(|b| buffer_box(b).volume() as usize).collect();
        let start = |b: usize| if program.buffers[b].initialized { Value::Version(0) } else { Value::Nothing };
        let memory = (0..nodes).map(|_| sizes.iter().enumerate().map(|(b, &n)| vec![start(b); n]).collect()).collect();
        let mut now: Vec<Vec<u32>> = sizes.iter().map(|&n| vec![0; n]).collect();
        let mut expected = Vec::new();
        for (t, task) in tasks.iter().enumerate() {
            expected.push(now.clone());
            for chunk in chunks(&task.geometry, nodes) {
                for (b, about) in program.buffers.iter().enumerate() {
                    for x in touched_by(task, &chunk, b, about, |m| m.writes() || m == Mode::Reduce) {
                        now[b][x] = t as u32 + 1;
                    }
                }
            }
        }
        Self { program, tasks, nodes, memory, expected, mail: BTreeMap::new(), delivered: 0, once }
    }

    fn points(&self, buffer: usize, region: &Region) -> Vec<usize> {
        points_of(region, &buffer_box(&self.program.buffers[buffer]))
    }

    fn receive(&mut self, rank: u32, buffer: usize, points: &[usize], values: &[Value]) {
        for (&x, &value) in points.iter().zip(values) {
            assert!(matches!(value, Value::Version(_)), "rank {rank} is sent {value:?} of point {x}");
            let place = &mut self.memory[rank as usize][buffer][x];
            assert!(!self.once || *place != value, "rank {rank} is sent point {x} of buffer {buffer} twice");
            *place = value;
            self.delivered += 1;
        }
    }

    /// Executes the command if it can run, and returns whether it ran.
    fn step(&mut self, rank: u32, discovery: &Discovery, command: &Command, at: &[Option<u32>]) -> bool {
        match &command.action {
            Action::Push { buffer, to, region, .. } => {
                let b = buffer.index();
                let values = self.points(b, region).iter().map(|&x| self.memory[rank as usize][b][x]).collect();
                self.mail.entry((rank, *to)).or_default().push_back((b, Region::clone(region), values));
            }
            Action::AwaitPush { buffer, from, .. } => {
                let there = |(source, _): &(u32, _)| self.mail.get(&(*source, rank)).is_some_and(|m| !m.is_empty());
                if !from.iter().all(there) {
                    return false;
                }
                for (source, region) in from.iter() {
                    let message = self.mail.get_mut(&(*source, rank)).and_then(VecDeque::pop_front);
                    let (b, sent, values) = message.expect("it is there");
                    assert_eq!((b, &sent), (buffer.index(), &**region), "messages must match in order");
                    let points = self.points(b, region);
                    self.receive(rank, b, &points, &values);
                }
            }
            Action::Collective { buffer, group, operation, .. } => {
                if !operation.participants.iter().all(|k| at[k as usize] == Some(*group)) {
                    return false;
                }
                self.collective(discovery, buffer.index(), operation);
            }
            Action::Execute { chunk } => self.execute(rank, command.task.index(), chunk),
        }
        true
    }

    fn collective(&mut self, discovery: &Discovery, b: usize, operation: &unisono_discover::Operation) {
        let sides = discovery.sides();
        let before: Vec<Vec<Value>> = (0..self.nodes as usize).map(|k| self.memory[k][b].clone()).collect();
        for rank in operation.participants.iter() {
            let received = self.points(b, &operation.received(sides, rank));
            if operation.pattern.reduces() {
                for x in received {
                    let givers = (0..self.nodes).filter(|&k| matches!(before[k as usize][x], Value::Partial(_)));
                    let tasks: Vec<u32> = givers
                        .filter_map(|k| match before[k as usize][x] {
                            Value::Partial(t) if self.points(b, &operation.given(sides, k)).contains(&x) => Some(t),
                            _ => None,
                        })
                        .collect();
                    let newest = *tasks.iter().max().expect("someone contributes");
                    let task = &self.tasks[newest as usize - 1];
                    let about = &self.program.buffers[b];
                    let gives = |chunk: &&unisono_discover::Box3| {
                        touched_by(task, chunk, b, about, |m| m == Mode::Reduce).contains(&x)
                    };
                    let due = chunks(&task.geometry, self.nodes).iter().filter(gives).count();
                    assert_eq!(tasks.iter().filter(|&&t| t == newest).count(), due, "all contribute to {x}");
                    self.memory[rank as usize][b][x] = Value::Version(newest);
                }
                continue;
            }
            let mut seen = 0;
            for (source, region) in operation.receives(sides, rank) {
                assert!(operation.participants.has(source));
                let points = self.points(b, &region);
                let values: Vec<Value> = points.iter().map(|&x| before[source as usize][x]).collect();
                let back = operation.sends(sides, source).into_iter().find(|(to, _)| *to == rank);
                assert_eq!(back.map(|(_, r)| r).as_ref(), Some(&region), "both ends agree");
                let given = operation.given(sides, source);
                assert!(given.contains(&region));
                self.receive(rank, b, &points, &values);
                seen += points.len();
            }
            assert_eq!(seen, received.len(), "what is received comes from someone, once");
        }
    }

    fn execute(&mut self, rank: u32, t: usize, chunk: &unisono_discover::Box3) {
        let task = &self.tasks[t];
        assert_eq!(chunks(&task.geometry, self.nodes)[rank as usize], *chunk);
        for (b, about) in self.program.buffers.iter().enumerate() {
            for x in touched_by(task, chunk, b, about, Mode::reads) {
                let expected = Value::Version(self.expected[t][b][x]);
                let found = self.memory[rank as usize][b][x];
                assert_eq!(found, expected, "task {t} on rank {rank} reads point {x} of buffer {b}");
            }
        }
        for (b, about) in self.program.buffers.iter().enumerate() {
            for x in touched_by(task, chunk, b, about, Mode::writes) {
                self.memory[rank as usize][b][x] = Value::Version(t as u32 + 1);
            }
            for x in touched_by(task, chunk, b, about, |m| m == Mode::Reduce) {
                let alone = chunks(&task.geometry, self.nodes).len() == 1;
                let value = if alone { Value::Version(t as u32 + 1) } else { Value::Partial(t as u32 + 1) };
                self.memory[rank as usize][b][x] = value;
            }
        }
    }

    /// Runs all commands in the order of each rank.
    fn run(&mut self, discoveries: &[Discovery]) {
        let lists: Vec<&[Command]> = discoveries.iter().map(Discovery::commands).collect();
        let mut next = vec![0; lists.len()];
        loop {
            let mut moved = false;
            for rank in 0..lists.len() {
                while let Some(command) = lists[rank].get(next[rank]) {
                    // The collective that each rank waits for, if any.
                    let at: Vec<Option<u32>> = lists
                        .iter()
                        .zip(&next)
                        .map(|(list, &n)| match list.get(n).map(|c| &c.action) {
                            Some(Action::Collective { group, .. }) => Some(*group),
                            _ => None,
                        })
                        .collect();
                    if !self.step(rank as u32, &discoveries[rank], command, &at) {
                        break;
                    }
                    moved = true;
                    if let Action::Collective { operation, .. } = &command.action {
                        operation.participants.iter().for_each(|k| next[k as usize] += 1);
                    } else {
                        next[rank] += 1;
                    }
                }
            }
            if !moved {
                break;
            }
        }
        for (rank, (list, &n)) in lists.iter().zip(&next).enumerate() {
            assert_eq!(n, list.len(), "rank {rank} stops before {:?}", list.get(n));
        }
        assert!(self.mail.values().all(VecDeque::is_empty), "every message is received");
    }
}

fn check(seed: u64, reductions: bool, found: &mut BTreeMap<(&'static str, Option<Pattern>), u32>) -> usize {
    let program = random(seed, reductions);
    let mut kept = 0;
    for nodes in [1, 2, 3, 4, 7] {
        let mut messages = 0;
        for (rules, window) in
            [(Rules::Off, 0), (Rules::Paper, 0), (Rules::Full, 0), (Rules::Full, 3), (Rules::Full, 100)]
        {
            let (tasks, mut discoveries) = discover(&program, nodes, rules, window);
            kept = tasks.len();
            let mut machine = Machine::new(&program, &tasks, nodes, rules != Rules::Paper);
            machine.run(&discoveries);
            let (traffic, _) = discoveries[0].traffic();
            let counted = traffic.pushed_elements + traffic.collective_elements;
            match rules {
                Rules::Off => messages = counted,
                Rules::Full => assert!(counted <= messages, "{counted} > {messages}: seed {seed}, {nodes} nodes"),
                Rules::Paper => {}
            }
            if !reductions {
                assert_eq!(machine.delivered, counted, "the report counts what is moved");
                let least = least_elements(&program, &tasks, nodes);
                if rules == Rules::Paper {
                    assert!(counted >= least);
                } else {
                    assert_eq!(counted, least, "{rules:?} moves what point-to-point moves: seed {seed}, {nodes} nodes");
                }
            }
            if rules == Rules::Off && !reductions {
                assert_eq!(traffic.collectives, 0);
            }
            check_waits(&program, &tasks, &discoveries);
            let first = discoveries[0].take_forwards();
            let name = if rules == Rules::Full { "full" } else { "other" };
            first.iter().for_each(|f| *found.entry((name, f.pattern)).or_default() += 1);
            for discovery in &mut discoveries[1..] {
                assert_eq!(discovery.take_forwards(), first, "one order on all ranks");
            }
            let mut observer = Discovery::new(Options { window, ..Options::report(nodes, rules) }).expect("sound");
            for (k, buffer) in program.buffers.iter().enumerate() {
                let made = Buffer::new(&format!("B{k}"), &buffer.sizes, 8, buffer.initialized);
                observer.buffer(made.expect("the shape is sound"));
            }
            for task in &tasks {
                let submitted = Task { name: &task.name, geometry: task.geometry, accesses: &task.accesses };
                observer.submit(&submitted).expect("it was accepted");
            }
            observer.flush();
            assert_eq!(observer.take_forwards(), first, "no rank at all sees the same");
            assert_eq!(observer.traffic(), discoveries[0].traffic());
            check_moved(&observer, &discoveries);
        }
    }
    kept
}

/// Checks that the records for cost models agree with all ranks' commands: messages for each pair of ranks, and
/// collectives by the amounts that each rank gives and gets.
fn check_moved(observer: &Discovery, discoveries: &[Discovery]) {
    let (mut pushed, mut operated) = (BTreeMap::new(), BTreeMap::new());
    for (rank, discovery) in discoveries.iter().enumerate() {
        for command in discovery.commands() {
            let task = discovery.task_name(command.task);
            match &command.action {
                Action::Push { buffer, to, region, .. } => {
                    let key = (task, buffer.0, rank as u32, *to, region.volume());
                    *pushed.entry(key).or_insert(0_u64) += 1;
                }
                Action::Collective { buffer, operation, given, received, .. } => {
                    let ranks: Vec<u32> = operation.participants.iter().collect();
                    let row = operated.entry((task, buffer.0, operation.pattern, ranks)).or_insert((0, 0, 0));
                    row.0 += u64::from(operation.participants.first() == Some(rank as u32));
                    (row.1, row.2) = (row.1.max(given.volume()), row.2.max(received.volume()));
                }
                _ => {}
            }
        }
    }
    let (mut priced, mut of_operations) = (BTreeMap::new(), BTreeMap::new());
    for row in observer.moved() {
        let task = observer.task_name(row.before);
        for &(from, to, elements) in &row.what.messages {
            *priced.entry((task, row.buffer.0, from, to, elements)).or_insert(0_u64) += row.count;
        }
        if row.what.messages.is_empty() {
            let ranks: Vec<u32> = row.what.participants.iter().collect();
            let pattern = row.what.pattern.expect("it is a collective");
            let sum = of_operations.entry((task, row.buffer.0, pattern, ranks)).or_insert((0, 0, 0));
            sum.0 += row.count;
            (sum.1, sum.2) = (sum.1.max(row.what.gives.most), sum.2.max(row.what.gets.most));
        }
    }
    assert_eq!(priced, pushed);
    assert_eq!(of_operations, operated);
}

/// Checks that two commands of a rank are ordered by their waits if they touch the same point and one changes it.
fn check_waits(program: &Random, tasks: &[OwnedTask], discoveries: &[Discovery]) {
    let nodes = discoveries.len() as u32;
    for (rank, discovery) in discoveries.iter().enumerate() {
        let commands = discovery.commands();
        let mut before: Vec<Vec<bool>> = Vec::with_capacity(commands.len());
        let first = commands.first().map_or(0, |c| c.id.0);
        for (k, command) in commands.iter().enumerate() {
            let mut all = vec![false; k];
            let until = command.waits.all_until.map_or(0, |id| id.0 + 1 - first) as usize;
            let on = command.waits.on.iter().map(|id| (id.0 - first) as usize);
            for earlier in on.chain(0..until) {
                all[earlier] = true;
                before[earlier].iter().enumerate().for_each(|(j, &b)| all[j] |= b);
            }
            before.push(all);
        }
        let touches: Vec<_> = commands.iter().map(|c| touches(program, tasks, nodes, rank, c)).collect();
        let meet = |a: &[Vec<usize>], b: &[Vec<usize>]| a.iter().zip(b).any(|(a, b)| a.iter().any(|x| b.contains(x)));
        for k in 0..commands.len() {
            for j in 0..k {
                let (reads, writes) = &touches[k];
                let (read, written) = &touches[j];
                if meet(writes, read) || meet(writes, written) || meet(reads, written) {
                    assert!(before[k][j], "rank {rank}: {:?} must wait for {:?}", commands[k], commands[j]);
                }
            }
        }
    }
}

type Points = Vec<Vec<usize>>;

fn touches(program: &Random, tasks: &[OwnedTask], nodes: u32, rank: usize, command: &Command) -> (Points, Points) {
    let mut reads = vec![Vec::new(); program.buffers.len()];
    let mut writes = reads.clone();
    let at = |b: usize, region: &Region| points_of(region, &buffer_box(&program.buffers[b]));
    match &command.action {
        Action::Push { buffer, region, .. } => reads[buffer.index()] = at(buffer.index(), region),
        Action::AwaitPush { buffer, from, .. } => {
            writes[buffer.index()] = from.iter().flat_map(|(_, r)| at(buffer.index(), r)).collect();
        }
        Action::Collective { buffer, given, received, .. } => {
            reads[buffer.index()] = at(buffer.index(), given);
            writes[buffer.index()] = at(buffer.index(), received);
        }
        Action::Execute { .. } => {
            let task = &tasks[command.task.index()];
            let chunk = chunks(&task.geometry, nodes)[rank];
            for (b, about) in program.buffers.iter().enumerate() {
                reads[b] = touched_by(task, &chunk, b, about, Mode::reads);
                writes[b] = touched_by(task, &chunk, b, about, |m| m.writes() || m == Mode::Reduce);
            }
        }
    }
    (reads, writes)
}

/// Checks that the random programs contain the tested patterns.
fn all_found(found: &BTreeMap<(&str, Option<Pattern>), u32>, patterns: &[Pattern]) {
    for &pattern in patterns {
        let times = found.get(&("full", Some(pattern))).copied().unwrap_or(0);
        assert!(times > cases(20), "{pattern} comes up {times} times: {found:?}");
    }
}

#[test]
fn data_arrives_once_and_no_more_than_point_to_point() {
    use Pattern::{Allgather, Alltoall, Broadcast, Gather, Halo, Scatter};
    let mut found = BTreeMap::new();
    let kept: usize = (0..u64::from(cases(1000))).map(|seed| check(seed, false, &mut found)).sum();
    assert!(kept > cases(5000) as usize, "too few sound tasks: {kept}");
    all_found(&found, &[Gather, Allgather, Broadcast, Scatter, Alltoall, Halo]);
}

#[test]
fn reductions_have_all_contributions() {
    let mut found = BTreeMap::new();
    let kept: usize = (1000..1000 + u64::from(cases(1000))).map(|seed| check(seed, true, &mut found)).sum();
    assert!(kept > cases(5000) as usize, "too few sound tasks: {kept}");
    all_found(&found, &[Pattern::Reduce, Pattern::Allreduce, Pattern::ReduceScatter]);
}
