//! Routes of streams over the grid: straight segments that form a tree rooted at the source's PE.

use unisono_base::{StreamId, narrow};
use unisono_machine::{Direction, Grid};

/// `hops` links from PE `from` in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    pub from: u32,
    pub direction: Direction,
    pub hops: u32,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Route {
    /// Along the source's row to the sink's column, then along that column. For several sinks, the union of these
    /// paths, which is a tree.
    #[default]
    Xy,
    /// Along the source's column to the sink's row, then along that row.
    Yx,
    /// Straight segments, each of which starts at the source or at a PE that an earlier segment reached.
    Path(Vec<Segment>),
}

/// The routes of all streams; a stream without an entry has [`Route::Xy`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Routes {
    /// Sorted by stream; never holds `Xy`.
    others: Vec<(StreamId, Route)>,
}

impl Routes {
    pub fn set(&mut self, stream: StreamId, route: Route) {
        let at = self.others.binary_search_by_key(&stream, |r| r.0);
        match (at, route) {
            (Ok(at), Route::Xy) => {
                self.others.remove(at);
            }
            (Ok(at), route) => self.others[at].1 = route,
            (Err(_), Route::Xy) => {}
            (Err(at), route) => self.others.insert(at, (stream, route)),
        }
    }

    pub fn get(&self, stream: StreamId) -> &Route {
        match self.others.binary_search_by_key(&stream, |r| r.0) {
            Ok(at) => &self.others[at].1,
            Err(_) => &Route::Xy,
        }
    }

    pub fn others(&self) -> &[(StreamId, Route)] {
        &self.others
    }
}

/// Appends the segments of the route from `source` to `sinks`: of [`Route::Xy`] if `rows_first`, otherwise of
/// [`Route::Yx`].
pub fn dimension_ordered(grid: Grid, source: u32, sinks: &[u32], rows_first: bool, into: &mut Vec<Segment>) {
    if let [sink] = *sinks {
        straight(grid, source, sink, rows_first, into);
        return;
    }
    // With swapped axes, YX is XY: `along` is the axis of the first leg.
    let split = |pe: u32| {
        let (r, c) = grid.row_col(pe);
        if rows_first { (r, c) } else { (c, r) }
    };
    let join = |across: u32, along: u32| {
        if rows_first { grid.pe(across, along) } else { grid.pe(along, across) }
    };
    let [back, forth] =
        if rows_first { [Direction::West, Direction::East] } else { [Direction::North, Direction::South] };
    let [up, down] = if rows_first { [Direction::North, Direction::South] } else { [Direction::West, Direction::East] };
    let (across, along) = split(source);
    // For each line perpendicular to the first leg, the least and greatest coordinate of the tree; `None` without
    // sinks.
    let lines = if rows_first { grid.cols } else { grid.rows };
    let mut reach: Vec<Option<(u32, u32)>> = vec![None; lines as usize];
    for &sink in sinks {
        let (a, l) = split(sink);
        let line = reach[l as usize].get_or_insert((across, across));
        *line = (line.0.min(a), line.1.max(a));
    }
    let first = reach.iter().position(Option::is_some).map_or(along, narrow).min(along);
    let last = reach.iter().rposition(Option::is_some).map_or(along, narrow).max(along);
    let mut push = |from: u32, direction, hops| {
        if hops > 0 {
            into.push(Segment { from, direction, hops });
        }
    };
    push(source, back, along - first);
    push(source, forth, last - along);
    for (l, line) in reach.iter().enumerate() {
        if let Some((low, high)) = *line {
            let at = join(across, narrow(l));
            push(at, up, across - low);
            push(at, down, high - across);
        }
    }
}

fn straight(grid: Grid, source: u32, sink: u32, rows_first: bool, into: &mut Vec<Segment>) {
    let ((r0, c0), (r1, c1)) = (grid.row_col(source), grid.row_col(sink));
    let along_row = |from: u32| {
        let direction = if c1 < c0 { Direction::West } else { Direction::East };
        Segment { from, direction, hops: c0.abs_diff(c1) }
    };
    let along_col = |from: u32| {
        let direction = if r1 < r0 { Direction::North } else { Direction::South };
        Segment { from, direction, hops: r0.abs_diff(r1) }
    };
    let legs = if rows_first {
        [along_row(source), along_col(grid.pe(r0, c1))]
    } else {
        [along_col(source), along_row(grid.pe(r1, c0))]
    };
    into.extend(legs.into_iter().filter(|s| s.hops > 0));
}
