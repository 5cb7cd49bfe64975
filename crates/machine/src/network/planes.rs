//! Failed planes: `plane K`, counted from 0.
//!
//! Planes are equal and independent, and a vector is split over the working planes. A failed plane therefore reduces
//! the bandwidth of every accelerator by one plane's share. The machine's price includes failed planes.

use std::collections::BTreeSet;

use unisono_base::excerpt;

use super::Network;

/// The word before the number of a plane in a failure.
const PLANE: &str = "plane ";

/// Returns whether a failure names a plane, even one that the machine does not have.
pub fn is_plane(failure: &str) -> bool {
    failure.starts_with(PLANE)
}

impl Network {
    /// Returns the number of planes that did not fail, but at least 1.
    pub fn working_planes(&self) -> u32 {
        self.planes.saturating_sub(u32::try_from(self.failed_planes().len()).unwrap_or(u32::MAX)).max(1)
    }

    /// Returns failed links and nodes, without failed planes.
    pub(super) fn failed_parts(&self) -> impl Iterator<Item = &str> {
        self.failed.iter().map(String::as_str).filter(|failure| !is_plane(failure))
    }

    fn failed_planes(&self) -> BTreeSet<&str> {
        self.failed.iter().map(String::as_str).filter(|failure| is_plane(failure)).collect()
    }

    /// Checks that the failed planes exist, and that at least one plane works.
    pub(super) fn check_planes(&self) -> Result<(), String> {
        let failed = self.failed_planes();
        let exists = |text: &str| {
            let number = text[PLANE.len()..].parse::<u32>().ok().filter(|number| *number < self.planes);
            // A plane has a single spelling, so that no plane is counted twice.
            number.is_some_and(|number| text == format!("{PLANE}{number}"))
        };
        let Some(first) = failed.first() else { return Ok(()) };
        if self.planes == 1 {
            let found = excerpt(first);
            return Err(format!("'{found}' cannot fail alone, because there is a single plane; fail links or nodes"));
        }
        if let Some(text) = failed.iter().find(|text| !exists(text)) {
            return Err(format!("there is no '{}'; accepted are plane 0 to plane {}", excerpt(text), self.planes - 1));
        }
        if failed.len() == self.planes as usize {
            return Err(format!("all {} planes failed", self.planes));
        }
        Ok(())
    }

    /// Returns a sentence on the bandwidth lost to failed planes, if there are any.
    pub(super) fn note_on_planes(&self) -> Option<String> {
        let failed = self.failed_planes();
        let (all, left) = (self.planes, self.working_planes());
        (!failed.is_empty()).then(|| {
            let names = excerpt(&failed.into_iter().collect::<Vec<_>>().join(", "));
            let share = 100.0 * f64::from(left) / f64::from(all);
            format!("failed: {names}; vectors are split over {left} of {all} planes, {share:.1} % of the bandwidth")
        })
    }
}
