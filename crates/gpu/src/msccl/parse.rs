//! The reader of a file: its elements and attributes, each with its range. Attributes that only msccl-tools omits get
//! the executor's defaults.

use unisono_base::{
    narrow,
    xml::{self, Element, short},
};
use unisono_formats::{Facts, ImportError};

use super::{
    limits,
    ops::{Buffer, Place},
    program::{Block, COLLECTIVES, Gpu, Program, Step, Type},
    text,
};

/// Returns the program in a file.
///
/// # Errors
/// Returns one sentence with the line if the file is not valid.
pub fn program(text: &str) -> Result<Program, ImportError> {
    let algo = xml::parse(text, "algo")?;
    if algo.name != "algo" {
        return Err(ImportError::new(algo.line, format!("<{}> is not <algo>", short(&algo.name))));
    }
    let gpus: Vec<&Element> = algo.children.iter().filter(|e| e.name == "gpu").collect();
    let stated = algo.number("ngpus", 1, i64::from(limits::GPUS))?;
    if stated != gpus.len() as i64 {
        return Err(ImportError::new(algo.line, format!("ngpus=\"{stated}\", and there are {} <gpu>", gpus.len())));
    }
    let mut places: Vec<Option<Gpu>> = vec![None; gpus.len()];
    for element in gpus {
        let id = element.number("id", 0, stated - 1)?;
        let place = &mut places[narrow::<usize>(id)];
        if place.is_some() {
            return Err(ImportError::new(element.line, format!("gpu {id} is there twice")));
        }
        *place = Some(gpu(element, id, stated)?);
    }
    let coll = algo.text("coll")?;
    let Some(kind) = COLLECTIVES.kind(coll) else {
        let message = format!("coll=\"{}\" is not read; accepted are {}", short(coll), COLLECTIVES.names());
        return Err(ImportError::new(algo.line, message));
    };
    let has = |key: &str| algo.find(key).is_some();
    let in_place = has("inplace") && algo.number("inplace", 0, 1)? == 1;
    // Files of msccl-tools have neither `outofplace` nor `minBytes` and `maxBytes`.
    let out_of_place = if has("outofplace") { algo.number("outofplace", 0, 1)? == 1 } else { !in_place };
    let needed = ["proto", "inplace", "outofplace", "minBytes", "maxBytes"];
    let bytes = |key| if has(key) { algo.number(key, 0, i64::MAX).map(|n| n.cast_unsigned()) } else { Ok(0) };
    Ok(Program {
        name: algo.find("name").unwrap_or_default().to_owned(),
        protocol: algo.find("proto").unwrap_or("Simple").to_owned(),
        channels: narrow(algo.number("nchannels", 0, limits::CHANNELS as i64)?),
        chunks: narrow(algo.number("nchunksperloop", 1, i64::from(i32::MAX))?),
        kind,
        in_place,
        out_of_place,
        min_bytes: bytes("minBytes")?,
        max_bytes: bytes("maxBytes")?,
        missing: needed.into_iter().filter(|key| !has(key)).collect(),
        refused: text::refused(text).or_else(|| inside_a_step(&algo)),
        meaning: meaning(&algo)?,
        gpus: places.into_iter().flatten().collect(),
    })
}

/// Returns the reason why the executor's parser fails on the first element inside a step, if there is one: the parser
/// then searches a list that steps do not have.
fn inside_a_step(element: &Element) -> Option<String> {
    let inner = element.children.first().filter(|_| element.name == "step");
    let found = inner.map(|e| {
        format!(
            "line {}: <{}> is inside of a <step>, where the executor's parser fails; leave it out",
            e.line,
            short(&e.name)
        )
    });
    found.or_else(|| element.children.iter().find_map(inside_a_step))
}

/// Returns the values of this project's own attributes, if the file has them.
fn meaning(algo: &Element) -> Result<Facts, ImportError> {
    let wrong = |e: unisono_collective::CollectiveError| ImportError::new(algo.line, e.to_string());
    let number = |key| algo.find(key).map(|_| algo.number(key, 0, i64::MAX).map(|n| n.cast_unsigned())).transpose();
    Ok(Facts {
        elements: number("elements")?,
        dtype: algo.find("dtype").map(str::parse).transpose().map_err(wrong)?,
        operator: algo.find("op").map(str::parse).transpose().map_err(wrong)?,
        root: number("root")?,
    })
}

