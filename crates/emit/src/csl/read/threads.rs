//! What a program file does: one sequence of vector operations, or tasks of which each is a thread.

use super::{
    ReadError,
    layout::range_of,
    machine::Thread,
    tree::{Expr, Stmt, StmtKind},
};
use crate::csl::write::{MAP, OPERATOR_FUNCTION};

/// A vector operation as called.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    pub line: u32,
    pub builtin: String,
    /// Names of descriptors, the destination first.
    pub operands: Vec<String>,
    /// Runs as a microthread, beside the task that started it.
    pub asynchronous: bool,
    /// The id of the task that is activated when it has ended.
    pub activates: Option<String>,
    /// The microthread that the program chooses.
    pub microthread: Option<String>,
    pub phase: u16,
    /// Goes on with the operation before.
    pub more: bool,
    /// Sends what the operation before has kept.
    pub onward: bool,
}

/// An operation in its place: `waits` are `(thread, steps of it that must have ended)`.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    pub run: Run,
    pub waits: Vec<(u32, u64)>,
    pub moves: Vec<Move>,
    /// The step ends a loop over chunks: its first step, and how often it runs.
    pub end_of: Option<(usize, u64)>,
}

/// A descriptor that moves on by so many elements after a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Move {
    pub descriptor: String,
    pub elements: u64,
}

impl Step {
    pub fn new(run: Run) -> Self {
        Self { run, waits: Vec::new(), moves: Vec::new(), end_of: None }
    }
}

/// `d = @increment_dsd_offset(d, 8, f32);`
pub fn moved(s: &StmtKind) -> Option<Move> {
    let StmtKind::Assign { name, operator: "=", value } = s else { return None };
    match value.call("@increment_dsd_offset")? {
        [Expr::Name(same), Expr::Int(elements), Expr::Name(_)] if same == name => {
            Some(Move { descriptor: name.clone(), elements: *elements })
        }
        _ => None,
    }
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Threads {
    /// Tasks run the threads; otherwise `compute` runs the only one.
    pub asynchronous: bool,
    pub steps: Vec<Vec<Step>>,
    /// For each thread, `(steps that have ended, thread that is told)`.
    pub signals: Vec<Vec<(u64, u32)>>,
    /// For each thread, whether its end leads to the end of the program.
    pub ends: Vec<bool>,
    /// Ids that `compute` activates.
    pub started: Vec<String>,
}

/// Operations that a file may hold with its loops unrolled.
pub const MOST_STEPS: usize = 1 << 20;

#[derive(Default)]
pub struct Bodies<'a> {
    pub compute: Option<&'a [Stmt]>,
    pub tasks: Vec<(&'a str, &'a [Stmt])>,
}

impl Bodies<'_> {
    pub fn read(&self, file: &str) -> Result<Threads, ReadError> {
        let compute =
            self.compute.ok_or_else(|| ReadError::new(file, 1, "the program file has no function `compute`"))?;
        let mut threads = Threads::default();
        if self.tasks.is_empty() {
            let mut sequence = Sequence::default();
            sequence.read(compute).map_err(|(line, e)| ReadError::new(file, line, e))?;
            threads.ends.push(sequence.ends);
            threads.steps.push(sequence.steps);
            threads.signals.push(Vec::new());
            return Ok(threads);
        }
        threads.asynchronous = true;
        for s in compute {
            match &s.kind {
                StmtKind::Do(e) if activated(e).is_some() => {
                    threads.started.extend(activated(e).map(str::to_owned));
                }
                _ => {
                    return Err(ReadError::new(file, s.line, "`compute` only activates tasks"));
                }
            }
        }
        for (number, (name, body)) in self.tasks.iter().enumerate() {
            let line = body.first().map_or(1, |s| s.line);
            let fail = |message: String| ReadError::new(file, line, format!("task `{name}`: {message}"));
            if *name != format!("thread_{number}") {
                return Err(fail(format!("tasks are `thread_0`, `thread_1` and so on; this is number {number}")));
            }
            let mut thread = Thread { number, ..Thread::default() };
            thread.read(body).map_err(fail)?;
            threads.steps.push(thread.steps);
            threads.signals.push(thread.signals);
            threads.ends.push(thread.ends);
        }
        Ok(threads)
    }
}

pub fn activated(e: &Expr) -> Option<&str> {
    match e.call("@activate")? {
        [id] => id.name(),
        _ => None,
    }
}

