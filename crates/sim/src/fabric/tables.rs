//! The program in the form of the hot loops: queue numbers in place of ports and colors.

use unisono_base::narrow;
use unisono_lower::wafer::{ColorRoute, End, Port, WaferProgram};
use unisono_machine::Grid;

use super::{error::SimError, queue::Queues};

/// The number that stands for no queue, no operation or no cycle.
pub const NONE: u32 = u32::MAX;
/// The entry in `Clock::op_span` of an operation that has not ended.
pub const UNDONE: (u32, u32) = (NONE, NONE);

/// One color at one router.
pub struct Row {
    pub color: u8,
    pub position: u8,
    pub positions: u8,
    /// The input ports that each position accepts, one bit for each port. `tx` has the output ports.
    pub rx: [u8; 4],
    pub tx: [u8; 4],
    /// The queue of each input port that some position accepts; [`NONE`] for other ports. The queue of the ramp holds
    /// the PE's sends.
    pub inputs: [u32; 5],
    /// The queue to which each port leads: a queue of the neighbor or, for the ramp, of the PE. [`NONE`] for ports
    /// without output.
    pub outputs: [u32; 5],
}

/// The most rows of a router. Each row is one bit of a word.
const MOST_ROWS: usize = 64;

pub const RAMP: usize = 4;
pub const RAMP_BIT: u8 = 1 << RAMP;

/// An operand: the first element in a buffer, or the number of a queue.
#[derive(Clone, Copy)]
pub enum Place {
    In(u32),
    Out(u32),
    Tmp(u32),
    Queue(u32),
}

impl Place {
    pub fn queue(self) -> Option<u32> {
        if let Self::Queue(queue) = self { Some(queue) } else { None }
    }
}

pub struct Tables {
    pub rows: Vec<Row>,
    /// The first row of each PE, then the number of all rows.
    pub pe_rows: Vec<u32>,
    pub queues: Queues,
    /// The first queue of each PE, then the number of all queues.
    pub pe_queues: Vec<u32>,
    /// The operands of all operations, sources before sinks. The operands of operation `n` start at `op_places[n]`.
    pub places: Vec<Place>,
    pub op_places: Vec<u32>,
}

impl Tables {
    pub fn new(program: &WaferProgram, queue_depth: u32, ramp_latency: u32) -> Result<Self, SimError> {
        // Wavelets on the ramp also occupy slots, so a ramp needs more slots for the full rate.
        let down = queue_depth.saturating_add(ramp_latency);
        let up = down.saturating_add(2);
        if up > 200 {
            return Err(SimError::Unsupported {
                what: "queue depth plus ramp latency",
                found: down.to_string(),
                accepted: "at most 198",
            });
        }
        let mut t = Self {
            rows: Vec::new(),
            pe_rows: vec![0],
            queues: Queues::default(),
            pe_queues: vec![0],
            places: Vec::new(),
            op_places: vec![0],
        };
        for pe in 0..program.pe_count() {
            let routes = program.routes(pe);
            if routes.len() > MOST_ROWS {
                return Err(SimError::Unsupported {
                    what: "the number of colors at one router",
                    found: routes.len().to_string(),
                    accepted: "at most 64",
                });
            }
            for (n, route) in routes.iter().enumerate() {
                let row = t.row(route, narrow::<u8>(n), [queue_depth, up, down]);
                t.rows.push(row);
            }
            t.pe_rows.push(narrow::<u32>(t.rows.len()));
            t.pe_queues.push(narrow::<u32>(t.queues.count()));
        }
        t.link(program.grid)?;
        t.bind(program)?;
        Ok(t)
    }

