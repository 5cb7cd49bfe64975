//! Computes the cost terms of any placed schedule on its grid.
//!
//! A phase may run on many lines at once (all rows of an X-Y reduce); PEs that no link in use connects are
//! apart, and each such line has terms of its own. Source of the terms: "Near-Optimal Wafer-Scale Reduce", section 3.

use unisono_base::{Diagnostic, Diagnostics, InstrId, Wavelets};
use unisono_lower::{Placed, Segment, Terms};
use unisono_machine::{Direction, Grid};
use unisono_schedule::{Flow, topological};

/// The terms of one phase: of each kind of line once, in order of appearance.
#[derive(Clone, PartialEq, Debug)]
pub struct PhaseLines {
    pub name: String,
    pub lines: Vec<Terms>,
}

/// Terms of all phases that send something.
///
/// # Errors
/// What is wrong with a schedule that is not well-formed, or that cannot run.
pub fn measure(placed: &Placed) -> Result<Vec<PhaseLines>, Vec<Diagnostic>> {
    let mut found = Diagnostics::default();
    let flow = Flow::new(&placed.schedule, &mut found);
    if !found.is_empty() {
        return Err(found.into_vec());
    }
    let order = topological(&placed.schedule, &flow, &mut found);
    placed.placement.check(&placed.schedule, &mut found);
    if !found.is_empty() {
        return Err(found.into_vec());
    }
    let chains = chains(placed, &flow, &order);
    let phases = placed.schedule.phases();
    Ok((0..phases.len() as u32)
        .map(|phase| PhaseLines { name: phases[phase as usize].clone(), lines: lines(placed, &flow, &chains, phase) })
        .filter(|p| p.lines.iter().any(|t| t.depth > 0.0))
        .collect())
}

/// Of each instruction the hops and messages along the longest chain within its phase that ends with it.
fn chains(placed: &Placed, flow: &Flow, order: &[InstrId]) -> Vec<(u32, u32)> {
    let schedule = &placed.schedule;
    let mut chains = vec![(0u32, 0u32); schedule.instr_count()];
    for &id in order {
        let phase = schedule.phase(id);
        let mut longest = (0, 0);
        let mut reach = |from: InstrId, hops: u32, messages: u32| {
            if schedule.phase(from) == phase {
                let (h, m) = chains[from.index()];
                longest = (longest.0.max(h + hops), longest.1.max(m + messages));
            }
        };
        let before = InstrId(id.0.wrapping_sub(1));
        if id.0 > 0 && flow.lane_of(before) == flow.lane_of(id) {
            reach(before, 0, 0);
        }
        for &(_, earlier) in schedule.after(id) {
            reach(earlier, 0, 0);
        }
        for (stream, span) in flow.pops(schedule, id) {
            let hops = placed.placement.distance(schedule, stream, flow.node_of(id).0);
            for writer in Flow::touching(schedule, flow.writers(stream), span) {
                reach(writer.instr, hops, 1);
            }
        }
        chains[id.index()] = longest;
    }
    chains
}

/// Sums of one phase over the grid.
struct Loads {
    /// Wavelets that a PE sends, receives, and element operations.
    sent: Vec<u64>,
    received: Vec<u64>,
    work: Vec<u64>,
    /// Wavelets on the link that leaves a PE in each direction.
    links: [Vec<i64>; 4],
    /// Union-find over PEs.
    parent: Vec<u32>,
}

