//! Lists of devices as HLO prints them: `{{0,1},{2,3}}`, `[2,2]<=[4]`, `[2,2]<=[2,2]T(1,0)`,
//! `mesh['a'=2,'b'=2] {'a'}`, `mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'a'}`.
//!
//! Source: `replica_group.cc`, `mesh_and_axis.cc` and `tile_assignment.cc` of XLA (github.com/openxla/xla). The second
//! and third forms number the devices row by row, transpose, and cut the sequence into rows. In the last two forms,
//! devices that differ only in the listed axes form a group. `'a':(p)s` is the part of size s of axis a that follows
//! parts whose sizes have the product p.

use unisono_base::{excerpt, narrow};

use super::text::{bracketed, numbers, parts};

pub const MOST_DEVICES: u64 = 1 << 22;

/// Reads groups of devices; `{}` gives an empty list, which means all devices.
pub fn groups(text: &str) -> Result<Vec<Vec<u32>>, String> {
    let wrong = || format!("'{}' is not a list of groups", excerpt(text));
    if let Some(rest) = text.strip_prefix("mesh") {
        return mesh(rest).ok_or_else(wrong);
    }
    if text.starts_with('[') {
        return iota(text).and_then(|(dims, order)| rows(&dims, &order)).ok_or_else(wrong);
    }
    let (inside, _) = bracketed(text).filter(|_| text.starts_with('{')).ok_or_else(wrong)?;
    parts(inside).into_iter().map(|part| list(part).ok_or_else(wrong)).collect()
}

pub fn pairs(text: &str) -> Result<Vec<(u32, u32)>, String> {
    let wrong = || format!("'{}' is not a list of pairs", excerpt(text));
    let (inside, _) = bracketed(text).ok_or_else(wrong)?;
    let pair = |part| match list(part).as_deref() {
        Some(&[from, to]) => Ok((from, to)),
        _ => Err(wrong()),
    };
    parts(inside).into_iter().map(pair).collect()
}

fn list(text: &str) -> Option<Vec<u32>> {
    let (inside, rest) = bracketed(text).filter(|_| text.starts_with('{'))?;
    small(inside).filter(|_| rest.is_empty())
}

/// Reads device numbers separated by commas.
fn small(text: &str) -> Option<Vec<u32>> {
    let numbers = numbers(text).filter(|list| list.iter().all(|&number| number < MOST_DEVICES))?;
    Some(numbers.into_iter().map(narrow).collect())
}

/// Returns the number of devices of a grid; `None` if it is 0, or it or the number of dimensions is too large.
fn product(dims: &[u64]) -> Option<u64> {
    let all = dims.iter().try_fold(1_u64, |all, &dim| all.checked_mul(dim))?;
    (all > 0 && all <= MOST_DEVICES && dims.len() <= 64).then_some(all)
}

/// Returns the devices of a grid of extents `dims`, row by row after its axes are put into the order `axes`.
fn transposed(dims: &[u64], axes: &[usize]) -> Vec<u32> {
    let all: u64 = dims.iter().product();
    let mut strides = vec![1_u64; dims.len()];
    for n in (1..dims.len()).rev() {
        strides[n - 1] = strides[n] * dims[n];
    }
    let device = |mut at: u64| {
        let mut device = 0;
        for &axis in axes.iter().rev() {
            device += at % dims[axis] * strides[axis];
            at /= dims[axis];
        }
        narrow::<u32>(device)
    };
    (0..all).map(device).collect()
}

/// Reads `[groups,size]<=[dims]` with an optional `T(axes)`. Returns the extents in the first brackets, and the
/// devices.
fn iota(text: &str) -> Option<(Vec<u64>, Vec<u32>)> {
    let (shape, rest) = bracketed(text)?;
    let (shape, devices) = (numbers(shape)?, grid(rest.strip_prefix("<=")?)?);
    (product(&shape)? == devices.len() as u64).then_some((shape, devices))
}

/// Reads `[dims]` with an optional `T(axes)`. Returns the devices in order.
fn grid(text: &str) -> Option<Vec<u32>> {
    let (dims, rest) = bracketed(text)?;
    let dims = numbers(dims)?;
    let mut axes: Vec<usize> = (0..dims.len()).collect();
    if let Some(rest) = rest.trim().strip_prefix('T') {
        let (inside, _) = bracketed(rest)?;
        let order: Vec<usize> = numbers(inside)?.into_iter().map(|n| usize::try_from(n).ok()).collect::<Option<_>>()?;
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if sorted != axes {
            return None;
        }
        axes = order;
    }
    product(&dims)?;
    Some(transposed(&dims, &axes))
}

