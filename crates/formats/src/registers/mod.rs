//! Registers of switches that reduce (`.registers` files), as a registered emitter and importer.

mod text;

use unisono_lower::{
    File, Placement, VerifiedFile,
    switches::{lower, raise},
};
use unisono_machine::{InNetwork, Machine};

use crate::{About, Emitter, Facts, Files, ImportError, Importer, Refused};

pub use text::{parse, print};

pub struct Registers;

const NAME: &str = "registers";
const ABOUT: About = About {
    name: NAME,
    reference: "Lakhotia et al., \"Accelerating Allreduce with in-network reduction on Intel PIUMA\", 2022",
    summary: "the registers of switches that reduce, a line a switch",
};

impl Emitter for Registers {
    fn about(&self) -> About {
        ABOUT
    }

    fn emit(&self, proven: &VerifiedFile) -> Result<Files, Refused> {
        let file = proven.file();
        let machine = file.machine.as_ref().and_then(Machine::get::<InNetwork>);
        let placement = file.placement.as_ref().and_then(Placement::switches);
        let (Some(machine), Some(placement)) = (machine, placement) else {
            return Err(Refused::new(NAME, "it is not placed on switches that reduce; plan it with in-network"));
        };
        let configured = lower(machine, &machine.layout(), proven.verified(), placement)
            .map_err(|e| Refused::new(NAME, e.message))?;
        Ok(vec![("schedule.registers".to_owned(), print(machine, &configured).into())])
    }
}

impl Importer for Registers {
    fn about(&self) -> About {
        ABOUT
    }

    /// Reads a file, which states the whole collective. Options that also describe the collective are an error.
    fn import(&self, text: &str, facts: &Facts) -> Result<File, ImportError> {
        if *facts != Facts::default() {
            let message = "registers state their elements, dtype, operator and root; drop these options";
            return Err(ImportError::new(0, message));
        }
        let (machine, configured) = parse(text)?;
        let (schedule, placement) =
            raise(&machine.layout(), &configured).map_err(|e| ImportError::new(0, e.to_string()))?;
        Ok(File {
            schedule,
            placement: Some(Placement::Switches(placement)),
            machine: Some(machine.into()),
            blocks: None,
        })
    }
}
