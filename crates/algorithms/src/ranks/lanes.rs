//! The lanes of ranks that send in the order of a timetable for the links of a network.
//!
//! In this order, each link has its next message ready when the link becomes free. All sends of a rank share one lane,
//! or each link has its own lane if the links of a rank do not wait for each other. Receives from each source have
//! their own lane.

use unisono_base::narrow;
use unisono_synthesis::Fabric;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Lane {
    /// The lane of local copies; also the lane of all sends if they share a lane.
    Own,
    /// The lane of sends over a link.
    Link(u32),
    /// The lane of receives from this rank. If it is the rank itself, the lane of its sums.
    From(u32),
}

/// The lanes of each rank, in the order of their first use.
pub struct Lanes {
    sends_by_link: bool,
    of: Vec<Vec<Lane>>,
}

impl Lanes {
    /// The lane of local copies.
    pub const OWN: u32 = 0;

    pub fn new(fabric: &Fabric, ranks: u32) -> Self {
        Self { sends_by_link: fabric.sends_by_link(), of: vec![vec![Lane::Own]; ranks as usize] }
    }

    /// Returns the lane of a rank's sends over a link.
    pub fn sends(&mut self, rank: u32, link: u32) -> u32 {
        self.lane(rank, if self.sends_by_link { Lane::Link(link) } else { Lane::Own })
    }

    /// Returns the lane of a rank's receives from another rank, or of its sums if `from` is the rank itself.
    pub fn receives(&mut self, rank: u32, from: u32) -> u32 {
        self.lane(rank, Lane::From(from))
    }

    fn lane(&mut self, rank: u32, does: Lane) -> u32 {
        let lanes = &mut self.of[rank as usize];
        let place = lanes.iter().position(|&lane| lane == does).unwrap_or_else(|| {
            lanes.push(does);
            lanes.len() - 1
        });
        narrow(place)
    }
}
