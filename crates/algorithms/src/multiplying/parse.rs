//! Reads schedules in the notation of "Generalisation of recursive doubling for AllReduce": `a8,a3,a4`,
//! `c6m2,a2,a2,e6m2`, `m1g2a3,n1g3a2`.

use super::{Stage, Stages, StagesError, Wrap};

const ACCEPTED: &str = "aB, cTmB, eTmB, mRgGaB and nRgGaB with whole numbers, such as a8, c6m2 or m1g2a3";

impl Stages {
    /// Parses a schedule for `ranks` ranks.
    ///
    /// # Errors
    /// Returns an error if the text is not a schedule, or is not one of `ranks` ranks.
    pub fn parse(text: &str, ranks: u32) -> Result<Self, StagesError> {
        read(text, ranks).map_err(|why| StagesError { schedule: text.to_owned(), ranks, why })
    }
}

fn read(text: &str, ranks: u32) -> Result<Stages, String> {
    let mut stages = Vec::new();
    // The text of the schedule for one rank is empty.
    for word in text.split(',').filter(|_| !text.is_empty()) {
        let stage = stage(word);
        stages.push(stage.ok_or_else(|| format!("stage {} is '{word}'; accepted are {ACCEPTED}", stages.len() + 1))?);
    }
    let (wrap, plain) = match stages.as_slice() {
        [Stage::Collapse { threshold, base }, plain @ .., Stage::Expand { .. }] => {
            (Wrap::Split { threshold: *threshold, base: *base }, plain)
        }
        [Stage::Merge { rest, factor, .. }, plain @ .., Stage::InverseMerge { factor: last, .. }] => {
            (Wrap::Merge { rest: *rest, first: *factor, last: *last }, plain)
        }
        plain => (Wrap::Plain, plain),
    };
    let before = usize::from(wrap != Wrap::Plain);
    let mut factors = Vec::with_capacity(plain.len());
    for (at, stage) in plain.iter().enumerate() {
        let Stage::Factor { factor } = *stage else {
            return Err(format!(
                "stage {} is '{stage}'; accepted there is aB, because c comes first with e last, and m first with n last",
                at + 1 + before
            ));
        };
        factors.push(factor);
    }
    let made = Stages::new(ranks, wrap, factors).map_err(|e| e.why)?;
    // The two stages of a wrap state some numbers twice, such as the ranks that are set apart; both must be equal.
    for (at, (written, meant)) in stages.iter().zip(made.iter()).enumerate() {
        if *written != meant {
            return Err(format!("stage {} is '{written}'; accepted there is {meant}", at + 1));
        }
    }
    Ok(made)
}

/// Parses a stage; `None` if the word does not have one of the five notations.
fn stage(word: &str) -> Option<Stage> {
    let number = |text: &str| -> Option<u32> {
        // Signs, spaces and leading zeros are refused, so that a parsed schedule prints as the same text.
        let plain = text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
        if plain { text.parse().ok() } else { None }
    };
    let (kind, rest) = word.split_at_checked(1)?;
    Some(match kind {
        "a" => Stage::Factor { factor: number(rest)? },
        "c" | "e" => {
            let (threshold, base) = rest.split_once('m')?;
            let (threshold, base) = (number(threshold)?, number(base)?);
            if kind == "c" { Stage::Collapse { threshold, base } } else { Stage::Expand { threshold, base } }
        }
        "m" | "n" => {
            let (remainder, rest) = rest.split_once('g')?;
            let (groups, factor) = rest.split_once('a')?;
            let (rest, groups, factor) = (number(remainder)?, number(groups)?, number(factor)?);
            if kind == "m" {
                Stage::Merge { rest, groups, factor }
            } else {
                Stage::InverseMerge { rest, groups, factor }
            }
        }
        _ => return None,
    })
}
