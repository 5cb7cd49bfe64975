//! A project that measures a broadcast on a line by ping-pong: section 8.3 of "Near-Optimal Wafer-Scale Reduce".
//!
//! First, a wavelet travels along a chain to the first PE, as a barrier. The first PE samples its clock, broadcasts,
//! and receives the broadcast of the last PE, which sends the received vector back; after [`ROUNDS`] such rounds it
//! samples again. No other clock is read, and PEs do not need a common start, so no calibration is needed. A broadcast
//! takes (end - start) / (2 rounds).
//!
//! The return path is the mirrored program, on additional colors. The barrier takes two colors, an input queue and an
//! output queue.

use unisono_base::narrow;
use unisono_collective::Kind;
use unisono_lower::wafer::{ColorRoute, End, PeProgram, Port, Ports, Position, Step, WaferProgram};

use super::{
    measured::{Role, with_colors},
    plan::{Class, Plan},
};
use crate::SdkTarget;

/// Number of broadcasts there and back in one measurement.
pub const ROUNDS: u32 = 10;

/// Names of the barrier's colors, between which the PEs of the line alternate.
const COLORS: [&str; 2] = ["barrier_0", "barrier_1"];

/// Returns the broadcast and its return path as one program. Returns `None` for other collectives, on a grid or a
/// single PE, with a root other than the first PE, without elements, with several threads, with operations of several
/// sinks, with switches, and if the doubled colors exceed 255.
pub fn there_and_back(program: &WaferProgram) -> Option<WaferProgram> {
    let (c, pes) = (&program.collective, program.pe_count());
    let is_simple = |pe| {
        program.threads(pe).len() <= 1
            && program.routes(pe).iter().all(|r| r.positions().len() == 1)
            && program.threads(pe).flat_map(|t| program.thread_ops(t)).all(|op| program.sinks(op).len() == 1)
    };
    let fits = c.kind == Kind::Broadcast && c.root == 0 && c.elements > 0 && program.grid.is_line() && pes > 1;
    if !fits || !(0..pes).all(is_simple) {
        return None;
    }
    let shift = program.colors().last()?.checked_add(1)?;
    // A greater color would wrap around to the number of another color.
    shift.checked_mul(2)?;
    let there_and_back = (0..pes).map(|pe| {
        let back = pes - 1 - pe;
        let mut routes = program.routes(pe).to_vec();
        routes.extend(program.routes(back).iter().map(|r| mirrored(r, shift)));
        let mut steps: Vec<Step> = steps(program, pe).collect();
        steps.extend(steps_back(program, back, shift));
        PeProgram { routes, threads: vec![steps], waits: Vec::new(), scratch: program.scratch_elements(pe) }
    });
    Some(WaferProgram::assemble(program.grid, *c, program.phases().to_vec(), there_and_back))
}

fn steps(program: &WaferProgram, pe: usize) -> impl Iterator<Item = Step> + '_ {
    let ops = program.threads(pe).flat_map(|t| program.thread_ops(t));
    ops.map(|op| (*program.op(op), program.sources(op).to_vec(), program.sinks(op).to_vec()))
}

/// Returns the steps of the return path, whose first PE sends the received vector.
fn steps_back(program: &WaferProgram, pe: usize, shift: u8) -> impl Iterator<Item = Step> + '_ {
    let end = move |e: End| match e {
        End::Fabric(color) => End::Fabric(color + shift),
        End::In(start) => End::Out(start),
        memory => memory,
    };
    steps(program, pe).map(move |(op, sources, sinks)| {
        (op, sources.into_iter().map(end).collect(), sinks.into_iter().map(end).collect())
    })
}

fn mirrored(route: &ColorRoute, shift: u8) -> ColorRoute {
    let ports = |ports: Ports| ports.iter().map(Port::opposite).collect();
    let positions: Vec<Position> =
        route.positions().iter().map(|p| Position { rx: ports(p.rx), tx: ports(p.tx) }).collect();
    ColorRoute::new(route.color + shift, &positions)
}

pub struct PingPong {
    pes: u32,
    /// True if the line is a column, false if it is a row.
    is_column: bool,
    colors: Vec<(&'static str, u8)>,
}

impl PingPong {
    /// # Errors
    /// Returns an error if too few colors are left.
    pub fn new(plan: &Plan, target: &SdkTarget) -> Result<Self, String> {
        let taken = |c: &u8| plan.colors.iter().any(|p| p.1 == *c);
        let free = target.colors.iter().copied().filter(|c| !taken(c));
        let colors: Vec<(&str, u8)> = COLORS.into_iter().zip(free).collect();
        if colors.len() < COLORS.len() {
            return Err(format!(
                "{} colors; a measurement takes {} more of {}",
                plan.colors.len(),
                COLORS.len(),
                target.colors.len()
            ));
        }
        Ok(Self { pes: narrow(plan.grid.count()), is_column: plan.grid.cols == 1, colors })
    }

