//! A task as a thread: a choice by the number of the step to start, with waits, signals and the end.

use super::{
    threads::{Move, Notes, Run, Step, activated, is_unblock, moved, run},
    tree::{Expr, Stmt, StmtKind},
};

#[derive(Default)]
pub struct Thread {
    pub number: usize,
    pub steps: Vec<Step>,
    pub signals: Vec<(u64, u32)>,
    pub ends: bool,
}

/// The first step and the rounds of a loop that a step ends, if it ends one.
type EndOf = Option<(usize, u64)>;

impl Thread {
    pub fn read(&mut self, body: &[Stmt]) -> Result<(), String> {
        let t = self.number;
        let [Stmt { kind, .. }] = body else {
            return Err("its body is one choice by `step`".to_owned());
        };
        match kind {
            StmtKind::If { arms, otherwise } => {
                for (n, (condition, body)) in arms.iter().enumerate() {
                    if *condition != compare(&format!("step_{t}"), "==", n as u64) {
                        return Err(format!("choice {n} is not `step_{t} == {n}`"));
                    }
                    let rest = self.signal(body, n as u64)?;
                    self.step(rest, n as u64)?;
                }
                let rest = self.signal(otherwise, arms.len() as u64)?;
                self.ends = ends(rest);
                Ok(())
            }
            _ => Err("its body is one choice by `step`".to_owned()),
        }
    }

    /// Takes off `if (done_t < n) { done_t = n; if (waiting_w) { .. } }`.
    fn signal<'a>(&mut self, body: &'a [Stmt], n: u64) -> Result<&'a [Stmt], String> {
        let done = format!("done_{}", self.number);
        let Some((Stmt { kind: StmtKind::If { arms, otherwise }, .. }, rest)) = body.split_first() else {
            return Ok(body);
        };
        let [(condition, told)] = &arms[..] else {
            return Ok(body);
        };
        if *condition != compare(&done, "<", n) || !otherwise.is_empty() {
            return Ok(body);
        }
        let [first, told @ ..] = &told[..] else {
            return Err(format!("`{done}` is not set"));
        };
        if first.kind != set(&done, n) {
            return Err(format!("`{done}` is not set to {n}"));
        }
        for s in told {
            let waiting = wakes(&s.kind).ok_or("a thread that waits is not woken as emitted")?;
            self.signals.push((n, waiting));
        }
        Ok(rest)
    }

    fn step(&mut self, body: &[Stmt], n: u64) -> Result<(), String> {
        let t = self.number;
        let (waits, body) = match body {
            [Stmt { kind: StmtKind::If { arms, otherwise }, .. }] => {
                let [(condition, waiting)] = &arms[..] else {
                    return Err(format!("step {n} waits for one condition"));
                };
                let flag = StmtKind::Assign {
                    name: format!("waiting_{t}"),
                    operator: "=",
                    value: Expr::Name("true".to_owned()),
                };
                if !matches!(&waiting[..], [s] if s.kind == flag) {
                    return Err(format!("step {n} does not state that it waits"));
                }
                (unmet(condition)?, &otherwise[..])
            }
            _ => (Vec::new(), body),
        };
        let (end_of, rest) = self.next(body, n)?;
        let mut notes = Notes::default();
        let mut found: Option<Run> = None;
        let mut moves: Vec<Move> = Vec::new();
        for s in rest {
            match (&s.kind, &mut found) {
                (kind, Some(_)) if moved(kind).is_some() => moves.extend(moved(kind)),
                (StmtKind::Note(note), None) => notes.take(note)?,
                (StmtKind::Do(e), None) => found = Some(run(s.line, e, &mut notes)?),
                // An operation in memory ends before the task does, which activates itself.
                (StmtKind::Do(e), Some(r)) if !r.asynchronous && activated(e).is_some() => {
                    r.activates = activated(e).map(str::to_owned);
                }
                _ => return Err(format!("step {n} is one operation")),
            }
        }
        let run = found.ok_or_else(|| format!("step {n} has no operation"))?;
        self.steps.push(Step { run, waits, moves, end_of });
        Ok(())
    }

    /// Takes off `step_t = n + 1;`, or the end of a loop: `round_t += 1;`, then `if (round_t < rounds) { step_t =
    /// first; } else { round_t = 0; step_t = n + 1; }`.
    fn next<'a>(&self, body: &'a [Stmt], n: u64) -> Result<(EndOf, &'a [Stmt]), String> {
        let t = self.number;
        let (step, round) = (format!("step_{t}"), format!("round_{t}"));
        let on = set(&step, n + 1);
        let count = StmtKind::Assign { name: round.clone(), operator: "+=", value: Expr::Int(1) };
        let wrong = || format!("step {n} does not go on to step {}", n + 1);
        match body {
            [] => Err(format!("step {n} is empty")),
            [first, rest @ ..] if first.kind == on => Ok((None, rest)),
            [first, Stmt { kind: StmtKind::If { arms, otherwise }, .. }, rest @ ..] if first.kind == count => {
                let ([(condition, again)], [clear, last]) = (&arms[..], &otherwise[..]) else { return Err(wrong()) };
                let Expr::Binary(left, "<", rounds) = condition else { return Err(wrong()) };
                let [Stmt { kind: StmtKind::Assign { name, operator: "=", value }, .. }] = &again[..] else {
                    return Err(wrong());
                };
                let first = value.int().filter(|&first| *name == step && first <= n);
                let (Some(first), Some(rounds)) = (first, rounds.int()) else { return Err(wrong()) };
                if left.name() != Some(&round) || clear.kind != set(&round, 0) || last.kind != on {
                    return Err(wrong());
                }
                let first = usize::try_from(first).map_err(|_| wrong())?;
                Ok((Some((first, rounds)), rest))
            }
            _ => Err(wrong()),
        }
    }
}

