//! Files of jobs to be placed on boards.

use unisono_machine::network::Network;
use unisono_machine::{
    Machine,
    network::allocate::{Heuristic, Jobs, Study, study},
};

use crate::{FuzzTarget, uses};

pub const TARGET: FuzzTarget = FuzzTarget::new("jobs", "reads jobs, and places them on boards by each heuristic", run);

fn run(input: &[u8]) -> bool {
    let machine = Machine::preset("hx2mesh-small").unwrap().get::<Network>().unwrap().clone();
    let topology = machine.topology(&machine.name).expect("a preset closes");
    let space = topology.jobs().expect("jobs are placed on a HammingMesh");
    let Some(jobs) = uses::read(Jobs::parse(&uses::text(input), "fuzz", &machine.name, &space)) else { return false };
    for heuristic in Heuristic::ALL {
        let asked = Study { jobs: jobs.clone(), heuristic, failed: vec![], failures: 3, seed: 1 };
        drop(study(&space, &machine.name, &asked, 2));
    }
    true
}
