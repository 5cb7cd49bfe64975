//! A communicator with a plan: the rows for its number of ranks, ready to run.

use std::{collections::BTreeMap, mem, sync::Arc};

use unisono_collective::{Kind, OperatorClass};
use unisono_runtime::{Blocks, Executor, Progress};
use unisono_schedule::{plan_file::PlanFile, stored::in_place};

use crate::{
    call::Call,
    library::{Comm, Failed, Library, Outcome},
    port::Port,
};

/// What the ranks of a communicator found when they compared their plans.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Agreement {
    /// No rank has a plan, or the plan says nothing of this number of ranks.
    Unplanned,
    Planned,
    /// Some ranks have another plan, or none.
    Differs,
}

struct Entry {
    row: usize,
    per_node: Option<u32>,
    class: OperatorClass,
    first_bytes: u64,
    last_bytes: u64,
    /// None: the library's own.
    schedule: Option<usize>,
    /// Its executors are here in [`Planned`].
    number: usize,
}

/// The programs of an entry that ran, by rank of the schedule, which differs from that of the communicator where the
/// root does: for calls out of place, and in place.
type Executors = [BTreeMap<u32, Executor<usize>>; 2];

impl Entry {
    fn serves(&self, class: OperatorClass, bytes: u64) -> bool {
        let fits = self.class == class || (class == OperatorClass::Commutative && self.class == OperatorClass::Ordered);
        fits && self.first_bytes <= bytes && bytes <= self.last_bytes
    }
}

/// A call that has begun, with the part that this rank plays in it.
#[derive(Clone, Copy)]
struct Running {
    call: Call,
    entry: usize,
    blocks: Blocks,
    /// What is added to a rank of the schedule to get the rank of the communicator.
    shift: u32,
    own: u32,
}

/// The rows of a plan that serve the calls of one communicator. They never change, so threads may share them.
pub struct Rows {
    plan: Arc<PlanFile>,
    ranks: u32,
    /// By kind; those that come first serve first.
    entries: Vec<Vec<Entry>>,
}

/// Runs planned collectives on a private duplicate of a communicator, one at a time.
///
/// A call that is under way when a `Planned` is dropped, or that ended with an error, may have messages in MPI's hands.
/// Its scratch memory is then never freed.
pub struct Planned {
    rows: Arc<Rows>,
    comm: Comm,
    rank: u32,
    executors: Vec<Executors>,
    /// Words, so that elements of any type are aligned.
    scratch: Vec<u128>,
    spare: Vec<u128>,
    running: Option<Running>,
    moves: u64,
}

/// Calls beyond are the library's own: a message's length is an `int`.
const MOST_BYTES: usize = i32::MAX as usize;

impl Planned {
    /// Compares the plans of all ranks of `comm`, and what else they go by (`terms`), on which every rank must call this at
    /// the same point of its program, whether it has a plan or not. Where all have the same, the communicator is
    /// duplicated.
    ///
    /// # Errors
    /// Those of the library.
    pub fn agree(
        library: &Library,
        comm: Comm,
        plan: Option<&Arc<PlanFile>>,
        terms: u64,
    ) -> Outcome<(Agreement, Option<Self>)> {
        let (ranks, rank) = (library.size(comm)?, library.rank(comm)?);
        // All that could fail on one rank alone is done before the ranks compare. One rank proves for all: they go by its
        // plan only if theirs have the same digest.
        let holds = |plan: &PlanFile| rank > 0 || plan.prove_rows(Some(ranks)).is_ok();
        let proven = plan.filter(|plan| holds(plan));
        let prepared = proven.and_then(|plan| Some((plan, entries(plan, ranks, rank)?)));
        let digest = prepared.as_ref().map_or([0, 0], |(plan, _)| plan.digest());
        // 0 stands for no plan.
        let first = prepared.as_ref().map_or(0, |_| digest[0].wrapping_add(terms).max(1));
        let mut differs = false;
        for word in [first, digest[1]] {
            let (least, most) = library.bounds(word, comm)?;
            differs |= least != most;
        }
        match prepared {
            _ if differs => Ok((Agreement::Differs, None)),
            Some((plan, entries)) if entries.iter().any(|kind| !kind.is_empty()) => {
                let comm = library.dup(comm)?;
                let planned = Self::new(library, comm, plan, ranks, rank, entries)?;
                Ok((Agreement::Planned, Some(planned)))
            }
            _ => Ok((Agreement::Unplanned, None)),
        }
    }

    /// A plan that all ranks are known to have, on a communicator that nothing else uses meanwhile. None: the plan says
    /// nothing of this number of ranks, or one of its programs cannot be decoded.
    ///
    /// # Errors
    /// Those of the library.
    pub fn on(library: &Library, private: Comm, plan: &Arc<PlanFile>) -> Outcome<Option<Self>> {
        let (ranks, rank) = (library.size(private)?, library.rank(private)?);
        let entries = entries(plan, ranks, rank);
        // A program that one rank cannot decode is no reason for it to go another way than the others.
        let (least, _) = library.bounds(u64::from(entries.is_some()), private)?;
        match entries.filter(|_| least == 1) {
            Some(entries) => Self::new(library, private, plan, ranks, rank, entries).map(Some),
            None => Ok(None),
        }
    }

