//! Programs of tasks as JSON.

use unisono_discover::{Discovery, Options, Program, Rules, report, report_of};

use crate::{FuzzTarget, uses};

pub const TARGET: FuzzTarget = FuzzTarget::new(
    "task-program",
    "reads a program of tasks, and discovers its collectives by all rules on several numbers of ranks",
    run,
);

fn run(input: &[u8]) -> bool {
    let Ok(program) = Program::parse(&uses::text(input)) else { return false };
    let mut accepted = false;
    for nodes in [1, 4, 7] {
        for rules in [Rules::Full, Rules::Paper, Rules::Off] {
            accepted |= report(&program, nodes, rules).is_ok();
        }
    }
    if let Ok(mut discovery) = Discovery::new(Options::report(4, Rules::Full))
        && program.submit(&mut discovery).is_ok()
    {
        drop(report_of(&mut discovery));
        drop(discovery.moved());
    }
    if let Ok(mut discovery) = Discovery::new(Options::commands(3, 1, Rules::Full)) {
        drop(program.submit(&mut discovery));
    }
    accepted
}
