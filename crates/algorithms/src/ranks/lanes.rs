//! Lanes of ranks that send by a timetable of the links of a network.
//!
//! A rank sends in the order of the timetable, so that each link has its next message when it is free: all from one
//! lane, or from one for each link where the links of a rank do not wait for each other. What it receives from one rank
//! has a lane of its own.

use unisono_base::narrow;
use unisono_synthesis::Fabric;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Lane {
    /// What a rank has itself, and its sends.
    Own,
    /// Sends over a link.
    Link(u32),
    /// What comes from a rank.
    From(u32),
}

/// What each rank does in each of its lanes.
pub struct Lanes {
    sends_by_link: bool,
    of: Vec<Vec<Lane>>,
}

impl Lanes {
    /// The lane of what a rank has itself.
    pub const OWN: u32 = 0;

    pub fn new(fabric: &Fabric, ranks: u32) -> Self {
        Self { sends_by_link: fabric.sends_by_link(), of: vec![vec![Lane::Own]; ranks as usize] }
    }

    /// The lane of a rank's sends over a link.
    pub fn sends(&mut self, rank: u32, link: u32) -> u32 {
        self.lane(rank, if self.sends_by_link { Lane::Link(link) } else { Lane::Own })
    }

    /// The lane of what a rank receives from another, or sums up itself.
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
