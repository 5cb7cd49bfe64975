//! The emitter of files. It writes the first program that the executor can run, reads it back and proves it again.

use std::sync::OnceLock;

use unisono_base::InstrId;
use unisono_collective::{Kind, Operator};
use unisono_formats::{Facts, Refused};
use unisono_lower::{File, VerifiedFile};
use unisono_machine::network::Network;
use unisono_schedule::{
    Schedule,
    verify::{Method, Proof, verify},
};

use super::{
    NAME,
    blocks::Maker,
    connections::{Connections, Joins},
    executed::running,
    import,
    instances::instances,
    limits, parse,
    pieces::Pieces,
    program::{COLLECTIVES, Program, counts_all_ranks},
    slots,
    write::write,
};
use crate::{
    Choices, PROCESSORS,
    ordered::{Ordered, plan_name},
};

/// The attempts, in order: the maximum length of a piece in chunks, and the connections that share a thread block.
///
/// A connection buffers few chunks. Some schedules therefore deadlock with fused steps, which send only after they
/// receive, or with long pieces, whose sender waits for the receiver. Short pieces need more steps. [`Joins::Pairs`]
/// halves the number of thread blocks, but each thread block then waits for one more GPU.
const WAYS: [(u32, Joins); 6] = [
    (limits::COUNT, Joins::Fused),
    (limits::COUNT, Joins::None),
    (limits::IN_FLIGHT, Joins::Fused),
    (limits::IN_FLIGHT, Joins::None),
    (limits::COUNT, Joins::Pairs),
    (limits::IN_FLIGHT, Joins::Pairs),
];

/// The programs of a schedule, one for each entry of [`WAYS`], each built when it is first used.
pub(super) struct Programs<'a> {
    ordered: Ordered<'a>,
    made: [OnceLock<Result<Program, String>>; WAYS.len()],
    /// The maximum number of thread blocks of a GPU: RCCL's limit, unless the GPUs are known to be NVIDIA's.
    most: usize,
}

impl<'a> Programs<'a> {
    /// # Errors
    /// Returns the reason if no MSCCL program can compute the results of the schedule.
    pub fn new(proven: &'a VerifiedFile<'a>) -> Result<Self, Refused> {
        let gpu = proven.file().machine.as_ref().and_then(|machine| machine.get::<Network>()?.gpu);
        let is_nvidia = gpu.is_some_and(|gpu| !gpu.architecture.is_amd());
        let most = if is_nvidia { PROCESSORS as usize } else { limits::BLOCKS_OF_ALL };
        Ok(Self { ordered: Ordered::new(NAME, proven, expressible)?, made: Default::default(), most })
    }

    fn program(&self, n: usize) -> Result<&Program, String> {
        let made = || {
            let (longest, joins) = WAYS[n];
            let Ordered { schedule, flow, order, .. } = &self.ordered;
            let pieces = Pieces::new(schedule, flow, longest)?;
            let connections = Connections::new(schedule, flow, order, &pieces, joins);
            program(&Maker { schedule, flow, pieces: &pieces, connections: &connections, most: self.most }, order)
        };
        self.made[n].get_or_init(made).as_ref().map_err(Clone::clone)
    }

    /// Applies `make` to the programs in the order of [`WAYS`], with the chosen instances and protocol, and returns the
    /// first success.
    ///
    /// # Errors
    /// Returns an error if the format does not have a choice, or the reason why the last program cannot run.
    pub fn made<T>(&self, choices: &Choices, make: &dyn Fn(&Program) -> Result<T, String>) -> Result<T, Refused> {
        if choices.in_place.is_some() || choices.gpus_per_box.is_some() {
            let reason =
                "a file states by itself how it may be called, and has no boxes; only mscclpp has these choices";
            return Err(Refused::new(NAME, reason));
        }
        let mut last = String::new();
        for n in 0..WAYS.len() {
            let program = self.program(n).and_then(|p| instances(p, choices.thread_blocks.unwrap_or(1), self.most));
            let in_protocol = |p| match choices.protocol {
                Some(protocol) => Program { protocol: protocol.name().to_owned(), ..p },
                None => p,
            };
            match program.map(in_protocol).and_then(|p| make(&p)) {
                Ok(made) => return Ok(made),
                Err(reason) => last = reason,
            }
        }
        Err(Refused::new(NAME, last))
    }
}

