//! Binds a schedule to a grid: node `k` runs on PE `k`, and each stream has a route. Checked on its own.

use unisono_base::{Diagnostics, StreamId};
use unisono_machine::Grid;
use unisono_schedule::Schedule;

use crate::route::{Route, Routes, Segment, dimension_ordered};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placement {
    pub grid: Grid,
    pub routes: Routes,
    /// The color of each stream, counted from 0 over the colors a machine lets programs use; empty: lowering allocates.
    pub colors: Vec<u8>,
}

/// In [`Placement::colors`]: this stream has none, lowering allocates one.
pub const ANY_COLOR: u8 = u8::MAX;

impl Placement {
    pub fn new(grid: Grid) -> Self {
        Self { grid, routes: Routes::default(), colors: Vec::new() }
    }

    /// The same with colors for streams, in the order of their ids; unless the schedule came out without streams.
    #[must_use]
    pub fn with_colors(mut self, schedule: &Schedule, colors: Vec<u8>) -> Self {
        if schedule.stream_count() == colors.len() {
            self.colors = colors;
        }
        self
    }

    /// The color that the placement gives a stream.
    pub fn color(&self, stream: StreamId) -> Option<u8> {
        self.colors.get(stream.index()).copied().filter(|&c| c != ANY_COLOR)
    }

    /// For a grid from outside the program.
    ///
    /// # Errors
    /// A grid without PEs, or with more than a schedule can have nodes.
    pub fn on(grid: Grid) -> Result<Self, String> {
        let most = u64::from(unisono_collective::Collective::MAX_RANKS);
        if (1..=most).contains(&grid.count()) {
            Ok(Self::new(grid))
        } else {
            Err(format!("placement {grid} is not a grid of 1 to {most} PEs"))
        }
    }

    /// Replaces `into` by the straight segments of a stream's route, each starting on the tree of those before it.
    pub fn segments(&self, schedule: &Schedule, stream: StreamId, into: &mut Vec<Segment>) {
        into.clear();
        let source = schedule.stream(stream).source.0;
        let rows_first = match self.routes.get(stream) {
            Route::Path(path) => {
                into.extend_from_slice(path);
                return;
            }
            route => *route == Route::Xy,
        };
        match schedule.stream_sinks(stream) {
            [sink] => dimension_ordered(self.grid, source, &[sink.0], rows_first, into),
            sinks => {
                let sinks: Vec<u32> = sinks.iter().map(|n| n.0).collect();
                dimension_ordered(self.grid, source, &sinks, rows_first, into);
            }
        }
    }

    /// Hops from the source of a stream to one of its sinks.
    pub fn distance(&self, schedule: &Schedule, stream: StreamId, sink: u32) -> u32 {
        let source = schedule.stream(stream).source.0;
        let Route::Path(path) = self.routes.get(stream) else {
            return self.grid.distance(source, sink);
        };
        self.along(path, source, sink).unwrap_or(0)
    }

    /// Hops from `source` to `pe` along a tree of segments; `None` where the tree does not reach it.
    fn along(&self, path: &[Segment], source: u32, pe: u32) -> Option<u32> {
        if pe == source {
            return Some(0);
        }
        path.iter().enumerate().find_map(|(n, s)| {
            let hops = self.offset(s, pe)?;
            Some(self.along(&path[..n], source, s.from)? + hops)
        })
    }

    /// How many hops into a segment a PE lies, 1 being the first; `None` where it does not lie on it.
    fn offset(&self, s: &Segment, pe: u32) -> Option<u32> {
        let hops = self.grid.distance(s.from, pe);
        let on = hops >= 1
            && hops <= s.hops
            && self.grid.room(s.from, s.direction) >= hops
            && self.grid.step(s.from, s.direction, hops) == pe;
        on.then_some(hops)
    }

    /// Every node has a PE; routes stay on the grid, form trees, reach every sink, and end at sinks.
    pub fn check(&self, schedule: &Schedule, found: &mut Diagnostics) {
        let (nodes, pes) = (schedule.node_count() as u64, self.grid.count());
        if nodes != pes {
            found.push("placement-size", None, None, || {
                format!("the schedule has {nodes} nodes, the grid {} has {pes} PEs", self.grid)
            });
            return;
        }
        if !self.colors.is_empty() && self.colors.len() != schedule.stream_count() {
            found.push("color-count", None, None, || {
                format!("colors are given for {} streams; there are {}", self.colors.len(), schedule.stream_count())
            });
        }
        for (stream, route) in self.routes.others() {
            if stream.index() >= schedule.stream_count() {
                found.push("route-stream", None, None, || {
                    format!("a route is given for {stream}, which does not exist")
                });
            } else if let Route::Path(path) = route {
                self.check_path(schedule, *stream, path, found);
            }
        }
    }

    fn check_path(&self, schedule: &Schedule, stream: StreamId, path: &[Segment], found: &mut Diagnostics) {
        let source = schedule.stream(stream).source;
        let mut say = |code, message: String| found.push(code, Some(source), None, || message);
        let mut reached = vec![source.0];
        let mut ends = Vec::new();
        for s in path {
            if !reached.contains(&s.from) {
                return say(
                    "route-gap",
                    format!("{stream}: a segment starts at PE {}, which the route has not reached", s.from),
                );
            }
            if s.hops == 0 || self.grid.room(s.from, s.direction) < s.hops {
                return say(
                    "route-off-grid",
                    format!(
                        "{stream}: {} hops {:?} from PE {} do not stay on {}",
                        s.hops, s.direction, s.from, self.grid
                    ),
                );
            }
            for hop in 1..=s.hops {
                let pe = self.grid.step(s.from, s.direction, hop);
                if reached.contains(&pe) {
                    return say("route-twice", format!("{stream}: the route comes to PE {pe} twice"));
                }
                reached.push(pe);
            }
            ends.retain(|&e| e != s.from);
            ends.push(self.grid.step(s.from, s.direction, s.hops));
        }
        let sinks = schedule.stream_sinks(stream);
        if let Some(sink) = sinks.iter().find(|n| !reached.contains(&n.0)) {
            say("route-short", format!("{stream}: the route does not reach PE {}", sink.0));
        }
        if let Some(end) = ends.iter().find(|&&e| sinks.iter().all(|n| n.0 != e)) {
            say("route-dangling", format!("{stream}: the route ends at PE {end}, which is no sink"));
        }
    }
}
