//! The JSON form of a file: the JSON object of the schedule, with the additional keys `machine` and `placement`.

use serde::{Deserialize, Serialize};
use unisono_base::{StreamId, keyed};
use unisono_machine::{Grid, Machine};
use unisono_schedule::{json::Document, text::Line};

use crate::{
    GridPlacement, Placement, PlacementError,
    placed::{File, FileError},
    placement::{SWITCHES_OF_NODES, nodes, runs, words_of_network},
    switches::{SwitchPlacement, VirtualChannel, channels},
    text,
};

#[derive(Serialize, Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "a placement has rows, cols and routes, or nodes, or switches and channels, and nothing else"
)]
enum Placing {
    Grid(OnGrid),
    /// `[first node of the network, count]`, for consecutive nodes of the schedule.
    Nodes {
        nodes: Vec<(u32, u64)>,
    },
    /// `[first core or switch, count]`, for consecutive nodes of the schedule; `[identifier, channel, count]`, for
    /// streams in their order.
    Switches {
        switches: Vec<(u32, u64)>,
        channels: Vec<(u8, u8, u64)>,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OnGrid {
    rows: u32,
    cols: u32,
    /// `[stream, route]`, with the route as in the text form. Streams that are not listed have route xy.
    routes: Vec<(u32, String)>,
    /// The color of each stream, as in [`GridPlacement::colors`]; lowering allocates a color for each entry 255. Empty:
    /// lowering allocates all colors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    colors: Vec<u8>,
    #[serde(default = "one")]
    pace: u16,
    #[serde(default = "one")]
    chunk: u32,
}

fn one<T: From<u8>>() -> T {
    1.into()
}

pub fn to_json(file: &File) -> String {
    let mut document = Document::of(&file.schedule);
    document.machine = file.machine.as_ref().map(Machine::to_toml);
    document.placement = file.placement.as_ref().map(|placement| match placement {
        Placement::Nodes(nodes) => Placing::Nodes { nodes: counted(nodes) },
        Placement::Switches(placement) => Placing::Switches {
            switches: counted(&placement.nodes),
            channels: placement.channel_runs().map(|(c, count)| (c.identifier, c.channel, count as u64)).collect(),
        },
        Placement::Grid(p) => Placing::Grid(OnGrid {
            rows: p.grid.rows,
            cols: p.grid.cols,
            routes: p.routes.others().iter().map(|(s, r)| (s.0, text::show(r, p.grid))).collect(),
            colors: p.colors.clone(),
            pace: p.pace,
            chunk: p.chunk,
        }),
    });
    serde_json::to_string(&document).expect("tables of numbers and strings always serialise")
}

fn counted(nodes: &[u32]) -> Vec<(u32, u64)> {
    runs(nodes).map(|(first, count)| (first, count as u64)).collect()
}

/// # Errors
/// Returns an error if the text is not a file in JSON form; the message names `origin` and the position.
pub fn from_json(text: &str, origin: &str) -> Result<File, FileError> {
    let named = |message: String| FileError::Json { origin: origin.to_owned(), message };
    let document: Document<Placing> =
        keyed::json(text.as_bytes()).map_err(|e| named(keyed::with_nearest(&e.to_string())))?;
    let schedule = document.schedule().map_err(|e| named(e.to_string()))?;
    let toml = document.machine.as_ref();
    let machine = toml.map(|t| Machine::from_toml(t, &format!("{origin}, machine"))).transpose()?;
    let placing = document.placement.as_ref();
    let placement = placing.map(|placing| match placing {
        Placing::Grid(p) => on_grid(p, schedule.stream_count()).map(Placement::Grid).map_err(|e| e.to_string()),
        Placing::Nodes { nodes: runs } => {
            nodes(runs.iter().copied(), schedule.node_count(), words_of_network(&schedule)).map(Placement::Nodes)
        }
        Placing::Switches { switches, channels: runs } => {
            let runs = runs.iter().map(|&(identifier, channel, count)| (VirtualChannel { identifier, channel }, count));
            let nodes = nodes(switches.iter().copied(), schedule.node_count(), SWITCHES_OF_NODES);
            nodes.and_then(|nodes| {
                let channels = channels(runs, schedule.stream_count()).map_err(|e| e.to_string())?;
                Ok(Placement::Switches(SwitchPlacement { nodes, channels }))
            })
        }
    });
    let placement = placement.transpose().map_err(named)?;
    Ok(File { schedule, placement, machine, blocks: None })
}

fn on_grid(placing: &OnGrid, streams: usize) -> Result<GridPlacement, PlacementError> {
    let grid = Grid::new(placing.rows, placing.cols);
    let mut placement = GridPlacement::on(grid)?;
    if !placing.colors.is_empty() && placing.colors.len() != streams {
        return Err(PlacementError::Colors { colors: placing.colors.len(), streams });
    }
    placement.colors.clone_from(&placing.colors);
    if placing.pace == 0 || placing.chunk == 0 {
        return Err(PlacementError::Zero);
    }
    (placement.pace, placement.chunk) = (placing.pace, placing.chunk);
    for &(stream, ref route) in &placing.routes {
        if stream as usize >= streams {
            return Err(PlacementError::NoStream { stream, streams });
        }
        let mut line = Line::new(1, route);
        let read = text::route(&mut line, grid).and_then(|r| line.end().map(|()| r));
        let read = read.map_err(|e| PlacementError::Route { stream, message: e.message })?;
        placement.routes.set(StreamId(stream), read);
    }
    Ok(placement)
}