fn compare(name: &str, operator: &'static str, n: u64) -> Expr {
    let name = Expr::Name(name.to_owned());
    Expr::Binary(Box::new(name), operator, Box::new(Expr::Int(n)))
}

fn set(name: &str, n: u64) -> StmtKind {
    StmtKind::Assign { name: name.to_owned(), operator: "=", value: Expr::Int(n) }
}

/// `if (waiting_w) { waiting_w = false; @activate(thread_w_id); }`
fn wakes(s: &StmtKind) -> Option<u32> {
    let StmtKind::If { arms, otherwise } = s else {
        return None;
    };
    let [(condition, body)] = &arms[..] else {
        return None;
    };
    let flag = condition.name()?;
    let thread = flag.strip_prefix("waiting_")?;
    let [clear, wake] = &body[..] else {
        return None;
    };
    let cleared = StmtKind::Assign { name: flag.to_owned(), operator: "=", value: Expr::Name("false".to_owned()) };
    let StmtKind::Do(wake) = &wake.kind else {
        return None;
    };
    let woken = activated(wake)? == format!("thread_{thread}_id");
    (clear.kind == cleared && woken && otherwise.is_empty()).then(|| thread.parse().ok())?
}

/// `done_1 < 3 or done_2 < 1`
fn unmet(condition: &Expr) -> Result<Vec<(u32, u64)>, String> {
    let all = match condition {
        Expr::Any(all) => &all[..],
        one => std::slice::from_ref(one),
    };
    let one = |e: &Expr| {
        let Expr::Binary(left, "<", right) = e else {
            return None;
        };
        let thread = left.name()?.strip_prefix("done_")?.parse().ok()?;
        Some((thread, right.int()?))
    };
    all.iter().map(|e| one(e).ok_or_else(|| "a wait is `done_N < n`".to_owned())).collect()
}

/// `running -= 1; if (running == 0) { sys_mod.unblock_cmd_stream(); }`
fn ends(body: &[Stmt]) -> bool {
    let [count, last] = body else { return false };
    let counted = StmtKind::Assign { name: "running".to_owned(), operator: "-=", value: Expr::Int(1) };
    let StmtKind::If { arms, .. } = &last.kind else {
        return false;
    };
    let [(condition, body)] = &arms[..] else {
        return false;
    };
    let unblocks = matches!(&body[..], [Stmt { kind: StmtKind::Do(e), .. }] if is_unblock(e));
    count.kind == counted && *condition == compare("running", "==", 0) && unblocks
}
