//! Errors of machine descriptions, and of requests that a machine cannot fulfil.

use unisono_base::limits::OverLimit;

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MachineError {
    #[error("'{found}' is neither a machine preset nor a machine file; presets are {presets}")]
    UnknownPreset { found: String, presets: String },
    #[error("{origin}: {message}")]
    Toml { origin: String, message: String },
    #[error("{origin}: {key} is {found}; accepted is {accepted}")]
    Value { origin: String, key: &'static str, found: String, accepted: &'static str },
    #[error("{origin}: kind is '{found}'; accepted is {kinds}")]
    UnknownKind { origin: String, found: String, kinds: String },
    #[error(
        "{machine} is of kind {kind}; nodes and subsets are for machines that are made of nodes with several ranks"
    )]
    NoNodes { machine: String, kind: &'static str },
    #[error(
        "{machine} is of kind network, and subsets are of the nodes of switches that reduce; give a number of ranks \
         (--ranks), or leave accelerators out (--fail N)"
    )]
    NoSubsets { machine: String },
    #[error(
        "{machine} is one box, and its description does not say how several are joined; accepted are an import with \
         --boxes, a topology of name boxes, and a key cluster with the name of a preset of such boxes"
    )]
    NoBoxes { machine: String },
    #[error("{machine}: {message}")]
    Failed { machine: String, message: String },
    #[error("{machine} is of kind {kind}; links and nodes fail on machines of kind network")]
    NoFailures { machine: String, kind: &'static str },
    #[error("{machine} has ranks, not a shape {shape}; give their number")]
    RanksOnly { machine: String, shape: String },
    #[error(
        "'{found}' is not a shape; accepted are N (a row of N PEs) and MxN (M rows, N columns), each 1 to 4294967295"
    )]
    Shape { found: String },
    #[error(
        "shape {found} does not fit on {machine}, which has {rows} rows and {columns} columns of PEs, in either \
         orientation"
    )]
    TooLarge { found: String, machine: String, rows: u32, columns: u32 },
    #[error(
        "shape {shape} does not fit on the {extents} accelerators of {machine}; accepted are a number of ranks, and a \
         shape with as many extents as {extents}, none of them larger"
    )]
    NoSuchPart { shape: String, machine: String, extents: String },
    #[error(
        "shape {shape} does not fit on {machine}, whose {accelerators} accelerators have no rows and columns; give the \
         number of ranks (--ranks)"
    )]
    NoRows { shape: String, machine: String, accelerators: u32 },
    #[error(
        "shape {shape} does not fit on {machine} without its failed accelerators ({failed}): each rectangle of this shape \
         has one of them; ask for a smaller shape, or give the number of ranks (--ranks)"
    )]
    NoHealthyPart { shape: String, machine: String, failed: String },
    #[error("{ranks} ranks do not fit on {machine}, which has {accelerators} accelerators; ask for fewer{or}")]
    TooManyRanks { ranks: u32, machine: String, accelerators: u32, or: String },
    #[error("the place of a rank is {node}; {machine} has accelerators 0 to {last}")]
    NoSuchNode { node: u32, machine: String, last: u32 },
    #[error("the place of two ranks is {node}; an accelerator of {machine} takes one rank")]
    SameNode { node: u32, machine: String },
    #[error(
        "{machine} is a grid of PEs: choose the part of it to use by a shape, N (a row) or MxN (M rows, N columns), of at \
         most {rows} rows and {columns} columns"
    )]
    NoShape { machine: String, rows: u32, columns: u32 },
    #[error("ranks is {found}; give the number of ranks of {machine} to use, at least 1")]
    NoRanks { machine: String, found: String },
    #[error("the network has {found} cables in a plane; at most {most} fit")]
    TooManyCables { found: u64, most: u64 },
    #[error(transparent)]
    OverLimit(#[from] OverLimit),
    #[error("{machine} has no rows and columns of boards; an hxmesh and a torus of two dimensions have")]
    NoBoards { machine: String },
    #[error("jobs are not placed on {machine}, {found}; accepted are networks of the families {accepted}")]
    NoJobSpace { machine: String, found: String, accepted: String },
    #[error(
        "{machine} has boards of {board} accelerators; a size of boards is for networks without boards of their own"
    )]
    OwnBoards { machine: String, board: String },
    #[error(
        "there are no boards of {found} accelerators on {machine}: boards divide its {accelerators} accelerators, and each \
         is inside one block of {leaf} or consists of whole ones, so that the traffic above blocks can be counted; \
         accepted are {accepted}"
    )]
    NoSuchBoard { found: u32, machine: String, accelerators: u32, leaf: u32, accepted: String },
    #[error("{machine} has no leaves, groups or boxes in which aligned jobs could stay; ask for no aligned jobs")]
    NoBlocks { machine: String },
    #[error("{found} of {machine}'s {boards} boards fail; accepted are 0 to {}", boards - 1)]
    AllFail { found: u64, machine: String, boards: u64 },
    #[error("{origin}: a job of {job} boards is larger than {machine}, which has {boards} of them")]
    JobTooLarge { origin: String, job: String, machine: String, boards: String },
    #[error("{origin}, line {line}: '{found}' is no job; accepted are {accepted}")]
    NoJob { origin: String, line: usize, found: String, accepted: String },
    #[error("{origin} holds no job; a line is {accepted}")]
    NoJobs { origin: String, accepted: String },
    #[error("{origin}, line {line}: '{found}' is no size of jobs: {reason}")]
    NoSize { origin: String, line: usize, found: String, reason: String },
    #[error("{origin} ends at {share} % of the jobs; the last line of sizes is that of 100%")]
    SharesEnd { origin: String, share: String },
    #[error("'{found}' is not a heuristic; accepted are {accepted}")]
    UnknownHeuristic { found: String, accepted: String },
    #[error("samples is 0; accepted is at least 1")]
    NoSamples,
    #[error("{origin}: topology.name is '{found}'; accepted are {families}")]
    UnknownTopology { origin: String, found: String, families: String },
    #[error("nodes is {found}; {machine} can have 1 to {most}")]
    Nodes { machine: String, found: u32, most: u32 },
    #[error("{found} ranks were asked for; {machine} has cores for 1 to {most}")]
    Cores { machine: String, found: u32, most: u32 },
    #[error("the subset names {found}; nodes of {machine} are 0 to {last}, at least one")]
    Subset { machine: String, found: String, last: u32 },
}
