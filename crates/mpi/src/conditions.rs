//! The conditions under which the ranks of a program wait, on which the fastest algorithm depends.
//!
//! A waiting rank either polls all the time, or yields its core between polls. If each rank has its own core, polling
//! takes a microsecond for a short message, and yielding several. If ranks share cores, yielding is faster. A measured
//! row of a plan states the conditions of its measurement. Under other conditions, the row may choose the slower of its
//! schedule and the library.

use std::{
    ffi::{CStr, c_char, c_int},
    fmt,
    str::FromStr,
};

use unisono_collective::{Choice, DecisionTable};

use crate::library::{Comm, Failed, Library, Outcome, check};

unsafe extern "C" {
    fn sched_getaffinity(process: c_int, bytes: usize, mask: *mut [c_int; CORES]) -> c_int;
}

/// The key of a row's parameter that states the conditions of its measurement.
pub const TUNED: &str = "tuned";
/// The number of 32-bit words in a mask of 1,024 cores.
const CORES: usize = 32;
/// The bytes of the longest description of a library: the largest `MPI_MAX_LIBRARY_VERSION_STRING` of the supported
/// libraries.
const MOST_BYTES: usize = 8192;

/// The library, and the way in which its ranks wait. The value is equal on all ranks that have the same library. The
/// text form is `openmpi 5.0.11 spin own`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conditions {
    /// `openmpi`, `mpich`, or the first word of the library's description.
    pub library: String,
    pub version: String,
    /// True if any rank yields its core while it waits. The text form is `yield` if true, else `spin`.
    pub yields: bool,
    /// True if some node has more ranks than cores on which they may run. The text form is `shared` if true, else
    /// `own`.
    pub shares_cores: bool,
}

impl Conditions {
    /// Determines the conditions of a communicator's ranks, which all call this.
    ///
    /// # Errors
    /// Returns errors of the library.
    pub fn of(library: &Library, comm: Comm) -> Outcome<Self> {
        let (_, yields) = library.bounds(u64::from(library.yields()), comm)?;
        let node = library.node(comm)?;
        library.return_errors(node)?;
        let here = library.size(node)?;
        let masks = library.all_numbers(cores(), node, here)?;
        library.free(node)?;
        let all = masks.iter().fold([0; CORES], |all, mask| std::array::from_fn(|word| all[word] | mask[word]));
        let cores: u32 = all.iter().map(|word: &c_int| word.count_ones()).sum();
        // A machine may have more cores than the mask has bits. The masks are then all zeros, and the node is assumed
        // to have enough cores.
        let (_, shares) = library.bounds(u64::from(cores > 0 && here > cores), comm)?;
        let (name, version) = library.name_and_version();
        Ok(Self { library: name, version, yields: yields > 0, shares_cores: shares > 0 })
    }

    /// Returns whether a choice that was measured under `others` is valid under these conditions: all conditions except
    /// the version of the library must be equal.
    pub fn permit(&self, others: &Self) -> bool {
        (&self.library, self.yields, self.shares_cores) == (&others.library, others.yields, others.shares_cores)
    }

    pub fn words(&self) -> String {
        let waits = if self.yields { "yield" } else { "do not yield" };
        let cores = if self.shares_cores { "share cores" } else { "have a core each" };
        format!("{} {}, where ranks {cores} and {waits} while they wait", self.library, self.version)
    }
}

impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waits = if self.yields { "yield" } else { "spin" };
        let cores = if self.shares_cores { "shared" } else { "own" };
        write!(f, "{} {} {waits} {cores}", self.library, self.version)
    }
}

impl FromStr for Conditions {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let words: Vec<&str> = text.split(' ').collect();
        let &[library, version, waits, cores] = words.as_slice() else { return Err(()) };
        let either = |word: &str, yes: &str, no: &str| match word {
            word if word == yes => Ok(true),
            word if word == no => Ok(false),
            _ => Err(()),
        };
        let (yields, shares_cores) = (either(waits, "yield", "spin")?, either(cores, "shared", "own")?);
        Ok(Self { library: library.to_owned(), version: version.to_owned(), yields, shares_cores })
    }
}

/// Returns the conditions under which a row's choice was measured; None if the row does not state them, or leaves its
/// calls to the library.
pub(crate) fn stated(choice: &Choice) -> Option<&str> {
    match choice {
        Choice::Algorithm { params, .. } => {
            params.iter().find(|(key, _)| key == TUNED).map(|(_, value)| value.as_str())
        }
        Choice::Library => None,
    }
}

pub(crate) fn are_stated(table: &DecisionTable) -> bool {
    table.rows().iter().any(|row| stated(&row.choice).is_some())
}

/// Returns the mask of cores on which the calling thread may run; all zeros if the system does not report it.
fn cores() -> [c_int; CORES] {
    let mut mask = [0; CORES];
    // SAFETY: the system writes at most the size of the mask; 0 stands for this thread.
    let code = unsafe { sched_getaffinity(0, size_of::<[c_int; CORES]>(), &raw mut mask) };
    if code == 0 { mask } else { [0; CORES] }
}

/// Returns the name and the version in a description such as `Open MPI v5.0.11, ...` or `MPICH Version: 5.0.2 ...`: the
/// first word in lower case (`openmpi` for `Open`), and the first word with a digit at its start or after `v`;
/// `unknown` if there is none.
pub fn name_and_version(text: &str) -> (String, String) {
    let mut words = text.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty());
    let name = match words.clone().next() {
        Some("Open") => "openmpi".to_owned(),
        Some(word) => word.to_ascii_lowercase(),
        None => "unknown".to_owned(),
    };
    let digits = |word: &str| word.trim_start_matches('v').to_owned();
    let version = words.find(|word| digits(word).starts_with(|c: char| c.is_ascii_digit()));
    (name, version.map_or_else(|| "unknown".to_owned(), digits))
}

impl Library {
    /// Returns whether this process yields its core while it waits. Open MPI stores this in a variable; MPICH polls a
    /// thousand times between two yields, so the result is false for MPICH.
    fn yields(&self) -> bool {
        let found = self.find_function(c"opal_progress_yield_when_idle");
        // SAFETY: a `bool` of Open MPI, which writes it in `MPI_Init` only; this reads its byte.
        found.is_some_and(|at| unsafe { at.cast::<u8>().read() } != 0)
    }

    fn name_and_version(&self) -> (String, String) {
        type Describe = unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int;
        let described = || {
            let found = self.find_function(c"PMPI_Get_library_version").ok_or(Failed::OTHER)?;
            // SAFETY: the function has the C signature that MPI defines for this name.
            let describe = unsafe { std::mem::transmute::<*mut std::ffi::c_void, Describe>(found) };
            let (mut text, mut length) = (vec![0u8; MOST_BYTES + 1], 0);
            // SAFETY: there is room for the longest text with its end, and an integer is written.
            check(unsafe { describe(text.as_mut_ptr().cast(), &raw mut length) })?;
            let end = CStr::from_bytes_until_nul(&text).map_err(|_| Failed::OTHER)?;
            Ok::<String, Failed>(end.to_string_lossy().into_owned())
        };
        name_and_version(&described().unwrap_or_default())
    }
}