    pub fn role(&self, row: u32, col: u32) -> Role {
        let place = row + col;
        let [toward, away] = if self.is_column { ["NORTH", "SOUTH"] } else { ["WEST", "EAST"] };
        let [arriving, leaving] = if place.is_multiple_of(2) { [COLORS[1], COLORS[0]] } else { COLORS };
        let (from_next, to_last) = (place + 1 < self.pes, place > 0);
        let params =
            format!(", .from_next = {from_next}, .to_last = {to_last}, .begin_in = {arriving}, .begin_out = {leaving}");
        let mut routes = Vec::new();
        if from_next {
            routes.push((arriving, away, "RAMP".to_owned()));
        }
        if to_last {
            routes.push((leaving, "RAMP", toward.to_owned()));
        }
        Role { params, routes }
    }

    /// Returns the program of a class with the function that measures.
    ///
    /// # Errors
    /// Returns an error if too few queues are left.
    pub fn program(&self, class: &Class, text: &str, target: &SdkTarget) -> Result<String, String> {
        let free = |all: &[u8], taken: &[Option<u8>]| all.iter().copied().find(|&q| !taken.contains(&Some(q)));
        let queues = (free(target.input_queues, &class.queues.input), free(target.output_queues, &class.queues.output));
        let (Some(input), Some(output)) = queues else {
            return Err("no input or no output queue is left at a PE; a measurement takes 1 and 1 more".to_owned());
        };
        let color = if target.binds_queues { "" } else { ".fabric_color = begin_in, " };
        let head = HEAD
            .replace("<<in>>", &input.to_string())
            .replace("<<out>>", &output.to_string())
            .replace("<<color>>", color);
        let (before, after) = text.split_once("\n\nvar input").unwrap_or((text, ""));
        let end = "  sys_mod.unblock_cmd_stream();\n}\n";
        let text = format!("{before}{head}\n\nvar input{after}").replace("fn compute() void {", "fn round() void {");
        let functions = FUNCTIONS.replace("<<rounds>>", &ROUNDS.to_string());
        let text = text.replace(end, &format!("}}\n\n{functions}"));
        let mut setup = "  if (from_next) {\n    @initialize_queue(iq_begin, .{ .color = begin_in });\n".to_owned();
        if target.binds_queues {
            setup += "  }\n  if (to_last) {\n    @initialize_queue(oq_begin, .{ .color = begin_out });\n  }\n";
        } else {
            setup += "    @block(begin_in);\n  }\n";
        }
        Ok(text.replace("  @export_symbol(compute);\n", &format!("{setup}  @export_symbol(compute);\n{EXPORTS}")))
    }

    /// Adds the additional colors and the exported symbols to the text of a layout.
    pub fn layout(&self, text: &str) -> String {
        with_colors(text, "The barrier of measurements", &self.colors, "\nconst memcpy", NAMES)
    }
}

const NAMES: &str = "  @export_name(\"ping_pong\", fn()void);
  @export_name(\"started\", [*]u16, false);
  @export_name(\"ended\", [*]u16, false);
";

const HEAD: &str = "
const time = @import_module(\"<time>\");

param from_next: bool;
param to_last: bool;
param begin_in: color;
param begin_out: color;

// Clocks of 48 bits: before the first broadcast and after the last one.
var started = @zeros([3]u16);
var ended = @zeros([3]u16);
var started_ptr: [*]u16 = &started;
var ended_ptr: [*]u16 = &ended;
var token = @zeros([1]u32);
const iq_begin = @get_input_queue(<<in>>);
const oq_begin = @get_output_queue(<<out>>);
const token_dsd = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{1} -> token[i] });
const rx_begin = @get_dsd(fabin_dsd, .{ .extent = 1, <<color>>.input_queue = iq_begin });
const tx_begin = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = begin_out, .output_queue = oq_begin });";

const FUNCTIONS: &str = "fn compute() void {
  round();
  sys_mod.unblock_cmd_stream();
}

fn ping_pong() void {
  time.enable_tsc();
  if (from_next) {
    @mov32(token_dsd, rx_begin);
  }
  if (to_last) {
    @mov32(tx_begin, token_dsd);
  }
  time.get_timestamp(&started);
  for (@range(u16, <<rounds>>)) |n| {
    round();
  }
  time.get_timestamp(&ended);
  sys_mod.unblock_cmd_stream();
}
";

const EXPORTS: &str = "  @export_symbol(started_ptr, \"started\");
  @export_symbol(ended_ptr, \"ended\");
  @export_symbol(ping_pong);
";
