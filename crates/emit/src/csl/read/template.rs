//! The operations of a program file, with colors as numbers of its parameters.

use unisono_base::narrow;
use unisono_collective::Collective;
use unisono_lower::wafer::Step;

use super::{Code, ReadError, assembly::Assembly};

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
    for (thread, steps) in code.threads.steps.iter().enumerate() {
        let fail = |(line, message): (u32, String)| ReadError::new(file, line, message);
        let (ops, numbers) = Assembly::of(code, collective, thread, steps).map_err(fail)?;
        let numbers: Vec<u32> = numbers.into_iter().map(|n| first + narrow::<u32>(n)).collect();
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
