//! The integration tests of the crate, as one binary.

mod bounds;
mod endpoint {
    mod bounds {
        mod fan_out;
    }
}
mod in_network {
    mod host;
}
mod network {
    mod ahead;
    mod loads;
    mod nccl;
    mod rccl;
    mod routed;
    mod samples;
}
