//! Every check finds what it is for, in a project that was sound before; no damage makes a reader panic.

mod common;

use common::*;
use proptest::prelude::*;
use unisono_emit::csl::{self, Files, Project};

/// Replaces a text in a file, which must be there, and returns the codes of what is found.
fn codes(files: &Files, name: &str, from: &str, to: &str) -> Vec<&'static str> {
    let mut files = files.clone();
    let file = files.iter_mut().find(|f| f.0 == name).unwrap();
    assert!(file.1.contains(from), "{name} has no `{from}`");
    file.1 = file.1.replacen(from, to, 1);
    let project = Project::parse(&files).unwrap_or_else(|e| panic!("{e}"));
    csl::check(&project, &TARGET)
        .iter()
        .map(|f| f.code)
        .collect()
}

fn tree() -> Files {
    round_trip(&tree_row(&[0, 1, 2, 0], 4))
}

/// The name of the first file with a text.
fn with<'a>(files: &'a Files, text: &str) -> &'a str {
    &files.iter().find(|f| f.1.contains(text)).unwrap().0
}

#[track_caller]
fn finds(files: &Files, name: &str, from: &str, to: &str, code: &str) {
    let found = codes(files, name, from, to);
    assert!(
        found.contains(&code),
        "`{from}` -> `{to}`: {found:?} without `{code}`"
    );
}

#[test]
fn check_1_rectangle_and_programs() {
    let f = tree();
    let layout = |from, to, code| finds(&f, "layout.csl", from, to, code);
    layout(
        "  @set_rectangle(5, 1);\n",
        "  @set_rectangle(5, 1);\n  @set_rectangle(5, 1);\n",
        "rectangle",
    );
    layout("  @set_rectangle(5, 1);\n", "", "rectangle");
    layout("@set_rectangle(5, 1)", "@set_rectangle(5, 2)", "rectangle");
    layout(
        "@set_rectangle(5, 1)",
        "@set_rectangle(800, 1)",
        "rectangle",
    );
    layout("@set_tile_code(1, 0", "@set_tile_code(2, 0", "tile");
    layout("@set_tile_code(1, 0", "@set_tile_code(7, 0", "tile");
    layout("\"pe_1.csl\"", "\"pe_9.csl\"", "tile");
    layout(
        "@set_color_config(1, 0, color_0",
        "@set_color_config(0, 0, color_0",
        "config",
    );
    layout(
        "@set_color_config(1, 0, color_0",
        "@set_color_config(9, 0, color_0",
        "config",
    );
}

#[test]
fn check_2_colors() {
    let f = tree();
    let layout = |from, to, code| finds(&f, "layout.csl", from, to, code);
    layout("@get_color(0)", "@get_color(21)", "color");
    layout("@get_color(0)", "@get_color(8)", "color");
    layout("@get_color(0)", "@get_color(1)", "color");
    layout(
        "@set_color_config(1, 0, color_0",
        "@set_color_config(1, 0, color_5",
        "color",
    );
}

#[test]
fn check_3_links() {
    let f = round_trip(&chain(4, 8));
    let layout = |from, to, code| finds(&f, "layout.csl", from, to, code);
    layout(
        ".rx = .{ EAST }, .tx = .{ RAMP }",
        ".rx = .{ SOUTH }, .tx = .{ RAMP }",
        "link",
    );
    layout(
        ".rx = .{ RAMP }, .tx = .{ WEST }",
        ".rx = .{ RAMP }, .tx = .{ NORTH }",
        "edge",
    );
    layout(
        ".rx = .{ EAST }, .tx = .{ RAMP }",
        ".rx = .{ EAST }, .tx = .{ RAMP, EAST }",
        "u-turn",
    );
    // Two by two PEs pass a color around.
    let square = round_trip(&flood(2, 2, 4));
    let mut circle = square.clone();
    let layout = &mut circle.iter_mut().find(|f| f.0 == "layout.csl").unwrap().1;
    let first = layout.find("  @set_color_config").unwrap();
    let calls = ["(0, 0", "(1, 0", "(1, 1", "(0, 1"];
    let ways = [
        ("SOUTH", "EAST"),
        ("WEST", "SOUTH"),
        ("NORTH", "WEST"),
        ("EAST", "NORTH"),
    ];
    let mut lines: Vec<&str> = layout
        .lines()
        .filter(|l| !l.contains("@set_color_config"))
        .collect();
    assert!(first > 0);
    let around: Vec<String> = calls
        .iter()
        .zip(ways)
        .map(|(at, (rx, tx))| {
            format!("  @set_color_config{at}, color_5, .{{ .routes = .{{ .rx = .{{ {rx} }}, .tx = .{{ {tx} }} }} }});")
        })
        .collect();
    let end = lines
        .iter()
        .position(|l| l.contains("@export_name"))
        .unwrap();
    for line in &around {
        lines.insert(end, line);
    }
    *layout = lines.join("\n");
    let found: Vec<_> = findings(&circle).iter().map(|f| f.code).collect();
    assert!(found.contains(&"circle"), "{found:?}");
}

