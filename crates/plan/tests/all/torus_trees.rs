//! Trees of tori: their closed form compared with packets.

use unisono_algorithms::{Params, Profile, find};
use unisono_collective::Kind;
use unisono_cost::network::NetworkPart;
use unisono_machine::Machine;
use unisono_plan::{Asked, Part, Problem, Root, TimeSource, plan};

/// A broadcast by packets takes the time of the closed form, on links that are in use all the time.
#[test]
fn packets_take_the_time_of_the_closed_form() {
    for topology in
        ["name = 'torus'\ndims = [6, 8]\nboard = [2, 2]", "name = 'hxmesh'\nboard = [2, 2]\nboards = [3, 3]"]
    {
        let text = format!(
            "name = 'test'\nkind = 'network'\nplanes = 1\nlink_gbps = 400\nlink_latency_ns = 40\ninput_latency_ns = 20\n\
             output_latency_ns = 20\npacket_bytes = 8192\nbuffer_bytes = 33554432\nhost_overhead_ns = 1\n\
             gamma_ns_per_byte = 0.0025\n[topology]\n{topology}\n"
        );
        let machine = Machine::from_toml(&text, "test").unwrap();
        let kind = Kind::Broadcast;
        let asked =
            Asked { root: Root::Rank(9), model: Some("packets"), ..Asked::new(kind, &machine, Part::All, 1 << 18) };
        let problem = Problem::new(&asked).unwrap();
        let (case, algorithm) = (problem.target.case(problem.collective), find("torus-trees").unwrap());
        let params = Params::new().with("chunks", 32);
        let Some(Profile::Trees(trees)) = algorithm.profile(&case, &params) else { panic!("no closed form") };
        let of_form = problem.target.part().downcast_ref::<NetworkPart>().unwrap().model.trees_ns(&trees) / 1e9;
        let planned = plan(Problem::new(&asked).unwrap(), Some("torus-trees"), &params).unwrap();
        assert_eq!(planned.best().source, TimeSource::Simulated);
        let ratio = planned.best().time.seconds / of_form;
        assert!((0.9..1.15).contains(&ratio), "{kind} on {topology}: {ratio} times the closed form");
    }
}
