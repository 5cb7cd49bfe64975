//! A project that measures time as section 8.3 of "Near-Optimal Wafer-Scale Reduce" does. It synchronizes the PEs,
//! because they have no common clock.
//!
//! `calibrate` and `measure` begin in the same way. A barrier comes first: one wavelet travels by chains along the rows
//! and along the first column to PE (0, 0). PE (0, 0) then floods a trigger. When the trigger arrives, each PE samples
//! its clock, performs the number of writes that the host set for this PE, and samples its clock again. `measure`
//! continues with `compute`, and samples the clock at the end. The host chooses the numbers of writes so that all PEs
//! start together, and converts the samples to one clock (`measure.py`).
//!
//! The barrier and the trigger use colors and queues that the collective does not use, and no switches.

use std::fmt::Write;

use unisono_base::narrow;
use unisono_machine::Grid;

use super::plan::{Class, Plan};
use crate::SdkTarget;

/// The layout's additional colors, each as name and number. Rows alternate between `barrier_0` and `barrier_1`; the
/// first column alternates between `barrier_0` and, on a grid, `barrier_2`.
pub struct Measuring {
    grid: Grid,
    pub colors: Vec<(&'static str, u8)>,
}

/// Additions of one PE to the layout: parameters, and routes as (color, input, outputs).
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Role {
    pub params: String,
    pub routes: Vec<(&'static str, &'static str, String)>,
}

impl Measuring {
    /// Chooses colors that neither the collective nor its tasks use.
    ///
    /// # Errors
    /// Returns an error for a grid of one PE, or if too few colors are left.
    pub fn new(plan: &Plan, target: &SdkTarget) -> Result<Self, String> {
        let grid = plan.grid;
        if grid.count() < 2 {
            return Err("a single PE; a measurement takes 2 or more".to_owned());
        }
        let mut names = vec!["barrier_0", "barrier_1", "trigger"];
        if !grid.is_line() {
            names.insert(2, "barrier_2");
        }
        let taken: Vec<u8> = plan.colors.iter().map(|c| c.1).chain(plan.tasks.iter().copied()).collect();
        let free = target.colors.iter().copied().filter(|c| !taken.contains(c));
        let colors: Vec<(&str, u8)> = names.iter().copied().zip(free).collect();
        if colors.len() < names.len() {
            return Err(format!(
                "{} colors beside ids of tasks; a measurement takes {} more of {}",
                plan.colors.len(),
                names.len(),
                target.colors.len()
            ));
        }
        Ok(Self { grid, colors })
    }

    /// Returns the colors on which the PE at position `place` of a chain (a row or the first column) receives and
    /// sends.
    fn pair(&self, place: u32, first_column: bool) -> [&'static str; 2] {
        let other = if first_column && !self.grid.is_line() { "barrier_2" } else { "barrier_1" };
        if place.is_multiple_of(2) { [other, "barrier_0"] } else { ["barrier_0", other] }
    }

    pub fn role(&self, row: u32, col: u32) -> Role {
        let Grid { rows, cols } = self.grid;
        let mut role = Role::default();
        let ([row_in, row_out], [column_in, column_out]) = (self.pair(col, false), self.pair(row, true));
        let (from_east, from_south) = (col + 1 < cols, col == 0 && row + 1 < rows);
        let out = match (row, col) {
            (0, 0) => "trigger",
            (_, 0) => column_out,
            _ => row_out,
        };
        let _ = write!(
            role.params,
            ", .from_east = {from_east}, .from_south = {from_south}, .triggered = {}, .begin_row = {row_in}, \
             .begin_column = {column_in}, .begin_trigger = trigger, .begin_out = {out}",
            (row, col) != (0, 0)
        );
        if from_east {
            role.routes.push((row_in, "EAST", "RAMP".to_owned()));
        }
        if from_south {
            role.routes.push((column_in, "SOUTH", "RAMP".to_owned()));
        }
        if out != "trigger" {
            role.routes.push((out, "RAMP", if col == 0 { "NORTH" } else { "WEST" }.to_owned()));
        }
        let from = match (row, col) {
            (0, 0) => "RAMP",
            (0, _) => "WEST",
            _ => "NORTH",
        };
        let onward = [("RAMP", (row, col) != (0, 0)), ("EAST", row == 0 && col + 1 < cols), ("SOUTH", row + 1 < rows)];
        let to: Vec<&str> = onward.into_iter().filter(|t| t.1).map(|t| t.0).collect();
        role.routes.push(("trigger", from, to.join(", ")));
        role
    }

    /// Returns the program of a class with the functions that measure.
    ///
    /// # Errors
    /// Returns an error if too few queues are left.
    pub fn program(&self, plan: &Plan, number: usize, text: &str, target: &SdkTarget) -> Result<String, String> {
        let class = &plan.classes[number];
        let [row, column, trigger, out] = self.queues(plan, number, class, target)?;
        let head = HEAD
            .replace("<<row>>", &row.to_string())
            .replace("<<column>>", &column.to_string())
            .replace("<<trigger>>", &trigger.to_string())
            .replace("<<out>>", &out.to_string());
        let end = "sys_mod.unblock_cmd_stream();";
        let (before, after) = text.split_once("\n\nvar input").unwrap_or((text, ""));
        let text = format!("{before}{head}\n\nvar input{after}");
        let text = text.replace(end, &format!("time.get_timestamp(&ended);\n  {end}"));
        let text = text.replace("comptime {\n", &format!("{FUNCTIONS}comptime {{\n"));
        let link = "  @rpc(@get_data_task_id(sys_mod.LAUNCH));\n";
        let mut setup = String::new();
        for (condition, queue, color) in [
            ("from_east", "iq_row", "row"),
            ("from_south", "iq_column", "column"),
            ("triggered", "iq_trigger", "trigger"),
        ] {
            let _ = write!(
                setup,
                "  if ({condition}) {{\n    @initialize_queue({queue}, .{{ .color = begin_{color} }});\n    \
                 @block(begin_{color});\n  }}\n"
            );
        }
        Ok(text.replace(link, &format!("{setup}{link}{EXPORTS}")))
    }

