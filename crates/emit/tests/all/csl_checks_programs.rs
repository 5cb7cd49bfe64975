//! Checks of the programs, and the untimed run, find what they are for, in a project that was sound before.

use crate::common;

use common::*;
use unisono_emit::csl::Files;

fn tree_project() -> Files {
    round_trip(&tree_row(&[0, 1, 2, 0], 4))
}

#[test]
fn check_5_operations_and_queues() {
    let f = tree_project();
    let inner = with(&f, "@fadds(tx_c1_4,");
    let pe = |from, to, code| finds(&f, inner, from, to, code);
    pe("@fadds(tx", "@fsubs(tx", "operation");
    pe("@fadds(tx_c1_4, input_0_4, rx_c0_4)", "@fadds(tx_c1_4, input_0_4)", "operation");
    pe("input_0_4, rx_c0_4);", "rx_c0_4, input_0_4);", "operand");
    pe("input_0_4, rx_c0_4);", "input_0_4, tx_c1_4);", "operand");
    pe("input_0_4, rx_c0_4);", "input_0_4, nothing);", "operand");
    pe("fabin_dsd, .{ .extent = 4", "fabin_dsd, .{ .extent = 5", "extent");
    pe("|i|{4} -> input[i]", "|i|{4} -> input[i + 1]", "extent");
    pe("@get_input_queue(2)", "@get_input_queue(8)", "queue");
    pe("@get_output_queue(2)", "@get_output_queue(6)", "queue");
    pe("@initialize_queue(iq_c0, .{ .color = c0 });", "", "queue");
    pe("@initialize_queue(iq_c0, .{ .color = c0 });", "@initialize_queue(iq_c0, .{ .color = c1 });", "queue");
    pe(".fabric_color = c0, .input_queue = iq_c0", ".fabric_color = c0, .input_queue = oq_c1", "queue");
    pe("@constants([1]u32, 23003136)", "@constants([1]u32, 1)", "control");
    pe(".output_queue = oq_c1, .control", ".output_queue = oq_other, .control", "control");
    let leaf = with(&f, "@fmovs(tx_c0_4_advance");
    finds(&f, leaf, "input_0_4);", "input_0_4, .{ .async = true });", "operation");
}

#[test]
fn check_6_tasks() {
    let f = round_trip(&two_sides(4));
    let root = with(&f, "thread_1");
    let pe = |from, to, code| finds(&f, root, from, to, code);
    pe("@get_input_queue(3)", "@get_input_queue(2)", "live");
    pe(".input_queue = iq_c1", ".input_queue = iq_c0", "live");
    pe("  @bind_local_task(thread_1, thread_1_id);\n", "", "task");
    pe("@get_local_task_id(20)", "@get_local_task_id(21)", "task");
    pe("@get_local_task_id(20)", "@get_local_task_id(19)", "task");
    pe("@get_local_task_id(20)", "@get_local_task_id(1)", "task");
    pe(".activate = thread_1_id", ".activate = thread_0_id", "task");
    pe("  @activate(thread_1_id);\n}", "}", "task");
    pe("@block(c0);", "@block(c0);\n  @block(thread_0_id);", "task");
    pe(
        "if (done_1 < 1) {\n      done_1 = 1;\n      if (waiting_0) {\n        waiting_0 = false;\n        @activate(thread_0_id);\n      }\n    }\n",
        "",
        "wake",
    );
    pe("done_1 < 1) {\n      waiting_0", "done_1 < 9) {\n      waiting_0", "wake");
    pe("var step_0: u16 = 0", "var step_0: u16 = 1", "task");
}

#[test]
fn check_7_switches() {
    // The star's senders advance once; without the second position that goes nowhere.
    let f = round_trip(&star(5, 4));
    let switched = ", .switches = .{ .pos1 = .{ .rx = EAST }, .current_switch_pos = 0, .ring_mode = false }";
    finds(&f, "layout.csl", switched, "", "advance");
}

#[test]
fn check_9_memory() {
    let f = tree_project();
    finds(&f, "pe_0.csl", "var output = @zeros([4]f32);", "var output = @zeros([9999]f32);", "memory");
}

#[test]
fn check_10_the_run() {
    let f = tree_project();
    // The first PE's router stays at its ramp: what passes it waits for ever.
    let advancing = with(&f, "@fadds(tx_c1_4_advance, input");
    finds(&f, advancing, ", .advance_switch = true", "", "left-over");
    finds(&f, advancing, ", .advance_switch = true", "", "deadlock");
    let controlling = with(&f, "@mov32(control_c0");
    finds(&f, controlling, "  @mov32(control_c0, advance_0_1);\n", "", "deadlock");
    // The root receives once too often, or not often enough.
    let twice = "  @fadds(output_0_4, output_0_4, rx_c0_4);\n";
    finds(&f, "pe_0.csl", twice, &twice.repeat(2), "deadlock");
    finds(&f, "pe_0.csl", twice, "", "left-over");
    let flood = round_trip(&flood(1, 3, 4));
    let there = "@set_color_config(2, 0, color_5, .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } });\n";
    finds(&flood, "layout.csl", there, "", "link");
    finds(&flood, "layout.csl", there, "", "lost");
}
