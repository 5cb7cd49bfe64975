//! A machine packed, and unpacked when its run has ended.

use unisono_base::narrow;

use super::{
    super::{
        error::SimError,
        machine::Machine,
        moves::{Log, router_key},
        queue::Wavelet,
        tables::{self, NONE, Place, RAMP, RAMP_BIT},
    },
    AHEAD, Cell, Need, Packed, Row, Step, TO_PE, TO_ROUTER,
    counters::MOST,
};

/// Bits of a mask.
const MOST_BITS: u32 = 32;

/// Where a queue belongs: the bit of its row, and of the output that feeds it.
struct Bits {
    row: Vec<u8>,
    output: Vec<u8>,
}

impl Packed {
    /// Packs a machine at the beginning of a cycle in which nobody sleeps. `None`: the program cannot be packed.
    pub fn new(m: &Machine<'_>, now: u32) -> Option<Self> {
        let cols = m.program.grid.cols;
        let mut packed = Self {
            cells: Vec::new(),
            rows: Vec::new(),
            needs: vec![Need::default(); m.threads.len()],
            steps: Vec::new(),
            first_step: Vec::new(),
            bit_of: Vec::new(),
            toward: [cols.wrapping_neg(), cols, 1u32.wrapping_neg(), 1, 0],
            ramp_latency: m.options.ramp_latency,
        };
        if !is_plain(m) {
            return None;
        }
        let bits = packed.add_cells(m);
        packed.connect(m, &bits);
        packed.fill(m, &bits, now);
        packed.add_threads(m, &bits);
        Some(packed)
    }

    fn add_cells(&mut self, m: &Machine<'_>) -> Bits {
        let queues = m.tables.queues.count();
        let mut bits = Bits { row: vec![0; queues], output: vec![0; queues] };
        for pe in 0..m.program.pe_count() {
            let rows = &m.tables.rows[m.tables.pe_rows[pe] as usize..m.tables.pe_rows[pe + 1] as usize];
            let first = self.rows.len();
            let mut cell = Cell {
                first_row: narrow::<u32>(first),
                first_thread: m.pe_threads[pe],
                rows: narrow::<u8>(rows.len()),
                threads: narrow::<u8>(m.pe_threads[pe + 1] - m.pe_threads[pe]),
                router_turn: m.router_turn[pe],
                thread_turn: m.thread_turn[pe],
                ..Cell::default()
            };
            self.rows.resize(first + rows.len(), Row::default());
            for (n, row) in rows.iter().enumerate() {
                let (rx, tx) = (row.rx[0], row.tx[0]);
                let from = rx.trailing_zeros() as usize;
                self.rows[first + n].from = narrow::<u8>(from);
                bits.row[row.inputs[from] as usize] = narrow::<u8>(n);
                let mut at = first + n;
                for (k, to) in (0..=RAMP).filter(|to| tx >> to & 1 == 1).enumerate() {
                    if k > 0 {
                        self.rows[at].next = narrow::<u8>(self.rows.len() - first);
                        at = self.rows.len();
                        self.rows.push(Row::default());
                        cell.several |= 1 << n;
                    }
                    self.rows[at].to = narrow::<u8>(to);
                    cell.rows_to[to] |= 1 << n;
                    bits.output[row.outputs[to] as usize] = narrow::<u8>(at - first);
                }
            }
            self.cells.push(cell);
        }
        bits
    }

    /// Connects both ends of each queue.
    fn connect(&mut self, m: &Machine<'_>, bits: &Bits) {
        for pe in 0..m.program.pe_count() {
            let rows = &m.tables.rows[m.tables.pe_rows[pe] as usize..m.tables.pe_rows[pe + 1] as usize];
            let first = self.cells[pe].first_row as usize;
            for (n, row) in rows.iter().enumerate() {
                let from = usize::from(self.rows[first + n].from);
                let input = row.inputs[from] as usize;
                self.rows[first + n].from_bit = if from == RAMP { narrow::<u8>(n) } else { bits.output[input] };
                let mut at = n;
                loop {
                    let output = &mut self.rows[first + at];
                    let to = usize::from(output.to);
                    output.to_bit = if to == RAMP { narrow::<u8>(at) } else { bits.row[row.outputs[to] as usize] };
                    at = usize::from(output.next);
                    if at == 0 {
                        break;
                    }
                }
            }
        }
    }

