//! A check that every message between a pair of ranks has a send and a receive.

use std::collections::BTreeMap;

use unisono_base::excerpt;

use crate::{Work, WorkloadGraph};

/// A message whose other end is missing or differs in length, an unmatched collective, or a node in a cycle of waits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unmatched {
    pub rank: u32,
    /// The index of the node among those of its rank.
    pub node: usize,
    pub message: String,
}

/// The sends or the receives of one sender, receiver and tag, each with its bytes and its node.
type Ends = Vec<(u64, usize)>;

impl WorkloadGraph {
    /// Checks that, for each sender, receiver and tag, the numbers of sends and receives are equal, and so are their
    /// lengths in sorted order. The two ranks must be different classes of one rank each.
    ///
    /// # Errors
    /// Returns an error that names the shortest message without its other end, or one between wrong ranks.
    pub fn check_messages(&self) -> Result<(), Unmatched> {
        check(self)
    }
}

fn check(graph: &WorkloadGraph) -> Result<(), Unmatched> {
    let mut pairs: BTreeMap<(u32, u32, u32), [Ends; 2]> = BTreeMap::new();
    for class in &graph.classes {
        for (number, node) in class.nodes.iter().enumerate() {
            let Some(&rank) = class.ranks.first() else { continue };
            let (from, to, tag, bytes) = match node.work {
                Work::Send { to, bytes, tag } => (rank, to, tag, bytes),
                Work::Receive { from, bytes, tag } => (from, rank, tag, bytes),
                _ => continue,
            };
            let wrong = |message: String| Unmatched { rank, node: number, message };
            let other = if rank == from { to } else { from };
            if class.ranks.len() > 1 {
                return Err(wrong("it is a message between two ranks, and several ranks share the node".to_owned()));
            }
            if from == to || other >= graph.ranks {
                let last = graph.ranks.saturating_sub(1);
                let message = format!("'{}' is a message with rank {other}", excerpt(&node.name));
                return Err(wrong(format!("{message}; accepted are ranks 0 to {last}, but not the rank itself")));
            }
            let end = usize::from(matches!(node.work, Work::Receive { .. }));
            pairs.entry((from, to, tag)).or_default()[end].push((bytes, number));
        }
    }
    pairs.into_iter().try_for_each(|((from, to, tag), ends)| alike(from, to, tag, ends))
}

fn alike(from: u32, to: u32, tag: u32, ends: [Ends; 2]) -> Result<(), Unmatched> {
    let [sent, received] = ends.map(|mut ends| {
        ends.sort_unstable();
        ends
    });
    let at = sent.iter().zip(&received).position(|(a, b)| a.0 != b.0).unwrap_or(sent.len().min(received.len()));
    // `at` is the index of the first message, in order of length, that has no match in the other list.
    let end = |ends: &Ends| ends.get(at).copied();
    match (end(&sent), end(&received)) {
        (Some((bytes, node)), other) if other.is_none() || sent.len() >= received.len() => {
            let message = format!(
                "it sends {bytes} bytes to rank {to} with tag {tag}, which rank {to} does not receive; accepted are as \
                 many receives as sends, of the same lengths"
            );
            Err(Unmatched { rank: from, node, message })
        }
        (_, Some((bytes, node))) => {
            let message = format!(
                "it receives {bytes} bytes from rank {from} with tag {tag}, which rank {from} does not send; accepted are \
                 as many sends as receives, of the same lengths"
            );
            Err(Unmatched { rank: to, node, message })
        }
        _ => Ok(()),
    }
}
