//! Packs a machine at the beginning of a cycle.

use unisono_base::narrow;

use super::{
    super::{
        clock::Clock,
        queue::Wavelet,
        tables::{self, NONE, RAMP, RAMP_BIT},
    },
    Packed, Row,
    faces::{Face, Faces},
    group::{AHEAD, DONE, Group, LANES, MOST, NEVER, NO_COLOR, Slot, count_slices, set},
};

/// Greatest number of colors: the number of a mask's bits below [`NO_COLOR`].
const MOST_COLORS: u32 = NO_COLOR.trailing_zeros();

impl Packed {
    /// Packs a machine at the beginning of a cycle in which no PE sleeps; `None` if the program cannot be packed.
    pub fn new(m: &Clock<'_>, now: u32) -> Option<Self> {
        if !is_plain(m) {
            return None;
        }
        let (rows, cols) = (m.program.grid.rows, m.program.grid.cols);
        let groups_in_row = cols.div_ceil(narrow::<u32>(LANES));
        let mut packed = Self {
            rows: Vec::new(),
            groups_in_row: groups_in_row as usize,
            bit_of: vec![0; m.tables.queues.count()],
            stalls: 0,
        };
        let bits = color_bits(m)?;
        let edge = || Row::new(groups_in_row);
        packed.rows.push(edge());
        for row in 0..rows {
            packed.rows.push(edge());
            for at in 0..groups_in_row {
                let first = row * cols + at * narrow::<u32>(LANES);
                let pes = first..(first + narrow::<u32>(LANES)).min((row + 1) * cols);
                packed.add_group(m, pes, &bits, now);
            }
        }
        packed.rows.push(edge());
        Some(packed)
    }

    /// Adds a group to the last row of groups.
    fn add_group(&mut self, m: &Clock<'_>, pes: std::ops::Range<u32>, bits: &[u8; 256], now: u32) {
        let threads = |pe: u32| m.pe_threads[pe as usize]..m.pe_threads[pe as usize + 1];
        let slots = pes.clone().map(|pe| threads(pe).len()).max().unwrap_or(0);
        let mut group = Group { first_pe: pes.start, slots: narrow::<u32>(slots), ..Group::default() };
        for (lane, pe) in pes.clone().enumerate() {
            self.add_router(m, &mut group, lane, pe as usize, bits, now);
            group.thread_turn[lane] = 1 << m.thread_turn[pe as usize];
            group.threads[lane] = narrow::<u32>((1u64 << threads(pe).len()) - 1);
        }
        let Some(row) = self.rows.last_mut() else { return };
        group.first_slot = narrow(row.slots.len());
        let ended = Slot { takes: [DONE; LANES], earliest: [NEVER; LANES], ..Slot::default() };
        row.slots.resize(row.slots.len() + slots, ended);
        row.groups.push(group);
        for (lane, pe) in pes.enumerate() {
            for (local, thread) in (0..).zip(threads(pe)) {
                row.foresee(m, &self.bit_of, (thread as usize, local), row.groups.len() - 1, lane);
            }
        }
        row.show(m.options.queue_depth, now);
    }

