//! An interpreter of emitted projects, written from the rules of the language and of the fabric (`docs/csl.md`), with
//! data.
//!
//! It shares no code with the emitter. Each PE runs its tasks and vector operations one element at a time; wavelets
//! move through routers with queues of [`DEPTH`], by the positions of switches. Time is not modelled; PEs and routers
//! may be delayed at random, so that other orders occur. The interpreter stops a program that breaks a rule of
//! [`rules`], runs two operations at the same time on one queue or microthread, leaves a wavelet that no PE takes, or
//! has a PE that does not end.

mod layout;
mod modules;
mod pe;
mod rules;
mod syntax;

use std::collections::VecDeque;

use layout::{Layout, Position, RAMP};
pub use pe::Pe;
use unisono_csl::Files;

/// Greatest number of wavelets that wait at a router, for each color and input.
const DEPTH: usize = 4;

#[derive(Clone, Copy, Debug)]
pub enum Wavelet {
    /// An element. The flag is true if the switch of the sender's own router advances after this element.
    Data(f32, bool),
    Control,
}

/// The state of one color at one router.
struct Router {
    color: u64,
    positions: Vec<Position>,
    at: usize,
    /// Waiting wavelets by input, each with the first round in which it may move.
    waiting: [VecDeque<(Wavelet, u64)>; 5],
    /// Wavelets for the PE.
    arrived: VecDeque<f32>,
}

/// Runs a project on inputs, and returns the outputs of all PEs, row by row.
pub fn run(files: &Files, inputs: &[Vec<f32>]) -> Vec<Vec<f32>> {
    run_held_up(files, inputs, 0)
}

/// Runs a project as [`run`] does, but delays PEs and routers at random, by a seed. Seed 0 delays none.
pub fn run_held_up(files: &Files, inputs: &[Vec<f32>], seed: u64) -> Vec<Vec<f32>> {
    let mut wafer = Wafer::load(files, inputs);
    wafer.seed = seed;
    wafer.launch("compute");
    wafer.pes.into_iter().map(Pe::output).collect()
}

pub struct Wafer {
    pub layout: Layout,
    routers: Vec<Vec<Router>>,
    pub pes: Vec<Pe>,
    /// Number of rounds so far. In a round, every operation computes an element and every color of a router moves a
    /// wavelet.
    rounds: u64,
    seed: u64,
}

/// Returns whether a PE or router is held up in this round: one time in three.
fn is_held_up(seed: &mut u64) -> bool {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed != 0 && seed.is_multiple_of(3)
}

impl Wafer {
    pub fn load(files: &Files, inputs: &[Vec<f32>]) -> Self {
        let text = |name: &str| &files.iter().find(|f| f.0 == name).unwrap_or_else(|| panic!("no file {name:?}")).1;
        let mut layout = layout::read(files, &syntax::parse(text("layout.csl")));
        let mut programs = std::collections::BTreeMap::new();
        for tile in &layout.tiles {
            programs.entry(tile.file.clone()).or_insert_with(|| syntax::parse(text(&tile.file)));
        }
        let is_wse3 = files.iter().any(|f| f.1.contains("and the WSE-3"));
        let is_own = programs.values().any(|program| modules::imports(program));
        if !is_own && !files.iter().any(|f| f.0 == "measure.py") {
            rules::check(&layout, &programs, is_wse3);
        }
        let operator = files.iter().find(|f| f.0.ends_with("operator.csl")).map(|f| operator(&f.1));
        for (color, positions) in layout.tiles.iter().filter(|_| is_wse3).flat_map(|t| &t.routes) {
            let may_switch = (0..10).contains(color) || [12, 13, 16, 17, 20].contains(color);
            assert!(positions.len() == 1 || may_switch, "color {color} has switches");
        }
        let mut routers: Vec<Vec<Router>> = Vec::new();
        let mut pes: Vec<Pe> = Vec::new();
        for (tile, input) in layout.tiles.iter_mut().zip(inputs) {
            let mut program = std::borrow::Cow::Borrowed(&programs[&tile.file]);
            if modules::imports(&program) {
                program = std::borrow::Cow::Owned(modules::linked(files, &tile.file, &tile.given));
                tile.configure(&program);
            }
            let router = |(&color, positions): (&u64, &Vec<Position>)| Router {
                color,
                positions: positions.clone(),
                at: 0,
                waiting: Default::default(),
                arrived: VecDeque::new(),
            };
            routers.push(tile.routes.iter().map(router).collect());
            pes.push(Pe::new(&program, tile, input, operator, is_wse3));
        }
        Self { layout, routers, pes, rounds: 0, seed: 0 }
    }

