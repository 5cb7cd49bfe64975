//! A direct model of the meaning of programs: buffers are lists of points, and each point is evaluated separately.
#![allow(dead_code, reason = "each test file uses its part")]

use unisono_base::{BufferId, mix};
use unisono_discover::{Access, Box3, Geometry, Mapper, Mode, Region, Split};

/// A deterministic generator of small numbers.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, n: i64) -> i64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (mix(self.0) % n as u64) as i64
    }

    pub fn chance(&mut self, percent: i64) -> bool {
        self.below(100) < percent
    }

    pub fn of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len() as i64) as usize]
    }
}

#[derive(Clone, Debug)]
pub struct OwnedTask {
    pub name: String,
    pub geometry: Geometry,
    pub accesses: Vec<Access>,
}

#[derive(Clone, Debug)]
pub struct OwnedBuffer {
    pub sizes: Vec<i64>,
    pub initialized: bool,
}

#[derive(Clone, Debug)]
pub struct Random {
    pub buffers: Vec<OwnedBuffer>,
    pub tasks: Vec<OwnedTask>,
}

/// Returns a program of random tasks; not all of them are valid.
pub fn random(seed: u64, reductions: bool) -> Random {
    let mut dice = Dice(seed.wrapping_mul(0x1234_5678_9abc_def1));
    let two = dice.chance(40);
    let shape: Vec<i64> = if two { vec![4 + dice.below(6), 4 + dice.below(6)] } else { vec![8 + dice.below(20)] };
    let square = two && dice.chance(50);
    let shape = if square { vec![shape[0], shape[0]] } else { shape };
    let buffers: Vec<OwnedBuffer> =
        (0..2 + dice.below(2)).map(|_| OwnedBuffer { sizes: shape.clone(), initialized: dice.chance(85) }).collect();
    // Few geometries, so that tasks often share one, as in a loop.
    let geometries: Vec<Geometry> = (0..3)
        .map(|k| {
            let sizes: Vec<i64> = match k {
                0 => shape.clone(),
                1 if dice.chance(50) => vec![1; shape.len()],
                _ => shape.iter().map(|&n| 1 + dice.below(n)).collect(),
            };
            let granule = if dice.chance(30) { 1 + dice.below(4) } else { 1 };
            let split = if two && dice.chance(40) { Split::TwoD } else { Split::OneD };
            let mut geometry = Geometry::of(&sizes).with_granularity([granule, 1, 1]).with_split(split);
            if dice.chance(20) {
                geometry.offset[0] = dice.below(3);
            }
            geometry
        })
        .collect();
    let mapper = |dice: &mut Dice, writes: bool| {
        let dims = shape.len();
        let mut point = |least: i64, most: i64| {
            let mut p = [0; 3];
            (0..dims).for_each(|d| p[d] = least + dice.below(most - least + 1));
            p
        };
        let (halo, shift, corner, extent) = (point(0, 2), point(-3, 3), point(0, 4), point(1, 4));
        let fixed = Box3::new(corner, std::array::from_fn(|d| if d < dims { corner[d] + extent[d] } else { 1 }));
        match dice.below(if writes { 9 } else { 12 }) {
            0..=3 => Mapper::OneToOne,
            4 => Mapper::Shift(shift),
            5 => Mapper::Slice(dice.below(dims as i64) as usize),
            6 if two => Mapper::Transposed([1, 0, 0]),
            7 => Mapper::Fixed(fixed),
            8 => Mapper::All,
            9 => Mapper::Neighborhood(halo),
            10 => Mapper::Row(dice.below(shape[0])),
            11 if two => Mapper::RowChunk(dice.below(shape[0])),
            _ => Mapper::All,
        }
    };
    let mut loop_body: Vec<OwnedTask> = Vec::new();
    for k in 0..3 + dice.below(6) {
        let geometry = *dice.of(&geometries);
        let mut accesses = Vec::new();
        for _ in 0..1 + dice.below(3) {
            let buffer = BufferId(dice.below(buffers.len() as i64) as u32);
            let mode = match dice.below(if reductions { 12 } else { 10 }) {
                0..=4 => Mode::Read,
                5..=7 => Mode::Write,
                8 | 9 => Mode::ReadWrite,
                _ => Mode::Reduce,
            };
            let mapper = match mode {
                Mode::Reduce if dice.chance(60) => Mapper::All,
                Mode::Reduce => mapper(&mut dice, false),
                _ => mapper(&mut dice, mode.writes()),
            };
            accesses.push(Access::new(buffer, mode, mapper));
        }
        loop_body.push(OwnedTask { name: format!("task {k}"), geometry, accesses });
    }
    let rounds = 1 + dice.below(3);
    Random { buffers, tasks: (0..rounds).flat_map(|_| loop_body.clone()).collect() }
}

