//! The check of a file against the executor's rules, in each way and at each size for which the executor runs it.

use serde::Serialize;
use unisono_base::NodeId;
use unisono_formats::{Facts, ImportError};
use unisono_schedule::verify::{Proof, Roundings, verify_rounded};

use super::{
    executed::running,
    import, limits, parse,
    places::{places, roundings},
    program::Program,
    slots::{self, Hang, Range},
};
use crate::{FileBits, Options};

/// A finding about a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename = "MscclFinding")]
pub struct Finding {
    pub code: &'static str,
    /// The index of the GPU.
    pub rank: Option<u32>,
    pub instruction: Option<u32>,
    pub message: String,
    pub threadblock: Option<u32>,
    pub step: Option<u32>,
}

/// The proved properties of a file, each of which holds in all ways to run it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename = "MscclProof")]
pub struct Checked {
    pub complete: bool,
    pub deadlock_free: bool,
    pub race_free: bool,
    pub repeatable: bool,
    /// The digest of the results' expressions in the executor's order; `None` unless all proofs hold and all ways have
    /// the same digest.
    pub expression_class: Option<String>,
    #[serde(flatten)]
    pub bits: FileBits,
    /// The ways in which the file may run: `two buffers`, `in place`, or both.
    pub buffers: Vec<&'static str>,
    /// The sizes at which the file was proved, or up to which it does not hang, in words.
    pub sizes: String,
    /// Sentences about three kinds of problems: more thread blocks than RCCL accepts, wrongly numbered steps, and calls
    /// for which no executor runs the file.
    pub notes: Vec<String>,
    pub diagnostics: Vec<Finding>,
}

/// The order of a fused sum ([`roundings`]), in words.
const OWN_ORDER: &str = "the executor adds several sources in one step, from the first to the destination in pieces of \
                         as many elements as threads, and from the destination on in shorter pieces";

/// Checks a file for the sizes that it states, or for the size in `facts`.
///
/// # Errors
/// Returns one sentence with the line if the executor refuses the file or a schedule cannot express it.
pub fn check(text: &str, facts: &Facts, options: Options) -> Result<Checked, ImportError> {
    let p = parse::program(text)?;
    let running = running(&p)?;
    let mut found = Vec::new();
    let of_file =
        |code, message| Finding { code, rank: None, instruction: None, message, threadblock: None, step: None };
    found.extend(
        limits::of_program(&p, options.processors)
            .into_iter()
            .map(|(gpu, message)| Finding { rank: gpu.map(|g: NodeId| g.0), ..of_file("limit", message) }),
    );
    // A size in `facts` with too large buffers is an error of the request, not a fault of the file.
    import::collective(&p, facts)?;
    let range = slots::sizes(&p, import::bytes(&p, facts));
    let hang = slots::hangs(&p, &running, range);
    if let (Some(most), Some(counted)) = (range.1, slots::counted(&p))
        && most > counted
    {
        let message = format!(
            "a wait in {} counts turns up to {}, and the file takes {}; set maxBytes to at most {}, or use Simple",
            p.protocol,
            chunk(&p, counted),
            chunk(&p, most),
            counted.saturating_mul(u64::from(p.chunks))
        );
        found.push(of_file("limit", message));
    }
    if let Some(hang) = &hang {
        let first = hang.circle.first();
        found.push(Finding {
            rank: first.map(|s| s.gpu),
            threadblock: first.map(|s| s.block),
            step: first.map(|s| s.step),
            ..of_file("deadlock", describe(&p, hang, range))
        });
    }
    let mut ways = Vec::new();
    if p.out_of_place || !p.in_place {
        ways.push((false, "two buffers"));
    }
    if p.in_place {
        ways.push((true, "in place"));
    }
    let mut proofs: Vec<Proof> = Vec::new();
    let mut bits: Option<FileBits> = None;
    for &(in_place, name) in &ways {
        let schedule = match import::schedule(&p, facts, Some(in_place)) {
            Ok((schedule, _)) => schedule,
            // A file may state that it runs both in place and with two buffers. If a schedule can express only one of
            // these ways, the file's statement is wrong.
            Err(error) if ways.len() > 1 => {
                found.push(of_file("claim", format!("{name}: {error}")));
                continue;
            }
            Err(error) => return Err(error),
        };
        let places = places(&running, &schedule)?;
        let rounds = !schedule.collective().dtype.is_integer();
        let roundings = if rounds { roundings(&places) } else { Roundings::new() };
        let mut proof = verify_rounded(&schedule, options.method, &roundings);
        let of_way = FileBits::new(&proof, &roundings, OWN_ORDER);
        match &mut bits {
            None => bits = Some(of_way),
            Some(all) => all.join(&of_way, name),
        }
        if hang.is_some() {
            proof.deadlock_free = false;
            proof.diagnostics.retain(|d| d.code != "deadlock");
        }
        for d in std::mem::take(&mut proof.diagnostics) {
            let place = d.instruction.and_then(|i| places.get(i as usize).copied().flatten()).map(|(place, _)| place);
            let message = if ways.len() > 1 { format!("{name}: {}", d.message) } else { d.message };
            found.push(Finding {
                code: d.code,
                rank: d.rank,
                instruction: d.instruction,
                message,
                threadblock: place.map(|p| p.threadblock),
                step: place.map(|p| p.step),
            });
        }
        proofs.push(proof);
    }
    let all = |property: fn(&Proof) -> bool| proofs.len() == ways.len() && proofs.iter().all(property);
    let one_class = proofs.windows(2).all(|p| p[0].expression_class == p[1].expression_class);
    let mut bits = bits.filter(|_| found.is_empty()).unwrap_or_default();
    if !one_class {
        bits.drop("ranks", "two buffers and in place have different expressions");
    }
    // If the request states another datatype, the file's number of elements stands for another number of bytes.
    let elements = facts.elements.or(p.meaning.elements.filter(|_| facts.dtype.is_some()));
    let unserved = slots::unserved(&p, import::bytes(&p, &Facts { elements, ..*facts }));
    let unserved = unserved.map(|reason| format!("{reason}; the proof is of its steps"));
    Ok(Checked {
        complete: all(|p| p.complete),
        deadlock_free: hang.is_none() && all(|p| p.deadlock_free),
        race_free: all(|p| p.race_free),
        repeatable: all(|p| p.repeatable) && one_class,
        expression_class: proofs
            .first()
            .and_then(|p| p.expression_class.clone())
            .filter(|_| all(Proof::holds) && one_class),
        bits,
        buffers: ways.iter().map(|(_, name)| *name).collect(),
        sizes: hang.as_ref().map_or_else(|| span(&p, range), |hang| safe(&p, hang, range)),
        notes: limits::notes(&p).into_iter().chain(unserved).collect(),
        diagnostics: found,
    })
}

