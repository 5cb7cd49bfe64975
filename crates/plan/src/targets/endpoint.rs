//! Ranks that exchange messages at the prices of a model. Times are simulated, or computed from rounds.

use std::{any::Any, sync::Arc};

use unisono_algorithms::{Algorithm, Case, Means, Message, Messages, Params, Profile, Ranks};
use unisono_base::narrow;
use unisono_collective::Collective;
use unisono_cost::{
    Time,
    endpoint::{LevelPrices, Prices, TICKS_PER_NS, rounds_ns, schedule_terms},
};
use unisono_lower::{Placed, Placement, Round, VerifiedFile};
use unisono_machine::{Endpoint, EndpointModel, Machine, RankOrder, Shape};
use unisono_schedule::Schedule;

use super::{TargetKind, anywhere, first_ranks, machine_of, no_part, opened};
use crate::{
    Part, Plan, PlanError, Prediction, Request, Run, RunError, RunOptions, Target, TimeSource, Timed,
    candidates::build,
    messages, run,
    target::{Details, is_first},
};

#[derive(Debug)]
struct OnRanks {
    machine: Machine,
    ranks: u32,
    model: EndpointModel,
    prices: LevelPrices,
}

pub const KIND: TargetKind = TargetKind {
    name: "endpoint",
    offers: &[Means::Messages],
    compares: &[],
    baseline: messages::of_libraries,
    open: |request| opened(request, on_ranks),
    place: anywhere,
    simulator: &run::ENDPOINT,
    simulate,
    simulate_beside: None,
    part: first_ranks,
};

fn on_ranks(request: &Request, machine: &Endpoint) -> Result<OnRanks, PlanError> {
    let ranks = machine.choose(match request.part {
        Part::All => None,
        Part::Shape(shape) if shape.grid.is_line() => Some(narrow(shape.grid.count())),
        _ => return Err(no_part(request, "a number of ranks")),
    })?;
    let named = request.model.map(model).transpose()?;
    let model = named.unwrap_or(machine.model);
    let prices = LevelPrices::new(machine, model, ranks)?;
    Ok(OnRanks { machine: request.machine.clone(), ranks, model, prices })
}

/// Simulates with the model in `options`, or with the machine's own.
fn simulate(proven: &VerifiedFile, options: &RunOptions) -> Result<Run, RunError> {
    let machine: &Endpoint = machine_of(proven.file());
    let model = options.model.as_deref().map_or(Ok(machine.model), model)?;
    let prices = LevelPrices::new(machine, model, proven.file().schedule.collective().ranks)?;
    messages::simulate(proven, &prices, options)
}

fn model(name: &str) -> Result<EndpointModel, PlanError> {
    EndpointModel::ALL.iter().copied().find(|m| m.name() == name).ok_or_else(|| PlanError::Model {
        found: name.to_owned(),
        accepted: EndpointModel::ALL.iter().map(|m| m.name()).collect::<Vec<_>>().join(", "),
    })
}

/// The most instructions of a candidate with known rounds that is simulated to be ranked.
const MOST_SIMULATED: u64 = 1 << 20;

/// The most instructions of a candidate without known rounds that is timed although the user does not name it.
const MOST_BUILT: u64 = 1 << 24;

impl OnRanks {
    fn endpoint(&self) -> &Endpoint {
        self.machine.get().expect("the kind of the machine")
    }

    /// Returns the rounds of a candidate that is too large to simulate for a ranking; `None` if it is small enough or
    /// its rounds are unknown.
    fn long_rounds(&self, collective: Collective, algorithm: &dyn Algorithm, params: &Params) -> Option<Vec<Round>> {
        let case = self.case(collective);
        if algorithm.size(&case, params).instructions.is_some_and(|count| count <= MOST_SIMULATED) {
            return None;
        }
        match algorithm.profile(&case, params)? {
            Profile::Rounds(rounds) => Some(rounds),
            _ => None,
        }
    }

    /// Returns a lower bound of the time in which a rank sends messages: the last message starts when the other
    /// messages have occupied the rank's CPU or interface.
    fn least_time(&self, sends: u64) -> Time {
        let (prices, send) = (self.prices.cheapest(), self.prices.cheapest().send(1));
        let each = if prices.uses_cpus() { send.cpu.max(send.nic) } else { send.nic };
        let ticks = u128::from(sends.saturating_sub(1)) * u128::from(each);
        Time::from_ns(ticks.saturating_sub(self.prices.gap_slack().into()) as f64 / TICKS_PER_NS)
    }

    fn run_within(&self, schedule: &Schedule, algorithm: &str, most: Option<Time>) -> Result<Option<Time>, PlanError> {
        messages::time(schedule, &self.prices, algorithm, self.model.name(), most)
    }
}

impl Messages for OnRanks {
    /// Returns the times of a message between members of the outermost level.
    fn message(&self, bytes: u64) -> Message {
        let prices = self.prices.outermost(bytes);
        let (send, receive) = (prices.send(bytes), prices.receive(bytes));
        let ns = |ticks: u64| ticks as f64 / TICKS_PER_NS;
        Message {
            send_cpu: ns(send.cpu),
            send_nic: ns(send.nic),
            flight: ns(send.flight),
            receive_cpu: ns(receive.cpu),
            receive_nic: ns(receive.nic),
            reduce: ns(prices.reduce(bytes)),
            uses_cpus: prices.uses_cpus(),
            slack: ns(self.prices.gap_slack()),
        }
    }
}