    /// Takes over wavelets and room.
    fn fill(&mut self, m: &Machine<'_>, bits: &Bits, now: u32) {
        let queues = &m.tables.queues;
        let room = |queue: u32| queues.capacity(queue) - queues.len(queue);
        for pe in 0..m.program.pe_count() {
            let cell = &mut self.cells[pe];
            for row in &m.tables.rows[m.tables.pe_rows[pe] as usize..m.tables.pe_rows[pe + 1] as usize] {
                for (port, input) in row.inputs.into_iter().enumerate().filter(|i| i.1 != NONE) {
                    let bit = bits.row[input as usize];
                    let mut waiting = 0;
                    for ready in queues.wavelets(input).map(Wavelet::ready) {
                        cell.stalls = cell.stalls.wrapping_sub(u64::from(ready));
                        if ready < now {
                            waiting += 1;
                        } else {
                            cell.mail[TO_ROUTER + (ready % AHEAD) as usize] |= 1 << bit;
                        }
                    }
                    cell.waiting.set(u32::from(bit), waiting);
                    if port == RAMP {
                        cell.ramp_room.set(u32::from(bit), room(input));
                    }
                }
                for (port, output) in row.outputs.into_iter().enumerate().filter(|o| o.1 != NONE) {
                    let bit = bits.output[output as usize];
                    cell.room.set(u32::from(bit), room(output));
                    if port == RAMP {
                        let came = queues.wavelets(output).filter(|w| w.ready() < now).count();
                        cell.inbox.set(u32::from(bit), narrow::<u32>(came));
                        for w in queues.wavelets(output).filter(|w| w.ready() >= now) {
                            cell.mail[TO_PE + (w.ready() % AHEAD) as usize] |= 1 << bit;
                        }
                    }
                }
            }
        }
    }

    fn add_threads(&mut self, m: &Machine<'_>, bits: &Bits) {
        // A queue of the ramp to the router has the bit of its row, one to the PE that of the output.
        let mut bit_of: Vec<u8> = bits.output.clone();
        for row in m.tables.rows.iter().filter(|row| row.rx[0] & RAMP_BIT != 0) {
            bit_of[row.inputs[RAMP] as usize] = bits.row[row.inputs[RAMP] as usize];
        }
        self.bit_of = bit_of;
        for thread in 0..m.threads.len() {
            self.first_step.push(narrow::<u32>(self.steps.len()));
            // No operation has more steps than places and one.
            let places = |op: usize| (m.tables.op_places[op + 1] - m.tables.op_places[op]) as usize;
            let most = m.program.thread_ops(thread).map(places).max().unwrap_or(0) + 1;
            self.steps.resize(self.steps.len() + most, Step::default());
            self.load(m, thread);
            self.refresh(m, thread);
        }
    }

    /// Takes over the steps of a thread's operation.
    pub fn load(&mut self, m: &Machine<'_>, thread: usize) {
        let t = &m.threads[thread];
        let first = self.first_step[thread] as usize;
        if t.is_done() {
            self.steps[first] = Step::default();
            return;
        }
        let (sources, sinks) = t.places(&m.tables.places);
        let mask = |places: &[Place]| {
            places.iter().filter_map(|p| p.queue()).fold(0, |mask, q| mask | 1 << self.bit_of[q as usize])
        };
        for step in 0..t.steps() {
            let sends = if step + 1 == t.steps() { mask(sinks) } else { 0 };
            let takes = mask(&sources[t.takes_in(step)]);
            self.steps[first + usize::from(step)] =
                Step { takes, sends, sends_count: narrow::<u8>(sends.count_ones()) };
        }
    }

