//! The sections that follow a schedule in a `.sched` file:
//!
//! ```text
//! machine
//! | name = "wse2"                        ; the machine's TOML, line by line behind a bar
//! placement 1x4                          ; on a wafer: node k on PE k of this grid
//! colors 0 1 0x14 *                      ; of the streams in their order; x repeats, * leaves it to lowering
//! pace 6                                 ; cycles from one element of a leaf to the next; default 1
//! chunk 8                                ; elements taken from one of several streams before the next; default 1
//! route s0: yx
//! route s2: 3 W2 S1, 1 N1                ; from PE 3 two hops west, then one south; from PE 1 one north
//!
//! placement nodes 0-3 64-67              ; instead, on a network: node k on the k-th of these accelerators and switches
//!
//! placement switches 0-7 0-5             ; instead, on switches that reduce: node k at the k-th of these cores and switches
//! channels 0.0x12 0.1x6                  ; identifier and virtual channel of the streams in their order; x repeats
//! ```

use std::{
    collections::BTreeMap,
    fmt::{self, Write},
};

use unisono_base::StreamId;
use unisono_machine::{Direction, Grid, Machine, Shape};
use unisono_schedule::{
    Schedule,
    text::{Line, ParseError, Tail},
};

use crate::{
    GridPlacement, Placement,
    grid_placement::ANY_COLOR,
    placed::{File, FileError},
    placement::{SWITCHES_OF_NODES, nodes, runs, words_of_network},
    route::{Route, Segment},
    switches::{SwitchPlacement, VirtualChannel, channels},
};

/// Writes a schedule with its machine and placement.
///
/// # Errors
/// Returns an error of the writer.
pub fn print(file: &File, to: &mut impl Write) -> fmt::Result {
    unisono_schedule::text::print(&file.schedule, to)?;
    if let Some(machine) = &file.machine {
        writeln!(to, "machine")?;
        for line in machine.to_toml().lines() {
            writeln!(to, "| {line}")?;
        }
    }
    match &file.placement {
        None => Ok(()),
        Some(Placement::Grid(placement)) => print_grid(placement, to),
        Some(Placement::Nodes(nodes)) => {
            write!(to, "placement nodes")?;
            print_runs(nodes, to)?;
            writeln!(to)
        }
        Some(Placement::Switches(placement)) => {
            write!(to, "placement switches")?;
            print_runs(&placement.nodes, to)?;
            write!(to, "\nchannels")?;
            for (VirtualChannel { identifier, channel }, count) in placement.channel_runs() {
                write!(to, " {identifier}.{channel}")?;
                if count > 1 {
                    write!(to, "x{count}")?;
                }
            }
            writeln!(to)
        }
    }
}

fn print_runs(nodes: &[u32], to: &mut impl Write) -> fmt::Result {
    for (first, count) in runs(nodes) {
        let last = first as usize + count - 1;
        if count > 1 { write!(to, " {first}-{last}")? } else { write!(to, " {first}")? }
    }
    Ok(())
}

fn print_grid(placement: &GridPlacement, to: &mut impl Write) -> fmt::Result {
    writeln!(to, "placement {}", placement.grid)?;
    if !placement.colors.is_empty() {
        write!(to, "colors")?;
        for run in placement.colors.chunk_by(|a, b| a == b) {
            let color = if run[0] == ANY_COLOR { "*".to_owned() } else { run[0].to_string() };
            if run.len() > 1 { write!(to, " {color}x{}", run.len())? } else { write!(to, " {color}")? }
        }
        writeln!(to)?;
    }
    if placement.pace > 1 {
        writeln!(to, "pace {}", placement.pace)?;
    }
    if placement.chunk > 1 {
        writeln!(to, "chunk {}", placement.chunk)?;
    }
    for (stream, route) in placement.routes.others() {
        writeln!(to, "route {stream}: {}", show(route, placement.grid))?;
    }
    Ok(())
}

/// Formats a route as the text forms write it.
pub fn show(route: &Route, grid: Grid) -> String {
    let path = match route {
        Route::Xy => return "xy".into(),
        Route::Yx => return "yx".into(),
        Route::Path(path) => path,
    };
    let mut text = String::new();
    let mut at = None;
    for s in path {
        if at != Some(s.from) {
            let comma = if text.is_empty() { "" } else { ", " };
            text += &format!("{comma}{}", s.from);
        }
        text += &format!(" {}{}", s.direction.letter(), s.hops);
        at = (grid.room(s.from, s.direction) >= s.hops).then(|| grid.step(s.from, s.direction, s.hops));
    }
    text
}

