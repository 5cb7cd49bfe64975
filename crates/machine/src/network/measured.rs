//! The two sets of rates of a network: those of the data sheet, and those that programs reached.
//!
//! The data sheet states the limits of the hardware, so lower bounds use it. Predictions and simulations use the
//! measured values: `measured_gbps`, `measured=` of a cable, `measured_share` of a switch, `launch_ns`, `signal_ns` and
//! `[thread_block]`. A machine file states each value once, so the data sheet is the file without the measured values.

use super::{
    Network, SwitchClass,
    catalog::{Edge, parse},
    description::RATES_GBPS,
};
use crate::MachineError;

/// The model of networks that uses the data sheet.
pub const DATA_SHEET: &str = "data-sheet";

/// Keys of a topology that are lists of cables.
const CABLES: [&str; 4] = ["edges", "inside", "uplinks", "outside"];

const MEASURED: &str = "rates and starts as measured; bounds by the data sheet (--model data-sheet: all of it)";
const NOTHING: &str = "rates of the data sheet; nothing measured";

impl Network {
    /// Returns whether the file states measured values.
    pub fn is_measured(&self) -> bool {
        let of_cables = || CABLES.iter().any(|key| self.cables(key).is_some_and(|text| text.contains("measured=")));
        self.measured_gbps.is_some()
            || (self.launch_ns, self.signal_ns) != (0.0, 0.0)
            || self.thread_block.is_some()
            || self.switches.iter().any(|class| class.measured_share.is_some())
            || of_cables()
    }

    /// Returns the same network with only the rates of the data sheet, without the times of kernels, signals and thread
    /// blocks.
    pub fn data_sheet(&self) -> Self {
        let mut sheet = Self {
            measured_gbps: None,
            launch_ns: 0.0,
            signal_ns: 0.0,
            thread_block: None,
            switches: self.switches.iter().map(|class| SwitchClass { measured_share: None, ..class.clone() }).collect(),
            ..self.clone()
        };
        for key in CABLES {
            if let Some(text) = self.cables(key) {
                sheet.topology.insert(key.to_owned(), without_measured(text).into());
            }
        }
        sheet
    }

    /// Returns the name of the source of times: `measured` or `data-sheet`.
    pub fn rates(&self) -> &'static str {
        if self.is_measured() { "measured" } else { DATA_SHEET }
    }

    /// Returns a sentence on the source of times. `None` unless the file states measured values, or the rates of
    /// accelerators.
    pub(super) fn rates_note(&self) -> Option<String> {
        let note = if self.is_measured() { Some(MEASURED) } else { self.accelerator.is_some().then_some(NOTHING) };
        note.map(str::to_owned)
    }

    fn cables(&self, key: &str) -> Option<&str> {
        self.topology.get(key).and_then(toml::Value::as_str)
    }

    /// Checks that no measured rate is above that of the data sheet.
    pub(super) fn check_measured(&self, origin: &str) -> Result<(), MachineError> {
        let wrong =
            |key, found: String, accepted| Err(MachineError::Value { origin: origin.to_owned(), key, found, accepted });
        let accepted = "a number above 0 and at most link_gbps, the rate of the data sheet";
        if let Some(found) = self.measured_gbps
            && !(*RATES_GBPS.start()..=self.link_gbps).contains(&found)
        {
            return wrong("measured_gbps", format!("{found:?}"), accepted);
        }
        // An invalid line is refused when the topology is read.
        let cables = CABLES.iter().filter_map(|key| parse(self.cables(key)?).ok()).flatten();
        let is_faster = |edge: &Edge| edge.measured.is_some_and(|rate| rate > edge.gbps.unwrap_or(self.link_gbps));
        match cables.into_iter().find(is_faster) {
            None => Ok(()),
            Some(edge) => {
                let accepted = "measured= of a cable at most its gbps=, or link_gbps where it states none";
                wrong("topology", format!("the cable '{edge}'"), accepted)
            }
        }
    }
}

fn without_measured(text: &str) -> String {
    let mut left = String::with_capacity(text.len());
    for line in text.lines() {
        let (cable, comment) = line.split_at(line.find('#').unwrap_or(line.len()));
        let words = cable.split_whitespace().filter(|word| !word.starts_with("measured="));
        left.push_str(&words.collect::<Vec<_>>().join(" "));
        left.push_str(comment);
        left.push('\n');
    }
    left
}
