//! The `.plan` file: a decision table and the stored schedules of its rows.
//!
//! ```text
//! "UNISPLAN"  version u32  0 u32  header length u64  header checksum u64
//! header      rows of the table, each with the number of its schedule; schedules, each with its facts and, for every
//!             rank, offset, length and checksum of its program
//! programs    one after the other
//! ```
//! Version 2 added the ranks per node of a row, and the flag that a schedule runs in place. In version 1 rows apply to
//! any number of ranks per node, and schedules do not run in place. Numbers are little-endian; texts are preceded by
//! their length in bytes. The header's checksum covers the programs' checksums. Checksums detect damage: a file that is
//! damaged, truncated or of a newer version is rejected as a whole. A program that accesses memory outside its buffers
//! is rejected when it is decoded. [`PlanFile::prove`] proves the programs of all ranks together, whatever program
//! wrote the file. Only proven programs run.

mod bits;
pub(crate) mod read;
pub(crate) mod wire;
pub(crate) mod write;

use std::sync::OnceLock;

use rustc_hash::FxHashSet;
use sha2::{Digest, Sha256};
use unisono_base::parallel;
use unisono_collective::{CollectiveError, DecisionTable};

use crate::stored::{Elements, Facts, RankProgram, Stored, Unsound};

pub use bits::{TableBits, lacks_tree};
pub use write::{program_bytes, write};

pub const MAGIC: &[u8; 8] = b"UNISPLAN";
/// Version that [`write`] writes, and the latest one that [`PlanFile::read`] reads.
pub const VERSION: u32 = 2;
pub const PREAMBLE_BYTES: usize = 32;
/// The size of the largest file, in bytes, that MPI programs read.
pub const MOST_BYTES: u64 = 1 << 30;

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PlanFileError {
    #[error("this is no plan: it does not start with '{}'", String::from_utf8_lossy(MAGIC))]
    Magic,
    #[error(
        "the plan has version {found}; this program reads versions up to {VERSION}: update it, or plan again with it"
    )]
    Newer { found: u32 },
    #[error("the plan is damaged: {what}; write it again")]
    Damaged { what: String },
    #[error("the plan is cut short: {found} bytes of {expected}; copy or write it again")]
    Truncated { found: u64, expected: u64 },
    #[error("schedule {schedule} of the plan fails its proof: {why}; plan again")]
    NotProved { schedule: usize, why: Unsound },
    #[error(transparent)]
    Table(#[from] CollectiveError),
}

/// A plan to be written. For each row of the table, `uses` has the index of the schedule that serves the row, or `None`
/// for the MPI library's own algorithm.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    pub table: DecisionTable,
    pub schedules: Vec<Stored>,
    pub uses: Vec<Option<usize>>,
}

/// Position of a rank's program in the file, its length in bytes and its checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Section {
    start: u64,
    len: u64,
    checksum: u64,
}

/// A checked plan file in memory; programs are decoded on demand.
#[derive(Clone, Debug)]
pub struct PlanFile {
    bytes: Vec<u8>,
    table: DecisionTable,
    uses: Vec<Option<usize>>,
    schedules: Vec<(Facts, Vec<Section>)>,
    /// For each schedule, the result of [`PlanFile::prove`] after its first call.
    proofs: Vec<OnceLock<Result<Elements, PlanFileError>>>,
}

impl PlanFile {
    /// # Errors
    /// Returns the first defect of the file.
    pub fn read(bytes: Vec<u8>) -> Result<Self, PlanFileError> {
        read::read(bytes)
    }

    /// Computes the first 128 bits of the SHA-256 digest of the file. Ranks compare digests to make sure that they read
    /// the same file. Checksums do not suffice for this, because the author of a file can choose them.
    pub fn digest(&self) -> [u64; 2] {
        let digest = Sha256::digest(&self.bytes);
        let word = |at: usize| digest[at..at + 8].iter().fold(0u64, |word, &byte| word << 8 | u64::from(byte));
        [word(0), word(8)]
    }

    pub fn table(&self) -> &DecisionTable {
        &self.table
    }

    /// Returns the index of the schedule that serves a row, or `None` for the MPI library's own algorithm.
    pub fn schedule(&self, row: usize) -> Option<usize> {
        self.uses[row]
    }

    pub fn facts(&self, schedule: usize) -> &Facts {
        &self.schedules[schedule].0
    }

    pub fn schedule_count(&self) -> usize {
        self.schedules.len()
    }

    /// Proves the programs and the facts of a schedule, once, and returns the expressions of its elements. A checksum
    /// shows only that a file is undamaged, not that its programs are correct. One rank proves for all ranks; the ranks
    /// then compare [`PlanFile::digest`].
    ///
    /// # Errors
    /// Returns an error if a program cannot be decoded, or for the first property that does not hold.
    pub fn prove(&self, schedule: usize) -> Result<&Elements, PlanFileError> {
        let proof = self.proofs[schedule].get_or_init(|| {
            let facts = self.facts(schedule);
            let ranks: Vec<u32> = (0..facts.collective.ranks).collect();
            let programs: Result<_, _> = parallel::map(&ranks, |&rank| self.program(schedule, rank)).collect();
            match Stored::check(facts, programs?) {
                Ok(proven) => Ok(proven.elements().clone()),
                Err(why) => Err(PlanFileError::NotProved { schedule, why }),
            }
        });
        proof.as_ref().map_err(Clone::clone)
    }

    /// Proves the schedules of all rows, or of the rows for `ranks` ranks if this is given.
    ///
    /// # Errors
    /// Returns the first failed proof.
    pub fn prove_rows(&self, ranks: Option<u32>) -> Result<(), PlanFileError> {
        let rows = self.table.rows().iter().zip(&self.uses);
        let asked = rows.filter(|(row, _)| ranks.is_none_or(|ranks| row.ranks == ranks));
        let used: Vec<usize> = asked.filter_map(|(_, used)| *used).collect();
        self.prove_at_once(&used);
        used.into_iter().try_for_each(|schedule| self.prove(schedule).map(|_| ()))
    }

    /// Proves schedules on all cores, in the order of the list. [`PlanFile::prove`] then returns the stored results.
    /// Each proof in progress holds the programs of its schedule in memory.
    fn prove_at_once(&self, schedules: &[usize]) {
        let mut distinct = FxHashSet::default();
        let distinct: Vec<usize> = schedules.iter().copied().filter(|&schedule| distinct.insert(schedule)).collect();
        parallel::map(&distinct, |&schedule| self.prove(schedule).is_ok()).for_each(drop);
    }

    /// Decodes the program of `rank` in a schedule.
    ///
    /// # Errors
    /// Returns an error if the program reaches outside its buffers or has an invalid row.
    pub fn program(&self, schedule: usize, rank: u32) -> Result<RankProgram, PlanFileError> {
        let (facts, sections) = &self.schedules[schedule];
        let section = sections[rank as usize];
        let bytes = &self.bytes[section.start as usize..][..section.len as usize];
        read::program(bytes, facts, rank)
    }
}
