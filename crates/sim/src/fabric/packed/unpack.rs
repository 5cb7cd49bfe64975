//! Computes the event counts of a packed run after its end.
//!
//! All wavelets that were sent have passed all routers on their paths. So the number of moves of a router's color is
//! the number of elements of the operations that sent on this color.

use unisono_base::narrow;

use super::{
    super::{
        clock::{Clock, Tally},
        error::SimError,
        moves::{Log, router_key},
        pe::steps_of,
        tables::{NONE, RAMP, RAMP_BIT},
    },
    Packed,
    group::{Group, LANES},
};

impl Packed {
    /// Writes the counts of the whole run to the machine, unless threads are unfinished.
    ///
    /// # Errors
    ///
    /// Returns an error if a wavelet is left over. The caller then runs the program unpacked, to describe the error
    /// exactly.
    pub fn unpack(self, m: &mut Clock<'_>) -> Result<(), SimError> {
        if let Some((pe, count)) = self.rows.iter().flat_map(|row| &row.groups).find_map(left_over) {
            let (row, col) = m.program.grid.row_col(pe);
            let color = m.tables.rows[m.tables.pe_rows[pe as usize] as usize].color;
            return Err(SimError::LeftOver { count, row, col, color });
        }
        if m.unfinished > 0 {
            return Ok(());
        }
        let (mut events, mut hops) = (0, 0);
        m.ramp_log = Log::new(m.tables.queues.count());
        let mut sent = vec![0; m.tables.queues.count()];
        for thread in 0..m.threads.len() {
            for op in m.program.thread_ops(thread) {
                let len = m.program.op(op).len;
                events += u64::from(len) * u64::from(steps_of(m.program, op));
                let places = m.tables.op_places[op] as usize..m.tables.op_places[op + 1] as usize;
                for queue in m.tables.places[places].iter().filter_map(|p| p.queue()) {
                    m.ramp_log.more(queue, narrow::<u32>(op), len);
                    sent[queue as usize] += len;
                }
            }
        }
        m.router_log = Log::new(m.tables.rows.len());
        for (row, moves) in (0..).zip(moves(m, &sent)).filter(|(_, moves)| *moves > 0) {
            let r = &m.tables.rows[row as usize];
            events += u64::from(moves) * u64::from(r.tx[0].count_ones());
            hops += u64::from(moves) * u64::from((r.tx[0] & !RAMP_BIT).count_ones());
            m.router_log.more(row, router_key(r.rx[0].trailing_zeros() as usize, 0), moves);
        }
        let before = |of: fn(&Tally) -> u64| m.tallies.iter().map(of).sum::<u64>();
        // A wavelet that moves over a link can move again from the next cycle on.
        let late = self.stalls.wrapping_sub(hops - before(|t| t.hops));
        let stalls = before(|t| t.stalls).wrapping_add(late);
        m.tallies.fill(Tally::default());
        if let Some(tally) = m.tallies.first_mut() {
            *tally = Tally { events, hops, stalls, ..Tally::default() };
        }
        Ok(())
    }
}

/// Returns the first PE of a group with wavelets that no PE takes, if any, and the number of colors of these wavelets.
fn left_over(group: &Group) -> Option<(u32, u64)> {
    let left = |lane: usize| {
        let counted = group.waiting.iter().chain(&group.inbox).chain(&group.to_router).chain(&group.to_pe);
        counted.fold(0, |left, words| left | words[lane])
    };
    let lane = (0..LANES).find(|&lane| left(lane) != 0)?;
    Some((group.first_pe + narrow::<u32>(lane), u64::from(left(lane).count_ones())))
}

/// Returns the number of moves of each row of the routers; `sent` is the number of wavelets sent into each queue.
fn moves(m: &Clock<'_>, sent: &[u32]) -> Vec<u32> {
    let rows = &m.tables.rows;
    let mut row_of = vec![NONE; sent.len()];
    for (n, row) in rows.iter().enumerate() {
        row_of[row.inputs[row.rx[0].trailing_zeros() as usize] as usize] = narrow::<u32>(n);
    }
    let mut moves = vec![0; rows.len()];
    let mut todo = Vec::new();
    for (n, row) in rows.iter().enumerate().filter(|(_, row)| row.rx[0] & RAMP_BIT != 0) {
        todo.push((n, sent[row.inputs[RAMP] as usize]));
        while let Some((n, count)) = todo.pop() {
            moves[n] = count;
            let row = &rows[n];
            let links = (0..RAMP).filter(|port| row.tx[0] >> port & 1 == 1);
            todo.extend(links.map(|port| (row_of[row.outputs[port] as usize] as usize, count)));
        }
    }
    moves
}