fn expressible(schedule: &Schedule) -> Result<(), String> {
    let c = schedule.collective();
    if !COLLECTIVES.kinds().any(|kind| kind == c.kind) {
        let names: Vec<_> = COLLECTIVES.kinds().map(Kind::name).collect();
        return Err(format!("{} is no collective of the format; there are {}", c.kind, names.join(", ")));
    }
    if schedule.node_count() > c.ranks as usize {
        return Err("it has switches, and the format has GPUs only".to_owned());
    }
    if c.ranks > limits::GPUS {
        return Err(format!("it is for {} ranks; at most {} GPUs are held", c.ranks, limits::GPUS));
    }
    let known = [Operator::Sum, Operator::Prod, Operator::Min, Operator::Max];
    if c.kind.reduces() && !known.contains(&c.operator) {
        return Err(format!("NCCL has no operator {}; it has sum, prod, min and max", c.operator));
    }
    Ok(())
}

fn program(maker: &Maker<'_>, order: &[InstrId]) -> Result<Program, String> {
    let s = maker.schedule;
    let c = s.collective();
    let mut of_node: Vec<Vec<InstrId>> = vec![Vec::new(); s.node_count()];
    for &id in order {
        of_node[maker.flow.node_of(id).index()].push(id);
    }
    let mut in_place = true;
    let mut gpus = Vec::with_capacity(s.node_count());
    for (node, instrs) in s.all_nodes().zip(&of_node) {
        let (gpu, is_safe) = maker.gpu(node, instrs)?;
        in_place &= is_safe;
        gpus.push(gpu);
    }
    if let Some(message) = gpus.iter().find_map(|gpu| limits::too_many_nodes(gpus.len(), gpu)) {
        return Err(message);
    }
    let parts = if counts_all_ranks(c.kind) { c.ranks } else { 1 };
    let bytes = u64::from(c.elements) * u64::from(parts) * c.dtype.bytes();
    let channels = gpus.iter().flat_map(|g| &g.blocks).map(|b| b.channel + 1).max().unwrap_or(1);
    Ok(Program {
        name: plan_name(s),
        protocol: "Simple".to_owned(),
        channels,
        chunks: c.elements / maker.pieces.unit * parts,
        kind: c.kind,
        in_place,
        out_of_place: true,
        min_bytes: bytes,
        max_bytes: bytes,
        missing: Vec::new(),
        refused: None,
        meaning: Facts {
            elements: Some(u64::from(c.elements)),
            dtype: Some(c.dtype),
            operator: Some(c.operator),
            root: Some(u64::from(c.root)),
        },
        gpus,
    })
}

/// Returns whether two schedules of `min` or `max` differ only by swapped operands, which MSCCL files do not order. A
/// proof distinguishes such schedules on floating point, because of the sign of zero; the library does not.
fn is_swapped(a: &Schedule, b: &Schedule) -> bool {
    if !matches!(a.collective().operator, Operator::Min | Operator::Max) {
        return false;
    }
    let class = |schedule: &Schedule| verify(&schedule.with_operator(Operator::Sum), Method::Auto).expression_class;
    class(a).is_some_and(|class_a| class(b) == Some(class_a))
}

/// Returns the schedule of a program without proving it.
pub(super) fn draft(program: &Program) -> Result<File, String> {
    ends(program)?;
    let (schedule, blocks) = import::schedule(program, &Facts::default(), None).map_err(fault)?;
    Ok(File { schedule, placement: None, machine: None, blocks: Some(blocks) })
}

/// Checks that a program ends at all sizes, because a user may widen the range of sizes in its file.
fn ends(program: &Program) -> Result<(), String> {
    let running = running(program).map_err(fault)?;
    if slots::hangs(program, &running, (1, None)).is_some() {
        return Err(format!("it needs more than {} chunks in flight on a connection", limits::IN_FLIGHT));
    }
    Ok(())
}

fn fault(reason: impl std::fmt::Display) -> String {
    format!("the emitted file is wrong, please report it: {reason}")
}

/// Returns the text of a program. The text is read back for each way to run it that the file permits, and proved to
/// compute the same expressions.
pub(super) fn checked(program: &Program, schedule: &Schedule, proof: &Proof) -> Result<String, String> {
    let text = write(program);
    let again = parse::program(&text).map_err(fault)?;
    ends(&again)?;
    for in_place in [false, true] {
        if in_place && !program.in_place {
            continue;
        }
        let (read, _) = import::schedule(&again, &Facts::default(), Some(in_place)).map_err(fault)?;
        let found = verify(&read, Method::Auto);
        if let Some(d) = found.diagnostics.first() {
            return Err(fault(d));
        }
        let same = found.expression_class == proof.expression_class || is_swapped(&read, schedule);
        if read.collective() != schedule.collective() || !same {
            return Err(fault("it reads back to another result"));
        }
    }
    Ok(text)
}
