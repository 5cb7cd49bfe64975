//! One PE: its memory, tasks and vector operations.

use std::collections::{BTreeMap, VecDeque};

use super::{
    DEPTH, Router, Wavelet,
    layout::{RAMP, Tile},
    syntax::{Expr, Stmt},
};

#[derive(Clone, Debug)]
enum Value {
    Number(u64),
    Queue {
        input: bool,
        id: u64,
    },
    Task(u64),
    Microthread(u64),
    Dsd(Dsd),
    /// The address of an array.
    Pointer(String),
    Other,
}

#[derive(Clone, Debug)]
enum Dsd {
    Memory {
        array: String,
        start: u64,
        extent: u64,
    },
    /// One word, repeated `extent` times.
    Word {
        array: String,
        extent: u64,
    },
    In {
        color: u64,
        queue: u64,
        extent: u64,
    },
    Out {
        color: u64,
        queue: u64,
        extent: u64,
        control: bool,
        advance: bool,
    },
}

impl Dsd {
    fn extent(&self) -> u64 {
        match self {
            Dsd::Memory { extent, .. }
            | Dsd::Word { extent, .. }
            | Dsd::In { extent, .. }
            | Dsd::Out { extent, .. } => *extent,
        }
    }
}

struct Operation {
    builtin: String,
    operands: Vec<Dsd>,
    done: u64,
    /// Task that the end of the operation activates; `None` if `compute` waits for the operation.
    activates: Option<u64>,
    /// Microthread that the program chose.
    chosen: Option<u64>,
}

impl Operation {
    /// Returns the queues of the operation, and the microthread if it is asynchronous.
    fn held(&self) -> (Vec<(bool, u64)>, Option<u64>) {
        let queue = |d: &Dsd| match d {
            Dsd::In { queue, .. } => Some((true, *queue)),
            Dsd::Out { queue, .. } => Some((false, *queue)),
            Dsd::Memory { .. } | Dsd::Word { .. } => None,
        };
        let held: Vec<_> = self.operands.iter().filter_map(queue).collect();
        let named = held.iter().find(|q| !q.0).or(held.first()).map(|q| q.1);
        let thread = self.activates.and(self.chosen.or(named));
        (held, thread)
    }
}

#[derive(Default)]
pub struct Pe {
    values: BTreeMap<String, Value>,
    arrays: BTreeMap<String, Vec<f32>>,
    tasks: BTreeMap<u64, Vec<Stmt>>,
    functions: BTreeMap<String, Vec<Stmt>>,
    /// Value of the PE's clock in round 0.
    clock: u64,
    now: u64,
    /// Samples of the clock, by the array that holds them.
    pub samples: BTreeMap<String, u64>,
    /// Remaining statements of the launched function, with loops unrolled.
    sequence: VecDeque<Stmt>,
    active: VecDeque<u64>,
    running: Vec<Operation>,
    /// Function that `@map` applies.
    operator: Option<fn(f32, f32) -> f32>,
    pub ended: u32,
    /// True if the rules of the WSE-3 apply.
    is_wse3: bool,
    /// Color of each queue, by the queue's name.
    bound: BTreeMap<String, u64>,
}

/// The color of an operand whose queue has no color: no wavelet arrives, and the machine reports no error.
const UNBOUND: u64 = u64::MAX;

impl Pe {
    pub fn new(
        program: &[Stmt],
        tile: &Tile,
        input: &[f32],
        operator: Option<fn(f32, f32) -> f32>,
        is_wse3: bool,
    ) -> Self {
        let colors = tile.colors.iter().map(|(name, color)| (name.clone(), Value::Number(*color)));
        let flags = tile.flags.iter().map(|(name, flag)| (name.clone(), Value::Number(u64::from(*flag))));
        let values = colors.chain(flags).collect();
        let mut pe = Self { values, operator, is_wse3, ..Self::default() };
        for s in program {
            if let Stmt::Block(name, body) = s
                && name == "comptime"
            {
                pe.bind_queues(body);
            }
        }
        for s in program {
            match s {
                Stmt::Let(name, value) => pe.declare(name, value),
                Stmt::Block(name, body) if name == "comptime" => pe.bind(body),
                Stmt::Block(name, body) => drop(pe.functions.insert(name.clone(), body.clone())),
                _ => {}
            }
        }
        pe.set_input(input);
        pe
    }

