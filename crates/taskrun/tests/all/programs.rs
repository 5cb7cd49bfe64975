//! Random programs of tasks, run by all ranks with messages in one process, and compared with the same tasks run one
//! after the other on one memory. Every way to carry out a collective occurs, and kernels run during exchanges.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    sync::Arc,
};

use unisono_base::{BufferId, TaskId, mix};
use unisono_collective::Kind;
use unisono_discover::{
    Access, Box3, Buffer, DiscoverError, Discovery, Geometry, Mapper, Mode, Options, ProvedReads, Region, Rules, Task,
};
use unisono_mpi::{Function, Shares};
use unisono_taskrun::{
    Arguments, Array, Command, Host, Memory, MessageLayer, MpiReduction, Objects, Reducing, Route, Routes, Run,
    RunError, Served, Step, WorldCall, layout,
};

use crate::{
    local::{Local, OPERATORS, Request, World, combine},
    soak::cases,
};

/// A generator of random numbers. The multiplier is Knuth's; only the high bits are random.
struct Random(Cell<u64>);

impl Random {
    fn below(&self, n: u64) -> u64 {
        self.0.set(self.0.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
        (self.0.get() >> 33) % n
    }

    fn one_of<T: Clone>(&self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize].clone()
    }
}

struct Submitted {
    geometry: Geometry,
    accesses: Vec<Access>,
    /// The index of the operator of a reduction.
    op: usize,
}

struct Program {
    size: i64,
    tasks: Vec<Submitted>,
    /// The operators of the tasks that reduce each array.
    operators: [Vec<usize>; 2],
}

const ARRAYS: [BufferId; 2] = [BufferId(0), BufferId(1)];

impl Program {
    fn random(random: &Random) -> Self {
        let size = 1 + random.below(9) as i64;
        let mut operators = [Vec::new(), Vec::new()];
        let tasks = (0..1 + random.below(7)).map(|_| {
            let at = random.below(2) as usize;
            let (from, to) = (ARRAYS[at], ARRAYS[1 - at]);
            let reach = Mapper::Neighborhood([1, 1, 0]);
            let row = Mapper::Fixed(Box3::new([0; 3], [1, size, 1]));
            let reads = [Mapper::OneToOne, Mapper::All, Mapper::Transposed([1, 0, 2]), reach.clone(), row.clone()];
            let many = Geometry::of(&[size, size]);
            let read = Access::new(from, Mode::Read, random.one_of(&reads));
            let op = random.below(3).saturating_sub(1) as usize;
            let (geometry, change) = match random.below(4) {
                0 => (many, Access::new(to, random.one_of(&[Mode::Write, Mode::ReadWrite]), Mapper::OneToOne)),
                1 => (Geometry::of(&[1, 1]), Access::new(to, Mode::Write, random.one_of(&[Mapper::All, row]))),
                _ => {
                    operators[to.index()].push(op);
                    (many, Access::new(to, Mode::Reduce, random.one_of(&[Mapper::All, reach, Mapper::OneToOne])))
                }
            };
            Submitted { geometry, accesses: vec![read, change], op }
        });
        Self { size, tasks: tasks.collect(), operators }
    }

    fn is_coded(&self, array: usize) -> bool {
        self.operators[array].iter().any(|op| *op != self.operators[array][0])
    }

    fn discovery(&self, nodes: u32, rank: u32, rules: Rules) -> Result<Discovery, DiscoverError> {
        let options = Options { rows: true, ..Options::commands(nodes, rank, rules) };
        let mut made = Discovery::new(options)?;
        for name in ["A", "B"] {
            made.buffer(Buffer::new(name, &[self.size, self.size], 8, true)?);
        }
        for task in &self.tasks {
            made.submit(&Task { name: "step", geometry: task.geometry, accesses: &task.accesses })?;
        }
        for array in ARRAYS {
            made.fence("fetch", array, Box3::of_size([self.size, self.size, 1]))?;
        }
        Ok(made)
    }

