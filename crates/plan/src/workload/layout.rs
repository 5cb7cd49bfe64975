//! The places of a workload's ranks, and the groups in which they communicate.
//!
//! The coordinates of a rank r are row-major in the workload's dimensions. On a network of rows and columns, each
//! dimension is a rectangle of the rectangles of the next dimension, so that ranks that communicate in the last
//! dimension are neighbors. On other machines rank r is on accelerator r.

use unisono_base::narrow;
use unisono_machine::{
    Shape,
    network::{AcceleratorGrid, Topology, note_on_lost_rows},
};
use unisono_workload::Groups;

use super::{Communication, Dimension, Workload, WorkloadError};

/// Returns the groups of a communication of a workload.
pub fn groups(workload: &Workload, communication: &Communication) -> Groups {
    let ranks = workload.accelerators();
    let size = workload.group_size(communication);
    let mut lists = vec![vec![0; size as usize]; (ranks / size) as usize];
    for rank in 0..ranks {
        let (mut left, mut group, mut place) = (rank, 0, 0);
        let (mut groups, mut places) = (1, 1);
        for d in workload.dimensions.iter().rev() {
            let at = left % d.size;
            left /= d.size;
            if is_inside(d, communication) {
                place += at * places;
                places *= d.size;
            } else {
                group += at * groups;
                groups *= d.size;
            }
        }
        lists[group as usize][place as usize] = rank;
    }
    Groups::new(ranks, lists).expect("each rank has its own coordinates")
}

/// Returns the rows and columns of a group; `None` if it spans several dimensions, or its dimension states no shape.
pub(super) fn rectangle(workload: &Workload, communication: &Communication) -> Option<[u32; 2]> {
    let mut within = workload.dimensions.iter().filter(|d| d.size > 1 && is_inside(d, communication));
    match (within.next(), within.next()) {
        // A group of one dimension has the rectangle of this dimension. The ranks of several dimensions are not
        // row-major.
        (Some(d), None) => d.shape,
        _ => None,
    }
}

fn is_inside(dimension: &Dimension, communication: &Communication) -> bool {
    communication.over.is_empty() || communication.over.contains(&dimension.name)
}

fn shape_of(d: &Dimension) -> [u32; 2] {
    d.shape.unwrap_or([1, d.size])
}

impl Workload {
    /// Returns the numbers of rows and columns that the workload takes on a network of rows and columns.
    pub(super) fn sides(&self) -> [u64; 2] {
        [0, 1].map(|side| self.dimensions.iter().map(|d| u64::from(shape_of(d)[side])).product())
    }
}

/// Returns the accelerator of each rank on a machine of the given extents.
///
/// # Errors
/// Returns an error if the workload does not fit.
pub fn places(workload: &Workload, machine: &str, extents: &[u32]) -> Result<Vec<u32>, WorkloadError> {
    let ranks = workload.accelerators();
    let accelerators: u64 = extents.iter().map(|&e| u64::from(e)).product();
    let &[rows, cols] = extents else {
        return if u64::from(ranks) <= accelerators {
            Ok((0..ranks).collect())
        } else {
            Err(WorkloadError::TooLarge {
                name: workload.name.clone(),
                ranks,
                machine: machine.to_owned(),
                accelerators,
                or: String::new(),
            })
        };
    };
    if u64::from(ranks) > accelerators {
        return Err(WorkloadError::TooLarge {
            name: workload.name.clone(),
            ranks,
            machine: machine.to_owned(),
            accelerators,
            or: String::new(),
        });
    }
    let [tall, wide] = workload.sides();
    let turned = tall > u64::from(rows) || wide > u64::from(cols);
    let (tall, wide) = if turned { (wide, tall) } else { (tall, wide) };
    if tall > u64::from(rows) || wide > u64::from(cols) {
        let (name, machine) = (workload.name.clone(), machine.to_owned());
        return Err(WorkloadError::DoesNotFit { name, tall, wide, machine, rows, cols });
    }
    let place = |rank: u32| {
        let (mut left, mut row, mut col, mut below, mut beside) = (rank, 0, 0, 1, 1);
        for d in workload.dimensions.iter().rev() {
            let [r, c] = shape_of(d);
            let at = left % d.size;
            left /= d.size;
            row += at / c * below;
            col += at % c * beside;
            below *= r;
            beside *= c;
        }
        if turned { col * cols + row } else { row * cols + col }
    };
    Ok((0..ranks).map(place).collect())
}

/// Returns the accelerator of each rank on a network that may have failed accelerators. Ranks are placed on a rectangle
/// without failures. If there is none, rank r is on accelerator r, and the second result is a note that states this.
///
/// # Errors
///
/// Returns an error if the workload does not fit.
pub fn places_on(
    workload: &Workload,
    machine: &str,
    topology: &dyn Topology,
) -> Result<(Vec<u32>, Option<String>), WorkloadError> {
    let in_order = || places(workload, machine, &[topology.accelerators()]);
    let extents = topology.grid_before().map(|before| &before.extents[..]);
    let Some(&[rows, cols]) = extents else {
        return Ok((places(workload, machine, &topology.extents())?, None));
    };
    in_order()?;
    // The workload must fit on the network without failures, upright or turned.
    places(workload, machine, &[rows, cols])?;
    let sides = workload.sides().map(narrow::<u32>);
    let healthy = |[tall, wide]: [u32; 2]| {
        AcceleratorGrid::of(machine, topology, Some(Shape::rect(tall, wide))).ok().map(|part| (part, [tall, wide]))
    };
    match healthy(sides).or_else(|| healthy([sides[1], sides[0]])) {
        Some((part, sides)) => {
            let inside = places(workload, machine, &sides)?;
            Ok((inside.into_iter().map(|place| part.nodes[place as usize]).collect(), None))
        }
        None => Ok((in_order()?, note_on_lost_rows(topology, &[topology.accelerators()]))),
    }
}
