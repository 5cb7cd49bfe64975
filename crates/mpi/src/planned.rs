//! The executor of a communicator's planned calls, by the rows of a plan for its number of ranks.

use std::{collections::BTreeMap, mem, sync::Arc};

use unisono_runtime::{Blocks, Executor, Progress, Transport};
use unisono_schedule::{plan_file::PlanFile, stored::in_place};

use crate::{
    call::Call,
    conditions::{Conditions, are_stated},
    library::{Comm, Failed, Library, Outcome},
    patience::Patience,
    port::{Port, Request},
    route::Route,
    rows::Rows,
    watch::{CallNotes, Watch},
};

/// The executors of an entry's programs that have run, out of place and in place. The key is the rank in the schedule,
/// which differs from this rank of the communicator if the call and the schedule have different roots.
type Executors = [BTreeMap<u32, Executor<Request>>; 2];

/// A call under way, with the program that this rank executes.
#[derive(Clone, Copy)]
struct Running {
    call: Call,
    entry: usize,
    blocks: Blocks,
    /// The number added to a schedule's rank, modulo the number of ranks, to get the communicator's rank.
    shift: u32,
    own: u32,
}

/// Runs the planned collectives of a communicator, one at a time.
///
/// If a `Planned` is dropped during a call or after a failed call, MPI may still use messages of the call. Its scratch
/// memory is then never freed, and its tags are never used again.
pub struct Planned {
    rows: Arc<Rows>,
    route: Route,
    rank: u32,
    executors: Vec<Executors>,
    /// Scratch memory, in words of 16 bytes so that all elements are aligned.
    scratch: Vec<u128>,
    spare: Vec<u128>,
    running: Option<Running>,
    moves: u64,
    watch: Option<Watch>,
    patience: Option<Patience>,
    inside: bool,
}

impl Planned {
    /// Makes an executor for a plan that all ranks are known to have. Nothing else may use the communicator at the same
    /// time. Returns None if on some rank a program of the plan that the rank may run cannot be decoded. Rows that were
    /// measured under other conditions serve only with `anywhere`, which must be equal on all ranks.
    ///
    /// # Errors
    /// Returns errors of the library.
    pub fn on(library: &Library, private: Comm, plan: &Arc<PlanFile>, anywhere: bool) -> Outcome<Option<Self>> {
        let (ranks, rank) = (library.size(private)?, library.rank(private)?);
        let depends = plan.table().rows().iter().any(|row| row.ranks == ranks && row.per_node.is_some());
        let per_node = if depends { Some(library.per_node(private)?) } else { None };
        let asks = !anywhere && are_stated(plan.table());
        let conditions = if asks { Some(Conditions::of(library, private)?) } else { None };
        let rows = Rows::new(plan, ranks, rank, per_node, conditions.as_ref());
        // All ranks refuse the plan if one rank cannot decode a program.
        let (least, _) = library.bounds(u64::from(rows.is_some()), private)?;
        Ok(rows.filter(|_| least == 1).map(|rows| Self::new(Route::direct(private), rows, rank)))
    }

    pub fn new(route: Route, rows: Rows, rank: u32) -> Self {
        Self::sharing(route, Arc::new(rows), rank)
    }

    fn sharing(route: Route, rows: Arc<Rows>, rank: u32) -> Self {
        let numbers = rows.entries.iter().map(Vec::len).sum();
        let executors = (0..numbers).map(|_| [BTreeMap::new(), BTreeMap::new()]).collect();
        let (scratch, spare) = (Vec::new(), Vec::new());
        let (running, watch, patience) = (None, None, None);
        Self { rows, route, rank, executors, scratch, spare, running, moves: 0, watch, patience, inside: false }
    }

    /// Makes an executor with the same rows and another route, for calls that the MPI library advances in its own
    /// progress function.
    pub fn beside(&self, route: Route) -> Self {
        let mut beside = Self::sharing(route, Arc::clone(&self.rows), self.rank);
        beside.inside = true;
        beside
    }

    /// Sets the watch that finds ranks that make one call with different lengths. The watch needs a note of every call
    /// ([`Planned::notes`]).
    pub fn watched(mut self, watch: Option<Watch>) -> Self {
        self.watch = watch;
        self
    }

    /// Sets the limit after which [`Planned::run`] reports that it waits, and the function that reports.
    pub fn patient(mut self, patience: Patience) -> Self {
        self.patience = Some(patience);
        self
    }

    /// Returns the notes of all collective calls on the communicator, planned or not; None if no row depends on the
    /// length of a call, or the ranks share no memory. The number of a note is the argument of [`Planned::wait_for`].
    pub fn notes(&self) -> Option<&Arc<CallNotes>> {
        self.watch.as_ref().map(Watch::calls)
    }

    /// Sets the number of the call that runs next ([`CallNotes::note`]).
    #[inline]
    pub fn wait_for(&mut self, number: u64) {
        if let Some(watch) = &mut self.watch {
            watch.wait_for(number);
        }
    }

