//! The text form of registers: one line for each switch, and the machine's description at the end.
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
//! `-` means no port, operator or list of ports; `engine` as the response's input means the result of the engine.

use std::{fmt::Write, str::FromStr, sync::Arc};

use unisono_collective::Collective;
use unisono_lower::switches::{Configured, ENGINE, Embedding, NONE, Registers, ports};
use unisono_machine::{
    InNetwork, Machine,
    in_network::{MEMORY, Port},
};

use crate::ImportError;

const HEAD: &str = "unisono registers 1";
const COLLECTIVE: &str = "collective {} ranks {} elements {} root {} operator {} dtype {}";
const EMBEDDING: &str = "embedding identifier {} first {} elements {}";
const SWITCH: &str = "switch {} id {} request {} -> {} {} vc {} response {} -> {} vc {}";

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

/// Reads the output of [`print`]; [`unisono_lower::switches::raise`] and the proof check the registers.
///
/// # Errors
/// Returns an error for a line that has none of the forms in the module documentation, for a text without a collective
/// or a machine, or for a machine that cannot be read.
pub fn parse(text: &str) -> Result<(InNetwork, Configured), ImportError> {
    let wrong = |line: usize, message: String| ImportError::new(u32::try_from(line).unwrap_or(u32::MAX), message);
    let Some((lines, toml)) = text.split_once("\nmachine\n") else {
        return Err(wrong(text.lines().count(), "the section 'machine' is missing".to_owned()));
    };
    let machine = Machine::from_toml(toml, "machine").map_err(|e| wrong(0, e.to_string()))?;
    let Some(machine) = machine.get::<InNetwork>().cloned() else {
        return Err(wrong(lines.lines().count() + 1, "the machine's kind is not in-network".to_owned()));
    };
    let mut reading = Reading::default();
    for (at, line) in lines.lines().enumerate() {
        let outcome = match at {
            0 if line == HEAD => Ok(()),
            0 => Err(format!("the first line is not '{HEAD}'")),
            _ => reading.line(line),
        };
        outcome.map_err(|message| wrong(at + 1, message))?;
    }
    let Reading { collective, ranks, embeddings } = reading;
    let collective = collective.ok_or_else(|| wrong(2, "the line 'collective' is missing".to_owned()))?;
    Ok((machine, Configured { collective, ranks: Arc::new(ranks), embeddings }))
}

#[derive(Default)]
struct Reading {
    collective: Option<Collective>,
    ranks: Vec<u32>,
    embeddings: Vec<Embedding>,
}

impl Reading {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some([kind, ranks, elements, root, operator, dtype]) = filled(COLLECTIVE, &words) {
            let (ranks, elements, root) = (number(ranks)?, number(elements)?, number(root)?);
            let made = Collective::new(read(kind)?, ranks, elements, root, read(operator)?, read(dtype)?);
            self.collective = Some(made.map_err(|e| e.to_string())?);
        } else if let Some([identifier, first, elements]) = filled(EMBEDDING, &words) {
            let (identifier, first, elements) = (number(identifier)?, number(first)?, number(elements)?);
            self.embeddings.push(Embedding { identifier, first, elements, registers: Vec::new() });
        } else if let Some([switch, id, inputs, output, operator, request, input, outputs, response]) =
            filled(SWITCH, &words)
        {
            let embedding = self.embeddings.last_mut().ok_or("a line 'embedding' comes before the switches")?;
            let r = Registers {
                request_inputs: read_set(inputs)?,
                response_outputs: read_set(outputs)?,
                request_output: read_port(output)?,
                response_input: read_port(input)?,
                request_channel: number(request)?,
                response_channel: number(response)?,
                identifier: number(id)?,
                operator: if operator == "-" { None } else { Some(read(operator)?) },
            };
            embedding.registers.push((number(switch)?, r));
        } else if let ["ranks", places @ ..] = &words[..] {
            places.iter().try_for_each(|place| self.ranks(place))?;
        } else if let [first, ..] = words[..] {
            return Err(format!(
                "'{first} ...' is no line of registers; accepted are collective, ranks, embedding and switch in their form"
            ));
        }
        Ok(())
    }

    fn ranks(&mut self, place: &str) -> Result<(), String> {
        let (first, last) = place.split_once("..").unwrap_or((place, place));
        let (first, last): (u32, u32) = (number(first)?, number(last)?);
        if last >= Collective::MAX_RANKS || last < first {
            return Err(format!("'{place}' is no range of cores"));
        }
        self.ranks.extend(first..=last);
        if self.ranks.len() > Collective::MAX_RANKS as usize {
            return Err(format!("there are more than {} ranks", Collective::MAX_RANKS));
        }
        Ok(())
    }
}

/// Returns the words at the positions of `{}` in `form`, if all other words match.
fn filled<'a, const N: usize>(form: &str, words: &[&'a str]) -> Option<[&'a str; N]> {
    let pairs = || form.split(' ').zip(words.iter().copied());
    let fits = form.split(' ').count() == words.len() && pairs().all(|(place, word)| place == "{}" || place == word);
    let found: Vec<&str> = pairs().filter(|(place, _)| fits && *place == "{}").map(|(_, word)| word).collect();
    found.try_into().ok()
}

fn read<T: FromStr>(text: &str) -> Result<T, String>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|e: T::Err| e.to_string())
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
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
