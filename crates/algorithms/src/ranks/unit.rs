//! An algorithm among ranks, as a registered algorithm.

use unisono_base::NodeId;
use unisono_collective::{Collective, Kind};
use unisono_lower::{Exchange, Round};
use unisono_schedule::{Builder, Operand, Schedule};

use crate::{Algorithm, AlgorithmError, Case, Param, Params, PlaceKind, catalog::too_large, compose::not_for};

/// A way to make collectives among ranks. A new one is a file in `catalog/` that says this, and its line there.
pub trait RankAlgorithm: Sync {
    fn name(&self) -> &'static str;
    fn summary(&self) -> &'static str;
    fn reference(&self) -> &'static str;
    fn collectives(&self) -> &'static [Kind];

    fn params(&self) -> &'static [Param] {
        &[]
    }

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

    /// Where all ranks do the same in rounds: these rounds, so that cases too large to build can be timed. There are at
    /// least two ranks.
    fn rounds(&self, _case: &Case, _params: &Params) -> Option<Vec<Round>> {
        None
    }

    /// Where all ranks do alike: who sends how much to whom, so that networks can be timed without the schedule. There
    /// are at least two ranks.
    fn exchanges(&self, _case: &Case, _params: &Params) -> Option<Vec<Exchange>> {
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

/// Makes an algorithm of a way among ranks.
pub struct Among<T>(pub T);

impl<T: RankAlgorithm> Algorithm for Among<T> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn summary(&self) -> &'static str {
        self.0.summary()
    }

    fn reference(&self) -> &'static str {
        self.0.reference()
    }

    fn collectives(&self) -> &'static [Kind] {
        self.0.collectives()
    }

    fn params(&self) -> &'static [Param] {
        self.0.params()
    }

    fn runs_on(&self) -> &'static [PlaceKind] {
        PlaceKind::RANKS
    }

    fn supports(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        supports(&self.0, case, params)
    }

    fn schedule(&self, case: &Case, params: &Params) -> Result<Schedule, AlgorithmError> {
        schedule(&self.0, case, params)
    }

    fn rounds(&self, case: &Case, params: &Params) -> Option<Vec<Round>> {
        rounds(&self.0, case, params)
    }

    fn exchanges(&self, case: &Case, params: &Params) -> Option<Vec<Exchange>> {
        exchanges(&self.0, case, params)
    }

    fn instructions(&self, case: &Case, params: &Params) -> Option<u64> {
        Some(self.0.instructions(case, params))
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
    if case.kind() == PlaceKind::Wafer {
        return Err(not_for(unit.name(), PlaceKind::RANKS, case.kind()));
    }
    let no = |reason| Err(AlgorithmError::Unsupported { algorithm: unit.name(), reason });
    if !unit.collectives().contains(&c.kind) {
        let made = unit.collectives().iter().map(|k| k.name()).collect::<Vec<_>>().join(", ");
        return no(format!("it makes {made}, not {}", c.kind));
    }
    if c.kind.reduces() && c.kind != Kind::Barrier && !c.operator.commutative() && !unit.keeps_order(c) {
        return no(format!("it reorders operands, and operator {} does not commute", c.operator));
    }
    unit.check(case, params)?;
    // What is too large to build can still be timed by its rounds.
    if rounds(unit, case, params).is_some() || exchanges(unit, case, params).is_some() {
        Ok(())
    } else {
        check_size(unit, case, params)
    }
}

fn check_size(unit: &dyn RankAlgorithm, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
    match too_large(unit.instructions(case, params)) {
        Some(reason) if case.collective.ranks > 1 => {
            Err(AlgorithmError::Unsupported { algorithm: unit.name(), reason })
        }
        _ => Ok(()),
    }
}

/// The schedule of `unit` in `case`.
pub fn schedule(unit: &dyn RankAlgorithm, case: &Case, params: &Params) -> Result<Schedule, AlgorithmError> {
    check_size(unit, case, params)?;
    let mut b = Builder::new(case.collective);
    if case.collective.ranks == 1 {
        let len = case.collective.output_len(0);
        b.combine(NodeId(0), 0, len, &[Operand::In(0)], &[Operand::Out(0)]);
    } else {
        unit.emit(&mut b, case, params)?;
    }
    Ok(b.finish()?)
}

/// The rounds of `unit` in `case`, where it states them.
pub fn rounds(unit: &dyn RankAlgorithm, case: &Case, params: &Params) -> Option<Vec<Round>> {
    if case.collective.ranks == 1 { Some(Vec::new()) } else { unit.rounds(case, params) }
}

/// The exchanges of `unit` in `case`, where it states them.
pub fn exchanges(unit: &dyn RankAlgorithm, case: &Case, params: &Params) -> Option<Vec<Exchange>> {
    if case.collective.ranks == 1 { Some(Vec::new()) } else { unit.exchanges(case, params) }
}
