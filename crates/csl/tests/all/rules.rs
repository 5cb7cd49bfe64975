//! The interpreter stops a project that differs from a correct project at any of many places. Tests that run projects
//! therefore detect faults of the emitter at these places.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{common, interpreter};

use common::*;
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_csl::{self as csl, Files, SdkTarget};
use unisono_lower::wafer::{WaferProgram, lower};
use unisono_machine::{Grid, Machine};
use unisono_schedule::verify::{Method, Verified};

/// A project that runs, and its collective.
struct Sound {
    files: Files,
    collective: Collective,
}

impl Sound {
    fn new(program: &WaferProgram) -> Self {
        Self { files: sound(program), collective: program.collective }
    }

    /// Asserts that the interpreter stops the project, in one of several orders, if `to` replaces `from` in a file.
    #[track_caller]
    fn stops(&self, name: &str, from: &str, to: &str) {
        let mut files = self.files.clone();
        let file = files.iter_mut().find(|f| f.0 == name).unwrap();
        assert!(file.1.contains(from), "{name} has no `{from}`");
        file.1 = file.1.replacen(from, to, 1);
        assert!(stopped(&files, &self.collective), "`{from}` -> `{to}` is not found");
    }

    fn with(&self, text: &str) -> &str {
        with(&self.files, text)
    }
}

fn stopped(files: &Files, c: &Collective) -> bool {
    let run = |seed| interpreter::run_held_up(files, &inputs(c), seed);
    (0..8).any(|seed| catch_unwind(AssertUnwindSafe(|| run(seed))).is_err())
}

fn tree() -> Sound {
    Sound::new(&tree_row(&[0, 1, 2, 0], 4))
}

#[test]
fn rectangle_and_programs() {
    let f = tree();
    let layout = |from, to| f.stops("layout.csl", from, to);
    layout("  @set_rectangle(5, 1);\n", "  @set_rectangle(5, 1);\n  @set_rectangle(5, 1);\n");
    layout("  @set_rectangle(5, 1);\n", "");
    layout("@set_rectangle(5, 1)", "@set_rectangle(5, 2)");
    layout("@set_rectangle(5, 1)", "@set_rectangle(800, 1)");
    layout(".width = 5", ".width = 6");
    layout("@set_tile_code(1, 0", "@set_tile_code(2, 0");
    layout("@set_tile_code(1, 0", "@set_tile_code(7, 0");
    layout("\"pe_1.csl\"", "\"pe_9.csl\"");
    layout("@set_color_config(1, 0, color_0", "@set_color_config(0, 0, color_0");
    layout("@set_color_config(1, 0, color_0", "@set_color_config(9, 0, color_0");
}

#[test]
fn colors() {
    let f = tree();
    let layout = |from, to| f.stops("layout.csl", from, to);
    layout("@get_color(0)", "@get_color(21)");
    layout("@get_color(0)", "@get_color(8)");
    layout("@get_color(0)", "@get_color(1)");
    layout("@set_color_config(1, 0, color_0", "@set_color_config(1, 0, color_5");
}

#[test]
fn routes() {
    let f = Sound::new(&chain(4, 8));
    let layout = |from, to| f.stops("layout.csl", from, to);
    layout(".rx = .{ EAST }, .tx = .{ RAMP }", ".rx = .{ SOUTH }, .tx = .{ RAMP }");
    layout(".rx = .{ RAMP }, .tx = .{ WEST }", ".rx = .{ RAMP }, .tx = .{ NORTH }");
    layout(".rx = .{ EAST }, .tx = .{ RAMP }", ".rx = .{ EAST }, .tx = .{ RAMP, EAST }");
    let flood = Sound::new(&flood(1, 3, 4));
    let there = "@set_color_config(2, 0, color_5, .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } });\n";
    flood.stops("layout.csl", there, "");
}