    fn new(
        library: &Library,
        comm: Comm,
        plan: &Arc<PlanFile>,
        ranks: u32,
        rank: u32,
        mut entries: Vec<Vec<Entry>>,
    ) -> Outcome<Self> {
        if entries.iter().flatten().any(|entry| entry.per_node.is_some()) {
            let here = library.per_node(comm)?;
            for kind in &mut entries {
                kind.retain(|entry| entry.per_node.is_none_or(|n| n == here));
                // As DecisionTable::find has it: rows for these ranks per node, then those for operators that commute.
                kind.sort_by_key(|entry| (entry.per_node.is_none(), entry.class, entry.first_bytes));
            }
        }
        let numbers: usize = entries.iter().map(Vec::len).sum();
        for (number, entry) in entries.iter_mut().flatten().enumerate() {
            entry.number = number;
        }
        let executors = (0..numbers).map(|_| [BTreeMap::new(), BTreeMap::new()]).collect();
        let rows = Arc::new(Rows { plan: Arc::clone(plan), ranks, entries });
        let (scratch, spare) = (Vec::new(), Vec::new());
        Ok(Self { rows, comm, rank, executors, scratch, spare, running: None, moves: 0 })
    }

    pub fn comm(&self) -> Comm {
        self.comm
    }

    pub fn rows(&self) -> &Arc<Rows> {
        &self.rows
    }

    /// Whether a call is under way, or ended with an error and may have messages under way for ever.
    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// The number of polls that carried a call on.
    pub fn moves(&self) -> u64 {
        self.moves
    }

    /// Runs a call by the entry that [`Rows::find`] named.
    ///
    /// # Errors
    /// Those of the library. A `Planned` on which a call failed runs no other.
    ///
    /// # Safety
    /// The call's input and output hold what its kind and count say, and do not overlap unless it is in place. After an
    /// error that memory is never freed or used again.
    pub unsafe fn run(&mut self, library: &Library, call: Call, entry: usize) -> Outcome {
        let Some(running) = self.begin(call, entry)? else { return Ok(()) };
        let (executor, mut port) = self.parts(library, &running);
        executor.run(&running.blocks, &mut port)?;
        self.running = None;
        Ok(())
    }

    /// Begins a call; [`Planned::poll`] carries it on. One call at a time: what is under way must have ended.
    ///
    /// # Errors
    /// Those of the library. A `Planned` on which a call failed runs no other.
    ///
    /// # Safety
    /// As for [`Planned::run`], until `poll` has said that the call is over.
    pub unsafe fn start(&mut self, library: &Library, call: Call, entry: usize) -> Outcome<bool> {
        if let Some(running) = self.begin(call, entry)? {
            self.parts(library, &running).0.start();
        }
        self.poll(library)
    }

    /// Does what can be done without waiting, and says whether the call is over.
    ///
    /// # Errors
    /// Those of the library. It must not be called again then.
    pub fn poll(&mut self, library: &Library) -> Outcome<bool> {
        let Some(running) = self.running else { return Ok(true) };
        let (executor, mut port) = self.parts(library, &running);
        let mut moves = 0;
        let over = loop {
            match executor.poll(&running.blocks, &mut port)? {
                Progress::Moved => moves += 1,
                Progress::Blocked => break false,
                Progress::Finished => break true,
            }
        };
        self.moves += moves + u64::from(over);
        if over {
            self.running = None;
        }
        Ok(over)
    }

    /// Makes a call ready, unless its schedule has nothing to do for it.
    fn begin(&mut self, call: Call, entry: usize) -> Outcome<Option<Running>> {
        if self.running.is_some() {
            return Err(Failed::OTHER);
        }
        self.running = self.prepare(call, entry)?;
        Ok(self.running)
    }

    fn prepare(&mut self, call: Call, entry: usize) -> Outcome<Option<Running>> {
        let rows = &*self.rows;
        let (ranks, slot) = (rows.ranks, &rows.entries[call.kind as usize][entry]);
        let Some(schedule) = slot.schedule else { return Ok(None) };
        let facts = rows.plan.facts(schedule);
        let Some(blocks) = Blocks::new(facts, call.elements) else { return Ok(None) };
        let c = facts.collective;
        // A schedule for one root serves all: its ranks are counted from another one.
        let shift = if call.kind.has_root() { turned(call.root, c.root, ranks) } else { 0 };
        let own = turned(self.rank, shift, ranks);
        let executor = self.executors[slot.number][usize::from(call.in_place)].entry(own).or_insert_with(|| {
            let program = rows.plan.program(schedule, own);
            let program = program.expect("it was decoded when the ranks compared their plans");
            Executor::new(match call.in_place {
                true => in_place(&program, &c, own).expect("the schedule was found to run in place when it was stored"),
                false => program,
            })
        });
        let pitch = blocks.scratch(1);
        let bytes = pitch
            .checked_mul(executor.program().scratch_blocks as usize)
            .and_then(|elements| elements.checked_mul(call.element_bytes));
        grow(&mut self.scratch, bytes.ok_or(Failed::OTHER)?)?;
        Ok(Some(Running { call, entry, blocks, shift, own }))
    }