/// Cuts devices into rows as long as the last extent.
fn rows(shape: &[u64], devices: &[u32]) -> Option<Vec<Vec<u32>>> {
    let size = narrow::<usize>(*shape.last()?);
    Some(devices.chunks(size).map(<[u32]>::to_vec).collect())
}

/// Reads `['a'=2,'b'=2] {'a'}`, with an optional `, device_ids=(...)` before the list of axes. Returns the groups.
fn mesh(text: &str) -> Option<Vec<Vec<u32>>> {
    let (inside, rest) = bracketed(text.trim())?;
    let (ids, rest) = match rest.trim().strip_prefix(',') {
        Some(rest) => device_ids(rest.trim().strip_prefix("device_ids=")?).map(|(ids, rest)| (Some(ids), rest))?,
        None => (None, rest),
    };
    let (listed, _) = bracketed(rest.trim())?;
    let axes: Vec<(&str, u64)> = parts(inside)
        .into_iter()
        .map(|part| {
            let (name, size) = part.split_once('=')?;
            Some((name.trim_matches('\''), size.parse().ok()?))
        })
        .collect::<Option<_>>()?;
    let all = product(&axes.iter().map(|&(_, size)| size).collect::<Vec<_>>())?;
    let listed: Vec<Listed> = parts(listed).into_iter().map(|part| Listed::read(part, &axes)).collect::<Option<_>>()?;
    // Each axis is split into factors at the start and the end of each listed part.
    let (mut dims, mut factors) = (Vec::new(), Vec::new());
    for (axis, &(_, size)) in axes.iter().enumerate() {
        let of_axis = listed.iter().filter(|part| part.axis == axis);
        let mut cuts: Vec<u64> =
            of_axis.flat_map(|part| [part.before, part.before * part.size]).chain([1, size]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        for cut in cuts.windows(2) {
            cut[1].is_multiple_of(cut[0]).then_some(())?;
            dims.push(cut[1] / cut[0]);
            factors.push((axis, cut[0]));
        }
    }
    let within = |part: &Listed, &(axis, begin): &(usize, u64)| {
        axis == part.axis && begin >= part.before && begin < part.before * part.size
    };
    let of_part = |part| (0..factors.len()).filter(|&n| within(part, &factors[n])).collect::<Vec<_>>();
    let grouped: Vec<usize> = listed.iter().flat_map(of_part).collect();
    let size: u64 = grouped.iter().map(|&n| dims[n]).product();
    let mut order: Vec<usize> = (0..factors.len()).filter(|n| !grouped.contains(n)).collect();
    order.extend(&grouped);
    (order.len() == factors.len()).then_some(())?;
    let devices = transposed(&dims, &order);
    let devices = match ids {
        Some(ids) if ids.len() as u64 == all => devices.into_iter().map(|n| ids[n as usize]).collect(),
        Some(_) => return None,
        None => devices,
    };
    rows(&[size], &devices)
}

/// Reads `([2,2]T(1,0)) rest` or `(0,1,2,3) rest`. Returns the devices in the order of the mesh, and the rest.
fn device_ids(text: &str) -> Option<(Vec<u32>, &str)> {
    let (inside, rest) = bracketed(text)?;
    let ids = if inside.starts_with('[') { grid(inside)? } else { small(inside)? };
    Some((ids, rest))
}

/// An axis of a mesh or a part of one: its size, and the product of parts before it.
struct Listed {
    axis: usize,
    before: u64,
    size: u64,
}

impl Listed {
    fn read(text: &str, axes: &[(&str, u64)]) -> Option<Self> {
        let (name, part) = text.split_once(':').map_or((text, None), |(name, part)| (name, Some(part)));
        let axis = axes.iter().position(|&(other, _)| other == name.trim_matches('\''))?;
        let whole = axes[axis].1;
        let (before, size) = match part {
            None => (1, whole),
            Some(part) => {
                let (before, size) = bracketed(part)?;
                (before.parse().ok()?, size.trim_matches('\'').parse().ok()?)
            }
        };
        let end = u64::checked_mul(before, size)?;
        (end > 0 && whole.is_multiple_of(end)).then_some(Self { axis, before, size })
    }
}
