//! Plans whose results have the same bits: on all ranks, at all places of a vector, or at all sizes.
//!
//! `ranks` and `place` are properties of the schedule of one length, and its proof decides them. `size` is a property of
//! programs over blocks, which serve every length: all blocks have one expression. The class of this expression is
//! known only when the programs are proved.
//!
//! A table for many sizes with `size` has one class in all rows. Candidates of all sizes are grouped by their class. The
//! table is that of the group whose times have the least sum of logarithms over the sizes, so several schedules of one
//! expression share a table: for a binomial tree, recursive doubling for short vectors and trees in segments for long
//! ones.

use std::{cell::OnceCell, collections::BTreeMap, str::FromStr, sync::Arc};

use unisono_algorithms::{Means, Params};
use unisono_base::interrupt;
use unisono_schedule::{
    stored::{Blocking, condense},
    verify::{Method, verify},
};

use crate::{
    Asked, Format, Plan, PlanError, Problem, Timed, candidates::build, expressible, plan::plan_for, stored::store_best,
    targets::kind_of, tuning::boundary,
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

/// Returns the class of the elements of a candidate's programs if these have a property for every length, or a sentence
/// on two unlike elements.
///
/// # Errors
/// No program can be made, or it fails its proof.
fn stored_class(problem: &Problem, candidate: &Timed, bits: Bits) -> Result<Result<String, String>, PlanError> {
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
    if bits == Bits::Ranks {
        return Ok(if facts.repeatable {
            Ok(String::new())
        } else {
            Err("ranks have different expressions".to_owned())
        });
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
        return Ok(stored_class(problem, candidate, bits)?.err());
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
        Ok(stored_class(&self.problem, self.best(), Bits::Size)?.ok())
    }

    /// Leaves only the candidates that have a property. Candidates that the format cannot express go too.
    ///
    /// # Errors
    /// No candidate has it, with the reason for the first. The property is `size`, and the machine runs no programs over
    /// blocks, or the format holds none.
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

/// Sizes that one plan of a table serves.
pub struct BitsRow {
    pub plan: Arc<Plan>,
    pub first_bytes: u64,
    /// None is any.
    pub last_bytes: Option<u64>,
}

/// The price of a property at one size.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize)]
pub struct BitsPrice {
    pub bytes: u64,
    pub seconds: f64,
    /// Of the fastest candidate without the property.
    pub fastest_seconds: f64,
}

/// A table of plans with a property of the bits, and its price at each of the sizes that were planned.
pub struct BitsTable {
    pub rows: Vec<BitsRow>,
    pub prices: Vec<BitsPrice>,
    /// The number of expressions that have a table.
    pub expressions: usize,
}

/// The candidates of one size.
struct Size {
    problem: Problem,
    bytes: u64,
    fastest_seconds: f64,
    timed: Vec<Timed>,
    /// By class, the fastest candidate.
    best: BTreeMap<String, usize>,
}

/// Plans tables with a property for all sizes from the first to the last, at the given numbers of elements, which
/// ascend: at most `most` tables, each of another expression, the one with the least price first.
///
/// # Errors
/// As [`plan_for`]; no expression has candidates for all sizes.
pub fn bits_tables(
    asked: &Asked<'_>,
    elements: &[u64],
    served: (u64, Option<u64>),
    bits: Bits,
    most: usize,
) -> Result<Vec<BitsTable>, PlanError> {
    let mut sizes: Vec<Size> = Vec::with_capacity(elements.len());
    let mut classes: BTreeMap<(&'static str, String), Option<String>> = BTreeMap::new();
    let opened = Problem::new(asked)?.target;
    for &elements in elements {
        let problem = Problem::on(Arc::clone(&opened), &Asked { elements, ..asked.clone() })?;
        let plan = plan_for(problem.clone(), None, &Params::new(), Some(Format::Preload))?;
        let marked = plan.candidates.iter().zip(&plan.expressible);
        let timed: Vec<Timed> = marked.filter(|(_, mark)| **mark == Some(Ok(()))).map(|(one, _)| one.clone()).collect();
        let mut best = BTreeMap::new();
        for (at, candidate) in timed.iter().enumerate() {
            interrupt::check();
            let key = (candidate.algorithm.name(), candidate.params.to_string());
            if !classes.contains_key(&key) {
                // A candidate without programs at one size may have some at another.
                let Ok(found) = stored_class(&problem, candidate, bits) else { continue };
                classes.insert(key.clone(), found.ok());
            }
            if let Some(class) = &classes[&key] {
                best.entry(class.clone()).or_insert(at);
            }
        }
        let (bytes, fastest_seconds) = (problem.collective.bytes(), plan.best().time.seconds);
        sizes.push(Size { problem, bytes, fastest_seconds, timed, best });
    }
    let cost = |class: &String| -> Option<f64> {
        let seconds = |size: &Size| Some(size.timed[*size.best.get(class)?].time.seconds);
        let price = |size: &Size| {
            let (here, fastest) = (seconds(size)?, size.fastest_seconds);
            Some(if fastest > 0.0 { (here / fastest).ln() } else { 0.0 })
        };
        sizes.iter().map(price).sum()
    };
    let groups: Vec<&String> = sizes.first().map(|size| size.best.keys().collect()).unwrap_or_default();
    let mut groups: Vec<(&String, f64)> = groups.into_iter().filter_map(|class| Some((class, cost(class)?))).collect();
    groups.sort_by(|a, b| a.1.total_cmp(&b.1));
    if groups.is_empty() {
        let reason = format!("no expression has candidates with the bits '{}' at all sizes", bits.name());
        return Err(PlanError::NotExpressible { reason });
    }
    let table = |&(class, _): &(&String, f64)| -> Result<BitsTable, PlanError> {
        let chosen: Vec<&Timed> = sizes.iter().map(|size| &size.timed[size.best[class]]).collect();
        let price = |(size, one): (&Size, &&Timed)| BitsPrice {
            bytes: size.bytes,
            seconds: one.time.seconds,
            fastest_seconds: size.fastest_seconds,
        };
        let prices = sizes.iter().zip(&chosen).map(price).collect();
        Ok(BitsTable { rows: rows(&sizes, &chosen, served)?, prices, expressions: groups.len() })
    };
    groups.iter().take(most).map(table).collect()
}

/// Merges sizes with the same candidate. Two rows meet at the size at which both take equally long.
fn rows(
    sizes: &[Size],
    chosen: &[&Timed],
    (first_bytes, last_bytes): (u64, Option<u64>),
) -> Result<Vec<BitsRow>, PlanError> {
    let same = |a: &Timed, b: &Timed| a.algorithm.name() == b.algorithm.name() && a.params == b.params;
    let seconds = |at: usize, of: &Timed| sizes[at].timed.iter().find(|one| same(one, of)).map(|one| one.time.seconds);
    let (mut rows, mut first) = (Vec::new(), first_bytes);
    for (at, &one) in chosen.iter().enumerate() {
        let mut last = last_bytes;
        if let Some(&next) = chosen.get(at + 1) {
            if same(one, next) {
                continue;
            }
            let times = [(at, one), (at, next), (at + 1, one), (at + 1, next)].map(|(at, of)| seconds(at, of));
            let times = if let [Some(a), Some(b), Some(c), Some(d)] = times { [a, b, c, d] } else { [1.0; 4] };
            let ends = (sizes[at].bytes, sizes[at + 1].bytes);
            last = Some(boundary(ends, (times[0], times[2]), (times[1], times[3])));
        }
        let name = Some(one.algorithm.name());
        let mut plan = plan_for(sizes[at].problem.clone(), name, &one.params, Some(Format::Preload))?;
        // A name may stand for several candidates, and the others have other expressions.
        (plan.candidates, plan.expressible) = (vec![one.clone()], vec![Some(Ok(()))]);
        rows.push(BitsRow { plan: Arc::new(plan), first_bytes: first, last_bytes: last });
        first = last.map_or(0, |last| last + 1);
    }
    Ok(rows)
}
