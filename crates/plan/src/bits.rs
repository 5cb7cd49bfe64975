//! Plans whose results have the same bits: on all ranks, at all places of a vector, or at all sizes.
//!
//! `ranks` and `place` are properties of the schedule of one length, and its proof decides them. `size` is a property
//! of programs over blocks, which serve every length: all blocks have one expression. The class of this expression is
//! known only when the programs are proved.

use std::{cell::OnceCell, str::FromStr};

use unisono_algorithms::Means;
use unisono_base::interrupt;
use unisono_schedule::{
    stored::{Blocking, condense},
    verify::{Method, verify},
};

use crate::{
    Format, Plan, PlanError, Problem, Timed, candidates::build, expressible, stored::store_best, targets::kind_of,
};

/// A property of the bits of results. Each includes those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Bits {
    /// All ranks have the same bits.
    Ranks,
    /// All elements of a result have one expression.
    Place,
    /// All elements of results of every size have one expression.
    Size,
}

impl Bits {
    pub const ALL: &[Bits] = &[Bits::Ranks, Bits::Place, Bits::Size];

    pub fn name(self) -> &'static str {
        match self {
            Self::Ranks => "ranks",
            Self::Place => "place",
            Self::Size => "size",
        }
    }

    /// Returns the names of the property and of those that it includes.
    pub fn names(self) -> Vec<&'static str> {
        Self::ALL.iter().filter(|&&bits| bits <= self).map(|bits| bits.name()).collect()
    }
}

impl FromStr for Bits {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        let found = Self::ALL.iter().find(|bits| bits.name() == text).copied();
        found.ok_or_else(|| PlanError::Bits { found: text.to_owned() })
    }
}

/// Returns the class of the elements of a candidate's programs if these have `size`, or a sentence on two unlike
/// elements.
///
/// # Errors
/// No program can be made, or it fails its proof.
fn stored_class(problem: &Problem, candidate: &Timed) -> Result<Result<String, String>, PlanError> {
    let target = &problem.target;
    let kind = kind_of(&target.machine());
    if !kind.offers.contains(&Means::Messages) {
        return Err(PlanError::NotForMpi { machine: target.machine_name().to_owned(), kind: kind.name });
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
    Ok(elements.class.clone().ok_or_else(|| elements.unlike.clone().unwrap_or_else(|| TOO_LARGE.to_owned())))
}

const TOO_LARGE: &str = "its expression has too many combinations to be compared";

/// Returns nothing if a candidate of a plan has a property, or else the reason.
///
/// # Errors
/// The schedule cannot be built.
fn lacks(problem: &Problem, form: Option<&Format>, candidate: &Timed, bits: Bits) -> Result<Option<String>, PlanError> {
    if bits == Bits::Size {
        return Ok(stored_class(problem, candidate)?.err());
    }
    let proof = match form.and_then(Format::emitter) {
        Some(emitter) => verify(&expressible::built(problem, emitter, candidate)?.schedule, Method::Auto),
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

impl Plan {
    /// Returns the class of the elements of the best candidate's programs; none without the property `size`.
    ///
    /// # Errors
    /// No program can be made, or it fails its proof.
    pub fn size_class(&self) -> Result<Option<String>, PlanError> {
        Ok(stored_class(&self.problem, self.best())?.ok())
    }

    /// Leaves only the candidates that have a property. Candidates that the format cannot express go too.
    ///
    /// # Errors
    /// No candidate has it, with the reason for the first. The property is `size`, and the machine runs no programs
    /// over blocks, or the format holds none.
    pub fn with_bits(mut self, bits: Bits) -> Result<Self, PlanError> {
        let emitter = self.form.as_ref().and_then(Format::emitter);
        if let Some(emitter) = emitter.filter(|_| bits == Bits::Size) {
            let reason = format!(
                "'size' is proved of the programs of a .plan, which serve every length, and a file for {} has no such \
                 proof; ask for 'place'",
                emitter.name()
            );
            return Err(PlanError::NotExpressible { reason });
        }
        let mut first = None;
        self.fastest = Some(self.best().time);
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
