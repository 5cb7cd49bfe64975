//! The reasons why the MPI library made a call itself, for the report.
//!
//! Only a report needs a reason, so [`of`] repeats the checks of [`crate::intercept`] in their order after the call.

use unisono_collective::{Kind, Row};
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
    NotCompared "the ranks never compared their plans: no MPI_COMM_WORLD, or a call of another thread came first",
    Unreadable "the plan cannot be read",
    Differs "the ranks have unlike plans or switches",
    NoRanks "no row for this number of ranks",
    Inter "a communicator between two groups",
    NotReady "the plan cannot serve this communicator",
    Operator "an operator that no schedule regroups; --safe-ops permits the program's own",
    Described "its arguments or its datatype",
    NoCollective "no row for this collective",
    NoRanksOfIt "no row for this collective on this number of ranks",
    NoPerNode "no row for this collective with this number of ranks a node",
    NoSize "no row for this size",
    NoOperator "no row for this operator at this size",
    Library "the plan's row leaves them to the library",
    TooLong "more bytes than a message has",
    Root "its row's schedule has another root",
    Count "its row's schedule does not divide this count",
    Bits "ranks would get unlike bits; plan with --unlike-bits and set UNISONO_UNLIKE_BITS=1 to permit it",
    Elsewhere "its row was measured under other conditions; --anywhere permits it",
    Otherwise "made inside another call, one buffer twice, or a datatype that the library refuses",
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
        None if settings.plan.is_some() => return Reason::NotCompared,
        _ => return Reason::NoPlan,
    }
    let rows = settings.plan.as_ref().map_or(&[][..], |plan| plan.table().rows());
    let Some(serving) = known.serving() else {
        let has_ranks = rows.iter().any(|row| row.ranks == known.ranks);
        return match library.is_inter(library.constants.handle(arguments.comm)) {
            Ok(true) => Reason::Inter,
            _ if has_ranks => Reason::NotReady,
            _ => Reason::NoRanks,
        };
    };
    let Some(described) = described else {
        // A plan without rows for the collective would not serve a call with other arguments.
        return serving.rows.unserved_kind(arguments.kind).map_or_else(
            || if is_unknown_operator(library, arguments) { Reason::Operator } else { Reason::Described },
            |why| of_row(why, arguments.kind, known.ranks, rows),
        );
    };
    match serving.rows.unserved(&described.call) {
        Some(why) => of_row(why, arguments.kind, known.ranks, rows),
        None if !described.fits(known.ranks) => Reason::Described,
        None => match serving.rows.find(&described.call) {
            Some(entry) if !rounds_alike(&serving.rows, &described.call, entry, known) => Reason::Bits,
            _ => Reason::Otherwise,
        },
    }
}

/// Returns whether the operator of a call is neither known nor an operator of the program that plans may serve.
fn is_unknown_operator(library: &Library, arguments: &Arguments) -> bool {
    let reduces = matches!(arguments.kind, Kind::Allreduce | Kind::Reduce | Kind::ReduceScatter | Kind::Scan);
    let constants = &library.constants;
    let handle = constants.handle(arguments.op);
    let is_permitted = settings().safe_ops && constants.is_users(handle);
    reduces && constants.op(handle).is_none() && !is_permitted
}

/// Returns the reason for a call of a collective on `ranks` ranks, none of whose rows in the table `rows` serve it.
fn of_row(why: Unserved, kind: Kind, ranks: u32, rows: &[Row]) -> Reason {
    let mut of_kind = rows.iter().filter(|row| row.kind == kind).peekable();
    match why {
        Unserved::Collective if of_kind.peek().is_none() => Reason::NoCollective,
        Unserved::Collective if of_kind.all(|row| row.ranks != ranks) => Reason::NoRanksOfIt,
        Unserved::Collective => Reason::NoPerNode,
        Unserved::Size => Reason::NoSize,
        Unserved::Operator => Reason::NoOperator,
        Unserved::Library => Reason::Library,
        Unserved::TooLong => Reason::TooLong,
        Unserved::Root => Reason::Root,
        Unserved::Count => Reason::Count,
        Unserved::Elsewhere => Reason::Elsewhere,
    }
}

/// Returns the reason why the library makes calls of the function [`NAMES`]`[place]`, which plans serve only in some
/// cases or never; empty if there is no plan.
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
