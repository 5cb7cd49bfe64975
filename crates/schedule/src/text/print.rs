//! Prints a schedule in the text form.

use std::fmt::{self, Write};

use unisono_base::{InstrId, LaneId, NodeId};

use crate::schedule::{Operand, Schedule};

/// Writes a schedule in the text form.
///
/// # Errors
/// Returns the errors of the writer.
pub fn print(schedule: &Schedule, to: &mut impl Write) -> fmt::Result {
    let c = schedule.collective();
    writeln!(to, "unisono-schedule 1")?;
    writeln!(
        to,
        "collective {} ranks={} elements={} root={} operator={} dtype={}",
        c.kind, c.ranks, c.elements, c.root, c.operator, c.dtype
    )?;
    if !schedule.origin().is_empty() {
        writeln!(to, "origin {}", schedule.origin())?;
    }
    if !schedule.phases().is_empty() {
        writeln!(to, "phases {}", schedule.phases().join(" "))?;
    }
    writeln!(to, "nodes {}", schedule.node_count())?;
    for id in schedule.all_streams() {
        let stream = schedule.stream(id);
        write!(to, "stream {id}: {} ->", stream.source.0)?;
        for sink in schedule.stream_sinks(id) {
            write!(to, " {}", sink.0)?;
        }
        if stream.capacity != stream.len {
            write!(to, " capacity={}", stream.capacity)?;
        }
        writeln!(to)?;
    }
    for node in schedule.all_nodes() {
        let lanes = schedule.lanes(node);
        let scratch = schedule.scratch_elements(node);
        if lanes.is_empty() && scratch == 0 {
            continue;
        }
        write!(to, "node {}:", node.0)?;
        if scratch > 0 {
            write!(to, " tmp={scratch}")?;
        }
        writeln!(to)?;
        print_lanes(schedule, node, to)?;
    }
    Ok(())
}

fn print_lanes(schedule: &Schedule, node: NodeId, to: &mut impl Write) -> fmt::Result {
    for (n, lane) in schedule.lanes(node).map(LaneId::new).enumerate() {
        if n > 0 {
            writeln!(to, "  lane")?;
        }
        for id in schedule.lane_instrs(lane).map(InstrId::new) {
            print_instr(schedule, id, to)?;
        }
    }
    Ok(())
}

fn print_instr(schedule: &Schedule, id: InstrId, to: &mut impl Write) -> fmt::Result {
    let len = schedule.instr(id).len;
    write!(to, "  {id}")?;
    if schedule.phase(id).0 > 0 {
        write!(to, " {}", schedule.phase(id))?;
    }
    let mut sliced = false;
    for (n, operand) in schedule.sources(id).iter().enumerate() {
        to.write_str(if n == 0 { ": " } else { " + " })?;
        sliced |= print_operand(operand, len, to)?;
    }
    for (n, operand) in schedule.sinks(id).iter().enumerate() {
        to.write_str(if n == 0 { " -> " } else { ", " })?;
        sliced |= print_operand(operand, len, to)?;
    }
    if !sliced {
        write!(to, " len={len}")?;
    }
    for (n, (_, earlier)) in schedule.after(id).iter().enumerate() {
        write!(to, "{}{earlier}", if n == 0 { " after=" } else { "," })?;
    }
    writeln!(to)
}

/// Prints an operand, and returns whether it is a slice, which implies the instruction's length.
fn print_operand(operand: Operand, len: u32, to: &mut impl Write) -> Result<bool, fmt::Error> {
    let Some((buffer, span)) = operand.slice(len) else {
        if let Operand::Stream(s) = operand {
            write!(to, "{s}")?;
        }
        return Ok(false);
    };
    write!(to, "{}{span}", ["in", "out", "tmp"][buffer])?;
    Ok(true)
}
