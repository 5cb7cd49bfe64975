//! The emitter of plans. It chooses the protocol, and proves each plan before it returns the text. A draft is only run
//! without data, to determine its order and its time.

use unisono_base::NodeId;
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_formats::{Facts, Refused};
use unisono_lower::{File, VerifiedFile};
use unisono_machine::network::{self, Network};
use unisono_schedule::{
    Schedule,
    verify::{Method, verify},
};

use super::{
    NAME,
    check::check_plan,
    export::{Exporter, Form},
    fault::Fault,
    launches,
    layout::COLLECTIVES,
    limits,
    plan::{self, Plan, Protocol, read},
    sized::Sized,
};
use crate::{
    Choices, Options, PROCESSORS,
    ordered::{Ordered, chunk_elements},
};

/// The longest vector in bytes for which packets are tried first: they need no signals, but transfer twice the bytes.
pub(super) const PACKETS_BYTES: u64 = 1 << 17;
/// The size in bytes of a chunk for each thread block that shares the chunk. It is two passes of a thread block: its
/// 1024 threads move 16 bytes each at a time.
const SHARE_BYTES: u64 = 2 * 1024 * 16;
/// The maximum number of thread blocks that share work, unless the user states a number.
const SHARES: u32 = 16;
/// The maximum number of instructions of a schedule; longer plans exceed the thread blocks of GPUs.
const INSTRUCTIONS: usize = 1 << 14;

/// Function that makes a file or a draft of a plan. It returns the plan's first fault as `Ok(Err(_))`, and an error of
/// the exporter as `Err(_)`.
type Make<'a, T> = &'a dyn Fn(&Writing<'_>, Form<'_>, Plan) -> Result<Result<T, Fault>, String>;

pub(super) fn made<T>(proven: &VerifiedFile, choices: &Choices, make: Make<'_, T>) -> Result<T, Refused> {
    let mut boxes = Vec::new();
    let ordered = Ordered::new(NAME, proven, |schedule| {
        boxes = boxes_of(proven.file(), choices.gpus_per_box)?;
        expressible(schedule)
    })?;
    let writing = Writing {
        unit: chunk_elements(ordered.schedule),
        in_place: choices.in_place.unwrap_or_else(|| in_place_by_itself(ordered.schedule.collective().kind)),
        boxes: &boxes,
        choices,
        ordered,
    };
    writing.in_a_protocol(make).map_err(|reason| Refused::new(NAME, reason))
}

/// Returns the box of each GPU: by the user's option, by the boxes of the machine, or one box for all.
fn boxes_of(file: &File, of_box: Option<u32>) -> Result<Vec<u32>, String> {
    let ranks = file.schedule.collective().ranks;
    match of_box {
        Some(n) if n == 0 || !ranks.is_multiple_of(n) => {
            return Err(format!("{ranks} GPUs do not fill boxes of {n}; use a number that divides {ranks}"));
        }
        Some(n) => return Ok((0..ranks).map(|gpu| gpu / n).collect()),
        None => {}
    }
    let network = file.machine.as_ref().and_then(|machine| Some((machine.name(), machine.get::<Network>()?)));
    let numbers =
        network.and_then(|(name, network)| network.whole_topology(name).ok()).and_then(|t| t.numbers_of_boxes());
    let Some(numbers) = numbers else { return Ok(vec![0; ranks as usize]) };
    let places = file.placement.as_ref().and_then(|placement| placement.nodes());
    let place = |gpu: u32| places.and_then(|places| places.get(gpu as usize)).copied().unwrap_or(gpu);
    Ok((0..ranks).map(|gpu| place(gpu) / numbers.accelerators.max(1)).collect())
}

/// Returns whether a plan runs in place by default: as `torch.distributed` calls the collective.
fn in_place_by_itself(kind: Kind) -> bool {
    matches!(kind, Kind::Allreduce | Kind::Broadcast | Kind::Reduce)
}

enum Attempt<T> {
    Made(T),
    /// The plan exceeds a limit of the runtime. The field is the reason.
    Refused(String),
    /// The next launch may overwrite packets before they are read, unless readers signal the end of reading. The field
    /// is the reason.
    Overtaken(String),
}

pub(super) struct Writing<'a> {
    ordered: Ordered<'a>,
    choices: &'a Choices,
    boxes: &'a [u32],
    unit: u32,
    in_place: bool,
}

