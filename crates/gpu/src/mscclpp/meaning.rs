//! The meaning of each operation, as the runtime executes it.
//!
//! | operation | effects |
//! |---|---|
//! | `nop`; `barrier` | the threads of the block, or of `num_threadblocks` blocks, meet |
//! | `signal`, `wait`; `rlxsignal`, `rlxwait` | on each channel of `channel_ids`; the relaxed ones order no writes |
//! | `sem_acquire`, `sem_release` | on each semaphore of `semaphore_ids` |
//! | `flush` | on the first `dst_buff.len()` channels: the loader counts channels by destinations |
//! | `put` | `dst[i] = src[i]`, remote; on a port channel by thread `i`, after the operation, in no order with other puts |
//! | `pws`; `pwsf` | `put` on port channels, then a signal; then a flush |
//! | `get` | `dst[i] = src[i]`, with a remote source |
//! | `copy`; `cpkt`, `upkt` | `dst[0] = src[0]`; to packets, from packets |
//! | `re`, `rre` | `dst[0] = src[0] + src[1] + ...`; sources after the first are local, or remote |
//! | `res`, `rres` | the same, and `dst[1..]` are remote |
//! | `ppkt` | `dst[i] = src[i]`, remote packets |
//! | `rppkt` | `dst[i] = src[0]`, packets to remote packets |
//! | `repkt`, `respkt` | `dst[0] = 0 + src[1] + ... + src[0]`; `src[1..]` are packets and `dst[1..]` remote packets |
//! | `recpkt`, `recspkt` | the same; `dst[1]` are packets here and `dst[2..]` remote packets |
//! | `glres` | the switch adds the buffers of its group, in an order of its own, and multicasts the sum to them |
//! | `gstore`; `gstorepkt` | the switch multicasts a local buffer; packets to packets |
//! | `pipeline` | its operations, again for each unit of `num_chunks` chunks; those with packets move the whole slice each time |
//!
//! Each reduction adds, regardless of `reduce_op`, which the loader does not read. Source: microsoft/mscclpp,
//! `src/core/include/execution_kernel.hpp` and `src/core/executor/execution_plan.cc` at commit 1f5f065d.

use unisono_base::narrow;

use super::{
    plan::{Buffer, Name, Op, Slice},
    program::{Act, Move, Space, Span},
    resolve::Resolver,
};

type Result<T> = std::result::Result<T, String>;

