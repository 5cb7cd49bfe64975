//! Reads the text form. Every error names its line, the text found and the text accepted.

use unisono_base::{InstrId, NodeId, StreamId};
use unisono_collective::Collective;

use crate::{
    builder::Builder,
    schedule::{Operand, Schedule},
};

use super::line::{Line, ParseError};

/// Text after the schedule: the sections of a placed schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tail<'a> {
    /// Number of the first line of `text`, counted from 1 at the start of the file.
    pub line: usize,
    pub text: &'a str,
}

/// Reads one schedule, and returns the sections that follow it, if any.
///
/// # Errors
/// Returns an error for the first line that does not fit the grammar of [`crate::text`].
pub fn parse(text: &str) -> Result<(Schedule, Option<Tail<'_>>), ParseError> {
    check_characters(text)?;
    let (body, tail) = split(text);
    let mut lines = body
        .lines()
        .enumerate()
        .map(|(n, text)| Line::exact(n + 1, text))
        .filter(|line| !line.as_ref().is_ok_and(Line::is_empty));
    let last = body.lines().count().max(1);
    let end = |what: &str| ParseError { line: last, message: format!("the file ends where {what} is expected") };

    let mut line = lines.next().unwrap_or_else(|| Err(end("'unisono-schedule 1'")))?;
    line.expect("unisono-schedule ")?;
    if line.rest() != "1" {
        let version: u32 = line.number("a version")?;
        line.end()?;
        return Err(line.error(format!("version {version} is not known; this program reads version 1")));
    }

    let mut line = lines.next().unwrap_or_else(|| Err(end("'collective'")))?;
    let collective = parse_collective(&mut line)?;
    let builder = Builder::new(collective);
    let mut reader = Reader { builder, stated: Vec::new(), phases: Vec::new(), node: None, instrs: 0, streams: 0 };
    reader.builder.keep_unused_streams();
    for line in lines {
        reader.line(&mut line?)?;
    }
    let schedule = reader.builder.finish().map_err(|e| ParseError { line: last, message: e.to_string() })?;
    Ok((schedule, tail))
}

/// Rejects control characters, also in comments and sections, so that all readers split the text into the same lines.
/// Only tabs and the line ends `\n` and `\r\n` are accepted.
fn check_characters(text: &str) -> Result<(), ParseError> {
    let is_wrong = |at: usize, c: char| match c {
        '\n' | '\t' => false,
        '\r' => !text[at + 1..].starts_with('\n'),
        _ => c.is_control(),
    };
    let Some((at, c)) = text.char_indices().find(|&(at, c)| is_wrong(at, c)) else { return Ok(()) };
    let message = format!("the line has the control character U+{:04X}; remove it", u32::from(c));
    Err(ParseError { line: text[..at].matches('\n').count() + 1, message })
}

/// Splits the text before the first line that starts a `machine` or `placement` section; without one the second part is
/// `None`.
fn split(text: &str) -> (&str, Option<Tail<'_>>) {
    let mut at = 0;
    for (n, line) in text.split_inclusive('\n').enumerate() {
        if line.starts_with("machine") || line.starts_with("placement") {
            return (&text[..at], Some(Tail { line: n + 1, text: &text[at..] }));
        }
        at += line.len();
    }
    (text, None)
}

fn parse_collective(line: &mut Line<'_>) -> Result<Collective, ParseError> {
    line.expect("collective ")?;
    let kind = line.word("a collective")?;
    let ranks = line.key("ranks")?;
    let elements: u64 = line.key("elements")?;
    let root: u64 = line.key("root")?;
    line.expect(" operator=")?;
    let operator = line.word("an operator")?;
    line.expect(" dtype=")?;
    let dtype = line.word("a datatype")?;
    line.end()?;
    let say = |e: unisono_collective::CollectiveError| line.error(e.to_string());
    let (kind, operator, dtype) =
        (kind.parse().map_err(say)?, operator.parse().map_err(say)?, dtype.parse().map_err(say)?);
    Collective::new(kind, ranks, elements, root, operator, dtype).map_err(say)
}

