//! Groups PEs: a *class* runs one program file, whose colors are parameters; a *kind* is a class with its colors and
//! the routes of its router. A row of a chain has four kinds (both ends, even and odd PEs), whatever its length.

use rustc_hash::{FxHashMap, FxHashSet};
use unisono_base::{interrupt::poll, narrow};
use unisono_collective::Collective;
use unisono_lower::wafer::{Color, ColorRoute, End, PeProgram, WaferProgram};
use unisono_machine::Grid;

use super::{limits, mapped, operator::vector_operation, queues::Queues};
use crate::{
    SdkTarget,
    normal::{in_turns, normalised_pe},
};

/// Contents of one program file. Lengths of arrays are in elements. Operations refer to a color by the index of a
/// parameter of the file; parameters are numbered in the order of their first use.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ClassKey {
    pub input: u32,
    pub output: u32,
    pub scratch: u32,
    pub colors: u8,
    /// Operations of each thread, in order; `waits` has pairs `(operation, operation that must have ended)`, numbered
    /// over all threads.
    pub threads: Vec<Vec<Operation>>,
    pub waits: Vec<(u32, u32)>,
}

impl ClassKey {
    /// Returns the length in elements of each thread's buffer for results of chunks (`partial_T`); 0 if it needs none.
    pub fn partials(&self, target: &SdkTarget) -> Vec<u32> {
        self.threads.iter().map(|ops| ops.iter().map(|o| o.chunk_kept(target)).max().unwrap_or(0)).collect()
    }

    /// Returns the length in elements of each thread's buffer for an arrived operand of `@map`; 0 if it needs none.
    pub fn arrived(&self, target: &SdkTarget) -> Vec<u32> {
        let chunk = |o: &Operation| if o.mapped { o.chunk_kept(target) } else { 0 };
        self.threads.iter().map(|ops| ops.iter().map(chunk).max().unwrap_or(0)).collect()
    }
}

/// An operation that the target can express: one or two sources, or several sources in turns; and one sink.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Operation {
    pub len: u32,
    pub chunk: u32,
    pub phase: u16,
    pub sources: Vec<End>,
    pub sink: End,
    /// Color on which the result is also sent, chunk by chunk, from the sink in memory.
    pub onward: Option<End>,
    pub advance: bool,
    pub control: bool,
    /// True if `@map` combines the sources; see [`super::mapped`].
    pub mapped: bool,
}

impl Operation {
    /// Returns whether the operation runs chunk by chunk, so that a loop may move its descriptors.
    pub fn moves(&self) -> bool {
        self.mapped || self.in_turns() || self.onward.is_some()
    }

    /// Returns the index of the color parameter on which the operation sends; `None` if it does not send.
    pub fn sends(&self) -> Option<usize> {
        match self.onward.unwrap_or(self.sink) {
            End::Fabric(color) => Some(usize::from(color)),
            _ => None,
        }
    }

    fn chunk_kept(&self, target: &SdkTarget) -> u32 {
        if self.mapped {
            mapped::chunk(&self.sources, self.onward.is_some(), self.chunk, self.len, target)
        } else if self.in_turns() {
            self.chunk.clamp(1, self.len)
        } else {
            0
        }
    }

    /// Returns whether a source or the sink is on the fabric.
    pub fn uses_fabric(&self) -> bool {
        self.sources.iter().chain([&self.sink]).any(|end| matches!(end, End::Fabric(_)))
    }

    /// Returns whether several fabric sources are taken chunk by chunk; see [`super::turns`].
    pub fn in_turns(&self) -> bool {
        in_turns(&self.sources, self.chunk)
    }

    /// Returns the number of sources of this operation's first vector operation, 1 or 2.
    pub fn first_taken(&self) -> usize {
        let alone = self.chunk > 1 && matches!(self.sources[..], [End::Fabric(_), End::Fabric(_), ..]);
        if alone { 1 } else { self.sources.len().min(2) }
    }
}

pub struct Class {
    pub key: ClassKey,
    pub queues: Queues,
    pub pes: u32,
}

#[derive(PartialEq, Eq, Hash)]
pub struct Kind {
    pub class: u32,
    /// Color of the program that each color parameter stands for.
    pub colors: Vec<Color>,
    pub routes: Vec<ColorRoute>,
}

pub struct Plan {
    pub grid: Grid,
    pub collective: Collective,
    pub phases: Vec<String>,
    /// Each color of the program with its number on the target, in ascending order of the program's colors.
    pub colors: Vec<(Color, u8)>,
    /// One task id for each thread of the class with the most threads, if that class has several.
    pub tasks: Vec<u8>,
    pub classes: Vec<Class>,
    pub kinds: Vec<Kind>,
    /// Index of the kind of each PE.
    pub kind_of: Vec<u32>,
}

pub fn file_name(class: usize) -> String {
    format!("pe_{class}.csl")
}