/// Returns the effects of an operation that is not a pipeline.
///
/// # Errors
/// Returns the reason if a reference is invalid, or if operands do not fit the operation.
pub fn acts(op: &Op, at: &Resolver<'_>) -> Result<Vec<Act>> {
    let ends = || op.channel_ids.iter().map(|&id| at.end(op, id)).collect::<Result<Vec<_>>>();
    // A port channel has a single type of signal.
    let relaxed = matches!(op.name, Name::Rlxsignal | Name::Rlxwait) && !at.is_port(op)?;
    let has_none =
        matches!(op.name, Name::Nop | Name::Barrier | Name::Signal | Name::Rlxsignal | Name::Wait | Name::Rlxwait)
            || matches!(op.name, Name::SemAcquire | Name::SemRelease);
    if has_none && !(op.src_buff.is_empty() && op.dst_buff.is_empty()) {
        return Err(format!("{} has no buffers, and the loader reads those that it is given", op.name));
    }
    if op.name == Name::Flush {
        op.dst_buff.iter().try_for_each(|slice| at.remote(op, slice, false).map(drop))?;
    }
    Ok(match op.name {
        Name::Nop => vec![Act::Sync],
        Name::Barrier => vec![Act::Barrier {
            id: op.barrier_id.ok_or("barrier_id is missing")?,
            blocks: op.num_threadblocks.ok_or("num_threadblocks is missing")?,
        }],
        Name::Signal | Name::Rlxsignal => {
            (0..).zip(ends()?).map(|(thread, end)| Act::Signal { end, relaxed, thread }).collect()
        }
        Name::Wait | Name::Rlxwait => ends()?.into_iter().map(|end| Act::Wait { end, relaxed }).collect(),
        Name::Flush => {
            (0..).zip(ends()?).take(op.dst_buff.len()).map(|(thread, end)| Act::Flush { end, thread }).collect()
        }
        Name::SemAcquire => at.semaphores(op)?.map(Act::Acquire).collect(),
        Name::SemRelease => at.semaphores(op)?.map(Act::Release).collect(),
        Name::Pipeline => return Err("a pipeline is inside a pipeline, which the runtime does not run".to_owned()),
        Name::Put | Name::Pws | Name::Pwsf | Name::Ppkt | Name::Rppkt => puts(op, at)?,
        Name::Get => {
            same_number(op)?;
            let pairs = op.src_buff.iter().zip(&op.dst_buff);
            pairs
                .map(|(from, to)| Ok(plain(vec![at.remote(op, from, false)?], vec![at.local(op, to)?])))
                .collect::<Result<_>>()?
        }
        Name::Copy => vec![plain(vec![at.local(op, one(&op.src_buff)?)?], vec![at.local(op, one(&op.dst_buff)?)?])],
        Name::Cpkt => vec![plain(vec![at.local(op, one(&op.src_buff)?)?], vec![at.packets(op, one(&op.dst_buff)?)?])],
        Name::Upkt => vec![plain(vec![at.packets(op, one(&op.src_buff)?)?], vec![at.local(op, one(&op.dst_buff)?)?])],
        Name::Re | Name::Res | Name::Rre | Name::Rres => reduction(op, at)?,
        Name::Repkt | Name::Respkt | Name::Recpkt | Name::Recspkt => packet_reduction(op, at)?,
        Name::Glres => {
            let (reads, writes) =
                (at.switched(one(&op.src_buff)?, op, false)?, at.switched(one(&op.dst_buff)?, op, false)?);
            vec![Act::Move(Move { reads, writes, port: None, by_switch: true, from_zero: false })]
        }
        Name::Gstore | Name::Gstorepkt => {
            let packets = op.name == Name::Gstorepkt;
            let source = one(&op.src_buff)?;
            let read = if packets { at.packets(op, source)? } else { at.local(op, source)? };
            let mut writes = at.switched(one(&op.dst_buff)?, op, packets)?;
            // Packets that a switch writes back to the place from which they were read change nothing.
            writes.retain(|w| !packets || *w != read);
            vec![Act::Move(Move { reads: vec![read], writes, port: None, by_switch: true, from_zero: false })]
        }
    })
}

fn plain(reads: Vec<Span>, writes: Vec<Span>) -> Act {
    Act::Move(Move { reads, writes, port: None, by_switch: false, from_zero: false })
}

fn one(slices: &[Slice]) -> Result<&Slice> {
    match slices {
        [only] => Ok(only),
        _ => Err(format!(
            "src_buff and dst_buff have one entry each for this operation, and one of them has {}",
            slices.len()
        )),
    }
}

fn same_number(op: &Op) -> Result<()> {
    let (sources, sinks) = (op.src_buff.len(), op.dst_buff.len());
    if sources == sinks { Ok(()) } else { Err(format!("src_buff has {sources} entries and dst_buff has {sinks}")) }
}

