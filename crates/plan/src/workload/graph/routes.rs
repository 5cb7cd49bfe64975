//! The groups of each communication of a program, with their times without other traffic and the links that they use.

use std::sync::Arc;

use unisono_lower::{Exchange, Flow};
use unisono_workload::Groups;

use super::{ProgramPrices, prices::Communication};
use crate::PlanError;

/// The ranks that perform a communication together.
pub(super) struct Group {
    pub ranks: Vec<u32>,
    /// The time in seconds if no other group communicates.
    pub seconds: f64,
    /// Each link with the fraction of `seconds` for which it is busy.
    pub links: Vec<(u32, f64)>,
}

/// Returns the groups of each row of the prices.
///
/// # Errors
/// Returns an error if the schedule of an algorithm without a closed form is too large.
pub(super) fn routes(prices: &ProgramPrices) -> Result<Vec<Vec<Group>>, PlanError> {
    prices.rows().iter().enumerate().map(|(row, priced)| of_row(prices, row, priced)).collect()
}

fn of_row(prices: &ProgramPrices, row: usize, priced: &Communication) -> Result<Vec<Group>, PlanError> {
    if let Some(receivers) = prices.receivers_of(row) {
        let graph = prices.graph();
        let mut takes = vec![false; graph.ranks as usize];
        for (from, to) in graph.pairs(receivers) {
            (takes[from as usize], takes[to as usize]) = (true, true);
        }
        let ranks: Vec<u32> = (0..).zip(takes).filter(|(_, takes)| *takes).map(|(rank, _)| rank).collect();
        let all = Arc::new(Groups::all(graph.ranks));
        let messages = messages_at_once(&graph.receivers[receivers as usize], priced.bytes);
        let load = prices.shared().and_then(|shared| shared.group_loads(&[messages], &all).into_iter().next());
        return Ok(vec![Group::new(ranks, priced.seconds, load.map_or_else(Vec::new, |load| load.links))]);
    }
    let mut groups = Vec::new();
    for chosen in &prices.chosen()[row] {
        let exchanges = prices.shared().and_then(|shared| Some((shared, chosen.exchanges()?)));
        let loads = exchanges.map(|(shared, exchanges)| shared.group_loads(&exchanges, &chosen.groups));
        for (n, ranks) in chosen.groups.iter().enumerate() {
            let load = loads.as_ref().map(|loads| &loads[n]);
            let seconds = chosen.planned_seconds().or(load.map(|load| load.ns * 1e-9)).unwrap_or(priced.seconds);
            groups.push(Group::new(ranks.to_vec(), seconds, load.map_or_else(Vec::new, |load| load.links.clone())));
        }
    }
    Ok(groups)
}

/// Returns the messages of `bytes` bytes that each rank sends to its receiver in each table, all at once.
pub(super) fn messages_at_once(tables: &[Vec<u32>], bytes: u64) -> Exchange {
    let flow = |table: &Vec<u32>| {
        let to: Arc<[u32]> = table.as_slice().into();
        Flow::new(bytes, 1, move |rank| to[rank as usize])
    };
    Exchange { flows: tables.iter().map(flow).collect(), reduced: 0 }
}

impl Group {
    /// Creates a group. `busy_ns` is the time for which each link is busy, which is limited to the time of the group.
    fn new(ranks: Vec<u32>, seconds: f64, busy_ns: Vec<(u32, f64)>) -> Self {
        let part = |(link, ns): (u32, f64)| (link, if seconds > 0.0 { (ns * 1e-9 / seconds).min(1.0) } else { 0.0 });
        Self { ranks, seconds, links: busy_ns.into_iter().map(part).collect() }
    }
}
