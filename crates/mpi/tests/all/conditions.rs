//! Tests of `conditions`.

use unisono_mpi::{Conditions, internals::conditions::name_and_version};

#[test]
fn texts_are_read_back() {
    for text in ["openmpi 5.0.11 spin own", "mpich 4.0.2 yield shared"] {
        assert_eq!(text.parse::<Conditions>().map(|c| c.to_string()), Ok(text.to_owned()));
    }
    for text in ["", "openmpi 5.0.11 spin", "openmpi 5 spins own", "openmpi 5 spin own more"] {
        assert_eq!(text.parse::<Conditions>(), Err(()), "{text}");
    }
}

#[test]
fn a_choice_holds_where_ranks_wait_in_the_same_way() {
    let at = |text: &str| text.parse::<Conditions>().expect("the form of the text");
    let here = at("openmpi 5.0.11 spin own");
    assert!(here.permit(&at("openmpi 4.1.4 spin own")));
    for other in ["mpich 5.0.2 spin own", "openmpi 5.0.11 yield own", "openmpi 5.0.11 spin shared"] {
        assert!(!here.permit(&at(other)), "{other}");
    }
}

#[test]
fn libraries_are_named_by_what_they_say() {
    let of = |text| {
        let (name, version) = name_and_version(text);
        format!("{name} {version}")
    };
    assert_eq!(of("Open MPI v5.0.11, package: Open MPI root Distribution"), "openmpi 5.0.11");
    assert_eq!(of("MPICH Version:      5.0.2\nMPICH Release date: none"), "mpich 5.0.2");
    assert_eq!(of("Intel(R) MPI Library 2021.10 for Linux* OS"), "intel(r) 2021.10");
    assert_eq!(of(""), "unknown unknown");
}