    fn parts<'a>(&'a mut self, library: &'a Library, running: &Running) -> (&'a mut Executor<usize>, Port<'a>) {
        let Running { call, entry, shift, own, .. } = *running;
        let number = self.rows.entries[call.kind as usize][entry].number;
        let executor = self.executors[number][usize::from(call.in_place)].get_mut(&own);
        let scratch = self.scratch.as_mut_ptr().cast();
        let ranks = self.rows.ranks;
        let port = Port { library, comm: self.comm, call, scratch, spare: &mut self.spare, ranks, shift };
        (executor.expect("`prepare` made it"), port)
    }
}

impl Drop for Planned {
    fn drop(&mut self) {
        if self.running.is_some() {
            mem::forget(mem::take(&mut self.scratch));
        }
    }
}

impl Rows {
    /// Which entry serves a call; the answer is the same on all ranks. None: the library's own.
    #[inline]
    pub fn find(&self, call: &Call) -> Option<usize> {
        let (class, bytes) = (call.class(), call.bytes());
        let found = self.entries[call.kind as usize].iter().position(|entry| entry.serves(class, bytes))?;
        let schedule = self.entries[call.kind as usize][found].schedule?;
        let facts = self.plan.facts(schedule);
        let (given, got) = call.sizes(self.ranks)?;
        // Messages and sums count bytes and elements by `int`.
        let fits = call.element_bytes > 0 && given.max(got) <= MOST_BYTES;
        // Counting ranks from another root turns their order.
        let turned = class == OperatorClass::Ordered && call.kind.has_root() && call.root != facts.collective.root;
        let known = !call.kind.has_root() || call.root < self.ranks;
        (fits && known && !turned && facts.serves(call.elements as u64)).then_some(found)
    }

    /// The row of the plan's table that an entry is.
    pub fn row(&self, kind: Kind, entry: usize) -> usize {
        self.entries[kind as usize][entry].row
    }

    /// Whether all ranks end an entry's calls with the same bits.
    pub fn is_repeatable(&self, kind: Kind, entry: usize) -> bool {
        self.entries[kind as usize][entry].schedule.is_some_and(|s| self.plan.facts(s).repeatable)
    }

    /// Whether an entry takes the input where the output goes, without a copy.
    pub fn runs_in_place(&self, kind: Kind, entry: usize) -> bool {
        self.entries[kind as usize][entry].schedule.is_some_and(|s| self.plan.facts(s).in_place)
    }
}

/// The number of a rank, where ranks are counted from `first`; both are below `ranks`.
fn turned(rank: u32, first: u32, ranks: u32) -> u32 {
    if rank >= first { rank - first } else { ranks - (first - rank) }
}

/// Makes room for so many bytes.
///
/// # Errors
/// There is not so much memory.
pub fn grow(words: &mut Vec<u128>, bytes: usize) -> Outcome {
    let wanted = bytes.div_ceil(size_of::<u128>());
    if let Some(more) = wanted.checked_sub(words.len()).filter(|more| *more > 0) {
        words.try_reserve_exact(more).map_err(|_| Failed::OTHER)?;
        words.resize(wanted, 0);
    }
    Ok(())
}

/// The rows for so many ranks, by kind, with this rank's programs; none if one of them cannot be decoded.
fn entries(plan: &PlanFile, ranks: u32, rank: u32) -> Option<Vec<Vec<Entry>>> {
    let mut entries: Vec<Vec<Entry>> = Kind::ALL.iter().map(|_| Vec::new()).collect();
    for (number, row) in plan.table().rows().iter().enumerate().filter(|(_, row)| row.ranks == ranks) {
        let schedule = plan.schedule(number);
        if let Some(schedule) = schedule {
            let facts = plan.facts(schedule);
            // Any rank may be the root, and then this one plays another part.
            let parts = if row.kind.has_root() { 0..ranks } else { rank..rank + 1 };
            for part in parts {
                let program = plan.program(schedule, part).ok()?;
                if facts.in_place {
                    in_place(&program, &facts.collective, part)?;
                }
            }
        }
        entries[row.kind as usize].push(Entry {
            row: number,
            per_node: row.per_node,
            class: row.class,
            first_bytes: row.first_bytes,
            last_bytes: row.last_bytes,
            schedule,
            number: 0,
        });
    }
    Some(entries)
}