fn lines(placed: &Placed, flow: &Flow, chains: &[(u32, u32)], phase: u32) -> Vec<Terms> {
    let (schedule, grid) = (&placed.schedule, placed.placement.grid);
    let width = schedule.collective().dtype.bytes();
    let pes = schedule.node_count();
    let mut loads = Loads {
        sent: vec![0; pes],
        received: vec![0; pes],
        work: vec![0; pes],
        links: std::array::from_fn(|_| vec![0; pes]),
        parent: (0..pes as u32).collect(),
    };
    let (mut deepest, mut farthest) = (vec![0u32; pes], vec![0u32; pes]);
    let mut segments = Vec::new();
    for id in (0..schedule.instr_count()).map(InstrId::new).filter(|&i| schedule.phase(i).0 == phase) {
        let node = flow.node_of(id).index();
        let len = u64::from(schedule.instr(id).len);
        let wavelets = Wavelets::of(len, width).0;
        loads.work[node] += wavelets * (schedule.sources(id).len() as u64 - 1).max(1);
        loads.received[node] += wavelets * flow.pops(schedule, id).count() as u64;
        for (stream, _) in flow.pushes(schedule, id) {
            loads.sent[node] += wavelets;
            placed.placement.segments(schedule, stream, &mut segments);
            loads.route(grid, &segments, wavelets);
        }
        farthest[node] = farthest[node].max(chains[id.index()].0);
        deepest[node] = deepest[node].max(chains[id.index()].1);
    }
    loads.spread(grid);
    loads.terms(&farthest, &deepest)
}

impl Loads {
    /// Adds a stream's wavelets at the two ends of each straight segment; [`Loads::spread`] fills in between.
    fn route(&mut self, grid: Grid, segments: &[Segment], wavelets: u64) {
        for s in segments {
            let end = grid.step(s.from, s.direction, s.hops);
            let loads = &mut self.links[s.direction.index()];
            loads[s.from as usize] += wavelets as i64;
            loads[end as usize] -= wavelets as i64;
        }
    }

    fn find(&mut self, mut pe: u32) -> u32 {
        while self.parent[pe as usize] != pe {
            let up = self.parent[self.parent[pe as usize] as usize];
            self.parent[pe as usize] = up;
            pe = up;
        }
        pe
    }

    /// Turns the differences at segment ends into loads of links, and joins the PEs at the ends of loaded links.
    fn spread(&mut self, grid: Grid) {
        for direction in Direction::ALL {
            let mut along = |start: u32, hops: u32| {
                let mut at = 0;
                for hop in 0..=hops {
                    let pe = grid.step(start, direction, hop);
                    let load = &mut self.links[direction.index()][pe as usize];
                    at += *load;
                    *load = at;
                    if at > 0 {
                        let (a, b) = (self.find(pe), self.find(grid.step(pe, direction, 1)));
                        self.parent[a.max(b) as usize] = a.min(b);
                    }
                }
            };
            match direction {
                Direction::East => (0..grid.rows).for_each(|r| along(grid.pe(r, 0), grid.cols - 1)),
                Direction::West => (0..grid.rows).for_each(|r| along(grid.pe(r, grid.cols - 1), grid.cols - 1)),
                Direction::South => (0..grid.cols).for_each(|c| along(grid.pe(0, c), grid.rows - 1)),
                Direction::North => (0..grid.cols).for_each(|c| along(grid.pe(grid.rows - 1, c), grid.rows - 1)),
            }
        }
    }

    /// Gathers the terms of each line and keeps every different one once.
    fn terms(&mut self, farthest: &[u32], deepest: &[u32]) -> Vec<Terms> {
        let pes = self.parent.len();
        let roots: Vec<u32> = (0..pes as u32).map(|pe| self.find(pe)).collect();
        let mut slot = vec![u32::MAX; pes];
        let mut lines: Vec<Terms> = Vec::new();
        for pe in 0..pes {
            let root = roots[pe] as usize;
            if slot[root] == u32::MAX {
                slot[root] = lines.len() as u32;
                lines.push(Terms::default());
            }
            let t = &mut lines[slot[root] as usize];
            t.distance = t.distance.max(f64::from(farthest[pe]));
            t.depth = t.depth.max(f64::from(deepest[pe]));
            t.contention = t.contention.max(self.sent[pe].max(self.received[pe]) as f64);
            t.datapath = t.datapath.max(self.work[pe] as f64);
            for links in &self.links {
                let load = links[pe] as f64;
                t.energy += load;
                t.links += f64::from(u8::from(load > 0.0));
                t.max_link_load = t.max_link_load.max(load);
            }
        }
        let mut different: Vec<Terms> = Vec::new();
        for t in lines {
            if !different.contains(&t) {
                different.push(t);
            }
        }
        different
    }
}