fn gpu(element: &Element, id: i64, gpus: i64) -> Result<Gpu, ImportError> {
    let chunks = |key| element.number(key, 0, i64::from(i32::MAX)).map(narrow);
    let elements: Vec<&Element> = element.children.iter().filter(|e| e.name == "tb").collect();
    let last = elements.len() as i64 - 1;
    // The executor accepts thread blocks in any order, if their numbers have no gap.
    let mut blocks: Vec<Option<Block>> = vec![None; elements.len()];
    for tb in elements {
        let number = tb.number("id", 0, last)?;
        let place = &mut blocks[narrow::<usize>(number)];
        if place.is_some() {
            return Err(ImportError::new(tb.line, format!("thread block {number} of gpu {id} is there twice")));
        }
        let peer = |key| {
            let peer = tb.number(key, -1, gpus - 1)?;
            if peer == id {
                return Err(ImportError::new(tb.line, format!("{key}=\"{peer}\" is the GPU itself")));
            }
            Ok(u32::try_from(peer).ok())
        };
        let (send, receive) = (peer("send")?, peer("recv")?);
        let channel = narrow(tb.number("chan", 0, limits::CHANNELS as i64 - 1)?);
        let steps: Vec<&Element> = tb.children.iter().filter(|e| e.name == "step").collect();
        let steps = steps.into_iter().enumerate().map(|(at, e)| step(e, at)).collect::<Result<Vec<_>, _>>()?;
        let block = Block { line: tb.line, send, receive, channel, steps };
        for step in &block.steps {
            let lacks = if step.kind.sends() && send.is_none() { Some(("sends", "send")) } else { None };
            let lacks =
                lacks.or(if step.kind.receives() && receive.is_none() { Some(("receives", "recv")) } else { None });
            if let Some((does, key)) = lacks {
                let message = format!("the step {does}, and its thread block has {key}=\"-1\"");
                return Err(ImportError::new(step.line, message));
            }
        }
        *place = Some(block);
    }
    Ok(Gpu {
        line: element.line,
        input: chunks("i_chunks")?,
        output: chunks("o_chunks")?,
        scratch: chunks("s_chunks")?,
        blocks: blocks.into_iter().flatten().collect(),
    })
}

fn step(e: &Element, at: usize) -> Result<Step, ImportError> {
    // The executor runs steps in the order of the file, regardless of their numbers.
    let number = e.number("s", 0, limits::STEPS.max(at + 1) as i64 - 1)?;
    let name = e.text("type")?;
    let Some(&(_, kind)) = Type::NAMES.iter().find(|(n, _)| *n == name) else {
        let names: Vec<_> = Type::NAMES.iter().map(|(n, _)| *n).collect();
        let message = format!("type=\"{}\" is not a step; accepted are {}", short(name), names.join(", "));
        return Err(ImportError::new(e.line, message));
    };
    let place = |buf: &str, off: &str, used: bool| {
        let buffer = match e.text(buf)? {
            "i" => Buffer::Input,
            "o" => Buffer::Output,
            "s" => Buffer::Scratch,
            other => {
                let message = format!("{buf}=\"{}\" is not a buffer; accepted are i, o, s", short(other));
                return Err(ImportError::new(e.line, message));
            }
        };
        let chunk = e.number(off, if used { 0 } else { -1 }, i64::from(i32::MAX))?;
        Ok(Place { buffer, chunk: narrow(chunk.max(0)) })
    };
    let block = e.number("depid", -1, 1 << 20)?;
    // A wait for step -1 is refused, because it would end at once: a flag of the previous iteration satisfies it.
    let earlier = e.number("deps", block.signum().min(0), 1 << 20)?;
    Ok(Step {
        line: e.line,
        number: narrow(number),
        kind,
        source: place("srcbuf", "srcoff", kind.reads())?,
        destination: place("dstbuf", "dstoff", kind.writes())?,
        count: narrow(e.number("cnt", 0, i64::from(limits::COUNT))?),
        waits_for: u32::try_from(block).ok().map(|b| (b, narrow(earlier.max(0)))),
        is_awaited: e.number("hasdep", 0, 1)? == 1,
    })
}