struct Reader {
    builder: Builder,
    /// The properties of the whole schedule that were read, each with its line. A file states each property once.
    stated: Vec<(&'static str, usize)>,
    phases: Vec<String>,
    /// The node whose instructions are being read, and the current lane; `None` before the first node.
    node: Option<(NodeId, u32)>,
    instrs: u32,
    streams: u32,
}

impl Reader {
    fn line(&mut self, line: &mut Line<'_>) -> Result<(), ParseError> {
        if line.take("origin ") || line.rest() == "origin" && line.take("origin") {
            self.once("origin", line)?;
            self.builder.origin(line.rest().trim());
            return Ok(());
        }
        if line.take("phases ") {
            self.once("list of phases", line)?;
            while !line.is_empty() {
                let name = line.word("the name of a phase")?;
                self.builder.phase(name);
                self.phases.push(name.to_owned());
                line.skip_white_space();
            }
            return Ok(());
        }
        if line.take("nodes ") {
            return self.nodes(line);
        }
        if line.take("stream ") {
            return self.stream(line);
        }
        if line.take("node ") {
            return self.node(line);
        }
        if line.take("lane") {
            let Some((_, lane)) = &mut self.node else {
                return Err(line.error("a lane stands before any node".into()));
            };
            *lane += 1;
            return line.end();
        }
        if line.rest().starts_with('i') {
            return self.instr(line);
        }
        Err(line.expected("origin, phases, nodes, stream, node, lane or an instruction"))
    }

    fn once(&mut self, what: &'static str, line: &Line<'_>) -> Result<(), ParseError> {
        if let Some((_, first)) = self.stated.iter().find(|(stated, _)| *stated == what) {
            return Err(line.error(format!("a second {what}; the first is in line {first}")));
        }
        self.stated.push((what, line.number));
        Ok(())
    }

    fn nodes(&mut self, line: &mut Line<'_>) -> Result<(), ParseError> {
        self.once("number of nodes", line)?;
        let nodes: u64 = line.number("the number of nodes")?;
        let (ranks, most) = (self.builder.node_count() as u64, u64::from(Collective::MAX_RANKS));
        if nodes < ranks || nodes > most {
            return Err(line.error(format!("{nodes} nodes do not fit; accepted are {ranks} (the ranks) to {most}")));
        }
        for _ in ranks..nodes {
            self.builder.switch();
        }
        line.end()
    }

    fn stream(&mut self, line: &mut Line<'_>) -> Result<(), ParseError> {
        line.expect("s")?;
        let id: u32 = line.number("the number of a stream")?;
        if id != self.streams {
            return Err(line.error(format!("stream s{id} comes where s{} is expected", self.streams)));
        }
        self.streams += 1;
        line.expect(": ")?;
        let source = self.node_id(line)?;
        line.expect(" ->")?;
        let (mut sinks, mut limited) = (Vec::new(), false);
        while !line.is_empty() && !limited {
            limited = line.take(" capacity=");
            if !limited {
                line.expect(" ")?;
                sinks.push(self.node_id(line)?);
            }
        }
        let stream = self.builder.stream(source, &sinks);
        if limited {
            self.builder.capacity(stream, line.number("a number of elements")?);
        }
        line.end()
    }

    fn node_id(&self, line: &mut Line<'_>) -> Result<NodeId, ParseError> {
        let id: u32 = line.number("a node")?;
        let count = self.builder.node_count();
        if id as usize >= count {
            return Err(line.error(format!("node {id} does not exist; accepted are 0 to {}", count - 1)));
        }
        Ok(NodeId(id))
    }

