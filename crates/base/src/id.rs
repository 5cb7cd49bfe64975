//! Dense `u32` ids: an index into one table, printed as in the text form of a schedule.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub u32);

        impl $name {
            /// Returns the id of row `index`. Tables never have more than `u32::MAX` rows, because their builders
            /// refuse more.
            pub fn new(index: usize) -> Self {
                Self(u32::try_from(index).expect("table builders keep row counts below 2^32"))
            }

            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

id!(
    /// A rank, or a switch that computes. Ranks come first.
    NodeId, "node ");
id!(
    /// A sequence of instructions of one node, numbered over the whole schedule.
    LaneId, "lane ");
id!(
    /// One `combine` instruction, numbered over the whole schedule.
    InstrId, "i");
id!(
    /// A FIFO of elements from one node to one or more nodes.
    StreamId, "s");
id!(
    /// A named part of a schedule to which a cost model applies.
    PhaseId, "p");
id!(
    /// One operation of a task graph, numbered over all ranks; or one task of a program, in the order of submission.
    TaskId, "t");
id!(
    /// A buffer of a program of tasks.
    BufferId, "b");
id!(
    /// One command of one rank, numbered in the order of issue.
    CommandId, "c");
