//! Parts of machines as users name them, and plans with wishes.

use unisono_algorithms::Params;
use unisono_collective::Kind;
use unisono_machine::{Machine, Shape};
use unisono_plan::{Asked, Part, PlanError, Wishes, plan_as, registry};

fn preset(name: &str) -> Machine {
    Machine::preset(name).expect("it is a preset")
}

#[test]
fn a_shape_or_a_subset_replaces_the_part_in_use() {
    let archer = preset("archer");
    let line = || Some(Shape::line(24));
    let found = Part::All.renamed(&archer, &archer, line(), None);
    assert_eq!(found, Ok(Part::Shape(Shape::line(24))));
    assert_eq!(Part::All.renamed(&archer, &archer, None, Some(vec![0, 3])), Ok(Part::Nodes(vec![0, 3])));
    let kept = Part::Nodes(vec![1]);
    assert_eq!(kept.renamed(&archer, &archer, None, None), Ok(kept.clone()));
    assert_eq!(Part::All.renamed(&archer, &archer, line(), Some(vec![0])), Err(PlanError::ShapeAndSubset));
    let of_shape = Part::Shape(Shape::line(24)).renamed(&archer, &archer, None, Some(vec![0]));
    assert_eq!(of_shape, Err(PlanError::ShapeAndSubset));
    let unknown = Part::All.renamed(&archer, &archer, None, Some(vec![u32::MAX]));
    assert!(matches!(unknown, Err(PlanError::Machine(_))), "{unknown:?}");
}

#[test]
fn places_do_not_outlive_the_numbering_of_a_machine() {
    let (machine, places) = (preset("torus2d-small"), Part::Places(vec![3, 1]));
    assert_eq!(places.renamed(&machine, &machine, None, None), Ok(places.clone()));
    let other = preset("hx2mesh-small");
    assert_eq!(places.renamed(&machine, &other, None, None), Ok(Part::All));
    assert_eq!(places.without_places(), Part::All);
    assert_eq!(places.shape(&machine), Ok(Some(Shape::line(2))));
    assert_eq!(places.extents(&machine), Ok(Some(vec![2])));
    assert_eq!((places.is_whole(&machine), Part::All.is_whole(&machine)), (Ok(false), Ok(true)));
}

#[test]
fn unknown_wishes_are_refused() {
    let machine = preset("archer");
    let asked = Asked::new(Kind::Allreduce, &machine, Part::Shape(Shape::line(4)), 8);
    let plan = |wishes: Wishes<'_>| plan_as(&asked, &Params::new(), &wishes).map(|plan| plan.fastest.is_some());
    assert_eq!(plan(Wishes { algorithm: Some("ring"), ..Wishes::default() }), Ok(false));
    for wishes in [
        Wishes { target: Some("no-format"), ..Wishes::default() },
        Wishes { behaves_as: Some("no-library"), ..Wishes::default() },
        Wishes { bits: Some("no-property"), ..Wishes::default() },
    ] {
        assert!(plan(wishes).is_err(), "{wishes:?}");
    }
}

#[test]
fn the_registry_lists_every_algorithm_with_its_machines() {
    let all = registry(None);
    assert_eq!(all.len(), unisono_algorithms::algorithms().len());
    assert!(all.iter().all(|row| !row.machines.is_empty()));
    assert!(registry(Some(Kind::Barrier)).len() < all.len());
}
