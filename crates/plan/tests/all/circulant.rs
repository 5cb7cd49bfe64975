//! Circulant schedules on clusters: their closed form, simulation and plan.

use unisono_algorithms::{Params, find};
use unisono_base::mix;
use unisono_collective::{Dtype, Kind};
use unisono_machine::{Machine, Shape};
use unisono_plan::{Part, Problem, Request, TimeSource, plan};

fn cluster(model: &str, alpha_ns: f64, beta_ns_per_byte: f64) -> Machine {
    let text = format!(
        "name = \"cluster\"\nkind = \"endpoint\"\nmodel = \"{model}\"\nalpha_ns = {alpha_ns:?}\nbeta_ns_per_byte = {beta_ns_per_byte:?}\n"
    );
    Machine::from_toml(&text, "test").unwrap()
}

/// Each round takes alpha and the time of a block, on any number of ranks: (S-1+q)(alpha + n/S beta) for the vector of
/// one root in S blocks.
#[test]
fn simulated_times_are_the_closed_form() {
    for ranks in [2_u32, 3, 5, 8, 17, 36, 60] {
        for (kind, drawn) in [Kind::Broadcast, Kind::Reduce].into_iter().zip(mix(u64::from(ranks)) >> 1..) {
            let machine = cluster("postal", 1000.0 + (drawn % 1000) as f64, 0.25);
            let blocks = 1 + (drawn >> 10) % 20;
            let request = Request {
                dtype: Dtype::F32,
                ..Request::new(kind, &machine, Part::Shape(Shape::line(ranks)), 1024 * blocks)
            };
            let params = Params::new().with("blocks", blocks);
            let planned = plan(Problem::new(&request).unwrap(), Some("circulant"), &params).unwrap();
            let q = ranks.next_power_of_two().ilog2();
            let expected = (blocks - 1 + u64::from(q)) as f64 * (1000.0 + (drawn % 1000) as f64 + 0.25 * 4096.0);
            let found = planned.best().time.seconds * 1e9;
            assert_eq!(planned.best().source, TimeSource::Simulated);
            // A rank receives several messages at once, so sums may be complete earlier.
            let is_right = (found / expected - 1.0).abs() < 1e-9 || kind == Kind::Reduce && found < expected;
            assert!(is_right, "{kind} of {ranks} ranks in {blocks} blocks: {found}, not {expected}");
        }
    }
}

/// The times of arXiv 2407.18004 with the best number of blocks, at 2 us and 10 GB/s. If a port takes one message at a
/// time, a nearby number of blocks that delays no rank is as fast.
#[test]
fn a_broadcast_of_any_number_of_ranks_is_as_fast_as_of_a_power_of_two() {
    for (model, ranks, us) in [
        ("postal", 36, 179.6),
        ("postal", 1000, 209.8),
        ("postal", 1024, 209.8),
        ("postal", 1152, 216.0),
        ("hockney", 36, 179.6),
    ] {
        let machine = cluster(model, 2000.0, 0.1);
        let request = Request::new(Kind::Broadcast, &machine, Part::Shape(Shape::line(ranks)), 1 << 18);
        let problem = Problem::new(&request).unwrap();
        let case = problem.target.case(problem.collective);
        let candidates = find("circulant").unwrap().candidates(&case);
        // If no rank delays others, one number of blocks is enough.
        let tried = if model == "postal" { &candidates[candidates.len() / 2..][..1] } else { &candidates[..] };
        let seconds = |params: &Params| {
            let planned = plan(Problem::new(&request).unwrap(), Some("circulant"), params).unwrap();
            planned.best().time.seconds
        };
        let found = tried.iter().map(seconds).fold(f64::INFINITY, f64::min) * 1e6;
        assert!((found / us - 1.0).abs() < 0.02, "{ranks} ranks, {model}: {found} us, not {us}");
    }
}
