//! Tests of `route`.

use unisono_lower::{Segment, internals::route::dimension_ordered};
use unisono_machine::{Direction, Grid};

#[test]
fn trees_reach_every_sink_once() {
    let grid = Grid::new(4, 5);
    let all: Vec<u32> = (0..20).filter(|&p| p != 7).collect();
    for rows_first in [true, false] {
        let mut segments = Vec::new();
        dimension_ordered(grid, 7, &all, rows_first, &mut segments);
        let mut seen = vec![7];
        for s in segments {
            assert!(seen.contains(&s.from), "a segment starts on the tree");
            seen.extend((1..=s.hops).map(|h| grid.step(s.from, s.direction, h)));
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..20).collect::<Vec<_>>());
    }
}

#[test]
fn one_sink_takes_two_legs() {
    let mut segments = Vec::new();
    dimension_ordered(Grid::new(4, 5), 7, &[15], true, &mut segments);
    let west = Segment { from: 7, direction: Direction::West, hops: 2 };
    let south = Segment { from: 5, direction: Direction::South, hops: 2 };
    assert_eq!(segments, [west, south]);
}
