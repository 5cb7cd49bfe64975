//! The private communicator of a process, which carries the planned calls of all the program's communicators.
//!
//! All ranks of `MPI_COMM_WORLD` make the private communicator together, and compare their plans on it, once. A
//! communicator of the program then joins by one `MPI_Allgather`, in its first call that a plan may serve. Joining
//! makes no communicator and waits only for the ranks of the call.

use std::{
    collections::BTreeMap,
    ffi::c_int,
    hash::{DefaultHasher, Hash, Hasher},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering},
    },
};

use unisono_collective::Kind;
use unisono_schedule::plan_file::PlanFile;

use crate::{
    conditions::{Conditions, are_stated},
    library::{Comm, Library, Outcome},
    planned::Planned,
    requests::PersistentRequest,
    route::{Lease, Peer, Route, Tags},
    rows::Rows,
    watch::{Calls, Notes, Watch},
};

/// The result of the comparison of all ranks' plans.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Agreement {
    /// No rank has a plan file.
    Unplanned,
    Planned,
    /// Ranks have different plans or settings, or only some ranks have a plan.
    Differs,
}

/// The result of joining: the plan of a communicator, or the reason why it runs unplanned.
pub enum Joined {
    /// The communicator runs unplanned for one of these reasons: the ranks have no common plan; the plan has no row for
    /// this number of ranks; or the communicator has ranks outside the world.
    Unplanned,
    /// On some rank, a stored program for this number of ranks failed its proof or cannot be decoded, or no tags are
    /// left.
    Refused,
    /// The ranks would choose different rows for one call, because their MPI libraries or their versions of this
    /// library differ.
    Differs,
    Planned {
        /// Runs blocking calls.
        planned: Box<Planned>,
        /// Runs nonblocking calls; None if they are switched off or, on some rank, the library cannot advance them or
        /// no tags are left.
        begun: Option<Box<Planned>>,
    },
}

/// The value that a rank sends instead of its first tag if the rank cannot join.
const REFUSED: c_int = -1;

pub struct Home {
    comm: Comm,
    plan: Option<Arc<PlanFile>>,
    agreement: Agreement,
    /// The union over all ranks of the bits of `wants` ([`Home::settle`]).
    wanted: u64,
    tags: Tags,
    /// For each rank the lowest rank on its node; empty if no row depends on ranks per node.
    nodes: Vec<c_int>,
    /// For each kind of collective, true if the library reports an error for a call whose input is its output. The
    /// first value is for the function with one count, the second for the function with a count for every rank.
    refuses_aliases: Vec<[bool; 2]>,
    /// The shared notes ([`Notes`]) by which ranks detect that they make one call with different lengths; None if no
    /// row depends on lengths, or if the ranks cannot share memory.
    notes: Option<Arc<Notes>>,
    /// The conditions under which ranks wait here; None if no row states conditions, or if rows serve under all
    /// conditions.
    conditions: Option<Conditions>,
    /// True if plans may serve nonblocking calls.
    begins: bool,
    joined: AtomicI32,
}

impl Home {
    /// Compares the plans of all ranks of `world`; for ranks with a plan, also compares other settings (`terms`, a bit
    /// for each setting). All ranks call this together, with or without a plan. `wants` is a set of bits, which the
    /// caller defines; [`Home::wanted`] returns the union over all ranks.
    ///
    /// # Errors
    /// Returns errors of the library.
    pub fn settle(
        library: &Library,
        world: Comm,
        plan: Option<&Arc<PlanFile>>,
        terms: u64,
        wants: u64,
    ) -> Outcome<Self> {
        let comm = library.dup(world)?;
        library.return_errors(comm)?;
        library.learn_types()?;
        let digest = plan.map_or([0, 0], |plan| plan.digest());
        // 0 stands for no plan.
        let first = plan.map_or(0, |_| digest[0].wrapping_add(terms).max(1));
        let mut differs = false;
        for word in [first, digest[1]] {
            let (least, most) = library.bounds(word, comm)?;
            differs |= least != most;
        }
        let mut wanted = 0;
        for bit in [1, 2] {
            wanted |= library.bounds(wants & bit, comm)?.1;
        }
        let agreement = match plan {
            _ if differs => Agreement::Differs,
            Some(_) => Agreement::Planned,
            None => Agreement::Unplanned,
        };
        let plan = plan.filter(|_| agreement == Agreement::Planned).map(Arc::clone);
        let per_node = plan.as_ref().is_some_and(|plan| plan.table().rows().iter().any(|row| row.per_node.is_some()));
        let nodes = if per_node { library.nodes(comm)? } else { Vec::new() };
        let refuses_aliases = match plan {
            Some(_) => refused_aliases(library)?,
            None => Vec::new(),
        };
        let varies = plan.as_ref().is_some_and(|plan| varies(plan, library.size(comm).unwrap_or(0)));
        let stated = plan.as_ref().is_some_and(|plan| are_stated(plan.table()));
        let conditions = if stated { Some(Conditions::of(library, comm)?) } else { None };
        let notes = if varies { Notes::open(library, comm)?.map(Arc::new) } else { None };
        let (tags, joined) = (Tags::new(library.largest_tag()), AtomicI32::new(0));
        let begins = false;
        Ok(Self { comm, plan, agreement, wanted, tags, nodes, refuses_aliases, notes, conditions, begins, joined })
    }

