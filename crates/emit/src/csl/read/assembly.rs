//! Puts the vector operations of a thread together to operations: parts of one that is longer than a vector operation,
//! the chunks of one that takes its sources in turns, and control wavelets.
//!
//! Loops over chunks are run through, with descriptors that move, so that what is read is what the code does.

use rustc_hash::FxHashMap;
use unisono_collective::Collective;
use unisono_lower::wafer::{Color, End, Op, Step};

use super::{
    Code, Descriptor, Run,
    threads::{self, MOST_STEPS},
};
use crate::csl::{
    normal::in_turns,
    write::{MAP, move_builtin, vector_operation},
};

/// The sum of a chunk as far as it is: its sources, and whether its chunk goes on with the operation before.
struct Sum {
    sources: Vec<End>,
    len: u32,
    phase: u16,
    more: bool,
}

/// Elements that were received for `@map`, and whether their chunk goes on with the operation before.
struct Arrived {
    from: End,
    len: u32,
    phase: u16,
    more: bool,
}

pub struct Assembly<'a> {
    code: &'a Code,
    collective: &'a Collective,
    /// The vectors in which this thread adds up chunks, and receives them for `@map`.
    partial: String,
    buffer: String,
    arrived: Option<Arrived>,
    ops: Vec<Step>,
    sum: Option<Sum>,
    /// Elements by which descriptors have moved.
    moved: FxHashMap<&'a str, u64>,
}

/// Where an operand is: in the vector of sums of chunks, in that of received ones, or elsewhere.
enum Place {
    Partial,
    Buffer,
    End(End),
}

impl<'a> Assembly<'a> {
    /// The operations of a thread, and of each step the number of its operation.
    ///
    /// # Errors
    /// The line, and what is not as it is emitted.
    pub fn of(
        code: &'a Code,
        collective: &'a Collective,
        thread: usize,
        steps: &'a [threads::Step],
    ) -> Result<(Vec<Step>, Vec<usize>), (u32, String)> {
        let (partial, buffer) = (format!("partial_{thread}"), format!("arrived_{thread}"));
        let (ops, moved) = (Vec::new(), FxHashMap::default());
        let mut all = Self { code, collective, partial, buffer, arrived: None, ops, sum: None, moved };
        let mut numbers = vec![0; steps.len()];
        let mut rounds_done = vec![0; steps.len()];
        // The first step of a loop goes on with the operation, from the second round on.
        let (mut at, mut again, mut count) = (0, false, 0usize);
        while let Some(step) = steps.get(at) {
            let fail = |message: String| (step.run.line, message);
            count += 1;
            if count > MOST_STEPS {
                return Err(fail(format!("a thread of more than {MOST_STEPS} operations with loops unrolled")));
            }
            all.add(&step.run, step.run.more || again).map_err(fail)?;
            let begun = all.sum.as_ref().map(|s| s.more).or(all.arrived.as_ref().map(|a| a.more));
            let is_new = begun.is_some_and(|more| !more);
            numbers[at] = (all.ops.len() + usize::from(is_new)).saturating_sub(1);
            for m in &step.moves {
                let by = all.moved.entry(&m.descriptor).or_default();
                *by = by.saturating_add(m.elements);
            }
            again = false;
            if let Some((first, rounds)) = step.end_of {
                rounds_done[at] += 1;
                if rounds_done[at] < rounds {
                    (at, again) = (first, true);
                    continue;
                }
                rounds_done[at] = 0;
            }
            at += 1;
        }
        match all.sum.map(drop).or(all.arrived.map(drop)) {
            Some(()) => Err((steps.last().map_or(1, |s| s.run.line), "the sum of a chunk is not used".to_owned())),
            None => Ok((all.ops, numbers)),
        }
    }

