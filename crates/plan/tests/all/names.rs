//! Algorithms found by names and parameters, and refusals.

use crate::common;

use common::case;
use unisono_algorithms::{AlgorithmError, Case, Params, resolve};
use unisono_collective::{Kind, Operator};
use unisono_machine::{Grid, Machine, Shape};
use unisono_plan::{Part, Problem, Request, plan};

fn params(given: &[(&str, &str)]) -> Params {
    given.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect()
}

fn on(kind: Kind, rows: u32, cols: u32) -> Case<'static> {
    case(kind, Grid::new(rows, cols), 8, 0, Operator::Sum)
}

fn said(name: &str, case: &Case, given: &[(&str, &str)]) -> String {
    match resolve(name, case, &params(given)) {
        Ok((algorithm, params)) => format!("{} {params}", algorithm.name()),
        Err(e) => e.to_string(),
    }
}

#[test]
fn short_names_on_a_grid() {
    let (reduce, allreduce) = (on(Kind::Reduce, 4, 8), on(Kind::Allreduce, 4, 8));
    assert_eq!(said("chain", &reduce, &[]), "x-y x=chain y=chain");
    assert_eq!(said("chain", &allreduce, &[]), "reduce-broadcast reduce=chain");
    assert_eq!(said("ring", &allreduce, &[]), "x-y-allreduce x=ring y=ring");
    assert_eq!(said("ring", &allreduce, &[("mapping", "fold")]), "x-y-allreduce mapping=fold x=ring y=ring");
    assert!(said("ring", &reduce, &[]).contains("not reduce on 4x8"));
}

#[test]
fn a_short_name_does_not_overwrite_a_parameter() {
    let reduce = on(Kind::Reduce, 4, 8);
    assert_eq!(
        said("chain", &reduce, &[("x", "tree")]),
        "chain means x-y x=chain y=chain here, so x cannot be 'tree'; name x-y to choose its parts"
    );
    assert_eq!(said("chain", &reduce, &[("x", "chain")]), "x-y x=chain y=chain");
    assert_eq!(
        said("chain", &on(Kind::Allreduce, 1, 8), &[("reduce", "tree")]),
        "chain means reduce-broadcast reduce=chain here, so reduce cannot be 'tree'; name reduce-broadcast to choose \
         its parts"
    );
    assert!(said("ring", &on(Kind::Allreduce, 4, 8), &[("y", "chain")]).contains("y cannot be 'chain'"));
}

#[test]
fn parameters_belong_to_the_parts_that_were_chosen() {
    let (reduce, allreduce) = (on(Kind::Reduce, 4, 8), on(Kind::Allreduce, 4, 8));
    assert_eq!(
        said("x-y", &reduce, &[("x", "chain"), ("y", "chain"), ("group", "4")]),
        "x-y has no parameter 'group'; accepted are x, y"
    );
    assert_eq!(said("x-y", &reduce, &[("x", "two-phase"), ("group", "4")]), "x-y group=4 x=two-phase");
    let deep = [("reduce", "x-y"), ("x", "two-phase"), ("y", "chain"), ("group", "3")];
    assert_eq!(said("reduce-broadcast", &allreduce, &deep), "reduce-broadcast group=3 reduce=x-y x=two-phase y=chain");
    let deep = [("reduce", "x-y"), ("x", "star"), ("y", "chain"), ("group", "3")];
    assert_eq!(
        said("reduce-broadcast", &allreduce, &deep),
        "reduce-broadcast has no parameter 'group'; accepted are broadcast, reduce, root, x, y"
    );
    assert!(said("reduce-broadcast", &allreduce, &[("reduce", "chain"), ("x", "tree")]).contains("no parameter 'x'"));
    assert!(said("x-y-allreduce", &allreduce, &[("x", "ring"), ("mapping", "bogus")]).contains("'bogus'"));
    assert!(said("x-y-allreduce", &allreduce, &[("mapping", "fold")]).contains("no parameter 'mapping'"));
}

#[test]
fn what_an_axis_may_be_is_listed_whole() {
    let message = said("x-y-allreduce", &on(Kind::Allreduce, 4, 8), &[("x", "foo")]);
    assert!(message.contains("'foo'") && message.contains("chain") && message.ends_with(", ring"), "{message}");
    assert!(!said("x-y", &on(Kind::Reduce, 4, 8), &[("x", "foo")]).contains("ring"));
}

#[test]
fn a_restriction_keeps_what_it_speaks_of() {
    let wafer = Machine::preset("wse2").unwrap();
    let request = Request::new(Kind::Reduce, &wafer, Part::Shape(Shape::rect(4, 8)), 8);
    let plan = plan(Problem::new(&request).unwrap(), None, &params(&[("group", "4")])).unwrap();
    for c in &plan.candidates {
        let own = c.algorithm.info().params.iter().any(|p| p.name == "group");
        let takes_it = own || ["x", "y"].iter().any(|axis| c.params.get(axis) == Some("two-phase"));
        assert!(takes_it, "{} {}", c.algorithm.name(), c.params);
    }
}

#[test]
fn rings_too_large_for_any_memory_are_refused() {
    for (rows, cols, instructions) in [(1, 4097, 4 * 4097 * 4097), (204, 204, 8u64 * 204 * 204 * 204)] {
        let error = resolve("ring", &on(Kind::Allreduce, rows, cols), &Params::new()).err().unwrap();
        assert!(matches!(error, AlgorithmError::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains(&instructions.to_string()), "{error}");
    }
    for (rows, cols) in [(1, 4096), (203, 203)] {
        assert!(resolve("ring", &on(Kind::Allreduce, rows, cols), &Params::new()).is_ok(), "{rows}x{cols}");
    }
    // Rings on many short lines are not too large to build.
    let mixed = params(&[("x", "ring"), ("y", "chain")]);
    assert!(resolve("x-y-allreduce", &on(Kind::Allreduce, 512, 16), &mixed).is_ok());
}
