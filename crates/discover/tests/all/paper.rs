//! A direct implementation of Algorithm 1 and Table 2, as defined in `papers/discovery/errata.md`, on single points and
//! with the inner loop of the paper. It is compared with the rules `paper` on random programs.

use crate::{points, soak};

use points::{OwnedTask, Random, buffer_box, points as points_in, random, touched};
use unisono_discover::{Access, Buffer, Discovery, Geometry, Mapper, Mode, Options, Pattern, Rules, Split, Task};

/// Producer task, consumer task, buffer, points, pattern.
type Found = (usize, usize, usize, Vec<usize>, Option<Pattern>);

#[derive(Clone, Copy, PartialEq)]
enum Writer {
    Nobody,
    Task(usize),
    Forward,
}

/// Returns the points that a mapper touches for a task's whole range.
fn image(program: &Random, task: &OwnedTask, access: &Access) -> Vec<usize> {
    let about = &program.buffers[access.buffer.index()];
    let whole = buffer_box(about);
    points_in(&touched(&access.mapper, &task.geometry.range(), &whole, about.sizes.len()), &whole)
}

fn accesses(task: &OwnedTask, b: usize, mode: fn(Mode) -> bool) -> impl Iterator<Item = &Access> {
    task.accesses.iter().filter(move |a| a.buffer.index() == b && mode(a.mode))
}

/// A_t(F): the mappers that touch F, sorted. Several writes with one mapper count once.
fn touching(
    program: &Random,
    t: usize,
    tasks: &[OwnedTask],
    b: usize,
    f: &[usize],
    mode: fn(Mode) -> bool,
) -> Vec<Mapper> {
    let touches = |a: &&Access| image(program, &tasks[t], a).iter().any(|x| f.contains(x));
    let mut found: Vec<Mapper> = accesses(&tasks[t], b, mode).filter(touches).map(|a| a.mapper.clone()).collect();
    found.sort();
    if mode(Mode::Write) {
        found.dedup();
    }
    found
}

fn communication_free(program: &Random, tasks: &[OwnedTask], p: usize, c: usize, b: usize, f: &[usize]) -> bool {
    let one_chunk = |g: &Geometry| (0..3).all(|d| g.size[d] <= g.granularity[d]);
    if f.is_empty() || one_chunk(&tasks[p].geometry) && one_chunk(&tasks[c].geometry) {
        return true;
    }
    tasks[p].geometry == tasks[c].geometry
        && touching(program, p, tasks, b, f, Mode::writes) == touching(program, c, tasks, b, f, Mode::reads)
}

fn algorithm_1(program: &Random, tasks: &[OwnedTask], nodes: u32) -> Vec<Found> {
    let sizes: Vec<usize> = program.buffers.iter().map(|b| buffer_box(b).volume() as usize).collect();
    let mut last: Vec<Vec<Writer>> = sizes.iter().map(|&n| vec![Writer::Nobody; n]).collect();
    // The reads since the last write: consumer, buffer, points.
    let mut readers: Vec<(usize, usize, Vec<usize>)> = Vec::new();
    let mut out = Vec::new();
    for (t, task) in tasks.iter().enumerate() {
        for (b, last) in last.iter_mut().enumerate() {
            let mut wanted: Vec<usize> = accesses(task, b, Mode::reads).flat_map(|a| image(program, task, a)).collect();
            wanted.sort_unstable();
            wanted.dedup();
            let mut records = Vec::new();
            for p in 0..t {
                let mut f: Vec<usize> = wanted.iter().copied().filter(|&x| last[x] == Writer::Task(p)).collect();
                for (c, on, read) in &readers {
                    if *c == t || *on != b {
                        continue;
                    }
                    let g: Vec<usize> = f.iter().copied().filter(|x| read.contains(x)).collect();
                    // A task that read before p wrote is not a dependent of p.
                    if *c > p && !g.is_empty() && !communication_free(program, tasks, p, *c, b, &g) {
                        f.retain(|x| !g.contains(x));
                    }
                }
                if !f.is_empty() && !communication_free(program, tasks, p, t, b, &f) {
                    records.push((p, f));
                }
            }
            for (p, f) in records {
                f.iter().for_each(|&x| last[x] = Writer::Forward);
                let pattern = if nodes > 1 { table_2(program, tasks, p, t, b, &f, nodes) } else { None };
                out.push((p, t, b, f, pattern));
            }
            readers.push((t, b, wanted));
        }
        for (b, last) in last.iter_mut().enumerate() {
            for a in accesses(task, b, Mode::writes) {
                image(program, task, a).into_iter().for_each(|x| last[x] = Writer::Task(t));
            }
        }
    }
    out
}

/// Returns for each dimension of the buffer the dimension of the range that it depends on, and true if its interval
/// equals the chunk's.
fn dependence(mapper: &Mapper, dims: usize) -> Vec<Option<(usize, bool)>> {
    (0..dims)
        .map(|d| match mapper {
            Mapper::OneToOne => Some((d, true)),
            Mapper::Slice(k) => (*k != d).then_some((d, true)),
            Mapper::Transposed(perm) => Some((perm[d], true)),
            Mapper::RowChunk(_) => d.checked_sub(1).map(|by| (by, true)),
            Mapper::Neighborhood(halo) => Some((d, halo[d] == 0)),
            Mapper::Shift(by) => Some((d, by[d] == 0)),
            _ => None,
        })
        .collect()
}

fn is_cut(geometry: &Geometry, dim: usize) -> bool {
    dim == 0 || dim == 1 && geometry.dims > 1 && geometry.split == Split::TwoD
}

