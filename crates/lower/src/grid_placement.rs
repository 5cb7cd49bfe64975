//! Binds a schedule to a grid: node `k` runs on PE `k`, and each stream has a route.

use rustc_hash::{FxHashMap, FxHashSet};
use unisono_base::{Diagnostics, NodeId, StreamId};
use unisono_machine::{Grid, Machine, Shape, Wafer};
use unisono_schedule::Schedule;

use crate::{
    PlacementError,
    placement::{refuse, refuse_kind},
    route::{Route, Routes, Segment, dimension_ordered},
};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GridPlacement {
    pub grid: Grid,
    pub routes: Routes,
    /// The color of each stream, as an index from 0 into the machine's colors that are not reserved. Empty: lowering
    /// allocates all colors.
    pub colors: Vec<u8>,
    /// Minimum number of cycles between two consecutive elements that a leaf, a PE that only sends its input, puts on
    /// the fabric; 1 is the speed of the datapath. A leaf that sends too fast fills the queues of routers with elements
    /// that other PEs cannot process yet.
    pub pace: u16,
    /// Number of elements that a PE reads from one stream before the next stream, if an instruction combines several
    /// streams. The PE stores the partial results of these elements. With 1, the PE changes to the next stream after
    /// each element; with the vector's length, after the whole vector.
    pub chunk: u32,
}

/// The entry of [`GridPlacement::colors`] for a stream to which lowering allocates a color.
pub const ANY_COLOR: u8 = u8::MAX;

impl GridPlacement {
    pub fn new(grid: Grid) -> Self {
        Self { grid, routes: Routes::default(), colors: Vec::new(), pace: 1, chunk: 1 }
    }

    /// Sets the colors of streams, in the order of their ids. The call has no effect if the schedule has another number
    /// of streams.
    #[must_use]
    pub fn with_colors(mut self, schedule: &Schedule, colors: Vec<u8>) -> Self {
        if schedule.stream_count() == colors.len() {
            self.colors = colors;
        }
        self
    }

    pub fn color(&self, stream: StreamId) -> Option<u8> {
        self.colors.get(stream.index()).copied().filter(|&c| c != ANY_COLOR)
    }

    /// Returns the grid as users write it: a length, or rows and columns.
    pub fn shape(&self) -> Shape {
        if self.grid.rows == 1 { Shape::line(self.grid.cols) } else { Shape::rect(self.grid.rows, self.grid.cols) }
    }

    /// Makes a placement on a grid that a file or a user states.
    ///
    /// # Errors
    /// Returns an error if the grid has no PEs, or more PEs than a schedule can have nodes.
    pub fn on(grid: Grid) -> Result<Self, PlacementError> {
        let most = u64::from(unisono_collective::Collective::MAX_RANKS);
        let fits = (1..=most).contains(&grid.count());
        if fits { Ok(Self::new(grid)) } else { Err(PlacementError::Grid { grid, most }) }
    }

    /// Replaces the contents of `into` with the straight segments of a stream's route. Each segment starts at the
    /// source or at a PE that an earlier segment reaches.
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

    /// Returns the hops from the source of each stream to each of its sinks, for a placement that
    /// [`GridPlacement::check`] accepts.
    pub fn distances(&self, schedule: &Schedule) -> Distances {
        let paths = self.routes.others().iter().filter_map(|(stream, route)| {
            let Route::Path(path) = route else { return None };
            let reached = reach(self.grid, schedule.stream(*stream).source.0, path).unwrap_or_default();
            let hops = |sink: &NodeId| reached.get(&sink.0).copied().unwrap_or(0);
            Some((*stream, schedule.stream_sinks(*stream).iter().map(hops).collect()))
        });
        Distances { grid: self.grid, paths: paths.collect() }
    }

    /// Checks these properties: the grid has as many PEs as the schedule has nodes; either all streams or no streams
    /// have a color; and routes stay on the grid, form trees, reach every sink, and end at sinks.
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

    /// Makes the checks of [`GridPlacement::check`], and checks that the machine is a wafer on which the grid fits.
    pub(crate) fn check_on(&self, schedule: &Schedule, machine: Option<&Machine>, found: &mut Diagnostics) {
        self.check(schedule, found);
        let Some(machine) = machine else { return };
        match machine.get::<Wafer>().map(|wafer| wafer.choose(Some(self.shape()))) {
            Some(Ok(_)) => {}
            Some(Err(error)) => refuse(error.to_string(), found),
            None => refuse_kind(machine, "a grid is for a wafer", found),
        }
    }

    fn check_path(&self, schedule: &Schedule, stream: StreamId, path: &[Segment], found: &mut Diagnostics) {
        let source = schedule.stream(stream).source;
        let mut say = |code, message: String| found.push(code, Some(source), None, || format!("{stream}: {message}"));
        let reached = match reach(self.grid, source.0, path) {
            Ok(reached) => reached,
            Err((code, message)) => return say(code, message),
        };
        let sinks = schedule.stream_sinks(stream);
        if let Some(sink) = sinks.iter().find(|n| !reached.contains_key(&n.0)) {
            say("route-short", format!("the route does not reach PE {}", sink.0));
        }
        let starts: FxHashSet<u32> = path.iter().map(|s| s.from).collect();
        let mut ends = path.iter().map(|s| self.grid.step(s.from, s.direction, s.hops));
        if let Some(end) = ends.find(|e| !starts.contains(e) && sinks.binary_search(&NodeId(*e)).is_err()) {
            say("route-dangling", format!("the route ends at PE {end}, which is no sink"));
        }
    }
}

/// Returns the hops from `source` to every PE of a path. If the path is not a tree on the grid, returns the code and
/// the message of the fault.
fn reach(grid: Grid, source: u32, path: &[Segment]) -> Result<FxHashMap<u32, u32>, (&'static str, String)> {
    let mut reached = FxHashMap::default();
    reached.insert(source, 0);
    for s in path {
        let Some(&before) = reached.get(&s.from) else {
            let message = format!("a segment starts at PE {}, which the route has not reached", s.from);
            return Err(("route-gap", message));
        };
        if s.hops == 0 || grid.room(s.from, s.direction) < s.hops {
            let message = format!("{} hops {:?} from PE {} do not stay on {grid}", s.hops, s.direction, s.from);
            return Err(("route-off-grid", message));
        }
        for hop in 1..=s.hops {
            let pe = grid.step(s.from, s.direction, hop);
            if reached.insert(pe, before + hop).is_some() {
                return Err(("route-twice", format!("the route comes to PE {pe} twice")));
            }
        }
    }
    Ok(reached)
}

/// Hops from the source of each stream to its sinks.
pub struct Distances {
    grid: Grid,
    /// For streams with a path, the hops to each sink in the order of [`Schedule::stream_sinks`].
    paths: FxHashMap<StreamId, Vec<u32>>,
}

impl Distances {
    /// Returns the hops from the source of a stream to one of its sinks. Every route other than a path is a shortest
    /// route.
    pub fn hops(&self, schedule: &Schedule, stream: StreamId, sink: NodeId) -> u32 {
        match self.paths.get(&stream) {
            None => self.grid.distance(schedule.stream(stream).source.0, sink.0),
            Some(hops) => schedule.stream_sinks(stream).binary_search(&sink).map_or(0, |at| hops[at]),
        }
    }
}
