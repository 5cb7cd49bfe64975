//! The operations of a program file, with colors as numbers of its parameters.

use unisono_base::narrow;
use unisono_collective::Collective;
use unisono_lower::wafer::{Color, End, Op, Step};

use super::{Code, Descriptor, ReadError, Run};
use crate::csl::write::{combine_builtin, move_builtin};

/// What a file makes of a PE; colors are numbers of its parameters.
pub struct Template {
    pub threads: Vec<Vec<Step>>,
    pub waits: Vec<(u32, u32)>,
    pub scratch: u32,
    pub input: u64,
    pub output: u64,
}

pub fn template(file: &str, code: &Code, collective: &Collective) -> Result<Template, ReadError> {
    let array = |name: &str| code.arrays.get(name).map_or(0, |a| a.0);
    let scratch = u32::try_from(array("scratch")).map_err(|_| ReadError::new(file, 1, "too much scratch memory"))?;
    let (mut threads, mut op_of_step) = (Vec::new(), Vec::new());
    let mut first = 0;
    for steps in &code.threads.steps {
        let mut ops: Vec<Step> = Vec::new();
        let mut numbers = Vec::new();
        for step in steps {
            let fail = |message| ReadError::new(file, step.run.line, message);
            add(code, &step.run, collective, &mut ops).map_err(fail)?;
            numbers.push(first + narrow::<u32>(ops.len()) - 1);
        }
        first += narrow::<u32>(ops.len());
        op_of_step.push(numbers);
        if !ops.is_empty() {
            threads.push(ops);
        }
    }
    let mut waits = Vec::new();
    for (t, steps) in code.threads.steps.iter().enumerate() {
        for (n, step) in steps.iter().enumerate() {
            for &(thread, ended) in &step.waits {
                let numbers = op_of_step.get(thread as usize);
                let last = usize::try_from(ended).ok().and_then(|e| e.checked_sub(1));
                let earlier = numbers.zip(last).and_then(|(n, last)| n.get(last));
                let earlier = earlier.ok_or_else(|| {
                    ReadError::new(
                        file,
                        step.run.line,
                        format!("a wait for step {ended} of thread {thread}, which has none"),
                    )
                })?;
                waits.push((op_of_step[t][n], *earlier));
            }
        }
    }
    waits.sort_unstable();
    waits.dedup();
    Ok(Template { threads, waits, scratch, input: array("input"), output: array("output") })
}

/// Adds a vector operation: a new operation, more of the last one, or its control wavelet.
fn add(code: &Code, run: &Run, collective: &Collective, ops: &mut Vec<Step>) -> Result<(), String> {
    let unknown = |name: &String| format!("`{name}` is no descriptor");
    let mut operands = Vec::new();
    for name in &run.operands {
        operands.push(code.descriptors.get(name).ok_or_else(|| unknown(name))?);
    }
    let [sink, sources @ ..] = &operands[..] else {
        return Err("an operation without operands".to_owned());
    };
    let len = u32::try_from(sink.extent()).map_err(|_| "too long".to_owned())?;
    let to = end(code, sink)?;
    let advances = match sink {
        Descriptor::Out { control: true, .. } => {
            let End::Fabric(color) = to else {
                return Err("a control wavelet to memory".to_owned());
            };
            let last = ops.last_mut().filter(|(_, _, sinks)| sinks[..] == [to]);
            let (op, ..) = last.ok_or("a control wavelet does not follow data of its color")?;
            if len != 1 || op.control.replace(color).is_some() {
                return Err("more than one control wavelet".to_owned());
            }
            return Ok(());
        }
        Descriptor::Out { advance, .. } => *advance,
        _ => false,
    };
    let builtin = if sources.len() == 1 { move_builtin(collective.dtype) } else { combine_builtin(collective)? };
    if run.builtin != builtin || sources.is_empty() || sources.len() > 2 {
        return Err(format!("`{}` with {} sources where `{builtin}` is expected", run.builtin, sources.len()));
    }
    let from = sources.iter().map(|s| end(code, s)).collect::<Result<Vec<_>, _>>()?;
    let advance = match to {
        End::Fabric(c) if advances => Some(c),
        _ => None,
    };
    if run.more {
        let last = ops.last_mut().ok_or("nothing to go on with")?;
        return join(last, len, &from, to, advance);
    }
    let mut op = Op::plain(len);
    op.advance = advance;
    op.phase = run.phase;
    ops.push((op, from, vec![to]));
    Ok(())
}

fn join(last: &mut Step, len: u32, from: &[End], to: End, advance: Option<Color>) -> Result<(), String> {
    let (op, sources, sinks) = last;
    let before = op.len;
    let follows = |a: &End, b: &End| match (*a, *b) {
        (End::In(a), End::In(b)) | (End::Out(a), End::Out(b)) | (End::Tmp(a), End::Tmp(b)) => {
            a.checked_add(before) == Some(b)
        }
        (a, b) => a == b,
    };
    let continued = sources.len() == from.len()
        && sources.iter().zip(from).all(|(a, b)| follows(a, b))
        && matches!(&sinks[..], [a] if follows(a, &to));
    if !continued || op.advance.is_some() || op.control.is_some() {
        return Err("it does not go on with the operation before".to_owned());
    }
    op.len = before.checked_add(len).ok_or("too long")?;
    op.advance = advance;
    Ok(())
}

/// An operand; a color is the number of its parameter.
fn end(code: &Code, descriptor: &Descriptor) -> Result<End, String> {
    match descriptor {
        Descriptor::Memory { array, start, .. } => {
            let start = u32::try_from(*start).map_err(|_| "too far into a vector".to_owned())?;
            match array.as_str() {
                "input" => Ok(End::In(start)),
                "output" => Ok(End::Out(start)),
                "scratch" => Ok(End::Tmp(start)),
                _ => Err(format!("`{array}` is no vector of the program")),
            }
        }
        Descriptor::In { color, .. } | Descriptor::Out { color, .. } => {
            let mut colors = code.params.iter().filter(|p| *p != "memcpy_params");
            let number = colors.position(|p| p == color);
            let number = number.and_then(|n| Color::try_from(n).ok());
            number.map(End::Fabric).ok_or_else(|| format!("`{color}` is no parameter"))
        }
    }
}
