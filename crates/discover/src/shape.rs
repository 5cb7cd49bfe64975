//! The shape of a task: its properties that are equal in all submissions. They are checked and computed once.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use rustc_hash::{FxHashMap, FxHasher};
use unisono_base::{BufferId, mix};

use crate::{
    error::DiscoverError,
    mapper::{DimRule, Mapper},
    role::{Role, RoleId, Roles},
    side::{Side, Sides},
    space::{Box3, Region},
    split::{Geometry, Layout, Split},
    task::{Access, Buffer, Mode, Task},
    traced::Dependence,
};

/// One role of a task, with the region of the local rank, whose commands the discovery computes.
#[derive(Clone, Debug)]
pub struct Played {
    pub buffer: BufferId,
    pub role: RoleId,
    pub local: Arc<Region>,
    /// For a read, true if several ranks read and all of them read the same points.
    pub broadcasts: bool,
}

#[derive(Debug)]
pub struct Shape {
    geometry: Geometry,
    accesses: Vec<Access>,
    /// True if the range may have fewer dimensions than a buffer.
    rows: bool,
    /// The roles of reads, ascending by buffer, with one role for each buffer.
    pub reads: Vec<Played>,
    pub writes: Vec<Played>,
    pub reductions: Vec<Played>,
    /// Each accessed buffer once: the role of the read, true if the read broadcasts, and true if the contents change.
    pub touched: Vec<(BufferId, Option<RoleId>, bool, bool)>,
    /// The local rank's part of the range.
    pub chunk: Option<Box3>,
    /// The region that each access touches in the local rank's part.
    pub views: Vec<Region>,
    /// A hash that is equal on all ranks that submit the same task.
    pub digest: u64,
}

impl Shape {
    pub fn buffers(&self) -> impl Iterator<Item = BufferId> + '_ {
        self.accesses.iter().map(|access| access.buffer)
    }

    pub fn modes(&self) -> impl Iterator<Item = (BufferId, Mode)> + '_ {
        self.accesses.iter().map(|access| (access.buffer, access.mode))
    }

    pub fn dims(&self) -> usize {
        self.geometry.dims
    }

    /// Returns the split of the local rank's part of the range among `count` devices, if the rank has a part.
    pub fn layout_of_chunk(&self, count: u32) -> Option<Layout> {
        self.chunk.map(|chunk| self.geometry.of_part(&chunk).layout(count))
    }

    /// Returns the region that each access touches for `chunk`, a part of the local rank's part of the range.
    pub fn touched_by<'b>(
        &self,
        chunk: &Box3,
        task: &str,
        rank: Option<u32>,
        buffer: impl Fn(BufferId) -> Option<&'b Buffer>,
    ) -> Result<Vec<Region>, DiscoverError> {
        touched_by(&self.geometry, &self.accesses, chunk, task, rank, self.rows, buffer)
    }
}

#[derive(Default)]
pub struct Shapes {
    rows: Vec<Arc<Shape>>,
    by_hash: FxHashMap<u64, Vec<u32>>,
}

/// The parameters of a shape that do not belong to the task.
pub struct Setting<'a> {
    pub nodes: u32,
    pub rank: Option<u32>,
    /// The option [`crate::Options::rows`].
    pub rows: bool,
    /// True if two reads of a buffer by equal mappers count as one read. [`crate::Rules::Paper`] counts both.
    pub merges: bool,
    pub sides: &'a mut Sides,
    pub roles: &'a mut Roles,
}

impl Shapes {
    pub fn get(&self, number: u32) -> Arc<Shape> {
        self.rows[number as usize].clone()
    }

    /// Returns the number of the task's shape. Only a new shape is checked.
    pub fn intern<'b>(
        &mut self,
        setting: Setting<'_>,
        task: &Task<'_>,
        buffer: impl Fn(BufferId) -> Option<&'b Buffer>,
    ) -> Result<u32, DiscoverError> {
        let mut hasher = FxHasher::default();
        task.geometry.hash(&mut hasher);
        task.accesses.hash(&mut hasher);
        let hash = hasher.finish();
        let same = |&k: &u32| {
            let shape = &self.rows[k as usize];
            shape.geometry == task.geometry && shape.accesses == task.accesses
        };
        if let Some(&known) = self.by_hash.get(&hash).and_then(|rows| rows.iter().find(|k| same(k))) {
            return Ok(known);
        }
        let shape = make(setting, task, buffer)?;
        let number = u32::try_from(self.rows.len()).expect("fewer than 2^32 shapes");
        self.rows.push(Arc::new(shape));
        self.by_hash.entry(hash).or_default().push(number);
        Ok(number)
    }
}

