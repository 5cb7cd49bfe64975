//! The reasons why the MPI library made a call itself, for the report.
//!
//! Only a report needs a reason, so [`of`] repeats the checks of [`crate::intercept`] in their order after the call.

use unisono_collective::Kind;
use unisono_mpi::{Agreement, Library, Unserved};

use crate::{
    arguments::{Arguments, Described},
    comms::Known,
    home,
    intercept::rounds_alike,
    passed_on::{NAMES, Place},
    settings::settings,
};

macro_rules! reasons {
    ($($name:ident $text:literal,)*) => {
        /// A reason why no plan served a call; ranks send its number to rank 0.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Reason { $($name,)* }

        const TEXTS: &[&str] = &[$($text),*];
    };
}

reasons! {
    NoPlan "",
    Unreadable "the plan cannot be read",
    Differs "the ranks have unlike plans or switches",
    NoRanks "no row for this number of ranks",
    NotReady "the plan cannot serve this communicator",
    Operator "an operator that no schedule regroups; --safe-ops permits the program's own",
    Described "its arguments or its datatype",
    NoCollective "no row for this collective with this number of ranks a node",
    NoSize "no row for this size",
    NoOperator "no row for this operator",
    Library "the plan's row leaves them to the library",
    TooLong "more bytes than a message has",
    Root "no row for this root",
    Count "its row's schedule does not divide this count",
    Bits "ranks would get unlike bits; plan with --unlike-bits and set UNISONO_UNLIKE_BITS=1 to permit it",
    Elsewhere "its row was measured where ranks wait in another way; --anywhere permits it",
    Otherwise "made inside another call, or one buffer twice",
}

/// Returns the text of the reason with this number; empty if there is no such reason.
pub fn text(number: u64) -> &'static str {
    usize::try_from(number).ok().and_then(|number| TEXTS.get(number)).copied().unwrap_or("")
}

/// Returns the reason why no plan served a call on a communicator.
pub fn of(library: &Library, arguments: &Arguments, known: &Known, described: Option<&Described>) -> Reason {
    let settings = settings();
    match home::settled().map(|home| home.agreement()) {
        Some(Agreement::Differs) => return Reason::Differs,
        Some(Agreement::Planned) => {}
        _ if settings.complaint.is_some() => return Reason::Unreadable,
        _ => return Reason::NoPlan,
    }
    let Some(serving) = known.serving() else {
        let rows = settings.plan.as_ref().map_or(&[][..], |plan| plan.table().rows());
        let has_ranks = rows.iter().any(|row| row.ranks == known.ranks);
        return if has_ranks { Reason::NotReady } else { Reason::NoRanks };
    };
    let Some(described) = described else {
        let reduces = matches!(arguments.kind, Kind::Allreduce | Kind::Reduce | Kind::ReduceScatter | Kind::Scan);
        let constants = &library.constants;
        let is_unknown = reduces && constants.op(constants.handle(arguments.op)).is_none();
        return if is_unknown { Reason::Operator } else { Reason::Described };
    };
    match serving.rows.unserved(&described.call) {
        Some(Unserved::Collective) => Reason::NoCollective,
        Some(Unserved::Size) => Reason::NoSize,
        Some(Unserved::Operator) => Reason::NoOperator,
        Some(Unserved::Library) => Reason::Library,
        Some(Unserved::TooLong) => Reason::TooLong,
        Some(Unserved::Root) => Reason::Root,
        Some(Unserved::Count) => Reason::Count,
        Some(Unserved::Elsewhere) => Reason::Elsewhere,
        None if !described.fits(known.ranks) => Reason::Described,
        None => match serving.rows.find(&described.call) {
            Some(entry) if !rounds_alike(&serving.rows, &described.call, entry, known) => Reason::Bits,
            _ => Reason::Otherwise,
        },
    }
}

/// Returns the reason why the library makes calls of the function [`NAMES`]`[place]`, which a plan serves in part or
/// not at all; empty without a plan.
pub fn of_passed(place: usize, library: &Library) -> &'static str {
    let settings = settings();
    let name = NAMES[place];
    let begins = place <= Place::MPI_Iscatter as usize || name.ends_with("_init");
    if settings.plan.is_none() {
        ""
    } else if begins && !settings.nonblocking {
        "not asked for: --nonblocking"
    } else if begins && settings.check {
        "--check compares calls that wait"
    } else if begins && !library.has_progress_hook() {
        "this MPI library does not carry calls on"
    } else if begins {
        "no row serves them, or their communicator had no collective before"
    } else if name.starts_with("MPI_Start") {
        "requests that no plan serves"
    } else if matches!(name, "MPI_Allgatherv" | "MPI_Reduce_scatter") {
        "no row serves them, unlike numbers of bytes, or their communicator had no collective before"
    } else if name.contains("eighbor_") {
        "a schedule is of all ranks, and these are of neighbors"
    } else if name.ends_with("Exscan") {
        "no algorithm makes it"
    } else {
        "no rank sees the counts of all"
    }
}