    fn node(&mut self, line: &mut Line<'_>) -> Result<(), ParseError> {
        let node = self.node_id(line)?;
        if let Some((last, _)) = self.node
            && node <= last
        {
            return Err(line.error(format!("node {} comes after node {}; nodes ascend", node.0, last.0)));
        }
        self.node = Some((node, 0));
        line.expect(":")?;
        if line.take(" tmp=") {
            let elements = line.number("a number of elements")?;
            self.builder.scratch(node, elements);
        }
        line.end()
    }

    fn instr(&mut self, line: &mut Line<'_>) -> Result<(), ParseError> {
        let Some((node, lane)) = self.node else {
            return Err(line.error("an instruction stands before any node".into()));
        };
        line.expect("i")?;
        let id: u32 = line.number("the number of an instruction")?;
        if id != self.instrs {
            return Err(line.error(format!("instruction i{id} comes where i{} is expected", self.instrs)));
        }
        self.instrs += 1;
        let phase: usize = if line.take(" p") { line.number("the number of a phase")? } else { 0 };
        match self.phases.get(phase) {
            Some(name) => {
                self.builder.phase(name);
            }
            None => {
                return Err(line.error(format!("phase p{phase} does not exist; there are {}", self.phases.len())));
            }
        }
        line.expect(": ")?;
        let mut len = None;
        let sources = self.operands(line, " + ", &mut len)?;
        line.expect(" -> ")?;
        let sinks = self.operands(line, ", ", &mut len)?;
        if line.take(" len=") {
            let said: u32 = line.number("a length")?;
            if len.is_some_and(|l| l != said) {
                return Err(line.error(format!("the length {said} is not that of the slices")));
            }
            len = Some(said);
        }
        let len = match len {
            None => {
                return Err(line.error("no operand is a slice, so the length must be given: len=N".into()));
            }
            Some(0) => return Err(line.error("the instruction is over no elements".into())),
            Some(len) => len,
        };
        let made = self.builder.combine(node, lane, len, &sources, &sinks);
        if line.take(" after=") {
            loop {
                line.expect("i")?;
                self.builder.after_stated(made, InstrId(line.number("the number of an instruction")?));
                if !line.take(",") {
                    break;
                }
            }
        }
        line.end()
    }

    fn operands(&self, line: &mut Line<'_>, between: &str, len: &mut Option<u32>) -> Result<Vec<Operand>, ParseError> {
        let mut operands = Vec::new();
        loop {
            operands.push(self.operand(line, len)?);
            if !line.take(between) {
                return Ok(operands);
            }
        }
    }

    fn operand(&self, line: &mut Line<'_>, len: &mut Option<u32>) -> Result<Operand, ParseError> {
        let make = if line.take("in[") {
            Operand::In
        } else if line.take("out[") {
            Operand::Out
        } else if line.take("tmp[") {
            Operand::Tmp
        } else if line.take("s") {
            let has_zeros = line.rest().starts_with('0') && line.rest()[1..].starts_with(|c: char| c.is_ascii_digit());
            let id: u32 = line.number("the number of a stream")?;
            if id >= self.streams || has_zeros {
                let what = if has_zeros { "has leading zeros; write it without" } else { "is not declared" };
                return Err(line.error(format!("stream s{id} {what}")));
            }
            return Ok(Operand::Stream(StreamId(id)));
        } else {
            return Err(line.expected("in[..], out[..], tmp[..] or a stream"));
        };
        let start: u32 = line.number("the first element")?;
        line.expect("..")?;
        let end: u64 = line.number("one past the last element")?;
        line.expect("]")?;
        let span = end.checked_sub(u64::from(start)).and_then(|n| u32::try_from(n).ok());
        let Some(span) = span.filter(|&n| n > 0) else {
            return Err(line.error(format!("[{start}..{end}] is not a span of elements")));
        };
        if len.is_some_and(|l| l != span) {
            return Err(line.error(format!("[{start}..{end}] differs in length from the slices before it")));
        }
        *len = Some(span);
        Ok(make(start))
    }
}
