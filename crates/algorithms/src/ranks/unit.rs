//! An algorithm among ranks, as a registered algorithm.

use unisono_base::{NodeId, narrow};
use unisono_collective::{Collective, Kind};
use unisono_lower::{Exchange, Placed, Round, Trees};
use unisono_schedule::{Builder, Operand};

use crate::{Algorithm, AlgorithmError, Case, Info, Means, Params, Profile, Size, catalog::too_large, compose::lacks};

/// A way to make collectives among ranks. A new one is a file in `catalog/` that says this, and its line there.
pub trait RankAlgorithm: Sync {
    fn info(&self) -> &'static Info;

    /// Whether it combines the ranks' operands in their order, as operators that do not commute need it.
    fn keeps_order(&self, _collective: &Collective) -> bool {
        false
    }

    /// # Errors
    /// A parameter that does not fit, or the reason why it cannot make this collective; that it is one of
    /// [`RankAlgorithm::collectives`] and that the operator may be reordered is checked before.
    fn check(&self, _case: &Case, _params: &Params) -> Result<(), AlgorithmError> {
        Ok(())
    }

    /// No fewer instructions than [`RankAlgorithm::emit`] makes, so that what outgrows any memory is refused. As it
    /// stands here: four a rank in each of log2 P rounds.
    fn instructions(&self, case: &Case, _params: &Params) -> u64 {
        let ranks = u64::from(case.collective.ranks);
        ranks * (4 * u64::from(ranks.ilog2()) + 4)
    }

    /// Adds the instructions of all ranks. Node `k` is rank `k`; there are at least two, for one rank alone only copies
    /// its input. No elements are a valid case.
    ///
    /// # Errors
    /// As [`RankAlgorithm::check`].
    fn emit(&self, b: &mut Builder, case: &Case, params: &Params) -> Result<(), AlgorithmError>;

    /// The rounds of all ranks, or of the slowest, so that large cases can be timed without the schedule. There are at
    /// least two ranks. As it stands here: those of the exchanges, where every flow of an exchange takes as many turns.
    fn rounds(&self, case: &Case, params: &Params) -> Option<Vec<Round>> {
        rounds_of(&self.exchanges(case, params)?)
    }

    /// Where all ranks do alike: who sends how much to whom, so that networks can be timed without the schedule. There
    /// are at least two ranks.
    fn exchanges(&self, _case: &Case, _params: &Params) -> Option<Vec<Exchange>> {
        None
    }

    /// Where messages follow trees over known links: what these take. There are at least two ranks.
    fn trees(&self, _case: &Case, _params: &Params) -> Option<Trees> {
        None
    }

    /// Parameters worth ranking for a case.
    fn candidates(&self, _case: &Case) -> Vec<Params> {
        vec![Params::new()]
    }

    /// As [`Algorithm::chosen`].
    fn chosen(&self, _case: &Case, params: &Params) -> Params {
        params.clone()
    }
}

/// Exchanges as rounds: each turn sends a message of every flow, which are lanes.
fn rounds_of(exchanges: &[Exchange]) -> Option<Vec<Round>> {
    let round = |exchange: &Exchange| {
        let first = exchange.flows.first()?;
        let alike = exchange.flows.iter().all(|flow| (flow.bytes, flow.repeat) == (first.bytes, first.repeat));
        let reduced = exchange.reduced.checked_div(u64::from(first.repeat))?;
        let messages = narrow::<u32>(exchange.flows.len());
        alike.then(|| Round::lanes(messages, first.bytes).reducing(reduced).times(first.repeat))
    };
    exchanges.iter().map(round).collect()
}

/// Makes an algorithm of a way among ranks.
pub struct Among<T>(pub T);

impl<T: RankAlgorithm> Algorithm for Among<T> {
    fn info(&self) -> &'static Info {
        self.0.info()
    }

    fn supports(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        supports(&self.0, case, params)
    }

    fn build(&self, case: &Case, params: &Params) -> Result<Placed, AlgorithmError> {
        build(&self.0, case, params)
    }

    fn profile(&self, case: &Case, params: &Params) -> Option<Profile> {
        profile(&self.0, case, params)
    }

    fn size(&self, case: &Case, params: &Params) -> Size {
        Size { instructions: Some(self.0.instructions(case, params)), ..Size::default() }
    }

    fn candidates(&self, case: &Case) -> Vec<Params> {
        self.0.candidates(case)
    }

    fn chosen(&self, case: &Case, params: &Params) -> Params {
        self.0.chosen(case, params)
    }
}

/// Whether `unit` makes the collective of `case`.
pub fn supports(unit: &dyn RankAlgorithm, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
    let c = &case.collective;
    let info = unit.info();
    if !case.offers().contains(&Means::Messages) {
        return Err(lacks(info, case.offers()));
    }
    let no = |reason| Err(AlgorithmError::Unsupported { algorithm: info.name, reason });
    if !info.collectives.contains(&c.kind) {
        let made = info.collectives.iter().map(|k| k.name()).collect::<Vec<_>>().join(", ");
        return no(format!("it makes {made}, not {}", c.kind));
    }
    if c.kind.reduces() && c.kind != Kind::Barrier && !c.operator.commutative() && !unit.keeps_order(c) {
        return no(format!("it reorders operands, and operator {} does not commute", c.operator));
    }
    unit.check(case, params)?;
    // A case too large to build can still be timed by its closed form.
    if profile(unit, case, params).is_some() { Ok(()) } else { check_size(unit, case, params) }
}

fn check_size(unit: &dyn RankAlgorithm, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
    match too_large(unit.instructions(case, params)) {
        Some(reason) if case.collective.ranks > 1 => {
            Err(AlgorithmError::Unsupported { algorithm: unit.info().name, reason })
        }
        _ => Ok(()),
    }
}

/// The schedule of `unit` in `case`.
pub fn build(unit: &dyn RankAlgorithm, case: &Case, params: &Params) -> Result<Placed, AlgorithmError> {
    check_size(unit, case, params)?;
    let mut b = Builder::new(case.collective);
    if case.collective.ranks == 1 {
        let len = case.collective.output_len(0);
        b.combine(NodeId(0), 0, len, &[Operand::In(0)], &[Operand::Out(0)]);
    } else {
        unit.emit(&mut b, case, params)?;
    }
    Ok(Placed::among_ranks(b.finish()?))
}

/// The closed form of `unit` in `case`: exchanges on a network, rounds elsewhere.
pub fn profile(unit: &dyn RankAlgorithm, case: &Case, params: &Params) -> Option<Profile> {
    let alone = case.collective.ranks == 1;
    if case.ranks().extents.is_some() {
        if alone {
            return Some(Profile::Exchanges(Vec::new()));
        }
        let exchanges = unit.exchanges(case, params).map(Profile::Exchanges);
        exchanges.or_else(|| unit.trees(case, params).map(Profile::Trees))
    } else {
        let rounds = if alone { Some(Vec::new()) } else { unit.rounds(case, params) };
        rounds.map(Profile::Rounds)
    }
}
