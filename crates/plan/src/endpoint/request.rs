//! What a user asks for among ranks, checked.

use unisono_algorithms::{Case, Ranks};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_cost::endpoint::{EndpointCase, LevelPrices, TICKS_PER_NS};
use unisono_machine::{Endpoint, EndpointModel, RankOrder};

use crate::PlanError;

/// One collective on the ranks of one machine, by one of the models that it has the parameters for.
#[derive(Clone, PartialEq, Debug)]
pub struct EndpointRequest {
    pub collective: Collective,
    pub machine: Endpoint,
    pub model: EndpointModel,
    pub prices: LevelPrices,
}

impl EndpointRequest {
    /// # Errors
    /// No ranks, a root outside them, counts that do not fit, a model whose parameters the machine does not say.
    #[expect(clippy::too_many_arguments, reason = "what a user says of a collective")]
    pub fn new(
        kind: Kind,
        machine: &Endpoint,
        ranks: Option<u32>,
        elements: u64,
        root: u64,
        operator: Operator,
        dtype: Dtype,
        model: Option<&str>,
    ) -> Result<Self, PlanError> {
        let ranks = machine.choose(ranks)?;
        let collective = Collective::new(kind, ranks, elements, root, operator, dtype)?;
        let model = model.map_or(Ok(machine.model), endpoint_model)?;
        let prices = LevelPrices::new(machine, model, ranks)?;
        Ok(Self { collective, machine: machine.clone(), model, prices })
    }

    pub fn case(&self) -> Case {
        let of = self.prices.outermost();
        let (empty, full) = (of.send(0), of.send(1 << 20));
        let per_byte = |a: u64, b: u64| b.saturating_sub(a) as f64 / f64::from(1 << 20) / TICKS_PER_NS;
        let issue = empty.cpu.max(empty.nic);
        let node = |order| self.machine.level_ranks().first().copied().filter(|_| self.machine.placement == order);
        Case::on_ranks(
            self.collective,
            Ranks {
                latency_ns: empty.flight.saturating_sub(issue) as f64 / TICKS_PER_NS,
                issue_ns: issue as f64 / TICKS_PER_NS,
                ns_per_byte: per_byte(issue, full.cpu.max(full.nic)),
                reduce_ns_per_byte: of.reduce_ticks_per_byte() / TICKS_PER_NS,
                node_ranks: node(RankOrder::Block),
                dealt_node_ranks: node(RankOrder::Cyclic),
                extents: None,
            },
        )
    }

    pub fn bound_case(&self) -> EndpointCase<'_> {
        EndpointCase { collective: self.collective, prices: &self.prices }
    }
}

/// # Errors
/// An unknown name.
pub(crate) fn endpoint_model(name: &str) -> Result<EndpointModel, PlanError> {
    EndpointModel::ALL.iter().copied().find(|m| m.name() == name).ok_or_else(|| PlanError::Model {
        found: name.to_owned(),
        accepted: EndpointModel::ALL.iter().map(|m| m.name()).collect::<Vec<_>>().join(", "),
    })
}
