//! The text of an HLO module: computations, each a list of instructions in execution order.
//!
//! ```text
//! HloModule NAME, is_scheduled=true, ..., num_partitions=256
//! %fused (p: f32[8]) -> f32[8] {
//!   %p = f32[8]{0} parameter(0)
//!   ROOT %n = f32[8]{0} negate(%p)
//! }
//! ENTRY %main (x: f32[8]) -> f32[8] { ... }
//! ```
//!
//! Source: the printer of XLA, `hlo_module.cc` and `hlo_instruction.cc` (github.com/openxla/xla). The `%` of names and
//! the shapes of operands are optional. Computations and values are defined before they are used, so there are no
//! cycles.

use rustc_hash::FxHashMap;
use unisono_base::{excerpt, interrupt::poll, narrow};

use super::{
    shape::Shape,
    text::{bracketed, parts, value},
};
use crate::error::Wrong;

const MOST_INSTRUCTIONS: usize = 1 << 22;

pub struct Module<'a> {
    pub name: &'a str,
    pub partitions: Option<u32>,
    pub replicas: Option<u32>,
    /// The computations, in the order of the text.
    pub computations: Vec<Computation<'a>>,
    pub entry: usize,
    names: FxHashMap<&'a str, usize>,
}

#[derive(Default)]
pub struct Computation<'a> {
    pub name: &'a str,
    pub instructions: Vec<Instruction<'a>>,
    pub root: usize,
    pub parameters: Vec<Option<usize>>,
}

/// The part of an asynchronous operation that an instruction represents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Half {
    Whole,
    /// The first half, `OPCODE-start`.
    Start,
    /// A later half, `OPCODE-update` or `OPCODE-done`, which takes no time.
    Rest,
}

pub struct Instruction<'a> {
    pub line: u32,
    pub name: &'a str,
    shape: Shape,
    /// The operation, without the suffix of a half.
    pub opcode: &'a str,
    pub half: Half,
    /// The indices of instructions of the same computation.
    pub operands: Vec<usize>,
    pub parameter: Option<usize>,
    attributes: &'a str,
}

impl<'a> Instruction<'a> {
    pub fn attribute(&self, key: &str) -> Option<&'a str> {
        value(self.attributes, key)
    }

    pub fn names_device(&self) -> bool {
        matches!(self.opcode, "partition-id" | "replica-id")
    }

    /// Returns the value of a key between the braces of `frontend_attributes`, without quotes.
    pub fn frontend_attribute(&self, key: &str) -> Option<&'a str> {
        let (inside, _) = bracketed(self.attribute("frontend_attributes")?)?;
        value(inside, key).map(|text| text.trim_matches('"'))
    }

    /// Returns the shape of the result. The first half of a copy lists the result first. If the first half of another
    /// operation has a tuple, the tuple contains the operands, the result, and a context.
    pub fn shape(&self) -> &Shape {
        match (&self.shape, self.half) {
            (Shape::Tuple(elements), Half::Start) => {
                let place = usize::from(self.opcode != "copy");
                elements.get(place).unwrap_or(&self.shape)
            }
            (shape, _) => shape,
        }
    }

    /// Returns whether the instruction moves data to or from the host.
    pub fn is_host_transfer(&self) -> bool {
        self.attribute("is_host_transfer") == Some("true")
    }
}

/// Splits the name of an operation into the name of the whole operation and the half. `async` stands for an operation
/// on a whole computation, so its name is kept.
fn half(opcode: &str) -> (&str, Half) {
    let endings = [("-start", Half::Start), ("-update", Half::Rest), ("-done", Half::Rest)];
    let found = endings.into_iter().find_map(|(ending, half)| Some((opcode.strip_suffix(ending)?, half)));
    found.unwrap_or((opcode, Half::Whole))
}

impl<'a> Module<'a> {
    pub fn read(text: &'a str) -> Result<Self, Wrong> {
        let mut reader = Reader::default();
        for (number, line) in (1..).zip(text.lines()) {
            poll();
            reader.line(number, line).map_err(|message| Wrong::line(number, message))?;
        }
        reader.finish()
    }

    /// Returns the index of the computation that an attribute of an instruction names, which must precede computation
    /// `of`.
    pub fn called(&self, instruction: &Instruction<'a>, of: usize, key: &str) -> Result<usize, Wrong> {
        let wrong = |message: String| Wrong::line(instruction.line, message);
        let name = instruction.attribute(key).ok_or_else(|| {
            wrong(format!("{} '{}' has no {key}", excerpt(instruction.opcode), excerpt(instruction.name)))
        })?;
        self.earlier(name, of).map_err(wrong)
    }

    pub fn earlier(&self, name: &str, of: usize) -> Result<usize, String> {
        let name = name.trim_start_matches('%');
        let found = self.names.get(name).copied().filter(|&called| called < of);
        found.ok_or_else(|| format!("no computation before this one is named '{}'", excerpt(name)))
    }
}

#[derive(Default)]
struct Reader<'a> {
    name: Option<&'a str>,
    head: &'a str,
    computations: Vec<Computation<'a>>,
    names: FxHashMap<&'a str, usize>,
    entry: Option<usize>,
    inside: Option<Open<'a>>,
    instructions: usize,
}

struct Open<'a> {
    line: u32,
    is_entry: bool,
    root: Option<usize>,
    computation: Computation<'a>,
    values: FxHashMap<&'a str, usize>,
}