    /// Sets whether plans serve nonblocking calls of communicators that join. `begins` must be equal on all ranks.
    pub fn beginning(mut self, begins: bool) -> Self {
        self.begins = begins;
        self
    }

    /// Sets whether rows also serve under other conditions than those under which they were measured. `anywhere` must
    /// be equal on all ranks.
    pub fn serving_anywhere(self, anywhere: bool) -> Self {
        Self { conditions: self.conditions.filter(|_| !anywhere), ..self }
    }

    /// Returns the conditions under which ranks wait here, if they decide which rows serve.
    pub fn conditions(&self) -> Option<&Conditions> {
        self.conditions.as_ref()
    }

    pub fn agreement(&self) -> Agreement {
        self.agreement
    }

    pub fn wanted(&self) -> u64 {
        self.wanted
    }

    /// Returns the private communicator, for operations that involve all ranks of the program. Errors on this
    /// communicator are returned as codes.
    pub fn comm(&self) -> Comm {
        self.comm
    }

    /// Returns whether the library refuses a call of this kind whose input is its output; `vector` as in
    /// [`Library::refuses_alias`].
    pub fn refuses_alias(&self, kind: Kind, vector: bool) -> bool {
        self.refuses_aliases.get(kind as usize).is_some_and(|refuses| refuses[usize::from(vector)])
    }

    /// Makes a communicator ready for planned calls. All ranks of the communicator call this in the same collective
    /// call of the program.
    ///
    /// # Errors
    /// Returns errors of the library.
    pub fn join(&self, library: &Library, comm: Comm, ranks: u32, rank: u32) -> Outcome<Joined> {
        let Some(plan) = self.plan.as_ref().filter(|plan| plan.table().rows().iter().any(|row| row.ranks == ranks))
        else {
            return Ok(Joined::Unplanned);
        };
        let at = library.ranks_in(comm, ranks, self.comm)?;
        if at.iter().any(|&rank| rank < 0) {
            return Ok(Joined::Unplanned);
        }
        let per_node = self.per_node(&at);
        // Only rank 0 proves the programs, because all ranks have the same plan.
        let prepared = unless_it_panics(|| {
            let proven = rank > 0 || plan.prove_rows(Some(ranks)).is_ok();
            let rows = if proven { Rows::new(plan, ranks, rank, per_node, self.conditions()) } else { None }?;
            let begun = if self.begins && library.has_progress_hook() { self.tags.lease(rows.tags) } else { None };
            let lease = self.tags.lease(rows.tags)?;
            Some((rows, lease, begun))
        });
        let first = |lease: Option<&Lease>| lease.map_or(REFUSED, Lease::first);
        let tag = first(prepared.as_ref().map(|(_, lease, _)| lease));
        let begun = first(prepared.as_ref().and_then(|(_, _, begun)| begun.as_ref()));
        let choices = prepared.as_ref().map_or(0, |(rows, ..)| self.choices(rows));
        // The number of a communicator repeats after 2^32 calls of `join` and `another`.
        let mine = [tag, begun, self.joined.fetch_add(1, Ordering::Relaxed), choices];
        let all = if ranks > 1 { library.all_numbers(mine, comm, ranks)? } else { vec![mine] };
        let given = |number: usize| all.iter().all(|numbers| numbers[number] != REFUSED);
        let Some((rows, lease, begun)) = prepared.filter(|_| given(0)) else { return Ok(Joined::Refused) };
        if all.iter().any(|numbers| numbers[3] != choices) {
            return Ok(Joined::Differs);
        }
        let route = |lease: Lease, number: usize| {
            let peers = at.iter().zip(&all).map(|(&rank, numbers)| Peer { rank, tag: numbers[number] });
            Route::over(self.comm, lease, peers.collect())
        };
        let planned = Planned::new(route(lease, 0), rows, rank);
        let begun = begun.filter(|_| given(1)).map(|lease| planned.beside(route(lease, 1)));
        let serial = all.first().map_or(0, |numbers| numbers[2]);
        let begun = begun.map(|begun| Box::new(begun.watched(self.watch(plan, &at, serial, Calls::Begun))));
        let watch = self.watch(plan, &at, serial, Calls::Blocking);
        Ok(Joined::Planned { planned: Box::new(planned.watched(watch)), begun })
    }

