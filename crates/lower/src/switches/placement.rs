//! Binds a schedule to switches that reduce: nodes to cores and switches, streams to virtual channels.
//!
//! Two switches share at most one link, so the nodes at the ends of a stream determine its ports. [`super::lower`]
//! checks whether the machine can run the placed schedule.

use unisono_base::{Diagnostic, Diagnostics};
use unisono_machine::{InNetwork, Machine};
use unisono_schedule::Schedule;

use super::lower::{draft, refused};
use crate::{PlacementError, placement::refuse_kind};

/// The virtual channel of a stream on its link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VirtualChannel {
    /// The index of the replica of registers that the switches use for the stream.
    pub identifier: u8,
    /// [`super::REQUEST`] towards the root, [`super::RESPONSE`] away from it.
    pub channel: u8,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SwitchPlacement {
    /// The core of each rank, then the switch of each other node of the schedule. A core has the number of its switch.
    pub nodes: Vec<u32>,
    pub channels: Vec<VirtualChannel>,
}

impl SwitchPlacement {
    /// Returns the cores of the ranks and the switches of the other nodes.
    pub fn split(&self, ranks: u32) -> (&[u32], &[u32]) {
        self.nodes.split_at(self.nodes.len().min(ranks as usize))
    }

    /// Checks that the placement has the size of the schedule.
    ///
    /// # Errors
    /// Returns an error if the placement has another number of nodes or streams.
    pub fn check_size(&self, schedule: &Schedule) -> Result<(), Diagnostic> {
        let counts = [
            ("nodes", self.nodes.len(), schedule.node_count()),
            ("streams", self.channels.len(), schedule.stream_count()),
        ];
        match counts.into_iter().find(|(_, placed, count)| placed != count) {
            None => Ok(()),
            Some((what, placed, count)) => {
                let message = format!("the schedule has {count} {what}, and {placed} are placed");
                Err(refused("placement-size", None, None, message))
            }
        }
    }

    /// Reports the errors of the placement: a wrong size, and contradictions to the machine.
    pub(crate) fn check_on(&self, schedule: &Schedule, machine: Option<&Machine>, found: &mut Diagnostics) {
        let checked = match machine.map(|machine| machine.get::<InNetwork>().ok_or(machine)) {
            None => self.check_size(schedule),
            Some(Ok(machine)) => draft(machine, &machine.layout(), schedule, self).map(drop),
            Some(Err(other)) => return refuse_kind(other, "switches are for one of kind in-network", found),
        };
        checked.err().into_iter().for_each(|finding| found.add(finding));
    }

    /// Returns runs of consecutive streams with equal channels as `(channel, count)`, as files store channels.
    pub(crate) fn channel_runs(&self) -> impl Iterator<Item = (VirtualChannel, usize)> {
        self.channels.chunk_by(|a, b| a == b).map(|run| (run[0], run.len()))
    }
}

/// Returns the channel of each stream from runs `(channel, count)` of a file.
///
/// # Errors
/// Returns an error if the runs have more or fewer streams than the schedule.
pub(crate) fn channels(
    runs: impl IntoIterator<Item = (VirtualChannel, u64)>,
    streams: usize,
) -> Result<Vec<VirtualChannel>, PlacementError> {
    let mut channels = Vec::new();
    for (channel, count) in runs {
        if count > (streams - channels.len()) as u64 {
            return Err(PlacementError::MoreChannels { streams });
        }
        channels.extend((0..count).map(|_| channel));
    }
    if channels.len() < streams {
        return Err(PlacementError::FewerChannels { channels: channels.len(), streams });
    }
    Ok(channels)
}