    fn points<'a>(&self, region: &'a Region) -> impl Iterator<Item = usize> + use<'a> {
        let size = self.size;
        let rows = region.boxes().iter().flat_map(|b| (b.min[0]..b.max[0]).map(move |row| (row, b.min[1]..b.max[1])));
        rows.flat_map(move |(row, columns)| columns.map(move |column| (row * size + column) as usize))
    }

    /// Returns a hash of the elements that a kernel reads.
    fn seen(&self, number: usize, view: &Region, values: impl Fn(usize) -> i64) -> i64 {
        let add = |sum: u64, at: usize| mix(sum ^ values(at).cast_unsigned()).wrapping_add(at as u64);
        (self.points(view).fold(number as u64 + 1, add) >> 40).cast_signed()
    }

    /// Returns the contents of both arrays after all tasks, computed on one memory.
    fn reference(&self, discoveries: &[Discovery]) -> [Vec<i64>; 2] {
        let mut arrays = [initial(self.size, 0), initial(self.size, 1)];
        for (number, task) in self.tasks.iter().enumerate() {
            let (from, to) = (task.accesses[0].buffer.index(), task.accesses[1].buffer.index());
            let mut sums: BTreeMap<usize, i64> = BTreeMap::new();
            let old = arrays.clone();
            for discovery in discoveries {
                let views = discovery.views(TaskId::new(number));
                // A rank without a part has no views.
                let [read, change] = &views[..] else { continue };
                let seen = self.seen(number, read, |at| old[from][at]);
                for at in self.points(change) {
                    let value = seen + at as i64;
                    match task.accesses[1].mode {
                        Mode::Reduce => {
                            let sum = sums.entry(at);
                            sum.and_modify(|sum| *sum = OPERATORS[task.op](*sum, value)).or_insert(value);
                        }
                        Mode::ReadWrite => arrays[to][at] = old[to][at].wrapping_mul(3).wrapping_add(value),
                        _ => arrays[to][at] = value,
                    }
                }
            }
            sums.into_iter().for_each(|(at, sum)| arrays[to][at] = sum);
        }
        arrays
    }
}

fn initial(size: i64, array: i64) -> Vec<i64> {
    (0..size * size).map(|at| 100 * array + at).collect()
}

/// The arrays of a rank, as cells that exchanges write by address.
type Cells = Box<[Cell<i64>]>;
type Codes = Box<[Cell<u8>]>;

struct Kept;

impl Objects for Kept {
    type Details = ();
    type Planned = Planned;
}

/// A collective by a plan: its request, and memory of the input and of the result.
struct Planned {
    request: Request,
    given: Vec<u8>,
    got: Option<Vec<u8>>,
    unpacks: Option<(Arc<WorldCall>, usize)>,
}

struct Rank<'a> {
    program: &'a Program,
    discovery: Discovery,
    world: World,
    random: &'a Random,
    memory: Arc<Memory<Local>>,
    arrays: [Cells; 2],
    codes: [Codes; 2],
    run: Option<&'a Run<Kept, Local>>,
    /// True if plans execute the collectives that plans support.
    plans: bool,
    ways: &'a RefCell<BTreeMap<&'static str, u64>>,
}

impl Rank<'_> {
    fn count(&self, what: &'static str) {
        *self.ways.borrow_mut().entry(what).or_default() += 1;
    }
}

