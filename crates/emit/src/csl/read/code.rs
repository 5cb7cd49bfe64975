//! A program file: what it declares, and what its functions and tasks do.

use std::collections::BTreeMap;

use super::{
    ReadError, Threads,
    threads::Bodies,
    tree::{Expr, Stmt, StmtKind},
};

/// A vector operand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Descriptor {
    Memory { array: String, start: u64, extent: u64 },
    In { color: String, queue: String, extent: u64 },
    Out { color: String, queue: String, extent: u64, control: bool, advance: bool },
}

impl Descriptor {
    pub fn extent(&self) -> u64 {
        match self {
            Descriptor::Memory { extent, .. } | Descriptor::In { extent, .. } | Descriptor::Out { extent, .. } => {
                *extent
            }
        }
    }

    pub fn is_memory(&self) -> bool {
        matches!(self, Descriptor::Memory { .. })
    }
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Code {
    pub params: Vec<String>,
    /// Elements and type.
    pub arrays: BTreeMap<String, (u64, String)>,
    /// The value of an array of one word.
    pub words: BTreeMap<String, u64>,
    /// Names of pointers and the arrays they point to.
    pub pointers: BTreeMap<String, String>,
    pub input_queues: BTreeMap<String, u64>,
    pub output_queues: BTreeMap<String, u64>,
    pub tasks: BTreeMap<String, u64>,
    pub microthreads: BTreeMap<String, u64>,
    /// Counters and flags, with their first value.
    pub counters: BTreeMap<String, u64>,
    pub descriptors: BTreeMap<String, Descriptor>,
    pub threads: Threads,
    /// Tasks and the ids they are bound to.
    pub binds: Vec<(String, String)>,
    /// Queues and their colors.
    pub queue_colors: Vec<(String, String)>,
    pub blocked: Vec<String>,
    pub unblocked: Vec<String>,
    /// Names the host sees.
    pub exports: Vec<String>,
    pub rpc: bool,
}

impl Code {
    pub fn from_tree(file: &str, statements: &[Stmt]) -> Result<Self, ReadError> {
        let mut code = Code::default();
        let mut bodies = Bodies::default();
        for s in statements {
            let fail = |message: String| ReadError::new(file, s.line, message);
            match &s.kind {
                StmtKind::Param(name, _) => code.params.push(name.clone()),
                StmtKind::Let { name, value } => code.declare(name, value).map_err(fail)?,
                StmtKind::Block("fn", name, body) if name == "compute" => bodies.compute = Some(body),
                StmtKind::Block("task", name, body) => bodies.tasks.push((name, body)),
                StmtKind::Block("comptime", _, body) => {
                    for s in body {
                        let fail = |message| ReadError::new(file, s.line, message);
                        code.setup(&s.kind).map_err(fail)?;
                    }
                }
                _ => {
                    return Err(fail("a program file has declarations, `compute`, tasks and `comptime`".to_owned()));
                }
            }
        }
        code.name_colors().map_err(|message| ReadError::new(file, 1, message))?;
        code.threads = bodies.read(file)?;
        Ok(code)
    }

    fn declare(&mut self, name: &str, value: &Expr) -> Result<(), String> {
        let unknown = || format!("the value of `{name}` is not emitted");
        let key = name.to_owned();
        let is_new = match value {
            Expr::Address(array) => self.pointers.insert(key, array.clone()).is_none(),
            Expr::Int(n) => self.counters.insert(key, *n).is_none(),
            Expr::Name(flag) if flag == "false" => self.counters.insert(key, 0).is_none(),
            Expr::Call(function, args) => match (function.as_str(), &args[..]) {
                ("@import_module", _) => true,
                ("@zeros", [Expr::Array(Some(n), of)]) => self.arrays.insert(key, (*n, of.clone())).is_none(),
                ("@constants", [Expr::Array(Some(1), of), Expr::Int(word)]) => {
                    self.words.insert(key.clone(), *word);
                    self.arrays.insert(key, (1, of.clone())).is_none()
                }
                ("@get_input_queue", [Expr::Int(q)]) => self.input_queues.insert(key, *q).is_none(),
                ("@get_output_queue", [Expr::Int(q)]) => self.output_queues.insert(key, *q).is_none(),
                ("@get_local_task_id", [Expr::Int(id)]) => self.tasks.insert(key, *id).is_none(),
                ("@get_ut_id", [Expr::Int(id)]) => self.microthreads.insert(key, *id).is_none(),
                ("@get_dsd", [Expr::Name(kind), fields]) => {
                    let descriptor = descriptor(kind, fields).ok_or_else(unknown)?;
                    self.descriptors.insert(key, descriptor).is_none()
                }
                _ => return Err(unknown()),
            },
            _ => return Err(unknown()),
        };
        if is_new { Ok(()) } else { Err(format!("`{name}` is declared twice")) }
    }

    /// Gives operands that name their queue alone the color of that queue.
    fn name_colors(&mut self) -> Result<(), String> {
        for (name, descriptor) in &mut self.descriptors {
            if let Descriptor::In { color, queue, .. } = descriptor
                && color.is_empty()
            {
                let given = self.queue_colors.iter().find(|q| q.0 == *queue);
                color.clone_from(&given.ok_or_else(|| format!("`{name}` has no color, and its queue has none"))?.1);
            }
        }
        Ok(())
    }

    fn setup(&mut self, s: &StmtKind) -> Result<(), String> {
        let StmtKind::Do(Expr::Call(name, args)) = s else {
            return Err("the setup has calls only".to_owned());
        };
        match (name.as_str(), &args[..]) {
            ("@bind_local_task", [Expr::Name(task), Expr::Name(id)]) => {
                self.binds.push((task.clone(), id.clone()));
            }
            ("@initialize_queue", [Expr::Name(queue), fields]) => {
                let color = fields.field("color").and_then(Expr::name);
                let color = color.ok_or("a queue is given its color")?;
                self.queue_colors.push((queue.clone(), color.to_owned()));
            }
            ("@block", [Expr::Name(name)]) => self.blocked.push(name.clone()),
            ("@unblock", [Expr::Name(name)]) => self.unblocked.push(name.clone()),
            ("@rpc", [_]) => self.rpc = true,
            ("@export_symbol", [Expr::Name(name)] | [_, Expr::Str(name)]) => self.exports.push(name.clone()),
            _ => {
                return Err(format!("`{name}` with {} arguments is not emitted", args.len()));
            }
        }
        Ok(())
    }
}

fn descriptor(kind: &str, fields: &Expr) -> Option<Descriptor> {
    if kind == "mem1d_dsd" {
        let Some(Expr::Access { extent, array, offset }) = fields.field("tensor_access") else {
            return None;
        };
        return Some(Descriptor::Memory { array: array.clone(), start: *offset, extent: *extent });
    }
    let extent = fields.field("extent")?.int()?;
    let name = |field: &str| Some(fields.field(field)?.name()?.to_owned());
    let on = |field: &str| fields.field(field).is_some_and(Expr::is_true);
    match kind {
        // Where queues have colors, an operand may leave its own out.
        "fabin_dsd" => {
            let color = name("fabric_color").unwrap_or_default();
            Some(Descriptor::In { color, queue: name("input_queue")?, extent })
        }
        "fabout_dsd" => Some(Descriptor::Out {
            color: name("fabric_color")?,
            queue: name("output_queue")?,
            extent,
            control: on("control"),
            advance: on("advance_switch"),
        }),
        _ => None,
    }
}
