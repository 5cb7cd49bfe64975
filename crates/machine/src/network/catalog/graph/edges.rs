//! The lines that describe a graph's cables.

use std::{collections::BTreeMap, fmt};

use unisono_base::excerpt;

use super::Cable;
use crate::network::{
    Speed,
    description::{MOST_NS, RATES_GBPS},
};

/// Equal cables between two nodes, with their kind, rates and latency if the line states them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Edge {
    pub a: u32,
    pub b: u32,
    pub cable: Option<Cable>,
    pub gbps: Option<f64>,
    /// The rate in Gb/s that programs reached.
    pub measured: Option<f64>,
    pub latency_ns: Option<f64>,
    pub count: u32,
}

/// The maximum number of nodes of a graph that can be routed.
const MOST_NODES: u32 = 1 << 26;
/// The maximum number of equal cables of a line.
const MOST_COUNT: u32 = 4096;

impl Edge {
    /// Returns the speed of the cable if the machine's own links have speed `own`. A measured rate takes precedence.
    pub fn speed(&self, own: Speed) -> Speed {
        let gbps = self.measured.or(self.gbps).unwrap_or(own.gbps);
        Speed { gbps, latency_ns: self.latency_ns.unwrap_or(own.latency_ns) }
    }

    pub fn of([a, b]: [u32; 2]) -> Self {
        Self { a, b, cable: None, gbps: None, measured: None, latency_ns: None, count: 1 }
    }
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} {}", self.a, self.b)?;
        if let Some((word, _)) = KINDS.iter().find(|(_, kind)| Some(*kind) == self.cable) {
            write!(f, " {word}")?;
        }
        self.gbps.map_or(Ok(()), |gbps| write!(f, " gbps={gbps}"))?;
        self.measured.map_or(Ok(()), |gbps| write!(f, " measured={gbps}"))?;
        self.latency_ns.map_or(Ok(()), |ns| write!(f, " ns={ns}"))?;
        if self.count == 1 { Ok(()) } else { write!(f, " count={}", self.count) }
    }
}

/// Returns the number of nodes: one more than the largest number of a node, and at least `accelerators`.
pub fn nodes_of(edges: &[Edge], accelerators: u32) -> u32 {
    edges.iter().map(|edge| edge.a.max(edge.b) + 1).fold(accelerators, u32::max)
}

/// Returns the cables of a graph's table as lines; `None` if the table has no key `edges`, or its value is of another
/// type.
pub fn text_of_edges(table: &toml::Table) -> Option<String> {
    match table.get("edges")? {
        toml::Value::String(text) => Some(format!("{}\n", text.trim_end())),
        toml::Value::Array(pairs) => pairs
            .iter()
            .map(|pair| match pair.as_array().map(Vec::as_slice) {
                Some([a, b]) => Some(format!("{} {}\n", a.as_integer()?, b.as_integer()?)),
                _ => None,
            })
            .collect(),
        _ => None,
    }
}

/// # Errors
/// Returns an error if a line is not a cable; the message names the line and its first wrong word.
pub fn parse(text: &str) -> Result<Vec<Edge>, String> {
    let nodes = format!("two nodes from 0 to {}", MOST_NODES - 1);
    lines(text, &nodes, &numbered)
}

/// Reads cables between nodes with these names; the number of a node is the index of its name.
///
/// # Errors Returns the errors of [`parse`].
pub fn parse_named(text: &str, names: &[String]) -> Result<Vec<Edge>, String> {
    let numbers: BTreeMap<&str, u32> = names.iter().map(String::as_str).zip(0..).collect();
    let find =
        |word: &str| numbers.get(word).copied().ok_or_else(|| format!("'{}' is not the name of a node", excerpt(word)));
    lines(text, "the names of two nodes", &find)
}

/// Returns the number of a node from its word, or a reason why the word is not a node.
type Find<'a> = &'a dyn Fn(&str) -> Result<u32, String>;

fn lines(text: &str, nodes: &str, find: Find) -> Result<Vec<Edge>, String> {
    let mut edges = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let said = line.split('#').next().unwrap_or("").split_whitespace().collect::<Vec<_>>();
        if !said.is_empty() {
            let wrong = |reason: String| {
                format!(
                    "line {number} of the cables is '{}': {reason}; accepted is 'A B', {nodes}, and then dac, aoc or board, \
                      gbps=NUMBER and measured=NUMBER (from {:e} to {:e}), ns=NUMBER (0 to {MOST_NS:e}) and count=NUMBER \
                     (1 to {MOST_COUNT})",
                    excerpt(line.trim()),
                    RATES_GBPS.start(),
                    RATES_GBPS.end(),
                )
            };
            edges.push(edge(&said, find).map_err(wrong)?);
        }
    }
    Ok(edges)
}

/// # Errors
/// Returns the reason why the words are not a cable; it names the first wrong word.
fn edge(said: &[&str], find: Find) -> Result<Edge, String> {
    let Some((ends, words)) = said.split_at_checked(2) else {
        return Err("it has one node".to_owned());
    };
    let mut edge = Edge::of([find(ends[0])?, find(ends[1])?]);
    let mut count = None;
    for &word in words {
        let key = word.split_once('=').map_or("its kind", |(key, _)| key);
        let is_first = match word.split_once('=') {
            None => put(&mut edge.cable, cable(word)),
            Some(("gbps", rate)) => put(&mut edge.gbps, number(rate).filter(|rate| RATES_GBPS.contains(rate))),
            Some(("measured", rate)) => put(&mut edge.measured, number(rate).filter(|rate| RATES_GBPS.contains(rate))),
            Some(("ns", latency)) => {
                put(&mut edge.latency_ns, number(latency).filter(|ns| (0.0..=MOST_NS).contains(ns)))
            }
            Some(("count", cables)) => {
                put(&mut count, cables.parse().ok().filter(|cables| (1..=MOST_COUNT).contains(cables)))
            }
            Some(_) => None,
        };
        match is_first {
            None => return Err(format!("'{}' is not accepted", excerpt(word))),
            Some(false) => return Err(format!("'{}' states {key} again", excerpt(word))),
            Some(true) => {}
        }
    }
    edge.count = count.unwrap_or(1);
    Ok(edge)
}

/// # Errors
/// Returns a reason if the word is not the number of a node.
fn numbered(word: &str) -> Result<u32, String> {
    let found = word.parse().ok().filter(|&n: &u32| n < MOST_NODES);
    found.ok_or_else(|| {
        let is_name = word.starts_with(|first: char| first.is_alphabetic());
        let cure = if is_name { " ('unisono machines import' numbers nodes that have names)" } else { "" };
        format!("'{}' is not the number of a node{cure}", excerpt(word))
    })
}

const KINDS: [(&str, Cable); 3] = [("dac", Cable::Dac), ("aoc", Cable::Aoc), ("board", Cable::Board)];

fn cable(word: &str) -> Option<Cable> {
    KINDS.iter().find(|(name, _)| *name == word).map(|(_, kind)| *kind)
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Stores a value in `place`. Returns true if `place` was empty, false if it had a value, and `None` without a value.
fn put<T>(place: &mut Option<T>, value: Option<T>) -> Option<bool> {
    Some(place.replace(value?).is_none())
}
