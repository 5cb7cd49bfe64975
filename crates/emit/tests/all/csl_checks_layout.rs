//! Checks of the layout and of what the host sees find what they are for, in a project that was sound before.

use crate::common;

use common::*;
use unisono_emit::csl::{self, Files};

fn tree_project() -> Files {
    round_trip(&tree_row(&[0, 1, 2, 0], 4))
}

#[test]
fn check_1_rectangle_and_programs() {
    let f = tree_project();
    let layout = |from, to, code| finds(&f, "layout.csl", from, to, code);
    layout("  @set_rectangle(5, 1);\n", "  @set_rectangle(5, 1);\n  @set_rectangle(5, 1);\n", "rectangle");
    layout("  @set_rectangle(5, 1);\n", "", "rectangle");
    layout("@set_rectangle(5, 1)", "@set_rectangle(5, 2)", "rectangle");
    layout("@set_rectangle(5, 1)", "@set_rectangle(800, 1)", "rectangle");
    layout("@set_tile_code(1, 0", "@set_tile_code(2, 0", "tile");
    layout("@set_tile_code(1, 0", "@set_tile_code(7, 0", "tile");
    layout("\"pe_1.csl\"", "\"pe_9.csl\"", "tile");
    layout("@set_color_config(1, 0, color_0", "@set_color_config(0, 0, color_0", "config");
    layout("@set_color_config(1, 0, color_0", "@set_color_config(9, 0, color_0", "config");
}

#[test]
fn check_2_colors() {
    let f = tree_project();
    let layout = |from, to, code| finds(&f, "layout.csl", from, to, code);
    layout("@get_color(0)", "@get_color(21)", "color");
    layout("@get_color(0)", "@get_color(8)", "color");
    layout("@get_color(0)", "@get_color(1)", "color");
    layout("@set_color_config(1, 0, color_0", "@set_color_config(1, 0, color_5", "color");
}

#[test]
fn check_3_links() {
    let f = round_trip(&chain(4, 8));
    let layout = |from, to, code| finds(&f, "layout.csl", from, to, code);
    layout(".rx = .{ EAST }, .tx = .{ RAMP }", ".rx = .{ SOUTH }, .tx = .{ RAMP }", "link");
    layout(".rx = .{ RAMP }, .tx = .{ WEST }", ".rx = .{ RAMP }, .tx = .{ NORTH }", "edge");
    layout(".rx = .{ EAST }, .tx = .{ RAMP }", ".rx = .{ EAST }, .tx = .{ RAMP, EAST }", "u-turn");
    // Two by two PEs pass a color around.
    let square = round_trip(&flood(2, 2, 4));
    let mut circle = square.clone();
    let layout = &mut circle.iter_mut().find(|f| f.0 == "layout.csl").unwrap().1;
    let first = layout.find("  @set_color_config").unwrap();
    let calls = ["(0, 0", "(1, 0", "(1, 1", "(0, 1"];
    let ways = [("SOUTH", "EAST"), ("WEST", "SOUTH"), ("NORTH", "WEST"), ("EAST", "NORTH")];
    let mut lines: Vec<&str> = layout.lines().filter(|l| !l.contains("@set_color_config")).collect();
    assert!(first > 0);
    let around: Vec<String> = calls
        .iter()
        .zip(ways)
        .map(|(at, (rx, tx))| {
            format!("  @set_color_config{at}, color_5, .{{ .routes = .{{ .rx = .{{ {rx} }}, .tx = .{{ {tx} }} }} }});")
        })
        .collect();
    let end = lines.iter().position(|l| l.contains("@export_name")).unwrap();
    for line in &around {
        lines.insert(end, line);
    }
    *layout = lines.join("\n");
    let found: Vec<_> = findings(&circle).iter().map(|f| f.code).collect();
    assert!(found.contains(&"circle"), "{found:?}");
}

#[test]
fn check_4_positions() {
    let f = tree_project();
    let layout = |from, to, code| finds(&f, "layout.csl", from, to, code);
    layout(".rx = .{ EAST }, .tx = .{ RAMP }", ".rx = .{ EAST, WEST }, .tx = .{ RAMP }", "position");
    layout(".rx = .{ EAST }, .tx = .{ RAMP }", ".rx = .{ EAST }, .tx = .{ }", "position");
    layout(".pos1 = .{ .rx = EAST }", ".pos1 = .{ .rx = EAST, .tx = WEST }", "position");
    layout(".pos1 = .{ .rx = EAST }", ".pos2 = .{ .rx = EAST }", "position");
    layout(".pos1 = .{ .tx = WEST }", ".pos1 = .{ .tx = .{ WEST, RAMP } }", "position");
    layout(".current_switch_pos = 0", ".current_switch_pos = 1", "position");
    layout(".ring_mode = false", ".ring_mode = true", "position");
}

#[test]
fn check_8_the_host() {
    let f = tree_project();
    let any = "pe_1.csl";
    finds(&f, any, "  sys_mod.unblock_cmd_stream();\n", "", "end");
    finds(&f, any, "@export_symbol(input_ptr, \"input\");", "@export_symbol(input_ptr, \"inputs\");", "export");
    finds(&f, any, "  @rpc(@get_data_task_id(sys_mod.LAUNCH));\n", "", "export");
    finds(&f, any, "&input", "&inputs", "export");
    finds(&f, "layout.csl", "@export_name(\"compute\"", "@export_name(\"start\"", "export");
    finds(&f, "layout.csl", ".c0 = color_0 }", ".c9 = color_0 }", "params");
    finds(&f, "layout.csl", ".c0 = color_1, .c1 = color_0", ".c0 = color_1, .c1 = color_1", "params");
    finds(&f, "layout.csl", "memcpy.get_params(2)", "memcpy.get_params(1)", "params");
    let threads = round_trip(&two_sides(4));
    let root = with(&threads, "thread_1");
    finds(&threads, root, "running -= 1;\n", "", "end");
    finds(&threads, root, "running: u16 = 2", "running: u16 = 3", "end");
}

#[test]
fn readers_name_the_place() {
    let mut files = tree_project();
    files[0].1 = files[0].1.replacen("@set_rectangle(5, 1);", "@set_rectangle(5 1);", 1);
    let e = csl::read(&files).unwrap_err();
    assert_eq!(e.to_string(), "layout.csl, line 16: `1` where `)` is expected");
    assert!(csl::read(&Vec::new()).unwrap_err().to_string().contains("no such file"));
}
