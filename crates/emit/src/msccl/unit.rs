//! MSCCL XML as a registered format: written, read back and proved again; and read.

use std::sync::OnceLock;

use unisono_base::{InstrId, narrow};
use unisono_collective::Operator;
use unisono_lower::{File, VerifiedFile};
use unisono_machine::network::Protocol;
use unisono_schedule::{
    Flow, Schedule, topological,
    verify::{Method, Proof, verify},
};

use super::{
    blocks::Maker,
    check::check,
    connections::Connections,
    executed::transmissions,
    import,
    instances::instances,
    limits, parse,
    pieces::Pieces,
    program::{COLLECTIVES, Meaning, Program, counts_all_ranks},
    slots::{self, Running},
    write::write,
};
use crate::{Asked, Choices, Drafts, Emitter, FileBits, Files, ImportError, Importer, Refused, on_gpus};

pub struct MscclXml;

const NAME: &str = "msccl-xml";
const REFERENCE: &str = "docs/export.md; msccl-executor-nccl";

impl Emitter for MscclXml {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "an algorithm file for the GPU executors that read MSCCL's XML"
    }

    fn reference(&self) -> &'static str {
        REFERENCE
    }

    fn protocols(&self) -> &'static [Protocol] {
        &Protocol::ALL
    }

    fn thread_blocks(&self) -> u32 {
        narrow(limits::BLOCKS)
    }

    fn bits(&self, text: &str, schedule: &Schedule) -> Option<Result<FileBits, ImportError>> {
        Some(check(text, &Asked::of(schedule), Method::Auto, crate::PROCESSORS).map(|checked| checked.file_bits))
    }

    fn accepts(&self, proven: &VerifiedFile) -> Result<(), Refused> {
        self.drafts(proven)(&Choices::default()).map(drop)
    }

    fn drafts<'a>(&self, proven: &'a VerifiedFile<'a>) -> Drafts<'a> {
        let programs = Programs::new(proven);
        Box::new(move |choices| programs.as_ref().map_err(Clone::clone)?.made(choices, &draft))
    }

    fn emit(&self, proven: &VerifiedFile) -> Result<Files, Refused> {
        self.emit_as(proven, &Choices::default())
    }

    fn emit_as(&self, proven: &VerifiedFile, choices: &Choices) -> Result<Files, Refused> {
        let (schedule, proof) = (proven.verified().schedule(), proven.verified().proof());
        let text = Programs::new(proven)?.made(choices, &|program| checked(program, schedule, proof))?;
        Ok(vec![(format!("{}.xml", schedule.collective().kind), text.into())])
    }
}

impl Importer for MscclXml {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "an algorithm file of MSCCL, as its tools write it"
    }

    fn reference(&self) -> &'static str {
        REFERENCE
    }

    fn import(&self, text: &str, asked: &Asked) -> Result<File, ImportError> {
        let (schedule, blocks) = import::schedule(&parse::program(text)?, asked, None)?;
        Ok(File { schedule, placement: None, machine: None, blocks: Some(blocks) })
    }
}

/// The length of pieces, and whether steps are fused, in the order in which they are tried. Fused steps tie a receive
/// to a send, and long pieces tie two GPUs that exchange them, which some schedules cannot bear with the little that a
/// connection holds. Short pieces take more steps.
const WAYS: [(u32, bool); 4] =
    [(limits::COUNT, true), (limits::COUNT, false), (limits::IN_FLIGHT, true), (limits::IN_FLIGHT, false)];

/// The programs of a schedule, each made when it is first used.
struct Programs<'a> {
    schedule: &'a Schedule,
    flow: Flow,
    order: Vec<InstrId>,
    made: [OnceLock<Result<Program, String>>; WAYS.len()],
}

impl<'a> Programs<'a> {
    /// # Errors
    /// The reason why no program has the results of the schedule.
    fn new(proven: &'a VerifiedFile<'a>) -> Result<Self, Refused> {
        on_gpus(NAME, proven.file())?;
        let (schedule, proof) = (proven.verified().schedule(), proven.verified().proof());
        expressible(schedule).map_err(refused)?;
        if proof.expression_class.is_none() {
            let reason = "its results are of too many combinations for a comparison with the emitted file";
            return Err(refused(reason.to_owned()));
        }
        let mut found = unisono_base::Diagnostics::default();
        let flow = Flow::new(schedule, &mut found);
        let order = topological(schedule, &flow, &mut found);
        Ok(Self { schedule, flow, order, made: Default::default() })
    }

