//! Registers of switches that reduce.

use unisono_formats::{
    Facts, Importer,
    registers::{Registers, parse, print},
};

use crate::{FuzzTarget, uses};

pub const TARGET: FuzzTarget = FuzzTarget::new(
    "registers",
    "reads registers; what agrees is a schedule with its placement, and does with it as schedule-text does",
    run,
);

fn run(input: &[u8]) -> bool {
    let text = uses::text(input);
    let Ok((machine, configured)) = parse(&text) else { return false };
    let printed = print(&machine, &configured);
    let again = parse(&printed).expect("registers read back");
    assert_eq!(print(&again.0, &again.1), printed, "registers read back");
    match Registers.import(&text, &Facts::default()) {
        Ok(file) => {
            uses::file(&file);
            true
        }
        Err(_) => false,
    }
}
