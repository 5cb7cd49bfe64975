//! Tests of `spec`.

use unisono_collective::{Collective, Dtype, Kind, Operator, Source};

fn of(kind: Kind, ranks: u32, elements: u64) -> Collective {
    Collective::new(kind, ranks, elements, 0, Operator::Sum, Dtype::F32).unwrap()
}

#[test]
fn required_spans_cover_every_output() {
    for &kind in Kind::ALL {
        for ranks in 1..6 {
            for elements in 0..4 {
                let c = of(kind, ranks, elements);
                for rank in 0..ranks {
                    let mut at = 0;
                    for r in c.required(rank) {
                        assert_eq!(r.span.start, at, "{kind} {ranks} {elements}");
                        assert!(!r.span.is_empty());
                        at = r.span.start + r.span.len;
                        if let Source::Copy { rank: from } = r.source {
                            assert!(r.input_start + r.span.len <= c.input_len(from));
                        }
                    }
                    assert_eq!(at, c.output_len(rank));
                }
            }
        }
    }
}

#[test]
fn wrong_input_is_named() {
    let e = Collective::new(Kind::Reduce, 4, 1, 4, Operator::Sum, Dtype::F32).unwrap_err();
    assert_eq!(e.to_string(), "root 4 is outside the 4 ranks; accepted are 0 to 3");
    let e = Collective::new(Kind::Reduce, 4, 1, 0, Operator::Xor, Dtype::F32).unwrap_err();
    assert_eq!(e.to_string(), "operator xor is not defined for f32; it accepts i32, i64");
    assert_eq!(of(Kind::Barrier, 3, 0).input_len(1), 1);
    assert!(Collective::new(Kind::Alltoall, 65_536, 65_536, 0, Operator::Sum, Dtype::F32).is_err());
}

#[test]
fn plans_count_large_buffers_in_units() {
    let planned = |kind, ranks, elements| Collective::planned(kind, ranks, elements, 0, Operator::Sum, Dtype::F32);
    for (kind, ranks, elements, unit) in [
        (Kind::Allreduce, 8, u64::from(u32::MAX), 1),
        (Kind::Allreduce, 8, 1 << 32, 2),
        (Kind::Allgather, 16, 1 << 28, 2),
        (Kind::Alltoall, 1 << 10, 1 << 30, 512),
        (Kind::Barrier, 3, 0, 1),
    ] {
        let c = planned(kind, ranks, elements).unwrap();
        assert_eq!((c.unit, c.element_bytes()), (unit, 4 * u64::from(unit)), "{kind}");
        assert_eq!(c.count(), if kind == Kind::Barrier { 1 } else { elements }, "{kind}");
    }
    let e = planned(Kind::Allreduce, 8, (1 << 32) + 1).unwrap_err();
    assert_eq!(
        e.to_string(),
        "allreduce of 4294967297 elements on 8 ranks has a buffer of more than 4294967295 elements, so it is \
         planned in units of 2 elements; choose a multiple of 2"
    );
}
