//! Files of other programs that describe machines.

use unisono_machine::{
    Machine,
    network::import::{FORMATS, ImportOptions},
};

use crate::{FuzzTarget, uses};

pub const TARGET: FuzzTarget =
    FuzzTarget::new("machine-import", "reads topologies of other programs; their machine reads back as it prints", run);

fn run(input: &[u8]) -> bool {
    let text = uses::text(input);
    let mut any = false;
    for format in FORMATS {
        for boxes in [1, 3] {
            let options = ImportOptions { name: "imported", boxes, accelerators: None, names: None };
            let Some(network) = uses::read(format.read(&text, "fuzz", &options)) else { continue };
            any = true;
            drop(network.facts());
            let machine = Machine::from(network);
            let printed = Machine::from_toml(&machine.to_toml(), "printed").expect("a machine reads as it prints");
            assert!(printed == machine, "the machine that was read back differs");
        }
    }
    any
}