    /// Gives back the numbers of a run that has ended; an error if a wavelet is left, which a run without packing
    /// describes.
    pub fn unpack(self, m: &mut Machine<'_>) -> Result<(), SimError> {
        for (pe, cell) in self.cells.iter().enumerate() {
            let rows = m.tables.pe_rows[pe] as usize..m.tables.pe_rows[pe + 1] as usize;
            let left = cell.waiting.nonzero() | cell.inbox.nonzero();
            if left != 0 {
                let (row, col) = m.program.grid.row_col(narrow::<u32>(pe));
                let color = m.tables.rows[rows.start].color;
                return Err(SimError::LeftOver { count: u64::from(left.count_ones()), row, col, color });
            }
            let tally = &mut m.tallies[pe];
            tally.events += cell.steps;
            tally.last = tally.last.max(cell.last);
            for (n, r) in rows.enumerate() {
                let row = self.rows[cell.first_row as usize + n];
                let (moves, tx) = (row.moves, m.tables.rows[r].tx[0]);
                tally.events += u64::from(moves) * u64::from(tx.count_ones());
                tally.hops += u64::from(moves) * u64::from((tx & !RAMP_BIT).count_ones());
                if moves > 0 {
                    m.router_log.more(narrow::<u32>(r), router_key(usize::from(row.from), 0), moves);
                }
            }
        }
        // Those of one PE mean nothing: who sends counts what a neighbor will move.
        let stalls = self.cells.iter().fold(0u64, |sum, cell| sum.wrapping_add(cell.stalls));
        if let Some(tally) = m.tallies.first_mut() {
            tally.stalls = tally.stalls.wrapping_add(stalls);
        }
        // All operations have ended, or the run is an error: their lengths are what passed the ramps.
        m.ramp_log = Log::new(m.tables.queues.count());
        for op in (0..m.threads.len()).flat_map(|thread| m.program.thread_ops(thread)) {
            let places = m.tables.op_places[op] as usize..m.tables.op_places[op + 1] as usize;
            for queue in m.tables.places[places].iter().filter_map(|p| p.queue()) {
                m.ramp_log.more(queue, narrow::<u32>(op), m.program.op(op).len);
            }
        }
        Ok(())
    }
}

/// Whether a program can be packed: colors have one position and one input, threads share no queue, and queues hold no
/// more than can be counted.
pub fn is_plain(m: &Machine<'_>) -> bool {
    let deepest = m.options.queue_depth.saturating_add(m.options.ramp_latency).saturating_add(2);
    if m.options.ramp_latency + 2 > AHEAD || deepest > MOST || !has_own_queues(m) {
        return false;
    }
    (0..m.program.pe_count()).all(|pe| {
        let rows = &m.tables.rows[m.tables.pe_rows[pe] as usize..m.tables.pe_rows[pe + 1] as usize];
        let outputs: u32 = rows.iter().map(|row| row.tx[0].count_ones()).sum();
        let threads = m.pe_threads[pe + 1] - m.pe_threads[pe];
        let is_plain = |row: &tables::Row| row.positions == 1 && row.rx[0].is_power_of_two() && row.tx[0] != 0;
        outputs <= MOST_BITS && threads <= u32::BITS && rows.iter().all(is_plain)
    })
}

/// Whether each queue of a ramp is used by one thread, by data alone, and not twice by one operation.
fn has_own_queues(m: &Machine<'_>) -> bool {
    let mut users = vec![(NONE, NONE); m.tables.queues.count()];
    for thread in 0..m.threads.len() {
        for op in m.program.thread_ops(thread) {
            let o = m.program.op(op);
            if o.control.is_some() || o.advance.is_some() || o.len == 0 {
                return false;
            }
            let places = m.tables.op_places[op] as usize..m.tables.op_places[op + 1] as usize;
            for queue in m.tables.places[places].iter().filter_map(|p| p.queue()) {
                let user = &mut users[queue as usize];
                let this = (narrow::<u32>(thread), narrow::<u32>(op));
                if *user == this || (user.0 != NONE && user.0 != this.0) {
                    return false;
                }
                *user = this;
            }
        }
    }
    true
}
