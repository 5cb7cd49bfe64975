//! The accesses of a task by this rank, and by each of several devices that share the rank's part of the range.

use unisono_base::{BufferId, TaskId};

use super::Discovery;
use crate::{error::DiscoverError, shape::Shape, space::Region, task::Mode};

#[derive(Clone, PartialEq, Debug)]
pub struct PartAccess {
    pub buffer: BufferId,
    pub mode: Mode,
    pub region: Region,
}

impl Discovery {
    /// Returns the region that each access of a task touches in this rank's part; empty if the rank has no part.
    pub fn whole_part(&self, task: TaskId) -> Vec<PartAccess> {
        let shape = self.shapes.get(self.shape_number(task));
        with_regions(&shape, shape.views.clone())
    }

    /// Splits this rank's part of a task's range into at most `count` parts, by the rule that splits the range among
    /// ranks, and returns the accesses of each part; none if the rank has no part.
    ///
    /// # Errors
    /// Returns an error if two parts write the same element, or a mapper fails.
    pub fn parts(&self, task: TaskId, count: u32) -> Result<Vec<Vec<PartAccess>>, DiscoverError> {
        let shape = self.shapes.get(self.shape_number(task));
        let Some(layout) = shape.layout_of_chunk(count) else { return Ok(Vec::new()) };
        let about = |id: BufferId| self.buffers.get(id.index()).map(|held| &held.about);
        let mut parts: Vec<Vec<PartAccess>> = Vec::new();
        for chunk in (0..layout.chunks()).filter_map(|k| layout.chunk(k)) {
            let touched = shape.touched_by(&chunk, self.task_name(task), self.options.rank, about)?;
            let part = with_regions(&shape, touched);
            for access in part.iter().filter(|access| access.mode.writes()) {
                let common = |other: &PartAccess| {
                    let same = other.buffer == access.buffer && other.mode.writes();
                    Some(other.region.intersect(&access.region)).filter(|region| same && !region.is_empty())
                };
                if let Some((k, region)) =
                    parts.iter().enumerate().find_map(|(k, other)| other.iter().find_map(common).map(|r| (k, r)))
                {
                    let held = &self.buffers[access.buffer.index()].about;
                    return Err(DiscoverError::Access {
                        task: self.task_name(task).to_owned(),
                        buffer: held.name.clone(),
                        rank: self.options.rank,
                        what: format!(
                            "devices {k} and {} both write {}; accepted are mappers that give each device a part of \
                             its own",
                            parts.len(),
                            region.text(held.dims)
                        ),
                    });
                }
            }
            parts.push(part);
        }
        Ok(parts)
    }
}

fn with_regions(shape: &Shape, regions: Vec<Region>) -> Vec<PartAccess> {
    let access = |((buffer, mode), region)| PartAccess { buffer, mode, region };
    shape.modes().zip(regions).map(access).collect()
}
