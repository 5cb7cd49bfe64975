//! Rules of the language and of the machine that a project with one program per PE must obey before it runs, from
//! `docs/csl.md`. A violated rule is a panic that names the rule.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    layout::Layout,
    syntax::{Expr, Stmt},
};

/// Facts of a machine and its SDK.
pub struct Machine {
    columns: u64,
    rows: u64,
    colors: &'static [u64],
    /// Colors that may have several positions.
    switched: &'static [u64],
    /// True if a position may state both its input and its outputs.
    both_sides: bool,
    input_queues: &'static [u64],
    output_queues: &'static [u64],
    tasks: &'static [u64],
    microthreads: &'static [u64],
    /// True if the host starts functions by a color, and colors are blocked.
    launches: bool,
}

const WSE2_COLORS: &[u64] = &[0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20];
const WSE2: Machine = Machine {
    columns: 750,
    rows: 994,
    colors: WSE2_COLORS,
    switched: WSE2_COLORS,
    both_sides: false,
    input_queues: &[0, 1, 2, 3, 4, 5, 6, 7],
    output_queues: &[0, 1, 2, 3, 4, 5],
    tasks: &[0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 24, 25, 26],
    microthreads: &[],
    launches: true,
};
const WSE3: Machine = Machine {
    columns: 755,
    rows: 1170,
    colors: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20],
    switched: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 17, 20],
    both_sides: true,
    input_queues: &[2, 3, 4, 5, 6, 7],
    output_queues: &[2, 3, 4, 5, 6, 7],
    tasks: &[8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 25, 26],
    microthreads: &[2, 3, 4, 5, 6, 7],
    launches: false,
};

/// Greatest finite length of a vector operation.
const LONGEST: u64 = 32_766;
/// Bytes of a PE that remain beside code, stack and the host link.
const MEMORY: u64 = 38 * 1024;
/// The command "advance the switch" for no task, not delivered to the PE.
const ADVANCE: u64 = 1 << 22 | 1 << 24 | 31 << 16;

pub fn check(layout: &Layout, programs: &BTreeMap<String, Vec<Stmt>>, is_wse3: bool) {
    let machine = if is_wse3 { WSE3 } else { WSE2 };
    check_layout(layout, &machine);
    for (file, program) in programs {
        Program::of(file, program).check(layout, &machine);
    }
    for tile in &layout.tiles {
        let declared: BTreeSet<_> = params(&programs[&tile.file]).collect();
        let given: BTreeSet<_> = tile.colors.keys().chain(tile.flags.keys()).map(String::as_str).collect();
        assert_eq!(declared, given, "the parameters of {}", tile.file);
        let colors: BTreeSet<_> = tile.colors.values().collect();
        assert_eq!(colors.len(), tile.colors.len(), "two parameters of {} are one color", tile.file);
    }
}

fn params(program: &[Stmt]) -> impl Iterator<Item = &str> {
    program.iter().filter_map(|s| match s {
        Stmt::Param(name) if name != "memcpy_params" => Some(name.as_str()),
        _ => None,
    })
}

fn check_layout(layout: &Layout, machine: &Machine) {
    let (width, height) = (layout.width, layout.height);
    assert!((1..=machine.columns).contains(&width) && (1..=machine.rows).contains(&height), "{width} x {height} PEs");
    assert_eq!(layout.host_link, Some((width, height)), "the host link has another size");
    assert!(layout.exports.contains("compute"), "the host cannot start `compute`");
    let numbers: BTreeSet<_> = layout.colors.values().collect();
    assert_eq!(numbers.len(), layout.colors.len(), "two names of one color");
    for (name, number) in &layout.colors {
        let is_launch = machine.launches && name == "LAUNCH" && *number == 8;
        assert!(is_launch || machine.colors.contains(number), "{name} is color {number}");
    }
    for (n, tile) in layout.tiles.iter().enumerate() {
        assert!(!tile.file.is_empty(), "PE {n} has no program");
        for (color, positions) in &tile.routes {
            assert!(positions.len() == 1 || machine.switched.contains(color), "color {color} has switches");
            for (at, p) in positions.iter().enumerate() {
                assert!(p.rx.len() == 1 && !p.tx.is_empty(), "position {at} of color {color} at PE {n}");
                assert!(!p.tx.contains(&p.rx[0]), "color {color} turns around at PE {n}");
            }
            for pair in positions.windows(2) {
                assert!(machine.both_sides || !pair[1].names_both, "a position of color {color} names both sides");
                let is_one = pair[0].tx == pair[1].tx || pair[1].tx.len() == 1;
                assert!(is_one, "color {color} switches to several directions");
            }
        }
    }
}

