//! Reads GOAL line by line; memory holds one buffer of the text, or one line if that is longer.
//!
//! ```text
//! file    := "num_ranks" INT { rank }              ranks in ascending order from 0; then blanks and comments only
//! rank    := "rank" INT "{" { line } "}"
//! line    := [IDENT ":"] op NL | IDENT "requires" IDENT NL | IDENT "irequires" IDENT NL | NL
//! op      := "send" INT "b" "to" INT [opts] | "recv" INT "b" "from" (INT | "-1") [opts] | "calc" INT ["cpu" INT]
//! opts    := ["tag" (INT | "-1")] ["cpu" INT] ["nic" INT]
//! ```
//!
//! Blanks are allowed between all tokens; `//` and `/* */` comments before a statement, not behind an operation or an
//! edge. A label belongs to its rank and must be defined before it is used; of two definitions, the first one counts.

use std::io::{BufRead, Read};

use unisono_base::{TaskId, interrupt::poll, narrow};
use unisono_lower::tasks::{ANY, Builder, Kind, Task, TaskGraph};

use super::{
    ReadError,
    error::Problem,
    labels::Labels,
    line::{Line, Word, Wrong, shown},
};

/// Greatest length of a line in bytes.
const LONGEST_LINE: usize = 1 << 16;

#[inline]
fn operation(word: Word) -> Option<Kind> {
    match word.text {
        _ if word.is_numbered() => None,
        b"send" => Some(Kind::Send),
        b"recv" => Some(Kind::Receive),
        b"calc" => Some(Kind::Calc),
        _ => None,
    }
}

/// Takes the name of an operation, which must be next.
#[inline(always)]
fn operation_at(line: &mut Line) -> Result<Kind, Wrong> {
    if line.take_word(b"send") {
        Ok(Kind::Send)
    } else if line.take_word(b"recv") {
        Ok(Kind::Receive)
    } else if line.take_word(b"calc") {
        Ok(Kind::Calc)
    } else {
        Err(format!("found '{}' where send, recv or calc is expected", shown(line.word().text)))
    }
}

/// Returns the task graph of a GOAL text; its calcs are in nanoseconds. Errors name `origin`.
///
/// # Errors
/// Returns an error for the first text that is not GOAL, with its line, or if the text cannot be read.
pub fn read(text: impl BufRead, origin: &str) -> Result<TaskGraph, ReadError> {
    read_all(text).map_err(|problem| ReadError { origin: origin.to_owned(), problem })
}

fn read_all(mut text: impl BufRead) -> Result<TaskGraph, Problem> {
    let mut reader = Reader {
        builder: Builder::new(),
        ranks: None,
        begun: 0,
        inside: None,
        comment: None,
        number: 0,
        labels: Labels::default(),
    };
    let mut copy = Vec::new();
    loop {
        poll();
        // Lines that are completely in the buffer are parsed without a copy.
        let buffer = text.fill_buf()?;
        if buffer.is_empty() {
            break;
        }
        if let Some(last) = memchr::memrchr(b'\n', &buffer[..buffer.len().min(LONGEST_LINE)]) {
            reader.lines(&buffer[..=last])?;
            text.consume(last + 1);
        } else {
            copy.clear();
            (&mut text).take(LONGEST_LINE as u64 + 1).read_until(b'\n', &mut copy)?;
            if copy.strip_suffix(b"\n").unwrap_or(&copy).len() > LONGEST_LINE {
                let what = format!("the line is longer than {LONGEST_LINE} bytes");
                return Err(Problem::Text { line: reader.number + 1, what });
            }
            reader.lines(&copy)?;
        }
    }
    reader.finish()
}

struct Reader {
    builder: Builder,
    ranks: Option<u32>,
    /// Number of ranks that have begun.
    begun: u32,
    /// Line on which the current rank began; `None` between ranks.
    inside: Option<u64>,
    /// Line on which the current comment began; `None` outside comments.
    comment: Option<u64>,
    number: u64,
    labels: Labels,
}

impl Reader {
    fn lines(&mut self, text: &[u8]) -> Result<(), Problem> {
        let mut line = Line::new(text);
        while !line.ends_text() {
            self.number += 1;
            self.statements(&mut line).map_err(|what| Problem::Text { line: self.number, what })?;
            line.next();
        }
        Ok(())
    }

    /// Reads all statements of a line; an operation or an edge is the last one.
    #[inline(always)]
    fn statements(&mut self, line: &mut Line) -> Result<(), Wrong> {
        loop {
            if self.comment.is_some() {
                if !line.skip_past(b"*/") {
                    return Ok(());
                }
                self.comment = None;
            }
            line.skip_blanks();
            if let (Some(ranks), Some(_), true) = (self.ranks, self.inside, line.begins_word()) {
                return self.statement(line, ranks);
            }
            if line.is_over() || line.take(b"//") {
                return Ok(());
            }
            if line.take(b"/*") {
                self.comment = Some(self.number);
                continue;
            }
            match (self.ranks, self.inside) {
                (None, _) => self.ranks = Some(num_ranks(line)?),
                (Some(ranks), None) => self.begin_rank(line, ranks)?,
                (Some(_), Some(_)) if line.take(b"}") => self.inside = None,
                (Some(ranks), Some(_)) => return self.statement(line, ranks),
            }
        }
    }

