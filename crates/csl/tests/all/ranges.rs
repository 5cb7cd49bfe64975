//! Tests of `write::ranges`.

use unisono_csl::internals::ranges::rectangles;

#[test]
fn every_cell_is_held_once() {
    let cells: Vec<(u32, u32)> =
        (0..9).flat_map(|r| (0..11).map(move |c| (r, c))).filter(|&(r, c)| (r * 7 + c * 3) % 4 != 1).collect();
    let mut held = Vec::new();
    for (columns, rows) in rectangles(&cells) {
        for y in 0..rows.count {
            for x in 0..columns.count {
                held.push((rows.start + y * rows.step, columns.start + x * columns.step));
            }
        }
    }
    held.sort_unstable();
    assert_eq!(held, cells);
}

#[test]
fn every_second_column_of_a_grid_is_one_rectangle() {
    let cells: Vec<(u32, u32)> = (0..512).flat_map(|r| (0..256).map(move |c| (r, 2 * c))).collect();
    assert_eq!(rectangles(&cells).len(), 1);
}