/// The declarations and calls of one program.
struct Program<'a> {
    file: &'a str,
    lets: BTreeMap<&'a str, &'a Expr>,
    /// Calls; true for a call in a task.
    calls: Vec<(bool, &'a str, &'a [Expr])>,
}

impl<'a> Program<'a> {
    fn of(file: &'a str, statements: &'a [Stmt]) -> Self {
        let mut program = Self { file, lets: BTreeMap::new(), calls: Vec::new() };
        program.add(statements, false);
        program
    }

    fn add(&mut self, statements: &'a [Stmt], in_task: bool) {
        for s in statements {
            match s {
                Stmt::Let(name, value) => drop(self.lets.insert(name, value)),
                Stmt::Do(Expr::Call(name, of)) => self.calls.push((in_task, name, of)),
                Stmt::If(arms, last) => {
                    arms.iter().for_each(|a| self.add(&a.1, in_task));
                    self.add(last, in_task);
                }
                Stmt::Block(name, body) | Stmt::Function(name, _, body) => {
                    self.add(body, in_task || name.starts_with("thread_"));
                }
                Stmt::For(_, _, body) => self.add(body, in_task),
                _ => {}
            }
        }
    }

    /// Returns the calls of a function in declarations: the declared names with the arguments.
    fn declared(&self, function: &str) -> Vec<(&'a str, &'a [Expr])> {
        let call = |(name, e): (&&'a str, &&'a Expr)| match *e {
            Expr::Call(call, of) if call == function => Some((*name, &of[..])),
            _ => None,
        };
        self.lets.iter().filter_map(call).collect()
    }