    #[inline(always)]
    fn begin_rank(&mut self, line: &mut Line, ranks: u32) -> Result<(), Wrong> {
        if self.begun == ranks {
            return Err(format!("{}, after the last of {ranks} ranks", line.wrong("the end of the file")));
        }
        line.keywords(b"rank ")?;
        let rank = line.number("the number of a rank", u64::from(u32::MAX))?;
        if rank != u64::from(self.begun) {
            return Err(format!(
                "rank {rank} stands where rank {} is expected; ranks ascend from 0, each once",
                self.begun
            ));
        }
        line.keywords(b" {")?;
        self.begun += 1;
        self.inside = Some(self.number);
        self.labels.clear();
        self.builder.rank();
        Ok(())
    }

    #[inline(always)]
    fn statement(&mut self, line: &mut Line, ranks: u32) -> Result<(), Wrong> {
        let word = line.word();
        if word.text.is_empty() {
            return Err(line.wrong("an operation, a label or '}'"));
        }
        line.skip_blanks();
        let is_keyword = || matches!(word.text, b"rank" | b"num_ranks" | b"requires" | b"irequires");
        let (label, kind) = match (operation(word), line.take(b":")) {
            (Some(kind), false) => (None, kind),
            (None, is_label) if word.is_numbered() || !is_keyword() => {
                if !is_label {
                    return self.edge(line, word);
                }
                line.skip_blanks();
                (Some(word), operation_at(line)?)
            }
            _ => return Err(format!("'{}' is a keyword and no label", shown(word.text))),
        };
        let task = self.operation(line, kind, ranks)?;
        if let Some(label) = label {
            self.labels.define(label, task);
        }
        Ok(())
    }

    #[inline(always)]
    fn edge(&mut self, line: &mut Line, word: Word) -> Result<(), Wrong> {
        let started = !line.take_word(b"requires");
        if started && !line.take_word(b"irequires") {
            return Err(format!("after '{}' comes ':', requires or irequires", shown(word.text)));
        }
        line.skip_blanks();
        let other = line.word();
        line.end()?;
        let (later, earlier) = (self.labels.find(word)?, self.labels.find(other)?);
        if started {
            self.builder.irequires(later, earlier);
        } else {
            self.builder.requires(later, earlier);
        }
        Ok(())
    }

    #[inline(always)]
    fn operation(&mut self, line: &mut Line, kind: Kind, ranks: u32) -> Result<TaskId, Wrong> {
        line.skip_blanks();
        let task = if kind == Kind::Calc {
            let calc = Task::calc(line.number("a time", u64::MAX)?);
            calc.on(if line.option(b" cpu ") { small(line, "the number of a CPU")? } else { 0 }, 0)
        } else {
            let bytes = line.number("a number of bytes", u64::MAX)?;
            let task = if kind == Kind::Send {
                line.keywords(b"b to ")?;
                Task::send(peer(line.number("a rank", u64::MAX)?, ranks)?, bytes, 0)
            } else {
                line.keywords(b"b from ")?;
                let from = line.number_or_any("a rank or -1", u64::MAX)?;
                Task::receive(from.map_or(Ok(ANY), |from| peer(from, ranks))?, bytes, 0)
            };
            let tag =
                if line.option(b" tag ") { line.number_or_any("a tag or -1", u64::from(u32::MAX))? } else { Some(0) };
            let cpu = if line.option(b" cpu ") { small(line, "the number of a CPU")? } else { 0 };
            let nic = if line.option(b" nic ") { small(line, "the number of an interface")? } else { 0 };
            Task { tag: tag.map_or(ANY, |tag| narrow(tag)), cpu, nic, ..task }
        };
        line.end()?;
        Ok(self.builder.task(task))
    }

    fn finish(self) -> Result<TaskGraph, Problem> {
        if let Some(line) = self.comment {
            return Err(Problem::Comment { line });
        }
        if let Some(line) = self.inside {
            return Err(Problem::Open { rank: self.begun - 1, line });
        }
        match self.ranks {
            None => Err(Problem::Empty),
            Some(ranks) if self.begun < ranks => Err(Problem::Short { found: self.begun, ranks }),
            Some(_) => Ok(self.builder.finish()?),
        }
    }
}

#[inline(always)]
fn num_ranks(line: &mut Line) -> Result<u32, Wrong> {
    line.keywords(b"num_ranks ")?;
    match line.number("the number of ranks", u64::from(ANY - 1))? {
        0 => Err("num_ranks is 0; at least 1 is needed".to_owned()),
        ranks => Ok(narrow(ranks)),
    }
}

#[inline(always)]
fn peer(rank: u64, ranks: u32) -> Result<u32, Wrong> {
    match u32::try_from(rank) {
        Ok(rank) if rank < ranks => Ok(rank),
        _ => Err(format!("rank {rank} does not exist; the ranks are 0 to {}", ranks - 1)),
    }
}

#[inline(always)]
fn small(line: &mut Line, what: &str) -> Result<u8, Wrong> {
    Ok(narrow(line.number(what, u64::from(u8::MAX))?))
}
