//! Complete problems: a collective on a machine, planned, proved, stored and simulated.

use std::sync::OnceLock;

use unisono_algorithms::{ALGORITHMS, Info, Means, Params};
use unisono_collective::{Dtype, Kind, Operator};
use unisono_machine::{Machine, PRESETS, Shape};
use unisono_plan::{Part, PlanError, Problem, Request, Root, TARGETS, bounds, kind_of, plan};
use unisono_schedule::verify::{Method, verify};

use crate::{Draws, Form, FuzzTarget, uses};

pub const TARGET: FuzzTarget = FuzzTarget::new(
    "problem",
    "plans a drawn collective on a preset; the schedule is proved, stored, emitted and simulated",
    run,
)
.form(Form::Draws)
.quick_runs(150);

/// Values of parameters, some of which no algorithm accepts.
const VALUES: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "4",
    "5",
    "8",
    "16",
    "40",
    "100",
    "1024",
    "4294967295",
    "-1",
    "",
    "middle",
    "binomial",
    "ring",
    "chain",
    "tree",
    "lanes",
    "2x2",
    "4x4",
    "3x4",
    "2x2x2",
    "1x7",
    "a2",
    "a2,a2",
    "a3,a2",
    "m1g2a3,n1g3a2",
    "scatter",
    "pipelined-chain",
    "recursive-halving",
    "scatter-allgather",
    "two-phase",
    "yes",
    "no",
];

fn presets() -> &'static [Machine] {
    static READ: OnceLock<Vec<Machine>> = OnceLock::new();
    READ.get_or_init(|| PRESETS.iter().map(|p| Machine::preset(p.name).expect("a preset reads")).collect())
}

struct Drawn {
    kind: Kind,
    elements: u64,
    root: u64,
    operator: Operator,
    dtype: Dtype,
    algorithm: Option<&'static str>,
    params: Params,
}

fn lists(algorithm: &Info, machine: &Machine) -> bool {
    TARGETS.iter().any(|kind| kind.name == machine.kind() && kind.lists(algorithm))
}

fn run(input: &[u8]) -> bool {
    let mut d = Draws::new(input);
    let named = (!d.once_in(4)).then(|| d.pick(ALGORITHMS));
    // Draws a machine whose plans list the algorithm. Draws any machine if no algorithm is named, or in one of eight
    // draws.
    let any = named.is_none() || d.once_in(8);
    let fits = |machine: &Machine| any || named.is_some_and(|a| lists(a.info(), machine));
    let machines: Vec<&Machine> = presets().iter().filter(|machine| fits(machine)).collect();
    let machine = machines[d.below(machines.len() as u32) as usize];
    let kind = match named {
        Some(algorithm) => d.pick(algorithm.info().collectives),
        None => d.pick(&Kind::ALL),
    };
    let mut params = Params::new();
    let count = if d.once_in(2) { 1 + d.below(2) } else { 0 };
    for _ in 0..count {
        let of = named.map_or(&[][..], |algorithm| algorithm.info().params);
        let name = if of.is_empty() { "group" } else { d.pick(of).name };
        params = params.with(name, d.pick(VALUES));
    }
    let operator = if d.once_in(3) { d.pick(&Operator::ALL) } else { Operator::Sum };
    let drawn = Drawn {
        kind,
        elements: d.pick(&[1, 2, 3, 4, 5, 7, 8, 16, 17, 31, 64, 100, 0, 1000, 4096, u64::from(u32::MAX), 1 << 40]),
        root: if d.once_in(3) { u64::from(d.below(9)) } else { 0 },
        operator,
        dtype: d.pick(&Dtype::ALL),
        algorithm: named.map(|algorithm| algorithm.name()),
        params,
    };
    drawn.run(machine, &mut d).is_ok()
}

impl Drawn {
    fn run(&self, machine: &Machine, d: &mut Draws<'_>) -> Result<(), PlanError> {
        let (machine, part, most) = sized(machine, d);
        let request = Request {
            root: Root::Rank(self.root),
            operator: self.operator,
            dtype: self.dtype,
            ..Request::new(self.kind, &machine, part, self.elements.min(most))
        };
        let problem = Problem::new(&request)?;
        drop(bounds(&problem));
        let plan = plan(problem, self.algorithm, &self.params)?;
        drop(plan.report());
        // Plans refuse operators that no MPI library has, and collectives that MPI lacks.
        drop(plan.stored());
        if self.elements > 5000 {
            return Ok(());
        }
        let file = plan.file()?;
        holds(&file.schedule);
        uses::file(&file);
        Ok(())
    }
}

/// Draws the machine's size or part for a problem, and returns the greatest number of elements worth planning there.
fn sized(machine: &Machine, d: &mut Draws<'_>) -> (Machine, Part, u64) {
    let grid = |d: &mut Draws<'_>, most: u32| Shape::rect(1 + d.below(most), 1 + d.below(most));
    let ranks = |d: &mut Draws<'_>, most: u32| Part::Shape(Shape::line(1 + d.below(most)));
    match kind_of(machine).offers {
        [Means::ReducingSwitches] => {
            let nodes = machine.with_nodes(1 + d.below(2)).unwrap_or_else(|_| machine.clone());
            return (nodes, ranks(d, 64), 100_000);
        }
        [Means::Messages] => return (machine.clone(), ranks(d, 17), u64::MAX),
        _ => {}
    }
    let shape = match d.below(4) {
        0 => grid(d, 6),
        1 => Shape::rect(1 + d.below(17), 1),
        _ => Shape::line(1 + d.below(17)),
    };
    let most = if kind_of(machine).offers.contains(&Means::Links) { 1 << 20 } else { u64::MAX };
    (machine.clone(), Part::Shape(shape), most)
}

fn holds(schedule: &unisono_schedule::Schedule) {
    let proof = verify(schedule, Method::Auto);
    assert!(proof.holds(), "a planned schedule is not proved: {:?}", proof.diagnostics.first());
}
