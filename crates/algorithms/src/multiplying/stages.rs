//! A schedule of recursive multiplying: its stages, checked for a number of ranks, and their notation.

use std::fmt;

/// One stage, in the notation of "Generalisation of recursive doubling for AllReduce", section 4.2.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Stage {
    /// `aB`: in groups of B ranks, each rank sends to all other ranks of the group.
    Factor { factor: u32 },
    /// `cTmB`: among the first T ranks, each group of B collapses into its last rank.
    Collapse { threshold: u32, base: u32 },
    /// `eTmB`: among the first T ranks, the last rank of each group of B sends the result to the other ranks of the
    /// group.
    Expand { threshold: u32, base: u32 },
    /// `mRgGaB`: G groups of B exchange, and each of the first R ranks sends to all of one group.
    Merge { rest: u32, groups: u32, factor: u32 },
    /// `nRgGaB`: G groups of B exchange, and each of the first R ranks receives from all of one group.
    InverseMerge { rest: u32, groups: u32, factor: u32 },
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Stage::Factor { factor } => write!(f, "a{factor}"),
            Stage::Collapse { threshold, base } => write!(f, "c{threshold}m{base}"),
            Stage::Expand { threshold, base } => write!(f, "e{threshold}m{base}"),
            Stage::Merge { rest, groups, factor } => write!(f, "m{rest}g{groups}a{factor}"),
            Stage::InverseMerge { rest, groups, factor } => write!(f, "n{rest}g{groups}a{factor}"),
        }
    }
}

/// The stages around the plain factors of a schedule.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Wrap {
    Plain,
    /// A collapse and an expand of the first `threshold` ranks, in groups of `base`.
    Split {
        threshold: u32,
        base: u32,
    },
    /// The first `rest` ranks are set apart; the other ranks have the factor `first` before the plain factors and
    /// `last` after them.
    Merge {
        rest: u32,
        first: u32,
        last: u32,
    },
}

impl Wrap {
    /// Returns the first and the last stage; `None` for [`Wrap::Plain`].
    pub(super) fn stages(self, ranks: u32) -> Option<(Stage, Stage)> {
        match self {
            Wrap::Plain => None,
            Wrap::Split { threshold, base } => {
                Some((Stage::Collapse { threshold, base }, Stage::Expand { threshold, base }))
            }
            Wrap::Merge { rest, first, last } => {
                // Invalid numbers are accepted here, because error messages show their stages.
                let groups = |factor: u32| ranks.saturating_sub(rest) / factor.max(1);
                Some((
                    Stage::Merge { rest, groups: groups(first), factor: first },
                    Stage::InverseMerge { rest, groups: groups(last), factor: last },
                ))
            }
        }
    }
}

/// The text `schedule` is not a schedule for `ranks` ranks; `why` states the fault and the accepted values.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("schedule '{schedule}' does not fit {ranks} ranks: {why}")]
pub struct StagesError {
    pub schedule: String,
    pub ranks: u32,
    pub why: String,
}

/// A valid schedule of recursive multiplying for a number of ranks. One rank has no stages.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Stages {
    ranks: u32,
    wrap: Wrap,
    factors: Vec<u32>,
}

impl Stages {
    /// Creates a checked schedule.
    ///
    /// # Errors
    /// Returns an error if the factors and the wrap are not a schedule of `ranks` ranks.
    pub fn new(ranks: u32, wrap: Wrap, factors: Vec<u32>) -> Result<Self, StagesError> {
        let stages = Self { ranks, wrap, factors };
        match stages.fault() {
            None => Ok(stages),
            Some(why) => Err(StagesError { schedule: stages.to_string(), ranks, why }),
        }
    }

    /// A valid schedule of recursive multiplying for a number of ranks. The schedule of one rank has no stages.
    pub(super) fn fitting(ranks: u32, wrap: Wrap, factors: Vec<u32>) -> Self {
        let stages = Self { ranks, wrap, factors };
        debug_assert_eq!(stages.fault(), None, "{stages} on {ranks} ranks");
        stages
    }

    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    pub fn wrap(&self) -> Wrap {
        self.wrap
    }

