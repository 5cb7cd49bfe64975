//! Plans whose results have the same bits: on all ranks, in all elements of a vector, for all sizes, or for all numbers
//! of ranks.
//!
//! The expression of an element is the tree of its additions. The proof of a schedule of one length decides if the
//! schedule has the properties `ranks` and `place`. `size` is a property of programs over blocks, which serve every
//! length: all blocks have one expression. Its class is known only after the proof. `ranks-count` is `size` with an
//! expression that depends only on the number of logical contributors, such as the shards of a batch. Each rank holds
//! the same number of contributors.

use std::cell::OnceCell;

use unisono_algorithms::Means;
use unisono_base::interrupt;
use unisono_formats::{Emitter, Facts};
use unisono_gpu::Options;
use unisono_lower::{File, VerifiedFile};
use unisono_schedule::{
    plan_file::lacks_tree,
    stored::{Blocking, condense},
    verify::{Method, verify},
};

use crate::{
    Format, Plan, PlanError, Problem, Timed, candidates::build, expressible, format::runs_on_mpi, stored::store_best,
};

/// A property of the bits of results. Each property includes all earlier ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Bits {
    /// All ranks have the same bits.
    Ranks,
    /// All elements of a result have the same expression.
    Place,
    /// All elements of results of every size have the same expression.
    Size,
    /// All elements have the same expression, which depends only on the number of contributors (this field). Each rank
    /// holds the data of the same number of contributors.
    RanksCount(u32),
}

impl Bits {
    /// Returns the property with a name. `contributors` is the number of logical contributors for `ranks-count`.
    ///
    /// # Errors
    /// Returns an error if the name is unknown, or the number is missing or superfluous.
    pub fn new(name: &str, contributors: Option<u32>) -> Result<Self, PlanError> {
        let bits = match (name, contributors) {
            ("ranks-count", Some(contributors)) => return Ok(Self::RanksCount(contributors)),
            ("ranks-count", None) => return Err(PlanError::NoContributors),
            ("ranks", _) => Self::Ranks,
            ("place", _) => Self::Place,
            ("size", _) => Self::Size,
            _ => return Err(PlanError::Bits { found: name.to_owned() }),
        };
        let superfluous = |found| Err(PlanError::Contributors { found, bits: name.to_owned() });
        contributors.map_or(Ok(bits), superfluous)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Ranks => "ranks",
            Self::Place => "place",
            Self::Size => "size",
            Self::RanksCount(_) => "ranks-count",
        }
    }

    /// Returns the names of this property and of the properties that it includes.
    pub fn names(self) -> Vec<&'static str> {
        let smaller = [Self::Ranks, Self::Place, Self::Size].into_iter().filter(|&bits| bits < self);
        smaller.chain([self]).map(Self::name).collect()
    }

    fn contributors(self) -> Option<u32> {
        if let Self::RanksCount(contributors) = self { Some(contributors) } else { None }
    }
}

/// Returns the digest of the single expression of all results of a candidate's programs, or the reason why there is
/// none. The programs must have the property `size` and, with `contributors`, the property `ranks-count`.
///
/// # Errors
///
/// Returns an error if no program can be made, or its proof fails.
fn stored_class(
    problem: &Problem,
    candidate: &Timed,
    contributors: Option<u32>,
) -> Result<Result<String, String>, PlanError> {
    let target = &problem.target;
    let kind = target.kind();
    if !kind.offers.contains(&Means::Messages) {
        return Err(PlanError::NotForMpi { machine: target.machine().name().to_owned(), kind: kind.name });
    }
    let case = target.case(problem.collective);
    let built = OnceCell::new();
    let stored = store_best(&case, candidate, || {
        let made = build(candidate.algorithm, &case, &candidate.params)?;
        Ok(&built.get_or_init(|| made).schedule)
    })?;
    let (facts, elements) = (stored.facts(), stored.elements());
    if facts.blocking != Blocking::Any && facts.collective.elements > 1 {
        let blocks = facts.collective.elements;
        return Ok(Err(format!("its programs serve only counts that {blocks} divides")));
    }
    let c = facts.collective;
    if elements.class.is_some()
        && let Some(reason) = contributors.and_then(|n| lacks_tree(c.kind, c.ranks, elements, n))
    {
        return Ok(Err(reason));
    }
    Ok(elements.class.clone().ok_or_else(|| elements.unlike.clone().unwrap_or_else(|| TOO_LARGE.to_owned())))
}

const TOO_LARGE: &str = "its expression has too many combinations to be compared";