fn puts(op: &Op, at: &Resolver<'_>) -> Result<Vec<Act>> {
    let is_port = at.is_port(op)?;
    let one_source = op.name == Name::Rppkt;
    if one_source {
        one(&op.src_buff)?;
    } else {
        same_number(op)?;
    }
    if !is_port && matches!(op.name, Name::Pws | Name::Pwsf) {
        return Err("a put with a signal needs a port channel: the runtime gives none on a memory channel".to_owned());
    }
    if is_port && op.name == Name::Ppkt {
        return Err(
            "the runtime copies the source of a ppkt on a port channel as packets; use cpkt and rppkt".to_owned()
        );
    }
    if is_port && op.channel_ids.len() != op.dst_buff.len() {
        let (channels, sinks) = (op.channel_ids.len(), op.dst_buff.len());
        return Err(format!(
            "channel_ids has {channels} entries and dst_buff has {sinks}; a port channel carries each put"
        ));
    }
    let packets = matches!(op.name, Name::Ppkt | Name::Rppkt);
    let mut acts = Vec::new();
    for (n, sink) in op.dst_buff.iter().enumerate() {
        let source = if one_source { &op.src_buff[0] } else { &op.src_buff[n] };
        let read = if one_source { at.packets(op, source)? } else { at.local(op, source)? };
        let write = at.remote(op, sink, packets)?;
        let thread = narrow::<u32>(n);
        let port = if is_port { Some((at.port_end(op, n, write.gpu)?, thread)) } else { None };
        acts.push(Act::Move(Move { reads: vec![read], writes: vec![write], port, by_switch: false, from_zero: false }));
        let signals = matches!(op.name, Name::Pws | Name::Pwsf);
        acts.extend(port.filter(|_| signals).map(|(end, thread)| Act::Signal { end, relaxed: false, thread }));
        acts.extend(port.filter(|_| op.name == Name::Pwsf).map(|(end, thread)| Act::Flush { end, thread }));
    }
    Ok(acts)
}

fn split<'a>(slices: &'a [Slice], key: &str) -> Result<(&'a Slice, &'a [Slice])> {
    slices.split_first().ok_or_else(|| format!("{key} is empty"))
}

fn reduction(op: &Op, at: &Resolver<'_>) -> Result<Vec<Act>> {
    let (own, others) = split(&op.src_buff, "src_buff")?;
    let (result, sends) = split(&op.dst_buff, "dst_buff")?;
    let is_remote = matches!(op.name, Name::Rre | Name::Rres);
    let mut reads = vec![at.local(op, own)?];
    for other in others {
        reads.push(if is_remote { at.remote(op, other, false)? } else { at.local(op, other)? });
    }
    let mut writes = vec![at.local(op, result)?];
    writes.extend(sent(op, sends, at, false)?);
    Ok(vec![plain(reads, writes)])
}

fn packet_reduction(op: &Op, at: &Resolver<'_>) -> Result<Vec<Act>> {
    let (own, others) = split(&op.src_buff, "src_buff")?;
    let (result, mut sends) = split(&op.dst_buff, "dst_buff")?;
    let mut reads = others.iter().map(|s| at.packets(op, s)).collect::<Result<Vec<_>>>()?;
    reads.push(at.local(op, own)?);
    let mut writes = vec![at.local(op, result)?];
    if matches!(op.name, Name::Recpkt | Name::Recspkt) {
        let (copy, rest) = split(sends, "dst_buff after its first entry")?;
        writes.push(at.packets(op, copy)?);
        sends = rest;
    }
    writes.extend(sent(op, sends, at, true)?);
    Ok(vec![Act::Move(Move { reads, writes, port: None, by_switch: false, from_zero: true })])
}

/// Returns the remote destinations, which only operations that send may have.
fn sent(op: &Op, sends: &[Slice], at: &Resolver<'_>, packets: bool) -> Result<Vec<Span>> {
    let can = matches!(op.name, Name::Res | Name::Rres | Name::Respkt | Name::Recspkt);
    if !can && !sends.is_empty() {
        return Err(format!("{} has no remote destination, and dst_buff has {} entries", op.name, op.dst_buff.len()));
    }
    sends.iter().map(|s| at.remote(op, s, packets)).collect()
}

/// Returns the memory for the name of a buffer.
pub fn space(buffer: Buffer) -> Space {
    match buffer {
        Buffer::Input => Space::Input,
        Buffer::Output => Space::Output,
        Buffer::Scratch => Space::Scratch,
    }
}