pub fn buffer_box(buffer: &OwnedBuffer) -> Box3 {
    let mut max = [1; 3];
    max[..buffer.sizes.len()].copy_from_slice(&buffer.sizes);
    Box3::of_size(max)
}

/// Returns the chunks of all ranks that have one, computed granule by granule.
pub fn chunks(geometry: &Geometry, nodes: u32) -> Vec<Box3> {
    let range = geometry.range();
    if geometry.is_unsplittable() {
        return vec![range];
    }
    let granules = |d: usize| (geometry.size[d] / geometry.granularity[d]).max(1) as usize;
    let deal = |d: usize, parts: usize| {
        let mut share = vec![0i64; parts];
        (0..granules(d)).for_each(|k| share[k % parts] += geometry.granularity[d]);
        let mut cuts = vec![geometry.offset[d]];
        share.iter().for_each(|s| cuts.push(cuts[cuts.len() - 1] + s));
        cuts[parts] = geometry.offset[d] + geometry.size[d];
        cuts
    };
    let (rows, columns) = if geometry.split == Split::TwoD && geometry.dims > 1 {
        // The choice of the grid is a convention of the library, which `split` tests.
        let axes = geometry.layout(nodes).axes;
        (axes[0].parts as usize, axes[1].parts as usize)
    } else {
        (granules(0).min(nodes as usize), 1)
    };
    let (down, across) = (deal(0, rows), if columns > 1 { deal(1, columns) } else { vec![range.min[1], range.max[1]] });
    let mut out = Vec::new();
    for r in 0..rows {
        for c in 0..columns {
            let (mut min, mut max) = (range.min, range.max);
            (min[0], max[0]) = (down[r], down[r + 1]);
            (min[1], max[1]) = (across[c], across[c + 1]);
            out.push(Box3::new(min, max));
        }
    }
    out
}

pub fn touched(mapper: &Mapper, chunk: &Box3, buffer: &Box3, dims: usize) -> Box3 {
    let (mut min, mut max) = (chunk.min, chunk.max);
    for d in 0..dims {
        match mapper {
            Mapper::OneToOne => {}
            Mapper::All => (min[d], max[d]) = (0, buffer.max[d]),
            Mapper::Fixed(b) => (min[d], max[d]) = (b.min[d], b.max[d]),
            Mapper::Slice(k) if *k == d => (min[d], max[d]) = (0, buffer.max[d]),
            Mapper::Slice(_) => {}
            Mapper::Neighborhood(h) => (min[d], max[d]) = (chunk.min[d] - h[d], chunk.max[d] + h[d]),
            Mapper::Transposed(p) => (min[d], max[d]) = (chunk.min[p[d]], chunk.max[p[d]]),
            Mapper::Row(k) | Mapper::RowChunk(k) if d == 0 => (min[d], max[d]) = (*k, k + 1),
            Mapper::RowChunk(_) => (min[d], max[d]) = (chunk.min[d - 1], chunk.max[d - 1]),
            Mapper::Row(_) => (min[d], max[d]) = (0, buffer.max[d]),
            Mapper::Shift(s) => (min[d], max[d]) = (chunk.min[d] + s[d], chunk.max[d] + s[d]),
            other => unreachable!("{other:?} is not drawn"),
        }
    }
    for d in dims..3 {
        (min[d], max[d]) = (0, 1);
    }
    Box3::new(min, max).intersect(buffer)
}

/// Returns the indices of the points of a box in a buffer.
pub fn points(b: &Box3, buffer: &Box3) -> Vec<usize> {
    let mut out = Vec::new();
    for x in b.min[0]..b.max[0] {
        for y in b.min[1]..b.max[1] {
            for z in b.min[2]..b.max[2] {
                out.push(((x * buffer.max[1] + y) * buffer.max[2] + z) as usize);
            }
        }
    }
    out
}

pub fn points_of(region: &Region, buffer: &Box3) -> Vec<usize> {
    let mut out: Vec<usize> = region.boxes().iter().flat_map(|b| points(b, buffer)).collect();
    out.sort_unstable();
    out
}

/// Returns the points of a buffer that a chunk of a task touches by accesses whose mode satisfies `mode`.
pub fn touched_by(
    task: &OwnedTask,
    chunk: &Box3,
    buffer: usize,
    about: &OwnedBuffer,
    mode: fn(Mode) -> bool,
) -> Vec<usize> {
    let whole = buffer_box(about);
    let accesses = task.accesses.iter().filter(|a| a.buffer.index() == buffer && mode(a.mode));
    let mut out: Vec<usize> =
        accesses.flat_map(|a| points(&touched(&a.mapper, chunk, &whole, about.sizes.len()), &whole)).collect();
    out.sort_unstable();
    out.dedup();
    out
}