    fn calls_of(&self, function: &str) -> impl Iterator<Item = &'a [Expr]> {
        self.calls.iter().filter(move |c| c.1 == function).map(|c| c.2)
    }

    /// Returns the numbers of the ids that a function makes; they must be in `legal` and differ.
    fn ids(&self, function: &str, legal: &[u64]) -> BTreeSet<u64> {
        let all: Vec<u64> = self.declared(function).iter().map(|d| d.1[0].int()).collect();
        let ids: BTreeSet<u64> = all.iter().copied().collect();
        assert_eq!(ids.len(), all.len(), "{}: two names of one id of {function}", self.file);
        assert!(ids.iter().all(|id| legal.contains(id)), "{}: {ids:?} of {function}", self.file);
        ids
    }

    fn check(&self, layout: &Layout, machine: &Machine) {
        let file = self.file;
        let tasks = self.ids("@get_local_task_id", machine.tasks);
        let taken = layout.colors.values().find(|c| machine.launches && tasks.contains(c));
        assert!(taken.is_none(), "{file}: color {taken:?} and a task have one id");
        self.ids("@get_ut_id", machine.microthreads);
        self.ids("@get_input_queue", machine.input_queues);
        self.ids("@get_output_queue", machine.output_queues);
        let exports: BTreeSet<_> =
            self.calls_of("@export_symbol").map(|of| exported(&of[of.len() - 1]).to_owned()).collect();
        assert_eq!(exports, layout.exports, "{file}: the exported names");
        assert_eq!(self.calls_of("@rpc").count(), usize::from(machine.launches), "{file}: @rpc");
        let blocked: Vec<_> = self.calls_of("@block").map(|of| of[0].name()).collect();
        assert!(machine.launches || blocked.is_empty(), "{file}: {blocked:?} are blocked");
        let is_task = |name: &&str| self.lets.contains_key(*name);
        assert!(!blocked.iter().any(is_task), "{file}: a task is blocked");
        self.check_memory();
        self.check_queues();
        for (in_task, builtin, of) in self.calls.iter().filter(|c| ARITY.iter().any(|a| a.0 == c.1)) {
            self.check_operation(*in_task, builtin, of, machine);
        }
    }

    fn size(&self, array: &str) -> u64 {
        match self.lets.get(array) {
            Some(Expr::Call(call, of)) if ["@zeros", "@constants"].contains(&call.as_str()) => match of[0] {
                Expr::Array(n) => n,
                _ => panic!("{}: the size of {array}", self.file),
            },
            _ => panic!("{}: no array {array}", self.file),
        }
    }

    fn check_memory(&self) {
        let arrays = ["@zeros", "@constants"].iter().flat_map(|call| self.declared(call));
        // All types of elements have 4 bytes.
        let bytes: u64 = arrays.map(|(name, _)| 4 * self.size(name)).sum();
        assert!(bytes <= MEMORY, "{}: {bytes} bytes of memory", self.file);
        for e in self.lets.values() {
            if let Expr::Address(array) = e {
                self.size(array);
            }
        }
    }

    /// Checks that each queue has its color, and that all sends on a color use one queue.
    fn check_queues(&self) {
        let bound: BTreeMap<_, _> = self
            .calls_of("@initialize_queue")
            .map(|of| (of[0].name(), of[1].field("color").expect("a queue without a color").name()))
            .collect();
        let mut sends = BTreeMap::new();
        for (name, of) in self.declared("@get_dsd") {
            let queue = |side: &str| of[1].field(side).map(Expr::name);
            let color = of[1].field("fabric_color").map(Expr::name);
            if let Some(input) = queue("input_queue") {
                let its = bound.get(input);
                assert!(its.is_some() && color.is_none_or(|c| its == Some(&c)), "{}: the queue of {name}", self.file);
            }
            if let (Some(output), Some(color)) = (queue("output_queue"), color) {
                assert_eq!(*sends.entry(color).or_insert(output), output, "{}: two queues send {color}", self.file);
                assert!(bound.get(output).is_none_or(|c| *c == color), "{}: the queue of {name}", self.file);
            }
        }
    }

    fn check_operation(&self, in_task: bool, builtin: &str, of: &[Expr], machine: &Machine) {
        let file = self.file;
        let names: Vec<&str> = of
            .iter()
            .filter_map(|e| match e {
                Expr::Name(name) if name != "operator.combine" => Some(name.as_str()),
                _ => None,
            })
            .collect();
        let arity = ARITY.iter().find(|a| a.0 == builtin).unwrap().1;
        assert_eq!(names.len(), arity, "{file}: operands of {builtin}");
        let descriptor = |name: &&str| match self.lets.get(*name) {
            Some(Expr::Call(call, of)) if call == "@get_dsd" => (of[0].name(), &of[1]),
            _ => panic!("{file}: {name} is no descriptor"),
        };
        let mut operands: Vec<_> = names.iter().map(descriptor).collect();
        if builtin == "@map" {
            // The destination of `@map` is its last operand.
            operands.rotate_right(1);
        }
        let kinds: Vec<&str> = operands.iter().map(|o| o.0).collect();
        assert!(kinds[1..] != ["fabin_dsd", "mem1d_dsd"], "{file}: a fabric source before one in memory");
        let extent = |&(_, fields): &(&str, &Expr)| match fields.field("tensor_access") {
            Some(Expr::Access(extent, array, start)) => {
                assert!(start + extent <= self.size(array), "{file}: {array}[{start}..{}]", start + extent);
                *extent
            }
            _ => fields.field("extent").map_or(1, Expr::int),
        };
        let extents: Vec<u64> = operands.iter().map(extent).collect();
        assert!(extents.iter().all(|e| (1..=LONGEST).contains(e)), "{file}: lengths {extents:?}");
        if let Some(queue) = operands[0].1.field("output_queue").filter(|_| operands[0].1.field("control").is_some()) {
            let Some(Expr::Access(_, array, _)) = operands[1].1.field("tensor_access") else {
                panic!("{file}: a control wavelet on {queue:?} from the fabric")
            };
            let word = match self.lets[array.as_str()] {
                Expr::Call(call, of) if call == "@constants" => of[1].int(),
                _ => panic!("{file}: {array} is no constant"),
            };
            assert_eq!(word, ADVANCE, "{file}: the command of a control wavelet");
        }
        let is_asynchronous = of.last().is_some_and(|o| o.field("async").is_some());
        let uses_fabric = kinds.iter().any(|k| *k != "mem1d_dsd");
        assert_eq!(is_asynchronous, in_task && uses_fabric, "{file}: an operation runs by itself, or should");
        let chooses = of.last().is_some_and(|o| o.field("ut_id").is_some());
        assert_eq!(
            chooses,
            is_asynchronous && !machine.microthreads.is_empty(),
            "{file}: the microthread of {builtin}"
        );
    }
}

const ARITY: [(&str, usize); 6] =
    [("@fmovs", 2), ("@mov32", 2), ("@fadds", 3), ("@fmaxs", 3), ("@fmuls", 3), ("@map", 3)];

/// Returns the name under which the host finds a symbol.
fn exported(e: &Expr) -> &str {
    match e {
        Expr::Text(name) | Expr::Name(name) => name,
        other => panic!("{other:?} is exported"),
    }
}