    pub fn set_input(&mut self, input: &[f32]) {
        self.arrays.get_mut("input").unwrap()[..input.len()].copy_from_slice(input);
    }

    pub fn launch(&mut self, function: &str) {
        self.ended = 0;
        self.sequence = unrolled(&self.functions[function]);
    }

    pub fn set_clock(&mut self, clock: u64) {
        self.clock = clock;
    }

    pub fn set(&mut self, array: &str, value: f32) {
        self.arrays.get_mut(array).unwrap()[0] = value;
    }

    pub fn output(mut self) -> Vec<f32> {
        self.arrays.remove("output").unwrap()
    }

    /// Returns the vector that the host reads back.
    pub fn result(&self) -> &[f32] {
        &self.arrays["output"]
    }

    fn declare(&mut self, name: &str, value: &Expr) {
        let made = match value {
            Expr::Int(n) => Value::Number(*n),
            Expr::Name(flag) if flag == "false" => Value::Number(0),
            Expr::Address(array) => Value::Pointer(array.clone()),
            Expr::Call(call, of) => match call.as_str() {
                "@zeros" | "@constants" => {
                    let Expr::Array(n) = of[0] else { panic!() };
                    self.arrays.insert(name.to_owned(), vec![0.0; n as usize]);
                    Value::Other
                }
                "@get_input_queue" => Value::Queue { input: true, id: self.queue(&of[0]) },
                "@get_output_queue" => Value::Queue { input: false, id: self.queue(&of[0]) },
                "@get_ut_id" => {
                    assert!(self.is_wse3 && of[0].int() < 8, "microthreads are chosen on the WSE-3, of 8");
                    Value::Microthread(of[0].int())
                }
                "@get_local_task_id" => Value::Task(of[0].int()),
                "@get_dsd" => Value::Dsd(self.dsd(&of[0], &of[1])),
                _ => Value::Other,
            },
            _ => Value::Other,
        };
        assert!(self.values.insert(name.to_owned(), made).is_none(), "`{name}` twice");
    }

    /// Returns the number of a queue. The WSE-3 has queues 2 to 7 besides those of the host link.
    fn queue(&self, e: &Expr) -> u64 {
        assert!(!self.is_wse3 || (2..8).contains(&e.int()), "queue {e:?}");
        e.int()
    }

    /// Records the colors of queues.
    fn bind_queues(&mut self, body: &[Stmt]) {
        for s in body {
            match s {
                Stmt::If(arms, last) => {
                    let arm = arms.iter().find(|a| self.number(&a.0) == 1);
                    let body = arm.map_or(last, |a| &a.1).clone();
                    self.bind_queues(&body);
                }
                Stmt::Do(Expr::Call(call, of)) if call == "@initialize_queue" => {
                    let color = self.number(of[1].field("color").unwrap());
                    let before = self.bound.insert(of[0].name().to_owned(), color);
                    assert!(before.is_none(), "a queue with two colors");
                }
                Stmt::Do(Expr::Call(call, _)) => {
                    let is_old = ["@block", "@rpc"].contains(&call.as_str());
                    assert!(!(self.is_wse3 && is_old), "{call} on the WSE-3");
                }
                _ => {}
            }
        }
    }