    /// Adds the colors of a router, with their waiting wavelets and the room in their queues.
    fn add_router(&mut self, m: &Clock<'_>, g: &mut Group, lane: usize, pe: usize, bits: &[u8; 256], now: u32) {
        let (queues, latency) = (&m.tables.queues, m.options.ramp_latency);
        let room = |queue: u32| queues.capacity(queue) - queues.len(queue);
        let rows = &m.tables.rows[m.tables.pe_rows[pe] as usize..m.tables.pe_rows[pe + 1] as usize];
        for (n, row) in rows.iter().enumerate() {
            let bit = bits[usize::from(row.color)];
            let (mask, bit) = (1u32 << bit, u32::from(bit));
            let (from, tx) = (row.rx[0].trailing_zeros() as usize, row.tx[0]);
            g.present[lane] |= mask;
            if n == usize::from(m.router_turn[pe]) {
                g.router_turn[lane] = mask;
            }
            for (_, to) in g.rows_to.iter_mut().enumerate().filter(|(port, _)| tx >> port & 1 == 1) {
                to[lane] |= mask;
            }
            if !tx.is_power_of_two() {
                g.several[lane] |= mask;
            }
            let input = row.inputs[from];
            let mut waiting = 0;
            for ready in queues.wavelets(input).map(Wavelet::ready) {
                self.stalls = self.stalls.wrapping_sub(u64::from(ready));
                if from == RAMP && ready > now {
                    g.to_router[(ready % (latency + 2)) as usize][lane] |= mask;
                } else {
                    waiting += 1;
                }
            }
            set(&mut g.waiting, lane, bit, waiting);
            if from == RAMP {
                g.from_ramp[lane] |= mask;
                set(&mut g.ramp_room, lane, bit, room(input));
                self.bit_of[input as usize] = narrow::<u8>(bit);
            }
            if tx & RAMP_BIT != 0 {
                let output = row.outputs[RAMP];
                set(&mut g.inbox_room, lane, bit, room(output));
                let came = queues.wavelets(output).filter(|w| w.ready() < now).count();
                set(&mut g.inbox, lane, bit, narrow::<u32>(came));
                for w in queues.wavelets(output).filter(|w| w.ready() >= now) {
                    g.to_pe[(w.ready() % (latency + 1)) as usize][lane] |= mask;
                }
                self.bit_of[output as usize] = narrow::<u8>(bit);
            }
        }
    }
}

impl Row {
    fn new(groups: u32) -> Self {
        Self { groups: Vec::new(), slots: Vec::new(), faces: [Faces::new(groups), Faces::new(groups)] }
    }

    /// Publishes the state of the last group at the beginning, as if nothing had moved in the previous cycle.
    fn show(&mut self, depth: u32, now: u32) {
        let Some(group) = self.groups.last() else { return };
        let mut face = Face::closed();
        for lane in 0..LANES {
            face.show(&group.waiting, lane, (count_slices(depth), count_slices(depth - 1)));
        }
        self.faces[(now as usize + 1) % 2].put(self.groups.len() - 1, &face);
    }
}

/// Returns the bit of each color in use, in ascending order of colors; `None` if there are too many colors.
fn color_bits(m: &Clock<'_>) -> Option<[u8; 256]> {
    let mut bits = [0; 256];
    let mut used = [false; 256];
    m.tables.rows.iter().for_each(|row| used[usize::from(row.color)] = true);
    let mut next = 0;
    for (color, _) in used.iter().enumerate().filter(|u| *u.1) {
        bits[color] = narrow::<u8>(next);
        next += 1;
    }
    (next <= MOST_COLORS).then_some(bits)
}

/// Returns true if a program can be packed: each color has one position and one input at a router; threads share no
/// queue and send no control wavelets; queues hold no more wavelets than a counter can count; and the numbers of colors
/// and of a PE's threads fit the masks.
pub fn is_plain(m: &Clock<'_>) -> bool {
    let deepest = m.options.queue_depth.saturating_add(m.options.ramp_latency).saturating_add(2);
    if m.options.ramp_latency + 2 > AHEAD || deepest > MOST || color_bits(m).is_none() || !has_own_queues(m) {
        return false;
    }
    (0..m.program.pe_count()).all(|pe| {
        let rows = &m.tables.rows[m.tables.pe_rows[pe] as usize..m.tables.pe_rows[pe + 1] as usize];
        let threads = m.pe_threads[pe + 1] - m.pe_threads[pe];
        let is_plain = |row: &tables::Row| row.positions == 1 && row.rx[0].is_power_of_two() && row.tx[0] != 0;
        // Rows take turns in their own order, and bits in the order of the colors. So both orders must be the same.
        let in_order = rows.windows(2).all(|pair| pair[0].color < pair[1].color);
        threads <= u32::BITS && in_order && rows.iter().all(is_plain)
    })
}

/// Returns true if each queue of a ramp is used by one thread only, for data only, and not twice by one operation.
fn has_own_queues(m: &Clock<'_>) -> bool {
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
