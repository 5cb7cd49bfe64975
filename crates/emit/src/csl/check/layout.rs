//! Checks 1, 2 and 8 of the layout: the rectangle, its programs, colors, parameters and the names the host uses.

use unisono_base::narrow;

use super::Findings;
use crate::csl::{
    Project, SdkTarget,
    read::{Code, Layout},
};

const PLACE: &str = "layout.csl";

pub fn check(project: &Project, target: &SdkTarget, found: &mut Findings) {
    let layout = &project.layout;
    colors(layout, target, found);
    let [(width, height)] = layout.rectangles[..] else {
        let n = layout.rectangles.len();
        return found.add("rectangle", PLACE, format!("{n} rectangles; there is 1"));
    };
    if width == 0 || height == 0 || width > target.width.into() || height > target.height.into() {
        found.add(
            "rectangle",
            PLACE,
            format!(
                "{width} columns and {height} rows; 1 to {} and 1 to {} fit beside the host link",
                target.width, target.height
            ),
        );
    }
    if layout.host_link != Some((width, height)) {
        found.add("rectangle", PLACE, "the host link is given another size than the rectangle");
    }
    once_each(project, width * height, found);
    for spec in &layout.tile_specs {
        let Some(code) = project.codes.get(&spec.file) else {
            found.add("tile", PLACE, format!("the project has no file `{}`", spec.file));
            continue;
        };
        if !spec.host_link {
            found.add("params", PLACE, format!("`{}` is not given the host link of its column", spec.file));
        }
        params(code, &spec.file, &spec.params, layout, found);
    }
    for (file, code) in &project.codes {
        exports(file, code, layout, target, found);
    }
}

fn colors(layout: &Layout, target: &SdkTarget, found: &mut Findings) {
    for (n, (name, number)) in layout.colors.iter().enumerate() {
        if !target.colors.iter().any(|&c| u64::from(c) == *number) {
            found.add("color", PLACE, format!("`{name}` is color {number}, which a program may not route"));
        }
        let earlier = &layout.colors[..n];
        if let Some(other) = earlier.iter().find(|c| c.1 == *number || c.0 == *name) {
            found.add("color", PLACE, format!("`{name}` and `{}` are color {number}", other.0));
        }
    }
}

fn once_each(project: &Project, pes: u64, found: &mut Findings) {
    let layout = &project.layout;
    // Reading bounded the rectangle.
    let mut seen = vec![false; narrow(pes)];
    for &(x, y, _) in &layout.tiles {
        match project.pe(x, y) {
            None => found.add("tile", PLACE, format!("a program for ({x}, {y}), outside the rectangle")),
            Some(pe) if seen[pe] => found.add("tile", PLACE, format!("two programs for PE ({x}, {y})")),
            Some(pe) => seen[pe] = true,
        }
    }
    if let Some(pe) = seen.iter().position(|s| !s) {
        let missing = seen.iter().filter(|s| !**s).count();
        found.add("tile", PLACE, format!("{missing} PEs without a program, the first is PE {pe} row by row"));
    }
    let mut places: Vec<(u64, u64, &str)> = Vec::with_capacity(layout.configs.len());
    for &(x, y, config) in &layout.configs {
        let color = layout.config_specs[config as usize].color.as_str();
        if project.pe(x, y).is_none() {
            found.add("config", PLACE, format!("a route at ({x}, {y}), outside the rectangle"));
        }
        places.push((x, y, color));
    }
    places.sort_unstable();
    for twice in places.windows(2).filter(|w| w[0] == w[1]) {
        let (x, y, color) = twice[0];
        found.add("config", PLACE, format!("two routes of `{color}` at PE ({x}, {y})"));
    }
}

fn params(code: &Code, file: &str, given: &[(String, crate::csl::read::Expr)], layout: &Layout, found: &mut Findings) {
    let declared: Vec<&String> = code.params.iter().filter(|p| *p != "memcpy_params").collect();
    let mut colors = Vec::new();
    for param in &declared {
        let color = given.iter().find(|g| g.0 == **param).and_then(|g| g.1.name());
        match color.filter(|name| layout.color(name).is_some()) {
            None => found.add("params", file, format!("`{param}` is not given a color")),
            Some(color) if colors.contains(&color) => {
                found.add("params", file, format!("two parameters are given `{color}`"));
            }
            Some(color) => colors.push(color),
        }
    }
    for (name, _) in given.iter().filter(|g| !declared.contains(&&g.0)) {
        found.add("params", file, format!("`{name}` is given but not declared"));
    }
}

fn exports(file: &str, code: &Code, layout: &Layout, target: &SdkTarget, found: &mut Findings) {
    for (name, _) in &layout.exports {
        if !code.exports.contains(name) {
            found.add("export", file, format!("the layout exports `{name}`, the program does not"));
        }
    }
    for name in &code.exports {
        if !layout.exports.iter().any(|e| e.0 == *name) {
            found.add("export", file, format!("`{name}` is exported but not in the layout"));
        }
    }
    if !layout.exports.iter().any(|e| e.0 == "compute") {
        found.add("export", PLACE, "`compute` is not exported, so the host cannot start it");
    }
    match (target.launch, code.rpc) {
        (Some(_), false) => found.add("export", file, "no `@rpc`: the host cannot start a function"),
        (None, true) => found.add("export", file, "`@rpc`, by which the host of SDK 1.0 alone starts functions"),
        _ => {}
    }
}
