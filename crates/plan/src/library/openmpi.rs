//! Open MPI's own choice: the fixed decisions of `coll/tuned`, and the algorithms that replace a chosen algorithm if it
//! does not suit the case.
//!
//! Sources: Open MPI 5.0.10, `ompi/mca/coll/tuned/coll_tuned_decision_fixed.c` (the table `openmpi.rules`) and
//! `ompi/mca/coll/base/coll_base_*.c` (the algorithms).

use unisono_collective::{Collective, Kind};

use super::mpi::{MpiLibrary, Run};

pub const OPEN_MPI: MpiLibrary = MpiLibrary {
    name: "openmpi",
    title: "Open MPI",
    version: "Open MPI 5.0.10, the fixed decisions of coll/tuned",
    note: "on several nodes coll/han comes first, unless '--mca coll_han_priority 0' is set",
    chosen,
    run,
};

const RULES: &str = include_str!("openmpi.rules");

/// Returns the name of the algorithm that the table lists for a collective; `None` if the table lacks the collective.
fn chosen(c: &Collective) -> Option<&'static str> {
    let (ranks, bytes) = (u64::from(c.ranks), c.bytes());
    let head = match c.kind.reduces() && c.kind != Kind::Barrier && !c.operator.commutative() {
        true => format!("{} ordered", c.kind.name()),
        false => c.kind.name().to_owned(),
    };
    let mut lines = RULES.lines().skip_while(|line| line.split_once(':').is_none_or(|(name, _)| name != head));
    let mut names = lines.next()?.split_once(':')?.1.to_owned();
    let row = lines.find(|line| {
        let is_row = line.starts_with(['<', 'a']) && !line.contains('=');
        if !is_row {
            names += " ";
            names += line;
        }
        is_row && below(line.split(' ').next().unwrap_or_default()).is_none_or(|most| ranks < most)
    })?;
    let cell = |cell: &&str| match cell.split_once(':') {
        Some((first, _)) => below(first).is_some_and(|most| bytes < most),
        None => true,
    };
    let id = row.split(' ').skip(1).find(cell)?.rsplit(':').next()?;
    let start = format!("{id}=");
    let name = names.split_whitespace().find_map(|word| word.strip_prefix(&start))?;
    // The result must point into the table, which lives as long as the program. The joined names do not.
    RULES.split([' ', '\n', '=']).find(|word| *word == name)
}

/// Returns the limit in `<LIMIT`; `None` for `any`.
fn below(text: &str) -> Option<u64> {
    text.strip_prefix('<')?.parse().ok()
}

/// Returns an algorithm of Unisono that is equivalent to an algorithm of Open MPI.
fn run(c: &Collective, name: &str) -> Option<Run> {
    let few = c.count() < u64::from(c.ranks);
    let fewer = c.count() < u64::from(1_u32 << c.ranks.ilog2());
    // A segment of Unisono has at most 4 GiB.
    let whole = || u32::try_from(c.bytes()).ok().map(|bytes| bytes.max(1));
    let halves = |reduce: &str, broadcast: &str| -> Option<Run> {
        Some(Run::Reduced(
            Box::new(run(&part(c, Kind::Reduce), reduce)?),
            Box::new(run(&part(c, Kind::Broadcast), broadcast)?),
        ))
    };
    Some(match (c.kind, name) {
        (Kind::Allgather, "bruck") => Run::of("bruck"),
        // In Open MPI, Bruck or a ring replaces an algorithm that does not suit the number of ranks.
        (Kind::Allgather, "recursive_doubling") if !c.ranks.is_power_of_two() => Run::of("bruck"),
        (Kind::Allgather, "recursive_doubling") => Run::of("recursive-doubling"),
        (Kind::Allgather, "neighbor") if c.ranks.is_multiple_of(2) => Run::of("neighbor"),
        (Kind::Allgather, "neighbor" | "ring" | "two_proc") => Run::of("ring"),
        (Kind::Allreduce, "basic_linear") => halves("linear", "basic_linear")?,
        (Kind::Allreduce, "nonoverlapping") => {
            let (reduce, broadcast) = (part(c, Kind::Reduce), part(c, Kind::Broadcast));
            halves(chosen(&reduce)?, chosen(&broadcast)?)?
        }
        (Kind::Allreduce, "recursive_doubling") => Run::of("recursive-doubling"),
        // With fewer elements than ranks, recursive doubling replaces rings. No segment size is set, so rings have no
        // segments.
        (Kind::Allreduce, "ring" | "segmented_ring") if few => Run::of("recursive-doubling"),
        (Kind::Allreduce, "ring" | "segmented_ring") => Run::of("ring"),
        (Kind::Allreduce, "rabenseifner") if fewer => halves("linear", "basic_linear")?,
        (Kind::Allreduce, "rabenseifner") => Run::of("rabenseifner"),
        // By default, `linear_sync` does not limit the number of messages under way.
        (Kind::Alltoall, "linear" | "linear_sync") => Run::of("linear"),
        (Kind::Alltoall, "pairwise" | "two_proc") => Run::of("pairwise"),
        (Kind::Alltoall, "modified_bruck") => Run::of("bruck"),
        (Kind::Barrier, "recursive_doubling" | "bruck") => Run::of("dissemination"),
        (Kind::Broadcast, "basic_linear") => linear(c)?,
        // The chain has one branch and no segments.
        (Kind::Broadcast | Kind::Reduce, "chain" | "pipeline") => Run::of("pipelined-chain").with("segment", whole()?),
        (Kind::Broadcast, "binary_tree") | (Kind::Reduce, "binary") => {
            Run::of("binary-tree").with("order", "levels").with("segment", whole()?)
        }
        (Kind::Broadcast | Kind::Reduce | Kind::Gather | Kind::Scatter, "binomial") => Run::of("binomial"),
        (Kind::Broadcast, "knomial") => Run::of("binomial").with("radix", 4),
        (Kind::Broadcast, "scatter_allgather" | "scatter_allgather_ring") if few => linear(c)?,
        (Kind::Broadcast, "scatter_allgather") if c.ranks.is_power_of_two() => {
            Run::of("scatter-allgather").with("allgather", "recursive-doubling")
        }
        (Kind::Broadcast, "scatter_allgather_ring") => Run::of("scatter-allgather"),
        (Kind::Gather | Kind::Scatter, "linear" | "basic_linear" | "linear_nb") => Run::of("linear"),
        (Kind::Reduce, "linear") => linear(c)?,
        (Kind::Reduce, "rabenseifner") if fewer => linear(c)?,
        (Kind::Reduce, "rabenseifner") => Run::of("reduce-scatter-gather"),
        (Kind::ReduceScatter, "recursive_halving") => Run::of("recursive-halving"),
        _ => return None,
    })
}

/// Returns the tree in which the root exchanges the whole vector with each other rank, one after another. `None` for a
/// reduce with an operator that does not commute and a root other than rank 0: the catalog combines operands at rank 0,
/// but the library at the root.
fn linear(c: &Collective) -> Option<Run> {
    let elsewhere = c.kind == Kind::Reduce && !c.operator.commutative() && c.root != 0;
    (!elsewhere).then(|| Run::of("binomial").with("radix", c.ranks.max(2)))
}

/// Returns the collective with the same vector and root 0.
fn part(c: &Collective, kind: Kind) -> Collective {
    Collective { kind, root: 0, ..*c }
}
