//! An executor of MSCCL files, written from the original interpreter and not from the importer. Thread blocks run step
//! by step, with flags and with FIFOs for two chunks. The data are 64-bit sums, one number for each chunk.

use std::collections::{BTreeMap, VecDeque};

type Attributes = BTreeMap<String, String>;

struct Block {
    send: i64,
    recv: i64,
    chan: i64,
    steps: Vec<Attributes>,
    /// The index of the next step.
    at: usize,
    /// The next chunk of that step.
    chunk: usize,
    flag: i64,
}

struct Gpu {
    buffers: BTreeMap<char, Vec<i64>>,
    blocks: Vec<Block>,
}

fn attributes(line: &str) -> Attributes {
    let mut rest = line;
    let mut found = Attributes::new();
    while let Some(at) = rest.find("=\"") {
        let key = rest[..at].rsplit([' ', '<']).next().unwrap().to_owned();
        let value = &rest[at + 2..];
        let end = value.find('"').unwrap();
        found.insert(key, value[..end].to_owned());
        rest = &value[end + 1..];
    }
    found
}

fn number(a: &Attributes, key: &str) -> i64 {
    a[key].parse().unwrap()
}

/// Runs a file on inputs in chunks and returns the outputs, or an error that names a step that cannot run.
pub fn run(
    text: &str,
    inputs: &[Vec<i64>],
    in_place: Option<&dyn Fn(usize, usize) -> (usize, usize)>,
) -> Result<Vec<Vec<i64>>, String> {
    let mut gpus: Vec<Gpu> = Vec::new();
    for line in text.lines() {
        let a = attributes(line);
        let line = line.trim_start();
        if line.starts_with("<gpu") {
            let zeros = |key| vec![-1_000_000_007; number(&a, key) as usize];
            let buffers = [('i', zeros("i_chunks")), ('o', zeros("o_chunks")), ('s', zeros("s_chunks"))].into();
            gpus.push(Gpu { buffers, blocks: Vec::new() });
        } else if line.starts_with("<tb") {
            let [send, recv, chan] = ["send", "recv", "chan"].map(|k| number(&a, k));
            let block = Block { send, recv, chan, steps: Vec::new(), at: 0, chunk: 0, flag: -1 };
            gpus.last_mut().unwrap().blocks.push(block);
        } else if line.starts_with("<step") {
            gpus.last_mut().unwrap().blocks.last_mut().unwrap().steps.push(a);
        }
    }
    // In place, input and output are windows of one buffer.
    let mut windows = vec![(0, 0); gpus.len()];
    for (g, gpu) in gpus.iter_mut().enumerate() {
        if let Some(starts) = in_place {
            windows[g] = starts(g, inputs[g].len());
            let len = (windows[g].0 + gpu.buffers[&'i'].len()).max(windows[g].1 + gpu.buffers[&'o'].len());
            let mut both = vec![-1_000_000_007; len];
            both[windows[g].0..windows[g].0 + inputs[g].len()].copy_from_slice(&inputs[g]);
            gpu.buffers.insert('b', both);
        } else {
            gpu.buffers.get_mut(&'i').unwrap().copy_from_slice(&inputs[g]);
        }
    }
    let mut wires: BTreeMap<(i64, i64, i64), VecDeque<i64>> = BTreeMap::new();
    loop {
        let mut moved = false;
        for g in 0..gpus.len() {
            for t in 0..gpus[g].blocks.len() {
                while advance(&mut gpus[g], g, t, &mut wires, in_place.map(|_| windows[g])) {
                    moved = true;
                }
            }
        }
        if !moved {
            break;
        }
    }
    let stuck = gpus.iter().enumerate().flat_map(|(g, gpu)| gpu.blocks.iter().enumerate().map(move |(t, b)| (g, t, b)));
    if let Some((g, t, b)) = stuck.into_iter().find(|(_, _, b)| b.at < b.steps.len()) {
        return Err(format!("gpu {g} tb {t} at step {}: {:?}", b.at, b.steps[b.at]));
    }
    assert!(wires.values().all(VecDeque::is_empty), "something was sent that nobody received");
    Ok(gpus
        .iter()
        .enumerate()
        .map(|(g, gpu)| match in_place {
            Some(_) => gpu.buffers[&'b'][windows[g].1..windows[g].1 + gpu.buffers[&'o'].len()].to_vec(),
            None => gpu.buffers[&'o'].clone(),
        })
        .collect())
}

/// Runs one chunk of the next step of a thread block, if it can run.
fn advance(
    gpu: &mut Gpu,
    g: usize,
    t: usize,
    wires: &mut BTreeMap<(i64, i64, i64), VecDeque<i64>>,
    windows: Option<(usize, usize)>,
) -> bool {
    let block = &gpu.blocks[t];
    let Some(step) = block.steps.get(block.at) else { return false };
    let (depid, deps) = (number(step, "depid"), number(step, "deps"));
    if block.chunk == 0 && depid >= 0 && gpu.blocks[depid as usize].flag < deps {
        return false;
    }
    let kind = step["type"].as_str();
    let into = (block.recv, g as i64, block.chan);
    let out = (g as i64, block.send, block.chan);
    let receives = kind.starts_with('r') && kind != "re";
    let sends = kind.ends_with('s') && kind != "nop";
    if receives && wires.get(&into).is_none_or(VecDeque::is_empty) {
        return false;
    }
    if sends && wires.get(&out).is_some_and(|w| w.len() >= 2) {
        return false;
    }
    let place = |buf: &str, off: &str| {
        let at = number(step, off) as usize + block.chunk;
        match (windows, step[buf].chars().next().unwrap()) {
            (Some((i, _)), 'i') => ('b', i + at),
            (Some((_, o)), 'o') => ('b', o + at),
            (_, name) => (name, at),
        }
    };
    let (source, destination) = (place("srcbuf", "srcoff"), place("dstbuf", "dstoff"));
    let (count, hasdep, at) = (number(step, "cnt") as usize, number(step, "hasdep"), block.at);
    let kind = kind.to_owned();
    let load = |gpu: &Gpu, (buffer, at): (char, usize)| gpu.buffers[&buffer][at];
    let arrived = if receives { wires.get_mut(&into).unwrap().pop_front().unwrap() } else { 0 };
    let value = match kind.as_str() {
        "nop" => 0,
        "s" | "cpy" => load(gpu, source),
        "r" | "rcs" => arrived,
        "rrs" | "rrc" | "rrcs" => arrived + load(gpu, source),
        "re" => load(gpu, destination) + load(gpu, source),
        other => panic!("{other}"),
    };
    if ["r", "rcs", "rrc", "rrcs", "cpy", "re"].contains(&kind.as_str()) {
        gpu.buffers.get_mut(&destination.0).unwrap()[destination.1] = value;
    }
    if sends {
        wires.entry(out).or_default().push_back(value);
    }
    let block = &mut gpu.blocks[t];
    block.chunk += 1;
    if block.chunk >= count.max(1) {
        block.chunk = 0;
        block.at += 1;
        if hasdep == 1 {
            block.flag = at as i64;
        }
    }
    true
}
