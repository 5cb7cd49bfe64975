//! Certificates of bounds: prices of links from which anyone can compute the bound `cut` of a collective on a
//! network, or the bound `flow` of an all-to-all.

use serde::{Deserialize, Serialize};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_cost::network::{NetworkPart, cut_roots};
use unisono_machine::{Machine, network::Network};
use unisono_synthesis::Certificate;

use crate::PlanError;

/// The version of the file.
const FORMAT: &str = "unisono-bound 1";
/// A bound that is proved may be smaller than the one that is stated by this share, for the rounding of seconds.
const ROUNDING: f64 = 1e-9;

/// A certificate with the problem that it belongs to, as in a file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundCertificate {
    pub format: String,
    /// The name of the machine.
    pub machine: String,
    pub collective: String,
    pub root: u32,
    /// The accelerator of each rank.
    pub places: Vec<u32>,
    /// Bytes of the block of each rank, or of the vector.
    pub bytes: u64,
    /// The bound that the prices prove.
    pub seconds: f64,
    /// Of links from one node of a plane to another; all others cost nothing.
    #[serde(flatten)]
    pub prices: Certificate,
}

impl BoundCertificate {
    /// Returns the certificate of the bound `cut` or, of an all-to-all, `flow`; `None` where they do not apply.
    pub fn of(collective: &Collective, part: &NetworkPart) -> Option<Self> {
        let graph = part.fabric.graph();
        let prices = match collective.kind {
            Kind::Alltoall => Certificate::of_flow(graph, &*part.fabric.concurrent_flow()?),
            _ => Certificate::of(graph, &part.fabric.cut(cut_roots(collective)?)),
        };
        let mut certificate = Self {
            format: FORMAT.to_owned(),
            machine: part.network.name.clone(),
            collective: collective.kind.name().to_owned(),
            root: collective.root,
            places: part.model.places().to_vec(),
            bytes: u64::from(collective.elements) * collective.dtype.bytes(),
            seconds: 0.0,
            prices,
        };
        certificate.seconds = certificate.proved(collective, part).ok()?;
        Some(certificate)
    }

    /// The text of a file.
    ///
    /// # Panics
    /// Never: numbers and names have a text.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and names have a text") + "\n"
    }

    /// # Errors
    /// The text is no certificate of a bound.
    pub fn parse(text: &str) -> Result<Self, PlanError> {
        let found: Self = serde_json::from_str(text)
            .map_err(|e| PlanError::NoCertificate(format!("it is no certificate of a bound: {e}")))?;
        if found.format != FORMAT {
            let message = format!("the format is '{}'; accepted is '{FORMAT}'", found.format);
            return Err(PlanError::NoCertificate(message));
        }
        Ok(found)
    }

    /// Computes the bound from the prices and the links of a machine, without cuts, forests or linear programs. Returns the
    /// bound in seconds; the message says why the certificate does not hold.
    ///
    /// # Errors
    /// The machine has no links, or the problem does not fit it.
    pub fn check(&self, machine: &Machine) -> Result<Result<f64, String>, PlanError> {
        let refused = |message: String| PlanError::NoCertificate(message);
        let network: &Network = machine
            .get()
            .ok_or_else(|| refused(format!("bounds on {} have no certificates; networks have", machine.name())))?;
        if network.name != self.machine {
            return Ok(Err(format!("it is for {}, not for {}", self.machine, network.name)));
        }
        let kind = Kind::ALL.iter().copied().find(|kind| kind.name() == self.collective);
        let kind = kind.ok_or_else(|| refused(format!("'{}' is no collective", self.collective)))?;
        let ranks = u32::try_from(self.places.len()).map_err(|_| refused("too many ranks".to_owned()))?;
        // The elements do not matter: bytes count.
        let collective = Collective::new(kind, ranks, 1, u64::from(self.root), Operator::Sum, Dtype::F32)?;
        let part = NetworkPart::new(network, self.places.clone(), &[])?;
        let proved = match self.proved(&collective, &part) {
            Ok(seconds) => seconds,
            Err(message) => return Ok(Err(message)),
        };
        // Numbers of JSON are never NaN.
        if self.seconds > proved * (1.0 + ROUNDING) {
            return Ok(Err(format!("the prices prove {proved:e} s, and it states {:e} s", self.seconds)));
        }
        Ok(Ok(proved))
    }

    fn proved(&self, collective: &Collective, part: &NetworkPart) -> Result<f64, String> {
        let graph = part.fabric.graph();
        let proved = match (collective.kind, cut_roots(collective)) {
            (Kind::Alltoall, _) => self.prices.flow_bound(graph),
            (_, Some(roots)) => self.prices.bound(graph, &roots.list(graph.ranks())),
            (_, None) => return Err(format!("the bound does not apply to {}", collective.kind)),
        };
        let (price, capacity) = proved.map_err(|e| e.to_string())?;
        Ok(price as f64 / capacity as f64 * self.bytes as f64 / graph.bytes_per_ns() * 1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Asked, Part, Problem};

    #[test]
    fn prices_prove_the_bound_and_no_more() {
        let machine = Machine::preset("torus2d-small").unwrap();
        let problem =
            Problem::new(&Asked::new(Kind::Allgather, &machine, Part::Shape("4x4".parse().unwrap()), 256)).unwrap();
        let certificate = problem.target.certificate(problem.collective).unwrap();
        let text = serde_json::to_string(&certificate).unwrap();
        let read = BoundCertificate::parse(&text).unwrap();
        assert_eq!(read.check(&machine).unwrap(), Ok(certificate.seconds));
        let mut more = read.clone();
        more.seconds *= 1.001;
        assert!(more.check(&machine).unwrap().is_err());
        let mut elsewhere = read.clone();
        elsewhere.prices.prices[0].0 = 900;
        assert!(elsewhere.check(&machine).unwrap().is_err());
        assert!(read.check(&Machine::preset("archer").unwrap()).is_err());
        assert!(BoundCertificate::parse("{}").is_err());
    }
}