impl Host for Rank<'_> {
    type Objects = Kept;
    type Error = RunError;

    fn execute(&self, command: &Command<Kept>, alone: bool) -> Result<(), RunError> {
        let beside = || -> Result<(), RunError> {
            while !alone && self.random.below(2) == 0 {
                self.world.deliver(self.random.below(1 << 20));
                if let Some(run) = self.run {
                    run.advance(self)?;
                    self.count("beside a kernel");
                }
            }
            Ok(())
        };
        beside()?;
        let number = command.task as usize;
        let Some(task) = self.program.tasks.get(number) else { return Ok(()) };
        let views = self.discovery.views(TaskId(command.task));
        let (from, to) = (task.accesses[0].buffer.index(), task.accesses[1].buffer.index());
        let seen = self.program.seen(number, &views[0], |at| self.arrays[from][at].get());
        beside()?;
        for at in self.program.points(&views[1]) {
            let (cell, value) = (&self.arrays[to][at], seen + at as i64);
            match task.accesses[1].mode {
                Mode::ReadWrite => cell.set(cell.get().wrapping_mul(3).wrapping_add(value)),
                Mode::Reduce => {
                    cell.set(value);
                    self.codes[to][at].set(task.op as u8);
                }
                _ => cell.set(value),
            }
        }
        beside()
    }

    fn begins(&self, _: &mut Command<Kept>) -> Result<(), RunError> {
        Ok(())
    }

    fn ended(&self, _: &mut Command<Kept>, _: Option<&Route>, served: Served<'_, Planned>) -> Result<(), RunError> {
        self.count(match served {
            Served::Messages => "messages",
            Served::Library => "library",
            Served::Planned(_) => "planned",
        });
        Ok(())
    }

    fn reducing(&self, array: usize) -> Result<Reducing, RunError> {
        if self.program.is_coded(array) {
            return Ok(Reducing { operator: None, mpi: None });
        }
        let op = self.program.operators[array][0];
        let neutral = if op == 0 { 0i64 } else { i64::MIN }.to_ne_bytes().to_vec();
        let mpi = Some(MpiReduction { datatype: 1, op, neutral, exact: true });
        Ok(Reducing { operator: Some(op as u32), mpi })
    }

    fn combine(&self, array: usize, part: &Box3, values: &[u8], codes: Option<&[u8]>) -> Result<(), RunError> {
        self.count(if codes.is_some() { "sums of several operators" } else { "sums" });
        for (k, at) in self.program.points(&Region::from(*part)).enumerate() {
            let op = codes.map_or_else(|| self.program.operators[array][0], |codes| codes[k] as usize);
            let value = i64::from_ne_bytes(values[8 * k..8 * k + 8].try_into().expect("8 bytes"));
            let cell = &self.arrays[array][at];
            cell.set(OPERATORS[op](cell.get(), value));
        }
        Ok(())
    }

    fn communicator(&self, participants: &[u32]) -> Result<usize, RunError> {
        Ok(self.world.communicator(participants))
    }

    fn is_planned(&self, _: &Arc<WorldCall>, _: usize) -> Result<bool, RunError> {
        Ok(self.plans)
    }

    fn can_start(&self) -> Result<bool, RunError> {
        Ok(self.random.below(4) > 0)
    }

    fn start(&self, call: &Arc<WorldCall>, array: usize, in_place: bool) -> Result<Planned, RunError> {
        let (held, ranks) = (self.memory.array(array)?, self.discovery.options().nodes as usize);
        let mut given = vec![0; call.bytes()];
        if call.at().is_none() {
            // SAFETY: the memory was made for this call.
            unsafe { call.pack(&held, given.as_mut_ptr()) };
        }
        let mut got = call.result_bytes().map(|bytes| vec![0; bytes]);
        let into = call.in_place().filter(|_| in_place);
        let own = call.at().map_or(given.as_mut_ptr(), |at| held.at(at));
        let result = match (&mut got, into) {
            (_, Some(at)) => held.at(at),
            (Some(got), None) => got.as_mut_ptr(),
            (None, None) => own,
        };
        let unit = if call.combines { 8 } else { 1 };
        let numbers = |bytes: usize| vec![i32::try_from(bytes / unit).expect("small"); ranks];
        let places = |part: usize| (0..ranks).map(|k| i32::try_from(k * part).expect("small")).collect::<Vec<_>>();
        let (part, shared) = (call.bytes() / ranks, got.is_none());
        let function = match call.kind {
            Kind::Alltoall => Function::Alltoallv,
            Kind::Allgather => Function::Allgather,
            Kind::Broadcast => Function::Broadcast,
            Kind::Reduce => Function::Reduce,
            Kind::Allreduce => Function::Allreduce,
            _ => Function::ReduceScatterBlock,
        };
        let (counts, places) = match function {
            Function::Alltoallv => (numbers(part), places(part)),
            Function::ReduceScatterBlock => (numbers(part), Vec::new()),
            _ => (numbers(call.bytes()), Vec::new()),
        };
        let reduction = call.combines.then(|| (1, self.program.operators[array][0]));
        let comm = self.world.communicator(&(0..ranks as u32).collect::<Vec<_>>());
        let arguments = Arguments { function, comm, reduction, root: call.root };
        let from = Shares { address: own, counts: &counts, places: &places, in_place: shared };
        let to = Shares { address: result, counts: &counts, places: &places, in_place: false };
        // SAFETY: the memory lives as long as the request.
        let request = unsafe { self.memory.layer.collective(&arguments, from, to) }?;
        let unpacks = (call.at().is_none() && into.is_none()).then(|| (call.clone(), array));
        Ok(Planned { request, given, got, unpacks })
    }

    fn is_over(&self, planned: &mut Planned) -> Result<bool, RunError> {
        Ok(self.memory.layer.is_over(&mut planned.request)?)
    }

    fn finish(&self, planned: &mut Planned) -> Result<(), RunError> {
        if let Some((call, array)) = &planned.unpacks {
            let result = planned.got.as_ref().unwrap_or(&planned.given);
            // SAFETY: the memory was made for this call, which is over.
            unsafe { call.unpack(&self.memory.array(*array)?, result.as_ptr()) };
        }
        Ok(())
    }

    fn unproved(&self, error: DiscoverError) -> RunError {
        RunError::refused(error)
    }

    fn guarded<R: Send>(&self, act: impl FnOnce() -> R + Send) -> Result<R, RunError> {
        Ok(act())
    }

    fn unlocked<R: Send>(&self, act: impl FnOnce() -> R + Send) -> R {
        act()
    }

    fn idle(&self) -> Result<(), RunError> {
        Ok(())
    }
}

