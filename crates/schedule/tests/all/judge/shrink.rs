//! Makes a schedule smaller as long as its outcome is the same.

use unisono_base::StreamId;
use unisono_schedule::Operand;

use super::draft::Draft;

/// Returns the smallest draft found that satisfies `holds`.
pub fn shrink(draft: &Draft, holds: &mut dyn FnMut(&Draft) -> bool) -> Draft {
    let mut best = draft.clone();
    loop {
        let Some(next) = smaller(&best).into_iter().find(|d| holds(d)) else { return best };
        best = next;
    }
}

fn smaller(draft: &Draft) -> Vec<Draft> {
    let mut all = Vec::new();
    let mut try_one = |change: &dyn Fn(&mut Draft)| {
        let mut new = draft.clone();
        change(&mut new);
        all.push(new);
    };
    for s in 0..draft.streams.len() {
        let operand = Operand::Stream(StreamId::new(s));
        if draft.rows.iter().any(|r| r.sources.contains(&operand) || r.sinks.contains(&operand)) {
            try_one(&|d| {
                for row in &mut d.rows {
                    row.sources.retain(|&o| o != operand);
                    row.sinks.retain(|&o| o != operand);
                }
                d.rows.retain(|r| !r.sources.is_empty() && !r.sinks.is_empty());
            });
        }
        if draft.streams[s].capacity.is_some() {
            try_one(&|d| d.streams[s].capacity = None);
        }
    }
    for r in 0..draft.rows.len() {
        try_one(&|d| drop(d.rows.remove(r)));
        for k in 0..draft.rows[r].after.len() {
            try_one(&|d| {
                d.rows[r].after.remove(k);
            });
        }
        if draft.rows[r].sources.len() > 1 {
            for k in 0..draft.rows[r].sources.len() {
                try_one(&|d| {
                    d.rows[r].sources.remove(k);
                });
            }
        }
        if draft.rows[r].sinks.len() > 1 {
            for k in 0..draft.rows[r].sinks.len() {
                try_one(&|d| {
                    d.rows[r].sinks.remove(k);
                });
            }
        }
    }
    all
}

pub fn text(draft: &Draft) -> String {
    let mut text = String::new();
    if let Some(schedule) = draft.build() {
        unisono_schedule::text::print(&schedule, &mut text).unwrap_or_default();
    }
    text
}
