//! The order in which a rank executes its nodes: that of the file, except that a node follows its dependencies.

use std::{cmp::Reverse, collections::BinaryHeap};

use rustc_hash::FxHashMap;

use super::messages::{BEGUN, Node};

/// The reason why nodes have no order, and the id of a node to which it applies.
pub struct NoOrder {
    pub node: u64,
    pub reason: String,
}

/// Returns the indices of nodes in execution order, and the indices of the dependencies of each node of the file.
pub fn order(nodes: &[Node]) -> Result<(Vec<usize>, Vec<Vec<usize>>), NoOrder> {
    let mut numbers = FxHashMap::default();
    for (number, node) in nodes.iter().enumerate() {
        if numbers.insert(node.id, number).is_some() {
            return Err(NoOrder { node: node.id, reason: "two nodes have this id".to_owned() });
        }
    }
    let mut before: Vec<Vec<usize>> = Vec::with_capacity(nodes.len());
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    let mut open = vec![0_usize; nodes.len()];
    for (number, node) in nodes.iter().enumerate() {
        let mut needed = Vec::new();
        // If a node has `BEGUN`, its control dependencies follow from it and are only for other readers.
        let controls = if node.has(BEGUN) { &[] } else { &node.ctrl_deps[..] };
        for id in controls.iter().chain(&node.data_deps) {
            let found = numbers.get(id).copied();
            let reason =
                || format!("it depends on node {id}, which is not in the file; the trace is cut off or mixed up");
            let found = found.ok_or_else(|| NoOrder { node: node.id, reason: reason() })?;
            after[found].push(number);
            open[number] += 1;
            needed.push(found);
        }
        before.push(needed);
    }
    let mut ready: BinaryHeap<Reverse<usize>> = (0..nodes.len()).filter(|&n| open[n] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(Reverse(number)) = ready.pop() {
        unisono_base::interrupt::poll();
        order.push(number);
        for &next in &after[number] {
            open[next] -= 1;
            if open[next] == 0 {
                ready.push(Reverse(next));
            }
        }
    }
    let Some(behind) = open.iter().position(|&open| open > 0) else { return Ok((order, before)) };
    // A node that cannot be placed in the order is in a cycle or follows a cycle. It needs another node that cannot be
    // placed. A walk from each such node to the node that it needs therefore enters the cycle after at most as many
    // steps as the file has nodes.
    let needed = |number: usize| before[number].iter().copied().find(|&other| open[other] > 0).unwrap_or(number);
    let inside = (0..nodes.len()).fold(behind, |number, _| needed(number));
    let cycle = std::iter::successors(Some(needed(inside)), |&at| (at != inside).then(|| needed(at)));
    let first = cycle.min().unwrap_or(inside);
    Err(NoOrder { node: nodes[first].id, reason: "it depends on itself, by way of other nodes".to_owned() })
}