/// Returns the reason why a candidate lacks the property `bits` in the format `form`; `None` if the candidate has the
/// property.
fn lacks(problem: &Problem, form: Option<&Format>, candidate: &Timed, bits: Bits) -> Result<Option<String>, PlanError> {
    if bits >= Bits::Size {
        return Ok(stored_class(problem, candidate, bits.contributors())?.err());
    }
    let proof = match form.and_then(Format::emitter) {
        Some(emitter) => {
            let file = expressible::built(problem, emitter, candidate)?;
            let proof = verify(&file.schedule, Method::Auto);
            if proof.bits.contains(&bits.name())
                && let Some(reason) = file_lacks(emitter, &file, bits)?
            {
                return Ok(Some(reason));
            }
            proof
        }
        None => {
            let built = problem.target.build(problem.collective, candidate)?;
            verify(&condense(&built.schedule), Method::Auto)
        }
    };
    if proof.bits.contains(&bits.name()) {
        return Ok(None);
    }
    let first = proof.diagnostics.first().map(ToString::to_string);
    Ok(Some(first.or(proof.unlike_elements).unwrap_or_else(|| TOO_LARGE.to_owned())))
}

/// Returns the reason why the file of a target lacks a property, if the target itself chooses the order of additions.
/// `None` if the file has the property, or if the target adds in the order of the schedule.
fn file_lacks(emitter: &dyn Emitter, file: &File, bits: Bits) -> Result<Option<String>, PlanError> {
    let refused = |reason: String| PlanError::NotExpressible { reason };
    let proven = VerifiedFile::new(file, Method::Auto)
        .map_err(|proof| refused(proof.diagnostics.first().map_or_else(String::new, ToString::to_string)))?;
    for (_, contents) in emitter.emit(&proven).map_err(|e| refused(e.to_string()))? {
        let (Some(text), Some(format)) = (contents.text(), unisono_gpu::named(emitter.name())) else { continue };
        let found = format.check(text, &Facts::of(&file.schedule), Options::default());
        let found = found.map_err(|e| refused(e.to_string()))?.bits;
        if !found.bits.contains(&bits.name()) {
            return Ok(Some(found.unlike.unwrap_or_else(|| TOO_LARGE.to_owned())));
        }
    }
    Ok(None)
}

impl Plan {
    /// Returns the digest of the single expression of all results of the best candidate's programs. `None` if they lack
    /// the property `size` or, with `contributors`, the property `ranks-count`.
    ///
    /// # Errors
    ///
    /// Returns an error if no program can be made, or its proof fails.
    pub fn size_class(&self, contributors: Option<u32>) -> Result<Option<String>, PlanError> {
        Ok(stored_class(&self.problem, self.best(), contributors)?.ok())
    }

    /// Removes the candidates that lack a property, and the candidates that the format, if there is one, cannot
    /// express.
    ///
    /// # Errors
    ///
    /// Returns an error if no candidate has the property, with the reason for the first candidate; or if the property
    /// is `size` or more, and the machine or the format has no programs over blocks.
    pub fn with_bits(mut self, bits: Bits) -> Result<Self, PlanError> {
        let emitter = self.form.as_ref().and_then(Format::emitter);
        if let Some(emitter) = emitter.filter(|_| bits >= Bits::Size) {
            let reason = format!(
                "'{}' is proved of the programs of a .plan, which serve every length, and a file for {} has no such \
                 proof; ask for 'place'",
                bits.name(),
                emitter.name()
            );
            return Err(PlanError::NotExpressible { reason });
        }
        let mut first = None;
        // A `.plan` file cannot contain sums in switches, so for `size` and `ranks-count` only candidates without them
        // count.
        let may_run = |one: &&Timed| bits < Bits::Size || runs_on_mpi(one).is_ok();
        self.fastest = self.candidates.iter().find(may_run).map(|one| one.time);
        for (candidate, mark) in
            std::mem::take(&mut self.candidates).into_iter().zip(std::mem::take(&mut self.expressible))
        {
            interrupt::check();
            if matches!(mark, Some(Err(_))) {
                continue;
            }
            let reason = match lacks(&self.problem, self.form.as_ref(), &candidate, bits) {
                Ok(None) => {
                    self.candidates.push(candidate);
                    self.expressible.push(mark);
                    continue;
                }
                Ok(Some(reason)) => reason,
                Err(e @ PlanError::NotForMpi { .. }) => return Err(e),
                Err(e) => e.to_string(),
            };
            first.get_or_insert_with(|| format!("of {} {}: {reason}", candidate.algorithm.name(), candidate.params));
        }
        if self.candidates.is_empty() {
            let reason = format!("no candidate has the bits '{}'; {}", bits.name(), first.unwrap_or_default());
            return Err(PlanError::NotExpressible { reason });
        }
        self.bits = Some(bits);
        Ok(self)
    }
}
