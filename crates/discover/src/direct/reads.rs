//! The reads of a program whose messages have been proved.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use unisono_base::BufferId;

use super::{DirectExchange, Proofs};
use crate::{
    discovery::Discovery,
    error::DiscoverError,
    plan::ReadPlan,
    space::{Box3, Region},
};

/// The maximum number of reads that are stored. If there are more, all are dropped.
const MOST_KEPT: usize = 1 << 16;

/// The name of a schedule, if it has one, and the plan whose messages the schedule sends.
type Named = (Option<Arc<str>>, Arc<ReadPlan>);

/// The proofs of a program's messages, each computed once.
#[derive(Default)]
pub struct ProvedReads {
    pub proofs: Proofs,
    /// The name of the schedule of a read, by address of its plan and bytes of an element. The plan is stored, so that
    /// its address is not reused.
    known: FxHashMap<(usize, u64), Named>,
}

impl ProvedReads {
    /// Returns the name of the schedule of a read's messages. The schedule is proved on first use. Returns `None` if
    /// only one rank's messages are listed, or the discovery has no rank. The commands of the discovery's rank are
    /// compared with its part of that schedule, so that the rank executes exactly the proved part.
    ///
    /// # Errors
    /// Returns an error if the proof fails, or the commands differ from the part.
    pub fn name(
        &mut self,
        discovery: &Discovery,
        plan: &Arc<ReadPlan>,
        buffer: BufferId,
    ) -> Result<Option<Arc<str>>, DiscoverError> {
        let element_bytes = discovery.buffers().nth(buffer.index()).map_or(1, |b| b.element_bytes);
        let key = (Arc::as_ptr(plan).addr(), element_bytes);
        if let Some((name, _)) = self.known.get(&key) {
            return Ok(name.clone());
        }
        let Some(rank) = discovery.options().rank else { return Ok(None) };
        let exchange = DirectExchange::of_pushed(&plan.pushed, discovery.sides(), Some(rank));
        let part = self.proofs.part(&exchange, discovery.options().nodes, element_bytes, rank)?;
        let same = |rows: &[(u32, Arc<Region>)], part: &[(u32, Vec<Box3>)]| {
            rows.iter().map(|(k, region)| (*k, region.boxes())).eq(part.iter().map(|(k, boxes)| (*k, &boxes[..])))
        };
        if !same(&plan.pushes, &part.sends) || !same(&plan.awaits, &part.receives) {
            let what = format!("what rank {rank} sends and awaits is not its part of the schedule");
            return Err(DiscoverError::Unproved(what));
        }
        let name: Option<Arc<str>> = exchange.complete.then(|| exchange.lengths.name(element_bytes).into());
        if self.known.len() >= MOST_KEPT {
            self.known.clear();
        }
        self.known.insert(key, (name.clone(), plan.clone()));
        Ok(name)
    }
}
