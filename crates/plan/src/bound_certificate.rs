//! Certificates of bounds: prices of links. From these prices, anyone can compute the bound `cut` of a collective on a
//! network, or the bound `flow` of an all-to-all.

use serde::{Deserialize, Serialize};
use unisono_base::{excerpt, keyed};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_cost::network::{NetworkPart, cut_roots, least_cut};
use unisono_machine::{
    Machine,
    network::{AcceleratorGrid, Failure, Network},
};
use unisono_synthesis::Certificate;

use crate::{Part, PlanError, Problem};

/// The version of the file format.
const FORMAT: &str = "unisono-bound 1";
/// The fraction by which the proved bound may be below the stated bound, because seconds are rounded.
const ROUNDING: f64 = 1e-9;

/// The most words of the parser's message that an error contains.
const MOST_WORDS: usize = 40;

/// A certificate with its problem, as stored in a file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundCertificate {
    pub format: String,
    pub machine: String,
    /// The number of boxes, if the machine consists of boxes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u64>,
    /// The failed links and nodes of the machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
    pub collective: String,
    /// The name of the bound that the prices prove.
    pub bound: String,
    pub root: u32,
    /// The accelerator on which each rank runs.
    pub places: Vec<u32>,
    /// The bytes of the block of each rank, or of the vector.
    pub bytes: u64,
    /// The bound in seconds that the prices prove.
    pub seconds: f64,
    /// The prices of links between nodes of a plane. All other links have price 0.
    #[serde(flatten)]
    pub prices: Certificate,
}

/// The result of checking a certificate: its problem, and the proved bound or the reason why the check failed.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BoundProof {
    pub holds: bool,
    pub method: &'static str,
    pub error_probability: f64,
    pub reason: Option<String>,
    pub collective: String,
    pub bytes: u64,
    /// The root, for collectives that have one.
    pub root: Option<u32>,
    pub ranks: usize,
    pub machine: String,
    /// The number of boxes, if the machine consists of boxes.
    pub nodes: Option<u64>,
    pub failed: Vec<String>,
    /// The accelerator on which each rank runs.
    pub places: Vec<u32>,
    /// The name of the bound: `cut`, or `flow` for an all-to-all.
    pub bound: &'static str,
    pub seconds: Option<f64>,
}