#[test]
fn positions() {
    let f = tree();
    let layout = |from, to| f.stops("layout.csl", from, to);
    layout(".rx = .{ EAST }, .tx = .{ RAMP }", ".rx = .{ EAST, WEST }, .tx = .{ RAMP }");
    layout(".rx = .{ EAST }, .tx = .{ RAMP }", ".rx = .{ EAST }, .tx = .{ }");
    layout(".pos1 = .{ .rx = EAST }", ".pos1 = .{ .rx = EAST, .tx = WEST }");
    layout(".pos1 = .{ .rx = EAST }", ".pos2 = .{ .rx = EAST }");
    layout(".pos1 = .{ .tx = WEST }", ".pos1 = .{ .tx = .{ WEST, RAMP } }");
    layout(".current_switch_pos = 0", ".current_switch_pos = 1");
    layout(".ring_mode = false", ".ring_mode = true");
    // The star's senders advance once, which needs the second position.
    let switched = ", .switches = .{ .pos1 = .{ .rx = EAST }, .current_switch_pos = 0, .ring_mode = false }";
    Sound::new(&star(5, 4)).stops("layout.csl", switched, "");
}

#[test]
fn the_host() {
    let f = tree();
    let any = "pe_1.csl";
    f.stops(any, "  sys_mod.unblock_cmd_stream();\n", "");
    f.stops(any, "@export_symbol(input_ptr, \"input\");", "@export_symbol(input_ptr, \"inputs\");");
    f.stops(any, "  @rpc(@get_data_task_id(sys_mod.LAUNCH));\n", "");
    f.stops(any, "&input", "&inputs");
    f.stops("layout.csl", "@export_name(\"compute\"", "@export_name(\"start\"");
    f.stops("layout.csl", ".c0 = color_0 }", ".c9 = color_0 }");
    f.stops("layout.csl", ".c0 = color_1, .c1 = color_0", ".c0 = color_1, .c1 = color_1");
    f.stops("layout.csl", "memcpy.get_params(2)", "memcpy.get_params(1)");
    let threads = Sound::new(&two_sides(4));
    let root = threads.with("thread_1");
    threads.stops(root, "running -= 1;\n", "");
    threads.stops(root, "running: u16 = 2", "running: u16 = 3");
    f.stops("pe_0.csl", "var output = @zeros([4]f32);", "var output = @zeros([9999]f32);");
}

#[test]
fn operations_and_queues() {
    let f = tree();
    let inner = f.with("@fadds(tx_c1_4,");
    let pe = |from, to| f.stops(inner, from, to);
    pe("@fadds(tx", "@fsubs(tx");
    pe("@fadds(tx_c1_4, input_0_4, rx_c0_4)", "@fadds(tx_c1_4, input_0_4)");
    pe("input_0_4, rx_c0_4);", "rx_c0_4, input_0_4);");
    pe("input_0_4, rx_c0_4);", "input_0_4, tx_c1_4);");
    pe("input_0_4, rx_c0_4);", "input_0_4, nothing);");
    pe("fabin_dsd, .{ .extent = 4", "fabin_dsd, .{ .extent = 5");
    pe("|i|{4} -> input[i]", "|i|{4} -> input[i + 1]");
    pe("@get_input_queue(2)", "@get_input_queue(8)");
    pe("@get_output_queue(2)", "@get_output_queue(6)");
    pe("@initialize_queue(iq_c0, .{ .color = c0 });", "");
    pe("@initialize_queue(iq_c0, .{ .color = c0 });", "@initialize_queue(iq_c0, .{ .color = c1 });");
    pe(".fabric_color = c0, .input_queue = iq_c0", ".fabric_color = c0, .input_queue = oq_c1");
    pe("@constants([1]u32, 23003136)", "@constants([1]u32, 1)");
    pe(".output_queue = oq_c1, .control", ".output_queue = oq_other, .control");
    let leaf = f.with("@fmovs(tx_c0_4_advance");
    f.stops(leaf, "input_0_4);", "input_0_4, .{ .async = true });");
}

