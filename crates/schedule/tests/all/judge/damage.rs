//! Damages a draft by one random change.

use unisono_schedule::Operand;

use super::{
    draft::{Draft, DraftRow},
    random::Random,
};

/// Makes one change, after which most schedules are wrong.
pub fn damage(r: &mut Random, draft: &mut Draft) {
    if draft.rows.is_empty() {
        return;
    }
    let row = r.below(draft.rows.len());
    match r.below(100) {
        0..30 => {
            let with: Vec<usize> = (0..draft.rows.len()).filter(|&i| !draft.rows[i].after.is_empty()).collect();
            if !with.is_empty() {
                let row = r.pick(&with);
                let at = r.below(draft.rows[row].after.len());
                draft.rows[row].after.remove(at);
            }
        }
        30..50 => {
            let place = |d: &DraftRow| (d.node, d.lane);
            let here = place(&draft.rows[row]);
            if let Some(next) = (row + 1..draft.rows.len()).find(|&i| place(&draft.rows[i]) == here) {
                draft.rows.swap(row, next);
            }
        }
        50..60 if !draft.streams.is_empty() => {
            let s = r.below(draft.streams.len());
            draft.streams[s].capacity = Some(r.below(4) as u32);
        }
        60..72 => draft.rows[row].lane = r.below(4) as u32,
        72..80 => {
            let id = draft.rows[r.below(draft.rows.len())].id;
            if id != draft.rows[row].id {
                draft.rows[row].after.push(id);
            }
        }
        80..94 => {
            let elements = draft.collective.elements as usize + 1;
            let size = draft.scratch[draft.rows[row].node as usize] as usize + 1;
            let target = &mut draft.rows[row];
            let sources = r.chance(50);
            let operands = if sources { &mut target.sources } else { &mut target.sinks };
            let at = r.below(operands.len());
            operands[at] = match operands[at] {
                Operand::Stream(s) => Operand::Stream(s),
                _ if sources && r.chance(40) => Operand::In(r.below(elements) as u32),
                Operand::In(_) | Operand::Tmp(_) if r.chance(80) => Operand::Tmp(r.below(size) as u32),
                _ => Operand::Out(r.below(elements) as u32),
            };
        }
        94..97 => {
            let target = &mut draft.rows[row];
            if target.sources.len() > 1 {
                if r.chance(50) {
                    target.sources.swap(0, 1);
                } else {
                    target.sources.pop();
                }
            } else if let Some(&first) = target.sources.iter().find(|o| !matches!(o, Operand::Stream(_))) {
                target.sources.push(first);
            }
        }
        97..99 => drop(draft.rows.remove(row)),
        _ => draft.rows[row].len = r.below(3) as u32,
    }
}