impl Plan {
    pub fn new(program: &WaferProgram, target: &SdkTarget) -> Result<Self, String> {
        let mut plan = Plan {
            grid: program.grid,
            collective: program.collective,
            phases: program.phases().to_vec(),
            colors: numbered(program, target)?,
            tasks: Vec::new(),
            classes: Vec::new(),
            kinds: Vec::new(),
            kind_of: Vec::new(),
        };
        let mut class_of: FxHashMap<ClassKey, u32> = FxHashMap::default();
        let mut kind_of: FxHashMap<Kind, u32> = FxHashMap::default();
        for pe in 0..program.pe_count() {
            poll();
            let (key, colors) = key(program, pe);
            let class = match class_of.get(&key) {
                Some(&class) => class,
                None => {
                    let (row, col) = program.grid.row_col(narrow(pe));
                    let queues = Queues::assign(&key, target).map_err(|e| format!("PE ({row}, {col}): {e}"))?;
                    let class = narrow(plan.classes.len());
                    class_of.insert(key.clone(), class);
                    plan.classes.push(Class { key, queues, pes: 0 });
                    class
                }
            };
            plan.classes[class as usize].pes += 1;
            let kind = Kind { class, colors, routes: program.routes(pe).to_vec() };
            let next = narrow(kind_of.len());
            plan.kind_of.push(*kind_of.entry(kind).or_insert(next));
        }
        let mut ordered: Vec<(u32, Kind)> = kind_of.into_iter().map(|(k, n)| (n, k)).collect();
        ordered.sort_unstable_by_key(|k| k.0);
        plan.kinds = ordered.into_iter().map(|k| k.1).collect();
        plan.tasks = plan.task_ids(target)?;
        Ok(plan)
    }

    /// Returns whether any program file combines by `@map`.
    pub fn is_mapped(&self) -> bool {
        self.classes.iter().flat_map(|c| &c.key.threads).flatten().any(|o| o.mapped)
    }

    /// Returns whether any router has several positions of a color.
    pub fn has_switches(&self) -> bool {
        self.kinds.iter().flat_map(|k| &k.routes).any(|r| r.positions().len() > 1)
    }

    fn task_ids(&self, target: &SdkTarget) -> Result<Vec<u8>, String> {
        let threads = self.classes.iter().map(|c| c.key.threads.len()).max();
        let wanted = threads.filter(|&n| n > 1).unwrap_or(0);
        if wanted > target.microthreads.len() && !target.microthreads.is_empty() {
            return Err(format!("{wanted} threads on a PE; {} microthreads are free", target.microthreads.len()));
        }
        let free = |id: &&u8| !target.tasks_share_colors || self.colors.iter().all(|c| c.1 != **id);
        let ids: Vec<u8> = target.local_tasks.iter().filter(free).take(wanted).copied().collect();
        if ids.len() < wanted {
            return Err(format!(
                "{wanted} threads on a PE; beside {} colors in use {} ids of tasks are free",
                self.colors.len(),
                ids.len()
            ));
        }
        Ok(ids)
    }
}

/// Assigns numbers of the target to the program's colors in ascending order; a color with switches gets a number that
/// allows switches.
fn numbered(program: &WaferProgram, target: &SdkTarget) -> Result<Vec<(Color, u8)>, String> {
    let colors = program.colors();
    let routes = (0..program.pe_count()).flat_map(|pe| program.routes(pe));
    let switched: FxHashSet<Color> = routes.filter(|r| r.positions().len() > 1).map(|r| r.color).collect();
    let mut free = target.colors.to_vec();
    let mut numbers = Vec::with_capacity(colors.len());
    let mut left = switched.len();
    for color in colors {
        let is_switched = switched.contains(&color);
        left -= usize::from(is_switched);
        let may_switch = |n: &u8| target.switched_colors.contains(n);
        // A color without switches takes a number that allows switches only if enough remain for the colors that need
        // one.
        let spare = free.iter().filter(|n| may_switch(n)).count() > left;
        let at = free.iter().position(|n| if may_switch(n) { is_switched || spare } else { !is_switched });
        let at = at.ok_or_else(|| {
            format!(
                "{} colors with switches; on the {} {} may have them",
                switched.len(),
                target.wafer,
                target.switched_colors.len()
            )
        })?;
        numbers.push((color, free.remove(at)));
    }
    Ok(numbers)
}

/// Returns the class of a PE, and its colors in the order of their parameters.
fn key(program: &WaferProgram, pe: usize) -> (ClassKey, Vec<Color>) {
    let PeProgram { threads, waits, scratch, .. } = normalised_pe(program, pe);
    let mut colors: Vec<Color> = Vec::new();
    let mut local = |end: End| match end {
        End::Fabric(color) => {
            let number = colors.iter().position(|&c| c == color).unwrap_or_else(|| {
                colors.push(color);
                colors.len() - 1
            });
            End::Fabric(narrow(number))
        }
        memory => memory,
    };
    let is_mapped = vector_operation(&program.collective).is_none();
    let threads = threads
        .into_iter()
        .map(|thread| {
            let operations = thread.into_iter().map(|(op, sources, sinks)| Operation {
                len: op.len,
                chunk: op.chunk,
                phase: op.phase,
                mapped: is_mapped && sources.len() > 1,
                sources: sources.into_iter().map(&mut local).collect(),
                // `limits` has checked that there is one sink, or one in memory and one on the fabric.
                sink: local(sinks.first().copied().unwrap_or(End::Out(0))),
                onward: sinks.get(1).copied().map(&mut local),
                advance: op.advance.is_some(),
                control: op.control.is_some(),
            });
            operations.collect()
        })
        .collect();
    let (input, output) = limits::vectors(&program.collective, narrow(pe));
    let key = ClassKey { input, output, scratch, colors: narrow(colors.len()), threads, waits };
    (key, colors)
}