impl Target for OnRanks {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn shape(&self) -> Vec<u32> {
        vec![self.ranks]
    }

    fn model(&self) -> &'static str {
        self.model.name()
    }

    fn part(&self) -> &dyn Any {
        &self.prices
    }

    fn case(&self, collective: Collective) -> Case<'_> {
        let of = |bytes| self.prices.outermost(bytes);
        let (empty, full) = (of(0).send(0), of(1 << 20).send(1 << 20));
        let per_byte = |a: u64, b: u64| b.saturating_sub(a) as f64 / f64::from(1 << 20) / TICKS_PER_NS;
        let issue = empty.cpu.max(empty.nic);
        let machine = self.endpoint();
        let node = |order| machine.level_ranks().first().copied().filter(|_| machine.placement == order);
        Case::on_priced_ranks(
            collective,
            Ranks {
                latency_ns: empty.flight.saturating_sub(issue) as f64 / TICKS_PER_NS,
                issue_ns: issue as f64 / TICKS_PER_NS,
                signal_ns: 0.0,
                ns_per_byte: per_byte(issue, full.cpu.max(full.nic)),
                reduce_ns_per_byte: of(0).reduce_ticks_per_byte() / TICKS_PER_NS,
                node_ranks: node(RankOrder::Block),
                dealt_node_ranks: node(RankOrder::Cyclic),
                extents: None,
            },
            self,
        )
    }

    /// Returns one step for each instruction, or 0 for a candidate that is timed by its rounds. The steps only order
    /// candidates; build and simulation have their own limits.
    fn steps(&self, collective: Collective, algorithm: &dyn Algorithm, params: &Params) -> u128 {
        let instructions = algorithm.size(&self.case(collective), params).instructions.unwrap_or(0);
        if self.long_rounds(collective, algorithm, params).is_some() { 0 } else { instructions.into() }
    }

    fn is_slow(&self, collective: Collective, algorithm: &dyn Algorithm, params: &Params) -> bool {
        let case = self.case(collective);
        let large = algorithm.size(&case, params).instructions.is_some_and(|count| count > MOST_BUILT);
        large && algorithm.profile(&case, params).is_none()
    }

    /// Times a candidate by simulation, or a huge schedule by its rounds.
    fn time_within(
        &self,
        collective: Collective,
        algorithm: &'static dyn Algorithm,
        params: Params,
        most: Option<Time>,
    ) -> Result<Option<Timed>, PlanError> {
        let case = self.case(collective);
        let timed = |params, time, source| Some(Timed { algorithm, params, time, source, estimate: None });
        if let Some(rounds) = self.long_rounds(collective, algorithm, &params) {
            let time = Time::from_ns(rounds_ns(&rounds, &self.prices));
            return Ok(timed(params, time, TimeSource::Rounds));
        }
        let sends = algorithm.size(&case, &params).sends;
        if most.is_some_and(|most| self.least_time(sends).seconds > most.seconds) {
            return Ok(None);
        }
        let schedule = build(algorithm, &case, &params)?.schedule;
        let time = self.run_within(&schedule, algorithm.name(), most)?;
        Ok(time.and_then(|time| timed(params, time, TimeSource::Simulated)))
    }

    fn build(&self, collective: Collective, candidate: &Timed) -> Result<Placed, PlanError> {
        build(candidate.algorithm, &self.case(collective), &candidate.params)
    }

    fn among(&self, ranks: &[u32]) -> (Part, bool) {
        let first = Part::Shape(Shape::line(narrow(ranks.len())));
        (first, self.endpoint().levels.is_empty() || is_first(ranks))
    }

    fn levels(&self) -> Option<(Arc<dyn Target>, Arc<dyn Target>)> {
        let node = self.endpoint().level_ranks().first().copied().filter(|&node| 1 < node && node < self.ranks)?;
        let mut nodes = self.endpoint().clone();
        nodes.levels.remove(0);
        nodes.placement = RankOrder::Block;
        let part = |machine: Machine, ranks| {
            let prices = LevelPrices::new(machine.get()?, self.model, ranks).ok()?;
            Some(Arc::new(Self { machine, ranks, model: self.model, prices }) as Arc<dyn Target>)
        };
        Some((part(self.machine.clone(), node)?, part(nodes.into(), self.ranks.div_ceil(node))?))
    }

    fn details(&self, plan: &Plan) -> Result<Details, PlanError> {
        // A candidate that was timed by its rounds is too large to be built for its cost terms.
        let built = (plan.best().source == TimeSource::Simulated).then(|| plan.schedule().ok()).flatten();
        Ok(Details { terms: built.and_then(|schedule| schedule_terms(schedule).ok()), ..Details::default() })
    }

    fn predict(&self, schedule: &Schedule, _: Option<&Placement>) -> Result<Prediction, PlanError> {
        let time = self.run_within(schedule, schedule.origin(), None)?.expect("no time is longer");
        Ok(Prediction::new(time, TimeSource::Simulated, schedule_terms(schedule).ok()))
    }
}
