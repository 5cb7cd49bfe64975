//! A packet in transit, and the time that it occupies a link.

use rustc_hash::FxHashMap;
use unisono_machine::network::{Header, MOST_SIMULATED_CHANNELS};

use super::Timing;

/// Fields of a packet that every hop needs, so that hops read no table of messages.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    pub message: u32,
    pub to: u32,
    /// Packed fields, from the lowest bits: 6 bits for the virtual channel of arrival, 8 bits for the length class, 18
    /// bits for the choice that the source made.
    rest: u32,
}

/// Number of different choices that a source may have.
pub(super) const MOST_WAYS: u32 = 1 << 18;
const _: () = assert!(MOST_SIMULATED_CHANNELS == 1 << 6);

impl Packet {
    /// Stands for no packet.
    pub const NOTHING: Self = Self { message: u32::MAX, to: 0, rest: 0 };

    pub fn new(message: u32, to: u32, length: u8, way: u32) -> Self {
        Self { message, to, rest: way << 14 | u32::from(length) << 6 }
    }

    pub fn vc(self) -> u8 {
        (self.rest & 0x3f) as u8
    }

    pub fn on(self, vc: u8) -> Self {
        Self { rest: self.rest & !0x3f | u32::from(vc), ..self }
    }

    #[expect(clippy::cast_possible_truncation, reason = "the hot loop; the class has 8 bits of the field")]
    pub fn length(self) -> u8 {
        (self.rest >> 6) as u8
    }

    pub fn header(self) -> Header {
        Header { to: self.to, vc: self.vc(), way: self.rest >> 14 }
    }
}

/// Time that a packet occupies a link, by the packet's length class and the link's speed. Class 0 is full packets.
#[derive(Clone)]
pub(super) struct Lengths {
    /// A row of 2^`shift` entries for each class: one for each link speed, then unused ones.
    ps: Vec<u64>,
    shift: u32,
    classes: FxHashMap<u32, u8>,
}

/// Class of the lengths for which no class is left. The table of messages has the bytes of packets of this class.
const UNCLASSED: u8 = u8::MAX;

impl Lengths {
    pub fn new(timing: &Timing) -> Self {
        let shift = timing.links.len().next_power_of_two().trailing_zeros();
        let mut lengths = Self { ps: Vec::new(), shift, classes: FxHashMap::default() };
        lengths.class(timing.packet_bytes, timing);
        lengths
    }

    /// Returns the least time that a packet of any class occupies a link; `None` if some lengths may have no class.
    pub fn least_ps(&self, timing: &Timing) -> Option<u64> {
        let all = self.classes.keys().flat_map(|&bytes| timing.links.iter().map(move |l| l.serialization_ps(bytes)));
        all.min().filter(|_| self.classes.len() < usize::from(UNCLASSED))
    }

    /// Returns the time of a length class at a link speed; `None` for a length without a class.
    #[inline]
    pub fn ps(&self, class: u8, speed: u8) -> Option<u64> {
        self.ps.get(usize::from(class) << self.shift | usize::from(speed)).copied()
    }

    #[expect(clippy::cast_possible_truncation, reason = "at most 256 classes")]
    pub fn class(&mut self, bytes: u32, timing: &Timing) -> u8 {
        if let Some(&class) = self.classes.get(&bytes) {
            return class;
        }
        if self.classes.len() == usize::from(UNCLASSED) {
            return UNCLASSED;
        }
        let class = self.classes.len() as u8;
        self.ps.extend(timing.links.iter().map(|link| link.serialization_ps(bytes)));
        self.ps.resize((usize::from(class) + 1) << self.shift, 0);
        self.classes.insert(bytes, class);
        class
    }
}
