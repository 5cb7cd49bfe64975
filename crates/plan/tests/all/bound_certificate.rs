//! Tests of `bound_certificate`.

use unisono_collective::Kind;
use unisono_machine::Machine;
use unisono_plan::{BoundCertificate, Part, Problem, Request};

#[test]
fn prices_prove_the_bound_and_no_more() {
    let machine = Machine::preset("torus2d-small").unwrap();
    let problem =
        Problem::new(&Request::new(Kind::Allgather, &machine, Part::Shape("4x4".parse().unwrap()), 256)).unwrap();
    let certificate = BoundCertificate::of(&problem).unwrap();
    let text = serde_json::to_string(&certificate).unwrap();
    let read = BoundCertificate::parse(&text).unwrap();
    let proof = read.check(&machine, &Part::All).unwrap();
    assert_eq!((proof.seconds, proof.reason), (Some(certificate.seconds), None));
    let mut more = read.clone();
    more.seconds *= 1.001;
    assert!(!more.check(&machine, &Part::All).unwrap().holds);
    let mut elsewhere = read.clone();
    elsewhere.prices.prices[0].0 = 900;
    assert!(!elsewhere.check(&machine, &Part::All).unwrap().holds);
    assert!(read.check(&Machine::preset("archer").unwrap(), &Part::All).is_err());
    assert!(BoundCertificate::parse("{}").is_err());
}