    /// Returns queues that a class does not use: input queues for the row, the first column and the trigger, and an
    /// output queue. In a class without PEs of the first column, the column's queue is the trigger's queue.
    fn queues(&self, plan: &Plan, number: usize, class: &Class, target: &SdkTarget) -> Result<[u8; 4], String> {
        let mut inputs = target.input_queues.iter().copied().filter(|&q| !class.queues.input.contains(&Some(q)));
        let mut outputs = target.output_queues.iter().copied().filter(|&q| !class.queues.output.contains(&Some(q)));
        let of_class = |pe: usize| plan.kinds[plan.kind_of[pe] as usize].class as usize == number;
        let in_column = |pe: usize| self.grid.row_col(narrow(pe)).1 == 0 && of_class(pe);
        let in_column = self.grid.rows > 1 && (0..plan.kind_of.len()).any(in_column);
        let (row, trigger) = (inputs.next(), inputs.next());
        // Only the first column receives from below; in other columns this queue receives nothing.
        let column = if in_column { inputs.next() } else { trigger };
        match (row, column, trigger, outputs.next()) {
            (Some(row), Some(column), Some(trigger), Some(out)) => Ok([row, column, trigger, out]),
            _ => Err(format!(
                "{} input and {} output queues at a PE; a measurement takes {} and 1 more",
                class.queues.input.iter().flatten().count(),
                class.queues.output.iter().flatten().count(),
                2 + u8::from(in_column)
            )),
        }
    }

    /// Adds the additional colors and the exported symbols to the text of a layout.
    pub fn layout(&self, text: &str) -> String {
        with_colors(text, "The barrier and the trigger of measurements", &self.colors, "\nconst LAUNCH", NAMES)
    }
}

/// Declares `colors` before the text `before` of a layout, below the comment `what`. Also adds `names`, the exported
/// symbols that the host uses.
pub fn with_colors(text: &str, what: &str, colors: &[(&str, u8)], before: &str, names: &str) -> String {
    let constant = |(name, number): &(&str, u8)| format!("const {name}: color = @get_color({number});\n");
    let constants: String = colors.iter().map(constant).collect();
    let compute = "  @export_name(\"compute\", fn()void);\n";
    text.replacen(before, &format!("\n// {what}.\n{constants}{before}"), 1)
        .replace(compute, &format!("{compute}{names}"))
}

const NAMES: &str = "  @export_name(\"calibrate\", fn()void);
  @export_name(\"measure\", fn()void);
  @export_name(\"writes\", [*]u16, true);
  @export_name(\"referred\", [*]u16, false);
  @export_name(\"started\", [*]u16, false);
  @export_name(\"ended\", [*]u16, false);
";

const HEAD: &str = "
const time = @import_module(\"<time>\");

param from_east: bool;
param from_south: bool;
param triggered: bool;
param begin_row: color;
param begin_column: color;
param begin_trigger: color;
param begin_out: color;

// Clocks of 48 bits: at the trigger, at the start and at the end of the collective.
var referred = @zeros([3]u16);
var started = @zeros([3]u16);
var ended = @zeros([3]u16);
var referred_ptr: [*]u16 = &referred;
var started_ptr: [*]u16 = &started;
var ended_ptr: [*]u16 = &ended;
// Writes between the trigger and the start, which the host sets.
var writes = @zeros([1]u16);
var writes_ptr: [*]u16 = &writes;
var token = @zeros([1]u32);
const iq_row = @get_input_queue(<<row>>);
const iq_column = @get_input_queue(<<column>>);
const iq_trigger = @get_input_queue(<<trigger>>);
const oq_begin = @get_output_queue(<<out>>);
const token_dsd = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{1} -> token[i] });
const rx_row = @get_dsd(fabin_dsd, .{ .extent = 1, .fabric_color = begin_row, .input_queue = iq_row });
const rx_column = @get_dsd(fabin_dsd, .{ .extent = 1, .fabric_color = begin_column, .input_queue = iq_column });
const rx_trigger = @get_dsd(fabin_dsd, .{ .extent = 1, .fabric_color = begin_trigger, .input_queue = iq_trigger });
const tx_begin = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = begin_out, .output_queue = oq_begin });
// All elements are one word.
var same_word = @get_dsd(mem1d_dsd, .{ .base_address = &token, .extent = 1, .stride = 0 });";

const FUNCTIONS: &str = "fn begin() void {
  time.enable_tsc();
  if (from_east) {
    @mov32(token_dsd, rx_row);
  }
  if (from_south) {
    @mov32(token_dsd, rx_column);
  }
  @mov32(tx_begin, token_dsd);
  if (triggered) {
    @mov32(token_dsd, rx_trigger);
  }
  time.get_timestamp(&referred);
  same_word = @set_dsd_length(same_word, writes[0]);
  @mov32(same_word, same_word);
  time.get_timestamp(&started);
}

fn calibrate() void {
  begin();
  sys_mod.unblock_cmd_stream();
}

fn measure() void {
  begin();
  compute();
}

";

const EXPORTS: &str = "  @export_symbol(referred_ptr, \"referred\");
  @export_symbol(started_ptr, \"started\");
  @export_symbol(ended_ptr, \"ended\");
  @export_symbol(writes_ptr, \"writes\");
  @export_symbol(calibrate);
  @export_symbol(measure);
";
