//! The latencies and rates of the links of a plane, as the model and its bounds use them.

use unisono_machine::network::{Network, Plane};

/// The latency and rate of each speed. Indices are those of [`unisono_machine::network::Link::speed`].
pub struct Speeds {
    /// The output, link and input latency of a link, added up.
    alphas_ns: Vec<f64>,
    /// The latency of a link without its output and input: the latency of a returning credit.
    links_ns: Vec<f64>,
    /// The weight of a link: the machine's own rate divided by the rate of the link.
    weights: Vec<f64>,
    /// The latency of every link, if all are equal.
    same_ns: Option<f64>,
    /// The mean latency of all links.
    mean_ns: f64,
}

impl Speeds {
    pub fn new(network: &Network, plane: &Plane) -> Self {
        let speeds = network.speeds(plane);
        let alphas_ns: Vec<f64> =
            speeds.iter().map(|s| network.output_latency_ns + s.latency_ns + network.input_latency_ns).collect();
        let links = plane.links().len().max(1) as f64;
        let same = alphas_ns.iter().all(|alpha| *alpha == alphas_ns[0]);
        let alpha = |link: &unisono_machine::network::Link| alphas_ns[usize::from(link.speed)];
        Self {
            same_ns: same.then_some(alphas_ns[0]),
            mean_ns: if same { alphas_ns[0] } else { plane.links().iter().map(alpha).sum::<f64>() / links },
            links_ns: speeds.iter().map(|s| s.latency_ns).collect(),
            weights: speeds.iter().map(|s| network.own_speed().gbps / s.gbps).collect(),
            alphas_ns,
        }
    }

    /// Returns the latency, in ns, of a path over links of these speeds. If all latencies are equal, the latency is a
    /// product, so its rounding does not depend on an order.
    pub fn way_ns(&self, speeds: impl ExactSizeIterator<Item = u8>) -> f64 {
        match self.same_ns {
            Some(alpha) => speeds.len() as f64 * alpha,
            None => speeds.map(|speed| self.alpha_ns(speed)).sum(),
        }
    }

    #[inline]
    pub fn alpha_ns(&self, speed: u8) -> f64 {
        self.alphas_ns[usize::from(speed)]
    }

    /// Returns the ns from the start of a packet of length 0 on a link until the node before the link has the packet's
    /// credit back, if the packet does not wait at the end of the link.
    pub fn round_trip_ns(&self, speed: u8) -> f64 {
        self.alpha_ns(speed) + self.links_ns[usize::from(speed)]
    }

    /// Returns the latency of every link in ns, if all are equal.
    pub fn same_ns(&self) -> Option<f64> {
        self.same_ns
    }

    pub fn mean_ns(&self) -> f64 {
        self.mean_ns
    }

    #[inline]
    pub fn weight(&self, speed: u8) -> f64 {
        self.weights[usize::from(speed)]
    }

    /// Returns the total rate of all links of a node, divided by the machine's own rate of one link.
    pub fn injection(&self, plane: &Plane, node: u32) -> f64 {
        if self.is_even() {
            return plane.leaving(node).len() as f64;
        }
        plane.leaving(node).map(|id| 1.0 / self.weight(plane.link(id).speed)).sum()
    }

    /// Returns true if all links have the machine's own speed.
    pub fn is_even(&self) -> bool {
        self.weights.len() == 1
    }

    /// Returns the weight of the fastest speed.
    pub fn least_weight(&self) -> f64 {
        self.weights.iter().copied().fold(f64::INFINITY, f64::min)
    }
}