    fn dsd(&self, kind: &Expr, fields: &Expr) -> Dsd {
        if let Some(Expr::Access(extent, array, start)) = fields.field("tensor_access") {
            return Dsd::Memory { array: array.clone(), start: *start, extent: *extent };
        }
        if let Some(Expr::Call(function, _)) = fields.field("base_address") {
            let extent = fields.field("extent").unwrap().int();
            return Dsd::Memory { array: self.pointed(function), start: 0, extent };
        }
        if let Some(Expr::Address(array)) = fields.field("base_address") {
            assert_eq!(fields.field("stride"), Some(&Expr::Int(0)));
            return Dsd::Word { array: array.clone(), extent: 1 };
        }
        let input = kind.name() == "fabin_dsd";
        let queue = fields.field(if input { "input_queue" } else { "output_queue" }).unwrap();
        let Value::Queue { input: is_input, id } = self.values[queue.name()] else { panic!() };
        assert_eq!(input, is_input);
        let on = |name: &str| fields.field(name).is_some();
        let bound = self.bound.get(queue.name()).copied().unwrap_or(UNBOUND);
        let given = fields.field("fabric_color").map(|e| self.number(e));
        // On the WSE-3, a queue without its color moves no wavelets.
        let color = if self.is_wse3 { bound } else { given.unwrap() };
        assert!(!self.is_wse3 || color == UNBOUND || given.is_none_or(|g| g == color), "a queue of another color");
        let extent = fields.field("extent").unwrap().int();
        if input {
            return Dsd::In { color, queue: id, extent };
        }
        Dsd::Out { color, queue: id, extent, control: on("control"), advance: on("advance_switch") }
    }

    /// Returns the array whose address a function returns.
    fn pointed(&self, function: &str) -> String {
        match &self.functions[function][..] {
            [Stmt::Return(Expr::Call(other, _))] => self.pointed(other),
            [Stmt::Return(Expr::Name(pointer))] => match &self.values[pointer] {
                Value::Pointer(array) => array.clone(),
                other => panic!("{pointer} is {other:?}"),
            },
            other => panic!("{function} returns {other:?}"),
        }
    }

    fn bind(&mut self, body: &[Stmt]) {
        for s in body {
            if let Stmt::Do(Expr::Call(call, of)) = s
                && call == "@bind_local_task"
            {
                let id = self.task(&of[1]);
                assert!(
                    self.tasks.insert(id, self.functions[of[0].name()].clone()).is_none(),
                    "two tasks with id {id}"
                );
            }
        }
    }

    fn number(&self, e: &Expr) -> u64 {
        match e {
            Expr::Int(n) => *n,
            Expr::Call(call, of) if call == "@get_color" => of[0].int(),
            Expr::Name(name) if name == "true" => 1,
            Expr::Name(name) if name == "false" => 0,
            Expr::Name(name) => match self.values[name] {
                Value::Number(n) => n,
                ref other => panic!("{name} is {other:?}"),
            },
            Expr::Less(a, b) => u64::from(self.number(a) < self.number(b)),
            Expr::Equal(a, b) => u64::from(self.number(a) == self.number(b)),
            Expr::Or(a, b) => self.number(a) | self.number(b),
            other => panic!("{other:?} is no number"),
        }
    }

    fn task(&self, e: &Expr) -> u64 {
        match self.values[e.name()] {
            Value::Task(id) => id,
            ref other => panic!("{other:?} is no task"),
        }
    }

    /// Runs one round. Returns whether a task, a statement of `compute`, or an element of an operation was executed.
    pub(super) fn turn(&mut self, routers: &mut [Router], now: u64) -> bool {
        self.now = now;
        let mut moved = false;
        if let Some(id) = self.active.pop_front() {
            let body = self.tasks[&id].clone();
            self.statements(&body);
            moved = true;
        }
        // `compute` waits for an operation that does not activate a task.
        while !self.running.iter().any(|o| o.activates.is_none())
            && let Some(s) = self.sequence.pop_front()
        {
            match self.called(&s) {
                Some(body) => body.into_iter().rev().for_each(|s| self.sequence.push_front(s)),
                None => self.statements(&[s]),
            }
            moved = true;
        }
        let mut n = 0;
        while n < self.running.len() {
            moved |= self.element(n, routers);
            let o = &self.running[n];
            if o.done == o.operands[0].extent() {
                let ended = self.running.remove(n);
                self.active.extend(ended.activates);
            } else {
                n += 1;
            }
        }
        moved
    }

