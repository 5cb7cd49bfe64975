//! Tests of `stored`.

use unisono_algorithms::Params;
use unisono_collective::{Dtype, Kind};
use unisono_machine::{Machine, Shape};
use unisono_plan::{Part, Problem, Request, plan};

/// A schedule is stored in as few blocks as its algorithm needs, because blocks cannot be cut. A ring on seven ranks
/// has seven blocks, even if the requested count is not a multiple of seven.
#[test]
fn plans_are_stored_in_the_fewest_blocks() {
    let machine = Machine::preset("archer").unwrap();
    for (algorithm, kind, ranks, elements, blocks) in [
        ("ring", Kind::Allreduce, 7, 1003, 7),
        ("ring", Kind::Allreduce, 8, 1003, 8),
        ("rabenseifner", Kind::Allreduce, 8, 1003, 8),
        ("recursive-doubling", Kind::Allreduce, 7, 1003, 1),
        ("binomial", Kind::Broadcast, 7, 1003, 1),
        ("ring", Kind::Allgather, 7, 1003, 1),
    ] {
        let part = Part::Shape(Shape::line(ranks));
        let request = Request { dtype: Dtype::F32, ..Request::new(kind, &machine, part, elements) };
        let planned = plan(Problem::new(&request).unwrap(), Some(algorithm), &Params::new()).unwrap();
        let stored = planned.stored().unwrap();
        assert_eq!(stored.facts().collective.elements, blocks, "{algorithm} {kind} of {elements} among {ranks}");
    }
}
