//! Laws of the schedules of recursive multiplying that plans compare on random machines: no other schedule is much
//! faster, and a barrier takes no longer than an allreduce of one element.

use unisono_algorithms::{Params, multiplying::list};
use unisono_collective::{Dtype, Kind, Operator};
use unisono_machine::{Machine, Shape};
use unisono_plan::{Part, Problem, Request, plan, plan_best};

use crate::common::problems::Draws;

/// The largest quotient of the time of a choice and that of another schedule.
const MOST: f64 = 1.15;

/// Draws the prices of a machine. If `nodes` is true, also draws the lower prices inside its nodes.
fn machine(draws: &mut Draws, models: &[&str], nodes: bool) -> Machine {
    let mut text = format!("name = 'drawn'\nkind = 'endpoint'\nmodel = '{}'\n", draws.of(models));
    let (mut inside, cheaper) = (String::new(), draws.between(0.05, 1.0));
    for (key, least, most) in [
        ("alpha_ns", 100.0, 1e4),
        ("alpha_p_ns", 100.0, 1e4),
        ("alpha_r_ns", 50.0, 2e3),
        ("beta_ns_per_byte", 1e-3, 2.0),
        ("L_ns", 100.0, 1e4),
        ("o_ns", 50.0, 2e3),
        ("g_ns", 50.0, 2e3),
        ("G_ns_per_byte", 1e-3, 2.0),
        ("O_ns_per_byte", 1e-4, 0.2),
    ] {
        let price = draws.between(least, most);
        text += &format!("{key} = {price:.4}\n");
        inside += &format!("{key} = {:.4}\n", price * cheaper);
    }
    text += &format!("gamma_ns_per_byte = {:.4}\n", draws.between(1e-3, 0.2));
    text += &format!("S_bytes = {}\nf_messages = {}\n", 1 << (8 + draws.below(12)), 1 + draws.below(8));
    if nodes {
        let (placement, size) = (draws.of(&["block", "cyclic"]), 2 + draws.below(7));
        text += &format!("ranks = {}\nplacement = '{placement}'\n", 8 * size);
        text += &format!("[[levels]]\nname = 'node'\nsize = {size}\n{inside}");
    }
    Machine::from_toml(&text, "drawn").unwrap()
}

#[test]
fn no_schedule_is_much_faster_than_the_choice() {
    let mut far = Vec::new();
    for seed in 0..crate::soak::cases(60) {
        let mut draws = Draws::new(u64::from(seed) + 1);
        let machine = machine(&mut draws, &["logp", "loggp", "logfp", "loggops"], false);
        let (ranks, elements) = (4 + draws.below(9) as u32, draws.between(1.0, 4096.0) as u64);
        let operator = draws.of(&[Operator::Sum, Operator::Ordered]);
        let request = Request {
            operator,
            dtype: Dtype::I64,
            ..Request::new(Kind::Allreduce, &machine, Part::Shape(Shape::line(ranks)), elements)
        };
        let time = |params: &Params| {
            let planned = plan(Problem::new(&request).unwrap(), Some("recursive-multiplying"), params).unwrap();
            (planned.best().time.seconds, planned.best().params.clone())
        };
        let (own, chosen) = time(&Params::new());
        let all = list(ranks).into_iter().filter(|stages| operator.commutative() || stages.keeps_order());
        for stages in all {
            let (other, _) = time(&Params::new().with("schedule", &stages));
            if own > MOST * other {
                far.push(format!("{seed}: {chosen} takes {:.3} times as long as {stages}", own / other));
            }
        }
    }
    assert!(far.is_empty(), "{far:#?}");
}

#[test]
fn barriers_on_nodes_take_no_longer_than_allreduces() {
    let mut far = Vec::new();
    for seed in 0..crate::soak::cases(60) {
        let mut draws = Draws::new(u64::from(seed) + 1);
        let machine = machine(&mut draws, &["hockney", "postal", "pipelining-postal"], true);
        let ranks = 2 + draws.below(31) as u32;
        let best = |kind| {
            let elements = u64::from(kind == Kind::Allreduce);
            let request = Request::new(kind, &machine, Part::Shape(Shape::line(ranks)), elements);
            let Ok(problem) = Problem::new(&request) else { return None };
            // Barriers of one stage are left to dissemination, so the algorithm is not named for them.
            let algorithm = (kind == Kind::Allreduce).then_some("recursive-multiplying");
            let planned = plan_best(problem, algorithm, &Params::new()).unwrap();
            Some(planned.best().time.seconds)
        };
        let [barrier, allreduce] = [Kind::Barrier, Kind::Allreduce].map(best);
        if let (Some(barrier), Some(allreduce)) = (barrier, allreduce)
            && barrier > allreduce * 1.02
        {
            far.push(format!("{seed}: {ranks} ranks, {barrier} and {allreduce}"));
        }
    }
    assert!(far.is_empty(), "{far:#?}");
}
