//! Wafer programs on lines, written by hand after the route tables of "Near-Optimal Wafer-Scale Reduce".

use unisono_collective::Kind;
use unisono_lower::wafer::{Color, End, PeProgram, Port, Step, WaferProgram};
use unisono_machine::Grid;

use super::{at, program, route, step};

/// The two directions of a line: away from the root, and toward it.
#[derive(Clone, Copy)]
pub struct Line {
    pub pos: Port,
    pub neg: Port,
}

pub const ROW: Line = Line { pos: Port::East, neg: Port::West };
pub const COLUMN: Line = Line { pos: Port::South, neg: Port::North };

/// Builds the PEs of a reduce on a line along a tree in pre-order. The parent of PE `v` is `parents[v - 1] < v`, its
/// contribution is `own(v)`, and the root stores the sum in `out_root`. Other PEs have scratch memory if they have
/// several children.
pub fn tree(
    parents: &[usize],
    line: Line,
    colors: [Color; 2],
    elements: u32,
    own: impl Fn(usize) -> End,
    out_root: End,
) -> Vec<PeProgram> {
    let n = parents.len() + 1;
    let children = |v: usize| -> Vec<usize> { (v + 1..n).filter(|&c| parents[c - 1] == v).collect() };
    let mut depth = vec![0; n];
    for v in 1..n {
        depth[v] = depth[parents[v - 1]] + 1;
    }
    // A PE sends on the color on which its parent receives.
    let incoming = |v: usize| colors[depth[v] % 2];
    let outgoing = |v: usize| colors[(depth[v] + 1) % 2];
    let mut pes = Vec::new();
    for v in 0..n {
        let kids = children(v);
        let mut pe = PeProgram::default();
        let keep = if v == 0 { out_root } else { End::Tmp(0) };
        let mut steps = Vec::new();
        let mut have = own(v);
        for (k, _) in kids.iter().enumerate() {
            let last = k + 1 == kids.len() && v > 0;
            let sink = if last { End::Fabric(outgoing(v)) } else { keep };
            steps.push(step(elements, &[have, End::Fabric(incoming(v))], sink));
            have = sink;
        }
        if kids.is_empty() && v > 0 {
            steps.push(step(elements, &[have], End::Fabric(outgoing(v))));
        }
        if v > 0 && kids.len() > 1 {
            pe.scratch = elements;
        }
        if v > 0 {
            // If its parent is not the root, the last child sends a control wavelet after its data; other PEs advance
            // their own router.
            let parent = parents[v - 1];
            let is_last = children(parent).last() == Some(&v);
            let passes = parent > 0 && is_last;
            let op = &mut steps.last_mut().unwrap().0;
            if passes {
                op.control = Some(outgoing(v));
            } else {
                op.advance = Some(outgoing(v));
            }
        }
        // True if a stream from a PE farther away crosses this router on `color` later.
        let beyond = |color: Color| (v + 1..n).any(|s| outgoing(s) == color && parents[s - 1] < v);
        let Line { pos, neg } = line;
        if !kids.is_empty() {
            let first = at(pos, &[Port::Ramp]);
            let passing = at(pos, &[neg]);
            let both = [first, passing];
            let switched = v > 0;
            pe.routes.push(route(incoming(v), if switched { &both } else { &both[..1] }));
        } else if beyond(incoming(v)) {
            pe.routes.push(route(incoming(v), &[at(pos, &[neg])]));
        }
        if v > 0 {
            let own = at(Port::Ramp, &[neg]);
            let passing = at(pos, &[neg]);
            pe.routes.push(route(outgoing(v), &[own, passing]));
        }
        pe.routes.sort_by_key(|r| r.color);
        if !steps.is_empty() {
            pe.threads = vec![steps];
        }
        pes.push(pe);
    }
    pes
}

pub fn tree_row(parents: &[usize], elements: u32) -> WaferProgram {
    let grid = Grid::new(1, parents.len() as u32 + 1);
    let pes = tree(parents, ROW, [0, 1], elements, |_| End::In(0), End::Out(0));
    program(Kind::Reduce, grid, elements, pes)
}

pub fn chain_parents(n: usize) -> Vec<usize> {
    (0..n - 1).collect()
}

/// Returns a chain with static routes: each PE adds its vector and sends the sum on.
pub fn chain(n: u32, elements: u32) -> WaferProgram {
    let pes = (0..n).map(|v| {
        let (incoming, outgoing) = ((v % 2) as Color, ((v + 1) % 2) as Color);
        let mut pe = PeProgram::default();
        let mut sources = vec![End::In(0)];
        if v + 1 < n {
            pe.routes.push(route(incoming, &[at(Port::East, &[Port::Ramp])]));
            sources.push(End::Fabric(incoming));
        }
        if v > 0 {
            pe.routes.push(route(outgoing, &[at(Port::Ramp, &[Port::West])]));
        }
        pe.routes.sort_by_key(|r| r.color);
        let sink = if v > 0 { End::Fabric(outgoing) } else { End::Out(0) };
        pe.threads = vec![vec![step(elements, &sources, sink)]];
        pe
    });
    program(Kind::Reduce, Grid::new(1, n), elements, pes.collect())
}

/// Returns a reduce in which every PE sends directly to the root, the nearest PE first.
pub fn star(n: u32, elements: u32) -> WaferProgram {
    let mut pes = Vec::new();
    for v in 0..n {
        let mut pe = PeProgram::default();
        if v == 0 {
            pe.routes.push(route(3, &[at(Port::East, &[Port::Ramp])]));
            let add = |k| {
                let have = if k == 1 { End::In(0) } else { End::Out(0) };
                step(elements, &[have, End::Fabric(3)], End::Out(0))
            };
            pe.threads = vec![(1..n).map(add).collect()];
        } else {
            let own = at(Port::Ramp, &[Port::West]);
            let passing = at(Port::East, &[Port::West]);
            let positions = [own, passing];
            let used = if v + 1 < n { 2 } else { 1 };
            pe.routes.push(route(3, &positions[..used]));
            let mut send = step(elements, &[End::In(0)], End::Fabric(3));
            send.0.advance = (v + 1 < n).then_some(3);
            pe.threads = vec![vec![send]];
        }
        pes.push(pe);
    }
    program(Kind::Reduce, Grid::new(1, n), elements, pes)
}