    /// Returns the plain factors, in the order of their stages.
    pub fn factors(&self) -> &[u32] {
        &self.factors
    }

    /// Returns the schedule with other plain factors of the same product.
    pub(super) fn with_factors(&self, factors: Vec<u32>) -> Self {
        Self::fitting(self.ranks, self.wrap, factors)
    }

    /// Returns all stages, first to last.
    pub fn iter(&self) -> impl Iterator<Item = Stage> + '_ {
        let (first, last) = self.wrap.stages(self.ranks).unzip();
        first.into_iter().chain(self.factors.iter().map(|&factor| Stage::Factor { factor })).chain(last)
    }

    /// Returns whether every group consists of consecutive ranks. In a merge, rank r that is set apart sends to group
    /// r, so only rank 0 may be set apart.
    pub fn keeps_order(&self) -> bool {
        !matches!(self.wrap, Wrap::Merge { rest: 2.., .. })
    }

    /// Returns the number of messages of all ranks together.
    pub fn messages(&self) -> u64 {
        let wide = u64::from;
        let (apart, inner) = match self.wrap {
            Wrap::Plain => (0, wide(self.ranks)),
            Wrap::Split { threshold, base } => {
                let away = wide(threshold / base) * wide(base - 1);
                (2 * away, wide(self.ranks) - away)
            }
            Wrap::Merge { rest, first, last } => {
                let inner = wide(self.ranks - rest);
                (wide(rest) * (wide(first) + wide(last)) + inner * (wide(first) + wide(last) - 2), inner)
            }
        };
        apart + self.factors.iter().map(|&f| inner * wide(f - 1)).sum::<u64>()
    }

    /// Returns the reason why the stages are not a schedule for the ranks; `None` if they are one.
    fn fault(&self) -> Option<String> {
        let n = self.ranks;
        let before = usize::from(self.wrap != Wrap::Plain);
        let small = |stage: usize, factor: u32| {
            Some(format!("stage {stage} has factor {factor}; accepted are factors from 2 on"))
        };
        if let Some(at) = self.factors.iter().position(|&f| f < 2) {
            return small(at + 1 + before, self.factors[at]);
        }
        let mut product: u64 = 1;
        let inner = match self.wrap {
            Wrap::Plain => n,
            Wrap::Split { base, .. } if base < 2 => return small(1, base),
            Wrap::Split { threshold, base } => {
                if threshold == 0 || threshold > n || threshold % base != 0 {
                    let most = n / base * base;
                    return Some(if most == 0 {
                        format!("stage 1 collapses {base} ranks into one; accepted are at most {n}")
                    } else {
                        format!(
                            "stage 1 collapses the first {threshold} ranks; accepted are multiples of {base} from \
                             {base} to {most}"
                        )
                    });
                }
                n - threshold + threshold / base
            }
            Wrap::Merge { first, .. } if first < 2 => return small(1, first),
            Wrap::Merge { last, .. } if last < 2 => return small(self.factors.len() + 2, last),
            Wrap::Merge { rest, .. } if n < 5 => {
                return Some(format!("stage 1 sets {rest} ranks apart; a merge needs at least 5 ranks"));
            }
            Wrap::Merge { rest, .. } if rest < 1 || rest > n - 4 => {
                return Some(format!("stage 1 sets {rest} ranks apart; accepted are 1 to {}", n - 4));
            }
            Wrap::Merge { rest, first, last } => {
                product = u64::from(first) * u64::from(last);
                n - rest
            }
        };
        for &factor in &self.factors {
            product = product.saturating_mul(u64::from(factor));
        }
        let what = match self.wrap {
            Wrap::Plain => "its factors",
            Wrap::Split { .. } => "its plain factors",
            Wrap::Merge { .. } => "its factors, those of m and n included,",
        };
        (product != u64::from(inner)).then(|| format!("{what} multiply to {product}; accepted is a product of {inner}"))
    }
}

impl fmt::Display for Stages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, stage) in self.iter().enumerate() {
            write!(f, "{}{stage}", if at > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}
