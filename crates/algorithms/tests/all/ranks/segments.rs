//! Tests of `ranks::segments`.

use unisono_algorithms::{Case, Params, Ranks, ranks::segments};
use unisono_collective::{Collective, Dtype, Kind, Operator};

/// The numbers in closed forms equal those of the listed segments, also if there are too many segments to list.
#[test]
fn numbers_of_segments_are_those_of_the_list() {
    let case = |elements, dtype| {
        let c = Collective::new(Kind::Broadcast, 2, elements, 0, Operator::Sum, dtype).unwrap();
        Case::on_ranks(c, Ranks::default())
    };
    for elements in [0, 1, 2, 7, 1000, 4096] {
        for dtype in [Dtype::F16, Dtype::F32, Dtype::I64] {
            let case = case(elements, dtype);
            for params in [1, 3, 8, 100, 4096, u32::MAX].map(|bytes| Params::new().with("segment", bytes)) {
                let all: Vec<_> = segments::segments("a", None, &case, &params).unwrap().collect();
                let first = all.first().map_or(0, |segment| segment.len);
                let more = all.len().saturating_sub(1) as u32;
                assert_eq!(segments::first_and_more("a", None, &case, &params).unwrap(), (first, more));
                assert_eq!(segments::count("a", None, &case, &params), all.len() as u64);
            }
        }
    }
    let (case, params) = (case(u32::MAX.into(), Dtype::F32), Params::new().with("segment", 4));
    assert_eq!(segments::first_and_more("a", None, &case, &params).unwrap(), (1, u32::MAX - 1));
}
