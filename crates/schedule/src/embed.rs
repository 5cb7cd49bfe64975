//! A finished schedule as a part of a larger one, such as the reduce of an allreduce or one level of a hierarchical
//! algorithm.

use unisono_base::{InstrId, LaneId, NodeId, StreamId, narrow};

use crate::{
    builder::{BuildError, Builder},
    instrs::Operands,
    schedule::{Operand, Schedule},
};

impl Builder {
    /// Adds all instructions of `part`, whose rank `k` becomes `nodes[k]`; switches of the part become new switches.
    ///
    /// `input` and `output` return, for a rank of the part, the operand of this schedule that holds element 0 of the
    /// rank's input or output; they are called only for buffers that the part accesses, and must not return streams.
    /// Scratch memory is newly allocated. On each node the part starts after all earlier instructions of the node.
    /// Lanes keep their numbers and phases their names; later instructions are in the part's last phase until the
    /// caller names another one. Input and output may overlap if the proof of the whole schedule accepts it.
    pub fn embed(
        &mut self,
        part: &Schedule,
        nodes: &[NodeId],
        input: impl Fn(u32) -> Operand,
        output: impl Fn(u32) -> Operand,
    ) {
        let ranks = part.collective().ranks;
        if nodes.len() != ranks as usize {
            return self.fail(BuildError::PartNodes { ranks, nodes: nodes.len() });
        }
        let mut nodes = nodes.to_vec();
        nodes.extend((nodes.len()..part.node_count()).map(|_| self.switch()));
        let streams: Vec<StreamId> = part
            .all_streams()
            .map(|s| {
                let sinks: Vec<NodeId> = part.stream_sinks(s).iter().map(|n| nodes[n.index()]).collect();
                let row = part.stream(s);
                let id = self.stream(nodes[row.source.index()], &sinks);
                if row.capacity != row.len {
                    self.capacity(id, row.capacity);
                }
                id
            })
            .collect();
        let mut renamed = vec![InstrId(0); part.instr_count()];
        let mut phase = None;
        for node in part.all_nodes() {
            let here = nodes[node.index()];
            let before = self.ends(here);
            let scratch = self.scratch(here, part.scratch_elements(node));
            let place = |operand: Operand| match operand {
                Operand::In(start) => offset(input(node.0), start),
                Operand::Out(start) => offset(output(node.0), start),
                Operand::Tmp(start) => offset(Operand::Tmp(scratch), start),
                Operand::Stream(s) => Ok(Operand::Stream(streams[s.index()])),
            };
            for (lane, row) in part.lanes(node).enumerate() {
                let lane = narrow(lane);
                for (n, id) in part.lane_instrs(LaneId::new(row)).map(InstrId::new).enumerate() {
                    if phase.replace(part.phase(id)) != Some(part.phase(id)) {
                        self.phase(&part.phases()[part.phase(id).index()]);
                    }
                    let placed = |operands: Operands<'_>| operands.iter().map(place).collect::<Result<Vec<_>, _>>();
                    let (sources, sinks) = match (placed(part.sources(id)), placed(part.sinks(id))) {
                        (Ok(sources), Ok(sinks)) => (sources, sinks),
                        (Err(error), _) | (_, Err(error)) => return self.fail(error),
                    };
                    let new = self.combine(here, lane, part.instr(id).len, &sources, &sinks);
                    renamed[id.index()] = new;
                    if n == 0 {
                        // In the same lane, instructions are already in order.
                        before.iter().filter(|(l, _)| **l != lane).for_each(|(_, &end)| self.after(new, end));
                    }
                }
            }
        }
        for &(instr, earlier) in part.dependencies() {
            self.after(renamed[instr.index()], renamed[earlier.index()]);
        }
    }
}

/// Returns the operand that starts `by` elements after `base`.
fn offset(base: Operand, by: u32) -> Result<Operand, BuildError> {
    let (start, make): (u32, fn(u32) -> Operand) = match base {
        Operand::In(start) => (start, Operand::In),
        Operand::Out(start) => (start, Operand::Out),
        Operand::Tmp(start) => (start, Operand::Tmp),
        Operand::Stream(found) => return Err(BuildError::PartPlace { found }),
    };
    let most = u64::from(u32::MAX);
    let too_many = BuildError::TooMany { what: "elements of a buffer", found: u64::from(start) + u64::from(by), most };
    start.checked_add(by).map(make).ok_or(too_many)
}
