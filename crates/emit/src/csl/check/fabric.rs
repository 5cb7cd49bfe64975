//! Checks 3 and 7: links between neighbors, circles, and how far switches have to go.

use rustc_hash::FxHashMap;
use unisono_base::{interrupt::poll, narrow};
use unisono_lower::wafer::{Color, ColorRoute, Port, Ports, Position, WaferProgram};

use super::Findings;

/// Whether a run can be tried: no way through the routers is a circle.
pub fn check(program: &WaferProgram, found: &mut Findings) -> bool {
    for pe in 0..program.pe_count() {
        poll();
        for route in program.routes(pe) {
            links(program, pe, route, found);
        }
        advances(program, pe, found);
    }
    no_circle(program, found)
}

pub fn place(program: &WaferProgram, pe: usize) -> String {
    let (row, col) = program.grid.row_col(narrow(pe));
    format!("PE ({row}, {col})")
}

/// The PE at the other end of a link; none at the edge of the grid.
pub fn neighbor(program: &WaferProgram, pe: usize, port: Port) -> Option<usize> {
    let direction = port.direction()?;
    let inside = program.grid.room(narrow(pe), direction) > 0;
    inside.then(|| program.grid.step(narrow(pe), direction, 1) as usize)
}

pub fn route(program: &WaferProgram, pe: usize, color: Color) -> Option<usize> {
    program.routes(pe).binary_search_by_key(&color, |r| r.color).ok()
}

fn links(program: &WaferProgram, pe: usize, route: &ColorRoute, found: &mut Findings) {
    let color = route.color;
    let positions = route.positions();
    for p in positions.iter().filter(|p| p.rx.bits() & p.tx.bits() != 0) {
        let ports: Vec<Port> = p.rx.iter().filter(|&q| p.tx.has(q)).collect();
        found.add("u-turn", place(program, pe), format!("color {color} leaves by {ports:?}, where it came in"));
    }
    let at = |q: usize| self::route(program, q, color).map(|r| &program.routes(q)[r]);
    for port in Port::ALL.into_iter().filter(|&p| p != Port::Ramp) {
        let other = neighbor(program, pe, port);
        if other.is_none() && positions.iter().any(|p| p.tx.has(port)) {
            found.add("edge", place(program, pe), format!("color {color} leaves the rectangle by {port:?}"));
        }
        // A later position may stay unused: what it does is for the run to tell. Accepting from beyond the edge waits
        // for nothing and does no harm.
        let (Some(q), back) = (other, port.opposite()) else {
            continue;
        };
        let never =
            |side: fn(&Position) -> Ports| at(q).is_none_or(|r| r.positions().iter().all(|p| !side(p).has(back)));
        if positions[0].tx.has(port) && never(|p| p.rx) {
            let message = format!("color {color} leaves by {port:?}, but {} never accepts it", place(program, q));
            found.add("link", place(program, pe), message);
        }
        if positions[0].rx.has(port) && never(|p| p.tx) {
            let message = format!("color {color} is accepted from {port:?}, but {} never sends it", place(program, q));
            found.add("link", place(program, pe), message);
        }
    }
}

/// A PE's own operations do not advance its router past the last position.
fn advances(program: &WaferProgram, pe: usize, found: &mut Findings) {
    let mut count: FxHashMap<Color, usize> = FxHashMap::default();
    for op in program.threads(pe).flat_map(|t| program.thread_ops(t)) {
        if let Some(color) = program.op(op).advance {
            *count.entry(color).or_default() += 1;
        }
    }
    for route in program.routes(pe) {
        let most = route.positions().len() - 1;
        if let Some(&n) = count.get(&route.color)
            && n > most
        {
            found.add(
                "advance",
                place(program, pe),
                format!("color {} is advanced {n} times; its switch goes {most}", route.color),
            );
        }
    }
}

/// Links as nodes, ways through a router in any position as edges: no circle.
fn no_circle(program: &WaferProgram, found: &mut Findings) -> bool {
    // Links that remain to be left, for each link that comes in; a link is a PE, a color and the port it leaves by.
    let mut into: FxHashMap<(usize, Color, Port), u32> = FxHashMap::default();
    let onward = |&(pe, color, port): &(usize, Color, Port)| {
        let next = neighbor(program, pe, port);
        let at = next.and_then(|q| Some((q, &program.routes(q)[route(program, q, color)?])));
        let ways = at.into_iter().flat_map(move |(q, r)| {
            let out = move |to: &Port| r.positions().iter().any(|p| p.rx.has(port.opposite()) && p.tx.has(*to));
            Port::ALL.into_iter().filter(move |&to| to != Port::Ramp && out(&to)).map(move |to| (q, color, to))
        });
        ways.collect::<Vec<_>>()
    };
    let mut all = Vec::new();
    for pe in 0..program.pe_count() {
        for r in program.routes(pe) {
            let sends = |port: &Port| *port != Port::Ramp && r.positions().iter().any(|p| p.tx.has(*port));
            all.extend(Port::ALL.into_iter().filter(sends).map(|port| (pe, r.color, port)));
        }
    }
    for link in &all {
        for next in onward(link) {
            *into.entry(next).or_default() += 1;
        }
    }
    let mut ready: Vec<_> = all.iter().copied().filter(|l| !into.contains_key(l)).collect();
    let mut done = 0;
    while let Some(link) = ready.pop() {
        done += 1;
        for next in onward(&link) {
            if let Some(n) = into.get_mut(&next) {
                *n -= 1;
                if *n == 0 {
                    ready.push(next);
                }
            }
        }
    }
    if done < all.len() {
        let n = all.len() - done;
        found.add("circle", "fabric", format!("{n} links lie on or behind a way that runs in a circle"));
    }
    done == all.len()
}