#[test]
fn tasks() {
    let f = Sound::new(&two_sides(4));
    let root = f.with("thread_1");
    let pe = |from, to| f.stops(root, from, to);
    pe("@get_input_queue(3)", "@get_input_queue(2)");
    pe(".input_queue = iq_c1", ".input_queue = iq_c0");
    pe("  @bind_local_task(thread_1, thread_1_id);\n", "");
    pe("@get_local_task_id(20)", "@get_local_task_id(21)");
    pe("@get_local_task_id(20)", "@get_local_task_id(19)");
    pe("@get_local_task_id(20)", "@get_local_task_id(1)");
    pe(".activate = thread_1_id", ".activate = thread_0_id");
    pe("  @activate(thread_1_id);\n}", "}");
    pe("@block(c0);", "@block(c0);\n  @block(thread_0_id);");
    let wakes = "if (done_1 < 1) {\n      done_1 = 1;\n      if (waiting_0) {\n        waiting_0 = false;\n        @activate(thread_0_id);\n      }\n    }\n";
    pe(wakes, "");
    pe(wakes, "done_1 = 1;\n");
    pe("done_1 < 1) {\n      waiting_0", "done_1 < 9) {\n      waiting_0");
    pe("var step_0: u16 = 0", "var step_0: u16 = 1");
}

#[test]
fn what_moves() {
    let f = tree();
    // The first PE's router stays at its ramp position, so the wavelets that should pass it wait forever.
    f.stops(f.with("@fadds(tx_c1_4_advance, input"), ", .advance_switch = true", "");
    f.stops(f.with("@mov32(control_c0"), "  @mov32(control_c0, advance_0_1);\n", "");
    // The root receives one vector too many, or one too few.
    let twice = "  @fadds(output_0_4, output_0_4, rx_c0_4);\n";
    f.stops("pe_0.csl", twice, &twice.repeat(2));
    f.stops("pe_0.csl", twice, "");
}

#[test]
fn the_wse_3() {
    let target = SdkTarget::WSE3_SDK_2;
    let wafer = Machine::preset("wse3").unwrap().get().cloned().unwrap();
    let collective = Collective::new(Kind::Reduce, 16, 64, 0, Operator::Sum, Dtype::F32).unwrap();
    let case = unisono_algorithms::Case::on_grid(collective, Grid::new(4, 4), 5.0);
    let placed = unisono_algorithms::find("kd-tree").unwrap().build(&case, &unisono_algorithms::Params::new()).unwrap();
    let adapted = target.needs.adapt(placed.grid().unwrap()).unwrap();
    let program = lower(&Verified::of(&placed.schedule, Method::Auto).unwrap(), &adapted, &wafer).unwrap();
    let f = Sound { files: csl::emit(&program, &target).unwrap(), collective };
    assert!(!stopped(&f.files, &collective));
    let pe = f.with("thread_1_ut }");
    f.stops(pe, ", .ut_id = thread_1_ut }", " }");
    f.stops(pe, "thread_1_ut = @get_ut_id(3)", "thread_1_ut = @get_ut_id(2)");
    f.stops(pe, "thread_1_ut = @get_ut_id(3)", "thread_1_ut = @get_ut_id(1)");
    let sender = f.with("@get_output_queue(2)");
    f.stops(sender, "@get_output_queue(2)", "@get_output_queue(1)");
    f.stops(sender, "  @initialize_queue(oq_c", "  @initialize_queue(iq_c");
    f.stops(pe, "comptime {\n", "comptime {\n  @block(c0);\n");
    f.stops(pe, "comptime {\n", "comptime {\n  @rpc(@get_data_task_id(sys_mod.LAUNCH));\n");
    // A project that claims another machine breaks that machine's rules.
    let mut other = f.files.clone();
    other.iter_mut().for_each(|f| f.1 = f.1.replace("SDK 2 and the WSE-3", "SDK 1.0 and the WSE-2"));
    assert!(stopped(&other, &collective));
}