fn make<'b>(
    setting: Setting<'_>,
    task: &Task<'_>,
    buffer: impl Fn(BufferId) -> Option<&'b Buffer>,
) -> Result<Shape, DiscoverError> {
    let Setting { nodes, rank, rows, merges, sides, roles } = setting;
    check_geometry(task)?;
    let mut buffers: Vec<BufferId> = task.accesses.iter().map(|a| a.buffer).collect();
    buffers.sort_unstable();
    buffers.dedup();
    let mut shape = Shape {
        geometry: task.geometry,
        accesses: task.accesses.to_vec(),
        rows,
        reads: Vec::new(),
        writes: Vec::new(),
        reductions: Vec::new(),
        touched: Vec::new(),
        chunk: rank.and_then(|k| task.geometry.layout(nodes).chunk(k)),
        views: Vec::new(),
        digest: digest(task),
    };
    for id in buffers {
        let Some(about) = buffer(id) else {
            return Err(DiscoverError::Input(format!("task '{}': there is no buffer {}", task.name, id.0)));
        };
        let fault = |(rank, what): (Option<u32>, String)| DiscoverError::Access {
            task: task.name.to_owned(),
            buffer: about.name.clone(),
            rank,
            what,
        };
        let mut play = |wanted: fn(Mode) -> bool, reduces: bool| {
            let of_buffer = task.accesses.iter().filter(|a| a.buffer == id && wanted(a.mode));
            let mut mappers: Vec<Mapper> = of_buffer.map(|a| a.mapper.clone()).collect();
            if mappers.is_empty() {
                return Ok(None);
            }
            mappers.sort_unstable();
            if !reduces && (merges || wanted(Mode::Write)) {
                // Two accesses with equal mappers count as one.
                mappers.dedup();
            }
            let role = roles
                .intern(sides, &task.geometry, nodes, mappers, reduces, about.shape, about.dims, rows)
                .map_err(fault)?;
            let side = &sides[roles[role].side];
            let (ranks, common) = side.common();
            let broadcasts = ranks > 1 && !common.is_empty() && common == roles[role].image;
            let local = Arc::new(rank.map_or_else(Region::empty, |k| side.at(k)));
            Ok(Some(Played { buffer: id, role, local, broadcasts }))
        };
        let read = play(Mode::reads, false)?;
        let write = play(Mode::writes, false)?;
        let reduction = play(|mode| mode == Mode::Reduce, true)?;
        if let Some(write) = &write {
            if reduction.is_some() {
                return Err(fault((
                    None,
                    "it is both written and reduced; accepted is one of them in a task".to_owned(),
                )));
            }
            check_writes(&roles[write.role], sides, nodes, about, rows).map_err(fault)?;
        }
        let (role, broadcasts) = (read.as_ref().map(|r| r.role), read.as_ref().is_some_and(|r| r.broadcasts));
        shape.touched.push((id, role, broadcasts, write.is_some() || reduction.is_some()));
        shape.reads.extend(read);
        shape.writes.extend(write);
        shape.reductions.extend(reduction);
    }
    if let Some(chunk) = shape.chunk {
        shape.views = shape.touched_by(&chunk, task.name, rank, buffer)?;
    }
    Ok(shape)
}

fn touched_by<'b>(
    geometry: &Geometry,
    accesses: &[Access],
    chunk: &Box3,
    task: &str,
    rank: Option<u32>,
    rows: bool,
    buffer: impl Fn(BufferId) -> Option<&'b Buffer>,
) -> Result<Vec<Region>, DiscoverError> {
    let of = |access: &Access| {
        let about = buffer(access.buffer)?;
        let fault = |what| DiscoverError::Access { task: task.to_owned(), buffer: about.name.clone(), rank, what };
        Some(touched(geometry, chunk, access, about, rows).map_err(fault))
    };
    accesses.iter().filter_map(of).collect()
}

