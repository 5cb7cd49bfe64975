//! Resolves the references of a plan: channels to pairs of ends, buffers to spans of memory, pipelines to iterations.

use unisono_base::{interrupt::poll, limits, narrow};
use unisono_formats::ImportError;

use super::{
    connect::{Firsts, Switches, ends, references, switches},
    fault::{Fault, Place},
    layout::Layout,
    meaning,
    plan::{Buffer, ChannelType, Gpu, Name, Op, Plan, Slice, ThreadBlock},
    program::{Act, Block, Program, Space, Span, Step},
};

/// The maximum number of steps of a plan when its pipelines are unrolled.
const STEPS: usize = 1 << 20;

/// Resolves the references of one operation, in one iteration of its pipeline. [`references`] has checked the indices
/// in the lists of thread blocks.
pub struct Resolver<'a> {
    layout: &'a Layout,
    gpu: &'a Gpu,
    block: &'a ThreadBlock,
    /// For each GPU and type of channel (true for port), the index of its first end in the list of all ends.
    firsts: &'a Firsts,
    first_semaphore: u32,
    /// The grains of each slice that an iteration of a pipeline covers, as the first one and their number; `None`
    /// outside of pipelines.
    window: Option<(u32, u32)>,
    /// For each GPU and each of its switch channels, the GPUs of the channel's group, each with the buffer that it
    /// binds.
    switches: &'a Switches,
    /// The faults of slices outside of their buffers.
    outside: std::cell::RefCell<Vec<(&'static str, String)>>,
}