impl Writing<'_> {
    fn in_a_protocol<T>(&self, make: Make<'_, T>) -> Result<T, String> {
        let (mut refused, mut is_overtaken) = ("it has no plan in this protocol".to_owned(), false);
        for (protocol, answers) in self.protocols() {
            if answers && !is_overtaken {
                continue;
            }
            match self.fitted(protocol, answers, make)? {
                Attempt::Made(made) => return Ok(made),
                Attempt::Refused(reason) => refused = reason,
                Attempt::Overtaken(reason) => (refused, is_overtaken) = (reason, true),
            }
        }
        Err(refused)
    }

    /// Returns the protocols in the order of attempts. The second value is true if readers of packets signal the end of
    /// reading.
    fn protocols(&self) -> Vec<(Protocol, bool)> {
        let c = self.ordered.schedule.collective();
        let bytes = u64::from(c.input_len(0).max(c.output_len(0))) * c.dtype.bytes();
        let mut protocols = vec![(Protocol::LL, false), (Protocol::LL, true), (Protocol::Simple, false)];
        let has_switches = self.ordered.schedule.node_count() > c.ranks as usize;
        if has_switches || self.boxes.iter().any(|&own| own != self.boxes[0]) {
            // A switch cannot add packets, and a port channel cannot send them.
            protocols.drain(..2);
        } else if bytes > PACKETS_BYTES {
            protocols.rotate_right(1);
        }
        protocols.retain(|(protocol, _)| match self.choices.protocol {
            Some(network::Protocol::Ll) => *protocol == Protocol::LL,
            Some(_) => *protocol == Protocol::Simple,
            None => true,
        });
        protocols
    }

    /// Writes a plan with as many thread blocks as are useful. If the plan exceeds the runtime's limits, fewer blocks
    /// are tried, down to one, and then one GPU that requests each whole sum of a switch. A number of thread blocks
    /// that the user states is not changed.
    ///
    /// # Errors
    /// Returns a fault of the exporter.
    fn fitted<T>(&self, protocol: Protocol, answers: bool, make: Make<'_, T>) -> Result<Attempt<T>, String> {
        let chunk_bytes = u64::from(self.unit) * self.ordered.schedule.collective().dtype.bytes();
        let shares = self.choices.thread_blocks.unwrap_or_else(|| shares(protocol, chunk_bytes));
        let (unit, in_place, boxes) = (self.unit, self.in_place, self.boxes);
        let mut form = Form { protocol, unit, in_place, answers, boxes, shares, pieces: false, parted: true };
        loop {
            let exporter = self.exporter(form)?;
            let held = (PROCESSORS as usize / exporter.chain()).max(1);
            if form.shares as usize > held {
                if let Some(shares) = self.choices.thread_blocks {
                    let needed = u64::from(shares) * exporter.chain() as u64;
                    return Ok(Attempt::Refused(format!(
                        "{shares} thread blocks that share the work need {needed} processors of a GPU, which has {PROCESSORS}; accepted \
                         are 1 to {held}"
                    )));
                }
                form = fewer(form, 1 << held.ilog2());
                continue;
            }
            let is_parted = exporter.is_parted();
            let finding = match make(self, form, exporter.write())? {
                Ok(made) => return Ok(Attempt::Made(made)),
                Err(finding) => finding,
            };
            match finding.code {
                // Writers and readers divide slices in different ways, so the shares of a slice do not match. An
                // operation for each single chunk avoids this.
                "race" if form.shares > 1 && !form.pieces => form.pieces = true,
                "limit" if form.shares > 1 && self.choices.thread_blocks.is_none() => {
                    form = fewer(form, form.shares / 2)
                }
                // One GPU that requests a whole sum from a switch needs fewer channels.
                "limit" if is_parted => form = Form { shares, pieces: false, parted: false, ..form },
                "limit" => return Ok(Attempt::Refused(finding.message)),
                "relaunch" => return Ok(Attempt::Overtaken(finding.message)),
                _ => return Err(fault(finding.message)),
            }
        }
    }

    fn exporter<'a>(&'a self, form: Form<'a>) -> Result<Exporter<'a>, String> {
        Exporter::new(self.ordered.schedule, &self.ordered.flow, &self.ordered.order, form)
    }

    /// Returns the text of a plan, after its proof. The runtime may run a plan for one buffer with two and vice versa
    /// (docs/gpu-plans.md), so both cases are proved.
    pub fn proved(&self, plan: &Plan, form: Form<'_>) -> Result<Result<String, Fault>, String> {
        let text = plan::text(plan);
        let again = read(&text).map_err(fault)?;
        let mut finding = self.finding(&again)?;
        if finding.is_none() {
            finding = self.finding(&self.exporter(Form { in_place: !form.in_place, ..form })?.write())?;
        }
        Ok(finding.map_or(Ok(text), Err))
    }

    /// Returns the schedule of a plan without proving it.
    pub fn draft(&self, plan: &Plan) -> Result<Result<File, Fault>, String> {
        if let Some(limit) = limits::check(plan, PROCESSORS).into_iter().next() {
            return Ok(Err(limit));
        }
        let sized = match Sized::in_order(plan, &self.facts()).map_err(fault)? {
            Ok(sized) => sized,
            Err(fault) => return Ok(Err(fault)),
        };
        let again = launches::faults(plan, &sized.program, &sized.layout, false).map_err(fault)?;
        match again.into_iter().next() {
            Some(fault) => Ok(Err(fault)),
            None => sized.file(plan).map(Ok).map_err(fault),
        }
    }

    fn facts(&self) -> Facts {
        let c = self.ordered.schedule.collective();
        Facts { elements: Some(u64::from(c.elements)), dtype: Some(c.dtype), ..Facts::default() }
    }

    /// Returns the first finding of the proof of a plan.
    ///
    /// # Errors
    /// Returns an error if the plan computes another result, which is a fault of the exporter.
    fn finding(&self, plan: &Plan) -> Result<Option<Fault>, String> {
        // Limits are checked first, because the proof takes long for plans far beyond them.
        if let Some(limit) = limits::check(plan, PROCESSORS).into_iter().next() {
            return Ok(Some(limit));
        }
        let checked = check_plan(plan, &self.facts(), Options::default()).map_err(fault)?;
        if let Some(first) = checked.diagnostics.into_iter().next() {
            return Ok(Some(first));
        }
        let c = self.ordered.schedule.collective();
        // Plans state no operator for collectives without reductions.
        let operator = if c.kind.reduces() { c.operator } else { Operator::Sum };
        let (meant, class) = (Collective { operator, ..*c }, Some(self.ordered.class));
        // The runtime starts sums of packets from +0, and switches choose the order of their sums. Apart from these two
        // differences, the plan must compute the same expressions.
        let same = checked.schedule.is_some_and(|s| {
            *s.collective() == meant
                && (checked.expression_class.as_deref() == class
                    || verify(&s, Method::Auto).expression_class.as_deref() == class)
        });
        if same { Ok(None) } else { Err(fault("it reads back to another result")) }
    }
}

