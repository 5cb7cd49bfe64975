//! Registers of switches that reduce.

use unisono_lower::switches::{check, check_together, parse, print, schedule};
use unisono_schedule::verify::{Method, verify};
use unisono_sim::collective_engine;

use crate::{Target, uses};

pub const TARGET: Target = Target::new(
    "registers",
    "reads registers; what passes the check is a schedule that is proved, and gives right sums",
    run,
);

/// Switches above which registers are only checked.
const MOST_SWITCHES: usize = 4096;

fn run(input: &[u8]) -> bool {
    let Some((machine, configured)) = uses::read(parse(&uses::text(input), "fuzz")) else { return false };
    let switches: usize = configured.embeddings.iter().map(|e| e.registers.len()).sum();
    if switches > MOST_SWITCHES {
        return true;
    }
    let printed = print(&machine, &configured);
    let again = parse(&printed, "printed").expect("registers read back");
    assert_eq!(print(&again.0, &again.1), printed, "registers read back");
    let layout = machine.layout();
    let mut found = check(&machine, &layout, &configured);
    found.extend(check_together(&layout, [&configured]));
    if !found.is_empty() || configured.collective.elements > 4096 {
        return true;
    }
    let run = collective_engine::run(&machine, &layout, &configured);
    if let Ok(run) = &run {
        assert!(run.data.result_correct, "registers that pass the check give {:?}", run.data.mismatch);
    }
    if let Ok(schedule) = schedule(&layout, &configured) {
        let proof = verify(&schedule, Method::Auto);
        assert!(proof.holds(), "registers that pass the check are not proved: {:?}", proof.diagnostics.first());
    }
    true
}
