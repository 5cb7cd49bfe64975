//! The private communicator of this process ([`Home`]), which is made when MPI is initialised.

use std::sync::{
    OnceLock,
    atomic::{AtomicBool, Ordering},
};

use unisono_mpi::{Agreement, Comm, Home, Library, ThreadLevel};

use crate::settings::{is_first, say, settings, sizes_by_launchers};

/// The bit of [`Home::wanted`] that requests a report.
pub const REPORT: u64 = 1;
/// The bit of [`Home::wanted`] that requests a check.
pub const CHECK: u64 = 2;

static HOME: OnceLock<Option<Home>> = OnceLock::new();

/// Makes the home: compares the plans of all ranks of `world`. All ranks call this function right after MPI was
/// initialised. The result is `None` if an MPI call of the comparison failed; later calls return the first result.
pub fn settle(library: &Library, world: Comm) -> Option<&'static Home> {
    let settle = || {
        let settings = settings();
        // Ranks that differ in one of these settings would act differently in one call.
        let terms = [settings.safe_ops, settings.unlike_bits, settings.check, settings.nonblocking, settings.anywhere];
        let terms = terms.iter().rev().fold(0, |bits, &set| bits << 1 | u64::from(set));
        let wants = if settings.report.is_some() { REPORT } else { 0 } | if settings.check { CHECK } else { 0 };
        let begins = settings.nonblocking && !settings.check;
        let home = Home::settle(library, world, settings.plan.as_ref(), terms, wants).ok()?;
        let home = home.beginning(begins).serving_anywhere(settings.anywhere);
        if library.rank(home.comm()) == Ok(0) {
            complain(&home, library.size(home.comm()).unwrap_or(0));
        }
        Some(home)
    };
    HOME.get_or_init(settle).as_ref()
}

/// Returns the home for a call on `comm`. If the program's `MPI_Init` was not intercepted, the first call on
/// `MPI_COMM_WORLD` makes the home, provided that only one thread at a time calls MPI; with several threads, ranks
/// might make their calls in different orders.
#[inline]
pub fn home(library: &Library, comm: Comm) -> Option<&'static Home> {
    match HOME.get() {
        Some(home) => home.as_ref(),
        None => late(library, comm),
    }
}

#[cold]
fn late(library: &Library, comm: Comm) -> Option<&'static Home> {
    let in_order = library.thread_level().is_ok_and(|level| level < ThreadLevel::Multiple);
    if comm == library.constants.comm_world && in_order {
        return settle(library, comm);
    }
    static SAID: AtomicBool = AtomicBool::new(false);
    if !library.is_running() && settings().plan.is_some() && library.rank(comm) == Ok(0) {
        once(&SAID, || "the program has sessions and no MPI_COMM_WORLD; it runs unplanned".to_owned());
    }
    None
}

pub fn settled() -> Option<&'static Home> {
    HOME.get()?.as_ref()
}

fn complain(home: &Home, ranks: u32) {
    if let Some(complaint) = &settings().complaint {
        say(&format!("{complaint}; the program runs unplanned"));
    } else if home.agreement() == Agreement::Differs {
        say(&format!("the {ranks} ranks do not all have the same plan and switches; the program runs unplanned"));
    } else if settings().check && settings().nonblocking && home.agreement() == Agreement::Planned {
        say("a check compares calls that wait: the library makes the others, as without UNISONO_NONBLOCKING");
    }
}

/// Reports, on the launcher's first rank, if each process of a launch is alone in its `MPI_COMM_WORLD`, because the
/// launcher belongs to another MPI.
pub fn complain_if_alone(library: &Library) {
    let sizes = sizes_by_launchers();
    if let Some(&ranks) = sizes.iter().min().filter(|&&ranks| ranks > 1)
        && is_first()
        && library.size(library.constants.comm_world) == Ok(1)
    {
        say(&format!(
            "the launcher started {ranks} ranks, and each of them is alone in MPI_COMM_WORLD: the launcher is of \
             another MPI than the program; start it with the mpiexec of the program's MPI (unisono run --launcher)"
        ));
    }
}

pub fn once(said: &AtomicBool, text: impl FnOnce() -> String) {
    if !said.swap(true, Ordering::Relaxed) {
        say(&text());
    }
}
