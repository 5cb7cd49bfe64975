//! Registers as text: one line a switch, the machine's description at the end.
//!
//! ```text
//! unisono registers 1
//! collective allreduce ranks 4 elements 8 root 0 operator sum dtype f32
//! ranks 0..3
//! embedding identifier 0 first 0 elements 8
//! switch 0 id 0 request 1,memory -> 0 sum vc 0 response 0 -> 1,memory vc 1
//! switch 1 id 0 request memory -> 0 sum vc 0 response 0 -> memory vc 1
//! machine
//! name = "..."
//! ```
//!
//! `-` is no port, no operator or no ports at all; `engine` in place of the response's input is what the engine reduced.

use std::{fmt::Write, sync::Arc};

use unisono_collective::Collective;
use unisono_machine::{
    InNetwork, Machine, MachineError,
    in_network::{MEMORY, Port},
};

use super::{Configured, ENGINE, Embedding, NONE, Registers, ports};

#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum RegistersError {
    #[error("{origin}, line {line}: {message}")]
    Line { origin: String, line: usize, message: String },
    #[error(transparent)]
    Machine(#[from] MachineError),
}

const HEAD: &str = "unisono registers 1";

fn port(port: Port) -> String {
    match port {
        MEMORY => "memory".to_owned(),
        ENGINE => "engine".to_owned(),
        NONE => "-".to_owned(),
        other => other.to_string(),
    }
}

fn set(set: u64) -> String {
    let all: Vec<String> = ports(set).map(port).collect();
    if all.is_empty() { "-".to_owned() } else { all.join(",") }
}

pub fn print(machine: &InNetwork, configured: &Configured) -> String {
    let c = &configured.collective;
    let mut text = format!(
        "{HEAD}\ncollective {} ranks {} elements {} root {} operator {} dtype {}\nranks{}\n",
        c.kind,
        c.ranks,
        c.elements,
        c.root,
        c.operator,
        c.dtype,
        ranges(&configured.ranks)
    );
    for e in &configured.embeddings {
        let _ = writeln!(text, "embedding identifier {} first {} elements {}", e.identifier, e.first, e.elements);
        for (switch, r) in &e.registers {
            let _ = writeln!(
                text,
                "switch {switch} id {} request {} -> {} {} vc {} response {} -> {} vc {}",
                r.identifier,
                set(r.request_inputs),
                port(r.request_output),
                r.operator.map_or("-", |o| o.name()),
                r.request_channel,
                port(r.response_input),
                set(r.response_outputs),
                r.response_channel
            );
        }
    }
    text + "machine\n" + &Machine::from(machine.clone()).to_toml()
}

fn ranges(ranks: &[u32]) -> String {
    let mut text = String::new();
    let mut at = 0;
    while at < ranks.len() {
        let mut end = at;
        while end + 1 < ranks.len() && ranks[end].checked_add(1) == Some(ranks[end + 1]) {
            end += 1;
        }
        let _ = if end > at { write!(text, " {}..{}", ranks[at], ranks[end]) } else { write!(text, " {}", ranks[at]) };
        at = end + 1;
    }
    text
}

/// Reads what [`print`] writes; whether the registers are right is for [`super::check`].
///
/// # Errors
/// A line that is none of the form's, or a damaged machine; the message names the line.
pub fn parse(text: &str, origin: &str) -> Result<(InNetwork, Configured), RegistersError> {
    let (lines, machine) = match text.split_once("\nmachine\n") {
        Some((lines, toml)) => (lines, Machine::from_toml(toml, origin)?),
        None => return Err(wrong(origin, text.lines().count(), "the section 'machine' is missing".to_owned())),
    };
    let Some(machine) = machine.get::<InNetwork>().cloned() else {
        return Err(wrong(origin, lines.lines().count() + 1, "the machine's kind is not in-network".to_owned()));
    };
    let mut read = Reading { collective: None, ranks: Vec::new(), embeddings: Vec::new() };
    for (at, line) in lines.lines().enumerate() {
        let said = if at == 0 {
            (line == HEAD).then_some(()).ok_or(format!("the first line is not '{HEAD}'"))
        } else {
            read.line(line)
        };
        said.map_err(|message| wrong(origin, at + 1, message))?;
    }
    let Some(collective) = read.collective else {
        return Err(wrong(origin, 2, "the line 'collective' is missing".to_owned()));
    };
    Ok((machine, Configured { collective, ranks: Arc::new(read.ranks), embeddings: read.embeddings }))
}

