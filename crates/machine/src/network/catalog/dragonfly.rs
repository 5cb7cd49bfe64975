//! Dragonfly: groups of fully connected routers; the groups are also fully connected.
//!
//! Source: Kim, Dally, Scott, Abts, "Technology-Driven, Highly-Scalable Dragonfly Topology", ISCA 2008: p accelerators
//! and h global cables for each router, a routers for each group, g groups. Every two groups have floor(a h / (g-1))
//! cables, spread over their routers. The bill is that of "HammingMesh", Table 2: copper inside a group, global cables
//! optical; those of the a h g / 2 possible global cables that join no two groups are spare. Small routers share a
//! switch of 64 ports, with free links between them.
//!
//! Routing: minimal (local, global, local), Valiant's (through a random group), or adaptive. In adaptive routing, a
//! packet compares the minimal and a Valiant path at its first router, and takes the path with fewer waiting packets.
//! Packets that wait on the Valiant path count twice, because this path is about twice as long (UGAL with the queues of
//! one router; Singh, "Load-Balanced Routing in Interconnection Networks", 2005). The virtual channel rises with each
//! group that is entered, so minimal routing needs two, Valiant's three, and adaptive routing six.

mod routing;

use serde::Deserialize;
use unisono_base::interrupt::poll;

use super::super::{
    Bill, Cable, Family, NodeName, Plane, PlaneBuilder, Routing, Speed, Topology,
    allocate::JobSpace,
    cut::{Cut, Halves},
    topology::{self, SWITCH_PORTS},
    wiring::Wiring,
};
use crate::MachineError;

