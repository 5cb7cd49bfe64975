//! Tests of `catalog::elimination::halving`.

use unisono_algorithms::internals::halving::meetings;
use unisono_base::narrow;
use unisono_collective::{Collective, Dtype, Kind, Operator};

/// Every rank leaves exactly once or stays, and the ranks that stay have each block exactly once.
#[test]
fn all_but_a_power_of_two_are_out_once() {
    for ranks in 2..200_u32 {
        let c = Collective::new(Kind::Allreduce, ranks, 4096, 0, Operator::Sum, Dtype::F32).unwrap();
        let all = meetings(&c);
        let out: Vec<u32> = all.iter().filter(|m| m.z.is_some()).map(|m| m.x.0).collect();
        let unique: std::collections::BTreeSet<u32> = out.iter().copied().collect();
        assert_eq!(unique.len(), out.len(), "{ranks}");
        assert_eq!(narrow::<u32>(out.len()), ranks - (1 << ranks.ilog2()), "{ranks}");
    }
}
