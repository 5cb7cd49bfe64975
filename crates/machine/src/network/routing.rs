//! Where a packet may go next.

/// Virtual channels of a link on which packets are simulated.
pub const MOST_SIMULATED_CHANNELS: u8 = 64;

/// A link that a packet may take, and the virtual channel it then is on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Hop {
    pub link: u32,
    pub vc: u8,
}

/// What a packet knows on its way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Header {
    pub to: u32,
    /// The virtual channel it is on; 0 before its first link.
    pub vc: u8,
    /// What its source chose for the whole way ([`Routing::choose`]); 0 where a routing chooses nothing.
    pub way: u32,
}

/// The rules by which the packets of one plane find their way. A rule may look at the place and the header only, so
/// that the dependencies between channels (link and virtual channel) can be listed and proved to have no cycle.
pub trait Routing: Send + Sync {
    fn name(&self) -> &'static str;

    /// Virtual channels of every link.
    fn virtual_channels(&self) -> u8;

    /// What a packet's source chooses for the whole way, from random bits: an intermediate group, a path of several.
    fn choose(&self, _from: u32, _to: u32, _random: u64) -> u32 {
        0
    }

    /// Every value that [`Routing::choose`] may give for the pair, for proofs and for flows that are spread evenly.
    fn choices(&self, _from: u32, _to: u32) -> Vec<u32> {
        vec![0]
    }

    /// Whether [`Routing::detour`] is above 1 for some hop.
    fn has_detours(&self) -> bool {
        false
    }

    /// By how much the way over a hop is longer than the shortest one that its packet may take there. The packets
    /// before a hop count so many times when a packet chooses.
    fn detour(&self, _header: Header, _hop: Hop) -> u32 {
        1
    }

    /// Appends the hops that a packet at `at` may take, each one nearer to its end; `at` is not `header.to`. Which of
    /// them it takes is the simulator's choice: the one whose link has the fewest packets before it, the first among
    /// equals.
    fn hops(&self, at: u32, header: Header, hops: &mut Vec<Hop>);
}
