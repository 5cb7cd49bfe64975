//! Assigns colors to streams. A stream keeps the color of its placement. Every other stream gets a color that no other
//! stream uses at a router of its route, so that no router switches between streams.

use unisono_base::{StreamId, narrow};
use unisono_machine::Wafer;

use super::{
    lower::LowerError,
    program::Color,
    way::{Way, ways},
};
use crate::OnGrid;

pub struct Colors(Vec<Color>);

impl Colors {
    pub fn of(&self, stream: StreamId) -> Color {
        self.0[stream.index()]
    }
}

/// Assigns a color to each stream to which the placement assigns none: the lowest color that is free at all routers of
/// the stream. Streams with long routes come first.
pub fn allocate(placed: OnGrid, wafer: &Wafer) -> Result<Colors, LowerError> {
    let schedule = placed.schedule;
    let usable: Vec<Color> =
        (0..wafer.colors.min(128)).filter(|c| !wafer.reserved_colors.contains(c)).map(narrow).collect();
    let too_many = |found: usize| LowerError::TooMany {
        what: "colors",
        place: format!(" beside the {} reserved ones", wafer.reserved_colors.len()),
        found,
        most: usable.len(),
    };
    let mut colors = vec![0; schedule.stream_count()];
    let mut taken = vec![0u128; schedule.node_count()];
    let mut way: Vec<Way> = Vec::new();
    let mut open = Vec::new();
    for stream in schedule.all_streams() {
        match placed.placement.color(stream) {
            // The placement numbers colors from 0, skipping colors that the machine reserves.
            Some(given) => {
                let color = *usable.get(usize::from(given)).ok_or_else(|| too_many(usize::from(given) + 1))?;
                colors[stream.index()] = color;
                ways(placed, stream, &mut way);
                way.iter().for_each(|w| taken[w.pe as usize] |= 1 << color);
            }
            None => {
                ways(placed, stream, &mut way);
                open.push((std::cmp::Reverse(way.len()), stream));
            }
        }
    }
    open.sort_unstable();
    for (_, stream) in open {
        ways(placed, stream, &mut way);
        let used = way.iter().fold(0u128, |used, w| used | taken[w.pe as usize]);
        let free = usable.iter().copied().find(|&c| used >> c & 1 == 0).ok_or_else(|| too_many(usable.len() + 1))?;
        colors[stream.index()] = free;
        way.iter().for_each(|w| taken[w.pe as usize] |= 1 << free);
    }
    Ok(Colors(colors))
}
