//! Tests of `spec`.

use unisono_collective::{Collective, Dtype, Kind, Operator, Source};

fn of(kind: Kind, ranks: u32, elements: u64) -> Collective {
    Collective::new(kind, ranks, elements, 0, Operator::Sum, Dtype::F32).unwrap()
}

#[test]
fn required_spans_cover_every_output() {
    for kind in Kind::ALL {
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
    assert_eq!(e.to_string(), "operator xor is not defined for f32; it accepts i16, i32, i64");
    assert_eq!(of(Kind::Barrier, 3, 0).input_len(1), 1);
    assert!(Collective::new(Kind::Alltoall, 65_536, 65_536, 0, Operator::Sum, Dtype::F32).is_err());
}

/// The table of accepted operators, as the documentation of the datatypes states it.
#[test]
fn operators_accept_their_datatypes() {
    let table = [
        (Operator::Sum, "f32 f64 f16 bf16 i16 i32 i64"),
        (Operator::Prod, "f32 f64 f16 bf16 i16 i32 i64"),
        (Operator::Min, "f32 f64 f16 bf16 i16 i32 i64"),
        (Operator::Max, "f32 f64 f16 bf16 i16 i32 i64"),
        (Operator::And, "i16 i32 i64"),
        (Operator::Or, "i16 i32 i64"),
        (Operator::Xor, "i16 i32 i64"),
        (Operator::Ordered, "i64"),
    ];
    assert_eq!(table.map(|(operator, _)| operator), Operator::ALL);
    for (operator, accepted) in table {
        let found: Vec<&str> =
            Dtype::ALL.iter().filter(|&&dtype| operator.check(dtype).is_ok()).map(|dtype| dtype.name()).collect();
        assert_eq!(found.join(" "), accepted, "{operator}");
    }
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

/// A line of nccl-tests' `all_reduce_perf` and one of `all_gather_perf` on 8 GPUs: size, time, both bandwidths.
#[test]
fn bandwidths_are_those_of_nccl_tests() {
    let printed = |kind: Kind, bytes, us: f64| kind.bandwidths(8, bytes, us * 1e-6).unwrap();
    let allreduce = printed(Kind::Allreduce, 1 << 30, 4000.0);
    assert!((allreduce.algbw - 268.435).abs() < 1e-3 && (allreduce.busbw - 469.762).abs() < 1e-3, "{allreduce:?}");
    // The size in nccl-tests is that of the gathered vector.
    let allgather = printed(Kind::Allgather, 1 << 27, 4000.0);
    assert!((allgather.algbw - 268.435).abs() < 1e-3 && (allgather.busbw - 234.881).abs() < 1e-3, "{allgather:?}");
    assert_eq!(printed(Kind::Reduce, 1 << 30, 4000.0).busbw, allreduce.algbw);
    assert_eq!(Kind::Barrier.bandwidths(8, 0, 1e-6), None);
    assert_eq!(Kind::Allreduce.bandwidths(8, 0, 0.0), None);
}

/// The bus bandwidth of an allreduce is that of a reduce-scatter and an allgather in sequence.
#[test]
fn an_allreduce_has_the_bus_bandwidth_of_its_halves() {
    for ranks in 2..40 {
        let bus = |kind: Kind, bytes, seconds| kind.bandwidths(ranks, bytes, seconds).unwrap().busbw;
        let bytes = 1000 * u64::from(ranks);
        let whole = bus(Kind::Allreduce, bytes, 2.0);
        for half in [Kind::ReduceScatter, Kind::Allgather] {
            assert!((bus(half, bytes / u64::from(ranks), 1.0) / whole - 1.0).abs() < 1e-12);
        }
    }
}