    /// Returns a digest of everything by which this rank decides whether a schedule or the library serves a call.
    fn choices(&self, rows: &Rows) -> c_int {
        let mut digest = DefaultHasher::new();
        (rows.digest(), &self.refuses_aliases, self.begins).hash(&mut digest);
        digest.finish() as c_int
    }

    fn watch(&self, plan: &PlanFile, at: &[c_int], serial: c_int, of: Calls) -> Option<Watch> {
        let ranks = u32::try_from(at.len()).ok()?;
        let notes = self.notes.as_ref().filter(|_| ranks > 1 && varies(plan, ranks))?;
        Some(Watch::new(Arc::clone(notes), at.into(), serial, of))
    }

    /// Returns an executor for the calls of one persistent collective, and the program's request. The executor has the
    /// rows of `planned` and its own tags, because these calls may run concurrently with all other calls and begin in
    /// any order. All ranks of the communicator call this together. Returns None on all ranks if one rank has too few
    /// tags left.
    ///
    /// # Errors
    /// Returns errors of the library.
    pub fn another(
        &self,
        library: &Library,
        comm: Comm,
        planned: &Planned,
    ) -> Outcome<Option<(Planned, PersistentRequest)>> {
        let (rows, ranks) = (planned.rows(), planned.rows().ranks);
        let at = library.ranks_in(comm, ranks, self.comm)?;
        let leases = self.tags.lease(rows.tags).zip(self.tags.lease(1));
        let first = leases.as_ref().map_or(REFUSED, |(lease, _)| lease.first());
        let mine = [first, self.joined.fetch_add(1, Ordering::Relaxed)];
        let all = if ranks > 1 { library.all_numbers(mine, comm, ranks)? } else { vec![mine] };
        let given = all.iter().all(|numbers| numbers[0] != REFUSED);
        let Some((lease, own)) = leases.filter(|_| given) else { return Ok(None) };
        let peers = at.iter().zip(&all).map(|(&rank, numbers)| Peer { rank, tag: numbers[0] }).collect();
        let serial = all.first().map_or(0, |numbers| numbers[1]);
        let watch = self.watch(&rows.plan, &at, serial, Calls::Begun);
        let planned = planned.beside(Route::over(self.comm, lease, peers)).watched(watch);
        Ok(Some((planned, library.persistent(self.comm, own)?)))
    }

    /// Returns the maximum number of these ranks on one node; None if no row depends on this number. `ranks` are ranks
    /// of the private communicator.
    fn per_node(&self, ranks: &[c_int]) -> Option<u32> {
        let mut counts: BTreeMap<c_int, u32> = BTreeMap::new();
        for &rank in ranks {
            *counts.entry(*self.nodes.get(usize::try_from(rank).ok()?)?).or_default() += 1;
        }
        counts.into_values().max()
    }
}

/// Runs `work` and treats a panic as None, because a rank that unwinds would leave the other ranks waiting.
pub fn unless_it_panics<T>(work: impl FnOnce() -> Option<T>) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok().flatten()
}

/// Returns true if, for some collective other than a barrier, and for some number of ranks from 2 to `most`, the choice
/// of a schedule depends on the length of the call.
fn varies(plan: &PlanFile, most: u32) -> bool {
    let rows = plan.table().rows().iter().enumerate();
    let mut rows = rows.filter(|(_, row)| row.kind != Kind::Barrier && row.ranks > 1 && row.ranks <= most);
    rows.any(|(number, row)| {
        let of_some = plan.schedule(number).is_some_and(|schedule| !plan.facts(schedule).serves(1));
        row.first_bytes > 0 || row.last_bytes < u64::MAX || of_some
    })
}

/// Returns the value of `Home::refuses_aliases`, from a trial call of each function on this process alone.
fn refused_aliases(library: &Library) -> Outcome<Vec<[bool; 2]>> {
    let c = &library.constants;
    let alone = library.dup(c.comm_self)?;
    library.return_errors(alone)?;
    let tried = |kind: Kind| [false, true].map(|vector| library.refuses_alias(kind, vector, alone));
    let try_all = || Kind::ALL.iter().map(|kind| tried(*kind)).collect();
    // For some errors on any communicator Open MPI 5 calls the handler of MPI_COMM_WORLD or MPI_COMM_SELF.
    let found = library.without_handler(c.comm_world, || library.without_handler(c.comm_self, try_all))??;
    library.free(alone)?;
    Ok(found)
}