/// Reads a schedule with its machine and placement. `origin` names the file in errors.
///
/// # Errors
/// Returns an error for the first invalid line.
pub fn parse(text: &str, origin: &str) -> Result<File, FileError> {
    let named = |error| FileError::Text { origin: origin.to_owned(), error };
    let (schedule, tail) = unisono_schedule::text::parse(text).map_err(named)?;
    let mut file = File { schedule, placement: None, machine: None, blocks: None };
    if let Some(tail) = tail {
        read_tail(&mut file, tail, origin)?;
    }
    Ok(file)
}

fn read_tail(file: &mut File, tail: Tail<'_>, origin: &str) -> Result<(), FileError> {
    let named = |error| FileError::Text { origin: origin.to_owned(), error };
    let mut toml: Option<(usize, String)> = None;
    // The line of each section and entry that was read; a file may have each of them once.
    let mut first = BTreeMap::new();
    let mut once = |what: &'static str, stream: Option<StreamId>, line: usize| match first.insert((what, stream), line)
    {
        None => Ok(()),
        Some(found) => {
            let of = stream.map_or_else(String::new, |stream| format!(" of {stream}"));
            Err(named(ParseError { line, message: format!("a second {what}{of}; the first is in line {found}") }))
        }
    };
    for (n, text) in tail.text.lines().enumerate() {
        let number = tail.line + n;
        if let Some(line) = text.strip_prefix('|') {
            let Some((_, toml)) = &mut toml else {
                return Err(named(ParseError { line: number, message: "'|' stands outside a machine section".into() }));
            };
            *toml += line.strip_prefix(' ').unwrap_or(line);
            toml.push('\n');
            continue;
        }
        let mut line = Line::new(number, text);
        if line.is_empty() {
            continue;
        }
        if line.take("machine") {
            once("machine", None, number)?;
            line.end().map_err(named)?;
            toml = Some((number, String::new()));
        } else if line.take("placement") {
            once("placement", None, number)?;
            file.placement = Some(placement(&mut line, &file.schedule).map_err(named)?);
        } else if line.take("pace") {
            once("pace", None, number)?;
            let placement = on_grid(&mut file.placement, &line, "a pace").map_err(named)?;
            placement.pace = line.number("a number of cycles").map_err(named)?;
            if placement.pace == 0 {
                return Err(named(line.error("the pace is 0; accepted are 1 to 65535 cycles".into())));
            }
            line.end().map_err(named)?;
        } else if line.take("chunk") {
            once("chunk", None, number)?;
            let placement = on_grid(&mut file.placement, &line, "a chunk").map_err(named)?;
            placement.chunk = line.number("a number of elements").map_err(named)?;
            if placement.chunk == 0 {
                return Err(named(line.error("the chunk is 0; accepted are 1 to 4294967295 elements".into())));
            }
            line.end().map_err(named)?;
        } else if line.take("channels") {
            once("list of channels", None, number)?;
            let streams = file.schedule.stream_count();
            let Some(Placement::Switches(placement)) = &mut file.placement else {
                return Err(named(line.error("channels must follow a placement on switches".into())));
            };
            placement.channels = read_channels(&mut line, streams).map_err(named)?;
        } else if line.take("colors") {
            once("list of colors", None, number)?;
            let streams = file.schedule.stream_count();
            let placement = on_grid(&mut file.placement, &line, "a list of colors").map_err(named)?;
            read_colors(&mut line, placement, streams).map_err(named)?;
        } else {
            let streams = file.schedule.stream_count();
            line.expect("route").map_err(named)?;
            let placement = on_grid(&mut file.placement, &line, "a route").map_err(named)?;
            let stream = read_route(&mut line, placement, streams).map_err(named)?;
            once("route", Some(stream), number)?;
        }
    }
    if let (Some(Placement::Switches(placement)), Some(&line)) = (&file.placement, first.get(&("placement", None))) {
        let streams = file.schedule.stream_count();
        if placement.channels.is_empty() && streams > 0 {
            let message = format!(
                "the placement has no line 'channels', with an identifier and a channel for each of {streams} streams"
            );
            return Err(named(ParseError { line, message }));
        }
    }
    if let Some((line, toml)) = toml {
        file.machine = Some(Machine::from_toml(&toml, &format!("{origin}, machine at line {line}"))?);
    }
    Ok(())
}