    /// Returns the statements of a called function, or of the chosen arm of an `if`, to run next.
    fn called(&self, s: &Stmt) -> Option<VecDeque<Stmt>> {
        match s {
            Stmt::Do(Expr::Call(name, _)) => self.functions.get(name).map(|body| unrolled(body)),
            Stmt::If(arms, last) => {
                let arm = arms.iter().find(|a| self.number(&a.0) == 1);
                Some(unrolled(arm.map_or(last, |a| &a.1)))
            }
            _ => None,
        }
    }

    fn statements(&mut self, body: &[Stmt]) {
        for s in body {
            match s {
                Stmt::Assign(name, operator, value) => {
                    let now = match (operator.as_str(), value) {
                        ("=", Expr::Call(call, of)) if call == "@set_dsd_length" => {
                            let (Value::Dsd(Dsd::Word { array, .. }), Expr::Element(from, at)) =
                                (self.values[of[0].name()].clone(), &of[1])
                            else {
                                panic!()
                            };
                            Value::Dsd(Dsd::Word { array, extent: self.arrays[from][at.int() as usize] as u64 })
                        }
                        ("=", Expr::Call(call, of)) if call == "@get_dsd" => Value::Dsd(self.dsd(&of[0], &of[1])),
                        ("=", Expr::Call(call, of)) => {
                            assert_eq!(call, "@increment_dsd_offset");
                            let Value::Dsd(Dsd::Memory { array, start, extent }) = self.values[of[0].name()].clone()
                            else {
                                panic!()
                            };
                            Value::Dsd(Dsd::Memory { array, start: start + of[1].int(), extent })
                        }
                        ("=", value) => Value::Number(self.number(value)),
                        ("+=", value) => Value::Number(self.number(&Expr::Name(name.clone())) + self.number(value)),
                        (_, value) => Value::Number(self.number(&Expr::Name(name.clone())) - self.number(value)),
                    };
                    self.values.insert(name.clone(), now);
                }
                Stmt::If(arms, last) => {
                    let arm = arms.iter().find(|a| self.number(&a.0) == 1);
                    self.statements(arm.map_or(last, |a| &a.1));
                }
                Stmt::Do(Expr::Call(call, of)) => self.call(call, of),
                _ => panic!("{s:?} in a program"),
            }
        }
    }

    fn call(&mut self, call: &str, of: &[Expr]) {
        match call {
            "@activate" => {
                let id = self.task(&of[0]);
                assert!(!self.active.contains(&id), "a task is activated twice at once");
                self.active.push_back(id);
            }
            "sys_mod.unblock_cmd_stream" => self.ended += 1,
            function if let Some(body) = self.functions.get(function).cloned() => self.statements(&body),
            "time.enable_tsc" => {}
            "time.get_timestamp" => {
                let Expr::Address(array) = &of[0] else { panic!() };
                assert_eq!(self.arrays[array].len(), 3);
                self.samples.insert(array.clone(), self.clock + self.now);
            }
            _ => {
                let mut names: Vec<&Expr> = of.iter().filter(|e| matches!(e, Expr::Name(_))).collect();
                if call == "@map" {
                    assert_eq!(names.remove(0).name(), "operator.combine");
                    names.rotate_right(1);
                }
                let operand = |e: &Expr| match &self.values[e.name()] {
                    Value::Dsd(dsd) => dsd.clone(),
                    other => panic!("{other:?} is no operand"),
                };
                let operands: Vec<Dsd> = names.into_iter().map(operand).collect();
                assert!(operands.iter().all(|o| o.extent() == operands[0].extent()), "operands of unequal length");
                let activates = of.last().and_then(|o| o.field("activate")).map(|e| self.task(e));
                let all_memory = operands.iter().all(|o| matches!(o, Dsd::Memory { .. }));
                assert!(all_memory || call != "@map", "the task would wait for the fabric in `@map`");
                let chosen = of.last().and_then(|o| o.field("ut_id")).map(|e| match self.values[e.name()] {
                    Value::Microthread(id) => id,
                    ref other => panic!("{other:?} is no microthread"),
                });
                let from_fabric = operands[1..].iter().filter(|o| matches!(o, Dsd::In { .. })).count();
                assert!(!self.is_wse3 || from_fabric < 2, "two sources from the fabric");
                let new = Operation { builtin: call.to_owned(), operands, done: 0, activates, chosen };
                let (queues, thread) = new.held();
                for other in &self.running {
                    let (theirs, their_thread) = other.held();
                    assert!(queues.iter().all(|q| !theirs.contains(q)), "two operations on one queue");
                    assert!(thread.is_none() || thread != their_thread, "two operations on one microthread");
                }
                self.running.push(new);
                if all_memory {
                    // An operation in memory ends before the next statement.
                    let at = self.running.len() - 1;
                    while self.running[at].done < self.running[at].operands[0].extent() {
                        self.element(at, &mut []);
                    }
                    self.running.pop();
                }
            }
        }
    }

