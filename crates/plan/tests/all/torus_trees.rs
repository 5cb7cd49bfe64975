//! Trees of tori and of meshes of boards: their closed form, compared with packets.

use crate::common::network;

use unisono_algorithms::{Params, Profile, find};
use unisono_collective::Kind;
use unisono_cost::network::NetworkPart;
use unisono_plan::{Part, Problem, Request, Root, TimeSource, plan};

const TORUS: &str = "name = 'torus'\ndims = [6, 8]\nboard = [2, 2]";
const MESH: &str = "name = 'hxmesh'\nboard = [2, 2]\nboards = [3, 4]";

/// Returns the time by packets, divided by that of the closed form.
fn ratio(topology: &str, kind: Kind, lines: &str) -> f64 {
    let hosts = "host_overhead_ns = 1\ngamma_ns_per_byte = 0.0025";
    let machine = network(8192, 33_554_432, &format!("{hosts}\n[topology]\n{topology}"));
    let root = if kind == Kind::Allreduce { Root::Rank(0) } else { Root::Rank(9) };
    let request = Request { root, model: Some("packets"), ..Request::new(kind, &machine, Part::All, 1 << 18) };
    let problem = Problem::new(&request).unwrap();
    let params = Params::new().with("chunks", 32).with("lines", lines);
    let (name, params) = match kind {
        Kind::Allreduce => ("reduce-broadcast", params.with("reduce", "torus-trees").with("broadcast", "torus-trees")),
        _ => ("torus-trees", params),
    };
    let case = problem.target.case(problem.collective);
    let Some(Profile::Trees(trees)) = find(name).unwrap().profile(&case, &params) else { panic!("no closed form") };
    let of_form = problem.target.part().downcast_ref::<NetworkPart>().unwrap().model.trees_ns(&trees) / 1e9;
    let planned = plan(Problem::new(&request).unwrap(), Some(name), &params).unwrap();
    assert_eq!(planned.best().source, TimeSource::Simulated);
    planned.best().time.seconds / of_form
}

/// Packets take the time of the closed form, on links that are always busy in both directions: a reduce is a broadcast
/// in reverse.
#[test]
fn packets_take_the_time_of_the_closed_form() {
    for (topology, lines) in [(TORUS, "rings"), (MESH, "rings"), (MESH, "switches")] {
        for kind in [Kind::Broadcast, Kind::Reduce, Kind::Allreduce] {
            let ratio = ratio(topology, kind, lines);
            assert!((0.9..1.15).contains(&ratio), "{kind} on {topology} by {lines}: {ratio} times the closed form");
        }
    }
}
