//! Checks the limits of the target before any text is written. Each error names the number found and the limit.

use unisono_base::narrow;
use unisono_collective::{Collective, Dtype, Kind};
use unisono_lower::wafer::{ColorRoute, End, Op, WaferProgram};

use super::{mapped, operator::vector_operation};
use crate::{SdkTarget, normal::in_turns};

type Check = Result<(), String>;

pub fn check(program: &WaferProgram, target: &SdkTarget) -> Check {
    whole(program, target)?;
    for pe in 0..program.pe_count() {
        let (row, col) = program.grid.row_col(narrow(pe));
        let at = |e: String| format!("PE ({row}, {col}): {e}");
        memory(program, pe, target).map_err(at)?;
        for route in program.routes(pe) {
            positions(route, target).map_err(at)?;
        }
        colors_once(program.routes(pe)).map_err(at)?;
        for op in program.threads(pe).flat_map(|t| program.thread_ops(t)) {
            operation(program, pe, op, target).map_err(at)?;
        }
    }
    Ok(())
}

fn whole(program: &WaferProgram, target: &SdkTarget) -> Check {
    let (grid, c) = (program.grid, &program.collective);
    if grid.cols > target.width || grid.rows > target.height {
        return Err(format!(
            "the grid has {} columns and {} rows; beside the host link {} columns and {} rows remain",
            grid.cols, grid.rows, target.width, target.height
        ));
    }
    let pes = program.pe_count() as u64;
    if pes == 0 || grid.count() != pes || u64::from(c.ranks) != pes {
        return Err(format!(
            "the grid {grid} has {} PEs, the program {pes}, the collective {} ranks; these must be equal and not zero",
            grid.count(),
            c.ranks
        ));
    }
    if !matches!(c.dtype, Dtype::F32 | Dtype::I32) {
        return Err(format!("datatype {}; programs are written for wavelets of one f32 or i32", c.dtype));
    }
    let colors = program.colors().len();
    if colors > target.colors.len() {
        return Err(format!(
            "{colors} colors in use; a program for {} has {}, the host link takes the others",
            target.name,
            target.colors.len()
        ));
    }
    let bad = |name: &&String| name.is_empty() || name.trim() != name.as_str() || name.chars().any(char::is_control);
    if let Some(name) = program.phases().iter().find(bad) {
        return Err(format!("phase {name:?}; a name of a phase is written on one line, without spaces around it"));
    }
    Ok(())
}

/// Returns the declared lengths of a PE's input and output vectors in elements, at least 1. The host reads the output
/// of a broadcast as one rectangle, so its root has an output too.
pub fn vectors(c: &Collective, rank: u32) -> (u32, u32) {
    let out = if c.kind == Kind::Broadcast { c.elements } else { c.output_len(rank) };
    (c.input_len(rank).max(1), out.max(1))
}

fn memory(program: &WaferProgram, pe: usize, target: &SdkTarget) -> Check {
    let (input, output) = vectors(&program.collective, narrow(pe));
    let scratch = program.scratch_elements(pe);
    let is_mapped = vector_operation(&program.collective).is_none();
    let partial = |op: usize| {
        let (o, sources) = (program.op(op), program.sources(op));
        if is_mapped && sources.len() > 1 {
            // One buffer holds the partial result. Another buffer holds the operand that arrived.
            2 * u64::from(mapped::chunk(sources, o.sinks_in_turn, o.chunk, o.len, target))
        } else if in_turns(sources, o.chunk) {
            u64::from(o.chunk.min(o.len))
        } else {
            0
        }
    };
    let partials = program.threads(pe).map(|t| program.thread_ops(t).map(partial).max().unwrap_or(0));
    let elements = u64::from(input) + u64::from(output) + u64::from(scratch) + partials.sum::<u64>();
    let bytes = target.data_bytes(elements);
    let limit = target.sram_bytes.saturating_sub(target.code_bytes);
    if bytes > limit {
        return Err(format!(
            "input, output, scratch memory and sums of chunks take {bytes} bytes; {limit} of the {} remain beside the code",
            target.sram_bytes
        ));
    }
    Ok(())
}

fn colors_once(routes: &[ColorRoute]) -> Check {
    match routes.windows(2).find(|w| w[0].color >= w[1].color) {
        Some(w) => Err(format!(
            "routes of color {} and then of color {}; a color has one route at a PE, and routes ascend by color",
            w[0].color, w[1].color
        )),
        None => Ok(()),
    }
}

fn positions(route: &ColorRoute, target: &SdkTarget) -> Check {
    let (color, positions) = (route.color, route.positions());
    if positions.len() > target.extra_positions + 1 {
        return Err(format!(
            "color {color} has {} positions; a router has {}",
            positions.len(),
            target.extra_positions + 1
        ));
    }
    for (n, p) in positions.iter().enumerate() {
        if p.rx.count() != 1 {
            return Err(format!(
                "position {n} of color {color} accepts from {} ports; on the {} wavelets from two at once are undefined, so exactly 1 is emitted",
                p.rx.count(),
                target.wafer
            ));
        }
        if p.tx.is_empty() {
            return Err(format!("position {n} of color {color} leads nowhere"));
        }
        if p.rx.bits() & p.tx.bits() != 0 {
            return Err(format!("position {n} of color {color} sends wavelets back to where they came from"));
        }
    }
    for (n, w) in positions.windows(2).enumerate() {
        if w[0].rx != w[1].rx && w[0].tx != w[1].tx && !target.needs.switches_both_sides {
            return Err(format!(
                "position {} of color {color} changes both where wavelets come from and where they go; on the {} a position changes one of them",
                n + 1,
                target.wafer
            ));
        }
        if w[0].tx != w[1].tx && w[1].tx.count() != 1 {
            return Err(format!(
                "position {} of color {color} switches to {} directions; on the {} a switch position names 1",
                n + 1,
                w[1].tx.count(),
                target.wafer
            ));
        }
    }
    Ok(())
}

