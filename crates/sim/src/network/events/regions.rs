//! Events from other regions, with the stamps that a run on one thread would give them.

use unisono_base::narrow;

use super::{super::packet::Packet, Arrival, CREDIT, Event, Events, Lane, Late, NEVER, Place, credits::Credit, key};

/// Greatest number of lanes for events from other regions.
const MOST_INCOMING: usize = 8;

/// A lane of arrivals or credits that one region sent with one delay.
pub(super) struct Incoming {
    region: usize,
    delay: u64,
    place: Place,
}

impl Events {
    /// Replaces each stamp above `base` by `stamp(old)`, which keeps their order; `made` becomes the number of stamps.
    pub fn restamp(&mut self, base: u64, made: u64, stamp: impl Fn(u64) -> u64) {
        for lane in &mut self.arrivals {
            let last = lane.events.iter_mut().rev().take_while(|event| event.stamp > base);
            last.for_each(|event| event.stamp = stamp(event.stamp));
        }
        for lane in &mut self.lanes {
            let last = lane.events.iter_mut().rev().take_while(|event| event.stamp > base);
            last.for_each(|event| event.stamp = stamp(event.stamp));
        }
        for lane in &mut self.credits {
            let last = lane.events.iter_mut().rev().take_while(|event| event.stamp > base);
            last.for_each(|event| event.stamp = stamp(event.stamp));
        }
        let restamped = |at: u64| if at > base { stamp(at) } else { at };
        let mut late = std::mem::take(&mut self.late).into_vec();
        late.iter_mut().for_each(|late| late.arrival.stamp = restamped(late.arrival.stamp));
        self.late = late.into();
        self.others.restamp(restamped);
        self.sort_places();
        self.made = made;
    }

    /// Adds an arrival at `time`, which `region` sent `delay` earlier.
    pub fn bring_arrival(&mut self, region: usize, delay: u64, time: u64, stamp: u64, link: u32, packet: Packet) {
        let arrival = Arrival { time, stamp, link, packet };
        let known = self.incoming.iter().find_map(|lane| match lane.place {
            Place::Arrivals(at) if (lane.region, lane.delay) == (region, delay) => Some(at as usize),
            _ => None,
        });
        let at = known.or_else(|| {
            let at = self.arrivals.len();
            (self.incoming.len() < MOST_INCOMING).then(|| {
                self.arrivals.push(Lane::new(delay));
                self.add_incoming(region, delay, Place::Arrivals(narrow(at)));
                at
            })
        });
        let is_last =
            |&at: &usize| self.arrivals[at].events.back().is_none_or(|last| (last.time, last.stamp) < (time, stamp));
        match at.filter(is_last) {
            Some(at) => {
                self.arrivals[at].events.push_back(arrival);
                self.came(Place::Arrivals(narrow(at)), key(time, stamp));
            }
            None => self.push_late(Late { arrival, hop: None }),
        }
    }

    /// Adds the return of a credit at `time`, which `region` sent `delay` earlier.
    pub fn bring_credit(&mut self, region: usize, delay: u64, time: u64, stamp: u64, channel: u32, vcs: u8) {
        let known = self.incoming.iter().find_map(|lane| match lane.place {
            Place::Credits(at) if (lane.region, lane.delay) == (region, delay) => Some(at as usize),
            _ => None,
        });
        let at = known.or_else(|| {
            let at = self.credits.len();
            (self.incoming.len() < MOST_INCOMING).then(|| {
                // No event of this region itself has the delay `u64::MAX`, so this lane gets no credits of its own
                // region.
                self.credits.push(Lane::new(u64::MAX));
                self.add_incoming(region, delay, Place::Credits(narrow(at)));
                at
            })
        });
        let is_last =
            |&at: &usize| self.credits[at].events.back().is_none_or(|last| (last.time, last.stamp) < (time, stamp));
        match at.filter(is_last) {
            Some(at) => {
                let (link, vc) = (channel / u32::from(vcs), narrow(channel % u32::from(vcs)));
                self.credits[at].events.push_back(Credit { time, stamp, link, vc });
                if self.strict {
                    self.came(Place::Credits(narrow(at)), key(time, stamp));
                }
            }
            None => {
                self.came(Place::Others, key(time, stamp));
                self.others.push(Event { time, stamp, what: CREDIT | channel });
            }
        }
    }

    fn add_incoming(&mut self, region: usize, delay: u64, place: Place) {
        self.incoming.push(Incoming { region, delay, place });
        self.places.push((NEVER, place));
    }
}