impl<'a> Reader<'a> {
    fn line(&mut self, number: u32, line: &'a str) -> Result<(), String> {
        let text = line.trim();
        if text.is_empty() || text.starts_with("//") {
            return Ok(());
        }
        if let Some(head) = text.strip_prefix("HloModule ").filter(|_| self.inside.is_none()) {
            if self.name.is_some() {
                return Err("a second HloModule begins; accepted is one module a file".to_owned());
            }
            let end = head.find(',').unwrap_or(head.len());
            (self.name, self.head) = (Some(head[..end].trim()), head[end..].trim_start_matches(','));
            return Ok(());
        }
        if self.name.is_none() {
            return Err("the text begins with no HloModule; accepted is the text of a compiled HLO module".to_owned());
        }
        if self.inside.is_none() {
            // Tables of source lines may follow the head.
            if text.ends_with('{') {
                self.begin(number, text);
            }
            return Ok(());
        }
        if text.starts_with('}') { self.end() } else { self.instruction(number, text) }
    }

    fn begin(&mut self, line: u32, text: &'a str) {
        let (is_entry, rest) = text.strip_prefix("ENTRY").map_or((false, text), |rest| (true, rest));
        let name = rest.trim().split([' ', '(']).next().unwrap_or_default().trim_start_matches('%');
        let computation = Computation { name, ..Computation::default() };
        self.inside = Some(Open { line, is_entry, root: None, computation, values: FxHashMap::default() });
    }

    fn end(&mut self) -> Result<(), String> {
        let Some(open) = self.inside.take() else { return Ok(()) };
        let mut computation = open.computation;
        let Some(last) = computation.instructions.len().checked_sub(1) else {
            return Err(format!("computation '{}' is empty", excerpt(computation.name)));
        };
        computation.root = open.root.unwrap_or(last);
        if open.is_entry {
            self.entry = Some(self.computations.len());
        }
        if self.names.insert(computation.name, self.computations.len()).is_some() {
            return Err(format!("two computations are named '{}'", excerpt(computation.name)));
        }
        self.computations.push(computation);
        Ok(())
    }

    fn instruction(&mut self, line: u32, text: &'a str) -> Result<(), String> {
        self.instructions += 1;
        if self.instructions > MOST_INSTRUCTIONS {
            return Err(format!("the module has more than {MOST_INSTRUCTIONS} instructions"));
        }
        let open = self.inside.as_mut().expect("a computation is open");
        let (is_root, text) = text.strip_prefix("ROOT ").map_or((false, text), |rest| (true, rest));
        let (name, rest) = text.split_once(" = ").ok_or_else(|| {
            format!("'{}' is not an instruction; accepted is NAME = SHAPE OPCODE(OPERANDS)", excerpt(text))
        })?;
        let name = name.trim().trim_start_matches('%');
        let (shape, rest) = Shape::read(rest)?;
        let rest = rest.trim_start();
        let wrong = || format!("'{}' is not OPCODE(OPERANDS)", excerpt(rest));
        let begin = rest.find('(').ok_or_else(wrong)?;
        let opcode = rest[..begin].trim();
        let (inside, attributes) = bracketed(&rest[begin..]).ok_or_else(wrong)?;
        let at = open.computation.instructions.len();
        let (mut operands, mut parameter) = (Vec::new(), None);
        match opcode {
            "constant" | "iota" => {}
            "parameter" => parameter = Some(open.computation.parameter(inside, at)?),
            _ => {
                for operand in parts(inside) {
                    let name = operand.rsplit(' ').next().unwrap_or(operand).trim_start_matches('%');
                    let found = open.values.get(name).copied();
                    operands
                        .push(found.ok_or_else(|| format!("no value before this line is named '{}'", excerpt(name)))?);
                }
            }
        }
        if open.values.insert(name, at).is_some() {
            return Err(format!("two values are named '{}'", excerpt(name)));
        }
        if is_root {
            open.root = Some(at);
        }
        let (opcode, half) = half(opcode);
        let read = Instruction { line, name, shape, opcode, half, operands, parameter, attributes };
        open.computation.instructions.push(read);
        Ok(())
    }

    fn finish(self) -> Result<Module<'a>, Wrong> {
        if let Some(open) = self.inside {
            let name = excerpt(open.computation.name);
            return Err(Wrong::line(open.line, format!("computation '{name}' has no end; the file is cut off")));
        }
        let name = self.name.ok_or_else(|| Wrong::file("the file is empty; accepted is the text of an HLO module"))?;
        let entry = self.entry.ok_or_else(|| Wrong::file("no computation is marked ENTRY; the file is cut off"))?;
        let count =
            |key| {
                let text = value(self.head, key)?;
                Some(text.parse::<u32>().ok().filter(|&n| n > 0).ok_or_else(|| {
                    Wrong::line(1, format!("{key} is '{}'; accepted is a number above 0", excerpt(text)))
                }))
            };
        let (partitions, replicas) = (count("num_partitions").transpose()?, count("replica_count").transpose()?);
        Ok(Module { name, partitions, replicas, computations: self.computations, entry, names: self.names })
    }
}

impl Computation<'_> {
    fn parameter(&mut self, number: &str, at: usize) -> Result<usize, String> {
        let wrong = || format!("'{}' is not the number of a parameter", excerpt(number));
        let number: u16 = number.trim().parse().map_err(|_| wrong())?;
        let number = narrow::<usize>(number);
        self.parameters.resize(self.parameters.len().max(number + 1), None);
        if self.parameters[number].replace(at).is_some() {
            return Err(format!("two parameters have the number {number}"));
        }
        Ok(number)
    }
}
