//! Places for packets in the buffers at the ends of links.
//!
//! A channel is a link with a virtual channel. A packet takes a place in the buffer of its channel when it starts on
//! the link. If the packet continues at once, the node before the link learns that the place is free after a round trip
//! plus the packet's own time s on the link: D = alpha + latency + s. A packet that waits at the end of the link for a
//! time w occupies its place for D + w. So with B places a packet takes (D + w) / B of the channel's time, and a
//! channel sends at most B packets in the time D, for any rate of the link. A channel that was idle first sends B
//! packets at the rate of the link.

use unisono_base::rounded;
use unisono_machine::network::Hop;

use super::{NetworkModel, PS_PER_NS};

pub(super) struct Windows {
    places: f64,
    channels_of_link: usize,
    /// For each link, alpha plus the latency of the link alone, in ps.
    round_trip_ps: Vec<f64>,
    /// For each channel, the time, in ps, at which all its places are free, if one after the other becomes free.
    empty: Vec<f64>,
    /// For each channel, the time, in ps, at which its first place is free.
    free: Vec<u64>,
}

impl Windows {
    /// Creates the state of all channels; `None` if every buffer has enough places to keep its link busy. The shortest
    /// packet takes `shortest_ps` on a link of the machine's own rate.
    pub(super) fn new(model: &NetworkModel, shortest_ps: f64) -> Option<Self> {
        let NetworkModel { plane, speeds, .. } = model;
        let places = model.places_of_buffer as f64;
        let round_trip_ps = |speed: u8| speeds.round_trip_ns(speed) * PS_PER_NS;
        let waits = |speed: u8| {
            let packet_ps = shortest_ps * if speeds.is_even() { 1.0 } else { speeds.weight(speed) };
            round_trip_ps(speed) + packet_ps > packet_ps * places
        };
        let channels_of_link = usize::from(model.routing.virtual_channels().max(1));
        let channels = plane.links().len() * channels_of_link;
        plane.links().iter().any(|link| waits(link.speed)).then(|| Self {
            places,
            channels_of_link,
            round_trip_ps: plane.links().iter().map(|link| round_trip_ps(link.speed)).collect(),
            empty: vec![0.0; channels],
            free: vec![0; channels],
        })
    }

    fn channel(&self, hop: Hop) -> usize {
        hop.link as usize * self.channels_of_link + usize::from(hop.vc)
    }

    /// Returns the time at which a channel has a free place for one more packet.
    pub(super) fn free(&self, hop: Hop) -> u64 {
        self.free[self.channel(hop)]
    }

    /// Sends `packets` packets that together occupy a link for `busy` ps, at or after `start`. Returns the start of the
    /// first packet and the end of the last packet.
    pub(super) fn send(&mut self, hop: Hop, start: u64, busy: u64, packets: f64) -> (u64, u64) {
        let channel = self.channel(hop);
        let packet = busy as f64 / packets;
        let delay = self.round_trip_ps[hop.link as usize] + packet;
        let each = delay / self.places;
        let start = start.max(rounded(self.empty[channel] + each - delay));
        let empty = self.empty[channel].max(start as f64) + each * packets;
        self.empty[channel] = empty;
        self.free[channel] = rounded(empty + each - delay);
        (start, start.saturating_add(busy).max(rounded(empty - delay + packet)))
    }

    /// Records that `packets` packets each waited `waited` ps at the end of a channel's link.
    pub(super) fn hold(&mut self, hop: Hop, waited: u64, packets: f64) {
        let channel = self.channel(hop);
        let more = waited as f64 * packets / self.places;
        self.empty[channel] += more;
        self.free[channel] = self.free[channel].saturating_add(rounded(more));
    }
}
