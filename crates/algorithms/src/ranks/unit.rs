//! The trait of algorithms among ranks, and the wrapper that makes an implementation an [`Algorithm`].

use unisono_base::{NodeId, narrow};
use unisono_collective::Kind;
use unisono_lower::{Exchange, Placed, Round, Trees};
use unisono_schedule::{Builder, Operand};

use crate::{Algorithm, AlgorithmError, Case, Info, Means, Params, Profile, Size, catalog::too_large, compose::lacks};

/// An algorithm among ranks. A new algorithm needs a file in `catalog/` that implements this trait, and an entry in the
/// registry.
pub trait RankAlgorithm: Sync {
    const INFO: Info;

    /// True if operands are combined in the order of ranks, as operators that do not commute require.
    const KEEPS_ORDER: bool = false;

    /// Checks the parameters and the case. The caller has checked the kind of collective and the order of the operator.
    ///
    /// # Errors
    /// Returns an error if a parameter is not accepted, or if the case is not supported.
    fn check(&self, _case: &Case, _params: &Params) -> Result<(), AlgorithmError> {
        Ok(())
    }

    /// Returns an upper bound of the instructions that [`RankAlgorithm::emit`] makes. Callers refuse schedules that
    /// would exhaust memory. The default is four per rank in each of floor(log2 P) rounds, and four more per rank.
    fn instructions(&self, case: &Case, _params: &Params) -> u64 {
        let ranks = u64::from(case.collective.ranks);
        ranks * (4 * u64::from(ranks.ilog2()) + 4)
    }

    /// Returns a lower bound of the messages that the busiest rank sends, for at least two ranks. Plans do not build
    /// schedules of too many messages.
    fn sends(&self, _case: &Case, _params: &Params) -> u64 {
        0
    }

    /// Emits the instructions of all ranks. Node `k` is rank `k`. There are at least two ranks, because the caller
    /// handles one rank. The vector may have no elements.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`RankAlgorithm::check`].
    fn emit(&self, b: &mut Builder, case: &Case, params: &Params) -> Result<(), AlgorithmError>;

    /// Returns the rounds of all ranks, or of the slowest rank, by which large cases are timed without the schedule.
    /// There are at least two ranks. By default the rounds follow from the exchanges, if all flows of an exchange have
    /// equally many messages of equal bytes; otherwise `None`.
    fn rounds(&self, case: &Case, params: &Params) -> Option<Vec<Round>> {
        rounds_of(&self.exchanges(case, params)?)
    }

    /// Returns the messages of all ranks if all ranks do the same, by which cases on networks are timed without the
    /// schedule. There are at least two ranks.
    fn exchanges(&self, _case: &Case, _params: &Params) -> Option<Vec<Exchange>> {
        None
    }

    /// Returns the properties from which the time of messages along trees over known links is computed. There are at
    /// least two ranks.
    fn trees(&self, _case: &Case, _params: &Params) -> Option<Trees> {
        None
    }

    /// Returns the values of the parameters that a plan compares for a case.
    fn candidates(&self, _case: &Case) -> Vec<Params> {
        vec![Params::new()]
    }

    /// Returns the settings of a named algorithm; see [`Algorithm::candidates_if_named`].
    fn candidates_if_named(&self, case: &Case) -> Vec<Params> {
        self.candidates(case)
    }

    /// Returns the parameters for shorter and for longer pieces; see [`Algorithm::recut`].
    fn recut(&self, _case: &Case, _params: &Params) -> [Option<Params>; 2] {
        [None, None]
    }

    /// Returns true if `params` states all parameters; see [`Algorithm::is_whole`].
    fn is_whole(&self, params: &Params) -> bool {
        params.has_all(Self::INFO.params.iter().map(|param| param.name))
    }

    /// Returns true if all ranks get the same bits; see [`Algorithm::gives_equal_bits`].
    fn gives_equal_bits(&self, _case: &Case, _params: &Params) -> bool {
        true
    }

    /// Adds chosen parameters; see [`Algorithm::chosen`].
    fn chosen(&self, _case: &Case, params: &Params) -> Params {
        params.clone()
    }
}

/// Converts exchanges to rounds with one lane for each flow; `None` unless the flows of each exchange have equally many
/// messages of equal bytes.
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

/// A wrapper that makes a [`RankAlgorithm`] an [`Algorithm`].
pub struct Among<T>(pub T);

impl<T: RankAlgorithm> Algorithm for Among<T> {
    fn info(&self) -> &'static Info {
        &T::INFO
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
        let sends = if case.collective.ranks > 1 { self.0.sends(case, params) } else { 0 };
        Size { instructions: Some(self.0.instructions(case, params)), sends, ..Size::default() }
    }

    fn candidates(&self, case: &Case) -> Vec<Params> {
        self.0.candidates(case)
    }

    fn candidates_if_named(&self, case: &Case) -> Vec<Params> {
        self.0.candidates_if_named(case)
    }

    fn recut(&self, case: &Case, params: &Params) -> [Option<Params>; 2] {
        self.0.recut(case, params)
    }

    fn is_whole(&self, params: &Params) -> bool {
        self.0.is_whole(params)
    }

    fn gives_equal_bits(&self, case: &Case, params: &Params) -> bool {
        self.0.gives_equal_bits(case, params)
    }

    fn chosen(&self, case: &Case, params: &Params) -> Params {
        self.0.chosen(case, params)
    }
}

/// Checks that the algorithm `unit` supports `case`.
pub fn supports<T: RankAlgorithm>(unit: &T, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
    let (c, info) = (&case.collective, &T::INFO);
    if !case.offers().contains(&Means::Messages) {
        return Err(lacks(info, case.offers()));
    }
    let no = |reason| Err(AlgorithmError::Unsupported { algorithm: info.name, reason });
    if !info.collectives.contains(&c.kind) {
        let made = info.collectives.iter().map(|k| k.name()).collect::<Vec<_>>().join(", ");
        return no(format!("it makes {made}, not {}", c.kind));
    }
    if c.kind.reduces() && c.kind != Kind::Barrier && !c.operator.commutative() && !T::KEEPS_ORDER {
        return no(format!("it reorders operands, and operator {} does not commute", c.operator));
    }
    unit.check(case, params)?;
    // A case with a closed form is supported although its schedule may be too large to build. The size is checked
    // first, because a closed form may take long.
    check_size(unit, case, params).or_else(|e| profile(unit, case, params).map(|_| ()).ok_or(e))
}

fn check_size<T: RankAlgorithm>(unit: &T, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
    match too_large(unit.instructions(case, params)) {
        Some(reason) if case.collective.ranks > 1 => {
            Err(AlgorithmError::Unsupported { algorithm: T::INFO.name, reason })
        }
        _ => Ok(()),
    }
}

/// Builds the schedule of the algorithm `unit` for `case`.
pub fn build<T: RankAlgorithm>(unit: &T, case: &Case, params: &Params) -> Result<Placed, AlgorithmError> {
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

/// Returns the closed form of the algorithm `unit` for `case`: exchanges or trees on a network, rounds on other
/// machines.
pub fn profile<T: RankAlgorithm>(unit: &T, case: &Case, params: &Params) -> Option<Profile> {
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