impl BoundCertificate {
    /// Returns the name of the bound that a certificate for a collective proves.
    fn bound(kind: Kind) -> &'static str {
        if kind == Kind::Alltoall { "flow" } else { "cut" }
    }

    /// Returns the certificate of the bound `cut` or, for an all-to-all, `flow`.
    ///
    /// # Errors
    /// Returns an error if the machine has no such bound, it does not apply to the collective, or no link is needed.
    pub fn of(problem: &Problem) -> Result<Self, PlanError> {
        let (collective, target) = (&problem.collective, &problem.target);
        let Some(part) = target.part().downcast_ref::<NetworkPart>() else {
            let (kind, machine) = (collective.kind, target.machine().name());
            let message = format!("no bound of {kind} on {machine} has a certificate; those on networks have");
            return Err(PlanError::NoCertificate(message));
        };
        if collective.is_local() {
            let message = format!("{} on one rank needs no link, so its bound has no certificate", collective.kind);
            return Err(PlanError::NoCertificate(message));
        }
        let part = part.of_data_sheet();
        let graph = part.fabric.graph();
        let prices = match collective.kind {
            Kind::Alltoall => match part.fabric.concurrent_flow() {
                Ok(flow) => Ok(Certificate::of_flow(graph, &flow)),
                Err(reason) => Err(format!("the bound of {} has no certificate: {reason}", collective.kind)),
            },
            _ => match least_cut(collective, &part.fabric) {
                Some(cut) => Ok(Certificate::of(graph, &cut)),
                None => Err(not_bounded(collective)),
            },
        };
        let prices = prices.map_err(PlanError::NoCertificate)?;
        let mut certificate = Self {
            format: FORMAT.to_owned(),
            machine: part.network.name.clone(),
            nodes: boxes(&part.network),
            failed: failures(&part.network.failed),
            collective: collective.kind.name().to_owned(),
            bound: Self::bound(collective.kind).to_owned(),
            root: collective.root,
            places: part.model.places().to_vec(),
            bytes: collective.bytes(),
            seconds: 0.0,
            prices,
        };
        certificate.seconds = certificate.proved(collective, part).map_err(PlanError::NoCertificate)?;
        Ok(certificate)
    }

    /// Returns the certificate as JSON text.
    ///
    /// # Panics
    /// Does not panic, because numbers and names have a text.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and names have a text") + "\n"
    }

    /// Reads a certificate from JSON text.
    ///
    /// # Errors
    /// Returns an error if the text is not a certificate of a bound.
    pub fn parse(text: &str) -> Result<Self, PlanError> {
        let found: Self = keyed::json(text.as_bytes()).map_err(|e| {
            // The parser's message repeats field names of the file, so each word is shortened.
            let words: Vec<String> = e.to_string().split_whitespace().take(MOST_WORDS).map(excerpt).collect();
            PlanError::NoCertificate(format!("it is no certificate of a bound: {}", words.join(" ")))
        })?;
        if found.format != FORMAT {
            let message = format!("the format is '{}'; accepted is '{FORMAT}'", excerpt(&found.format));
            return Err(PlanError::NoCertificate(message));
        }
        Ok(found)
    }

    /// Computes the bound from the prices and the links of a machine. This needs no search for cuts or forests, and no
    /// linear program. If `part` is a shape or a list of places, its ranks must be those of the certificate.
    ///
    /// # Errors
    /// Returns an error if the machine has no links, the problem does not fit it, or the work exceeds a limit.
    pub fn check(&self, machine: &Machine, part: &Part) -> Result<BoundProof, PlanError> {
        let refused = |message: String| PlanError::NoCertificate(message);
        let network: &Network = machine
            .get()
            .ok_or_else(|| refused(format!("bounds on {} have no certificates; networks have", machine.name())))?;
        let kind = Kind::ALL.iter().copied().find(|kind| kind.name() == self.collective);
        let kind = kind.ok_or_else(|| refused(format!("'{}' is no collective", excerpt(&self.collective))))?;
        let ranks = u32::try_from(self.places.len()).map_err(|_| refused("too many ranks".to_owned()))?;
        // The bound depends on the bytes, not on the number of elements.
        let collective = Collective::new(kind, ranks, 1, u64::from(self.root), Operator::Sum, Dtype::F32)?;
        let found = match self.belongs_to(network).and_then(|()| self.is_on(network, part)) {
            Ok(()) => self.holds(&collective, &NetworkPart::new(network, self.places.clone(), &[])?),
            Err(message) => Err(message),
        };
        Ok(BoundProof {
            holds: found.is_ok(),
            method: "certificate",
            error_probability: 0.0,
            collective: self.collective.clone(),
            bytes: self.bytes,
            root: kind.has_root().then_some(self.root),
            ranks: self.places.len(),
            machine: network.name.clone(),
            nodes: boxes(network),
            failed: failures(&network.failed),
            places: self.places.clone(),
            bound: Self::bound(kind),
            seconds: found.as_ref().ok().copied(),
            reason: found.err(),
        })
    }

    /// Returns an error if the certificate is for another machine, number of boxes, or set of failures than `network`.
    fn belongs_to(&self, network: &Network) -> Result<(), String> {
        let (stated, found) = (failures(&self.failed), failures(&network.failed));
        let nodes = boxes(network);
        if network.name == self.machine && stated == found && nodes == self.nodes {
            return Ok(());
        }
        let named = |name: &str, nodes: Option<u64>, failed: &[String]| {
            let of = match nodes {
                None => String::new(),
                Some(1) => " of 1 box".to_owned(),
                Some(nodes) => format!(" of {nodes} boxes"),
            };
            let without = if failed.is_empty() { "" } else { " without " };
            format!("{}{of}{without}{}", excerpt(name), excerpt(&failed.join(", ")))
        };
        let (own, other) = (named(&self.machine, self.nodes, &stated), named(&network.name, nodes, &found));
        Err(format!("it is for {own}, not for {other}"))
    }

    /// Returns an error if `part` is a shape or a list of places, and the certificate's ranks are not on those places.
    fn is_on(&self, network: &Network, part: &Part) -> Result<(), String> {
        let places = match part {
            Part::All | Part::Nodes(_) => return Ok(()),
            Part::Places(places) => places.clone(),
            Part::Shape(shape) => {
                let topology = network.topology(&network.name).map_err(|e| e.to_string())?;
                let grid = AcceleratorGrid::of(&network.name, &*topology, Some(*shape));
                grid.map_err(|e| e.to_string())?.nodes
            }
        };
        if places == self.places {
            return Ok(());
        }
        let ranks = self.places.len();
        let are = if ranks == 1 { "rank is not that" } else { "ranks are not those" };
        Err(format!("its {ranks} {are} of {part} of {}", network.name))
    }

    /// Returns the seconds that the prices prove for a collective on a part of a network.
    ///
    /// # Errors
    /// Returns an error if the prices prove less than the certificate states.
    fn holds(&self, collective: &Collective, part: &NetworkPart) -> Result<f64, String> {
        let bound = Self::bound(collective.kind);
        if self.bound != bound {
            return Err(format!(
                "it is for the bound {}; prices for {} prove {bound}",
                excerpt(&self.bound),
                collective.kind
            ));
        }
        // A barrier has one element, and the certificate does not state its type.
        let most = Dtype::ALL.iter().map(|dtype| dtype.bytes()).max().unwrap_or(0);
        if collective.kind == Kind::Barrier && self.bytes > most {
            return Err(format!("a barrier has one element, and no element has {} bytes", self.bytes));
        }
        let proved = self.proved(collective, part)?;
        // The comparison cannot involve NaN, because JSON has no NaN.
        if self.seconds > proved * (1.0 + ROUNDING) {
            return Err(format!("the prices prove {proved:e} s, and it states {:e} s", self.seconds));
        }
        Ok(proved)
    }

    fn proved(&self, collective: &Collective, part: &NetworkPart) -> Result<f64, String> {
        let graph = part.of_data_sheet().fabric.graph();
        let proved = match (collective.kind, cut_roots(collective)) {
            (Kind::Alltoall, _) => self.prices.flow_bound(graph),
            (Kind::Gather | Kind::Scatter, _) => self.prices.scatter_bound(graph, collective.root),
            (_, Some(roots)) => self.prices.bound(graph, &roots.list(graph.ranks())),
            (_, None) => return Err(not_bounded(collective)),
        };
        let (price, capacity) = proved.map_err(|e| e.to_string())?;
        Ok(price as f64 / capacity as f64 * self.bytes as f64 / graph.bytes_per_ns() * 1e-9)
    }
}

fn not_bounded(collective: &Collective) -> String {
    format!("the bound with a certificate does not apply to {}", collective.kind)
}

/// Returns the number of boxes, if the network consists of boxes.
fn boxes(network: &Network) -> Option<u64> {
    network.topology.get("boxes")?.as_integer()?.try_into().ok()
}

/// Returns failures in a canonical form and order, so that lists can be compared.
fn failures(stated: &[String]) -> Vec<String> {
    let mut failures: Vec<_> = stated
        .iter()
        .map(|text| text.parse::<Failure>().map_or_else(|_| text.clone(), |failure| failure.to_string()))
        .collect();
    failures.sort();
    failures.dedup();
    failures
}
