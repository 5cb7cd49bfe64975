//! The lines of a graph.

use unisono_base::excerpt;

use super::Cable;

/// A cable between two nodes, with its kind where a line says one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge {
    pub a: u32,
    pub b: u32,
    pub cable: Option<Cable>,
}

/// A graph of more nodes could not be routed.
const MOST_NODES: u32 = 1 << 26;

impl Edge {
    pub fn of([a, b]: [u32; 2]) -> Self {
        Self { a, b, cable: None }
    }
}

/// # Errors
/// A line that is no cable; the message says which.
pub fn parse(text: &str) -> Result<Vec<Edge>, String> {
    let mut edges = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let said = line.split('#').next().unwrap_or("").split_whitespace().collect::<Vec<_>>();
        if !said.is_empty() {
            let wrong = || {
                format!(
                    "line {number} of the cables is '{}'; accepted is 'A B', two nodes, and then dac, aoc or board",
                    excerpt(line.trim())
                )
            };
            edges.push(edge(&said).ok_or_else(wrong)?);
        }
    }
    Ok(edges)
}

fn edge(said: &[&str]) -> Option<Edge> {
    let node = |text: &str| text.parse().ok().filter(|&n: &u32| n < MOST_NODES);
    let (ends, kind) = said.split_at_checked(2)?;
    let cable = match kind {
        [] => None,
        ["dac"] => Some(Cable::Dac),
        ["aoc"] => Some(Cable::Aoc),
        ["board"] => Some(Cable::Board),
        _ => return None,
    };
    Some(Edge { a: node(ends[0])?, b: node(ends[1])?, cable })
}