/// Returns a number of bytes in the largest of GiB, MiB, KiB and bytes that divides it, in words.
fn bytes(n: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = units.iter().find(|(size, _)| n >= *size && n.is_multiple_of(*size));
    unit.map_or_else(|| format!("{n} bytes"), |(size, name)| format!("{} {name}", n / size))
}

/// Returns in words `n`, the bytes of a chunk, and the bytes of the whole call.
fn chunk(p: &Program, n: u64) -> String {
    format!("{} a chunk ({})", bytes(n), bytes(n.saturating_mul(u64::from(p.chunks))))
}

fn span(p: &Program, range: Range) -> String {
    match range {
        (1, None) => "all".to_owned(),
        (least, None) => format!("all from {}", chunk(p, least)),
        (1, Some(most)) => format!("all up to {}", chunk(p, most)),
        (least, Some(most)) if least == most => chunk(p, least),
        (least, Some(most)) => format!("all from {} to {}", chunk(p, least), chunk(p, most)),
    }
}

fn safe(p: &Program, hang: &Hang, range: Range) -> String {
    match hang.at.first() {
        Some(first) if first.0 > range.0 => format!("safe up to {}", chunk(p, first.0 - 1)),
        _ => "none".to_owned(),
    }
}

fn describe(p: &Program, hang: &Hang, range: Range) -> String {
    let at: Vec<String> = hang
        .at
        .iter()
        .map(|&(from, to)| match to {
            Some(to) if Some(to) != range.1 => format!("from {} to {} a chunk", bytes(from), bytes(to)),
            _ if from > range.0 => format!("from {} on", chunk(p, from)),
            _ => format!("at {}", if range.1 == Some(range.0) { chunk(p, from) } else { "every size".to_owned() }),
        })
        .collect();
    let circle: Vec<String> = hang.circle.iter().take(SHOWN).map(ToString::to_string).collect();
    let more = hang.circle.len() - circle.len();
    let more = if more > 0 { format!(", and so on for {more} more") } else { String::new() };
    format!("{}, {}{more}", at.join(" and "), circle.join("; "))
}

/// The maximum number of thread blocks of a cycle that a message names.
const SHOWN: usize = 4;
