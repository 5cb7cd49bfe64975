//! The routes and vector operations of every PE.
//!
//! A *color* names a route through the routers. At each router a color has up to four *positions*. The current position
//! defines from which ports wavelets are accepted and to which ports they go. A position advances to the next after the
//! last wavelet of an operation of the PE ([`Op::advance`]), or when a control wavelet passes ([`Op::control`]). The
//! last position does not advance. Source: "Near-Optimal Wafer-Scale Reduce", section 2.2.
//!
//! A PE runs *threads* (microthreads). Each is a sequence of operations over vectors. All threads share one datapath
//! with one element operation per cycle.

use std::ops::Range;

use unisono_base::{InstrId, narrow};
use unisono_collective::Collective;
use unisono_machine::{Direction, Grid};

/// A color, from 0 to one less than the machine's number of colors.
pub type Color = u8;

/// One of the five links of a router.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Port {
    North,
    South,
    West,
    East,
    /// The ramp to and from the PE.
    Ramp,
}

impl Port {
    pub const ALL: [Port; 5] = [Port::North, Port::South, Port::West, Port::East, Port::Ramp];

    pub fn index(self) -> usize {
        self as usize
    }

    /// Returns the port through which a hop in this direction leaves.
    pub fn toward(direction: Direction) -> Self {
        [Port::North, Port::South, Port::West, Port::East][direction.index()]
    }

    /// Returns the direction of a link to a neighbor; None for the ramp.
    pub fn direction(self) -> Option<Direction> {
        Direction::ALL.get(self.index()).copied()
    }

    /// Returns the neighbor's port at the other end of the link. For the ramp, this is the ramp.
    pub fn opposite(self) -> Self {
        [Port::South, Port::North, Port::East, Port::West, Port::Ramp][self.index()]
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Ports(u8);

impl Ports {
    pub const NONE: Ports = Ports(0);

    #[must_use]
    pub fn with(self, port: Port) -> Self {
        Self(self.0 | 1 << port.index())
    }

    pub fn has(self, port: Port) -> bool {
        self.0 >> port.index() & 1 == 1
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the set as bits, with bit `Port::index` for each port.
    pub fn bits(self) -> u8 {
        self.0
    }

    pub fn count(self) -> u32 {
        self.0.count_ones()
    }

    pub fn iter(self) -> impl Iterator<Item = Port> {
        Port::ALL.into_iter().filter(move |&p| self.has(p))
    }
}

impl FromIterator<Port> for Ports {
    fn from_iter<I: IntoIterator<Item = Port>>(iter: I) -> Self {
        iter.into_iter().fold(Self::NONE, Self::with)
    }
}

/// A position: wavelets that arrive from a port of `rx` leave through all of `tx`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Position {
    pub rx: Ports,
    pub tx: Ports,
}

/// The positions of one color at one router, in the order of their use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ColorRoute {
    pub color: Color,
    len: u8,
    positions: [Position; 4],
}

impl ColorRoute {
    /// # Panics
    /// Panics without positions or with more than four; lowering checks the machine's limit first.
    pub fn new(color: Color, positions: &[Position]) -> Self {
        assert!((1..=4).contains(&positions.len()), "a color has one to four positions");
        let mut all = [Position::default(); 4];
        all[..positions.len()].copy_from_slice(positions);
        Self { color, len: narrow(positions.len()), positions: all }
    }

    pub fn positions(&self) -> &[Position] {
        &self.positions[..usize::from(self.len)]
    }
}

/// An operand of a vector operation: its first element in a buffer of the PE, or the fabric on a color.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum End {
    In(u32),
    Out(u32),
    Tmp(u32),
    Fabric(Color),
}

/// A vector operation: element `k` of every sink becomes the reduction, in the order of the sources, of element `k` of
/// every source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Op {
    /// The number of elements, each one wavelet.
    pub len: u32,
    pub(crate) first_end: u32,
    pub(crate) sources: u8,
    pub(crate) sinks: u8,
    /// The color, if any, whose position the PE's own router advances after the operation's last wavelet of that color
    /// has entered the router.
    pub advance: Option<Color>,
    /// The color, if any, on which a control wavelet follows the operation's last wavelet. Every router on the route
    /// forwards it by the current position, then advances the color. No PE receives it.
    pub control: Option<Color>,
    /// Elements read from one of several fabric sources before the next source, and, if `sinks_in_turn`, elements
    /// written to one sink before the next sink. At most `len`.
    pub chunk: u32,
    /// True if sinks in memory receive a chunk first, and separate operations then send it to sinks on the fabric. If
    /// false, one operation writes an element to all sinks.
    pub sinks_in_turn: bool,
    /// The smallest number of cycles from one element to the next; 1 is the speed of the datapath.
    pub pace: u16,
    /// The instruction of the schedule from which the operation was lowered.
    pub instr: InstrId,
    pub phase: u16,
}

impl Op {
    /// Returns the number of datapath operations for one element: an n-source combine costs max(1, n - 1), and
    /// `sinks_in_turn` adds one more.
    pub fn work(&self) -> u32 {
        u32::from(self.sources).saturating_sub(1).max(1) + u32::from(self.sinks_in_turn)
    }
}

