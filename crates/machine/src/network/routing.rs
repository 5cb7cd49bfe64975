//! The rules that determine the next hops of a packet.

use std::borrow::Cow;

/// The maximum number of virtual channels of a link in simulations of packets.
pub const MOST_SIMULATED_CHANNELS: u8 = 64;

/// A link that a packet may take, and its virtual channel on that link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Hop {
    pub link: u32,
    pub vc: u8,
}

/// The data that a packet carries for its routing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Header {
    pub to: u32,
    /// The virtual channel of the packet; 0 before its first link.
    pub vc: u8,
    /// The path that the source chose for the packet ([`Routing::choose`]); 0 if the routing offers no choice.
    pub way: u32,
}

/// The routing of the packets of one plane. A rule may depend only on the node and the header, so that the dependencies
/// between channels (link and virtual channel) can be listed and shown to have no cycle.
pub trait Routing: Send + Sync {
    fn name(&self) -> &'static str;

    fn virtual_channels(&self) -> u8;

    /// Returns the number of the path, such as through a certain group, that a source chooses for a packet by random
    /// bits.
    fn choose(&self, _from: u32, _to: u32, _random: u64) -> u32 {
        0
    }

    /// Returns every value that [`Routing::choose`] may return for the pair, for proofs and for flows that are divided
    /// evenly over all paths.
    fn choices(&self, _from: u32, _to: u32) -> Cow<'static, [u32]> {
        Cow::Borrowed(&[0])
    }

    /// Returns whether [`Routing::detour`] exceeds 1 for some hop.
    fn has_detours(&self) -> bool {
        false
    }

    /// Returns the factor by which a path through a hop is longer than the shortest path that the packet may take from
    /// its node. The choice of a hop multiplies the number of packets that wait for the hop by this factor.
    fn detour(&self, _header: Header, _hop: Hop) -> u32 {
        1
    }

    /// Returns the first of the hops that [`Routing::hops`] appends, and their number, if they are consecutive links of
    /// one virtual channel; `None` if they are not, or if the routing has no rule for it. The loads of links are
    /// computed from runs, because writing a list of hops takes longer than reading it.
    fn run(&self, _at: u32, _header: Header) -> Option<(Hop, u32)> {
        None
    }

    /// Appends the links from a node to the first node at which the packet has several hops, or to its destination, and
    /// returns that node and the virtual channel there; `None` if the routing has no rule for it that is faster than
    /// [`Routing::hops`] at each node.
    fn only_way(&self, _at: u32, _header: Header, _links: &mut Vec<u32>) -> Option<(u32, u8)> {
        None
    }

    /// Returns the sizes of nested blocks of accelerators with consecutive numbers, largest first, ending with 1, if
    /// blocks of equal size are interchangeable; empty if they are not.
    ///
    /// Interchangeable means: let a permutation of accelerators map each block to a block, so that the smallest block
    /// that contains both ends of a message keeps its size for all messages. Then the permutation also maps the
    /// possible links of each message, in their order. This holds while all links have the same rate.
    fn blocks(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Returns whether all packets with the same source, destination and [`Header::way`] reach a node over equally many
    /// links.
    fn is_layered(&self) -> bool {
        true
    }

    /// Appends the hops that a packet at `at` may take, each the next step of a path to its destination; `at` is not
    /// `header.to`. The simulator chooses the hop whose link has the fewest waiting packets, and the first of equal
    /// hops.
    fn hops(&self, at: u32, header: Header, hops: &mut Vec<Hop>);
}
