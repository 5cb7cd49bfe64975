//! Recursive multiplying: in each stage every rank sends its partial result to several others at once.
//!
//! It suits short vectors, whose messages cost little compared with the latency. With stages of b + 1 ranks T = sum
//! over stages of alpha_p + b (alpha_r + n beta + n gamma) (Eq. 3). The stages are a parameter, by default those of the
//! least T. A stage is one instruction that sends and one that reduces, in ascending order of ranks, so all ranks end
//! with the same bits.
//!
//! Source: Ruefenacht, Bull, Booth: "Generalisation of recursive doubling for AllReduce: Now with simulation", 2017.

use unisono_base::{NodeId, StreamId, narrow};
use unisono_collective::Kind;
use unisono_lower::Round;
use unisono_schedule::{Builder, Operand};

use crate::{
    AlgorithmError, Case, Formula, Info, Message, Param, Params,
    catalog::dissemination,
    multiplying::{Search, StagePrices, Stages, Wrap, best_factored, best_factors, orders, within_nodes},
    ranks::RankAlgorithm,
};

pub struct RecursiveMultiplying;

const INFO: Info = Info {
    name: "recursive-multiplying",
    summary: "exchanges among several ranks at once in each stage; best for short vectors where messages overlap",
    reference: "Ruefenacht, Bull, Booth: Generalisation of recursive doubling for AllReduce, 2017",
    collectives: &[Kind::Allreduce, Kind::Barrier],
    params: &[Param {
        name: "schedule",
        values: "stages such as a8,a3,a4 or c6m2,a2,a2,e6m2 or m1g2a3,n1g3a2; default the best for the machine",
    }],
    formulas: &[Formula::new(
        "pipelining-postal",
        &[Kind::Allreduce],
        "k (alpha_p + (a-1) (alpha_r + n beta + n gamma))",
    )
    .when("P = a^k, in k stages of a ranks")],
    ..Info::AMONG_RANKS
};

/// The most messages of a schedule. The tables of a larger schedule would take gigabytes.
const MOST_MESSAGES: u64 = 1 << 26;

impl RankAlgorithm for RecursiveMultiplying {
    const INFO: Info = INFO;

    /// [`RankAlgorithm::check`] refuses the only schedules that change the order of operands: merges that set several
    /// ranks apart.
    const KEEPS_ORDER: bool = true;

    fn check(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        let Some(stages) = given(case, params)? else {
            return Ok(());
        };
        let operator = case.collective.operator;
        if !operator.commutative() && !stages.keeps_order() {
            let reason = format!(
                "schedule {stages} reorders operands, and operator {operator} does not commute; merge one rank"
            );
            return Err(AlgorithmError::Unsupported { algorithm: INFO.name, reason });
        }
        Ok(())
    }

    fn emit(&self, b: &mut Builder, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        let stages = stages(case, params)?;
        let (ranks, len, messages) = (case.collective.ranks, case.collective.elements, stages.messages());
        if messages > MOST_MESSAGES {
            let reason = format!("schedule {stages} sends {messages} messages; at most {MOST_MESSAGES} are made");
            return Err(AlgorithmError::Unsupported { algorithm: INFO.name, reason });
        }
        b.reserve(2 * ranks as usize * stages.iter().count(), narrow::<usize>(messages));
        let mut have = vec![Operand::In(0); ranks as usize];
        let mut arrivals: Vec<(u32, u32, StreamId)> = Vec::new();
        let (mut to, mut operands) = (Vec::new(), Vec::new());
        for (at, running) in stages.run().enumerate() {
            b.phase(&format!("{}-{}", at + 1, running.stage));
            arrivals.clear();
            for rank in 0..ranks {
                to.clear();
                running.puts(rank, &mut to);
                // Each rank first sends to the next of its peers, so that the first messages go to different ranks.
                let after = to.partition_point(|&peer| peer < rank);
                to.rotate_left(after);
                operands.clear();
                for &peer in &to {
                    let stream = b.stream(NodeId(rank), &[NodeId(peer)]);
                    arrivals.push((peer, rank, stream));
                    operands.push(Operand::Stream(stream));
                }
                if !operands.is_empty() {
                    b.combine(NodeId(rank), 0, len, &[have[rank as usize]], &operands);
                }
            }
            // Messages are sorted by receiver, then by sender, which is the order of the reduction.
            arrivals.sort_unstable();
            for of_one in arrivals.chunk_by(|a, b| a.0 == b.0) {
                let rank = of_one[0].0;
                let before = of_one.partition_point(|&(_, from, _)| from < rank);
                let stream = |arrival: &(u32, u32, StreamId)| Operand::Stream(arrival.2);
                operands.clear();
                operands.extend(of_one[..before].iter().map(stream));
                if !running.replaces(rank) {
                    operands.push(have[rank as usize]);
                }
                operands.extend(of_one[before..].iter().map(stream));
                b.combine(NodeId(rank), 0, len, &operands, &[Operand::Out(0)]);
                have[rank as usize] = Operand::Out(0);
            }
        }
        if ranks == 1 {
            b.combine(NodeId(0), 0, len, &[Operand::In(0)], &[Operand::Out(0)]);
        }
        Ok(())
    }