/// The programs of all PEs of a grid, as tables. PEs are numbered row by row.
#[derive(Clone, PartialEq, Debug)]
pub struct WaferProgram {
    pub grid: Grid,
    pub collective: Collective,
    pub(crate) phases: Vec<String>,
    pub(crate) pe_routes: Vec<u32>,
    pub(crate) routes: Vec<ColorRoute>,
    pub(crate) pe_threads: Vec<u32>,
    pub(crate) thread_ops: Vec<u32>,
    pub(crate) ops: Vec<Op>,
    pub(crate) ends: Vec<End>,
    /// Pairs of operations `(later, earlier)` of one PE, sorted: `earlier` must be complete before `later` starts.
    pub(crate) waits: Vec<(u32, u32)>,
    /// First pair of each later operation, and the end of the last one's pairs.
    pub(crate) op_waits: Vec<u32>,
    pub(crate) scratch: Vec<u32>,
}

/// An operation with its sources and sinks.
pub type Step = (Op, Vec<End>, Vec<End>);

/// The program of one PE. [`WaferProgram::assemble`] builds the tables from the programs of all PEs.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PeProgram {
    pub routes: Vec<ColorRoute>,
    /// Threads of operations with their sources and sinks. The pairs of `waits` number the operations from 0 over all
    /// threads.
    pub threads: Vec<Vec<Step>>,
    pub waits: Vec<(u32, u32)>,
    pub scratch: u32,
}

impl Op {
    /// Makes an operation of `len` elements at full speed that advances no router.
    pub fn plain(len: u32) -> Self {
        Self {
            len,
            first_end: 0,
            sources: 0,
            sinks: 0,
            advance: None,
            control: None,
            chunk: 1,
            sinks_in_turn: false,
            pace: 1,
            instr: InstrId(0),
            phase: 0,
        }
    }
}

impl WaferProgram {
    /// Builds the tables from one program for each PE, row by row.
    pub fn assemble(
        grid: Grid,
        collective: Collective,
        phases: Vec<String>,
        pes: impl IntoIterator<Item = PeProgram>,
    ) -> Self {
        let mut p = Self {
            grid,
            collective,
            phases,
            pe_routes: vec![0],
            routes: Vec::new(),
            pe_threads: vec![0],
            thread_ops: vec![0],
            ops: Vec::new(),
            ends: Vec::new(),
            waits: Vec::new(),
            op_waits: Vec::new(),
            scratch: Vec::new(),
        };
        for pe in pes {
            p.routes.extend(&pe.routes);
            p.pe_routes.push(narrow(p.routes.len()));
            let first = narrow::<u32>(p.ops.len());
            p.waits.extend(pe.waits.iter().map(|&(a, b)| (first + a, first + b)));
            for thread in pe.threads {
                for (op, sources, sinks) in thread {
                    let first_end = narrow::<u32>(p.ends.len());
                    p.ends.extend(&sources);
                    p.ends.extend(&sinks);
                    p.ops.push(Op { first_end, sources: narrow(sources.len()), sinks: narrow(sinks.len()), ..op });
                }
                p.thread_ops.push(narrow(p.ops.len()));
            }
            p.pe_threads.push(narrow::<u32>(p.thread_ops.len()) - 1);
            p.scratch.push(pe.scratch);
        }
        p.waits.sort_unstable();
        p.op_waits.resize(p.ops.len() + 1, 0);
        p.waits.iter().for_each(|w| p.op_waits[w.0 as usize + 1] += 1);
        for op in 0..p.ops.len() {
            p.op_waits[op + 1] += p.op_waits[op];
        }
        p
    }

    pub fn pe_count(&self) -> usize {
        self.scratch.len()
    }

    pub fn phases(&self) -> &[String] {
        &self.phases
    }

    /// Returns the routes of a PE's router, in ascending order of colors.
    pub fn routes(&self, pe: usize) -> &[ColorRoute] {
        &self.routes[self.pe_routes[pe] as usize..self.pe_routes[pe + 1] as usize]
    }

    /// Returns the indices of a PE's threads among the threads of all PEs.
    pub fn threads(&self, pe: usize) -> Range<usize> {
        self.pe_threads[pe] as usize..self.pe_threads[pe + 1] as usize
    }

    /// Returns the indices of a thread's operations among the operations of all PEs, in execution order.
    pub fn thread_ops(&self, thread: usize) -> Range<usize> {
        self.thread_ops[thread] as usize..self.thread_ops[thread + 1] as usize
    }

    pub fn op_count(&self) -> usize {
        self.ops.len()
    }

    pub fn op(&self, op: usize) -> &Op {
        &self.ops[op]
    }

    pub fn sources(&self, op: usize) -> &[End] {
        let o = &self.ops[op];
        &self.ends[o.first_end as usize..][..usize::from(o.sources)]
    }

    pub fn sinks(&self, op: usize) -> &[End] {
        let o = &self.ops[op];
        &self.ends[o.first_end as usize + usize::from(o.sources)..][..usize::from(o.sinks)]
    }

    /// Returns the operations that must be complete before `op` starts, besides the earlier operations of its thread.
    pub fn waits(&self, op: usize) -> impl Iterator<Item = usize> + '_ {
        self.waits[self.op_waits[op] as usize..self.op_waits[op + 1] as usize].iter().map(|w| w.1 as usize)
    }

    pub fn scratch_elements(&self, pe: usize) -> u32 {
        self.scratch[pe]
    }

    pub fn colors(&self) -> Vec<Color> {
        let mut used = [false; 256];
        for r in &self.routes {
            used[usize::from(r.color)] = true;
        }
        (0..=255u8).filter(|&c| used[usize::from(c)]).collect()
    }

    /// Returns the program without its control wavelets, to show the effect of a missing one.
    #[must_use]
    pub fn without_controls(&self) -> Self {
        let mut p = self.clone();
        p.ops.iter_mut().for_each(|o| o.control = None);
        p
    }
}