    /// Adds a vector operation: a new operation, more of the last one, a part of a chunk's sum, or a control wavelet.
    fn add(&mut self, run: &'a Run, more: bool) -> Result<(), String> {
        let unknown = |name: &String| format!("`{name}` is no descriptor");
        let mut operands = Vec::new();
        for name in &run.operands {
            operands.push((name, self.code.descriptors.get(name).ok_or_else(|| unknown(name))?));
        }
        let [(name, sink), sources @ ..] = &operands[..] else {
            return Err("an operation without operands".to_owned());
        };
        let len = u32::try_from(sink.extent()).map_err(|_| "too long".to_owned())?;
        let to = self.place(name, sink)?;
        if run.onward {
            return self.onward(run, sources, &to, len);
        }
        let advances = match sink {
            Descriptor::Out { control: true, .. } => return self.control(&to, len),
            Descriptor::Out { advance, .. } => *advance,
            _ => false,
        };
        let vector = vector_operation(self.collective);
        let wanted = if sources.len() == 1 { move_builtin(self.collective.dtype) } else { vector.unwrap_or(MAP) };
        if run.builtin != wanted || sources.is_empty() || sources.len() > 2 {
            return Err(format!("`{}` with {} sources where `{wanted}` is expected", run.builtin, sources.len()));
        }
        let (mut from, mut more, mut phase) = (Vec::new(), more, run.phase);
        for (n, (name, source)) in sources.iter().enumerate() {
            match self.place(name, source)? {
                Place::End(end) => from.push(end),
                Place::Partial if n == 0 && (sources.len() == 2 || vector.is_none()) && self.sum.is_some() => {}
                Place::Partial => {
                    return Err("a sum of a chunk where none was begun, or not as first source".to_owned());
                }
                Place::Buffer => match self.arrived.take().filter(|a| n == 1 && a.len == len) {
                    Some(a) => {
                        from.push(a.from);
                        (more, phase) = (more || a.more, a.phase);
                    }
                    None => return Err("elements that did not arrive, or not as last source".to_owned()),
                },
            }
        }
        if self.arrived.is_some() {
            return Err("elements that arrived are not used by the next operation".to_owned());
        }
        if let Place::Buffer = to {
            let [from @ End::Fabric(_)] = from[..] else { return Err("only what arrives is received".to_owned()) };
            self.arrived = Some(Arrived { from, len, phase, more });
            return Ok(());
        }
        let goes_on = from.len() < sources.len();
        let (from, len, more, phase) = match self.sum.take() {
            None => (from, len, more, phase),
            Some(sum) if goes_on && sum.len == len => ([sum.sources, from].concat(), len, sum.more, sum.phase),
            Some(_) => return Err("the sum of a chunk is not used by the next operation".to_owned()),
        };
        let to = match to {
            Place::End(end) => end,
            Place::Partial | Place::Buffer => {
                self.sum = Some(Sum { sources: from, len, phase, more });
                return Ok(());
            }
        };
        let advance = match to {
            End::Fabric(c) if advances => Some(c),
            _ => None,
        };
        let takes_turns = if vector.is_some() { goes_on } else { in_turns(&from, len) };
        let chunk = if takes_turns { len } else { 1 };
        if more {
            let last = self.ops.last_mut().ok_or("nothing to go on with")?;
            return join(last, len, &from, to, advance, chunk);
        }
        let mut op = Op::plain(len);
        (op.advance, op.phase, op.chunk) = (advance, phase, chunk);
        self.ops.push((op, from, vec![to]));
        Ok(())
    }

    /// Sends on what the last operation has just kept in memory.
    fn onward(&mut self, run: &Run, sources: &[(&String, &Descriptor)], to: &Place, len: u32) -> Result<(), String> {
        let (Place::End(to @ End::Fabric(_)), [(name, source)]) = (to, sources) else {
            return Err("what is kept is sent from memory to the fabric".to_owned());
        };
        if run.builtin != move_builtin(self.collective.dtype) || self.sum.is_some() || self.arrived.is_some() {
            return Err(format!("`{}` between the parts of a chunk", run.builtin));
        }
        let from = self.place(name, source)?;
        let (op, _, sinks) = self.ops.last_mut().ok_or("nothing was kept")?;
        let kept = op.len.checked_sub(len).and_then(|skip| along(*sinks.first()?, skip));
        let Place::End(from) = from else { return Err("what is kept is no sum of a chunk".to_owned()) };
        if kept != Some(from) {
            return Err("what is sent is not what was kept".to_owned());
        }
        match sinks[1..] {
            [] if op.len == len => {
                sinks.push(*to);
                (op.chunk, op.sinks_in_turn) = (len, true);
            }
            [before] if before == *to => {}
            _ => return Err("what is kept is sent on another color, or was not sent before".to_owned()),
        }
        Ok(())
    }

