//! Prints the layout: the program file and the colors of each PE, and the routes of its router.
//!
//! CSL's x is the column, y the row.

use std::fmt::Write;

use rustc_hash::FxHashMap;
use unisono_base::narrow;
use unisono_lower::wafer::{ColorRoute, Port, Ports};

use super::{
    article, head,
    measured::Role,
    plan::{Kind, Plan, file_name},
    ranges::{Progression, rectangles},
};
use crate::SdkTarget;

/// The PEs `(row, column)` that have the same [`Kind`], given as an index into the plan, and the same role.
type Group = (u32, Role, Vec<(u32, u32)>);

/// Prints the layout; `role` returns the parameters and routes that a PE has in addition to those of its kind.
pub fn print(plan: &Plan, target: &SdkTarget, role: impl Fn(u32, u32) -> Role) -> String {
    let (c, grid) = (&plan.collective, plan.grid);
    let mut text = format!(
        "// {} {} of {} {} on a grid of {grid} rows and columns of PEs.\n// {}\n",
        if article(c.kind.name()) == "an" { "An" } else { "A" },
        c.kind,
        c.elements,
        c.dtype,
        head(target)
    );
    text.push('\n');
    if !plan.colors.is_empty() {
        text.push_str("// color_N is color N of the program; the host link keeps some of the fabric's.\n");
    }
    for (color, number) in &plan.colors {
        let _ = writeln!(text, "const color_{color}: color = @get_color({number});");
    }
    if let Some(launch) = target.launch {
        let _ = write!(text, "\nconst LAUNCH: color = @get_color({launch});\n");
    }
    let launch = if target.launch.is_some() { ", .LAUNCH = LAUNCH" } else { "" };
    let _ = write!(
        text,
        "\nconst memcpy = @import_module(\"<memcpy/get_params>\", .{{ .width = {}, .height = {}{launch} }});\n\nlayout {{\n  @set_rectangle({}, {});\n",
        grid.cols, grid.rows, grid.cols, grid.rows
    );
    let mut groups: Vec<Group> = Vec::new();
    let mut group_of: FxHashMap<(u32, Role), usize> = FxHashMap::default();
    for (pe, &kind) in plan.kind_of.iter().enumerate() {
        let (row, col) = grid.row_col(narrow(pe));
        let role = role(row, col);
        let group = *group_of.entry((kind, role.clone())).or_insert_with(|| {
            groups.push((kind, role, Vec::new()));
            groups.len() - 1
        });
        groups[group].2.push((row, col));
    }
    for (kind, role, cells) in &groups {
        text.push('\n');
        for (columns, rows) in rectangles(cells) {
            place(&mut text, &plan.kinds[*kind as usize], role, columns, rows);
        }
    }
    let _ = write!(
        text,
        "\n  @export_name(\"input\", [*]{}, true);\n  @export_name(\"output\", [*]{}, true);\n  @export_name(\"compute\", fn()void);\n}}\n",
        c.dtype, c.dtype
    );
    text
}

fn place(text: &mut String, kind: &Kind, role: &Role, columns: Progression, rows: Progression) {
    let mut indent = "  ".to_owned();
    let mut open = |name: &str, range: Progression, text: &mut String| {
        if range.count == 1 {
            return range.start.to_string();
        }
        let Progression { start, count, step } = range;
        let end = start + (count - 1) * step + 1;
        if start == 0 && step == 1 {
            let _ = writeln!(text, "{indent}for (@range(u16, {end})) |{name}| {{");
        } else {
            let _ = writeln!(text, "{indent}for (@range(u16, {start}, {end}, {step})) |{name}| {{");
        }
        indent.push_str("  ");
        name.to_owned()
    };
    let y = open("y", rows, text);
    let x = open("x", columns, text);
    let _ = write!(
        text,
        "{indent}@set_tile_code({x}, {y}, \"{}\", .{{ .memcpy_params = memcpy.get_params({x})",
        file_name(kind.class as usize)
    );
    for (number, color) in kind.colors.iter().enumerate() {
        let _ = write!(text, ", .c{number} = color_{color}");
    }
    text.push_str(&role.params);
    text.push_str(" });\n");
    for (color, rx, tx) in &role.routes {
        let routes = format!(".{{ .routes = .{{ .rx = .{{ {rx} }}, .tx = .{{ {tx} }} }} }}");
        let _ = writeln!(text, "{indent}@set_color_config({x}, {y}, {color}, {routes});");
    }
    for route in &kind.routes {
        let _ = writeln!(text, "{indent}@set_color_config({x}, {y}, color_{}, {});", route.color, config(route));
    }
    while indent.len() > 2 {
        indent.truncate(indent.len() - 2);
        let _ = writeln!(text, "{indent}}}");
    }
}

/// Returns the configuration of a color at a router in CSL: its first route and its switch positions.
pub fn config(route: &ColorRoute) -> String {
    let positions = route.positions();
    let first = positions[0];
    let mut text =
        format!(".{{ .routes = .{{ .rx = .{{ {} }}, .tx = .{{ {} }} }}", directions(first.rx), directions(first.tx));
    if positions.len() > 1 {
        text.push_str(", .switches = .{ ");
        for (n, w) in positions.windows(2).enumerate() {
            // `limits` has checked that the target supports the change. A position states its output only if the output
            // changes, and its input if the input changes or the output does not.
            let input = (w[0].rx != w[1].rx || w[0].tx == w[1].tx).then(|| format!(".rx = {}", directions(w[1].rx)));
            let output = (w[0].tx != w[1].tx).then(|| format!(".tx = {}", directions(w[1].tx)));
            let sides: Vec<String> = input.into_iter().chain(output).collect();
            let _ = write!(text, ".pos{} = .{{ {} }}, ", n + 1, sides.join(", "));
        }
        text.push_str(".current_switch_pos = 0, .ring_mode = false }");
    }
    text.push_str(" }");
    text
}

fn directions(ports: Ports) -> String {
    let names: Vec<&str> = ports.iter().map(direction).collect();
    names.join(", ")
}

fn direction(port: Port) -> &'static str {
    ["NORTH", "SOUTH", "WEST", "EAST", "RAMP"][port.index()]
}