/// Runs one random program, compares its results with the reference, and counts its exchanges by the way in which they
/// were carried out.
fn judged(seed: u64, ways: &RefCell<BTreeMap<&'static str, u64>>) {
    let random = Random(Cell::new(mix(seed)));
    let program = Program::random(&random);
    let nodes = 1 + random.below(5) as u32;
    let rules = random.one_of(&[Rules::Full, Rules::Full, Rules::Off]);
    let (by_messages, plans) = (random.below(4) == 0, random.below(3) == 0);
    let largest = random.one_of(&[1 << 30, 24, 200]);
    let Ok(discoveries) = (0..nodes).map(|k| program.discovery(nodes, k, rules)).collect::<Result<Vec<_>, _>>() else {
        return;
    };
    let expected = program.reference(&discoveries);
    let world = World::default();
    let mut ranks = Vec::new();
    for (rank, discovery) in (0..).zip(discoveries) {
        let memory = Memory::new(Local { rank, world: world.clone() }, largest).expect("messages have bytes");
        let cells = |array: i64| initial(program.size, array).into_iter().map(Cell::new).collect::<Cells>();
        let arrays = [cells(0), cells(1)];
        let codes: [Codes; 2] = std::array::from_fn(|k| arrays[k].iter().map(|_| Cell::new(0)).collect());
        let shape = [program.size as usize; 2];
        for (k, (array, codes)) in arrays.iter().zip(&codes).enumerate() {
            let (data, of_codes) = (array.as_ptr().cast_mut().cast(), codes.as_ptr().cast_mut().cast());
            // SAFETY: the cells live as long as the rank, which outlives its run.
            memory.hold(unsafe { Array::new(data, layout(&shape, 8).expect("two dimensions"), Box::new(())) });
            if program.is_coded(k) {
                // SAFETY: as above.
                let array = unsafe { Array::new(of_codes, layout(&shape, 1).expect("two dimensions"), Box::new(())) };
                memory.hold_codes(k, array);
            }
        }
        let (memory, run, world) = (Arc::new(memory), None, world.clone());
        let (program, random) = (&program, &random);
        ranks.push(Rank { program, discovery, world, random, memory, arrays, codes, run, plans, ways });
    }
    let runs: Vec<_> = ranks
        .iter_mut()
        .map(|rank| {
            let (reads, commands) = (rank.discovery.take_reads(), rank.discovery.take_commands());
            let mut proved = ProvedReads::default();
            for read in &reads {
                let pushed = proved.name(&rank.discovery, read, ARRAYS[0]);
                pushed.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            }
            let listed = commands.into_iter().map(|command| (command, None)).collect();
            let run: Run<Kept, Local> = Run::new(rank.memory.clone(), listed).expect("regions are in their arrays");
            let mut routes = Routes::new(by_messages);
            let mut proofs = proved.proofs;
            let prepared = run.prepare(|operation, buffer| {
                // `prepare` has taken the state of the run, so a second preparation finds nothing to prepare.
                assert_eq!(run.prepare(|_, _| -> Result<_, ()> { panic!("seed {seed}: prepared twice") }), Ok(false));
                routes.prepare(&*rank, (&rank.discovery, &mut proofs), &rank.memory, operation, buffer)
            });
            assert!(prepared.unwrap_or_else(|error| panic!("seed {seed}: {error}")), "seed {seed}");
            run
        })
        .collect();
    ranks.iter_mut().zip(&runs).for_each(|(rank, run)| rank.run = Some(run));
    let mut unfinished: Vec<usize> = (0..ranks.len()).collect();
    let mut still = 0;
    while !unfinished.is_empty() {
        let pick = random.below(unfinished.len() as u64) as usize;
        let at = unfinished[pick];
        let step = runs[at].step(&ranks[at]).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        if step == Step::Finished {
            unfinished.swap_remove(pick);
        }
        let delivered = random.below(2) == 0 && world.deliver(random.below(1 << 20));
        still = if step == Step::Waits && !delivered { still + 1 } else { 0 };
        assert!(still < 10_000, "seed {seed}: ranks {unfinished:?} wait for ever");
    }
    for (number, rank) in ranks.iter().enumerate() {
        for (array, expected) in rank.arrays.iter().zip(&expected) {
            let found: Vec<i64> = array.iter().map(Cell::get).collect();
            assert_eq!(&found, expected, "seed {seed}, rank {number} of {nodes}");
        }
    }
}

#[test]
fn random_programs_compute_the_same_as_one_rank() {
    let ways = RefCell::default();
    (0..u64::from(cases(6000))).for_each(|seed| judged(seed, &ways));
    let ways = ways.into_inner();
    for way in ["messages", "library", "planned", "sums", "sums of several operators", "beside a kernel"] {
        assert!(ways.get(way).is_some_and(|&count| count > 10), "{way}: {ways:?}");
    }
}

#[test]
fn elements_are_combined_by_their_operator() {
    let (mut sum, other) = ([1i64, 5].map(i64::to_ne_bytes).concat(), [7i64, 2].map(i64::to_ne_bytes).concat());
    combine(&mut sum, &other, 1);
    assert_eq!(sum, [7i64, 5].map(i64::to_ne_bytes).concat());
}