    fn control(&mut self, to: &Place, len: u32) -> Result<(), String> {
        let Place::End(to @ End::Fabric(color)) = *to else {
            return Err("a control wavelet to memory".to_owned());
        };
        let last = self.ops.last_mut().filter(|(_, _, sinks)| sinks[..] == [to] && self.sum.is_none());
        let (op, ..) = last.ok_or("a control wavelet does not follow data of its color")?;
        if len != 1 || op.control.replace(color).is_some() {
            return Err("more than one control wavelet".to_owned());
        }
        Ok(())
    }

    /// An operand as it is now; a color is the number of its parameter.
    fn place(&self, name: &str, descriptor: &Descriptor) -> Result<Place, String> {
        let moved = self.moved.get(name).copied().unwrap_or(0);
        match descriptor {
            Descriptor::Memory { array, start, extent } => {
                let size = self.code.arrays.get(array).map_or(0, |a| a.0);
                let start = start.saturating_add(moved);
                if start.saturating_add(*extent) > size && moved > 0 {
                    return Err(format!("`{name}` moves beyond the {size} elements of `{array}`"));
                }
                if *array == self.partial && start == 0 {
                    return Ok(Place::Partial);
                }
                if *array == self.buffer && start == 0 {
                    return Ok(Place::Buffer);
                }
                let start = u32::try_from(start).map_err(|_| "too far into a vector".to_owned())?;
                match array.as_str() {
                    "input" => Ok(Place::End(End::In(start))),
                    "output" => Ok(Place::End(End::Out(start))),
                    "scratch" => Ok(Place::End(End::Tmp(start))),
                    _ => Err(format!("`{array}` is no vector of the program")),
                }
            }
            Descriptor::In { .. } | Descriptor::Out { .. } if moved > 0 => Err(format!("`{name}` is not in memory")),
            Descriptor::In { color, .. } | Descriptor::Out { color, .. } => {
                let mut colors = self.code.params.iter().filter(|p| *p != "memcpy_params");
                let number = colors.position(|p| p == color);
                let number = number.and_then(|n| Color::try_from(n).ok());
                number.map(|n| Place::End(End::Fabric(n))).ok_or_else(|| format!("`{color}` is no parameter"))
            }
        }
    }
}

/// The place `skip` elements into a vector in memory.
fn along(end: End, skip: u32) -> Option<End> {
    match end {
        End::In(start) => start.checked_add(skip).map(End::In),
        End::Out(start) => start.checked_add(skip).map(End::Out),
        End::Tmp(start) => start.checked_add(skip).map(End::Tmp),
        End::Fabric(_) => None,
    }
}

/// Adds `len` elements to an operation: the next part of a long one, or the next chunk of one in turns, which is no
/// longer than those before it.
fn join(last: &mut Step, len: u32, from: &[End], to: End, advance: Option<Color>, chunk: u32) -> Result<(), String> {
    let (op, sources, sinks) = last;
    let before = op.len;
    let follows = |a: &End, b: &End| if matches!(a, End::Fabric(_)) { a == b } else { along(*a, before) == Some(*b) };
    let continued = sources.len() == from.len()
        && sources.iter().zip(from).all(|(a, b)| follows(a, b))
        && matches!(&sinks[..], [a] | [a, _] if follows(a, &to));
    let whole = before.is_multiple_of(op.chunk) && chunk <= op.chunk;
    if !continued || op.advance.is_some() || op.control.is_some() || !whole {
        return Err("it does not go on with the operation before".to_owned());
    }
    op.len = before.checked_add(len).ok_or("too long")?;
    op.advance = advance;
    Ok(())
}