pub fn is_unblock(e: &Expr) -> bool {
    e.call("sys_mod.unblock_cmd_stream").is_some_and(<[Expr]>::is_empty)
}

/// Phase and continuation said by notes before an operation.
#[derive(Default, Clone, Copy)]
pub struct Notes {
    phase: u16,
    more: bool,
    onward: bool,
}

impl Notes {
    pub fn take(&mut self, note: &str) -> Result<(), String> {
        if note == "more" {
            self.more = true;
            return Ok(());
        }
        if note == "onward" {
            self.onward = true;
            return Ok(());
        }
        let phase = note.strip_prefix("phase ").and_then(|n| n.parse().ok());
        self.phase = phase.ok_or_else(|| format!("the note `{note}` is not emitted"))?;
        Ok(())
    }
}

/// A call of a vector operation.
pub fn run(line: u32, e: &Expr, notes: &mut Notes) -> Result<Run, String> {
    let Expr::Call(builtin, args) = e else {
        return Err("an operation is a call".to_owned());
    };
    if !builtin.starts_with('@') || builtin == "@activate" {
        return Err(format!("`{builtin}` is not a vector operation"));
    }
    let (mut operands, mut activates, mut microthread, mut asynchronous) = (Vec::new(), None, None, false);
    let args = match &args[..] {
        [Expr::Name(function), operands @ ..] if builtin == MAP && function == OPERATOR_FUNCTION => operands,
        _ if builtin == MAP => return Err(format!("`{MAP}` applies `{OPERATOR_FUNCTION}` only")),
        all => all,
    };
    for arg in args {
        match arg {
            Expr::Name(name) => operands.push(name.clone()),
            Expr::Struct(_) if arg.field("async").is_some_and(Expr::is_true) => {
                asynchronous = true;
                activates = arg.field("activate").and_then(Expr::name).map(str::to_owned);
                microthread = arg.field("ut_id").and_then(Expr::name).map(str::to_owned);
            }
            _ => {
                return Err(format!("an operand of `{builtin}` is not the name of a descriptor"));
            }
        }
    }
    if builtin == MAP {
        // Its destination is the last operand.
        let behind = operands.len().min(1);
        operands.rotate_right(behind);
    }
    Ok(Run {
        line,
        builtin: builtin.clone(),
        operands,
        asynchronous,
        activates,
        microthread,
        phase: notes.phase,
        more: std::mem::take(&mut notes.more),
        onward: std::mem::take(&mut notes.onward),
    })
}

/// The body of `compute` where it runs everything.
#[derive(Default)]
struct Sequence {
    notes: Notes,
    steps: Vec<Step>,
    ends: bool,
}

impl Sequence {
    fn read(&mut self, body: &[Stmt]) -> Result<(), (u32, String)> {
        for s in body {
            let at = |e: String| (s.line, e);
            match &s.kind {
                StmtKind::Note(note) => self.notes.take(note).map_err(at)?,
                StmtKind::For { range, body, .. } => {
                    let rounds = range_of(range).ok_or_else(|| at("a loop goes over `@range(u16, ..)`".to_owned()))?;
                    let first = self.steps.len();
                    if body.iter().any(|s| moved(&s.kind).is_some()) {
                        self.read(body)?;
                        let last = self.steps[first..].last_mut();
                        match last.filter(|s| s.end_of.is_none()) {
                            Some(last) => last.end_of = Some((first, rounds.size_hint().0 as u64)),
                            _ => return Err(at("a loop over chunks of no operations, or in another".to_owned())),
                        }
                        continue;
                    }
                    for _ in rounds {
                        let before = self.steps.len();
                        self.read(body)?;
                        if self.steps.len() > MOST_STEPS || self.steps.len() == before {
                            return Err(at(format!("a loop of no operations, or of more than {MOST_STEPS}")));
                        }
                    }
                }
                StmtKind::Do(e) if is_unblock(e) => self.ends = true,
                StmtKind::Do(e) => {
                    let run = run(s.line, e, &mut self.notes).map_err(at)?;
                    self.steps.push(Step::new(run));
                }
                _ if moved(&s.kind).is_some() => match self.steps.last_mut() {
                    Some(step) => step.moves.extend(moved(&s.kind)),
                    None => return Err(at("a descriptor moves before an operation".to_owned())),
                },
                _ => return Err(at("`compute` has operations and loops of them".to_owned())),
            }
        }
        Ok(())
    }
}