fn touched(geometry: &Geometry, chunk: &Box3, access: &Access, buffer: &Buffer, rows: bool) -> Result<Region, String> {
    let (whole, dims) = (buffer.shape, buffer.dims);
    match access.mapper.rules(geometry, &whole, dims, rows)? {
        None => access.mapper.evaluate(geometry, chunk, &whole, dims),
        rules => {
            let one = geometry.of_part(chunk);
            Side::image(&one, &[(access.mapper.clone(), rules)], whole, dims)
        }
    }
}

fn check_geometry(task: &Task<'_>) -> Result<(), DiscoverError> {
    let Geometry { dims, offset, size, granularity, .. } = task.geometry;
    let wrong = |what: String| Err(DiscoverError::Input(format!("task '{}': {what}", task.name)));
    let limit = crate::task::MOST_EXTENT;
    if dims == 0 || dims > 3 {
        return wrong(format!("the range has {dims} dimensions; accepted are 1 to 3"));
    }
    for d in 0..3 {
        if size[d] < 1 || size[d] >= limit || d >= dims && size[d] != 1 {
            return wrong(format!("the range has size {}; accepted are 1 to {}", size[d], limit - 1));
        }
        if offset[d].unsigned_abs() >= limit.unsigned_abs() {
            return wrong(format!("the range starts at {}; accepted are numbers below {limit}", offset[d]));
        }
        if granularity[d] < 1 || granularity[d] >= limit {
            return wrong(format!("the granularity is {}; accepted are 1 and more", granularity[d]));
        }
    }
    Ok(())
}

/// Returns whether the chunks of this type of split touch disjoint boxes for any number of ranks. A dimension with less
/// than two whole granules counts as not divided.
fn separates(rules: &[DimRule; 3], geometry: &Geometry) -> bool {
    (0..geometry.dims).all(|dim| {
        let cut = geometry.cuts(dim) && geometry.size[dim] >= 2 * geometry.granularity[dim];
        let apart = |rule: &DimRule| {
            matches!(Dependence::from(*rule), Dependence::Identity(by) | Dependence::Apart(by) if by == dim)
        };
        !cut || rules.iter().any(apart)
    })
}

/// Returns an error if two ranks write one point. Each mapper with rules is checked for all numbers of ranks, so that a
/// program that runs on a small machine cannot fail on a larger machine. Mappers without rules, and pairs of mappers,
/// are checked for `nodes` ranks only.
fn check_writes(
    role: &Role,
    sides: &Sides,
    nodes: u32,
    buffer: &Buffer,
    rows: bool,
) -> Result<(), (Option<u32>, String)> {
    let side = &sides[role.side];
    let Some(geometry) = role.geometry else { return Ok(()) };
    let names = role.mappers.iter().map(Mapper::name).collect::<Vec<_>>().join(", ");
    let mut suspicious = false;
    for (k, mapper) in role.mappers.iter().enumerate() {
        let rules = mapper.rules(&geometry, &buffer.shape, buffer.dims, rows).map_err(|why| (None, why))?;
        match rules {
            Some(rules) if !separates(&rules, &geometry) => {
                if side.overlap(role.chunks).is_none() {
                    let what = format!(
                        "overlapping writes: with mapper {names} several ranks would write {} if they shared the range; \
                         accepted are mappers that give each rank a part of its own",
                        role.images[k].text(buffer.dims)
                    );
                    return Err((Some(1), what));
                }
                suspicious = true;
            }
            Some(_) => {}
            None => suspicious = true,
        }
        suspicious |= role.images[..k].iter().any(|image| image.overlaps(&role.images[k]));
    }
    if suspicious && let Some((first, second, region)) = side.overlap(role.chunks.min(nodes)) {
        let what = format!(
            "overlapping writes: with mapper {names} ranks {first} and {second} both write {}; accepted are mappers that \
             give each rank a part of its own",
            region.text(buffer.dims)
        );
        return Err((Some(second), what));
    }
    Ok(())
}

fn digest(task: &Task<'_>) -> u64 {
    let Geometry { dims, offset, size, granularity, split } = task.geometry;
    let numbers =
        [dims as i64, i64::from(split == Split::TwoD)].into_iter().chain(offset).chain(size).chain(granularity);
    let mut h = numbers.fold(0x7a5c, |h, n| mix(h ^ n.cast_unsigned()).wrapping_add(1));
    for access in task.accesses {
        h = mix(h ^ u64::from(access.buffer.0) ^ ((access.mode as u64) << 32) ^ access.mapper.digest()).wrapping_add(1);
    }
    h
}
