//! Finds ranks that make one call with different lengths and would wait for each other for ever.
//!
//! Rows of a plan name different schedules for different lengths. A rank with another length then runs another
//! schedule, or the library's algorithm, and never sends the messages for which the other ranks wait. Every rank
//! therefore notes its latest calls in memory that the ranks of its node share: the communicator, the number of the
//! call on it, and its length. A rank that has waited for [`PATIENCE`] reads the notes of the others. A note of the
//! same call with another length proves the error, however slow a rank is. Without such a note, the rank continues to
//! wait. Writing a note makes no call of MPI and never waits. Notes of ranks on other nodes cannot be read.

use std::{
    ffi::c_int,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use unisono_collective::Kind;

use crate::{
    call::Call,
    library::{Comm, Library, Outcome},
    shared::Shared,
};

/// The time that a rank waits before it reads the notes of other ranks, and also between two such readings.
pub const PATIENCE: Duration = Duration::from_millis(250);
/// The number of polls between two readings of the clock.
pub const TURNS: u32 = 1024;
/// The number of notes that a rank keeps. A waiting rank is at most a few calls ahead of the others, so 64 suffice.
pub const NOTES: usize = 64;
/// The words of a note: the name of the call, its length and kind ([`noted_length`]), and a checksum of both.
pub const WORDS: usize = 3;

/// The notes of one rank.
pub type Page = [[AtomicU64; WORDS]; NOTES];

/// The notes of all ranks on this node, in shared memory.
pub struct Notes {
    /// Notes by rank of the private communicator; None for a rank on another node.
    pub ranks: Vec<Option<&'static Page>>,
    pub own: &'static Page,
    /// The number of notes written so far, from which the index of the next note follows. Concurrent threads may use
    /// the same index; at least one of their notes is then lost.
    pub next: AtomicUsize,
}

/// The name of one call on a communicator: a hash that is equal on all ranks of the communicator, and equals the name
/// of another call only by chance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Name(u64);

/// Mixes a word into the hash of a name. Each step is invertible, so names of different calls are equal by chance only.
fn mix(name: u64, word: u64) -> u64 {
    let x = (name ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^ (x >> 29)
}

/// Returns the second word of a note: the length of the call in bytes, above 4 bits for its kind. If a program is
/// correct, the word of one call is equal on all ranks.
pub fn noted_length(call: &Call) -> u64 {
    length(call.kind, call.bytes())
}

pub fn length(kind: Kind, bytes: u64) -> u64 {
    bytes << 4 | kind as u64
}

fn check(name: u64, size: u64) -> u64 {
    (name ^ size.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Notes {
    /// Maps memory that the ranks of this node share. All ranks of `comm` call this. Returns None if any rank cannot
    /// map it.
    ///
    /// # Errors
    /// Returns errors of the library.
    pub fn open(library: &Library, comm: Comm) -> Outcome<Option<Self>> {
        let (ranks, rank) = (library.size(comm)?, library.rank(comm)?);
        let node = library.node(comm)?;
        library.return_errors(node)?;
        let (here, own) = (library.size(node)?, library.rank(node)?);
        let at = library.ranks_in(node, here, comm)?;
        let bytes = size_of::<Page>().saturating_mul(here as usize);
        // The first rank of the node makes the memory and sends its name to the others.
        let made = if own == 0 { Shared::create(bytes).ok() } else { None };
        let name = library.all_numbers(made.as_ref().map_or([0; 2], Shared::name), node, here)?;
        library.free(node)?;
        let found = made.or_else(|| Shared::open(*name.first()?, bytes).ok());
        let (least, _) = library.bounds(u64::from(found.is_some()), comm)?;
        // The reduction above ensures that every rank has opened the memory, or will not use it.
        let memory = found.as_ref().map(Shared::map);
        let (least_mapped, _) = library.bounds(u64::from(memory.as_ref().is_some_and(Result::is_ok)), comm)?;
        let (Some(Ok(first)), 1, 1) = (memory, least, least_mapped) else { return Ok(None) };
        let mut all = vec![None; ranks as usize];
        for (number, &rank) in at.iter().enumerate() {
            if let Some(place) = usize::try_from(rank).ok().and_then(|rank| all.get_mut(rank)) {
                // SAFETY: a page for each rank of the node was mapped from the first address on, aligned for its words.
                // The words are atomic and stay until the process ends.
                *place = Some(unsafe { &*first.cast::<Page>().wrapping_add(number) });
            }
        }
        let own = all.get(rank as usize).copied().flatten();
        Ok(own.map(|own| Self { ranks: all, own, next: AtomicUsize::new(0) }))
    }

    #[inline]
    pub fn note(&self, Name(name): Name, size: u64) {
        // Operations that wait until earlier writes have reached other cores are avoided here, because such a wait
        // takes longer than the rest of a call.
        let next = self.next.load(Ordering::Relaxed);
        self.next.store(next.wrapping_add(1), Ordering::Relaxed);
        let note = &self.own[next % NOTES];
        note[0].store(name, Ordering::Relaxed);
        note[1].store(size, Ordering::Relaxed);
        note[2].store(check(name, size), Ordering::Relaxed);
    }

    /// Returns the length word ([`noted_length`]) that a rank noted for a call; None if there is no complete note of
    /// the call, or the rank is on another node.
    pub fn noted(&self, rank: usize, Name(name): Name) -> Option<u64> {
        self.ranks.get(rank).copied().flatten()?.iter().find_map(|note| {
            let [found, size, checked] = note.each_ref().map(|word| word.load(Ordering::Relaxed));
            (found == name && check(name, size) == checked).then_some(size)
        })
    }
}

/// The two sequences of calls on a communicator: blocking calls and nonblocking calls. All ranks make the calls of one
/// sequence in the same order.
#[derive(Clone, Copy)]
pub enum Calls {
    Blocking,
    /// Nonblocking calls.
    Begun,
}

/// Writes the notes of this rank about the calls on one communicator.
pub struct CallNotes {
    notes: Arc<Notes>,
    /// A hash from which the names of all calls derive. It combines the communicator's first rank, the number that this
    /// rank gave the communicator, and the sequence.
    name: u64,
    /// The number of collective calls on the communicator so far, which is equal on all its ranks. MPI permits one
    /// thread at a time.
    calls: AtomicU64,
}

impl CallNotes {
    /// Counts a collective call and notes its length ([`noted_length`]), if known. Returns the number of the call,
    /// which is the same on all ranks.
    #[inline]
    pub fn note(&self, length: Option<u64>) -> u64 {
        let number = self.calls.load(Ordering::Relaxed).wrapping_add(1);
        self.calls.store(number, Ordering::Relaxed);
        if let Some(length) = length {
            self.notes.note(self.name(number), length);
        }
        number
    }

    #[inline]
    pub fn name(&self, number: u64) -> Name {
        // 0 marks an empty note.
        Name(mix(self.name, number).max(1))
    }
}

/// Finds ranks with another length while a call waits.
pub struct Watch {
    pub calls: Arc<CallNotes>,
    /// The ranks of the communicator, as ranks of the private communicator.
    peers: Box<[c_int]>,
    /// The number of the waiting call: the latest call, or an earlier nonblocking call.
    current: u64,
    pub waiting: Waiting,
}

/// The time for which a call has waited.
#[derive(Default)]
pub struct Waiting {
    turns: u32,
    pub since: Option<Instant>,
}

impl Watch {
    /// Makes a watch. `serial` is the number that the first rank gave the communicator.
    pub fn new(notes: Arc<Notes>, peers: Box<[c_int]>, serial: c_int, of: Calls) -> Self {
        let first = peers.first().copied().unwrap_or(0);
        let words = [first.cast_unsigned().into(), serial.cast_unsigned().into(), of as u64];
        let name = words.into_iter().fold(0, mix);
        let calls = Arc::new(CallNotes { notes, name, calls: AtomicU64::new(0) });
        Self { calls, peers, current: 0, waiting: Waiting::default() }
    }

    /// Returns the notes of all collective calls, planned or not.
    pub fn calls(&self) -> &Arc<CallNotes> {
        &self.calls
    }

    /// Sets the number of the call under way.
    #[inline]
    pub fn wait_for(&mut self, number: u64) {
        self.current = number;
        self.waiting = Waiting::default();
    }

    /// Returns whether a rank noted the call under way with the same kind and another length. Each poll of the waiting
    /// call calls this; the notes are read only once in [`PATIENCE`], else the result is false.
    #[inline]
    pub fn finds_unlike(&mut self, call: &Call) -> bool {
        self.waiting.turns += 1;
        self.waiting.turns.is_multiple_of(TURNS) && self.look(call)
    }

    #[cold]
    pub fn look(&mut self, call: &Call) -> bool {
        let now = Instant::now();
        if now.duration_since(*self.waiting.since.get_or_insert(now)) < PATIENCE {
            return false;
        }
        self.waiting.since = Some(now);
        let (name, own) = (self.calls.name(self.current), noted_length(call));
        let differs = |size: u64| size != own && size & 0xf == own & 0xf;
        let ranks = self.peers.iter().filter_map(|&rank| usize::try_from(rank).ok());
        ranks.filter_map(|rank| self.calls.notes.noted(rank, name)).any(differs)
    }
}
