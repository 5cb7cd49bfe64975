//! The integration tests of the crate, as one binary.

mod multiplying;
mod registers;
mod catalog {
    mod auto_gen;
    mod circulant;
    mod elimination {
        mod halving;
    }
    mod recursive_exchange;
    mod slack_tree;
    mod two_phase_searched;
}
mod line {
    mod side;
}
mod ranks {
    mod blocks;
    mod board_trees;
    mod circulant;
    mod extents;
    mod fold;
    mod hamilton;
    mod segments;
    mod torus_trees;
    mod tree;
}
mod switches {
    mod packing;
}
#[path = "../../../schedule/tests/all/soak.rs"]
mod soak;
