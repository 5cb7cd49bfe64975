//! Schedules of MSCCL.

use unisono_emit::IMPORTERS;
use unisono_formats::Facts;
use unisono_gpu::{Options, msccl};

use crate::{FuzzTarget, uses};

pub const TARGET: FuzzTarget = FuzzTarget::new(
    "msccl-xml",
    "checks and imports an algorithm of MSCCL, and does with it as schedule-text does",
    run,
);

fn run(input: &[u8]) -> bool {
    let text = uses::text(input);
    let mut accepted = msccl::check(&text, &Facts::default(), Options::default()).is_ok();
    for elements in [None, Some(12)] {
        for importer in IMPORTERS {
            if let Ok(file) = importer.import(&text, &Facts { elements, ..Facts::default() }) {
                uses::file(&file);
                accepted = true;
            }
        }
    }
    accepted
}