impl Resolver<'_> {
    fn local_id(&self, op: &Op, kind: ChannelType, id: u32) -> Result<u32, String> {
        let ids = self.block.channels.iter().filter(|c| c.channel_type == kind).flat_map(|c| &c.channel_ids);
        ids.clone().nth(id as usize).copied().ok_or_else(|| {
            let count = ids.count();
            format!("{} uses channel {id} of its thread block, which has {count} of that type", op.name)
        })
    }

    pub fn is_port(&self, op: &Op) -> Result<bool, String> {
        match op.channel_type {
            Some(ChannelType::Port) => Ok(true),
            Some(ChannelType::Memory) => Ok(false),
            _ => Err(format!("channel_type of {} is \"memory\" or \"port\"", op.name)),
        }
    }

    /// Returns the index, among all ends, of the end with index `id` in the thread block's list.
    pub fn end(&self, op: &Op, id: u32) -> Result<u32, String> {
        let is_port = self.is_port(op)?;
        let kind = if is_port { ChannelType::Port } else { ChannelType::Memory };
        let global = self.local_id(op, kind, id)?;
        Ok(self.firsts[&(self.gpu.id, is_port)] + global)
    }

    /// Returns the end of the port channel for the `n`-th destination; an error if the channel does not lead to `gpu`.
    pub fn port_end(&self, op: &Op, n: usize, gpu: u32) -> Result<u32, String> {
        let end = self.end(op, op.channel_ids[n])?;
        let to = self.layout.port_peers[self.gpu.id as usize]
            .get((end - self.firsts[&(self.gpu.id, true)]) as usize)
            .copied();
        if to == Some(gpu) {
            Ok(end)
        } else {
            Err(format!(
                "the port channel of destination {n} leads to another GPU than the buffer, which is of gpu {gpu}"
            ))
        }
    }

    pub fn semaphores(&self, op: &Op) -> Result<impl Iterator<Item = u32>, String> {
        let count = self.gpu.semaphores.len();
        if let Some(id) = op.semaphores().iter().find(|&&id| id as usize >= count) {
            return Err(format!("semaphore {id} is not there: gpu {} has {count}", self.gpu.id));
        }
        let first = self.first_semaphore;
        Ok(op.semaphores().iter().map(move |id| first + id).collect::<Vec<_>>().into_iter())
    }

    pub fn local(&self, op: &Op, slice: &Slice) -> Result<Span, String> {
        let buffer = slice.buffer.ok_or_else(|| format!("a local buffer of {} has a \"type\"", op.name))?;
        Ok(self.span(op, self.gpu.id, meaning::space(buffer), slice))
    }

    /// Returns a span of packets in this GPU's scratch memory.
    pub fn packets(&self, op: &Op, slice: &Slice) -> Result<Span, String> {
        match slice.buffer {
            Some(Buffer::Scratch) => Ok(self.span(op, self.gpu.id, Space::Packets, slice)),
            _ => Err(format!("packets of {} are in scratch memory (\"type\": \"s\")", op.name)),
        }
    }

    pub fn remote(&self, op: &Op, slice: &Slice, packets: bool) -> Result<Span, String> {
        let id = slice.buffer_id.ok_or_else(|| format!("a remote buffer of {} has a \"buffer_id\"", op.name))?;
        let kind = if self.is_port(op)? { ChannelType::Port } else { ChannelType::Memory };
        let refs = self.block.remote_buffer_refs.iter().filter(|r| r.access_channel_type == kind);
        let mut ids = refs.flat_map(|r| &r.remote_buffer_ids);
        let Some(&global) = ids.nth(id as usize) else {
            return Err(format!("buffer_id {id} is not among the remote_buffer_refs of the thread block"));
        };
        let remote = &self.gpu.remote_buffers[global as usize];
        let space = match (packets, remote.buffer) {
            (true, Buffer::Scratch) => Space::Packets,
            (true, _) => return Err(format!("packets of {} are in scratch memory (\"type\": \"s\")", op.name)),
            (false, buffer) => meaning::space(buffer),
        };
        Ok(self.span(op, remote.rank, space, slice))
    }

    /// Returns the span of the same slice on each GPU of a switch channel's group.
    pub fn switched(&self, slice: &Slice, op: &Op, packets: bool) -> Result<Vec<Span>, String> {
        let id = slice.switch_channel_id.ok_or_else(|| format!("{} has a \"switch_channel_id\"", op.name))?;
        let global = self.local_id(op, ChannelType::Switch, id)?;
        let group = &self.switches[self.gpu.id as usize][global as usize];
        if packets && group.iter().any(|&(_, buffer)| buffer != Buffer::Scratch) {
            return Err("packets behind a switch are in scratch memory".to_owned());
        }
        let space = |buffer| if packets { Space::Packets } else { meaning::space(buffer) };
        Ok(group.iter().map(|&(rank, buffer)| self.span(op, rank, space(buffer), slice)).collect())
    }

    fn span(&self, op: &Op, gpu: u32, space: Space, slice: &Slice) -> Span {
        let l = self.layout;
        let chunks = u64::from(slice.index) + u64::from(slice.size);
        if let Some((code, message)) = l.outside(gpu, space, chunks) {
            self.outside.borrow_mut().push((code, message));
            return Span { gpu, space, start: 0, len: 0 };
        }
        let (tb, size) = op.tbg_info.map_or((0, 1), |g| (g.tb_id, g.tbg_size));
        let all = slice.size * l.grains;
        let (mut from, mut to) = (l.share(all, tb, size), l.share(all, tb + 1, size));
        if let Some((at, unit)) = self.window.filter(|_| !op.name.has_packets()) {
            if at > to - from {
                let message = format!("the pipeline goes beyond the {} grains of its slice", to - from);
                self.outside.borrow_mut().push(("limit", message));
            }
            from = (from + at).min(to);
            to = (from + unit).min(to);
        }
        l.canonical(Span { gpu, space, start: slice.index * l.grains + from, len: to - from })
    }
}

