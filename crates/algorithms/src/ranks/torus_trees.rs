//! Four arc-disjoint spanning trees of a torus of rows x columns from one root, both sides at least 3. Each of the four
//! links into a rank belongs to one tree, so the trees use all links in both directions except those into the root.
//!
//! The root is at row 0 and column 0. Trees 0 and 1 go along row 0 in opposite directions, all around. Each has a spine
//! that goes from row 0 along a column in both directions: tree 0 at column a = columns / 4, tree 1 at -a. From its
//! spine a tree goes along each row in both directions, tree 0 forwards to column -a and backwards to the column after
//! -a, and tree 1 with the directions exchanged, so the two trees use different links of a rank. Trees 2 and 3 do the
//! same with rows and columns exchanged. If a spine uses a link that another tree would use, the other tree enters the
//! rank by the remaining link. The distance of the deepest rank from the root is about 3/4 of the longer side plus half
//! of the shorter side.

/// The links into a rank from the rank before it: link 0 from the column before, link 2 from the row before.
/// `BACKWARDS` has the links from the rank after it: link 1 from the next column, link 3 from the next row.
const FORWARDS: [u32; 2] = [0, 2];
const BACKWARDS: [u32; 2] = [1, 3];

pub const TREES: usize = 4;

/// Returns the parent of each rank in each tree, for root 0 and ranks numbered row-major; the root is its own parent.
/// `None` if a side is below 3.
pub fn torus_trees(rows: u32, columns: u32) -> Option<[Vec<u32>; TREES]> {
    if rows < 3 || columns < 3 {
        return None;
    }
    let mut parents = [const { Vec::new() }; TREES].map(|_: Vec<u32>| Vec::with_capacity((rows * columns) as usize));
    for rank in 0..rows * columns {
        let at = [rank / columns, rank % columns];
        let links = links(at, [rows, columns]);
        for (parents, link) in parents.iter_mut().zip(links) {
            let from =
                |coordinate: u32, extent: u32, back: bool| (coordinate + if back { 1 } else { extent - 1 }) % extent;
            let [row, column] = match link {
                _ if rank == 0 => at,
                0 | 1 => [at[0], from(at[1], columns, link == 1)],
                _ => [from(at[0], rows, link == 3), at[1]],
            };
            parents.push(row * columns + column);
        }
    }
    Some(parents)
}

/// Returns the link (0 to 3) by which each tree enters a rank.
fn links(at: [u32; 2], extents: [u32; 2]) -> [u32; TREES] {
    let mut links = [None; TREES];
    let mut others = [(0, 0); TREES];
    let mut left = [true; 4];
    for axis in [0, 1] {
        // The coordinates of the rank along the paths of the trees, and along their spines.
        let (along, across) = (at[1 - axis], at[axis]);
        let (extent, spine_extent) = (extents[1 - axis], extents[axis]);
        let spines = [(extent / 4).max(1), extent - (extent / 4).max(1)];
        let [forwards, backwards] = [FORWARDS[axis], BACKWARDS[axis]];
        for way in [0, 1] {
            let tree = 2 * axis + way;
            let is_ahead = along > spines[0] && along < spines[1] || way == 0 && along == spines[1];
            others[tree] = (tree, if is_ahead == (way == 0) { forwards } else { backwards });
            let first = if across == 0 {
                Some([forwards, backwards][way])
            } else if along == spines[way] {
                Some(if across <= spine_extent / 2 { FORWARDS[1 - axis] } else { BACKWARDS[1 - axis] })
            } else {
                None
            };
            if let Some(link) = first {
                links[tree] = Some(link);
                left[link as usize] = false;
            }
        }
    }
    for (tree, link) in others {
        if links[tree].is_none() && std::mem::take(&mut left[link as usize]) {
            links[tree] = Some(link);
        }
    }
    let mut rest = (0..4).filter(|&link| left[link as usize]);
    links.map(|link| link.unwrap_or_else(|| rest.next().unwrap_or(0)))
}
