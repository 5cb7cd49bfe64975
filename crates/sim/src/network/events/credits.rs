//! Returning credits. While a link waits for credits, each return is an event; otherwise returns are only counted, when
//! a credit count is read.

use unisono_base::narrow;

use super::{super::packets::LAST, CREDIT, Events, Lane, NEVER, Place, key};

pub(super) struct Credit {
    pub time: u64,
    pub stamp: u64,
    pub link: u32,
    pub vc: u8,
}

impl Events {
    /// Adds the return of a credit: the buffer place of a packet that arrived over `link` on channel `vc` becomes free.
    #[inline]
    pub fn credit(&mut self, now: u64, delay: u64, link: u32, vc: u8, vcs: u8) {
        let time = now + delay;
        let known = self.credits.iter().position(|lane| lane.delay == delay);
        let is_lost = known.is_none() && self.own_credits == self.most_lanes;
        if is_lost || time > LAST {
            return self.other(time, CREDIT | (link * u32::from(vcs) + u32::from(vc)));
        }
        let at = known.unwrap_or_else(|| self.add_credits(delay));
        let stamp = self.stamp();
        self.credits[at].events.push_back(Credit { time, stamp, link, vc });
        if self.strict {
            self.came(Place::Credits(narrow(at)), key(time, stamp));
        }
    }

    #[cold]
    fn add_credits(&mut self, delay: u64) -> usize {
        let at = self.credits.len();
        self.own_credits += 1;
        self.credits.push(Lane::new(delay));
        self.places.push((NEVER, Place::Credits(narrow(at))));
        at
    }

    /// Takes the first credit of a lane, if it returned before the latest event, and returns its link and virtual
    /// channel. Credits of different lanes may be taken in any order.
    #[inline]
    pub fn take_credit(&mut self, lane: usize) -> Option<(u32, u8)> {
        let popped = self.popped;
        let events = &mut self.credits[lane].events;
        let first = events.front().filter(|first| key(first.time, first.stamp) <= popped)?;
        let Credit { link, vc, .. } = *first;
        events.pop_front();
        Some((link, vc))
    }

    pub fn credit_lanes(&self) -> usize {
        self.credits.len()
    }

    pub fn is_strict(&self) -> bool {
        self.strict
    }

    /// Makes the returns of credits events, or stops this. Credits that returned before the latest event must have been
    /// taken.
    #[cold]
    pub fn set_strict(&mut self, strict: bool) {
        self.strict = strict;
        self.sort_places();
    }
}