/// Resolves all references. Slices outside of their buffers are faults, and the moves of their operations are left out.
///
/// # Errors
/// Returns one sentence with the path inside the file.
pub fn resolve(plan: &Plan, layout: &Layout) -> Result<(Program, Vec<Fault>), ImportError> {
    let (ends, firsts) = ends(plan)?;
    references(plan)?;
    let (switches, unpaired) = switches(plan)?;
    let mut program = Program { gpus: narrow(plan.gpus.len()), blocks: Vec::new(), ends, semaphores: Vec::new() };
    let (mut faults, mut steps) = (unpaired, 0);
    for (g, gpu) in plan.gpus.iter().enumerate() {
        let first_semaphore = narrow(program.semaphores.len());
        let values = gpu.semaphores.iter().enumerate();
        program.semaphores.extend(values.map(|(n, s)| (narrow::<u32>(g), narrow::<u32>(n), s.init_value)));
        for (b, block) in gpu.threadblocks.iter().enumerate() {
            if block.id as usize != b {
                return Err(ImportError::new(
                    0,
                    format!("gpus[{g}].threadblocks[{b}].id: {} is not {b}, its place", block.id),
                ));
            }
            let mut at = Resolver {
                layout,
                gpu,
                block,
                firsts: &firsts,
                first_semaphore,
                window: None,
                switches: &switches,
                outside: std::cell::RefCell::default(),
            };
            let mut made = Block { gpu: gpu.id, id: block.id, steps: Vec::new() };
            for (n, op) in block.ops.iter().enumerate() {
                let place =
                    Place { gpu: gpu.id, block: block.id, op: narrow(n), inner: None, launch: None, name: op.name };
                let wrong =
                    |reason: String| ImportError::new(0, format!("gpus[{g}].threadblocks[{b}].ops[{n}]: {reason}"));
                let mut add = |op: &Op, place: Place, at: &Resolver<'_>| {
                    poll();
                    let mut acts = check_group(op).and_then(|()| meaning::acts(op, at)).map_err(wrong)?;
                    match at.outside.take().into_iter().next() {
                        None => check_lengths(&acts).map_err(wrong)?,
                        Some((code, message)) => {
                            let here = (Some(place.gpu), Some(place.block), Some(place.op));
                            let of = |fault: &Fault| (fault.rank, fault.threadblock, fault.instruction);
                            if faults.last().map(of) != Some(here) {
                                faults.push(Fault::at(code, &place, message));
                            }
                            acts.retain(|act| !matches!(act, Act::Move(_)));
                        }
                    }
                    acts.retain(|act| !matches!(act, Act::Move(m) if m.len() == 0));
                    steps += acts.len().max(1);
                    if steps > STEPS {
                        let most = format!("the plan takes more than {STEPS} operations");
                        return Err(wrong(format!("{most} when its pipelines are written out")));
                    }
                    made.steps.push(Step { place, acts });
                    Ok(())
                };
                if op.name != Name::Pipeline {
                    add(op, place, &at)?;
                    continue;
                }
                let context = op.iter_context.ok_or_else(|| wrong("a pipeline has an iter_context".to_owned()))?;
                if op.ops.is_empty() {
                    return Err(wrong("a pipeline has ops, which the loader counts".to_owned()));
                }
                let unit = layout.unit(context.unit_size);
                let turns = (u64::from(context.num_chunks) * u64::from(layout.grains)).div_ceil(u64::from(unit));
                for turn in 0..u32::try_from(turns).unwrap_or(u32::MAX) {
                    at.window = Some((turn.saturating_mul(unit), unit));
                    for (inner, op) in op.ops.iter().enumerate() {
                        add(op, Place { inner: Some((narrow(inner), turn)), name: op.name, ..place }, &at)?;
                    }
                }
                at.window = None;
            }
            program.blocks.push(made);
        }
    }
    limits::admit("the plan", (steps as u128) * 512, steps as u128 * 64)
        .map_err(|e| ImportError::new(0, e.to_string()))?;
    Ok((program, faults))
}

fn check_group(op: &Op) -> Result<(), String> {
    match op.tbg_info {
        Some(g) if g.tbg_size == 0 || g.tb_id >= g.tbg_size => {
            Err(format!("tb_id {} of tbg_info is not below tbg_size {}", g.tb_id, g.tbg_size))
        }
        _ => Ok(()),
    }
}

fn check_lengths(acts: &[Act]) -> Result<(), String> {
    for act in acts {
        if let Act::Move(m) = act
            && let Some(other) = m.reads.iter().chain(&m.writes).find(|s| s.len != m.len())
        {
            return Err(format!("its buffers have different sizes: {} grains and {} grains", m.len(), other.len));
        }
    }
    Ok(())
}
