//! The integration tests of the crate, as one binary.

mod builder;
mod cpu;
mod embed;
mod judge;
mod races;
mod random;
mod soundness;
mod interpret {
    mod element;
}
mod order;
mod plan_file;
mod stored {
    mod runs;
}
mod verify {
    mod cores;
    mod exact;
    mod expressions;
    mod fingerprint;
    mod seed;
    mod segments;
}
mod soak;
