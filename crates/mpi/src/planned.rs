//! A communicator with a plan: the rows for its number of ranks, ready to run.

use unisono_collective::{Kind, OperatorClass};
use unisono_runtime::{Blocks, Executor};
use unisono_schedule::plan_file::PlanFile;

use crate::{
    call::Call,
    library::{Comm, Library, Outcome},
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
    class: OperatorClass,
    first_bytes: u64,
    last_bytes: u64,
    /// None: the library's own.
    schedule: Option<usize>,
    /// By rank of the schedule, which differs from that of the communicator where the root does.
    executors: Vec<Option<Executor<usize>>>,
}

/// Runs planned collectives on a private duplicate of a communicator.
pub struct Planned {
    plan: &'static PlanFile,
    comm: Comm,
    ranks: u32,
    rank: u32,
    /// By kind.
    entries: Vec<Vec<Entry>>,
    /// Words, so that elements of any type are aligned.
    scratch: Vec<u128>,
}

/// Calls beyond are the library's own: a message's length is an `int`.
const MOST_BYTES: usize = i32::MAX as usize;

impl Planned {
    /// Compares the plans of all ranks of `comm`, on which every rank must call this at the same point of its program,
    /// whether it has a plan or not. Where all have the same, the communicator is duplicated.
    ///
    /// # Errors
    /// Those of the library.
    pub fn agree(library: &Library, comm: Comm, plan: Option<&'static PlanFile>) -> Outcome<(Agreement, Option<Self>)> {
        let (ranks, rank) = (library.size(comm)?, library.rank(comm)?);
        // All that could fail on one rank alone is done before the ranks compare.
        let prepared = plan.and_then(|plan| Some((plan, entries(plan, ranks, rank)?)));
        let mine = prepared.as_ref().map_or(0, |(plan, _)| plan.checksum());
        let (least, most) = library.bounds(mine, comm)?;
        match prepared {
            _ if least != most => Ok((Agreement::Differs, None)),
            Some((plan, entries)) if entries.iter().any(|kind| !kind.is_empty()) => {
                let comm = library.dup(comm)?;
                let planned = Self { plan, comm, ranks, rank, entries, scratch: Vec::new() };
                Ok((Agreement::Planned, Some(planned)))
            }
            _ => Ok((Agreement::Unplanned, None)),
        }
    }

    pub fn comm(&self) -> Comm {
        self.comm
    }

    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Which entry serves a call; the answer is the same on all ranks. None: the library's own.
    #[inline]
    pub fn find(&self, call: &Call) -> Option<usize> {
        let (class, bytes) = (call.class(), call.bytes());
        let of = |class: OperatorClass| {
            let serves = |e: &Entry| e.class == class && e.first_bytes <= bytes && bytes <= e.last_bytes;
            self.entries[call.kind as usize].iter().position(serves)
        };
        let found = of(class).or_else(|| match class {
            OperatorClass::Commutative => of(OperatorClass::Ordered),
            _ => None,
        })?;
        let schedule = self.entries[call.kind as usize][found].schedule?;
        let facts = self.plan.facts(schedule);
        let pieces = match call.kind {
            Kind::Allgather | Kind::ReduceScatter | Kind::Alltoall => self.ranks as usize,
            _ => 1,
        };
        let bytes = call.elements.checked_mul(call.element_bytes).and_then(|b| b.checked_mul(pieces));
        let fits = bytes.is_some_and(|b| b <= MOST_BYTES);
        (fits && facts.serves(call.elements as u64)).then_some(found)
    }

    /// The row of the plan's table that an entry is.
    pub fn row(&self, kind: Kind, entry: usize) -> usize {
        self.entries[kind as usize][entry].row
    }

    /// Whether all ranks end an entry's calls with the same bits.
    pub fn is_repeatable(&self, kind: Kind, entry: usize) -> bool {
        self.entries[kind as usize][entry].schedule.is_some_and(|s| self.plan.facts(s).repeatable)
    }

    /// Runs a call by the entry that [`Planned::find`] named.
    ///
    /// # Errors
    /// Those of the library.
    ///
    /// # Safety
    /// The call's input and output hold what its kind and count say, and do not overlap.
    pub unsafe fn run(&mut self, library: &Library, call: Call, entry: usize) -> Outcome {
        let plan = self.plan;
        let entry = &mut self.entries[call.kind as usize][entry];
        let Some(schedule) = entry.schedule else { return Ok(()) };
        let facts = plan.facts(schedule);
        let Some(blocks) = Blocks::new(facts, call.elements) else { return Ok(()) };
        // A schedule for one root serves all: its ranks are counted from another one.
        let shift =
            if call.kind.has_root() { (call.root + self.ranks - facts.collective.root) % self.ranks } else { 0 };
        let own = (self.rank + self.ranks - shift) % self.ranks;
        let executor = entry.executors[own as usize].get_or_insert_with(|| {
            Executor::new(plan.program(schedule, own).expect("it was decoded when the ranks compared their plans"))
        });
        let bytes = blocks.scratch(executor.program().scratch_blocks) * call.element_bytes;
        let words = bytes.div_ceil(size_of::<u128>());
        if self.scratch.len() < words {
            self.scratch.resize(words, 0);
        }
        let scratch = self.scratch.as_mut_ptr().cast();
        executor.run(&blocks, &mut Port { library, comm: self.comm, call, scratch, ranks: self.ranks, shift })
    }
}

/// The rows for so many ranks, by kind, with this rank's programs; none if one of them cannot be decoded.
fn entries(plan: &PlanFile, ranks: u32, rank: u32) -> Option<Vec<Vec<Entry>>> {
    let mut entries: Vec<Vec<Entry>> = Kind::ALL.iter().map(|_| Vec::new()).collect();
    for (number, row) in plan.table().rows().iter().enumerate().filter(|(_, row)| row.ranks == ranks) {
        let mut executors: Vec<Option<Executor<usize>>> = (0..ranks).map(|_| None).collect();
        let schedule = plan.schedule(number);
        if let Some(schedule) = schedule {
            // Any rank may be the root, and then this one plays another part.
            let parts = if row.kind.has_root() { 0..ranks } else { rank..rank + 1 };
            for part in parts {
                let program = plan.program(schedule, part).ok()?;
                if part == rank {
                    executors[part as usize] = Some(Executor::new(program));
                }
            }
        }
        entries[row.kind as usize].push(Entry {
            row: number,
            class: row.class,
            first_bytes: row.first_bytes,
            last_bytes: row.last_bytes,
            schedule,
            executors,
        });
    }
    Some(entries)
}