    pub fn rows(&self) -> &Arc<Rows> {
        &self.rows
    }

    /// Returns whether a call is under way, or has failed with messages that may never end.
    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Returns the number of steps by which [`Planned::poll`] advanced calls, plus one for each completed call.
    pub fn moves(&self) -> u64 {
        self.moves
    }

    /// Runs a call by the schedule of the entry that [`Rows::find`] returned.
    ///
    /// # Errors
    /// Returns errors of the library, and [`Failed::OTHER`] if a call is under way or has failed, or memory is missing.
    ///
    /// # Safety
    /// The call's input and output must have the sizes of its kind and count, and must not overlap unless the call is
    /// in place. After an error nothing more is written to them, but messages that were sent may still read them.
    pub unsafe fn run(&mut self, library: &Library, call: Call, entry: usize) -> Outcome {
        let Some(running) = self.begin(call, entry)? else { return Ok(()) };
        let mut patience = self.patience.take();
        let (executor, mut port) = self.parts(library, &running);
        port.patience = patience.as_mut();
        port.pause = library.pause;
        let ran = executor.run(&running.blocks, &mut port);
        if ran.is_err() {
            executor.give_up(&mut port);
        }
        self.patience = patience;
        ran?;
        self.running = None;
        Ok(())
    }

    /// Begins a call, calls [`Planned::poll`] once, and returns whether the call is complete. Only one call may be
    /// under way.
    ///
    /// # Errors
    /// Returns errors of the library, and [`Failed::OTHER`] if a call is under way or has failed, or memory is missing.
    ///
    /// # Safety
    /// As for [`Planned::run`], until `poll` has returned true.
    pub unsafe fn start(&mut self, library: &Library, call: Call, entry: usize) -> Outcome<bool> {
        if let Some(running) = self.begin(call, entry)? {
            self.parts(library, &running).0.start();
        }
        self.poll(library)
    }

    /// Advances the call as far as possible without waiting, and returns whether it is complete.
    ///
    /// # Errors
    /// Returns errors of the library. After an error, `poll` must not be called again.
    pub fn poll(&mut self, library: &Library) -> Outcome<bool> {
        let Some(running) = self.running else { return Ok(true) };
        let (executor, mut port) = self.parts(library, &running);
        let mut moves = 0;
        let over = loop {
            let failed = match executor.poll(&running.blocks, &mut port) {
                Ok(Progress::Finished) => break true,
                Ok(Progress::Moved) => {
                    moves += 1;
                    continue;
                }
                Ok(Progress::Blocked) => match port.idle() {
                    Ok(()) => break false,
                    Err(failed) => failed,
                },
                Err(failed) => failed,
            };
            executor.give_up(&mut port);
            return Err(failed);
        };
        self.moves += moves + u64::from(over);
        if over {
            self.running = None;
        }
        Ok(over)
    }

    /// Prepares a call. Returns None if the entry has no schedule for this number of elements, which [`Rows::find`]
    /// excludes.
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
        // A schedule for one root also serves another root, if the ranks of the communicator are renumbered by `shift`.
        // `Rows::find` excludes calls for which the other order of ranks would change the result.
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

    fn parts<'a>(&'a mut self, library: &'a Library, running: &Running) -> (&'a mut Executor<Request>, Port<'a>) {
        let Running { call, entry, shift, own, .. } = *running;
        let number = self.rows.entries[call.kind as usize][entry].number;
        let executor = self.executors[number][usize::from(call.in_place)].get_mut(&own);
        let scratch = self.scratch.as_mut_ptr().cast();
        let ranks = self.rows.ranks;
        let (spare, watch) = (&mut self.spare, self.watch.as_mut());
        let (route, inside) = (&self.route, self.inside);
        let (patience, pause) = (None, None);
        let port = Port { library, route, call, scratch, spare, ranks, shift, watch, patience, pause, inside };
        (executor.expect("`prepare` made it"), port)
    }
}

impl Drop for Planned {
    fn drop(&mut self) {
        if self.running.is_some() {
            mem::forget(mem::take(&mut self.scratch));
            self.route.abandon();
        }
    }
}

/// Returns `rank - first` modulo `ranks`. Both are below `ranks`.
fn turned(rank: u32, first: u32, ranks: u32) -> u32 {
    if rank >= first { rank - first } else { ranks - (first - rank) }
}

/// Lengthens `words` to hold at least `bytes` bytes.
///
/// # Errors
/// Returns an error if the memory is not available.
pub fn grow(words: &mut Vec<u128>, bytes: usize) -> Outcome {
    let wanted = bytes.div_ceil(size_of::<u128>());
    if let Some(more) = wanted.checked_sub(words.len()).filter(|more| *more > 0) {
        words.try_reserve_exact(more).map_err(|_| Failed::OTHER)?;
        words.resize(wanted, 0);
    }
    Ok(())
}