    /// Computes the next element of an operation, if all of its sources have, and its sink accepts, an element.
    fn element(&mut self, n: usize, routers: &mut [Router]) -> bool {
        let o = &mut self.running[n];
        let find = |color: u64, routers: &[Router]| routers.iter().position(|r| r.color == color).unwrap();
        for operand in &o.operands {
            let ready = match operand {
                Dsd::In { color, .. } => !routers[find(*color, routers)].arrived.is_empty(),
                Dsd::Out { color, .. } => routers[find(*color, routers)].waiting[RAMP].len() < DEPTH,
                Dsd::Memory { .. } | Dsd::Word { .. } => true,
            };
            if !ready {
                return false;
            }
        }
        let mut values = Vec::new();
        for source in &o.operands[1..] {
            values.push(match source {
                Dsd::In { color, .. } => routers[find(*color, routers)].arrived.pop_front().unwrap(),
                Dsd::Memory { array, start, .. } => self.arrays[array][(start + o.done) as usize],
                Dsd::Word { array, .. } => self.arrays[array][0],
                Dsd::Out { .. } => panic!("an output as a source"),
            });
        }
        let value = match (o.builtin.as_str(), &values[..]) {
            ("@fmovs" | "@mov32", [a]) => *a,
            ("@fadds", [a, b]) => a + b,
            ("@fmaxs", [a, b]) => a.max(*b),
            ("@fmuls", [a, b]) => a * b,
            ("@map", [a, b]) => self.operator.unwrap()(*a, *b),
            (other, _) => panic!("{other} of {} sources", values.len()),
        };
        match &o.operands[0] {
            Dsd::Memory { array, start, .. } => {
                self.arrays.get_mut(array).unwrap()[(start + o.done) as usize] = value;
            }
            Dsd::Out { color, extent, control, advance, .. } => {
                let last = o.done + 1 == *extent;
                let wavelet = if *control { Wavelet::Control } else { Wavelet::Data(value, *advance && last) };
                routers[find(*color, routers)].waiting[RAMP].push_back((wavelet, self.now));
            }
            Dsd::Word { array, .. } => self.arrays.get_mut(array).unwrap()[0] = value,
            Dsd::In { .. } => panic!("an input as a destination"),
        }
        o.done += 1;
        true
    }
}

fn unrolled(body: &[Stmt]) -> VecDeque<Stmt> {
    let mut all = VecDeque::new();
    for s in body {
        match s {
            Stmt::For(Expr::Call(_, range), _, body) => {
                (0..range[1].int()).for_each(|_| all.extend(unrolled(body)));
            }
            other => all.push_back(other.clone()),
        }
    }
    all
}