    /// Returns the program of the `n`-th of [`WAYS`].
    fn program(&self, n: usize) -> Result<&Program, String> {
        let made = || {
            let (longest, fuse) = WAYS[n];
            let (schedule, flow) = (self.schedule, &self.flow);
            let pieces = Pieces::new(schedule, flow, longest)?;
            let connections = Connections::new(schedule, flow, &self.order, &pieces, fuse);
            program(&Maker { schedule, flow, pieces: &pieces, connections: &connections }, &self.order)
        };
        self.made[n].get_or_init(made).as_ref().map_err(Clone::clone)
    }

    /// Makes a file or a draft of the first program that the library runs.
    ///
    /// # Errors
    /// A choice that the format does not have, and the reason why the library does not run the last program.
    fn made<T>(&self, choices: &Choices, make: &dyn Fn(&Program) -> Result<T, String>) -> Result<T, Refused> {
        if choices.in_place.is_some() || choices.gpus_per_box.is_some() {
            let reason =
                "a file states by itself how it may be called, and has no boxes; only mscclpp has these choices";
            return Err(refused(reason.to_owned()));
        }
        let mut last = String::new();
        for n in 0..WAYS.len() {
            let program = self.program(n).and_then(|p| instances(p, choices.thread_blocks.unwrap_or(1)));
            let in_protocol = |p| match choices.protocol {
                Some(protocol) => Program { protocol: protocol.name().to_owned(), ..p },
                None => p,
            };
            match program.map(in_protocol).and_then(|p| make(&p)) {
                Ok(made) => return Ok(made),
                Err(reason) => last = reason,
            }
        }
        Err(refused(last))
    }
}

fn refused(reason: String) -> Refused {
    Refused { target: NAME, reason }
}

fn expressible(schedule: &Schedule) -> Result<(), String> {
    let c = schedule.collective();
    if !COLLECTIVES.iter().any(|(_, kind)| *kind == c.kind) {
        let names: Vec<_> = COLLECTIVES.iter().map(|(_, kind)| kind.name()).collect();
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
    let what = if s.origin().is_empty() { c.kind.name() } else { s.origin() };
    Ok(Program {
        name: format!("unisono-{}", what.replace(' ', "-")),
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
        meaning: Meaning {
            elements: Some(u64::from(c.elements)),
            dtype: Some(c.dtype),
            operator: Some(c.operator),
            root: Some(u64::from(c.root)),
        },
        gpus,
    })
}

/// True if two schedules are the same expressions up to swapping operands, which the language does not order. Operands
/// of `min` and `max` on floating point are ordered in a proof, for the sign of a zero, but not in the library that
/// runs this.
fn is_swapped(a: &Schedule, b: &Schedule) -> bool {
    if !matches!(a.collective().operator, Operator::Min | Operator::Max) {
        return false;
    }
    let class = |schedule: &Schedule| verify(&schedule.with_operator(Operator::Sum), Method::Auto).expression_class;
    class(a).is_some_and(|class_a| class(b) == Some(class_a))
}

/// Returns the schedule of a program, which is not proved.
fn draft(program: &Program) -> Result<File, String> {
    let running = program.gpus.iter().map(transmissions).collect::<Result<_, _>>();
    ends(program, &running.map_err(|e: ImportError| fault(&e.to_string()))?)?;
    let read = import::schedule(program, &Asked::default(), None);
    let (schedule, blocks) = read.map_err(|e| fault(&e.to_string()))?;
    Ok(File { schedule, placement: None, machine: None, blocks: Some(blocks) })
}

/// Checks that a program ends at all sizes, because a user may widen those of its file.
fn ends(program: &Program, running: &Running) -> Result<(), String> {
    if slots::hangs(program, running, (1, None)).is_some() {
        return Err(format!("it needs more than {} chunks in flight on a connection", limits::IN_FLIGHT));
    }
    Ok(())
}

fn fault(reason: &str) -> String {
    format!("the emitted file is wrong, please report it: {reason}")
}

/// The text of a program that reads back to a proved schedule whose results are the same expressions, in each of the
/// ways that the file says it may be run.
fn checked(program: &Program, schedule: &Schedule, proof: &Proof) -> Result<String, String> {
    let text = write(program);
    let again = parse::program(&text).map_err(|e| fault(&e.to_string()))?;
    let running = again.gpus.iter().map(transmissions).collect::<Result<_, _>>();
    ends(&again, &running.map_err(|e: ImportError| fault(&e.to_string()))?)?;
    for in_place in [false, true] {
        if in_place && !program.in_place {
            continue;
        }
        let (read, _) =
            import::schedule(&again, &Asked::default(), Some(in_place)).map_err(|e| fault(&e.to_string()))?;
        let found = verify(&read, Method::Auto);
        if let Some(d) = found.diagnostics.first() {
            return Err(fault(&d.to_string()));
        }
        let same = found.expression_class == proof.expression_class || is_swapped(&read, schedule);
        if read.collective() != schedule.collective() || !same {
            return Err(fault("it reads back to another result"));
        }
    }
    Ok(text)
}