/// Returns the placement on a grid that a line of the file extends.
fn on_grid<'a>(
    placement: &'a mut Option<Placement>,
    line: &Line<'_>,
    what: &str,
) -> Result<&'a mut GridPlacement, ParseError> {
    match placement {
        Some(Placement::Grid(placement)) => Ok(placement),
        _ => Err(line.error(format!("{what} must follow a placement on a grid"))),
    }
}

fn placement(line: &mut Line<'_>, schedule: &Schedule) -> Result<Placement, ParseError> {
    let on_switches = line.take("switches");
    if !on_switches && !line.take("nodes") {
        let shape: Shape =
            line.word("a shape")?.parse().map_err(|e: unisono_machine::MachineError| line.error(e.to_string()))?;
        line.end()?;
        return GridPlacement::on(shape.grid).map(Placement::Grid).map_err(|e| line.error(e.to_string()));
    }
    let mut read = Vec::new();
    while !line.is_empty() {
        let first: u32 = line.number("a node")?;
        let last: u32 = if line.take("-") { line.number("the last node of a run")? } else { first };
        if last < first {
            return Err(line.error(format!("nodes {first}-{last} run backwards; the first is the lowest")));
        }
        read.push((first, u64::from(last - first) + 1));
    }
    let placed = if on_switches {
        nodes(read, schedule.node_count(), SWITCHES_OF_NODES)
            .map(|nodes| Placement::Switches(SwitchPlacement { nodes, channels: Vec::new() }))
    } else {
        nodes(read, schedule.node_count(), words_of_network(schedule)).map(Placement::Nodes)
    };
    placed.map_err(|message| line.error(message))
}

fn read_channels(line: &mut Line<'_>, streams: usize) -> Result<Vec<VirtualChannel>, ParseError> {
    let mut read = Vec::new();
    while !line.is_empty() {
        let identifier = line.number("an identifier")?;
        line.expect(".")?;
        let channel = line.number("a channel")?;
        let count = if line.take("x") { line.number("how often the channel repeats")? } else { 1 };
        read.push((VirtualChannel { identifier, channel }, count));
    }
    channels(read, streams).map_err(|e| line.error(e.to_string()))
}

fn read_colors(line: &mut Line<'_>, placement: &mut GridPlacement, streams: usize) -> Result<(), ParseError> {
    while !line.is_empty() {
        let color = if line.take("*") { ANY_COLOR } else { line.number("a color")? };
        let count = if line.take("x") { line.number("how often the color repeats")? } else { 1usize };
        if count > streams - placement.colors.len() {
            return Err(line.error(format!("there are more colors than the {streams} streams")));
        }
        placement.colors.extend(std::iter::repeat_n(color, count));
    }
    if placement.colors.len() < streams {
        return Err(line.error(format!("there are {} colors for {streams} streams", placement.colors.len())));
    }
    Ok(())
}

fn read_route(line: &mut Line<'_>, placement: &mut GridPlacement, streams: usize) -> Result<StreamId, ParseError> {
    line.expect("s")?;
    let stream: u32 = line.number("the number of a stream")?;
    if stream as usize >= streams {
        return Err(line.error(format!("stream s{stream} does not exist; there are {streams}")));
    }
    line.expect(":")?;
    let route = route(line, placement.grid)?;
    line.end()?;
    placement.routes.set(StreamId(stream), route);
    Ok(StreamId(stream))
}

/// Reads a route in the form that [`show`] writes.
pub fn route(line: &mut Line<'_>, grid: Grid) -> Result<Route, ParseError> {
    if line.take("xy") {
        return Ok(Route::Xy);
    }
    if line.take("yx") {
        return Ok(Route::Yx);
    }
    let mut path = Vec::new();
    loop {
        let mut at: u32 = line.number("xy, yx or the PE where a segment starts")?;
        let start = at;
        let before = path.len();
        while let Some(direction) = Direction::ALL.into_iter().find(|d| line.rest().starts_with(d.letter())) {
            line.take(&direction.letter().to_string());
            let hops = line.number("a number of hops")?;
            if u64::from(at) >= grid.count() || hops == 0 || grid.room(at, direction) < hops {
                return Err(line.error(format!("{hops} hops {direction:?} from PE {at} do not stay on {grid}")));
            }
            path.push(Segment { from: at, direction, hops });
            at = grid.step(at, direction, hops);
        }
        if path.len() == before {
            return Err(line.error(format!("no segment starts at PE {start}; accepted are N, S, W or E and hops")));
        }
        if !line.take(",") {
            return Ok(Route::Path(path));
        }
    }
}