    /// Returns rounds for factored schedules, otherwise `None`: at a split or a merge some ranks run ahead of others.
    fn rounds(&self, case: &Case, params: &Params) -> Option<Vec<Round>> {
        let stages = stages(case, params).ok().filter(|stages| stages.wrap() == Wrap::Plain)?;
        let bytes = case.bytes(case.collective.elements);
        let round = |factor: u32| Round::new(factor - 1, bytes).reducing(u64::from(factor - 1) * bytes);
        Some(stages.factors().iter().map(|&factor| round(factor)).collect())
    }

    /// Returns several schedules: for each kind of prices, the best factored schedule, merges and the best split; if
    /// consecutive ranks fill nodes of equal size, the best schedule inside a node followed by the best among nodes;
    /// and further orders of factors if the time depends on the order.
    fn candidates(&self, case: &Case) -> Vec<Params> {
        let ranks = case.collective.ranks;
        if ranks == 1 {
            return vec![Params::new()];
        }
        let mut found = Vec::new();
        for search in searches(case) {
            found.push(near(case, search.factored().stages));
            found.extend(search.merges().into_iter().take(MOST_MERGES).map(|best| near(case, best.stages)));
            found.extend(search.split().map(|best| near(case, best.stages)));
        }
        // The price of a stage that runs alone, in which an interface may run ahead of its gaps.
        let message = case.message(case.bytes(case.collective.elements));
        found.push(near(case, best_factors(ranks, |factor| Message::rounds_ns([(factor - 1, message)], true))));
        if let Some(node) =
            case.ranks().node_ranks.filter(|&node| node > 1 && node < ranks && ranks.is_multiple_of(node))
        {
            let prices = StagePrices::of(case);
            let mut factors = best_factored(node, &prices).stages.factors().to_vec();
            factors.extend(best_factored(ranks / node, &prices).stages.factors());
            found.extend(Stages::new(ranks, Wrap::Plain, factors));
        }
        // By the model, all orders of the plain factors have the same cost. The orders differ on a machine with nodes,
        // and if ranks that are set apart give other ranks a head start. Then the orders are further candidates, which
        // the caller times.
        let node = case.ranks().node_ranks.or(case.ranks().dealt_node_ranks);
        let differ = |stages: &Stages| node.is_some() || stages.wrap() != Wrap::Plain;
        let ordered = found.iter().filter(|stages| differ(stages)).flat_map(|stages| orders(stages).take(MOST_ORDERS));
        let ordered: Vec<Stages> = ordered.collect();
        let mut unique: Vec<Stages> = Vec::new();
        for stages in found.into_iter().chain(ordered) {
            if !unique.contains(&stages) {
                unique.push(stages);
            }
        }
        if case.collective.kind == Kind::Barrier && dissemination::is_at_once(ranks) {
            // A schedule with a single factor is omitted, because dissemination sends the same messages in a single
            // round.
            unique.retain(|stages| stages.factors().len() > 1 || stages.wrap() != Wrap::Plain);
        }
        unique.into_iter().map(|stages| Params::new().with("schedule", stages)).collect()
    }

    fn chosen(&self, case: &Case, params: &Params) -> Params {
        if case.collective.ranks == 1 || params.get("schedule").is_some() {
            return params.clone();
        }
        params.clone().with("schedule", near(case, search(case, StagePrices::of(case)).best().stages))
    }
}

/// The most merges of equal cost that are candidates.
const MOST_MERGES: usize = 8;

/// The most orders of one schedule that are candidates: all orders of four different factors.
const MOST_ORDERS: usize = 24;

fn search(case: &Case, prices: StagePrices) -> Search {
    Search::new(case.collective.ranks, prices).in_order(!case.collective.operator.commutative())
}

/// Returns one search by the prices of a sender, and one by the prices of a receiver if these differ by more than
/// rounding.
fn searches(case: &Case) -> Vec<Search> {
    const EQUAL: f64 = 1e-6;
    let (of_sender, of_receiver) = (StagePrices::of(case), StagePrices::of_receiver(case));
    let differs = |of: fn(&StagePrices) -> f64| (of(&of_receiver) / of(&of_sender) - 1.0).abs() > EQUAL;
    let is_new = differs(|prices| prices.factor_ns(2)) || differs(|prices| prices.send_ns);
    [of_sender].into_iter().chain(is_new.then_some(of_receiver)).map(|prices| search(case, prices)).collect()
}

/// Returns the schedule, reordered so that its early stages are inside a node, if the machine has nodes.
fn near(case: &Case, stages: Stages) -> Stages {
    match case.ranks().node_ranks {
        Some(node) => within_nodes(&stages, node),
        None => stages,
    }
}

/// Parses the schedule in the parameters; `None` if the parameters have none.
fn given(case: &Case, params: &Params) -> Result<Option<Stages>, AlgorithmError> {
    let parsed = params.get("schedule").map(|text| Stages::parse(text, case.collective.ranks));
    parsed.transpose().map_err(|error| AlgorithmError::Stages { algorithm: INFO.name, error })
}

/// Returns the schedule that the parameters state, or else the best.
fn stages(case: &Case, params: &Params) -> Result<Stages, AlgorithmError> {
    Ok(given(case, params)?.unwrap_or_else(|| near(case, search(case, StagePrices::of(case)).best().stages)))
}