    /// Runs a function on all PEs to its end.
    pub fn launch(&mut self, function: &str) {
        let Self { layout, routers, pes, seed, .. } = self;
        for pe in pes.iter_mut() {
            pe.launch(function);
        }
        // After a round in which nothing moved, no PE or router is delayed for one round, so a second such round means
        // a deadlock.
        let mut all_move = *seed == 0;
        loop {
            let mut moved = false;
            for (pe, routers) in pes.iter_mut().zip(routers.iter_mut()) {
                if all_move || !is_held_up(seed) {
                    moved |= pe.turn(routers, self.rounds);
                }
            }
            self.rounds += 1;
            for pe in (0..routers.len()).rev() {
                for n in 0..routers[pe].len() {
                    if all_move || !is_held_up(seed) {
                        moved |= pass(layout, routers, (pe, n), self.rounds);
                    }
                }
            }
            if !moved && all_move {
                break;
            }
            assert!(self.rounds < 1_000_000, "wavelets run in a circle");
            all_move = *seed == 0 || !moved;
        }
        for (n, (pe, routers)) in pes.iter().zip(routers.iter()).enumerate() {
            assert_eq!(
                pe.ended, 1,
                "PE {n} of {}x{} let the host go on {} times",
                layout.height, layout.width, pe.ended
            );
            for r in routers {
                assert!(r.arrived.is_empty(), "PE {n} leaves wavelets of color {}", r.color);
                assert!(r.waiting.iter().all(VecDeque::is_empty), "wavelets of color {} wait at PE {n}", r.color);
            }
        }
    }
}

/// Returns the function that `combine` of the operator's file computes, by its text.
fn operator(text: &str) -> fn(f32, f32) -> f32 {
    let body = text.split_once("fn combine(").unwrap().1;
    match body {
        _ if body.contains("return a + b;") => |a, b| a + b,
        _ if body.contains("return a * b;") => |a, b| a * b,
        _ if body.contains("return a & b;") => |a, b| (a as i32 & b as i32) as f32,
        _ if body.contains("return a | b;") => |a, b| (a as i32 | b as i32) as f32,
        _ if body.contains("return a ^ b;") => |a, b| (a as i32 ^ b as i32) as f32,
        _ if body.contains("if (b < a)") => |a, b| if b < a { b } else { a },
        _ if body.contains("if (a < b)") => |a, b| if a < b { b } else { a },
        _ => panic!("{text}"),
    }
}

/// Moves a waiting wavelet of one color, if the next routers have room. A hop takes a round.
fn pass(layout: &Layout, routers: &mut [Vec<Router>], (pe, n): (usize, usize), round: u64) -> bool {
    let r = &routers[pe][n];
    let position = r.positions[r.at].clone();
    let Some(&port) = position.rx.iter().find(|&&p| !r.waiting[p].is_empty()) else { return false };
    let (wavelet, from) = r.waiting[port][0];
    if from > round {
        // The wavelet can move in the next round.
        return true;
    }
    let width = layout.width as usize;
    let mut there = Vec::new();
    for &to in &position.tx {
        if to == RAMP {
            if r.arrived.len() >= DEPTH {
                return false;
            }
            continue;
        }
        let next = [pe.wrapping_sub(1), pe + 1, pe + width, pe.wrapping_sub(width)][to];
        let inside = match to {
            0 => !pe.is_multiple_of(width),
            1 => pe % width + 1 < width,
            _ => next < routers.len(),
        };
        assert!(inside, "a wavelet leaves the rectangle at PE {pe}");
        let opposite = [1, 0, 3, 2][to];
        let at = routers[next].iter().position(|o| o.color == r.color);
        let at = at.unwrap_or_else(|| panic!("no route of color {} at PE {next}", r.color));
        if routers[next][at].waiting[opposite].len() >= DEPTH {
            return false;
        }
        there.push((next, at, opposite));
    }
    for (next, at, from) in there {
        // Only the sender's own router advances after an element.
        let passed = match wavelet {
            Wavelet::Data(value, _) => Wavelet::Data(value, false),
            Wavelet::Control => Wavelet::Control,
        };
        routers[next][at].waiting[from].push_back((passed, round + 1));
    }
    let r = &mut routers[pe][n];
    r.waiting[port].pop_front();
    let advances = match wavelet {
        Wavelet::Data(value, advances) => {
            if position.tx.contains(&RAMP) {
                r.arrived.push_back(value);
            }
            advances
        }
        Wavelet::Control => true,
    };
    if advances {
        r.at = (r.at + 1).min(r.positions.len() - 1);
    }
    true
}
