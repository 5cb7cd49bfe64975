//! The loop of a session: change a seed, run it, and keep inputs that are new or fail.

use std::{
    collections::BTreeMap,
    fs,
    io::{Seek, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use crate::{
    FuzzTarget, Random, corpus,
    coverage::Coverage,
    guard::{self, Bounds, Fault},
    mutate::Pool,
};

/// The maximum number of inputs that are kept for each kind of fault.
const KEPT_OF_A_KIND: u32 = 3;
/// Greatest length in bytes of an input that becomes a seed.
const LONGEST_SEED: usize = 16 << 10;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    pub runs: u64,
    pub accepted: u64,
    pub grown: u64,
    pub faults: u64,
    /// Number of edges reached, and of all edges; both are 0 without instrumentation.
    pub edges: (usize, usize),
}

/// Folders in which a session keeps its files.
pub struct Folders {
    root: PathBuf,
}

impl Folders {
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Returns the file of the current input, from which an input that ends the process is recovered.
    pub fn current(&self, target: &FuzzTarget) -> PathBuf {
        self.root.join("current").join(target.name)
    }

    pub fn grown(&self, target: &FuzzTarget) -> PathBuf {
        self.root.join("grown").join(target.name)
    }

    /// Keeps an input that failed, with its reason as text, unless three inputs with this kind of fault are kept;
    /// returns true if it keeps the input.
    ///
    /// # Errors
    /// Returns the errors of the file system.
    pub fn keep(&self, target: &FuzzTarget, input: &[u8], fault: &Fault) -> std::io::Result<bool> {
        let folder = self.root.join("artifacts").join(target.name);
        fs::create_dir_all(&folder)?;
        let kept = corpus::files(&folder);
        let alike = kept.iter().filter(|p| {
            let name = p.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            name.strip_prefix(&fault.kind).is_some_and(|rest| rest.starts_with('.')) && !name.ends_with(".why")
        });
        if alike.count() >= KEPT_OF_A_KIND as usize {
            return Ok(false);
        }
        let name = format!("{}.{}", fault.kind, corpus::name(input));
        fs::write(folder.join(&name), input)?;
        fs::write(folder.join(format!("{name}.why")), format!("{}\n", fault.message))?;
        Ok(true)
    }
}

/// Runs a target until `time` has passed, or `most_runs` inputs, seeds first, have run.
///
/// # Errors
/// Returns the errors of the file system.
pub fn run(
    target: &FuzzTarget,
    folders: &Folders,
    bounds: &Bounds,
    time: Duration,
    most_runs: u64,
    seed: u64,
) -> std::io::Result<Tally> {
    guard::start(bounds);
    let (begin, mut random, mut tally) = (Instant::now(), Random::new(seed), Tally::default());
    let (current, grown) = (folders.current(target), folders.grown(target));
    for path in [current.parent().unwrap_or(&current), &grown] {
        fs::create_dir_all(path)?;
    }
    let seeds = corpus::seeds(target, Some(&grown));
    let mut waiting = seeds.clone();
    let (mut pool, mut coverage) = (Pool::new(seeds), Coverage::default());
    let mut file = fs::File::create(&current)?;
    let guided = Coverage::exists();
    let mut slow: BTreeMap<String, u32> = BTreeMap::new();
    while tally.runs < most_runs && begin.elapsed() < time {
        let is_seed = !waiting.is_empty();
        let input = waiting.pop().unwrap_or_else(|| pool.next(target.form, &mut random));
        file.rewind()?;
        file.set_len(0)?;
        file.write_all(&input)?;
        if guided {
            Coverage::clear();
        }
        tally.runs += 1;
        match guard::run(target, &input, bounds) {
            Ok(accepted) => {
                tally.accepted += u64::from(accepted);
                if guided && coverage.is_new() && !is_seed && input.len() <= LONGEST_SEED {
                    fs::write(grown.join(corpus::name(&input)), &input)?;
                    pool.add(input);
                    tally.grown += 1;
                }
            }
            Err(fault) => {
                tally.faults += 1;
                let count = slow.entry(fault.kind.clone()).or_default();
                *count += 1;
                if *count <= KEPT_OF_A_KIND {
                    folders.keep(target, &input, &fault)?;
                }
            }
        }
    }
    tally.edges = coverage.edges();
    let _ = fs::remove_file(&current);
    Ok(tally)
}