pub const FAMILY: Family = Family {
    name: "dragonfly",
    summary: "groups of routers, linked all with all inside a group and between groups",
    reference: "Kim et al., Dragonfly, ISCA 2008; HammingMesh, Table 2",
    keys: &["p", "a", "h", "g", "routing"],
    jobs: Some("dragonfly"),
    read,
};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Way {
    #[default]
    Minimal,
    Valiant,
    Adaptive,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dragonfly {
    /// The number of accelerators of a router.
    p: u32,
    /// The number of routers of a group.
    a: u32,
    /// The number of global ports of a router.
    h: u32,
    /// The number of groups.
    g: u32,
    #[serde(default)]
    routing: Way,
}

fn read(table: &toml::Table, origin: &str, _: Speed) -> Result<Box<dyn Topology>, MachineError> {
    let fly: Dragonfly = topology::parse(table, origin)?;
    let Dragonfly { p, a, h, g, .. } = fly;
    topology::accelerators(&[p, a, g], origin)?;
    let ports = u64::from(a) * u64::from(h);
    if ports > u64::from(u16::MAX) {
        return Err(topology::refused(
            origin,
            format!("{a} routers with {h} global ports are {ports} a group; accepted are at most {}", u16::MAX),
        ));
    }
    if g > 1 && fly.global().each == 0 {
        let message = format!(
            "{a} routers with {h} global ports each reach {ports} other groups; with g = {g} there are {}, and some could not be reached",
            g - 1
        );
        return Err(topology::refused(origin, message));
    }
    Ok(Box::new(fly))
}

impl Dragonfly {
    /// Returns the wiring of a group's global cables. Its sources are the other groups, in ring order from the next
    /// group; its targets are the group's routers.
    fn global(self) -> Wiring {
        let sources = self.g - 1;
        Wiring { sources, each: (self.a * self.h).checked_div(sources).unwrap_or(0), targets: self.a }
    }

    /// Returns the port of router `at` to router `other` of its group. Ports to accelerators come first, then ports to
    /// routers, then global ports.
    fn local(self, at: u32, other: u32) -> u32 {
        self.p + if other < at { other } else { other - 1 }
    }

    /// Returns the cut of an odd number of groups that halves the routers of one group. The other groups are halved
    /// too: the groups with the most cables to the first half of these routers are on the side of that half. Returns
    /// `None` if the numbers do not permit this cut.
    fn through_a_group(self) -> Option<Cut> {
        let (half, routers) = (self.g / 2, self.a / 2);
        if self.g < 3 || self.g.is_multiple_of(2) || !self.a.is_multiple_of(2) {
            return None;
        }
        let global = self.global();
        let near = |k: u32| (0..global.each).map(|l| u32::from(global.end(k, l).0 < routers)).sum();
        let mut near: Vec<u32> = (0..self.g - 1).map(near).collect();
        near.sort_unstable_by_key(|&count| std::cmp::Reverse(count));
        let (inside, outside) = near.split_at(half as usize);
        let crossing = inside.iter().map(|count| global.each - count).sum::<u32>() + outside.iter().sum::<u32>();
        Some(Cut {
            inside: self.p * (half * self.a + routers),
            rate: f64::from(half * half * global.each + routers * routers + crossing),
        })
    }

    fn first_global(self) -> u32 {
        self.p + self.a - 1
    }

    fn a_switch(self) -> u32 {
        (SWITCH_PORTS / (self.first_global() + self.h)).clamp(1, self.a)
    }

    /// Returns the routers at the other ends of a router's global cables, by group and index.
    fn far(self, group: u32, at: u32) -> impl Iterator<Item = (u32, u32)> {
        let global = self.global();
        (at..global.sources * global.each).step_by(self.a as usize).map(move |u| {
            let (k, l) = (u / global.each, u % global.each);
            ((group + 1 + k) % self.g, global.end(self.g - 2 - k, l).0)
        })
    }

    /// Returns the number of links between the two routers that are farthest apart, at most three: local, global,
    /// local. Only paths from group 0 are examined, as cables depend only on the distance of groups.
    ///
    /// Each router has cables to at most one router of another group, so with several routers in a group one link is
    /// not enough. Two links are a local and a global one in either order, or two global ones.
    fn between_routers(self) -> u32 {
        if self.a == 1 || self.g == 1 {
            return u32::from(self.a * self.g > 1);
        }
        let global = self.global();
        // A group's cables to one other group lead to different routers of that group, unless there are more cables
        // than routers.
        let Some(missed) = self.a.checked_sub(global.each).filter(|&missed| missed > 0) else { return 2 };
        let h = u64::from(self.h);
        if h * h < u64::from((self.g - 1).saturating_sub(self.h)) * u64::from(missed) {
            return 3;
        }
        let routers = (self.a * self.g) as usize;
        let (mut met, mut groups) = (vec![u32::MAX; routers], vec![u32::MAX; self.g as usize]);
        for start in 0..self.a {
            // The number of routers not yet reached by two links, in groups to which the first router has no cable.
            let mut left = u64::from(self.g - 1) * u64::from(self.a);
            for (group, _) in self.far(0, start) {
                if std::mem::replace(&mut groups[group as usize], start) != start {
                    left -= u64::from(self.a);
                }
            }
            let mut meet = |(group, at): (u32, u32)| {
                poll();
                let router = group * self.a + at;
                if group > 0 && groups[group as usize] != start && met[router as usize] != start {
                    met[router as usize] = start;
                    left -= 1;
                }
            };
            (0..self.a).flat_map(|at| self.far(0, at)).for_each(&mut meet);
            self.far(0, start).flat_map(|(group, at)| self.far(group, at)).for_each(&mut meet);
            if left > 0 {
                return 3;
            }
        }
        2
    }
}

impl Topology for Dragonfly {
    fn name(&self) -> &'static str {
        FAMILY.name
    }

    fn accelerators(&self) -> u32 {
        self.p * self.a * self.g
    }

    fn ports(&self) -> u32 {
        1
    }

    fn bill(&self) -> Bill {
        let (a, g) = (u64::from(self.a), u64::from(self.g));
        let pairs = |n: u64| n * (n - 1) / 2;
        let (full, rest) = (a / u64::from(self.a_switch()), a % u64::from(self.a_switch()));
        let inside = full * pairs(u64::from(self.a_switch())) + if rest > 0 { pairs(rest) } else { 0 };
        let global = pairs(g) * u64::from(self.global().each);
        let ports = if g > 1 { a * u64::from(self.h) * g / 2 } else { 0 };
        Bill {
            switches: g * a.div_ceil(u64::from(self.a_switch())),
            dac: u64::from(self.accelerators()) + g * (pairs(a) - inside),
            aoc: global,
            spare_dac: 0,
            spare_aoc: ports - global,
            switch_ports: self.first_global() + self.h,
        }
    }

    /// Returns the diameter between routers plus one cable at each end; 0 for one accelerator.
    fn diameter(&self) -> u32 {
        if self.accelerators() == 1 { 0 } else { self.between_routers() + 2 }
    }

    /// Returns the best of these cuts: around half of the groups, or of the routers of a single group; through the
    /// middle group of an odd number of groups; through the cables of half of the accelerators.
    fn halves(&self) -> Option<Cut> {
        let (parts, cables) = if self.g > 1 { (self.g, self.global().each) } else { (self.a, 1) };
        let (half, all) = (parts / 2, self.accelerators());
        let between = Cut { inside: half * (all / parts), rate: f64::from(half * (parts - half) * cables) };
        let injection = Cut { inside: all / 2, rate: f64::from(all / 2) };
        Cut::best(all, [between, injection].into_iter().chain(self.through_a_group()))
    }

    /// Returns [`Halves::Least`] if halves consist of whole groups, and no router has more global cables than half of
    /// its group has routers, Cuts through groups are then wider.
    fn halves_are(&self) -> Halves {
        Halves::least_if(self.g.is_multiple_of(2) && self.a >= 2 * self.h)
    }

    /// Returns a job space with routers and groups as blocks. The upper level consists of the cables between groups.
    fn jobs(&self) -> Option<JobSpace> {
        let group = self.p * self.a;
        Some(JobSpace::of_blocks(self.accelerators(), vec![self.p, group], group))
    }

    fn node_name(&self, node: u32) -> NodeName {
        let n = self.accelerators();
        let group = |router: u32| format!("group {}", router / self.a);
        match node.checked_sub(n) {
            None => NodeName::new("accelerator", &[node]).within(group(node / self.p)),
            Some(router) => NodeName::new("router", &[router % self.a]).of(group(router)),
        }
    }

    fn plane(&self) -> Result<Plane, MachineError> {
        let (n, global) = (self.accelerators(), self.global());
        let router = |group: u32, at: u32| n + group * self.a + at;
        let (a, g) = (u64::from(self.a), u64::from(self.g));
        let cables = u64::from(n) + g * a * (a - 1) / 2 + g * (g - 1) / 2 * u64::from(global.each);
        let mut plane = PlaneBuilder::new(n, self.a * self.g, cables)?;
        for accelerator in 0..n {
            plane.join((accelerator, 0), (n + accelerator / self.p, accelerator % self.p), Cable::Dac);
        }
        for group in 0..self.g {
            for at in 0..self.a {
                for other in at + 1..self.a {
                    let together = at / self.a_switch() == other / self.a_switch();
                    let cable = if together { Cable::Board } else { Cable::Dac };
                    let (there, back) = (self.local(at, other), self.local(other, at));
                    plane.join((router(group, at), there), (router(group, other), back), cable);
                }
            }
            // Only cables to groups with a larger number are added. Earlier groups have added the others.
            for k in 0..self.g - 1 - group {
                for l in 0..global.each {
                    let ((at, there), (other, back)) = (global.end(k, l), global.end(self.g - 2 - k, l));
                    let first = self.first_global();
                    plane.join(
                        (router(group, at), first + there),
                        (router(group + 1 + k, other), first + back),
                        Cable::Aoc,
                    );
                }
            }
        }
        plane.finish()
    }

    fn routing(&self) -> Box<dyn Routing> {
        Box::new(routing::ByGroups::new(*self))
    }
}
