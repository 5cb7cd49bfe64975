//! The emitter of plans: chooses the protocol, and proves what it has written before it hands it out.

use unisono_base::Diagnostics;
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_lower::VerifiedFile;
use unisono_schedule::{Flow, Schedule, topological, verify::Verified};

use super::{
    export::Exporter,
    plan::Protocol,
    unit::{MscclPp, NAME, Options, REFERENCE, check},
};
use crate::{Asked, Emitter, Files, Refused, msccl::chunk_elements};

/// Bytes of a vector up to which packets come first: they need no signals, and twice the bytes.
const PACKETS_BYTES: u64 = 1 << 17;
/// Instructions of a schedule; plans with more do not fit the thread blocks of GPUs.
const INSTRUCTIONS: usize = 1 << 14;

impl Emitter for MscclPp {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "an execution plan for MSCCL++, with packets or with signals"
    }

    fn reference(&self) -> &'static str {
        REFERENCE
    }

    fn emit(&self, proven: &VerifiedFile) -> Result<Files, Refused> {
        let text = text(proven.verified()).map_err(|reason| Refused { target: NAME, reason })?;
        Ok(vec![(format!("{}.json", proven.file().schedule.collective().kind), text.into())])
    }
}

fn text(proven: &Verified) -> Result<String, String> {
    let schedule = proven.schedule();
    let c = schedule.collective();
    expressible(schedule)?;
    let Some(class) = &proven.proof().expression_class else {
        return Err("its results are of too many combinations for a comparison with the emitted file".to_owned());
    };
    let unit = chunk_elements(schedule);
    let mut found = Diagnostics::default();
    let flow = Flow::new(schedule, &mut found);
    let order = topological(schedule, &flow, &mut found);
    let bytes = u64::from(c.input_len(0).max(c.output_len(0))) * c.dtype.bytes();
    let mut protocols = [Protocol::LL, Protocol::Simple];
    if bytes > PACKETS_BYTES {
        protocols.reverse();
    }
    // Plans name no operator where nothing is combined.
    let operator = if c.kind.reduces() { c.operator } else { Operator::Sum };
    let meant = Collective { operator, ..*c };
    let mut refused = String::new();
    for protocol in protocols {
        let text = Exporter::new(schedule, &flow, &order, protocol, unit).text();
        let asked = Asked { elements: Some(u64::from(c.elements)), dtype: Some(c.dtype), ..Asked::default() };
        let checked = check(&text, &asked, Options::default()).map_err(|e| fault(&e.to_string()))?;
        if let Some(first) = checked.diagnostics.first() {
            refused = if first.code == "limit" { first.message.clone() } else { fault(&first.message) };
            continue;
        }
        let same = checked.schedule.is_some_and(|s| *s.collective() == meant);
        if !same || checked.expression_class.as_ref() != Some(class) {
            return Err(fault("it reads back to another result"));
        }
        return Ok(text);
    }
    Err(refused)
}

fn fault(reason: &str) -> String {
    format!("the emitted plan is wrong, please report it: {reason}")
}

fn expressible(schedule: &Schedule) -> Result<(), String> {
    let c = schedule.collective();
    if !matches!(c.kind, Kind::Allgather | Kind::Allreduce | Kind::Alltoall | Kind::ReduceScatter) {
        return Err(format!(
            "{} is no collective of plans; there are allgather, allreduce, alltoall and reduce-scatter",
            c.kind
        ));
    }
    if schedule.node_count() > c.ranks as usize {
        return Err("it has switches; plans with switch channels are read and not written".to_owned());
    }
    if c.kind.reduces() && c.operator != Operator::Sum {
        return Err(format!("the runtime adds, and the operator is {}", c.operator));
    }
    if c.kind.reduces() && matches!(c.dtype, Dtype::F64 | Dtype::I64) {
        return Err(format!("the runtime has no reductions of {}; it has f16, bf16, f32 and i32", c.dtype));
    }
    if c.elements == 0 || c.ranks < 2 {
        return Err("it moves nothing between GPUs".to_owned());
    }
    if schedule.instr_count() > INSTRUCTIONS {
        let count = schedule.instr_count();
        return Err(format!("it has {count} instructions; plans of at most {INSTRUCTIONS} are written"));
    }
    let landed =
        schedule.all_streams().map(|s| u64::from(schedule.stream(s).len) * schedule.stream_sinks(s).len() as u64);
    let own = schedule.all_nodes().map(|n| u64::from(schedule.scratch_elements(n)));
    if landed.chain(own).sum::<u64>() > u64::from(u32::MAX / 8) {
        return Err("its streams take more scratch memory than a plan addresses".to_owned());
    }
    Ok(())
}