fn is_constant(mapper: &Mapper, geometry: &Geometry, dims: usize) -> bool {
    dependence(mapper, dims).iter().flatten().all(|(by, _)| !is_cut(geometry, *by))
}

fn is_disjoint(mapper: &Mapper, geometry: &Geometry, dims: usize) -> bool {
    let depends = dependence(mapper, dims);
    (0..geometry.dims).filter(|&k| is_cut(geometry, k)).all(|k| {
        depends.iter().enumerate().any(|(d, by)| {
            // A halo makes neighbors overlap, but a shift does not.
            by.is_some_and(|(by, _)| by == k) && !matches!(mapper, Mapper::Neighborhood(halo) if halo[d] > 0)
        })
    })
}

fn table_2(
    program: &Random,
    tasks: &[OwnedTask],
    p: usize,
    c: usize,
    b: usize,
    f: &[usize],
    nodes: u32,
) -> Option<Pattern> {
    let chunks = |t: usize| points::chunks(&tasks[t].geometry, nodes).len();
    let dims = program.buffers[b].sizes.len();
    let on_f = |t: usize, mode: fn(Mode) -> bool| -> Vec<(Mapper, Vec<usize>)> {
        let all = accesses(&tasks[t], b, mode).map(|a| (a.mapper.clone(), image(program, &tasks[t], a)));
        all.filter(|(_, image)| image.iter().any(|x| f.contains(x))).collect()
    };
    let reads = on_f(c, Mode::reads);
    let mut writes = on_f(p, Mode::writes);
    writes.sort();
    writes.dedup();
    let constant =
        f.iter().all(|x| reads.iter().any(|(m, image)| is_constant(m, &tasks[c].geometry, dims) && image.contains(x)));
    let disjoint = reads.iter().enumerate().all(|(k, (m, image))| {
        is_disjoint(m, &tasks[c].geometry, dims)
            && reads[..k].iter().all(|(_, other)| !other.iter().any(|x| image.contains(x) && f.contains(x)))
    });
    match (chunks(p) > 1, chunks(c) > 1) {
        (true, false) => Some(Pattern::Gather),
        (true, true) if constant => Some(Pattern::Allgather),
        (false, true) if constant => Some(Pattern::Broadcast),
        (false, true) if disjoint => Some(Pattern::Scatter),
        (true, true) => {
            let ([(w, wrote)], [(r, read)]) = (&writes[..], &reads[..]) else { return None };
            let kinds = |m: &Mapper, g: &Geometry| -> Vec<Option<bool>> {
                // A constant dimension is `Some(false)`, a split dimension `Some(true)`, any other dimension `None`.
                let kind = |by: Option<(usize, bool)>| match by {
                    Some((k, exact)) if is_cut(g, k) => exact.then_some(true),
                    _ => Some(false),
                };
                dependence(m, dims).into_iter().map(kind).collect()
            };
            let (w, k) = (kinds(w, &tasks[p].geometry), kinds(r, &tasks[c].geometry));
            let sorted = |points: &Vec<usize>| {
                let mut points = points.clone();
                points.sort_unstable();
                points
            };
            (sorted(wrote) == f
                && sorted(read) == f
                && is_disjoint(r, &tasks[c].geometry, dims)
                && w.iter().chain(&k).all(Option::is_some)
                && w.iter().zip(&k).any(|(w, r)| *w == Some(false) && *r == Some(true))
                && w.iter().zip(&k).any(|(w, r)| *w == Some(true) && *r == Some(false)))
            .then_some(Pattern::Alltoall)
        }
        _ => None,
    }
}

#[test]
fn forwards_are_those_of_algorithm_1() {
    let mut seen = std::collections::BTreeMap::<Option<Pattern>, u32>::new();
    for seed in 5000..5000 + u64::from(soak::cases(10_000)) {
        let program = random(seed, false);
        for nodes in [1, 2, 3, 4, 8] {
            let mut discovery = Discovery::new(Options::report(nodes, Rules::Paper)).expect("the options are sound");
            for (k, buffer) in program.buffers.iter().enumerate() {
                let made = Buffer::new(&format!("B{k}"), &buffer.sizes, 8, buffer.initialized);
                discovery.buffer(made.expect("the shape is sound"));
            }
            let submit = |task: &&OwnedTask| {
                let submitted = Task { name: &task.name, geometry: task.geometry, accesses: &task.accesses };
                discovery.submit(&submitted).is_ok()
            };
            let tasks: Vec<OwnedTask> = program.tasks.iter().filter(submit).cloned().collect();
            let found: Vec<Found> = discovery
                .take_forwards()
                .into_iter()
                .map(|f| {
                    let buffer = buffer_box(&program.buffers[f.buffer.index()]);
                    let points = points::points_of(&f.region, &buffer);
                    (f.after.index(), f.before.index(), f.buffer.index(), points, f.pattern)
                })
                .collect();
            assert_eq!(found, algorithm_1(&program, &tasks, nodes), "seed {seed}, {nodes} nodes");
            found.iter().for_each(|f| *seen.entry(f.4).or_default() += 1);
        }
    }
    for pattern in [Pattern::Gather, Pattern::Allgather, Pattern::Broadcast, Pattern::Scatter, Pattern::Alltoall] {
        let times = seen.get(&Some(pattern)).copied().unwrap_or(0);
        assert!(times > soak::cases(25), "{pattern} comes up {times} times: {seen:?}");
    }
}