fn operation(program: &WaferProgram, pe: usize, op: usize, target: &SdkTarget) -> Check {
    let o = program.op(op);
    let (sources, sinks) = (program.sources(op), program.sinks(op));
    if o.len == 0 {
        return Err("an operation of 0 elements; a vector operation has 1 or more".to_owned());
    }
    let to_fabric = sinks.iter().filter(|s| matches!(s, End::Fabric(_))).count();
    match (sinks.len(), to_fabric) {
        (1, _) => {}
        (2, 1) if !o.sinks_in_turn && o.len > 0 => {
            return Err(
                "an operation keeps and sends each element at once; a vector operation has one destination; take chunks of 2 or more"
                    .to_owned(),
            );
        }
        (2, 1) if o.chunk.min(o.len) > target.extent => {
            return Err(format!("chunks of {} elements; a vector operation has at most {}", o.chunk, target.extent));
        }
        (2, 1) if o.advance.is_some() || o.control.is_some() => {
            return Err(
                "an operation that keeps what it sends switches a color; only one vector operation may".to_owned()
            );
        }
        (2, 1) => {}
        (n, _) => {
            return Err(format!(
                "an operation with {n} sinks; a vector operation has one destination, memory or fabric, and what memory keeps is sent \
                 on one color"
            ));
        }
    }
    operands(o, sources, target)?;
    if o.pace > 1 {
        return Err(format!(
            "an operation paced at {} cycles an element; a vector operation runs as fast as the datapath",
            o.pace
        ));
    }
    switching(o, sinks[0])?;
    for &end in sources.iter().chain(sinks) {
        place(program, pe, end, o.len)?;
    }
    Ok(())
}

fn operands(o: &Op, sources: &[End], target: &SdkTarget) -> Check {
    let fabric = |s: &&End| matches!(s, End::Fabric(_));
    let several = sources.iter().filter(fabric).count() > 1;
    if let Some(End::Fabric(c)) =
        (1..sources.len()).find(|&n| fabric(&&sources[n]) && sources[..n].contains(&sources[n])).map(|n| sources[n])
    {
        return Err(format!("both sources are color {c}; a color has one input queue"));
    }
    match sources {
        _ if in_turns(sources, o.chunk) => {}
        [_, _] if several && target.needs.fabric_sources < 2 => {
            return Err(format!(
                "two sources from the fabric, one element of each in turn; a vector operation of the {} has 1; take chunks of 2 or more",
                target.wafer
            ));
        }
        [_] | [_, _] => return Ok(()),
        _ => return Err(format!("an operation with {} sources; a vector operation has 1 or 2", sources.len())),
    }
    if o.chunk < 2 && o.len > 1 {
        return Err(format!(
            "an element-wise chunk: {} sources, {} of them from the fabric, combined element by element; take chunks of 2 or more in \
             turns; a vector operation has 2 sources",
            sources.len(),
            sources.iter().filter(fabric).count()
        ));
    }
    if !sources[1..].iter().all(|s| fabric(&s)) || !several {
        return Err(
            "an operation in turns with memory behind a fabric source; only the first source is memory".to_owned()
        );
    }
    if o.chunk.min(o.len) > target.extent {
        return Err(format!("chunks of {} elements; a vector operation has at most {}", o.chunk, target.extent));
    }
    if o.advance.is_some() || o.control.is_some() {
        return Err("an operation in turns that switches a color; only one vector operation may".to_owned());
    }
    Ok(())
}

fn switching(o: &Op, sink: End) -> Check {
    for (what, color) in [("advances", o.advance), ("sends a control wavelet on", o.control)] {
        if let Some(c) = color
            && sink != End::Fabric(c)
        {
            return Err(format!("an operation {what} color {c} but sends no data on it; only the sender of data may"));
        }
    }
    if o.advance.is_some() && o.control.is_some() {
        return Err(
            "an operation both advances its own router and sends a control wavelet, which would advance it again"
                .to_owned(),
        );
    }
    Ok(())
}

/// Checks that an operand of `len` elements lies inside its vector, or that its color has a route at the PE.
fn place(program: &WaferProgram, pe: usize, end: End, len: u32) -> Check {
    let (input, output) = vectors(&program.collective, narrow(pe));
    let (name, start, size) = match end {
        End::In(start) => ("input", start, input),
        End::Out(start) => ("output", start, output),
        End::Tmp(start) => ("scratch", start, program.scratch_elements(pe)),
        End::Fabric(color) => {
            let routed = program.routes(pe).iter().any(|r| r.color == color);
            return if routed {
                Ok(())
            } else {
                Err(format!("an operation uses color {color}, which has no route here"))
            };
        }
    };
    if u64::from(start) + u64::from(len) > u64::from(size) {
        return Err(format!(
            "an operation takes {name}[{start}..{}], but {name} has {size} elements",
            u64::from(start) + u64::from(len)
        ));
    }
    Ok(())
}