#[test]
fn check_4_positions() {
    let f = tree();
    let layout = |from, to, code| finds(&f, "layout.csl", from, to, code);
    layout(
        ".rx = .{ EAST }, .tx = .{ RAMP }",
        ".rx = .{ EAST, WEST }, .tx = .{ RAMP }",
        "position",
    );
    layout(
        ".rx = .{ EAST }, .tx = .{ RAMP }",
        ".rx = .{ EAST }, .tx = .{ }",
        "position",
    );
    layout(
        ".pos1 = .{ .rx = EAST }",
        ".pos1 = .{ .rx = EAST, .tx = WEST }",
        "position",
    );
    layout(
        ".pos1 = .{ .rx = EAST }",
        ".pos2 = .{ .rx = EAST }",
        "position",
    );
    layout(
        ".pos1 = .{ .tx = WEST }",
        ".pos1 = .{ .tx = .{ WEST, RAMP } }",
        "position",
    );
    layout(
        ".current_switch_pos = 0",
        ".current_switch_pos = 1",
        "position",
    );
    layout(".ring_mode = false", ".ring_mode = true", "position");
}

#[test]
fn check_5_operations_and_queues() {
    let f = tree();
    let inner = with(&f, "@fadds(tx_c1_4,");
    let pe = |from, to, code| finds(&f, inner, from, to, code);
    pe("@fadds(tx", "@fsubs(tx", "operation");
    pe(
        "@fadds(tx_c1_4, input_0_4, rx_c0_4)",
        "@fadds(tx_c1_4, input_0_4)",
        "operation",
    );
    pe("input_0_4, rx_c0_4);", "rx_c0_4, input_0_4);", "operand");
    pe("input_0_4, rx_c0_4);", "input_0_4, tx_c1_4);", "operand");
    pe("input_0_4, rx_c0_4);", "input_0_4, nothing);", "operand");
    pe(
        "fabin_dsd, .{ .extent = 4",
        "fabin_dsd, .{ .extent = 5",
        "extent",
    );
    pe("|i|{4} -> input[i]", "|i|{4} -> input[i + 1]", "extent");
    pe("@get_input_queue(2)", "@get_input_queue(8)", "queue");
    pe("@get_output_queue(2)", "@get_output_queue(6)", "queue");
    pe("@initialize_queue(iq_c0, .{ .color = c0 });", "", "queue");
    pe(
        "@initialize_queue(iq_c0, .{ .color = c0 });",
        "@initialize_queue(iq_c0, .{ .color = c1 });",
        "queue",
    );
    pe(
        ".fabric_color = c0, .input_queue = iq_c0",
        ".fabric_color = c0, .input_queue = oq_c1",
        "queue",
    );
    pe(
        "@constants([1]u32, 23003136)",
        "@constants([1]u32, 1)",
        "control",
    );
    pe(
        ".output_queue = oq_c1, .control",
        ".output_queue = oq_other, .control",
        "control",
    );
    let leaf = with(&f, "@fmovs(tx_c0_4_advance");
    finds(
        &f,
        leaf,
        "input_0_4);",
        "input_0_4, .{ .async = true });",
        "operation",
    );
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
    pe(
        "done_1 < 1) {\n      waiting_0",
        "done_1 < 9) {\n      waiting_0",
        "wake",
    );
    pe("var step_0: u16 = 0", "var step_0: u16 = 1", "task");
}

#[test]
fn check_7_switches() {
    // The star's senders advance once; without the second position that goes nowhere.
    let f = round_trip(&star(5, 4));
    let switched =
        ", .switches = .{ .pos1 = .{ .rx = EAST }, .current_switch_pos = 0, .ring_mode = false }";
    finds(&f, "layout.csl", switched, "", "advance");
}

#[test]
fn check_8_the_host() {
    let f = tree();
    let any = "pe_1.csl";
    finds(&f, any, "  sys_mod.unblock_cmd_stream();\n", "", "end");
    finds(
        &f,
        any,
        "@export_symbol(input_ptr, \"input\");",
        "@export_symbol(input_ptr, \"inputs\");",
        "export",
    );
    finds(
        &f,
        any,
        "  @rpc(@get_data_task_id(sys_mod.LAUNCH));\n",
        "",
        "export",
    );
    finds(&f, any, "&input", "&inputs", "export");
    finds(
        &f,
        "layout.csl",
        "@export_name(\"compute\"",
        "@export_name(\"start\"",
        "export",
    );
    finds(
        &f,
        "layout.csl",
        ".c0 = color_0 }",
        ".c9 = color_0 }",
        "params",
    );
    finds(
        &f,
        "layout.csl",
        ".c0 = color_1, .c1 = color_0",
        ".c0 = color_1, .c1 = color_1",
        "params",
    );
    finds(
        &f,
        "layout.csl",
        "memcpy.get_params(2)",
        "memcpy.get_params(1)",
        "params",
    );
    let threads = round_trip(&two_sides(4));
    let root = with(&threads, "thread_1");
    finds(&threads, root, "running -= 1;\n", "", "end");
    finds(
        &threads,
        root,
        "running: u16 = 2",
        "running: u16 = 3",
        "end",
    );
}

