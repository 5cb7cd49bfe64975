//! The border of a region: events that it sends to other regions, and records of the messages that those regions send.

use super::{
    super::{messages::PLACE_BITS, packet::Packet, packets::Packets},
    order::{Entry, Log, Order},
    partition::Regions,
};

/// An event or a report that one region sends to another.
#[derive(Clone, Copy, Debug)]
pub(super) enum Crossing {
    Arrival {
        link: u32,
        packet: Packet,
    },
    Credit {
        channel: u32,
    },
    /// A message of `packets` packets, which will arrive in the receiving region.
    Message {
        at: u32,
        id: u32,
        packets: u32,
    },
    /// A message from the region that gets this report has arrived.
    Removal {
        at: u32,
    },
}

/// A crossing; if it is an event, with its time and stamp.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    time: u64,
    delay: u64,
    stamp: u64,
    crossing: Crossing,
}

/// A message that another region sends to this one.
#[derive(Clone, Copy, Default)]
struct Foreign {
    latest: u64,
    missing: u32,
    id: u32,
}

/// Bytes of a [`Foreign`] message, for estimates.
pub(in super::super) const FOREIGN_BYTES: u128 = size_of::<Foreign>() as u128;

pub(in super::super) struct Border<'a> {
    regions: &'a Regions,
    region: usize,
    pub log: Log,
    /// Crossings of the window into each region.
    sent: Vec<Vec<Sent>>,
    /// Time of the earliest event in `sent`.
    first: u64,
    /// Messages from each region, by their index in that region's table.
    foreign: Vec<Vec<Foreign>>,
    /// Last time of the window; events sent to other regions must happen later.
    last: u64,
    /// True if an event for another region happens in the window in which it was sent.
    is_broken: bool,
}

impl<'a> Border<'a> {
    pub fn new(regions: &'a Regions, region: usize) -> Self {
        let count = regions.count;
        Self {
            regions,
            region,
            log: Log::default(),
            sent: vec![Vec::new(); count],
            first: u64::MAX,
            foreign: vec![Vec::new(); count],
            last: 0,
            is_broken: false,
        }
    }

    #[inline]
    pub fn crosses(&self, link: u32) -> bool {
        self.regions.crosses[link as usize]
    }

    /// Sends the arrival of a packet that starts at `now` on a link to another region.
    pub fn arrival(&mut self, now: u64, delay: u64, stamp: u64, link: u32, packet: Packet) {
        let to = self.regions.to[link as usize];
        self.event(usize::from(to), now, delay, stamp, Crossing::Arrival { link, packet });
    }

    /// Sends the credit of a packet that arrived over a link from another region.
    pub fn credit(&mut self, now: u64, delay: u64, stamp: u64, link: u32, channel: u32) {
        let from = self.regions.from[link as usize];
        self.event(usize::from(from), now, delay, stamp, Crossing::Credit { channel });
    }

    fn event(&mut self, to: usize, now: u64, delay: u64, stamp: u64, crossing: Crossing) {
        let time = now + delay;
        self.is_broken |= time <= self.last;
        self.first = self.first.min(time);
        self.sent[to].push(Sent { time, delay, stamp, crossing });
    }

    /// Announces a message to the region of its destination, if that is another region.
    pub fn announce(&mut self, to: u32, at: u32, id: u32, packets: u32) {
        let to = usize::from(self.regions.of_node[to as usize]);
        if to != self.region {
            self.tell(to, Crossing::Message { at, id, packets });
        }
    }

    fn tell(&mut self, to: usize, crossing: Crossing) {
        self.sent[to].push(Sent { time: u64::MAX, delay: 0, stamp: 0, crossing });
    }

    fn foreign(&mut self, at: u32) -> &mut Foreign {
        &mut self.foreign[(at >> PLACE_BITS) as usize][(at & ((1 << PLACE_BITS) - 1)) as usize]
    }

    /// Records a message that another region will send.
    fn expect(&mut self, from: usize, at: u32, message: Foreign) {
        let place = (at & ((1 << PLACE_BITS) - 1)) as usize;
        let messages = &mut self.foreign[from];
        if messages.len() <= place {
            messages.resize(place + 1, Foreign::default());
        }
        messages[place] = message;
    }

    /// Records that a packet's tail arrives; if it was the last missing packet, returns the message's arrival time.
    pub fn arrive(&mut self, at: u32, time: u64) -> Option<u64> {
        let message = self.foreign(at);
        message.latest = message.latest.max(time);
        message.missing -= 1;
        (message.missing == 0).then_some(message.latest)
    }

    /// Reports to the sending region that a message has arrived, and returns the task id of its send.
    pub fn remove(&mut self, at: u32) -> u32 {
        self.tell((at >> PLACE_BITS) as usize, Crossing::Removal { at });
        self.foreign(at).id
    }
}

/// Results of a region in a window, which the threads of all regions read.
#[derive(Default)]
pub(super) struct Window {
    pub log: Vec<Entry>,
    /// Crossings into each region, with stamps of the sending region.
    sent: Vec<Vec<Sent>>,
    /// Time of the region's next event, or of the earliest event that it sent.
    pub next_ps: u64,
}

impl Packets<'_> {
    /// Exchanges the results of this window, whose next event is at `next_ps`, for those in `window`, which all regions
    /// have read.
    pub(super) fn end_window(&mut self, next_ps: u64, window: &mut Window) {
        let Some(border) = &mut self.border else { return };
        window.next_ps = next_ps.min(border.first);
        std::mem::swap(&mut border.log.entries, &mut window.log);
        std::mem::swap(&mut border.sent, &mut window.sent);
        border.sent.resize(border.regions.count, Vec::new());
        border.sent.iter_mut().for_each(Vec::clear);
        border.first = u64::MAX;
    }

    /// Renumbers this region's events in the order of all regions.
    pub(super) fn renumber(&mut self, order: &Order) {
        let Some(border) = &mut self.border else { return };
        let (region, base) = (border.region, border.log.base());
        self.events.restamp(base, order.packets_made(), |stamp| order.stamp(region, stamp));
        border.log.next_window(order, region);
    }

    /// Takes the crossings that region `from` has sent to this region.
    pub(super) fn take(&mut self, from: usize, window: &Window, order: &Order) {
        let Some(to) = self.border.as_ref().map(|border| border.region) else { return };
        for &Sent { time, delay, stamp, crossing } in &window.sent[to] {
            match crossing {
                Crossing::Arrival { link, packet } => {
                    self.events.bring_arrival(from, delay, time, order.stamp(from, stamp), link, packet);
                }
                Crossing::Credit { channel } => {
                    self.events.bring_credit(from, delay, time, order.stamp(from, stamp), channel, self.vcs);
                }
                Crossing::Removal { at } => {
                    self.messages.remove(at);
                }
                Crossing::Message { at, id, packets } => {
                    if let Some(border) = &mut self.border {
                        border.expect(from, at, Foreign { latest: 0, missing: packets, id });
                    }
                }
            }
        }
    }

    /// Begins a window whose last time is `last`.
    pub(super) fn begin_window(&mut self, last: u64) {
        if let Some(border) = &mut self.border {
            border.last = last;
        }
    }

    /// Returns whether one thread must repeat the run: to report an error, or because a region sent an event too late.
    pub(super) fn has_failed(&self) -> bool {
        self.fault.is_some() || self.late.is_some() || self.border.as_ref().is_some_and(|border| border.is_broken)
    }
}