fn fewer(form: Form<'_>, shares: u32) -> Form<'_> {
    Form { shares, pieces: form.pieces && shares > 1, ..form }
}

/// Returns the number of thread blocks that share each chunk: a power of two that grows with its bytes; 1 for LL.
fn shares(protocol: Protocol, chunk_bytes: u64) -> u32 {
    let worth = u32::try_from(chunk_bytes / SHARE_BYTES).unwrap_or(SHARES).clamp(1, SHARES);
    if protocol == Protocol::LL { 1 } else { 1 << worth.ilog2() }
}

fn fault(reason: impl std::fmt::Display) -> String {
    format!("the emitted plan is wrong, please report it: {reason}")
}

fn expressible(schedule: &Schedule) -> Result<(), String> {
    let c = schedule.collective();
    if !COLLECTIVES.kinds().any(|kind| kind == c.kind) {
        return Err(format!(
            "{} is no collective of plans; there are allgather, allreduce, alltoall, broadcast, reduce and reduce-scatter",
            c.kind
        ));
    }
    if c.kind.reduces() && c.operator != Operator::Sum {
        return Err(format!("the runtime adds, and the operator is {}", c.operator));
    }
    if c.kind.reduces() && matches!(c.dtype, Dtype::F64 | Dtype::I16 | Dtype::I64) {
        return Err(format!("the runtime has no reductions of {}; it has f16, bf16, f32 and i32", c.dtype));
    }
    if c.elements == 0 || c.ranks < 2 {
        return Err("it moves nothing between GPUs".to_owned());
    }
    if schedule.instr_count() > INSTRUCTIONS {
        let count = schedule.instr_count();
        return Err(format!("it has {count} instructions; plans of at most {INSTRUCTIONS} are written"));
    }
    // Streams to and from a switch share scratch memory, at the same offset on all GPUs.
    let is_rank = |node: &NodeId| node.0 < c.ranks;
    let ranks = schedule.all_nodes().filter(is_rank);
    let mut scratch: Vec<u64> = ranks.map(|n| u64::from(schedule.scratch_elements(n))).collect();
    for stream in schedule.all_streams().filter(|&stream| is_rank(&schedule.stream(stream).source)) {
        for sink in schedule.stream_sinks(stream).iter().filter(|&sink| is_rank(sink)) {
            scratch[sink.index()] += u64::from(schedule.stream(stream).len);
        }
    }
    let (gpu, most) = scratch.iter().enumerate().max_by_key(|(_, elements)| **elements).unwrap_or((0, &0));
    let bytes = most.saturating_mul(c.dtype.bytes());
    if bytes > u64::from(u32::MAX) {
        return Err(format!(
            "rank {gpu} takes {bytes} bytes of scratch memory for what arrives; plans address less than 2^32, so try \
             shorter vectors, or an algorithm that sends less to a rank"
        ));
    }
    Ok(())
}
