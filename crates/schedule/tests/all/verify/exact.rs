//! Tests of `verify/exact`.

use unisono_base::NodeId;
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_schedule::{
    Builder, Operand,
    verify::{Method, Proof, verify},
};

/// Proves a reduce along a chain in which one rank, if given, only forwards.
fn proof(ranks: u32, silent: Option<u32>) -> Proof {
    let mut b = Builder::new(Collective::new(Kind::Reduce, ranks, 1, 0, Operator::Sum, Dtype::F32).unwrap());
    let to: Vec<_> = (1..ranks).map(|r| Operand::Stream(b.stream(NodeId(r), &[NodeId(r - 1)]))).collect();
    for rank in 0..ranks {
        let own = (silent != Some(rank)).then_some(Operand::In(0));
        let sources: Vec<_> = own.into_iter().chain(to.get(rank as usize).copied()).collect();
        let sink = if rank == 0 { Operand::Out(0) } else { to[rank as usize - 1] };
        b.combine(NodeId(rank), 0, 1, &sources, &[sink]);
    }
    verify(&b.finish().unwrap(), Method::Exact)
}

#[test]
fn sets_of_few_and_of_many_ranks_are_the_same() {
    // Up to 2^16 ranks, the ends of an interval share a word.
    for ranks in [5, (1 << 16) - 1, 1 << 16, (1 << 16) + 1] {
        assert!(proof(ranks, None).complete, "{ranks} ranks");
        let proof = proof(ranks, Some(2));
        let found: Vec<_> = proof.diagnostics.iter().map(|found| found.message.as_str()).collect();
        let lacks = format!("must hold ranks 0..{ranks}; it holds ranks 0..2, ranks 3..{ranks}");
        assert!(matches!(found[..], [one] if one.ends_with(&lacks)), "{ranks} ranks: {found:?}");
    }
}