#[test]
fn check_9_memory() {
    let f = tree();
    finds(
        &f,
        "pe_0.csl",
        "var output = @zeros([4]f32);",
        "var output = @zeros([9999]f32);",
        "memory",
    );
}

#[test]
fn check_10_the_run() {
    let f = tree();
    // The first PE's router stays at its ramp: what passes it waits for ever.
    let advancing = with(&f, "@fadds(tx_c1_4_advance, input");
    finds(&f, advancing, ", .advance_switch = true", "", "left-over");
    finds(&f, advancing, ", .advance_switch = true", "", "deadlock");
    let controlling = with(&f, "@mov32(control_c0");
    finds(
        &f,
        controlling,
        "  @mov32(control_c0, advance_0_1);\n",
        "",
        "deadlock",
    );
    // The root receives once too often, or not often enough.
    let twice = "  @fadds(output_0_4, output_0_4, rx_c0_4);\n";
    finds(&f, "pe_0.csl", twice, &twice.repeat(2), "deadlock");
    finds(&f, "pe_0.csl", twice, "", "left-over");
    let flood = round_trip(&flood(1, 3, 4));
    let there =
        "@set_color_config(2, 0, color_5, .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } });\n";
    finds(&flood, "layout.csl", there, "", "link");
    finds(&flood, "layout.csl", there, "", "lost");
}

#[test]
fn readers_name_the_place() {
    let mut files = tree();
    files[0].1 = files[0]
        .1
        .replacen("@set_rectangle(5, 1);", "@set_rectangle(5 1);", 1);
    let e = csl::read(&files).unwrap_err();
    assert_eq!(
        e.to_string(),
        "layout.csl, line 16: `1` where `)` is expected"
    );
    assert!(
        csl::read(&Vec::new())
            .unwrap_err()
            .to_string()
            .contains("no such file")
    );
}

/// Cuts, repeats and swaps lines, changes characters and numbers.
fn damage(text: &str, edits: &[(u8, u32, u32)]) -> String {
    let mut text = text.to_owned();
    for &(kind, a, b) in edits {
        let mut lines: Vec<&str> = text.lines().collect();
        if lines.is_empty() {
            break;
        }
        let (i, j) = (a as usize % lines.len(), b as usize % lines.len());
        match kind % 6 {
            0 => drop(lines.remove(i)),
            1 => lines.insert(i, lines[j]),
            2 => lines.swap(i, j),
            _ => {}
        }
        let mut chars: Vec<char> = lines.join("\n").chars().collect();
        let at = a as usize % chars.len().max(1);
        if !chars.is_empty() && kind % 6 > 2 {
            match kind % 6 {
                3 => chars[at] = char::from(32 + (b % 96) as u8),
                4 => drop(chars.remove(at)),
                _ => {
                    // At a digit, if one is near: numbers are where the harm is.
                    let digit = chars[at..]
                        .iter()
                        .position(char::is_ascii_digit)
                        .map_or(at, |d| at + d);
                    let numbers = [
                        "0",
                        "1",
                        "3",
                        "5",
                        "32767",
                        "4294967296",
                        "18446744073709551615",
                        "99999999999999999999",
                        "é",
                    ];
                    let number = numbers[b as usize % numbers.len()];
                    chars.splice(digit..=digit, number.chars());
                }
            }
        }
        text = chars.into_iter().collect();
    }
    text
}

fn take(files: &Files) {
    let Ok(project) = Project::parse(files) else {
        return;
    };
    let found = csl::check(&project, &TARGET);
    if let Ok(program) = project.program() {
        // What was read can be emitted, or is refused; where nothing was found wrong, it reads back.
        if let Ok(again) = csl::emit(&program, &TARGET)
            && found.is_empty()
        {
            assert!(csl::read(&again).unwrap() == csl::normalised(&program));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_projects(which: prop::sample::Index, edits in prop::collection::vec(any::<(u8, u32, u32)>(), 1..5), threads: bool) {
        let program = if threads { two_sides(4) } else { grid_reduce(&[0, 1, 0], &[0], 4, true) };
        let mut files = emit(&program);
        files.retain(|f| f.0.ends_with(".csl"));
        let at = which.index(files.len());
        files[at].1 = damage(&files[at].1, &edits);
        take(&files);
    }

    #[test]
    fn noise(layout in ".{0,200}", code in "[a-z@(){}.,;|= 0-9]{0,200}") {
        take(&vec![("layout.csl".to_owned(), layout), ("pe_0.csl".to_owned(), code)]);
    }
}

#[test]
fn deep_nesting_is_refused() {
    for open in ["(", ".{ ", "layout { ", "for (", "if (", "@f("] {
        let text = open.repeat(100_000);
        let e = Project::parse(&[("layout.csl".to_owned(), text)]).unwrap_err();
        assert!(e.to_string().starts_with("layout.csl, line 1: "), "{e}");
    }
}
