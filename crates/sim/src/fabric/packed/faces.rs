//! The state that PEs publish to their neighbors, which read it in the next cycle.

use super::{
    super::tables::RAMP,
    group::{Counters, LANES, Lanes, NO_BITS, equal},
};

/// The words of a PE: one word for each port to a neighbor, with the colors that left by this port; [`FULL`], with the
/// colors whose queue is full; and [`NEARLY`], with the colors whose queue has one free slot.
const FIELDS: usize = 6;
const FULL: usize = 4;
const NEARLY: usize = 5;

/// The opposite of each port. Ports are numbered north, south, west, east, ramp.
const OPPOSITE: [usize; RAMP] = [1, 0, 3, 2];

/// State that a group of PEs publishes.
pub struct Face {
    /// The colors that leave by each port, to the neighbors and to the PE.
    pub out: [Lanes; RAMP + 1],
    pub full: Lanes,
    pub nearly: Lanes,
}

impl Face {
    pub fn closed() -> Self {
        Self { out: [NO_BITS; RAMP + 1], full: NO_BITS, nearly: NO_BITS }
    }

    /// Publishes the queues with at most one free slot, before wavelets of this cycle arrive. `depth` and `less` are
    /// the depth of a queue and the depth minus one, as bit slices.
    #[inline(always)]
    pub fn show(&mut self, waiting: &Counters, lane: usize, (depth, less): ([u32; 4], [u32; 4])) {
        self.full[lane] = equal(waiting, lane, depth);
        self.nearly[lane] = equal(waiting, lane, less);
    }
}

/// The state that a group of PEs reads from its neighbors, by port. `left` has the colors that the group itself sent by
/// each port.
pub struct View<'a> {
    pub arrive: [&'a Lanes; RAMP],
    pub full: [&'a Lanes; RAMP],
    pub nearly: [&'a Lanes; RAMP],
    pub left: [&'a Lanes; RAMP],
}

impl View<'_> {
    /// Returns true if no wavelet arrives from a neighbor.
    #[inline(always)]
    pub fn is_quiet(&self) -> bool {
        self.arrive.iter().all(|lanes| lanes.iter().fold(0, |any, bits| any | bits) == 0)
    }
}

/// State that the PEs of a row publish in one cycle, with a border at both ends.
pub struct Faces {
    words: Vec<u32>,
    /// Number of words of one field.
    stride: usize,
}

impl Faces {
    pub fn new(groups: u32) -> Self {
        let stride = (groups as usize + 2) * LANES;
        Self { words: vec![0; FIELDS * stride], stride }
    }

    fn lanes(&self, start: usize) -> &Lanes {
        self.words[start..start + LANES].try_into().expect("a slice of LANES words")
    }

    /// Returns the view of a group at the beginning of the next cycle, from the faces of the rows above and below.
    #[inline(always)]
    pub fn view<'a>(&'a self, above: &'a Self, below: &'a Self, group: usize) -> View<'a> {
        let own = (group + 1) * LANES;
        let beside = [(above, own), (below, own), (self, own - 1), (self, own + 1)];
        let field = |(faces, start): (&'a Self, usize), field: usize| faces.lanes(start + field * self.stride);
        View {
            arrive: std::array::from_fn(|port| field(beside[port], OPPOSITE[port])),
            full: std::array::from_fn(|port| field(beside[port], FULL)),
            nearly: std::array::from_fn(|port| field(beside[port], NEARLY)),
            left: std::array::from_fn(|port| field((self, own), port)),
        }
    }

    #[inline(always)]
    pub fn put(&mut self, group: usize, face: &Face) {
        let (own, stride) = ((group + 1) * LANES, self.stride);
        let fields = face.out[..RAMP].iter().chain([&face.full, &face.nearly]);
        for (n, lanes) in fields.enumerate() {
            self.words[own + n * stride..own + n * stride + LANES].copy_from_slice(lanes);
        }
    }
}