fn wrong(origin: &str, line: usize, message: String) -> RegistersError {
    RegistersError::Line { origin: origin.to_owned(), line, message }
}

struct Reading {
    collective: Option<Collective>,
    ranks: Vec<u32>,
    embeddings: Vec<Embedding>,
}

impl Reading {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [] => Ok(()),
            [
                "collective",
                kind,
                "ranks",
                ranks,
                "elements",
                elements,
                "root",
                root,
                "operator",
                operator,
                "dtype",
                dtype,
            ] => {
                let made = Collective::new(
                    kind.parse().map_err(say)?,
                    number(ranks)?,
                    number(elements)?,
                    number(root)?,
                    operator.parse().map_err(say)?,
                    dtype.parse().map_err(say)?,
                );
                self.collective = Some(made.map_err(say)?);
                Ok(())
            }
            ["ranks", ref places @ ..] => {
                for place in places {
                    let (first, last) = place.split_once("..").unwrap_or((place, place));
                    let (first, last): (u32, u32) = (number(first)?, number(last)?);
                    if last >= Collective::MAX_RANKS || last < first {
                        return Err(format!("'{place}' is no range of cores"));
                    }
                    self.ranks.extend(first..=last);
                    if self.ranks.len() > Collective::MAX_RANKS as usize {
                        return Err(format!("there are more than {} ranks", Collective::MAX_RANKS));
                    }
                }
                Ok(())
            }
            ["embedding", "identifier", identifier, "first", first, "elements", elements] => {
                let (identifier, first, elements) = (number(identifier)?, number(first)?, number(elements)?);
                self.embeddings.push(Embedding { identifier, first, elements, registers: Vec::new() });
                Ok(())
            }
            [
                "switch",
                switch,
                "id",
                id,
                "request",
                inputs,
                "->",
                output,
                operator,
                "vc",
                request,
                "response",
                input,
                "->",
                outputs,
                "vc",
                response,
            ] => {
                let Some(embedding) = self.embeddings.last_mut() else {
                    return Err("a line 'embedding' comes before the switches".to_owned());
                };
                let r = Registers {
                    request_inputs: read_set(inputs)?,
                    response_outputs: read_set(outputs)?,
                    request_output: read_port(output)?,
                    response_input: read_port(input)?,
                    request_channel: number(request)?,
                    response_channel: number(response)?,
                    identifier: number(id)?,
                    operator: if operator == "-" { None } else { Some(operator.parse().map_err(say)?) },
                };
                embedding.registers.push((number(switch)?, r));
                Ok(())
            }
            [first, ..] => Err(format!(
                "'{first} ...' is no line of registers; accepted are collective, ranks, embedding and switch in their form"
            )),
        }
    }
}

fn say(e: impl std::fmt::Display) -> String {
    e.to_string()
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("'{text}' is no number that fits here"))
}

fn read_port(text: &str) -> Result<Port, String> {
    match text {
        "memory" => Ok(MEMORY),
        "engine" => Ok(ENGINE),
        "-" => Ok(NONE),
        other => number::<Port>(other)
            .ok()
            .filter(|&port| port < MEMORY)
            .ok_or_else(|| format!("'{other}' is no port; accepted are 0 to 62, memory, engine and -")),
    }
}

fn read_set(text: &str) -> Result<u64, String> {
    if text == "-" {
        return Ok(0);
    }
    text.split(',').try_fold(0, |set, one| match read_port(one)? {
        ENGINE | NONE => Err(format!("'{one}' is no port of a set")),
        port => Ok(set | 1 << port),
    })
}