    /// Adds the queues of one color at one router. The depths are those of links, of the ramp into the router, and of
    /// the ramp out of the router.
    fn row(&mut self, route: &ColorRoute, row: u8, [depth, up, down]: [u32; 3]) -> Row {
        let positions = route.positions();
        let (mut rx, mut tx) = ([0; 4], [0; 4]);
        for (n, p) in positions.iter().enumerate() {
            (rx[n], tx[n]) = (p.rx.bits(), p.tx.bits());
        }
        let (any_rx, any_tx) = (rx.iter().fold(0, |a, b| a | b), tx.iter().fold(0, |a, b| a | b));
        let mut inputs = [NONE; 5];
        for port in Port::ALL.into_iter().filter(|p| any_rx >> p.index() & 1 == 1) {
            inputs[port.index()] = self.queues.add(if port == Port::Ramp { up } else { depth }, row);
        }
        let mut outputs = [NONE; 5];
        if any_tx & RAMP_BIT != 0 {
            outputs[RAMP] = self.queues.add(down, row);
        }
        Row { color: route.color, position: 0, positions: narrow::<u8>(positions.len()), rx, tx, inputs, outputs }
    }

    pub fn pe_row(&self, pe: usize, color: u8) -> Option<usize> {
        let range = self.pe_rows[pe] as usize..self.pe_rows[pe + 1] as usize;
        range.clone().find(|&r| self.rows[r].color == color)
    }

    /// Connects every output of a router with the input of the neighbor's router.
    fn link(&mut self, grid: Grid) -> Result<(), SimError> {
        for pe in 0..self.pe_rows.len() - 1 {
            for r in self.pe_rows[pe] as usize..self.pe_rows[pe + 1] as usize {
                let color = self.rows[r].color;
                let any_tx = self.rows[r].tx.iter().fold(0, |a, b| a | b);
                for port in Port::ALL.into_iter().filter(|p| any_tx >> p.index() & 1 == 1) {
                    let Some(direction) = port.direction() else { continue };
                    let neighbor = (grid.room(narrow::<u32>(pe), direction) > 0)
                        .then(|| grid.step(narrow::<u32>(pe), direction, 1));
                    let row = neighbor.and_then(|n| self.pe_row(n as usize, color));
                    let queue = row.map_or(NONE, |n| self.rows[n].inputs[port.opposite().index()]);
                    if queue == NONE {
                        let (row, col) = grid.row_col(narrow::<u32>(pe));
                        let port = ["north", "south", "west", "east", "PE"][port.index()];
                        return Err(SimError::NoNeighbor { row, col, color, port });
                    }
                    self.rows[r].outputs[port.index()] = queue;
                    self.queues.set_feeder(queue, narrow::<u8>(r - self.pe_rows[pe] as usize));
                }
            }
        }
        Ok(())
    }

    fn bind(&mut self, program: &WaferProgram) -> Result<(), SimError> {
        for pe in 0..program.pe_count() {
            for op in program.threads(pe).flat_map(|t| program.thread_ops(t)) {
                for (ends, sends) in [(program.sources(op), false), (program.sinks(op), true)] {
                    for &end in ends {
                        let place = match end {
                            End::In(at) => Place::In(at),
                            End::Out(at) => Place::Out(at),
                            End::Tmp(at) => Place::Tmp(at),
                            End::Fabric(color) => {
                                let row = self.pe_row(pe, color).map(|r| &self.rows[r]);
                                let queue = row.map_or(NONE, |r| if sends { r.inputs[RAMP] } else { r.outputs[RAMP] });
                                if queue == NONE {
                                    let (row, col) = program.grid.row_col(narrow::<u32>(pe));
                                    let instr = program.op(op).instr.0;
                                    return Err(SimError::NoRoute { row, col, color, instr });
                                }
                                Place::Queue(queue)
                            }
                        };
                        self.places.push(place);
                    }
                }
                self.check_sources(program, pe, op)?;
                self.op_places.push(narrow::<u32>(self.places.len()));
            }
        }
        Ok(())
    }

    /// Rejects two sources of one operation on the same color, because their order would be undefined.
    fn check_sources(&self, program: &WaferProgram, pe: usize, op: usize) -> Result<(), SimError> {
        let sources = program.sources(op);
        let twice = |(n, end): (usize, &End)| matches!(end, End::Fabric(_)) && sources[..n].contains(end);
        if !sources.iter().enumerate().any(twice) {
            return Ok(());
        }
        let (row, col) = program.grid.row_col(narrow::<u32>(pe));
        Err(SimError::Unsupported {
            what: "an operation",
            found: format!("i{} at PE {row},{col} with two sources of one color", program.op(op).instr.0),
            accepted: "sources of different colors",
        })
    }
}
