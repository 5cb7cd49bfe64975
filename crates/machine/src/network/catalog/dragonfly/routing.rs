//! Routes packets over a local, a global and a local link (minimal), or over such a path to an intermediate group and
//! another one from there.
//!
//! Channel dependencies have no cycle. A packet is on channel 0 in the source's group and on the cable that leaves this
//! group, on channel 1 in an intermediate group and on the cable that leaves it, and on the last channel in its last
//! group. On each channel, local links come before global links.
//!
//! In adaptive routing, a packet reaches its first router on channel 0, and the router chooses the path. Minimal paths
//! then have channel 1 in the first group and 2 in the last group; paths through another group have channels 3, 4 and
//! 5.

use std::{borrow::Cow, ops::Range};

use unisono_base::narrow;

use super::{Dragonfly, Way};
use crate::network::{Header, Hop, Plane, Routing, Topology};

pub struct ByGroups {
    fly: Dragonfly,
    plane: Plane,
    home: Vec<u32>,
    /// For each router, its group and its index in the group.
    place: Vec<(u32, u32)>,
    /// The global ports that lead to another group. `own[k][at]` are the ports of router `at` of each group that lead
    /// to the group `k + 1` places further on the ring of groups.
    own: Vec<Vec<Range<u32>>>,
    /// The routers of a group that have global ports to another group: `doors[k]` have ports to the group `k + 1`
    /// places further on the ring of groups.
    doors: Vec<Vec<u32>>,
}

impl ByGroups {
    pub fn new(fly: Dragonfly) -> Self {
        let global = fly.global();
        let own: Vec<Vec<Range<u32>>> =
            (0..global.sources).map(|k| (0..fly.a).map(|at| global.towards(at, k..k + 1)).collect()).collect();
        let has = |ports: &[Range<u32>]| (0..fly.a).filter(|&at| !ports[at as usize].is_empty()).collect();
        Self {
            fly,
            plane: fly.plane().expect("a plane that was built before"),
            home: (0..fly.accelerators()).map(|n| n / fly.p).collect(),
            place: (0..fly.a * fly.g).map(|r| (r / fly.a, r % fly.a)).collect(),
            doors: own.iter().map(|ports| has(ports)).collect(),
            own,
        }
    }

    fn group(&self, accelerator: u32) -> u32 {
        self.place[self.home[accelerator as usize] as usize].0
    }

    /// Returns the groups of two accelerators, the lower number first, and the number of other groups, through which
    /// Valiant's paths lead; `None` if packets between the two accelerators take only minimal paths.
    fn between(&self, from: u32, to: u32) -> Option<(u32, u32, u32)> {
        let (from, to) = (self.group(from), self.group(to));
        let others = self.fly.g.saturating_sub(2);
        (self.fly.routing != Way::Minimal && from != to && others > 0).then_some((from.min(to), from.max(to), others))
    }

    /// Returns the number of the path through the n-th group, from 0, that is neither `low` nor `high`. Paths are
    /// numbered from 1, because 0 is the minimal path.
    fn way(n: u32, low: u32, high: u32) -> u32 {
        let group = n + u32::from(n >= low);
        1 + group + u32::from(group >= high)
    }
}

impl Routing for ByGroups {
    fn name(&self) -> &'static str {
        match self.fly.routing {
            Way::Minimal => "minimal",
            Way::Valiant => "Valiant",
            Way::Adaptive => "adaptive",
        }
    }

    fn virtual_channels(&self) -> u8 {
        match self.fly.routing {
            Way::Minimal => 2,
            Way::Valiant => 3,
            Way::Adaptive => 6,
        }
    }

    fn choose(&self, from: u32, to: u32, random: u64) -> u32 {
        self.between(from, to).map_or(0, |(low, high, others)| {
            let n = (u128::from(random) * u128::from(others)) >> 64;
            Self::way(narrow(n), low, high)
        })
    }

    fn choices(&self, from: u32, to: u32) -> Cow<'static, [u32]> {
        match self.between(from, to) {
            Some((low, high, others)) => (0..others).map(|n| Self::way(n, low, high)).collect(),
            None => Cow::Borrowed(&[0]),
        }
    }

    fn hops(&self, at: u32, header: Header, hops: &mut Vec<Hop>) {
        let n = self.plane.accelerators();
        // An accelerator has one link, with the accelerator's number.
        if at < n {
            hops.push(Hop { link: at, vc: 0 });
            return;
        }
        if self.fly.routing != Way::Adaptive {
            self.towards(at, header, [0, 1, self.virtual_channels() - 1], hops);
            return;
        }
        // A packet on channel 0 is at its first router.
        if header.vc <= LAST_DIRECT {
            self.towards(at, Header { way: 0, ..header }, [FIRST_DIRECT, FIRST_DIRECT, LAST_DIRECT], hops);
        }
        let is_free = header.vc == 0 && header.way > 0;
        if is_free || header.vc > LAST_DIRECT {
            self.towards(at, header, BY_ANOTHER, hops);
        }
    }

    /// Returns false, because paths differ in length: the global link may lead to the destination's router or to
    /// another router of its group.
    fn is_layered(&self) -> bool {
        false
    }

    fn has_detours(&self) -> bool {
        self.fly.routing == Way::Adaptive
    }

    fn detour(&self, header: Header, hop: Hop) -> u32 {
        1 + u32::from(self.has_detours() && header.vc == 0 && hop.vc == BY_ANOTHER[0])
    }
}

/// The virtual channel of an adaptive minimal path in the first group.
const FIRST_DIRECT: u8 = 1;
/// The virtual channel of an adaptive minimal path in the last group.
const LAST_DIRECT: u8 = 2;
/// The virtual channels of an adaptive path through another group.
const BY_ANOTHER: [u8; 3] = [3, 4, 5];

impl ByGroups {
    /// Adds the hops that a packet may take at the router `at`. `channels` are the virtual channels of the first, the
    /// intermediate and the last group.
    fn towards(&self, at: u32, header: Header, channels: [u8; 3], hops: &mut Vec<Hop>) {
        let n = self.plane.accelerators();
        let (group, here) = self.place[(at - n) as usize];
        let home = self.home[header.to as usize];
        let (end, there) = self.place[home as usize];
        let mut push = |port: u32, vc: u8| hops.push(Hop { link: self.plane.port(at, port), vc });
        if group == end {
            if here == there {
                push(header.to - home * self.fly.p, 0);
            } else {
                push(self.fly.local(here, there), channels[2]);
            }
            return;
        }
        let by = header.way.checked_sub(1).filter(|&by| by != group);
        let next = by.unwrap_or(end);
        let vc = channels[usize::from(header.way > 0 && by.is_none())];
        let follows = if next > group { next - group } else { next + self.fly.g - group } as usize - 1;
        let own = &self.own[follows][here as usize];
        if own.is_empty() {
            self.doors[follows].iter().for_each(|&door| push(self.fly.local(here, door), vc));
        } else {
            own.clone().for_each(|port| push(self.fly.first_global() + port, vc));
        }
    }
}
